"""
A path without holes
====================

Each model is proved to be within 1 % of the optimum on an interval of lambdas. The intervals
overlap, so every lambda has a certified model.
"""

import matplotlib.pyplot as plt
import numpy as np

import zerogap as zg

BLUE, ORANGE, GREEN, GREY = "#0072B2", "#D55E00", "#009E73", "#595959"  # Okabe and Ito's palette

X, y, _ = zg.datasets.make_simulated(500, random_state=0)
path = zg.path(X, y, lam_min=1e-3, lam_max=1.0, loss="logistic", tol=1e-2)
lams = np.geomspace(1e-3, 1.0, 400)
gaps = [path.at(lam).certificate.relative_gap for lam in lams]

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
left.plot(lams, np.array([path.at(lam).w for lam in lams]), color=BLUE, linewidth=1)
left.set(
    xscale="log", xlabel="lambda", ylabel="weights", title=f"{len(path.lams)} models serve all"
)
right.plot(lams, 100 * np.array(gaps), color=BLUE, label="proved at each lambda")
right.axhline(1, color=ORANGE, linestyle="--", label="asked for")
right.set(xscale="log", xlabel="lambda", ylabel="relative gap, %", ylim=(0, 1.2))
right.legend(frameon=False)
plt.show()
