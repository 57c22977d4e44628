"""Cells of chapter S1: pictures, spectra, and solver runs with what the report's code did."""

from __future__ import annotations

import functools
import itertools
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from zerogap import datasets
from zerogap._params import parse
from zerogap.datasets import files
from zerogap.lab.cells import make_metrics, make_problem, run_solver
from zerogap.lab.data import Loaded, make_transforms
from zerogap.lab.experiment import Cell
from zerogap.lab.images import pixels
from zerogap.losses import Hinge
from zerogap.problem import Problem
from zerogap.solvers import SOLVERS, solve
from zerogap.transforms import read_images, stages

Rows = list[dict[str, Any]]
CELLS = ("lymphocyte", "neutrophil")
COMPONENTS = "pca:n_components=40:whiten=true:svd_solver=randomized"
SIDE = 120
FRAME = 60  # grey values below are frame
ANGLES, RADII, REACH = 32, 18, 40  # of the polar images that tell photographs apart; in pixels
_TINY = 1e-300  # a row of zeros takes the whole step


@dataclass(frozen=True)
class WrongStep(Hinge):
    """The hinge with dual steps that are `factor` times as long as the best one."""

    factor: float = 1.0

    def dual_step(self, a, y, z, q):
        b = a * y + self.factor * (1.0 - y * z) / max(q, _TINY)
        return y * min(1.0, max(0.0, b)) - a


def run(cell: Cell, data: Loaded) -> Rows:
    """Run the arm's solver; an arm of step "lambda d" has the mistake of the report's code."""
    if cell.arm.columns.get("step") != "lambda d":
        return run_solver(cell, data)
    problem, y_test = make_problem(cell, data)
    n, d = problem.shape
    result = solve(
        problem.with_loss(WrongStep(factor=d / n)),
        parse(cell.arm.solver, SOLVERS),
        tol=cell.tol,
        max_epochs=cell.epochs,
        record=cell.record,  # type: ignore[arg-type]
        metrics=make_metrics(cell, problem, data, y_test),
        random_state=cell.seed,
    )
    return [{"lam": problem.lam, **row} for row in result.history.rows]


def inside_margin(problem: Problem, data: Loaded, y_test: Any) -> Any:
    """Return the metric "share of training rows with y x.w < 1", which have alpha y = 1."""
    return lambda w, b: float(np.mean(problem.y * problem.scores(w) < 1.0))


def run_altered(cell: Cell, data: Loaded) -> Rows:
    """Run the arm's solver on noisy, centred, projected images scaled to one mean squared norm."""
    wanted = cell.data.columns
    X, X_test = data.X, data.X_test
    if wanted["noise"]:
        rng = np.random.default_rng(0)  # of the data, the same for all runs
        X, X_test = (A + wanted["noise"] * rng.standard_normal(A.shape, "f4") for A in (X, X_test))
    middle = X.mean(axis=0) if wanted["centred"] == "centred" else 0.0
    X, X_test = X - middle, X_test - middle
    if wanted["d"] < X.shape[1]:
        values, vectors = np.linalg.eigh(X @ X.T)
        top = vectors[:, -wanted["d"] :] / np.sqrt(values[-wanted["d"] :])
        directions = X.T @ top
        X, X_test = X @ directions, X_test @ directions
    scale = wanted["norm"] / np.sqrt(np.mean(np.sum(X.astype(np.float64) ** 2, axis=1)))
    X, X_test = (np.ascontiguousarray(scale * A, dtype=np.float32) for A in (X, X_test))
    return run_solver(cell, replace(data, X=X, X_test=X_test))


def run_split(cell: Cell, data: Loaded) -> Rows:
    """Run the arm's solver on the arm's split and features."""
    how = cell.arm.columns
    rows = data
    if how["split"] != "as given":
        train, test = _divide(data, how["split"], cell.seed)
        X, y = _pool(data)
        rows = replace(data, X=X[train], y=y[train], X_test=X[test], y_test=y[test])
    if how["features"] != "pixels":
        Z, Z_test = _components(data, how["split"], 0 if rows is data else cell.seed)
        rows = replace(rows, X=Z, X_test=Z_test)
    return run_solver(cell, rows)


