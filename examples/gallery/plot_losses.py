"""
The losses of two classes
=========================

What the losses charge for a margin y z, and what that does to the weights of the rows.
"""

import matplotlib.pyplot as plt
import numpy as np

import zerogap as zg

BLUE, ORANGE, GREEN, GREY = "#0072B2", "#D55E00", "#009E73", "#595959"  # Okabe and Ito's palette

margins = np.linspace(-2, 3, 300)
losses = {
    "hinge": (zg.Hinge(), "-", BLUE),
    "smooth hinge": (zg.SmoothHinge(), "--", ORANGE),
    "squared hinge": (zg.SquaredHinge(), "-.", GREEN),
    "logistic": (zg.Logistic(), ":", "#000000"),
}
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
for name, (loss, style, colour) in losses.items():
    left.plot(margins, [loss.value(m, 1.0) for m in margins], style, color=colour, label=name)
    right.plot(
        margins, [-loss.derivative(m, 1.0) for m in margins], style, color=colour, label=name
    )
left.set(xlabel="margin y z", ylabel="loss", ylim=(-0.1, 4), title="what a margin costs")
right.set(xlabel="margin y z", ylabel="-slope", ylim=(-0.1, 4), title="how hard a row pulls")
left.legend(frameon=False)
plt.show()
