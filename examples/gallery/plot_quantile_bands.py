"""
Quantile bands
==============

Three models, for 5, 50 and 95 % of the rows. The noise grows with x, and so does the band.
"""

import matplotlib.pyplot as plt
import numpy as np

import zerogap as zg

BLUE, ORANGE, GREEN, GREY = "#0072B2", "#D55E00", "#009E73", "#595959"  # Okabe and Ito's palette

rng = np.random.default_rng(0)
x = np.sort(rng.uniform(0, 10, 800))
y = 2 * x + (0.5 + 0.5 * x) * rng.normal(size=800)
X = x[:, None]
low, middle, high = (
    zg.LinearRegressor(zg.Quantile(q=q), lam=1e-7, tol=1e-4).fit(X, y).predict(X)
    for q in (0.05, 0.5, 0.95)
)
figure, axes = plt.subplots(figsize=(8, 4), layout="constrained")
axes.scatter(x, y, s=5, color=GREY, alpha=0.5, label="rows")
axes.fill_between(x, low, high, color=BLUE, alpha=0.2, label="5 to 95 %")
axes.plot(x, middle, color=BLUE, label="median")
axes.set(xlabel="x", ylabel="y")
axes.legend(frameon=False)
plt.show()
