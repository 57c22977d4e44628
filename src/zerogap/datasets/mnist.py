"""MNIST: handwritten digits, 28 x 28 grey values, ten classes."""

from __future__ import annotations

import gzip
import hashlib
import math
import os
from pathlib import Path
from typing import NamedTuple

import numpy as np

__all__ = ["Mnist", "load_mnist", "read_idx", "split_mnist"]

SHA256 = {
    "train-images-idx3-ubyte.gz": (
        "0b367032e93c5d0cea0925647cfdb18614af8ee15f83e6f2fc2ad904a6835971"
    ),
    "train-labels-idx1-ubyte.gz": (
        "1787548bbe0bff1ec2ecdc0ef292b02df999e2d1a6002d27500982c652b17203"
    ),
    "t10k-images-idx3-ubyte.gz": (
        "1a1a05eab793c14bb050b398624a11b0ffd1a2953baed553b1b9bd079e2a20be"
    ),
    "t10k-labels-idx1-ubyte.gz": (
        "b91679a0acfe4ba0e50a2437a903084cba1f5f92592b016a25a7dfd00455798b"
    ),
}
"""The four files and their checksums."""

SIZES = {"mnist": (50_000, 10_000, 10_000), "mini-mnist": (5_000, 1_000, 1_000)}
"""Rows for training, validation and test."""

MEAN, STD = 0.1307, 0.3081  # of the grey values of the training images, scaled to [0, 1]
_SPLIT_SEED = 1234
_VALIDATION = 6  # one row out of six is set aside for validation


class Mnist(NamedTuple):
    """Digits in three parts: X float32, one image per row; y int64, the digit."""

    X_train: np.ndarray
    y_train: np.ndarray
    X_validation: np.ndarray
    y_validation: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray


def load_mnist(name: str = "mnist", folder: str | os.PathLike[str] | None = None) -> Mnist:
    """Load MNIST from its four files, normalised and split with a fixed seed.

    Pixels are scaled to [0, 1], then shifted and scaled by the mean 0.1307 and the standard
    deviation 0.3081 of the training images.

    Parameters
    ----------
    name : "mnist" or "mini-mnist"
        50000 + 10000 + 10000 rows for training, validation and test, or 5000 + 1000 + 1000 of them.
    folder : path, optional
        Folder of the four files ``{train,t10k}-{images-idx3,labels-idx1}-ubyte.gz``; by default
        the folder ``mnist`` in the folder that the environment variable ZEROGAP_DATA names.

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
    x, y, x_test, y_test = (read_idx(_unzip(_find(file, folder)), file) for file in SHA256)
    return split_mnist(x, y, x_test, y_test, SIZES[name])


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


def _part(images: np.ndarray, labels: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, ...]:
    X = images[rows].reshape(len(rows), -1).astype(np.float32)
    X /= 255.0
    X -= MEAN
    X /= STD
    return X, labels[rows].astype(np.int64)


def _find(file: str, folder: str | os.PathLike[str] | None) -> Path:
    """Return the path of a file that is there and has the right checksum."""
    data = os.environ.get("ZEROGAP_DATA")
    if folder is None and not data:
        where = "the folder mnist/ of your data folder, and set ZEROGAP_DATA to the data folder"
        raise FileNotFoundError(_missing(file, where))
    place = Path(folder) if folder is not None else Path(data or "") / "mnist"
    if not (place / file).is_file():
        hint = "" if folder is not None else " (ZEROGAP_DATA names the folder above it)"
        raise FileNotFoundError(_missing(file, f"{place}{hint}"))
    return place / file


def _missing(file: str, where: str) -> str:
    return f"the MNIST file {file} (sha256 {SHA256[file]}) is missing: put it into {where}"


def _unzip(path: Path) -> bytes:
    packed = path.read_bytes()
    found = hashlib.sha256(packed).hexdigest()
    if found != SHA256[path.name]:
        raise ValueError(
            f"{path} is damaged or another file: its sha256 is {found}, "
            f"not {SHA256[path.name]}; replace it"
        )
    return gzip.decompress(packed)
