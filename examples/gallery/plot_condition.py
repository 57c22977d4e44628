"""
Ill-conditioned data
====================

Gradient descent pays for the condition number; Newton's method does not notice it.
"""

import matplotlib.pyplot as plt
import numpy as np

import zerogap as zg

BLUE, ORANGE, GREEN, GREY = "#0072B2", "#D55E00", "#009E73", "#595959"  # Okabe and Ito's palette

rng = np.random.default_rng(0)
conditions = 10.0 ** np.arange(0, 5)
epochs = {"gradient descent": [], "Newton": []}
for condition in conditions:
    Z = rng.normal(size=(500, 10))
    y = np.sign(Z.sum(axis=1) + 2.0 * rng.normal(size=500))
    X = Z * np.geomspace(1, condition**-0.5, 10)  # all columns matter, in other units
    problem = zg.Problem(X, y, "logistic", lam=1e-5)
    for name, solver in (("gradient descent", zg.GD()), ("Newton", zg.Newton())):
        result = zg.solve(problem, solver, tol=0.03, max_epochs=20_000, random_state=0)
        done = result.stop_reason == "converged"
        epochs[name].append(result.certificate.epochs if done else np.nan)

figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
for (name, found), style, colour in zip(epochs.items(), ("s--", "o-"), (ORANGE, BLUE), strict=True):
    axes.loglog(conditions, found, style, color=colour, label=name)
axes.set(xlabel="condition number", ylabel="epochs to a relative gap of 3 %")
axes.legend(frameon=False)
plt.show()
