"""
Sample weights are repetitions
==============================

A row of weight 6 is a row that stands there six times: both problems have the same optimum. Large
points have the weight 6, small ones 1.
"""

import matplotlib.pyplot as plt
import numpy as np

import zerogap as zg

BLUE, ORANGE, GREEN, GREY = "#0072B2", "#D55E00", "#009E73", "#595959"  # Okabe and Ito's palette

rng = np.random.default_rng(0)
X = rng.normal(size=(80, 2))
y = np.where(X @ [1.0, 0.5] + 0.6 * rng.normal(size=80) > 0, 1, -1)
weights = np.where(X[:, 0] > 0.5, 6, 1)
plain = zg.LinearClassifier("logistic", lam=0.05, tol=1e-8).fit(X, y)
weighted = zg.LinearClassifier("logistic", lam=0.05, tol=1e-8).fit(X, y, sample_weight=weights)
again = np.repeat(np.arange(80), weights)
repeated = zg.LinearClassifier("logistic", lam=0.05, tol=1e-8).fit(X[again], y[again])

figure, axes = plt.subplots(figsize=(6, 5), layout="constrained")
for label, marker, colour in ((-1, "s", ORANGE), (1, "o", BLUE)):
    axes.scatter(
        *X[y == label].T, s=12 * weights[y == label], marker=marker, color=colour, alpha=0.6
    )
x = np.array([-3.0, 3.0])
for model, style, name, colour in (
    (plain, ":", "all weights 1", GREY),
    (weighted, "-", "weighted", "#000000"),
    (repeated, "--", "repeated", "#CC79A7"),
):
    a, b = model.coef_[0]
    axes.plot(x, -(a * x + model.intercept_) / b, style, color=colour, label=name)
axes.set(xlabel="feature 1", ylabel="feature 2", xlim=(-3, 3), ylim=(-3, 3))
axes.legend(frameon=False)
plt.show()
