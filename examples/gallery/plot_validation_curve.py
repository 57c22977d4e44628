"""
A validation curve over the continuum
=====================================

Five folds, each with a path without holes: the curve is known at every lambda, and the best
lambda is not an accident of a grid.
"""

import matplotlib.pyplot as plt
import numpy as np

import zerogap as zg

BLUE, ORANGE, GREEN, GREY = "#0072B2", "#D55E00", "#009E73", "#595959"  # Okabe and Ito's palette

X, y, _ = zg.datasets.make_simulated(200, noise=3.0, random_state=3)
curve = zg.path_cv(X, y, 1e-2, 10.0, loss="logistic", folds=5, tol=1e-2, random_state=0)
starts = np.array([step.start for step in curve.steps] + [curve.steps[-1].stop])
errors = np.array([step.error for step in curve.steps])
spread = np.array([step.standard_error for step in curve.steps])

figure, axes = plt.subplots(figsize=(8, 4), layout="constrained")
axes.stairs(100 * errors, starts, color=BLUE, baseline=None, label="error over five folds")
axes.stairs(
    100 * (errors + spread),
    starts,
    baseline=100 * (errors - spread),
    fill=True,
    color=BLUE,
    alpha=0.2,
    label="standard error",
)
axes.axvline(curve.best.lam, color=ORANGE, linestyle="--", label="best")
axes.axvline(
    curve.simplest.lam, color=GREEN, linestyle="-.", label="simplest within one standard error"
)
axes.set(xscale="log", xlabel="lambda", ylabel=f"{curve.measure}, %")
axes.legend(frameon=False)
plt.show()
