"""
Forgetting rows, one after the other
====================================

A model forgets rows from the dual variables that it has. It stays within the asked gap of the
optimum of what is left.
"""

import matplotlib.pyplot as plt
import numpy as np

import zerogap as zg

BLUE, ORANGE, GREEN, GREY = "#0072B2", "#D55E00", "#009E73", "#595959"  # Okabe and Ito's palette

X, y, _ = zg.datasets.make_simulated(400, random_state=0)
model = zg.LinearClassifier("logistic", lam=0.05, tol=1e-5, keep_data=True).fit(X, y)
first, moved, gaps = model.coef_.copy(), [], []
for row in range(40):
    model.forget([row])  # rows keep the numbers that they had in the first fit
    moved.append(np.linalg.norm(model.coef_ - first) / np.linalg.norm(first))
    gaps.append(model.certificate_.relative_gap)

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.8), layout="constrained")
left.plot(range(1, 41), 100 * np.array(moved), color=BLUE)
left.set(xlabel="rows forgotten", ylabel="weights moved, % of their length")
right.semilogy(range(1, 41), gaps, "o", color=BLUE, markersize=4, label="proved")
right.axhline(1e-5, color=ORANGE, linestyle="--", label="asked for")
right.set(xlabel="rows forgotten", ylabel="relative gap", ylim=(None, 1e-4))
right.legend(frameon=False)
plt.show()
