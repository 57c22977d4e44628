"""
Three ways to tell three classes apart
======================================

Softmax and the multiclass hinge train all classes jointly; a loss of one score trains each
class against the rest.
"""

import matplotlib.pyplot as plt
import numpy as np

import zerogap as zg

BLUE, ORANGE, GREEN, GREY = "#0072B2", "#D55E00", "#009E73", "#595959"  # Okabe and Ito's palette

rng = np.random.default_rng(0)
X = np.vstack([rng.normal(c, 0.9, (150, 2)) for c in ([-2, 0], [0, 0.5], [2, 0])])
y = np.repeat([0, 1, 2], 150)
grid = np.stack(np.meshgrid(np.linspace(-4, 4, 200), np.linspace(-3, 3, 150)), axis=-1)

figure, panels = plt.subplots(1, 3, figsize=(11, 3.6), sharey=True, layout="constrained")
for axes, loss in zip(panels, ("softmax", "multiclass-hinge", "hinge"), strict=True):
    model = zg.LinearClassifier(loss, lam=1e-3).fit(X, y)
    areas = model.predict(grid.reshape(-1, 2)).reshape(150, 200)
    axes.contourf(
        grid[..., 0],
        grid[..., 1],
        areas,
        levels=[-0.5, 0.5, 1.5, 2.5],
        colors=[BLUE, ORANGE, GREEN],
        alpha=0.25,
    )
    for k, (marker, colour) in enumerate((("o", BLUE), ("s", ORANGE), ("^", GREEN))):
        axes.scatter(*X[y == k].T, s=8, marker=marker, color=colour)
    axes.set(title=f"{loss}: {100 * model.score(X, y):.0f} % right")
    axes.set(xlabel="feature 1", xlim=(-4, 4))
panels[0].set_ylabel("feature 2")
plt.show()
