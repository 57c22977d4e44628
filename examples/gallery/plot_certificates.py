"""
Certificates along a run
========================

Primal and dual value close in on the optimum from both sides. The gap between them is what the
run proves at each moment; it is always above the true distance.
"""

import matplotlib.pyplot as plt
import numpy as np

import zerogap as zg

BLUE, ORANGE, GREEN, GREY = "#0072B2", "#D55E00", "#009E73", "#595959"  # Okabe and Ito's palette

X, y, _ = zg.datasets.make_simulated(2000, random_state=0)
problem = zg.Problem(X, y, "hinge", lam=1e-3)
best = zg.solve(problem, zg.SDCA(), tol=1e-12, max_epochs=5000, random_state=0).certificate.dual
run = zg.solve(problem, zg.SDCA(), tol=1e-6, max_epochs=300, record="epoch", random_state=0).history

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
left.plot(run["epoch"], run["primal"], color=BLUE, label="primal value of the model")
left.plot(run["epoch"], run["dual"], color=ORANGE, label="dual value: no model is below")
left.axhline(best, color=GREY, linestyle=":", label="optimum")
left.set(xlabel="epochs", ylabel="objective", ylim=(0.95 * best, 1.3 * best), xlim=(0, 15))
distance = np.maximum(np.array(run["primal"]) - best, 1e-16)
right.semilogy(run["epoch"], run["gap"], color=BLUE, label="proved: the duality gap")
right.semilogy(run["epoch"], distance, color=ORANGE, linestyle="--", label="true distance")
right.set(xlabel="epochs", ylabel="distance from the optimum")
for axes in (left, right):
    axes.legend(frameon=False)
plt.show()
