"""
Predictions with certified intervals
====================================

The exact optimum's prediction is proved to lie in an interval around the model's. It shrinks
with the gap.
"""

import matplotlib.pyplot as plt
import numpy as np

import zerogap as zg

BLUE, ORANGE, GREEN, GREY = "#0072B2", "#D55E00", "#009E73", "#595959"  # Okabe and Ito's palette

import warnings

warnings.simplefilter("ignore")  # of runs that are stopped on purpose
rng = np.random.default_rng(0)
x = np.sort(rng.uniform(-3, 3, 300))
X = np.column_stack([x, x**2, x**3])
y = np.sin(x) + 0.2 * rng.normal(size=300)
figure, panels = plt.subplots(1, 2, figsize=(10, 4), sharey=True, layout="constrained")
for axes, tol in zip(panels, (3e-3, 1e-5), strict=True):
    model = zg.LinearRegressor(
        "huber", lam=1e-2, tol=tol, solver="sdca", max_epochs=5000, random_state=0
    ).fit(X, y)
    middle, low, high = model.predict_certified(X)
    axes.scatter(x, y, s=4, color=GREY)
    axes.fill_between(x, low, high, color=ORANGE, alpha=0.4, label="where the optimum predicts")
    axes.plot(x, middle, color=BLUE, label="model")
    axes.set(title=f"tol = {tol:g}", xlabel="x", ylim=(-2.5, 2.5))
panels[0].set_ylabel("y")
panels[0].legend(frameon=False)
plt.show()
