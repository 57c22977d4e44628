"""
Block-coordinate Frank-Wolfe for many classes
=============================================

For the multiclass hinge a Frank-Wolfe step of one row is cheap. All rows in one block are the
classical method.
"""

import matplotlib.pyplot as plt

import zerogap as zg

BLUE, ORANGE, GREEN, GREY = "#0072B2", "#D55E00", "#009E73", "#595959"  # Okabe and Ito's palette

from sklearn.datasets import load_digits

X, y = load_digits(return_X_y=True)
problem = zg.Problem(X[:600] / 16, y[:600], "multiclass-hinge", lam=1e-2)
figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
runs = {
    "one row at a time": (zg.BCFW(), "-", BLUE),
    "all rows in one block": (zg.BCFW(batch_size=600), "--", ORANGE),
    "SDCA": (zg.SDCA(), "-.", GREEN),
}
for name, (solver, style, colour) in runs.items():
    run = zg.solve(problem, solver, tol=1e-4, max_epochs=60, record="epoch", random_state=0).history
    axes.semilogy(run["epoch"], run["gap"], style, color=colour, label=name)
axes.set(xlabel="epochs", ylabel="duality gap")
axes.legend(frameon=False)
plt.show()
