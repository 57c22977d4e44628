"""Genes: few patients, thousands of columns."""

from __future__ import annotations

import io
from typing import Any

import numpy as np

from zerogap.datasets.base import Dataset, Info
from zerogap.datasets.files import DataFile, Folder

VERT = (184, 4_654)
RELAPSE = ("no relapse", "relapse")


def _read_npz(info: Info, folder: Folder) -> Dataset:
    (content,) = info.contents(folder)
    with np.load(io.BytesIO(content)) as file:
        return Dataset(
            info,
            file["X"].astype(float),
            file["y"].astype(np.int64),
            feature_names=tuple(map(str, file["feature_names"])),
            target_names=tuple(map(str, file["label_names"])),
        )


def _read_vert(info: Info, folder: Folder) -> Dataset:
    genes, labels = (content.decode("ascii") for content in info.contents(folder))
    rows = [line.split("\t") for line in genes.splitlines()]
    if {len(row) - 1 for row in rows} != {VERT[0]} or len(rows) != VERT[1]:
        raise ValueError(
            f"{info.files[0].name} is damaged or another file: it must hold {VERT[1]} lines with "
            f"the name of a gene and {VERT[0]} numbers each, separated by tabs"
        )
    X = np.array([row[1:] for row in rows], dtype=float).T.copy()
    names = tuple(row[0] for row in rows)
    y = np.array(labels.split(), dtype=np.int64)
    return Dataset(info, X, y, feature_names=names, target_names=RELAPSE)


def _read_vert_partial(info: Info, folder: Folder) -> Dataset:
    (content,) = info.contents(folder)
    with np.load(io.BytesIO(content)) as file:
        return Dataset(
            info,
            file["X_train_sel_x100"] / 100.0,
            file["y_train"].astype(np.int64),
            feature_names=tuple(map(str, file["feature_names"][file["sel_index"]])),
            target_names=RELAPSE,
        )


def _npz(shape: tuple[int, int], sha256: str, size: int, **about: Any) -> Info:
    return Info(
        n_samples=shape[0],
        n_features=shape[1],
        licence="MIT (the collection)",
        files=(DataFile(f"genomic/{about['name']}.npz", sha256, size),),
        read=_read_npz,
        **about,
    )


SETS = (
    _npz(
        (168, 2_905),
        "9036377e8b380bd479cf23d90cd32a06ea86342e23fff3b1d48a93a344a06a1f",
        937_600,
        name="gravier",
        description="Small breast tumours: metastasis in 5 years or not, from DNA copy numbers.",
        citation="Gravier et al. (2010), Genes Chromosomes Cancer 49; ramhiser/datamicroarray",
        notes="y = +1 poor, an early metastasis (57), -1 good (111). The nearest complete "
        "replacement for vert: the same question, rows and columns of the same order; copy "
        "numbers, not expression. Not scaled.",
    ),
    _npz(
        (181, 12_533),
        "36218d83aefb60598424fa58e2f5a4c33a202b9e56cccd88f762ef51988f7959",
        5_186_710,
        name="gordon",
        description="Two kinds of lung cancer from the expression of genes.",
        citation="Gordon et al. (2002), Cancer Research 62; ramhiser/datamicroarray",
        notes="y = +1 mesothelioma (31), -1 adenocarcinoma (150). Not scaled: use standardise().",
    ),
    _npz(
        (72, 7_129),
        "27d66364290afed6ce4e4da3e0c31e26f7ba6c8612570fb61851db3f13ce408c",
        1_086_280,
        name="golub",
        description="Two kinds of leukaemia from the expression of genes.",
        citation="Golub et al. (1999), Science 286; ramhiser/datamicroarray",
        notes="y = +1 AML (25), -1 ALL (47). Raw intensities, some negative: usually raised to a "
        "floor, logarithms taken, then standardised. Not done here.",
    ),
    _npz(
        (62, 2_000),
        "5493b56d635cdcc84b350c1c870a4b2768efccd7faeac84fd83347ba3b651dc7",
        375_117,
        name="alon",
        description="Tumour or normal tissue of the colon from the expression of genes.",
        citation="Alon et al. (1999), PNAS 96; ramhiser/datamicroarray",
        notes="y = +1 tumour (40), -1 normal (22); most normal samples come from patients who gave "
        "a tumour too, and the file does not say which. Raw intensities, all positive: usually "
        "logarithms are taken, then standardised. Not done here.",
    ),
    Info(
        name="vert",
        n_samples=VERT[0],
        n_features=VERT[1],
        description="Breast cancer: relapse within 5 years or not, from the expression of genes.",
        licence="not stated; from a course of J.-P. Vert",
        citation="J.-P. Vert, course data; the sizes fit Wang et al. (2005), Lancet 365 (GSE2034)",
        notes="y = +1 relapse (66), -1 none (118). The genes are not published as a whole: who has "
        "xtrain.txt of the course can use it; its digest is not known, so only its layout is "
        "checked. Else see gravier (complete, similar) and vert-partial. Not scaled.",
        files=(
            DataFile("genomic/xtrain.txt", "", 5_182_112),
            DataFile(
                "genomic/ytrain.txt",
                "e9f1abd2e1647645fe97b3f0a9fc4bed58f6f2115bbb2765ddea250b8f7edc04",
                486,
                "https://raw.githubusercontent.com/salelkafrawy/breast_cancer_relapse/"
                "b2df6b261294b0fcea02e6672f8ef26f77f3d004/ytrain.txt",
            ),
        ),
        read=_read_vert,
    ),
    Info(
        name="vert-partial",
        n_samples=184,
        n_features=184,
        description="The part of vert that is public: 184 of its 4654 genes.",
        licence="not stated; GitHub salelkafrawy/breast_cancer_relapse",
        citation="As vert",
        notes="y = +1 relapse (66), -1 none (118). LEAKS: the 184 genes were chosen by a lasso "
        "that saw all labels, so every score on these data is too good. For the optimisation "
        "only.",
        files=(
            DataFile(
                "genomic/vert_breast_partial.npz",
                "734c17a6b08e10ad563ed75da9be92e03de6ab7c71f05e99c6b76597a6685f8a",
                714_401,
            ),
        ),
        read=_read_vert_partial,
    ),
)
"""The data sets of this module."""
