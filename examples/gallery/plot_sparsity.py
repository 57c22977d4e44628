"""
Sparsity patterns of the elastic net
====================================

From top to bottom the penalty turns from squares into absolute values, and weights become
exactly zero.
"""

import matplotlib.pyplot as plt
import numpy as np

import zerogap as zg

BLUE, ORANGE, GREEN, GREY = "#0072B2", "#D55E00", "#009E73", "#595959"  # Okabe and Ito's palette

rng = np.random.default_rng(0)
X = rng.normal(size=(150, 40))
truth = np.where(np.arange(40) < 6, rng.normal(size=40) * 2, 0.0)
y = X @ truth + rng.normal(size=150)
ratios = [0.0, 0.25, 0.5, 0.75, 0.95]
weights = np.array(
    [zg.LinearRegressor("squared", lam=0.3, l1_ratio=r, tol=1e-8).fit(X, y).coef_ for r in ratios]
)

figure, axes = plt.subplots(figsize=(9, 3.4), layout="constrained")
shown = np.where(weights == 0, np.nan, weights)
image = axes.imshow(shown, cmap="PuOr_r", vmin=-3, vmax=3, aspect="auto")
axes.set_facecolor("white")
axes.set(xlabel="feature (the first six matter)", ylabel="l1_ratio")
axes.set_yticks(
    range(len(ratios)),
    [f"{r:g}: {np.count_nonzero(w)} left" for r, w in zip(ratios, weights, strict=True)],
)
figure.colorbar(image, ax=axes, label="weight; white: exactly zero")
plt.show()
