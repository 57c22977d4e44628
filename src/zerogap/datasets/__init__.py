"""Data sets: simulated ones, and real ones from files that you have or that are downloaded.

>>> from zerogap import datasets
>>> data = datasets.load("simulated")
>>> data.X.shape, data.target_names
((1000, 10), ('-1', '+1'))
>>> datasets.info("adult").licence
'CC BY 4.0'
"""

from __future__ import annotations

import difflib

from zerogap.datasets import generators, genomic, mnist, pictures, tables, texts
from zerogap.datasets.base import Dataset, Info
from zerogap.datasets.files import DataFile, Folder
from zerogap.datasets.generators import (
    Points,
    Simulated,
    make_checkerboard,
    make_ill_conditioned,
    make_simulated,
    make_text,
    make_two_discs,
    make_two_gaussians,
)
from zerogap.datasets.mnist import Mnist, load_mnist
from zerogap.datasets.raw_tables import RawTable, make_raw_table

__all__ = [
    "DataFile",
    "Dataset",
    "Info",
    "Mnist",
    "Points",
    "RawTable",
    "Simulated",
    "info",
    "load",
    "load_mnist",
    "make_checkerboard",
    "make_ill_conditioned",
    "make_raw_table",
    "make_simulated",
    "make_text",
    "make_two_discs",
    "make_two_gaussians",
    "names",
]

_MODULES = (mnist, tables, texts, pictures, genomic, generators)
_SETS = {known.name: known for module in _MODULES for known in module.SETS}


def names() -> list[str]:
    """Return the names of all data sets: the real ones first, then the simulated ones.

    Returns
    -------
    list of str
        Names for `load` and `info`.

    Examples
    --------
    >>> "mnist" in names(), names()[-1]
    (True, 'ill-conditioned')
    """
    return list(_SETS)


def info(name: str) -> Info:
    """Return what is known about a data set; nothing is read or downloaded.

    Parameters
    ----------
    name : str
        One of `names()`.

    Returns
    -------
    Info
        Sizes, licence, citation, files.

    Examples
    --------
    >>> about = info("skin")
    >>> about.n_samples, about.n_features, about.n_classes
    (245057, 3, 2)
    """
    if name not in _SETS:
        close = difflib.get_close_matches(name, _SETS, 1)
        hint = f"did you mean {close[0]!r}?" if close else f"known are {', '.join(_SETS)}"
        raise ValueError(f"unknown data set {name!r}: {hint}")
    return _SETS[name]


def load(name: str, folder: Folder = None) -> Dataset:
    """Load a data set, from its files or from its public source.

    Parameters
    ----------
    name : str
        One of `names()`.
    folder : path, optional
        The only folder to look in and to download into.  By default files are looked for in the
        folder that the environment variable ZEROGAP_DATA names, then in the user's cache, into
        which they are downloaded if they are in neither.  All files are checked by their sha256.

    Returns
    -------
    Dataset
        Not scaled and not shuffled unless its `notes` say so; see `Dataset.split` and
        `Dataset.standardise`.

    Examples
    --------
    >>> data = load("checkerboard")
    >>> data
    <Dataset checkerboard: 1000 x 2, 2 classes>
    """
    about = info(name)
    return about.read(about, folder)
