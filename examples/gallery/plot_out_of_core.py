"""
Training from a store
=====================

Rows that do not fit into memory are read block by block. The model is the same as in memory.
"""

import matplotlib.pyplot as plt

import zerogap as zg

BLUE, ORANGE, GREEN, GREY = "#0072B2", "#D55E00", "#009E73", "#595959"  # Okabe and Ito's palette

import tempfile
from pathlib import Path

X, y, _ = zg.datasets.make_simulated(4000, random_state=0)
with tempfile.TemporaryDirectory() as folder:
    parts = ((X[k : k + 500], y[k : k + 500]) for k in range(0, 4000, 500))
    zg.write_store(Path(folder) / "store", parts, max_memory="4GB")
    store = zg.Store(Path(folder) / "store", max_memory="4GB")
    read = zg.LinearClassifier("logistic", lam=1e-3, tol=1e-8).fit(store)
memory = zg.LinearClassifier("logistic", lam=1e-3, tol=1e-8).fit(X, y)

figure, axes = plt.subplots(figsize=(4.5, 4.2), layout="constrained")
axes.plot(memory.coef_.ravel(), read.coef_.ravel(), "o", color=BLUE)
ends = [memory.coef_.min(), memory.coef_.max()]
axes.plot(ends, ends, color=GREY, linestyle=":")
axes.set(xlabel="weights, trained in memory", ylabel="weights, trained from a store")
plt.show()
