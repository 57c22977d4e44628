"""The data sets of benchmarks and tests: real ones of the folder ZEROGAP_DATA, and made ones."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import sklearn.datasets
from scipy import sparse
from sklearn.preprocessing import normalize, scale

from zerogap import datasets
from zerogap.datasets.mnist import MEAN, STD

Rows = np.ndarray | sparse.csr_matrix

CLASSIFICATION = (
    *("rcv1", "a9a", "w8a", "ijcnn1", "reuters", "covtype", "mnist", "gordon", "gravier", "skin"),
    *("ill-conditioned", "million"),
)
RAW_BINARY = ("adult-numbers", "adult-one-hot", "skin-raw", "arrhythmia-raw", "breast-cancer")
RAW_MULTICLASS = ("wine", "digits", "covtype-raw")
RAW_NUMBER = ("diabetes",)
RAW = (*RAW_BINARY, *RAW_MULTICLASS, *RAW_NUMBER)  # as they come: nothing is scaled
INTERCEPT = ("a9a-intercept", "rcv1-intercept", "elevation-intercept")  # of others, with a free one
FLOAT32 = ("covtype-float32",)  # the values of another in single precision
HUNDRED = "hundred-classes"
REGRESSION = ("elevation", "digit", "rcv1-number", "gravier-number", "ill-conditioned-number")


def load(name: str, folder: Path | None = None) -> tuple[Rows, np.ndarray]:
    """Return rows and targets: -1 and +1, or numbers of mean 0 and variance 1 for REGRESSION.

    Pixels and colours are in [0, 1]; columns of covtype and of the genes have mean 0 and variance
    1; texts have rows of norm 1; those of RAW are as they come; the rest is as LIBSVM has it.
    """
    if name in RAW:
        return load_raw(name, folder)
    if name == "million":
        return make_million()
    if name == HUNDRED:
        return make_hundred()
    if name in INTERCEPT:
        return load(name.removesuffix("-intercept"), folder)
    if name in FLOAT32:
        X, y = load(name.removesuffix("-float32"), folder)
        return X.astype(np.float32), y
    if name.startswith("ill-conditioned"):
        X, y, beta = datasets.make_ill_conditioned(20_000, 200, random_state=0)
        noise = np.random.default_rng(1).standard_normal(len(y))
        return X, scale(X @ beta + 0.5 * noise) if name in REGRESSION else y
    if name == "elevation":
        X, _ = load("covtype", folder)
        return np.ascontiguousarray(X[:, 1:]), X[:, 0]
    if name == "digit":
        data = datasets.load("mnist", folder)
        return _pixels(data), scale(data.y.astype(float))
    if name in REGRESSION:
        X, y = load(name.removesuffix("-number"), folder)
        return X, scale(y)
    data = datasets.load(name, folder)
    y = data.y.astype(float)
    if name == "covtype":
        return scale(data.X), np.where(y == 2, 1.0, -1.0)
    if name == "mnist":
        return _pixels(data), np.where(y % 2 == 0, 1.0, -1.0)
    if name in ("gordon", "gravier"):
        return data.standardise().X, y
    return data.X / 255.0 if name == "skin" else data.X, y


def load_raw(name: str, folder: Path | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Return rows as they come and targets: -1 and +1, classes from 0 on, or numbers.

    Of adult, the columns of numbers alone, or with one more for each category.  A missing value of
    arrhythmia is 0, as `datasets.load` has it.
    """
    if name in ("breast-cancer", "wine", "digits", "diabetes"):
        bunch = getattr(sklearn.datasets, f"load_{name.replace('-', '_')}")
        X, y = bunch(return_X_y=True, **({"scaled": False} if name == "diabetes" else {}))
        return np.ascontiguousarray(X), np.where(y > 0, 1.0, -1.0) if name in RAW_BINARY else y
    data = datasets.load(name.partition("-")[0], folder)
    if name == "adult-numbers":
        numbers = [k for k, column in enumerate(data.feature_names) if "=" not in column]
        return np.ascontiguousarray(data.X[:, numbers]), data.y.astype(float)
    return data.X, data.y - 1 if name in RAW_MULTICLASS else data.y.astype(float)


def _pixels(data: datasets.Dataset) -> np.ndarray:
    """Undo the normalisation, so that what is black is zero again."""
    return np.round(255.0 * (data.X.astype(float) * STD + MEAN)) / 255.0


def make_hundred() -> tuple[np.ndarray, np.ndarray]:
    """Return 20 000 rows of 512 features, as networks make them, and one of 100 classes each.

    Rows have length one, and a spectrum that falls as 1 / sqrt(j).
    """
    n, d, classes = 20_000, 512, 100
    rng = np.random.default_rng(0)
    y = rng.integers(classes, size=n)
    centres = rng.standard_normal((classes, d))
    X = (centres[y] + 2.0 * rng.standard_normal((n, d))) / np.sqrt(1.0 + np.arange(d))
    return normalize(X), y


def make_million() -> tuple[sparse.csr_matrix, np.ndarray]:
    """Return 10^6 rows of norm 1 with 10 words of 10^5, the k-th drawn in proportion to 1 / k."""
    n, d, words = 1_000_000, 100_000, 10
    rng = np.random.default_rng(0)
    drawn = np.exp(np.log(d) * rng.random((n, words), dtype=np.float32)).astype(np.int32) - 1
    drawn = np.sort(np.minimum(drawn, d - 1), axis=1).ravel()
    starts = np.arange(0, len(drawn) + 1, words, dtype=np.int32)
    X = sparse.csr_matrix((np.ones(len(drawn)), drawn, starts), shape=(n, d))
    X.sum_duplicates()
    documents = np.bincount(X.indices, minlength=d)
    X.data *= np.log1p(n / documents[X.indices])
    normalize(X, copy=False)
    scores = X @ rng.standard_normal(d)
    return X, np.where(scores + 0.5 * rng.standard_normal(n) > 0, 1.0, -1.0)
