"""The real data sets of benchmarks and tests, from the folder named by ZEROGAP_DATA."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
from scipy import sparse
from sklearn.datasets import load_svmlight_file


def load(name: str, folder: Path) -> tuple[object, np.ndarray]:
    """Return rows and targets -1 and +1."""
    if name == "a9a":
        return load_svmlight_file(str(folder / "a9a/a9a.gz"), n_features=123)
    if name == "ijcnn1":
        return load_svmlight_file(str(folder / "ijcnn1/ijcnn1.trn.bz2"))
    if name == "rcv1":
        with np.load(folder / "rcv1_subsets/rcv1_subsets.npz") as file:
            values = file["values_x1e6"] / 1e6
            indices, indptr = file["indices"].astype(np.int32), file["indptr"]
            X = sparse.csr_matrix((values, indices, indptr), shape=tuple(file["shape"]))
            y = file["y_binary"].astype(float)
        return X[y != 0], y[y != 0]
    if name == "skin":
        with gzip.open(folder / "skin/Skin_NonSkin.txt.gz") as file:
            table = np.loadtxt(file)
        return table[:, :3] / 255.0, np.where(table[:, 3] == 1, 1.0, -1.0)
    raise ValueError(f"unknown data set {name!r}")
