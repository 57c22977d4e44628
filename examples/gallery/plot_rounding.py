"""
How much of a gap is rounding
=============================

The further a column is from zero, the more digits cancel. `rounding` is the part of the gap that
bounds of this take. With a free intercept the offset costs nothing, because the run works on
shifted data; without one it is part of the problem. Where the bounds would take too much of the
gap, products are computed in twice the precision, and the bounds fall again.
"""

import matplotlib.pyplot as plt
import numpy as np

import zerogap as zg

BLUE, ORANGE, GREEN, GREY = "#0072B2", "#D55E00", "#009E73", "#595959"  # Okabe and Ito's palette

import warnings

warnings.simplefilter("ignore")  # of runs that rounding ends
rng = np.random.default_rng(0)
X = rng.normal(size=(200, 3))
y = np.sign(X @ [1.0, 1.0, -1.0] + 0.5 * rng.normal(size=200))
offsets = 10.0 ** np.arange(0, 13)


def rounding(offset, free):
    """Return the part of the gap that bounds of rounding take."""
    shifted = X + np.array([offset, 0.0, 0.0])
    problem = zg.Problem(shifted, y, "logistic", lam=0.01, fit_intercept=free)
    return zg.solve(problem, zg.Auto(), tol=1e-9, max_epochs=200).certificate.rounding


figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
for free, style, colour, name in (
    (True, "o-", BLUE, "free intercept"),
    (False, "s--", ORANGE, "no intercept"),
):
    found = [max(rounding(offset, free), 1e-17) for offset in offsets]
    axes.loglog(offsets, found, style, color=colour, label=name)
axes.set(xlabel="offset of one column", ylabel="bounds of rounding, in units of the objective")
axes.legend(frameon=False)
plt.show()
