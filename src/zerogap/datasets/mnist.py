"""MNIST: handwritten digits, 28 x 28 grey values, ten classes."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from zerogap.datasets.base import Dataset, Info
from zerogap.datasets.files import DataFile, Folder, read

__all__ = ["Mnist", "load_mnist", "read_idx", "split_mnist"]

SOURCE = "https://storage.googleapis.com/cvdf-datasets/mnist"
FILES = tuple(
    DataFile(f"mnist/{name}-ubyte.gz", sha256, size, f"{SOURCE}/{name}-ubyte.gz")
    for name, sha256, size in (
        (
            "train-images-idx3",
            "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
            9_719_438,
        ),
        (
            "train-labels-idx1",
            "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
            28_857,
        ),
        (
            "t10k-images-idx3",
            "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
            1_616_508,
        ),
        (
            "t10k-labels-idx1",
            "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
            4_517,
        ),
    )
)
"""The four files."""

SIZES = {"mnist": (50_000, 10_000, 10_000), "mini-mnist": (5_000, 1_000, 1_000)}
"""Rows for training, validation and test."""

MEAN, STD = 0.1307, 0.3081  # of the grey values of the training images, scaled to [0, 1]
DIGITS = tuple("0123456789")
_SPLIT_SEED = 1234  # of the rows that are set aside: the same in every process
_VALIDATION = 6  # one row out of six is set aside for validation


class Mnist(NamedTuple):
    """Digits in three parts: X float32, one image per row; y int64, the digit.

    Attributes
    ----------
    X_train, y_train : ndarray
        Rows for training, and their digits.
    X_validation, y_validation : ndarray
        Rows for choosing settings.
    X_test, y_test : ndarray
        Rows for the last look.
    """

    X_train: np.ndarray
    y_train: np.ndarray
    X_validation: np.ndarray
    y_validation: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray


def load_mnist(name: str = "mnist", folder: Folder = None) -> Mnist:
    """Load MNIST from its four files, normalised and split with a fixed seed.

    Pixels are scaled to [0, 1], then shifted and scaled by the mean 0.1307 and the standard
    deviation 0.3081 of the training images.

    Parameters
    ----------
    name : "mnist" or "mini-mnist"
        50000 + 10000 + 10000 rows for training, validation and test, or 5000 + 1000 + 1000 of them.
    folder : path, optional
        Folder of the four files ``{train,t10k}-{images-idx3,labels-idx1}-ubyte.gz``; by default
        as in `load`.

    Returns
    -------
    Mnist
        A named tuple (X_train, y_train, X_validation, y_validation, X_test, y_test).

    Examples
    --------
    >>> digits = load_mnist("mini-mnist")  # doctest: +SKIP
    >>> digits.X_train.shape, digits.X_validation.shape  # doctest: +SKIP
    ((5000, 784), (1000, 784))
    """
    if name not in SIZES:
        raise ValueError(f"name must be {' or '.join(map(repr, SIZES))}, got {name!r}")
    return split_mnist(*_read_files(folder), SIZES[name])


def _read_files(folder: Folder) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return images and labels, test images and labels."""
    images, labels, test_images, test_labels = (
        read_idx(read(file, folder), file.name) for file in FILES
    )
    return images, labels, test_images, test_labels


def _read_mnist(info: Info, folder: Folder) -> Dataset:
    images, labels, test_images, test_labels = _read_files(folder)
    everything = slice(None)
    parts = _part(images, labels, everything), _part(test_images, test_labels, everything)
    return Dataset(info, *parts[0], *parts[1], target_names=DIGITS)


def _read_mini_mnist(info: Info, folder: Folder) -> Dataset:
    mini = load_mnist("mini-mnist", folder)
    return Dataset(info, mini.X_train, mini.y_train, mini.X_test, mini.y_test, target_names=DIGITS)


def read_idx(content: bytes, name: str = "data") -> np.ndarray:
    """Return the array of unsigned bytes in an idx file.

    Two zero bytes, the type (8), the number of dimensions, then each dimension as a big-endian
    int32, then the values; not a byte less or more.
    """
    if len(content) < 4 or content[:3] != b"\x00\x00\x08" or content[3] == 0:
        raise ValueError(
            f"{name} is not an idx file of unsigned bytes: it begins with {content[:4].hex(' ')!r}"
        )
    start = 4 + 4 * content[3]
    if len(content) < start:
        raise ValueError(f"{name} ends within its header of {start} bytes")
    shape = tuple(int(size) for size in np.frombuffer(content[4:start], ">u4"))
    if len(content) - start != math.prod(shape):
        raise ValueError(
            f"{name} must hold {math.prod(shape)} values for its shape {shape}, "
            f"got {len(content) - start}"
        )
    return np.frombuffer(content, np.uint8, offset=start).reshape(shape)


def split_mnist(
    images: np.ndarray,
    labels: np.ndarray,
    test_images: np.ndarray,
    test_labels: np.ndarray,
    sizes: tuple[int, int, int],
) -> Mnist:
    """Return normalised parts of the given sizes; smaller parts are subsets of larger ones.

    A random sixth of the images is for validation.  All test images keep their order; fewer of
    them are drawn at random, because the second half of the file is harder than the first.
    """
    for x, y in ((images, labels), (test_images, test_labels)):
        if x.ndim != 3 or y.shape != x.shape[:1]:
            raise ValueError(f"images {x.shape} and labels {y.shape} do not belong together")
    train, validation, test = sizes
    rng = np.random.default_rng(_SPLIT_SEED)
    order, test_order = rng.permutation(len(images)), rng.permutation(len(test_images))
    aside = len(images) - len(images) // _VALIDATION
    if train > aside or validation > len(images) - aside or test > len(test_images):
        raise ValueError(
            f"sizes {sizes} are too large for {len(images)} + {len(test_images)} images"
        )
    if test == len(test_images):
        test_order = np.arange(test)
    chosen = order[:train], order[aside : aside + validation], test_order[:test]
    return Mnist(
        *_part(images, labels, chosen[0]),
        *_part(images, labels, chosen[1]),
        *_part(test_images, test_labels, chosen[2]),
    )


def _part(images: np.ndarray, labels: np.ndarray, rows: Any) -> tuple[np.ndarray, np.ndarray]:
    chosen = images[rows]
    X = chosen.reshape(len(chosen), -1).astype(np.float32)
    X /= 255.0
    X -= MEAN
    X /= STD
    return X, labels[rows].astype(np.int64)


_MNIST = Info(
    name="mnist",
    n_samples=60_000,
    n_test=10_000,
    n_features=784,
    n_classes=10,
    description="Handwritten digits, 28 x 28 grey values.",
    licence="usually given as CC BY-SA 3.0",
    citation="LeCun, Cortes & Burges, The MNIST database of handwritten digits",
    notes="Grey values are scaled to [0, 1], then shifted by 0.1307 and divided by 0.3081, mean "
    "and standard deviation of the training images. Writers of training and test digits differ.",
    files=FILES,
    read=_read_mnist,
)

SETS = (
    _MNIST,
    replace(
        _MNIST,
        name="mini-mnist",
        n_samples=5_000,
        n_test=1_000,
        notes=f"{_MNIST.notes} 5000 + 1000 random rows, the same as of load_mnist('mini-mnist').",
        read=_read_mini_mnist,
    ),
)
"""The data sets of this module."""
