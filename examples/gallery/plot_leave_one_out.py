"""
The exact leave-one-out error along lambda
==========================================

The dual variables decide most rows, so that the exact leave-one-out error costs a few fits
instead of n.
"""

import matplotlib.pyplot as plt
import numpy as np

import zerogap as zg

BLUE, ORANGE, GREEN, GREY = "#0072B2", "#D55E00", "#009E73", "#595959"  # Okabe and Ito's palette

X, y, _ = zg.datasets.make_simulated(150, noise=2.0, random_state=1)
lams = np.geomspace(1e-3, 3.0, 10)
found = [
    zg.LinearClassifier("hinge", lam=lam, random_state=0).fit(X, y).leave_one_out(X, y)
    for lam in lams
]
train = [
    1 - zg.LinearClassifier("hinge", lam=lam, random_state=0).fit(X, y).score(X, y) for lam in lams
]

figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
axes.plot(lams, [100 * one.error for one in found], "o-", color=BLUE, label="leave-one-out, exact")
axes.plot(lams, 100 * np.array(train), "s--", color=GREY, label="training rows")
axes.set(xscale="log", xlabel="lambda", ylabel="misclassified rows, %", ylim=0)
axes.legend(frameon=False)
plt.show()