def source_check(cell: Cell, data: Loaded) -> Rows:
    """Count photographs by folder and class: by the numbers in file names, and by the images."""
    rows = []
    found = photographs(data)
    parts = (("TRAIN", data.y, data.groups), ("TEST", data.y_test, data.groups_test))
    begin = 0
    for folder, y, numbers in parts:
        own, nearest = found.group[begin : begin + len(y)], found.nearest[begin : begin + len(y)]
        both = np.concatenate([data.groups, data.groups_test])[nearest]
        for kind, sign in zip(CELLS, (-1, 1), strict=True):
            of = y == sign
            rows.append(
                {
                    "folder": folder,
                    "class": kind,
                    "pictures": int(of.sum()),
                    "numbers": len(np.unique(numbers[of])),
                    "groups": len(np.unique(own[of])),
                    "typical": float(np.median(np.unique(own[of], return_counts=True)[1])),
                    "same_number": float(np.mean(both[of] == numbers[of])),
                    "same_group": float(np.mean(found.group[nearest][of] == own[of])),
                }
            )
        begin += len(y)
    return rows


class Photographs(NamedTuple):
    """The photograph that each picture, training rows first, was made of; the most similar one."""

    group: np.ndarray
    nearest: np.ndarray


@functools.lru_cache(maxsize=1)
def photographs(data: Loaded) -> Photographs:
    """Find by their content which pictures were made of the same photograph.

    The numbers in the file names do not tell: they are places in a shuffled batch, but there are as
    many of them as photographs in a folder.  Pictures are rotated and mirrored, so that polar
    images around the nucleus are compared at all angles.  Groups may join two photographs, which
    leaves a split by group honest; pieces too small to be a photograph join the most similar one.
    """
    X, y = _pool(data)
    polar = np.array([_polar(row) for row in X], dtype=np.float32)
    numbers = np.concatenate([data.groups, data.groups_test])
    part = np.arange(len(y)) >= len(data.y)
    group, nearest = np.zeros(len(y), np.int64), np.zeros(len(y), np.int64)
    for folder, sign in itertools.product((False, True), (-1, 1)):
        own = np.flatnonzero((part == folder) & (y == sign))
        likeness = _likeness(polar[own])
        found = _clusters(likeness, len(np.unique(numbers[own])))
        group[own] = found + group.max() + 1
        np.fill_diagonal(likeness, -1.0)
        nearest[own] = own[likeness.argmax(axis=1)]
    return Photographs(group, nearest)


def _polar(row: np.ndarray) -> np.ndarray:
    """Return the image in polar coordinates around its nucleus, weighted by area."""
    import cv2

    smooth = cv2.GaussianBlur(np.ascontiguousarray(row.reshape(SIDE, SIDE)), (5, 5), 0)
    darkest = np.partition(smooth.ravel(), -1500)[-1500]
    nucleus = (smooth >= darkest).astype(np.uint8)
    opened = cv2.morphologyEx(nucleus, cv2.MORPH_OPEN, np.ones((5, 5), np.uint8))
    sums = cv2.moments(opened if opened.any() else nucleus, binaryImage=True)
    centre = sums["m10"] / sums["m00"], sums["m01"] / sums["m00"]
    smooth -= np.median(smooth)  # the background, which is then what lies outside the image
    how = cv2.INTER_LINEAR | cv2.WARP_FILL_OUTLIERS | cv2.WARP_POLAR_LINEAR
    return cv2.warpPolar(smooth, (RADII, ANGLES), centre, REACH, how) * np.sqrt(
        np.arange(RADII) + 0.5
    )


def _likeness(polar: np.ndarray) -> np.ndarray:
    """Return the largest correlation of every two polar images over rotations and mirroring."""
    polar = polar - polar.mean(axis=(0, 1))
    turned = [
        np.roll(image, k, axis=1).reshape(len(polar), -1)
        for image in (polar, polar[:, ::-1])
        for k in range(ANGLES)
    ]
    _, vectors = np.linalg.eigh(sum(rows.T @ rows for rows in turned[::4]))
    main = vectors[:, -80:]
    first = turned[0] @ main
    norms = np.linalg.norm(first, axis=1, keepdims=True)
    first /= norms
    likeness = np.full((len(polar), len(polar)), -1.0, np.float32)
    for rows in turned:
        np.maximum(likeness, first @ (rows @ main / norms).T, out=likeness)
    return np.maximum(likeness, likeness.T)


def _clusters(likeness: np.ndarray, count: int) -> np.ndarray:
    """Return clusters of pictures, at most so many."""
    from scipy.cluster.hierarchy import fcluster, linkage
    from scipy.spatial.distance import squareform

    distance = np.sqrt(np.clip(2.0 - 2.0 * likeness, 0.0, None))
    np.fill_diagonal(distance, 0.0)
    tree = linkage(squareform(distance, checks=False), "average")
    label = fcluster(tree, count, "maxclust")
    large = np.bincount(label)[label] >= 0.5 * len(label) / count
    if large.any():
        likest = np.flatnonzero(large)[likeness[:, large].argmax(axis=1)]
        label = np.where(large, label, label[likest])
    return label


