"""
Certified labels near the boundary
==================================

A label is certified if the exact optimum is proved to give the same one. The strip of open
labels shrinks with the gap.
"""

import matplotlib.pyplot as plt
import numpy as np

import zerogap as zg

BLUE, ORANGE, GREEN, GREY = "#0072B2", "#D55E00", "#009E73", "#595959"  # Okabe and Ito's palette

rng = np.random.default_rng(0)
X = rng.normal(size=(1500, 2))
y = np.where(X @ [1.0, 1.0] + 0.7 * rng.normal(size=1500) > 0, 1, -1)

figure, panels = plt.subplots(1, 3, figsize=(11, 3.8), sharey=True, layout="constrained")
for axes, tol in zip(panels, (1e-1, 1e-2, 1e-4), strict=True):
    model = zg.LinearClassifier("hinge", lam=0.1, tol=tol, solver="sdca", random_state=0).fit(X, y)
    _, sure = model.predict_certified(X)
    axes.scatter(*X[sure].T, s=6, color=BLUE, label="settled")
    axes.scatter(*X[~sure].T, s=6, color=ORANGE, label="open")
    axes.set(title=f"tol = {tol:g}: {100 * sure.mean():.0f} % settled", xlabel="feature 1")
    axes.set_aspect("equal")
panels[0].set_ylabel("feature 2")
panels[0].legend(loc="upper right", markerscale=2)
plt.show()
