"""Sparse data in svmlight, npz and MATLAB files: a9a, w8a, ijcnn1, reuters, rcv1, newsgroups."""

from __future__ import annotations

import io
from typing import Any

import numpy as np

from zerogap.datasets.base import Dataset, Info
from zerogap.datasets.files import DataFile, Folder

RAW = "https://raw.githubusercontent.com"
LIBSVM = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/binary"
TICK = f"{RAW}/X-DataInitiative/tick-datasets/9d959b6e53e17145e93e9849ff1f9f6d2de8ae51/binary"
SKFEATURE = f"{RAW}/jundongl/scikit-feature/48cffad4e88ff4b9d2f1c7baffb314d1b3303792/skfeature/data"


def _read_svmlight(info: Info, folder: Folder) -> Dataset:
    from zerogap.readers.files import Stream, default_limit
    from zerogap.readers.svmlight import read_svmlight

    parts: list[tuple[Any, np.ndarray]] = []
    for file, content in zip(info.files, info.contents(folder), strict=True):
        stream = Stream(io.BufferedReader(io.BytesIO(content)), file.name, default_limit())
        X, y = read_svmlight(stream, info.n_features, zero_based=False, labelled=True)
        parts.append((X, np.asarray(y, dtype=np.int64)))
    X, y = parts[0]
    X_test, y_test = parts[1] if info.n_test else (None, None)
    groups = None if info.n_test else _equal_rows(X)
    return Dataset(info, X, y, X_test, y_test, groups, target_names=("-1", "+1"))


def _read_rcv1(info: Info, folder: Folder) -> Dataset:
    from scipy.sparse import csr_matrix

    (content,) = info.contents(folder)
    with np.load(io.BytesIO(content)) as file:
        parts = file["values_x1e6"] / 1e6, file["indices"].astype(np.int32), file["indptr"]
        X = csr_matrix(parts, shape=tuple(file["shape"]))
        y = file["y_binary"].astype(np.int64)
    return Dataset(info, X[y != 0], y[y != 0], target_names=("GCAT/MCAT", "CCAT/ECAT"))


def _read_newsgroups(info: Info, folder: Folder) -> Dataset:
    from scipy.io import loadmat
    from scipy.sparse import csr_matrix

    (content,) = info.contents(folder)
    file = loadmat(io.BytesIO(content), variable_names=("X", "Y"))
    X, y = csr_matrix(file["X"], dtype=float), np.where(file["Y"][:, 0] == 2, 1, -1)
    return Dataset(info, X, y, groups=_equal_rows(X), target_names=TOPICS[info.name])


def _equal_rows(X: Any) -> np.ndarray:
    """Return a number for each row of a CSR matrix, the same for equal rows."""
    numbers: dict[tuple[bytes, bytes], int] = {}
    ends = zip(X.indptr[:-1], X.indptr[1:], strict=True)
    rows = ((X.indices[a:b].tobytes(), X.data[a:b].tobytes()) for a, b in ends)
    return np.array([numbers.setdefault(row, len(numbers)) for row in rows])


def _newsgroups(
    name: str, shape: tuple[int, int], topics: str, remark: str, sha256: str, size: int
) -> Info:
    file = f"{name.upper()}.mat"
    return Info(
        name=name,
        n_samples=shape[0],
        n_features=shape[1],
        description=f"Words of 20 Newsgroups: {topics}.",
        licence="not stated",
        citation="Lang (1995), NewsWeeder; file of Li et al. (2018), Feature Selection",
        notes=f"y = -1 for class 1 of the file, +1 for class 2; {remark}. Sorted by class. Counts "
        "of words, not scaled. `groups` has the same number for equal rows.",
        files=(DataFile(f"newsgroups_pairs/{file}", sha256, size, f"{SKFEATURE}/{file}"),),
        read=_read_newsgroups,
    )


TOPICS = {
    "basehock": ("baseball", "hockey"),
    "pcmac": ("PC hardware", "Mac hardware"),
    "relathe": ("class 1", "class 2"),
}