def _pool(data: Loaded) -> tuple[np.ndarray, np.ndarray]:
    return np.concatenate([data.X, data.X_test]), np.concatenate([data.y, data.y_test])


def _divide(data: Loaded, split: str, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the numbers of training and of test rows, a fifth of the pictures or photographs."""
    from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold

    y = np.concatenate([data.y, data.y_test])
    turn, fold = divmod(seed, 5)
    kind = StratifiedGroupKFold if split == "by photograph" else StratifiedKFold
    groups = photographs(data).group if split == "by photograph" else None
    splitter = kind(5, shuffle=True, random_state=turn)
    return list(splitter.split(np.zeros(len(y)), y, groups))[fold]


@functools.lru_cache(maxsize=64)
def _components(data: Loaded, split: str, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return 40 whitened components, fitted to the training rows."""
    if split == "as given":
        X, X_test = data.X, data.X_test
    else:
        pool, _ = _pool(data)
        X, X_test = (pool[rows] for rows in _divide(data, split, seed))
    (pca,) = make_transforms((COMPONENTS,), 0)
    return pca.fit_transform(X), pca.transform(X_test)


def time_epochs(cell: Cell, data: Loaded) -> Rows:
    """Time the updates of the arm's solver: the library's, or a plain loop in Python.

    "columns" stores the pictures as the columns of a matrix of doubles, as the report's code did.
    """
    code = cell.arm.columns["code"]
    if code == "compiled":
        return run_solver(cell, data)
    problem, _ = make_problem(cell, data)
    X = np.asfortranarray(data.X, dtype=np.float64) if code == "columns" else data.X
    method = {"sdca": _sdca_epochs, "pegasos": _pegasos_epochs}
    epochs = method[cell.arm.solver.partition(":")[0]](problem, X, cell.seed)
    seconds = 0.0
    for _ in range(int(cell.epochs)):
        began = time.process_time()
        w = next(epochs)
        seconds += time.process_time() - began
    return [
        {
            "lam": problem.lam,
            "epoch": cell.epochs,
            "primal": problem.primal(w, 0.0),
            "cpu_seconds": seconds,
        }
    ]


def _sdca_epochs(problem: Problem, X: np.ndarray, seed: int) -> Iterator[np.ndarray]:
    """SDCA-perm as in the report's algorithm 1, an interpreted step per row."""
    rng = np.random.default_rng(seed)
    n, d = X.shape
    y, alpha, w = problem.y, np.zeros(n), np.zeros(d, X.dtype)
    scale = 1.0 / (problem.lam * n)
    while True:
        for i in rng.permutation(n):
            x = X[i]
            target = alpha[i] * y[i] + (1.0 - y[i] * (x @ w)) / (problem.sqnorms[i] * scale)
            step = y[i] * min(1.0, max(0.0, target)) - alpha[i]
            alpha[i] += step
            w += X.dtype.type(step * scale) * x
        yield w


def _pegasos_epochs(problem: Problem, X: np.ndarray, seed: int) -> Iterator[np.ndarray]:
    """Mini-batch Pegasos in epochs as in the report's algorithm 3, a vectorised step per batch."""
    rng = np.random.default_rng(seed)
    n, d = X.shape
    y, w, t = problem.y, np.zeros(d, X.dtype), 0
    while True:
        for batch in np.array_split(rng.permutation(n), -(-n // 100)):
            t += 1
            rows, signs = X[batch], y[batch]
            wrong = np.where(signs * (rows @ w) < 1.0, signs, 0.0).astype(X.dtype)
            w = (1.0 - 1.0 / t) * w + (wrong @ rows) / (problem.lam * t * len(batch))
        yield w


def pictures(cell: Cell, data: Loaded) -> Rows:
    """Return examples of both classes, the steps of the crop, and crops, as images."""
    rng = np.random.default_rng(cell.seed)
    found = _examples(data.folder, 5)
    rows = []
    for kind, sign in zip(CELLS, (-1, 1), strict=True):
        for k, image in enumerate(found["TEST_SIMPLE", kind], 1):
            rows.append(_image("examples", kind, f"{kind} {k}", image))
        framed = max(found["TEST", kind], key=lambda image: int((image.max(axis=2) < FRAME).sum()))
        rows += [_image("steps", kind, name, image) for name, image in _steps(framed)]
        for row in rng.choice(np.flatnonzero(data.y == sign), 8, replace=False):
            rows.append(_image("crops", kind, f"row {row}", _as_image(data.X[row])))
    return rows


def _examples(folder: str | None, count: int) -> dict[tuple[str, str], list[np.ndarray]]:
    """Return test pictures by folder and class: photographs are in TEST_SIMPLE, copies in TEST."""
    path = files.find(datasets.info("bloodcells-images").files[1], folder)
    assert path is not None
    found: dict[tuple[str, str], list[np.ndarray]] = {}
    for name, image in read_images(path):
        part, kind, _ = name.split("/")
        kept = found.setdefault((part, kind.lower()), [])
        if len(kept) < count:
            kept.append(image)
    return found


def crop_check(cell: Cell, data: Loaded) -> Rows:
    """Return how far the window moves when the report's mean-shift filter comes before the steps.

    A row per test picture, evenly spread over the file: pixels between the two centres.
    """
    import cv2

    path = files.find(datasets.info("bloodcells-images").files[1], data.folder)
    assert path is not None
    found = [
        (name.split("/")[1].lower(), image)
        for name, image in read_images(path)
        if name.startswith("TEST/")
    ]
    rows = []
    for kind, image in found[:: max(1, len(found) // cell.arm.columns["pictures"])]:
        ours = stages(image).corner
        theirs = stages(cv2.pyrMeanShiftFiltering(image, 30, 60)).corner
        rows.append({"class": kind, "moved": float(np.hypot(*np.subtract(ours, theirs)))})
    return rows


def _steps(image: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
    steps = stages(image)
    top, left = steps.corner
    window = image.copy()
    for edge in (top, top + SIDE - 2):
        window[edge : edge + 2, left : left + SIDE] = (255, 255, 0)
    for edge in (left, left + SIDE - 2):
        window[top : top + SIDE, edge : edge + 2] = (255, 255, 0)
    yield "1 picture", image
    yield "2 blurred", steps.blurred
    yield "3 grey", steps.grey
    yield "4 frame painted over", steps.repaired
    yield "5 darkest 2 %", steps.nucleus
    yield "6 opened", steps.opened
    yield "7 window", window
    yield "8 crop, negative", steps.crop


def spectrum(cell: Cell, data: Loaded) -> Rows:
    """Return the first 1000 singular values of the centred training matrix."""
    X = data.X - data.X.mean(axis=0)
    gram = X @ X.T if len(X) <= X.shape[1] else X.T @ X
    values = np.linalg.eigvalsh(gram.astype(np.float64))[::-1].clip(min=0.0)
    share = np.cumsum(values) / values.sum()
    last = min(1000, len(values) - 1)
    wanted = np.unique(np.r_[np.geomspace(1, last, 120).astype(int), 40])
    return [
        {"component": int(k), "singular_value": float(values[k - 1] ** 0.5), "share": share[k - 1]}
        for k in wanted
    ]


def projections(cell: Cell, data: Loaded) -> Rows:
    """Return test images, what 40 components keep of them, and the first components."""
    from sklearn.decomposition import PCA

    pca = PCA(40, random_state=cell.seed).fit(data.X)
    rng = np.random.default_rng(cell.seed)
    rows = []
    for kind, sign in zip(CELLS, (-1, 1), strict=True):
        own = np.flatnonzero(data.y_test == sign)
        chosen = data.X_test[rng.choice(own, 4, replace=False)]
        kept = pca.inverse_transform(pca.transform(chosen))
        for k, (x, projected) in enumerate(zip(chosen, kept, strict=True), 1):
            rows.append(_image("projected", "test image", f"{kind} {k}", _as_image(x)))
            again = _image("projected", "on 40 components", f"{kind} {k}", _as_image(projected))
            rows.append(again)
    rows.append(_image("components", "", "mean", _as_image(pca.mean_)))
    for k, direction in enumerate(pca.components_[:7], 1):
        grey = 0.5 + 0.5 * direction / np.abs(direction).max()
        rows.append(_image("components", "", f"component {k}", _as_image(grey)))
    return rows


def _image(figure: str, strip: str, label: str, image: np.ndarray) -> dict[str, Any]:
    return {"figure": figure, "strip": strip, "label": label, **pixels(image)}


def _as_image(row: np.ndarray) -> np.ndarray:
    return np.rint(255 * np.clip(row, 0.0, 1.0)).reshape(SIDE, SIDE)
