"""
Robust against squared loss
===========================

One row in ten has a wrong target. The squared loss follows them; Huber's and the absolute loss
do not.
"""

import matplotlib.pyplot as plt
import numpy as np

import zerogap as zg

BLUE, ORANGE, GREEN, GREY = "#0072B2", "#D55E00", "#009E73", "#595959"  # Okabe and Ito's palette

rng = np.random.default_rng(0)
x = rng.uniform(-3, 3, 200)
y = 1.5 * x + 0.5 * rng.normal(size=200)
y[np.argsort(x)[-20:]] -= 25.0
figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
axes.scatter(x, y, s=8, color=GREY, label="rows")
line = np.array([-3.0, 3.0])
for loss, colour, style in (
    ("squared", ORANGE, "--"),
    ("huber", BLUE, "-"),
    ("absolute", GREEN, "-."),
):
    model = zg.LinearRegressor(loss, lam=1e-4).fit(x[:, None], y)
    axes.plot(line, model.predict(line[:, None]), style, color=colour, label=loss)
axes.set(xlabel="x", ylabel="y")
axes.legend(frameon=False)
plt.show()
