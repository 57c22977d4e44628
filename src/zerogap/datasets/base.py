"""What a data set is: its arrays, and what is known about it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from zerogap.datasets.files import DataFile, Folder, read

__all__ = ["Dataset", "Info"]


@dataclass(frozen=True)
class Info:
    """What is known about a data set without reading it.

    Attributes
    ----------
    name : str
        Name for `load`.
    n_samples, n_test, n_features, n_classes : int
        Rows for training, rows of the set's own test part (0: it has none), columns, classes.
    description, licence, citation : str
        What it is, how it may be used, and whom to cite.
    notes : str
        How it was cleaned and encoded, and what would leak from training to test rows.
    files : tuple of DataFile
        Its files; empty for simulated data.
    read : callable
        What `load` calls.
    """

    name: str
    n_samples: int
    n_features: int
    description: str
    licence: str
    citation: str
    read: Callable[[Info, Folder], Dataset] = field(repr=False, compare=False)
    n_test: int = 0
    n_classes: int = 2
    notes: str = ""
    files: tuple[DataFile, ...] = ()

    def contents(self, folder: Folder = None) -> list[bytes]:
        """Return the content of each file, checked and unpacked; see `load` for the folder.

        Parameters
        ----------
        folder : path, optional
            Where the files are.

        Returns
        -------
        list of bytes
            In the order of `files`.
        """
        return [read(file, folder) for file in self.files]


@dataclass(frozen=True, repr=False, eq=False)
class Dataset:
    """Rows and labels, and what is known about them.

    Attributes
    ----------
    info : Info
        What is known; `name`, `description`, `licence`, `citation` and `notes` are taken from it.
    X, y : array or CSR matrix, array
        Rows for training and their labels: -1 and +1 in a set with two classes.
    X_test, y_test : the same, or None
        The test part, where the set has one of its own or `split` made one.
    groups, groups_test : array of int, or None
        Rows with the same number are versions of one thing (one picture, one colour) and must
        stay on one side of any split.
    feature_names, target_names : tuple of str, or None
        Names of the columns, and of the labels in increasing order.

    Examples
    --------
    >>> from zerogap.datasets import load
    >>> data = load("two-gaussians").split(test_size=0.2).standardise()
    >>> data
    <Dataset two-gaussians: 800 x 2, 2 classes, 200 test rows>
    >>> bool(abs(data.X.mean()) < 1e-12), data.y_test.shape
    (True, (200,))
    """

    info: Info
    X: Any
    y: np.ndarray
    X_test: Any = None
    y_test: np.ndarray | None = None
    groups: np.ndarray | None = None
    groups_test: np.ndarray | None = None
    feature_names: tuple[str, ...] | None = None
    target_names: tuple[str, ...] | None = None

    @property
    def name(self) -> str:
        """Name of the set."""
        return self.info.name

    @property
    def description(self) -> str:
        """What the set is."""
        return self.info.description

    @property
    def licence(self) -> str:
        """How the set may be used."""
        return self.info.licence

    @property
    def citation(self) -> str:
        """Whom to cite."""
        return self.info.citation

    @property
    def notes(self) -> str:
        """How the set was cleaned and encoded, and what would leak."""
        return self.info.notes

    def __repr__(self) -> str:
        rows, columns = self.X.shape
        test = "" if self.y_test is None else f", {len(self.y_test)} test rows"
        return f"<Dataset {self.name}: {rows} x {columns}, {self.info.n_classes} classes{test}>"

    def split(self, test_size: float = 0.25, random_state: int = 0) -> Dataset:
        """Return the set with a test part: its own, or random rows where it has none.

        The share of every class is kept; where there are groups, no group is on both sides.

        Parameters
        ----------
        test_size : float
            Share of the rows (of the groups, where there are some) for the test.
        random_state : int
            Seed: the same seed gives the same rows.

        Returns
        -------
        Dataset
            With `X_test` and `y_test`.
        """
        if self.X_test is not None:
            return self
        from sklearn.model_selection import GroupShuffleSplit, StratifiedShuffleSplit

        kind = StratifiedShuffleSplit if self.groups is None else GroupShuffleSplit
        splitter = kind(1, test_size=test_size, random_state=random_state)
        train, test = next(splitter.split(self.X, self.y, self.groups))
        groups = (None, None) if self.groups is None else (self.groups[train], self.groups[test])
        return replace(
            self,
            X=self.X[train],
            y=self.y[train],
            X_test=self.X[test],
            y_test=self.y[test],
            groups=groups[0],
            groups_test=groups[1],
        )

    def standardise(self) -> Dataset:
        """Return the set with columns of mean 0 and variance 1, measured on the training rows.

        The test rows are shifted and scaled by the same numbers.  Sparse columns are scaled but
        not shifted, so that they stay sparse.

        Returns
        -------
        Dataset
            With the test part scaled in the same way.
        """
        from scipy.sparse import issparse
        from sklearn.preprocessing import StandardScaler

        scaler = StandardScaler(with_mean=not issparse(self.X)).fit(self.X)
        test = None if self.X_test is None else scaler.transform(self.X_test)
        return replace(self, X=scaler.transform(self.X), X_test=test)