SETS = (
    Info(
        name="a9a",
        n_samples=32_561,
        n_features=123,
        n_test=16_281,
        description="Adult with all attributes made 0/1 columns by Platt, LIBSVM's version.",
        licence="CC BY 4.0, as adult",
        citation="Platt (1998), Fast training of SVMs using SMO; LIBSVM data",
        notes="All values are 1, at most 14 in a row. 5528 of 16281 test rows equal a training "
        "row, and 1061 different training rows occur with both labels.",
        files=(
            DataFile(
                "a9a/a9a.gz",
                "f5d5ffd8d865ff41328e7ee043e4b020816914ff6843ff15b98905ddbedce906",
                197_533,
                f"{LIBSVM}/a9a",
            ),
            DataFile(
                "a9a/a9a.t.gz",
                "1f448a153f0320399a7e40836eb207655b0bde0f21fc941cc472193daa9f5de9",
                99_153,
                f"{LIBSVM}/a9a.t",
            ),
        ),
        read=_read_svmlight,
    ),
    Info(
        name="ijcnn1",
        n_samples=49_990,
        n_features=22,
        n_test=91_701,
        description="Misfires of an engine: the IJCNN 2001 challenge, LIBSVM's version.",
        licence="not stated",
        citation="Prokhorov (2001), IJCNN 2001 neural network competition; LIBSVM data",
        notes="One row in ten is +1. The training part joins LIBSVM's ijcnn1.tr and ijcnn1.val. No "
        "two rows are equal.",
        files=(
            DataFile(
                "ijcnn1/ijcnn1.trn.bz2",
                "7fe291672c3fefe6a7e3c51529becd23f0e985ba05ffb8d53c9c648c1e91cc19",
                1_395_175,
                f"{TICK}/ijcnn1/ijcnn1.trn.bz2",
            ),
            DataFile(
                "ijcnn1/ijcnn1.tst.bz2",
                "e7b0bbd518641980dc322746c6bc59d019d3153934e6258e48f9d8cfae2c4bb8",
                2_597_597,
                f"{TICK}/ijcnn1/ijcnn1.tst.bz2",
            ),
        ),
        read=_read_svmlight,
    ),
    Info(
        name="w8a",
        n_samples=49_749,
        n_features=300,
        description="Web pages by 300 of their words, LIBSVM's version.",
        licence="not stated",
        citation="Platt (1998), Fast training of SVMs using SMO; LIBSVM data",
        notes="One row in 34 is +1, and they are sorted by class. All values are 1. Only 34704 of "
        "49749 rows differ: `groups` has the same number for equal rows, and split() keeps them on "
        "one side. The test part of LIBSVM's w8a is not included.",
        files=(
            DataFile(
                "w8a/w8a.gz",
                "b464b4f6ce6a5d9e181ffc793e19a04751036273722312398ef7673705014902",
                466_686,
                f"{RAW}/unc-optimization/AccSPD/d2f1f2c961e3401032649544445bb24ab63ab1c5/data/w8a",
            ),
        ),
        read=_read_svmlight,
    ),
    Info(
        name="reuters",
        n_samples=7_770,
        n_features=8_315,
        n_test=3_299,
        description="Reuters-21578: news about money and foreign exchange against the rest.",
        licence="free for research",
        citation="Lewis (1997), Reuters-21578; Bordes et al. (2005), Fast kernel classifiers",
        notes="One row in 14 is +1. Weighted words, rows of norm 1. 31 test rows hold the very "
        "words of a training row.",
        files=(
            DataFile(
                "reuters_moneyfx/reuters.trn.bz2",
                "caacd2baf041b15b51ab65c0ec2ac834a439a561fb6708427c1c002c10ac7215",
                3_107_267,
                f"{TICK}/reuters/reuters.trn.bz2",
            ),
            DataFile(
                "reuters_moneyfx/reuters.tst.bz2",
                "6e267dcb1f83c68bcb1c3f30d7a70dd9fe059e1da39b9c191456ff827507539f",
                763_856,
                f"{TICK}/reuters/reuters.tst.bz2",
            ),
        ),
        read=_read_svmlight,
    ),
    Info(
        name="rcv1",
        n_samples=23_749,
        n_features=47_236,
        description="Reuters news: companies and economics against government and markets.",
        licence="research use",
        citation="Lewis, Yang, Rose & Li (2004), RCV1, JMLR 5",
        notes="y = +1 topics CCAT or ECAT only, -1 GCAT or MCAT only; 3864 documents of both sides "
        "are left out. Five topic subsets of RCV1-v2 with equal documents merged, NOT LIBSVM's "
        "rcv1_train.binary: do not compare with its published optima. tf-idf rows of norm 1.",
        files=(
            DataFile(
                "rcv1_subsets/rcv1_subsets.npz",
                "398632bda00dcde0ca00fc440dd1921bd2747cf494a21e0e45c6e9299bb8d59a",
                9_721_183,
            ),
        ),
        read=_read_rcv1,
    ),
    _newsgroups(
        "basehock",
        (1_993, 4_862),
        "baseball against hockey",
        "their sizes tell the topics, and 3 rows are repeated",
        "e0452e0f3c0fefdc5cb6352165e4ba4a25c3a2a7b5a5b4d44e103742d6317aa0",
        279_059,
    ),
    _newsgroups(
        "pcmac",
        (1_943, 3_289),
        "hardware of PC against Mac",
        "their sizes tell the topics",
        "9999dfccf97ab88f87127dd3457da436acb75cda9f0af4750e7cae5fe1a31b25",
        191_131,
    ),
    _newsgroups(
        "relathe",
        (1_427, 4_322),
        "religion against atheism",
        "which is which topic is not stated, and 2 rows are repeated",
        "1091fe26c721aa69ddc5ce3ebcef54e03565809cae07e1769cef45ad23ab28d0",
        226_918,
    ),
)
"""The data sets of this module."""
