"""Tables of the UCI repository: adult, arrhythmia, skin, covtype."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from zerogap.datasets.base import Dataset, Info
from zerogap.datasets.files import DataFile, Folder

UCI = "https://archive.ics.uci.edu/static/public"
CC_BY = "CC BY 4.0"

NUMBERS = (
    "age",
    "fnlwgt",
    "education-num",
    "capital-gain",
    "capital-loss",
    "hours-per-week",
)
# The values of the other attributes, as adult.names lists them.
CATEGORIES = {
    "workclass": "Private Self-emp-not-inc Self-emp-inc Federal-gov Local-gov State-gov "
    "Without-pay Never-worked ?",
    "education": "Bachelors Some-college 11th HS-grad Prof-school Assoc-acdm Assoc-voc 9th 7th-8th "
    "12th Masters 1st-4th 10th Doctorate 5th-6th Preschool",
    "marital-status": "Married-civ-spouse Divorced Never-married Separated Widowed "
    "Married-spouse-absent Married-AF-spouse",
    "occupation": "Tech-support Craft-repair Other-service Sales Exec-managerial Prof-specialty "
    "Handlers-cleaners Machine-op-inspct Adm-clerical Farming-fishing Transport-moving "
    "Priv-house-serv Protective-serv Armed-Forces ?",
    "relationship": "Wife Own-child Husband Not-in-family Other-relative Unmarried",
    "race": "White Asian-Pac-Islander Amer-Indian-Eskimo Other Black",
    "sex": "Female Male",
    "native-country": "United-States Cambodia England Puerto-Rico Canada Germany "
    "Outlying-US(Guam-USVI-etc) India Japan Greece South China Cuba Iran Honduras Philippines "
    "Italy Poland Jamaica Vietnam Mexico Portugal Ireland France Dominican-Republic Laos Ecuador "
    "Taiwan Haiti Columbia Hungary Guatemala Nicaragua Scotland Thailand Yugoslavia El-Salvador "
    "Trinadad&Tobago Peru Hong Holand-Netherlands ?",
}
ATTRIBUTES = (
    "age",
    "workclass",
    "fnlwgt",
    "education",
    "education-num",
    "marital-status",
    "occupation",
    "relationship",
    "race",
    "sex",
    "capital-gain",
    "capital-loss",
    "hours-per-week",
    "native-country",
)
INCOMES = ("<=50K", ">50K")


def _read_adult(info: Info, folder: Folder) -> Dataset:
    (X, y), (X_test, y_test) = (_adult_part(part, _one_hot) for part in info.contents(folder))
    names = [
        name if name in NUMBERS else f"{name}={value}"
        for name in ATTRIBUTES
        for value in CATEGORIES.get(name, name).split()
    ]
    return Dataset(info, X, y, X_test, y_test, feature_names=tuple(names), target_names=INCOMES)


def _read_adult_codes(info: Info, folder: Folder) -> Dataset:
    (X, y), (X_test, y_test) = (_adult_part(part, _codes) for part in info.contents(folder))
    return Dataset(info, X, y, X_test, y_test, feature_names=ATTRIBUTES, target_names=INCOMES)


def _adult_part(
    content: bytes, encode: Callable[[str, tuple[str, ...]], np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    lines = content.decode("ascii").splitlines()
    rows = [line.split(", ") for line in lines if line and not line.startswith("|")]
    *columns, incomes = zip(*rows, strict=True)
    # the test file ends its labels with a dot
    y = np.where(np.char.startswith(incomes, ">"), 1, -1)
    return np.column_stack([encode(*pair) for pair in zip(ATTRIBUTES, columns, strict=True)]), y


def _one_hot(name: str, values: tuple[str, ...]) -> np.ndarray:
    """Return one 0/1 column per value of the attribute, or the numbers themselves."""
    if name in NUMBERS:
        return np.array(values, dtype=float)
    places = {value: place for place, value in enumerate(CATEGORIES[name].split())}
    return np.eye(len(places))[[places[value] for value in values]]


def _codes(name: str, values: tuple[str, ...]) -> np.ndarray:
    """Return the places of the values in alphabetical order, or the numbers themselves."""
    if name in NUMBERS:
        return np.array(values, dtype=float)
    places = {value: place for place, value in enumerate(sorted(CATEGORIES[name].split()))}
    return np.array([places[value] for value in values], dtype=float)


def _read_arrhythmia(info: Info, folder: Folder) -> Dataset:
    (content,) = info.contents(folder)
    table = np.loadtxt(io.BytesIO(content.replace(b"?", b"0")), delimiter=",")
    y = np.where(table[:, -1] == 1, 1, -1)
    return Dataset(info, table[:, :-1], y, target_names=("arrhythmia", "normal"))


def _read_skin(info: Info, folder: Folder) -> Dataset:
    (content,) = info.contents(folder)
    table = np.array(content.split(), dtype=np.int64).reshape(-1, 4)
    X, y = table[:, :3].astype(float), np.where(table[:, 3] == 1, 1, -1)
    colours = table[:, :3] @ np.array([1 << 16, 1 << 8, 1])
    groups = np.unique(colours, return_inverse=True)[1]
    return Dataset(
        info,
        X,
        y,
        groups=groups,
        feature_names=("blue", "green", "red"),
        target_names=("other", "skin"),
    )


def _read_covtype(info: Info, folder: Folder) -> Dataset:
    (content,) = info.contents(folder)
    table = np.loadtxt(io.BytesIO(content), delimiter=",", dtype=np.int64)
    names = (
        "elevation",
        "aspect",
        "slope",
        "horizontal distance to water",
        "vertical distance to water",
        "distance to roads",
        "hillshade 9am",
        "hillshade noon",
        "hillshade 3pm",
        "distance to fire points",
        *(f"wilderness area {k}" for k in range(1, 5)),
        *(f"soil type {k}" for k in range(1, 41)),
    )
    trees = (
        "spruce/fir",
        "lodgepole pine",
        "ponderosa pine",
        "cottonwood/willow",
        "aspen",
        "douglas-fir",
        "krummholz",
    )
    return Dataset(
        info, table[:, :-1].astype(float), table[:, -1], feature_names=names, target_names=trees
    )


_ADULT = Info(
    name="adult",
    n_samples=32_561,
    n_test=16_281,
    n_features=108,
    description="Does a person earn more than 50000 dollars a year? US census of 1994.",
    licence=CC_BY,
    citation="Becker & Kohavi (1996), Adult, UCI, doi:10.24432/C5XW20",
    notes="y = +1 above 50K. Categories become 0/1 columns, one per value listed in adult.names, "
    "so that train and test have the same columns; a missing value (2399 training and 1221 test "
    "rows) is a value of its own, '?'. Numbers are not scaled (fnlwgt reaches 1.5 million): use "
    "standardise(). For the 14 raw attributes as numbers load adult-codes.",
    files=(
        DataFile(
            "adult/adult.data.gz",
            "5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d",
            408_969,
            f"{UCI}/2/adult.zip",
        ),
        DataFile(
            "adult/adult.test.gz",
            "a2a9044bc167a35b2361efbabec64e89d69ce82d9790d2980119aac5fd7e9c05",
            205_254,
            f"{UCI}/2/adult.zip",
        ),
    ),
    read=_read_adult,
)

SETS = (
    _ADULT,
    replace(
        _ADULT,
        name="adult-codes",
        n_features=14,
        notes="y = +1 above 50K. The 14 attributes of the file; a category is its place in "
        "alphabetical order, with '?' for a missing value as one more category. Such numbers "
        "have no meaning of their own: a linear model does better on adult. Not scaled.",
        read=_read_adult_codes,
    ),
    Info(
        name="arrhythmia",
        n_samples=452,
        n_features=279,
        description="Normal electrocardiograms against 12 kinds of cardiac arrhythmia.",
        licence=CC_BY,
        citation="Guvenir, Acar, Demiroz & Cekin (1997), Arrhythmia, UCI, doi:10.24432/C5BS32",
        notes="y = +1 normal (class 1 of the file), -1 all other classes. A missing value (408 "
        "of them, in columns 10 to 14 of 384 rows; 376 in column 13) is 0, which needs no "
        "statistics of test rows. Not scaled, and 17 columns are constant: use standardise().",
        files=(
            DataFile(
                "arrhythmia/arrhythmia.data.gz",
                "a7f0f4ca289a4c58b5ed85a9adb793189acd38425828ce3dfbb70adb45f30169",
                96_374,
                f"{UCI}/5/arrhythmia.zip",
            ),
        ),
        read=_read_arrhythmia,
    ),
    Info(
        name="skin",
        n_samples=245_057,
        n_features=3,
        description="Colours of pixels: skin or not.",
        licence=CC_BY,
        citation="Bhatt & Dhall (2009), Skin Segmentation, UCI, doi:10.24432/C5T30C",
        notes="y = +1 skin. Sorted by class, so shuffle before streaming. Only 51433 colours "
        "differ (11 of them have both labels): `groups` numbers the colours, and split() keeps "
        "each on one side, where a random split would put most test rows into the training part. "
        "Values 0 to 255.",
        files=(
            DataFile(
                "skin/Skin_NonSkin.txt.gz",
                "e30c0a845385dcc95a45c45ed263465674a49638e98ef740afd520769c7714a4",
                459_579,
                f"{UCI}/229/skin+segmentation.zip",
            ),
        ),
        read=_read_skin,
    ),
    Info(
        name="covtype",
        n_samples=20_000,
        n_features=54,
        n_classes=7,
        description="Kind of forest from maps: the first 20000 of 581012 rows.",
        licence=CC_BY,
        citation="Blackard (1998), Covertype, UCI, doi:10.24432/C50K5N",
        notes="y = 1 to 7; the usual task with two classes is y == 2 against the rest. NOT a "
        "random sample: the first 15120 rows hold 2160 of each class. No two rows are equal. Not "
        "scaled: use standardise().",
        files=(
            DataFile(
                "covtype_20k/covtype.20k.data.gz",
                "55ff5c8510624a2fe57838017f96caf86914223f131572edd35a038f3e85e43e",
                377_010,
                "https://raw.githubusercontent.com/h2oai/h2o-3/"
                "66f1dfacf2bbfa0e865c7e33c9a37a5b95f9b735/smalldata/covtype/covtype.20k.data",
            ),
        ),
        read=_read_covtype,
    ),
)
"""The data sets of this module."""
