"""
Last point, average or best
===========================

Stochastic methods may return their last point, an average, or the best one that was certified.
"""

import matplotlib.pyplot as plt

import zerogap as zg

BLUE, ORANGE, GREEN, GREY = "#0072B2", "#D55E00", "#009E73", "#595959"  # Okabe and Ito's palette

X, y, _ = zg.datasets.make_simulated(1000, random_state=0)
problem = zg.Problem(X, y, "hinge", lam=1e-2)
figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
for output, style, colour in (("last", ":", GREY), ("average", "--", ORANGE), ("best", "-", BLUE)):
    run = zg.solve(
        problem, zg.Pegasos(output=output), tol=1e-9, max_epochs=60, record="epoch", random_state=0
    ).history
    axes.semilogy(run["epoch"], run["gap"], style, color=colour, label=output)
axes.set(xlabel="epochs", ylabel="duality gap", title="Pegasos")
axes.legend(frameon=False, title="output")
plt.show()
