"""
Support vectors
===============

For the hinge most dual variables are zero: those rows could be left out, and are drawn hollow. They
lie on the right side of the margin, which the dotted lines show.
"""

import matplotlib.pyplot as plt
import numpy as np

import zerogap as zg

BLUE, ORANGE, GREEN, GREY = "#0072B2", "#D55E00", "#009E73", "#595959"  # Okabe and Ito's palette

rng = np.random.default_rng(1)
X = np.vstack([rng.normal([-1.2, 0], 0.8, (120, 2)), rng.normal([1.2, 0], 0.8, (120, 2))])
y = np.repeat([-1, 1], 120)
model = zg.LinearClassifier("hinge", lam=0.02, tol=1e-9, max_epochs=10_000).fit(X, y)
support = np.zeros(240, dtype=bool)
support[model.support_] = True

figure, axes = plt.subplots(figsize=(7, 4.5), layout="constrained")
for label, marker, colour in ((-1, "s", ORANGE), (1, "o", BLUE)):
    own = y == label
    axes.scatter(*X[own & ~support].T, s=18, marker=marker, facecolors="none", edgecolors=colour)
    axes.scatter(
        *X[own & support].T,
        s=30,
        marker=marker,
        color=colour,
        label=f"class {label}, support vectors",
    )
a, b = model.coef_[0]
x2 = np.array([-3.0, 3.0])
for level, style in ((-1, ":"), (0, "-"), (1, ":")):
    axes.plot((level - model.intercept_ - b * x2) / a, x2, style, color=GREY)
axes.set(xlabel="feature 1", ylabel="feature 2", xlim=(-4, 4), ylim=(-3, 3))
axes.legend(loc="upper left")
plt.show()
