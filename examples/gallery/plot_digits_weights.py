"""
Weights of ten classes as images
================================

Softmax regression on 8 x 8 digits: what speaks for a digit is orange, what speaks against it
violet.
"""

import matplotlib.pyplot as plt
import numpy as np

import zerogap as zg

BLUE, ORANGE, GREEN, GREY = "#0072B2", "#D55E00", "#009E73", "#595959"  # Okabe and Ito's palette

from sklearn.datasets import load_digits

X, y = load_digits(return_X_y=True)
model = zg.LinearClassifier("softmax", lam=1e-2).fit(X, y)
most = np.abs(model.coef_).max()
figure, panels = plt.subplots(2, 5, figsize=(9, 4), layout="constrained")
for digit, axes in enumerate(panels.flat):
    image = axes.imshow(model.coef_[digit].reshape(8, 8), cmap="PuOr_r", vmin=-most, vmax=most)
    axes.set(title=f"digit {digit}", xticks=[], yticks=[])
figure.colorbar(image, ax=panels, label="weight", shrink=0.8)
plt.show()
