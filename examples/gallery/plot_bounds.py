"""
Updates that theory asks for in advance
=======================================

A-priori bounds say how many updates suffice, before anything has run. Certificates show how
many were needed.
"""

import matplotlib.pyplot as plt
import numpy as np

import zerogap as zg

BLUE, ORANGE, GREEN, GREY = "#0072B2", "#D55E00", "#009E73", "#595959"  # Okabe and Ito's palette

gaps = 10.0 ** -np.arange(1, 6)
X, y, _ = zg.datasets.make_simulated(1000, random_state=0)
X /= np.linalg.norm(X, axis=1).max()
problem = zg.Problem(X, y, "smooth-hinge", lam=1e-2)
promised = [
    zg.bounds.sdca(1000, lam=1e-2, eps=gap, loss="smooth-hinge", radius=1.0).epochs for gap in gaps
]
run = zg.solve(
    problem, zg.SDCA(sampling="random"), tol=1e-9, max_epochs=100, record="epoch", random_state=0
).history
needed = [
    next(e for e, g in zip(run["epoch"], run["gap"], strict=True) if g <= gap) for gap in gaps
]

figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
axes.semilogx(gaps, promised, "s--", color=ORANGE, label="bound")
axes.semilogx(gaps, needed, "o-", color=BLUE, label="needed")
axes.set(xlabel="gap", ylabel="epochs", ylim=0)
axes.invert_xaxis()
axes.legend(frameon=False)
plt.show()
