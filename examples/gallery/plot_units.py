"""
A unit of measurement changes nothing
=====================================

One column is multiplied by up to a billion. Coordinate ascent crawls; the default chooses
another method and needs a few steps.
"""

import matplotlib.pyplot as plt
import numpy as np

import zerogap as zg

BLUE, ORANGE, GREEN, GREY = "#0072B2", "#D55E00", "#009E73", "#595959"  # Okabe and Ito's palette

import warnings

rng = np.random.default_rng(0)
X = rng.normal(size=(2000, 8))
y = np.sign(X @ rng.normal(size=8) + rng.normal(size=2000))
factors = 10.0 ** np.arange(0, 10, 1)
gaps = {"auto": [], "sdca": []}
for factor in factors:
    Z = X * np.r_[factor, np.ones(7)]
    for solver, found in gaps.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = zg.LinearClassifier(
                "logistic", solver=solver, max_epochs=30, random_state=0
            ).fit(Z, y)
        found.append(model.certificate_.relative_gap)

figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
axes.loglog(factors, gaps["sdca"], "s--", color=ORANGE, label="coordinate ascent alone, 30 epochs")
axes.loglog(factors, np.maximum(gaps["auto"], 1e-12), "o-", color=BLUE, label="default")
axes.axhline(1e-3, color=GREY, linestyle=":", label="asked for")
axes.set(xlabel="factor of one column", ylabel="relative gap that is reached", ylim=(None, 1e5))
axes.legend(frameon=False, loc="upper right")
plt.show()
