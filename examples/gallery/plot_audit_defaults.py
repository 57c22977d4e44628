"""
An audit of popular defaults
============================

How far from the optimum of their own objectives do default settings end? Raw and scaled, on
scikit-learn's breast cancer data.
"""

import matplotlib.pyplot as plt
import numpy as np

import zerogap as zg

BLUE, ORANGE, GREEN, GREY = "#0072B2", "#D55E00", "#009E73", "#595959"  # Okabe and Ito's palette

import warnings

from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression, RidgeClassifier, SGDClassifier
from sklearn.preprocessing import scale
from sklearn.svm import LinearSVC

warnings.simplefilter("ignore")  # of convergence: that is what is measured here
X, y = load_breast_cancer(return_X_y=True)
models = [LogisticRegression(), LinearSVC(), SGDClassifier(random_state=0), RidgeClassifier()]
names = [type(model).__name__ for model in models]
shares = {
    kind: [
        max(a.at_least / a.primal, 1e-9) for a in (zg.certify(m.fit(Z, y), Z, y) for m in models)
    ]
    for kind, Z in (("raw", X), ("scaled", scale(X)))
}

figure, axes = plt.subplots(figsize=(8, 3.5), layout="constrained")
places = np.arange(len(names))
axes.barh(places + 0.2, shares["raw"], 0.38, color=ORANGE, label="raw data")
axes.barh(places - 0.2, shares["scaled"], 0.38, color=BLUE, label="scaled data")
axes.set(xscale="log", yticks=places, yticklabels=names)
axes.set_xlabel("share of the objective that is proved to be avoidable")
axes.legend(frameon=False)
plt.show()
