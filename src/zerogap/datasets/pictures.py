"""Pictures: white blood cells, and faces."""

from __future__ import annotations

import io
import re
from contextlib import closing
from typing import Any

import numpy as np

from zerogap.datasets.base import Dataset, Info
from zerogap.datasets.files import Bar, DataFile, Folder, cache_folder, find, make_folder

CELLS = ("lymphocyte", "neutrophil")


def _read_bloodcells(info: Info, folder: Folder) -> Dataset:
    (content,) = info.contents(folder)
    with np.load(io.BytesIO(content)) as file:
        X, y, group, part = _grey(file["X"]), file["y"], file["group"], file["split"]
    return _cells(info, *((X[part == k], y[part == k], group[part == k]) for k in (0, 1)))


def _read_bloodcells_images(info: Info, folder: Folder) -> Dataset:
    info.contents(folder)  # checked, and now in their place
    simple = 54  # pictures of TEST_SIMPLE in the second archive
    train = _crop("TRAIN", info.files[0], folder, info.n_samples)
    return _cells(info, train, _crop("TEST", info.files[1], folder, info.n_test + simple))


def _crop(part: str, file: DataFile, folder: Folder, total: int) -> tuple[Any, ...]:
    """Return crops, labels and numbers of source pictures of a part."""
    from zerogap.transforms import crop_archive

    path = find(file, folder)
    assert path is not None
    cache = make_folder(cache_folder() / "bloodcells" / f"{part}_crops.npz")
    with closing(Bar(f"cropping {file.name}", total)) as bar:
        names, images = crop_archive(path, cache=cache, progress=lambda done: bar.update(1))
    # names are TRAIN/LYMPHOCYTE/_<source picture>_<random number>.jpeg
    found = [re.fullmatch(rf"{part}/(\w+)/_(\d+)_\d+\.jpeg", name) for name in names]
    kinds, sources = zip(*(match.groups() for match in found if match), strict=True)
    y = np.where(np.array(kinds) == CELLS[1].upper(), 1, -1)
    return _grey(images[[bool(match) for match in found]]), y, np.array(sources, dtype=np.int64)


def _cells(info: Info, train: tuple[Any, ...], test: tuple[Any, ...]) -> Dataset:
    """Return the data set of two parts of rows, labels and numbers of source pictures.

    The numbers begin with 0 in each part and class: below they are made different.
    """
    (X, y, k), (X_test, y_test, k_test) = train, test
    groups = k.astype(np.int64) + 1000 * (y > 0)
    groups_test = k_test.astype(np.int64) + 1000 * (y_test > 0) + 2000
    return Dataset(
        info,
        X,
        y.astype(np.int64),
        X_test,
        y_test.astype(np.int64),
        groups,
        groups_test,
        target_names=CELLS,
    )


def _read_lfw(info: Info, folder: Folder) -> Dataset:
    (content,) = info.contents(folder)
    with np.load(io.BytesIO(content)) as file:
        people = tuple(str(name).replace("_", " ") for name in file["target_names"])
        return Dataset(info, _grey(file["X"]), file["y"].astype(np.int64), target_names=people)


def _read_olivetti(info: Info, folder: Folder) -> Dataset:
    from scipy.io import loadmat

    (content,) = info.contents(folder)
    columns = loadmat(io.BytesIO(content), variable_names=("faces",))["faces"]
    upright = columns.T.reshape(400, 64, 64).transpose(0, 2, 1)
    people = tuple(f"person {k}" for k in range(40))
    return Dataset(info, _grey(upright), np.repeat(np.arange(40), 10), target_names=people)


def _grey(images: np.ndarray) -> np.ndarray:
    """Return a row of grey values in [0, 1] per picture."""
    X = images.reshape(len(images), -1).astype(np.float32)
    X /= 255.0
    return X


