"""
Years and unix times
====================

Columns with large offsets: the free intercept takes the shift, so the run does not notice. A
regularised intercept, as in LinearSVC, changes the model.
"""

import matplotlib.pyplot as plt
import numpy as np

import zerogap as zg

BLUE, ORANGE, GREEN, GREY = "#0072B2", "#D55E00", "#009E73", "#595959"  # Okabe and Ito's palette

import warnings

from sklearn.svm import LinearSVC

warnings.simplefilter("ignore")  # of convergence
rng = np.random.default_rng(0)
X = rng.normal(size=(600, 3))
y = np.where(X @ [1.0, -1.0, 0.5] + 0.3 * rng.normal(size=600) > 0, 1, -1)
offsets = 10.0 ** np.arange(0, 8)
ours = [zg.LinearClassifier("squared-hinge").fit(X + o, y).score(X + o, y) for o in offsets]
theirs = [LinearSVC(random_state=0).fit(X + o, y).score(X + o, y) for o in offsets]

figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
axes.semilogx(offsets, 100 * np.array(ours), "o-", color=BLUE, label="zerogap: free intercept")
axes.semilogx(
    offsets, 100 * np.array(theirs), "s--", color=ORANGE, label="LinearSVC: regularised intercept"
)
axes.set(xlabel="offset of every column", ylabel="accuracy on the training rows, %", ylim=(40, 101))
axes.legend(frameon=False)
plt.show()
