"""
A race of solvers on one clock
==============================

One problem, one certificate, one clock: gap against rows read.
"""

import matplotlib.pyplot as plt
import numpy as np

import zerogap as zg

BLUE, ORANGE, GREEN, GREY = "#0072B2", "#D55E00", "#009E73", "#595959"  # Okabe and Ito's palette

X, y, _ = zg.datasets.make_simulated(2000, random_state=0)
problem = zg.Problem(X, y, "smooth-hinge", lam=1e-3)
solvers = {
    "SDCA": (zg.SDCA(), "-"),
    "accelerated SDCA": (zg.ASDCA(batch_size=8), "--"),
    "Pegasos": (zg.Pegasos(output="average"), "-."),
    "SGD": (zg.SGD(), ":"),
    "gradient descent": (zg.GD(), (0, (5, 1))),
    "Newton": (zg.Newton(), (0, (1, 1))),
}
figure, axes = plt.subplots(figsize=(8, 4.5), layout="constrained")
colours = [BLUE, ORANGE, GREEN, "#CC79A7", GREY, "#000000"]
for (name, (solver, style)), colour in zip(solvers.items(), colours, strict=True):
    run = zg.solve(problem, solver, tol=1e-8, max_epochs=60, record="epoch", random_state=0).history
    axes.semilogy(
        run["epoch"], np.maximum(run["gap"], 1e-12), linestyle=style, color=colour, label=name
    )
axes.set(xlabel="epochs (passes over the rows)", ylabel="proved distance from the optimum")
axes.legend(frameon=False, ncols=2)
plt.show()
