"""The rows of an experiment: read, sampled, split and transformed as declared."""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from zerogap import datasets
from zerogap._params import parse
from zerogap.datasets import files
from zerogap.lab.experiment import Data
from zerogap.readers import read
from zerogap.transforms import GaussianLandmarks


@dataclass(frozen=True, eq=False)
class Loaded:
    """What a cell function is given: rows ready for use, and the folder with the data files."""

    X: Any = None
    y: Any = None
    X_test: Any = None
    y_test: Any = None
    groups: Any = None
    groups_test: Any = None
    beta: np.ndarray | None = None  # the model behind simulated rows
    folder: str | None = None


def _transforms() -> dict[str, Callable[[], Any]]:
    from sklearn.decomposition import PCA
    from sklearn.preprocessing import MaxAbsScaler, Normalizer, PolynomialFeatures, StandardScaler

    return {
        "standardise": StandardScaler,
        "max-abs": MaxAbsScaler,
        "unit-rows": Normalizer,
        "pca": PCA,
        "polynomial": PolynomialFeatures,
        "landmarks": GaussianLandmarks,
    }


def load(data: Data, seed: int, folder: str | None = None) -> Loaded:
    """Return the rows for the run with that seed; the last ones are kept at hand."""
    chosen = seed if data.seed is None else data.seed
    return _prepared(json.dumps(asdict(data), sort_keys=True), chosen, folder)


def digest(data: Data, folder: str | None = None) -> str:
    """Return what names the content: the sha256 of the files, nothing for simulated rows."""
    if Path(data.name).is_file():
        return hashlib.sha256(Path(data.name).read_bytes()).hexdigest()
    if not data.name or _generator(data.name):
        return ""
    return " ".join(file.sha256 or str(file.size) for file in datasets.info(data.name).files)


def missing(data: Data, folder: str | None = None) -> str:
    """Return why the files of a data set cannot be had, or nothing; downloads them if need be."""
    try:
        if data.name and not Path(data.name).is_file():
            for file in datasets.info(data.name).files:
                if files.find(file, folder) is None:
                    files.read(file, folder)
    except (OSError, ValueError) as error:
        return " ".join(str(error).split())
    return ""


@functools.lru_cache(maxsize=2)
def _prepared(text: str, seed: int, folder: str | None) -> Loaded:
    data = Data(**json.loads(text))
    if not data.name:
        return Loaded(folder=folder)
    rng = np.random.default_rng(seed)
    rows = (
        _generated(data, seed) if _generator(data.name) else _raw(data.name, data_key(data), folder)
    )
    rows = replace(rows, folder=folder)
    if data.positive is not None:
        y_test = None if rows.y_test is None else _one_against_rest(rows.y_test, data.positive)
        rows = replace(rows, y=_one_against_rest(rows.y, data.positive), y_test=y_test)
    if data.rows is not None:
        rows = _sampled(rows, data.rows, rng)
    if data.first:
        rows = _on_all_rows(rows, data.first, seed)
    if data.test is not None:
        rows = _split(rows, data.test, data.groups, seed)
    for transform in make_transforms(data.transforms, seed):
        X = transform.fit_transform(rows.X)
        X_test = None if rows.X_test is None else transform.transform(rows.X_test)
        rows = replace(rows, X=X, X_test=X_test)
    return rows


def data_key(data: Data) -> str:
    """Return the options of a reader as text."""
    return json.dumps(dict(data.options), sort_keys=True)


@functools.lru_cache(maxsize=1)
def _raw(name: str, options: str, folder: str | None) -> Loaded:
    if Path(name).is_file():
        table = read(name, **json.loads(options))
        return Loaded(table.X, table.y)
    found = datasets.load(name, folder)
    return Loaded(found.X, found.y, found.X_test, found.y_test, found.groups, found.groups_test)


def _generator(name: str) -> Any:
    return getattr(datasets, f"make_{name.replace('-', '_')}", None)


def _generated(data: Data, seed: int) -> Loaded:
    made = _generator(data.name)(**data.options, random_state=seed)
    return Loaded(made.X, made.y, beta=getattr(made, "beta", None))


def _one_against_rest(y: Any, positive: Any) -> np.ndarray:
    return np.where(np.asarray(y) == positive, 1.0, -1.0)


def _take(a: Any, rows: np.ndarray) -> Any:
    return None if a is None else a[rows]


def _sampled(rows: Loaded, count: int, rng: np.random.Generator) -> Loaded:
    train = _choice(len(rows.y), count, rng)
    taken = replace(rows, X=rows.X[train], y=rows.y[train], groups=_take(rows.groups, train))
    if rows.y_test is None:
        return taken
    test = _choice(len(rows.y_test), count, rng)
    return replace(
        taken,
        X_test=rows.X_test[test],
        y_test=rows.y_test[test],
        groups_test=_take(rows.groups_test, test),
    )


def _choice(n: int, count: int, rng: np.random.Generator) -> np.ndarray:
    return np.sort(rng.choice(n, min(n, count), replace=False))


def _pooled(rows: Loaded) -> Loaded:
    """Return training and test rows as one part."""
    if rows.y_test is None:
        return rows
    parts = [rows.X, rows.X_test]
    X = sparse.vstack(parts, "csr") if sparse.issparse(rows.X) else np.concatenate(parts)
    y = np.concatenate([rows.y, rows.y_test])
    groups = rows.groups
    if groups is not None:
        groups = np.concatenate([groups, rows.groups_test])
    return replace(rows, X=X, y=y, X_test=None, y_test=None, groups=groups, groups_test=None)


def _on_all_rows(rows: Loaded, transforms: tuple[str, ...], seed: int) -> Loaded:
    count, pool = len(rows.y), _pooled(rows)
    X = pool.X
    for transform in make_transforms(transforms, seed):
        X = transform.fit_transform(X)
    return replace(rows, X=X[:count], X_test=None if rows.y_test is None else X[count:])


def _split(rows: Loaded, share: float, by_groups: bool, seed: int) -> Loaded:
    from sklearn.model_selection import GroupShuffleSplit, StratifiedShuffleSplit

    pool = _pooled(rows)
    groups = pool.groups if by_groups else None
    kind = StratifiedShuffleSplit if groups is None else GroupShuffleSplit
    splitter = kind(1, test_size=share, random_state=seed)
    train, test = next(splitter.split(np.zeros(len(pool.y)), pool.y, groups))
    return replace(
        pool,
        X=pool.X[train],
        y=pool.y[train],
        X_test=pool.X[test],
        y_test=pool.y[test],
        groups=_take(pool.groups, train),
        groups_test=_take(pool.groups, test),
    )


def make_transforms(texts: tuple[str, ...], seed: int) -> list[Any]:
    """Return transforms by their texts, such as "pca:n_components=40", with that seed."""
    found = [parse(text, _transforms()) for text in texts]
    for transform in found:
        if "random_state" in transform.get_params():
            transform.set_params(random_state=seed)
    return found