_KAGGLE = (
    "Mooney (2018), Blood Cell Images, Kaggle; Cheng (2018), BCCD, GitHub Shenggan/BCCD_Dataset"
)
_SOURCES = (
    "The pictures were made by rotating and cutting 186 photographs for training (27 of "
    "lymphocytes) and 54 for test. `groups` is the number in a picture's file name. It is often "
    "taken for that of its photograph, but the picture most like another one has the same number "
    "no more often than by chance: a split by `groups` does not keep photographs apart. The "
    "folder TEST_SIMPLE is left out: it holds the photographs behind TEST."
)

SETS = (
    Info(
        name="bloodcells",
        n_samples=4_982,
        n_test=1_244,
        n_features=1_600,
        description="White blood cells, lymphocytes against neutrophils, 40 x 40 grey values.",
        licence="MIT (BCCD)",
        citation=_KAGGLE,
        notes="y = +1 neutrophil. Grey values in [0, 1] of a window of 120 x 120 pixels around "
        f"the nucleus, means of 3 x 3; a few windows miss the cell. {_SOURCES}",
        files=(
            DataFile(
                "bloodcells/crops_gray_40x40.npz",
                "7645e3d94e2f492cc315f931ed06f810a8ac5cadc28d1cdc1253e6aa4b85cd95",
                7_533_789,
            ),
        ),
        read=_read_bloodcells,
    ),
    Info(
        name="bloodcells-images",
        n_samples=4_982,
        n_test=1_244,
        n_features=14_400,
        description="The same cells, 120 x 120 grey values in negative, cut out of the pictures.",
        licence="MIT (BCCD)",
        citation=_KAGGLE,
        notes="y = +1 neutrophil. Made by zerogap.transforms.crop_archive at the first use and "
        f"kept in the user's cache; grey values in [0, 1]. Needs zerogap[lab]. {_SOURCES}",
        files=(
            DataFile(
                "bloodcells/TRAIN_lymphocyte_neutrophil.tar.xz",
                "17540f0a9faca771f9ff27e589363d997493cc0f58bee5b2adfbe46ae67629bd",
                36_021_916,
            ),
            DataFile(
                "bloodcells/TEST_lymphocyte_neutrophil.tar.xz",
                "023397d8726b508e0c7ad0fdd7490b6eb9be3a3f9aea9c7bafcd7f3f3a907a41",
                9_695_088,
            ),
        ),
        read=_read_bloodcells_images,
    ),
    Info(
        name="lfw",
        n_samples=1_288,
        n_features=4_096,
        n_classes=7,
        description="Faces of 7 people with 70 or more pictures each, 64 x 64 grey values.",
        licence="research use; pictures of real persons",
        citation="Huang et al. (2007), Labeled Faces in the Wild; Sanderson & Lovell (2009)",
        notes="The 1288 pictures of scikit-learn's fetch_lfw_people(min_faces_per_person=70), cut "
        "otherwise. Grey values in [0, 1]. No two pictures are equal.",
        files=(
            DataFile(
                "faces/lfwcrop_grey_min70.npz",
                "2d2d90dc8613d00fba45e90f9851012635d270f14c65e677c7e9dbdcf46684b3",
                4_591_724,
            ),
        ),
        read=_read_lfw,
    ),
    Info(
        name="olivetti",
        n_samples=400,
        n_features=4_096,
        n_classes=40,
        description="Faces of 40 people, 10 pictures of each, 64 x 64 grey values.",
        licence="not stated; AT&T Laboratories Cambridge",
        citation="Samaria & Harter (1994), Parameterisation of a stochastic model for faces",
        notes="Sorted by person. Grey values in [0, 1].",
        files=(
            DataFile(
                "faces/olivettifaces.mat",
                "b1988d02c72fe5b8ee82b5ef3bb7982eafc74f1e1ff0ae0ade35061ad0af534d",
                1_432_511,
                "https://raw.githubusercontent.com/sjgershm/DBM/"
                "a30d9abb523aab874a299b8b1aa21e7df2023f60/olivettifaces.mat",
            ),
        ),
        read=_read_olivetti,
    ),
)
"""The data sets of this module."""
