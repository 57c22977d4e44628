"""How far from their optimum the default solvers of popular libraries end.

Twenty tables, as they come and with scaled columns; every model has the parameters that its library
gives it.  Each fit is audited: between which shares of its own objective it is above its optimum.

    python benchmarks/defaults.py run            # appends to benchmarks/out/defaults.csv
    python benchmarks/defaults.py page           # DEFAULTS.md and its picture, from that file
"""

from __future__ import annotations

import argparse
import csv
import importlib
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from data import load
from scipy import sparse
from sklearn import datasets as tables
from sklearn.preprocessing import MaxAbsScaler, StandardScaler

import zerogap as zg

HERE = Path(__file__).parent
FIGURES = HERE / "out" / "defaults.csv"
PAGE, PICTURE = HERE / "DEFAULTS.md", HERE.parent / "docs/images/defaults.png"
ROWS = 1000  # of each table, drawn at random: audits of raw tables take seconds
NEAR = 1e-3  # of the objective: what most people would call solved
FIELDS = ("library", "model", "data", "columns", "low", "high", "warned")


def _built_in(name: str, positive: int | None = None) -> Callable[[], tuple[Any, np.ndarray]]:
    def read() -> tuple[Any, np.ndarray]:
        more = {"scaled": False} if name == "diabetes" else {}
        X, y = getattr(tables, f"load_{name}")(return_X_y=True, **more)
        y = y[:, 0] if y.ndim == 2 else y
        return X, y if positive is None else np.where(y == positive, 1, -1)

    return read


def _raw_table(seed: int, target: str) -> Callable[[], tuple[Any, np.ndarray]]:
    def read() -> tuple[Any, np.ndarray]:
        X, y, _, _ = zg.datasets.make_raw_table(1000, 12, target=target, random_state=seed)
        return X, np.where(y == np.unique(y)[1], 1, -1) if target == "binary" else y

    return read


def _simulated() -> tuple[Any, np.ndarray]:
    X, y, _ = zg.datasets.make_simulated(random_state=0)
    return X * np.geomspace(1, 1000, X.shape[1]), y.astype(int)


def _kept(name: str) -> Callable[[], tuple[Any, np.ndarray]]:
    return lambda: load(name)


LABELS: dict[str, Callable[[], tuple[Any, np.ndarray]]] = {
    "breast_cancer": _built_in("breast_cancer", 1),
    "wine": _built_in("wine", 0),
    "iris": _built_in("iris", 1),
    "digits": _built_in("digits", 8),
    "simulated": _simulated,
    "table of seed 1": _raw_table(1, "binary"),
    "table of seed 2": _raw_table(2, "binary"),
    "ill-conditioned": _kept("ill-conditioned"),
    "adult": _kept("adult-numbers"),
    "arrhythmia": _kept("arrhythmia-raw"),
    "skin": _kept("skin-raw"),
    "a9a": _kept("a9a"),
    "ijcnn1": _kept("ijcnn1"),
    "w8a": _kept("w8a"),
}
NUMBERS: dict[str, Callable[[], tuple[Any, np.ndarray]]] = {
    "diabetes": _built_in("diabetes"),
    "linnerud": _built_in("linnerud"),
    "friedman": lambda: tables.make_friedman2(1000, noise=10.0, random_state=0),
    "table of seed 3": _raw_table(3, "number"),
    "table of seed 4": _raw_table(4, "number"),
    "elevation": _kept("elevation"),
}


def _liblinear(X: Any, y: np.ndarray) -> Any:
    """Train as the program does without options, and audit the file that it writes."""
    from tempfile import TemporaryDirectory

    from liblinear.liblinearutil import save_model, train

    with TemporaryDirectory() as folder:
        path = str(Path(folder) / "model")
        save_model(path, train(y.tolist(), X, "-q"))
        return zg.audit.read_liblinear(path)


def _of(module: str, name: str, **options: Any) -> Callable[[Any, np.ndarray], Any]:
    def train(X: Any, y: np.ndarray) -> Any:
        more = {k: v(X) if callable(v) else v for k, v in options.items()}
        return getattr(importlib.import_module(module), name)(**more).fit(X, y)

    return train


SEED = {"random_state": 0}
CLASSIFIERS: dict[tuple[str, str], Callable[[Any, np.ndarray], Any]] = {
    ("scikit-learn", "LogisticRegression"): _of("sklearn.linear_model", "LogisticRegression"),
    ("scikit-learn", "LinearSVC"): _of("sklearn.svm", "LinearSVC", **SEED),
    ("scikit-learn", "SGDClassifier"): _of("sklearn.linear_model", "SGDClassifier", **SEED),
    ("scikit-learn", "RidgeClassifier"): _of("sklearn.linear_model", "RidgeClassifier"),
    ("LIBLINEAR", "train"): _liblinear,
    ("Snap ML", "LogisticRegression"): _of("snapml", "LogisticRegression"),
    ("Snap ML", "SupportVectorMachine"): _of("snapml", "SupportVectorMachine"),
    ("cyanure", "LogisticRegression"): _of(
        "cyanure.estimators", "LogisticRegression", lambda_1=lambda X: 1 / X.shape[0], verbose=False
    ),
    ("zerogap", "LinearClassifier"): lambda X, y: zg.LinearClassifier(**SEED).fit(X, y),
    ("zerogap", "LogisticRegression"): _of("zerogap.linear_model", "LogisticRegression"),
}
REGRESSORS: dict[tuple[str, str], Callable[[Any, np.ndarray], Any]] = {
    ("scikit-learn", "Ridge"): _of("sklearn.linear_model", "Ridge"),
    ("scikit-learn", "ElasticNet"): _of("sklearn.linear_model", "ElasticNet"),
    ("scikit-learn", "LinearSVR"): _of("sklearn.svm", "LinearSVR", **SEED),
    ("scikit-learn", "SGDRegressor"): _of("sklearn.linear_model", "SGDRegressor", **SEED),
    ("scikit-learn", "HuberRegressor, given its scale"): _of(
        "sklearn.linear_model", "HuberRegressor"
    ),
    ("scikit-learn", "QuantileRegressor"): _of("sklearn.linear_model", "QuantileRegressor"),
    ("Snap ML", "LinearRegression"): _of("snapml", "LinearRegression"),
    ("celer", "ElasticNet"): _of("celer", "ElasticNet", l1_ratio=0.5),
    ("zerogap", "LinearRegressor"): lambda X, y: zg.LinearRegressor(**SEED).fit(X, y),
    ("zerogap", "HuberRegressor"): _of("zerogap.linear_model", "HuberRegressor"),
}


def draw(read: Callable[[], tuple[Any, np.ndarray]]) -> tuple[Any, np.ndarray]:
    X, y = read()
    rows = np.random.default_rng(0).permutation(len(y))[:ROWS]
    X = sparse.csr_matrix(X[rows]) if sparse.issparse(X) else np.asarray(X, dtype=float)[rows]
    return X, y[rows].astype(np.int64 if set(np.unique(y)) == {-1, 1} else float)


def figures(names: list[str], done: set[tuple[str, ...]]) -> Iterator[tuple[Any, ...]]:
    """Fit and audit, one line for each model and table."""
    for known, models in ((LABELS, CLASSIFIERS), (NUMBERS, REGRESSORS)):
        for data in (d for d in known if not names or d in names):
            X, y = draw(known[data])
            scaler = MaxAbsScaler() if sparse.issparse(X) else StandardScaler()
            for columns, Z in (("raw", X), ("scaled", scaler.fit_transform(X))):
                for key, train in models.items():
                    if (*key, data, columns) not in done:
                        yield (*key, data, columns, *measure(train, Z, y))


def measure(
    train: Callable[[Any, np.ndarray], Any], X: Any, y: np.ndarray
) -> tuple[float, float, bool]:
    """Return bounds of the distance, as shares of P, and whether there was a warning."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            model = train(X, y)
        except (ValueError, TypeError):
            return 1.0, 1.0, True  # it gave up: as far as can be
        try:
            audit = zg.certify(model, X, y, effort=300)
        except ValueError as error:
            if "overflows" not in str(error):
                raise
            return 1.0, 1.0, True  # infinitely far
    warned = any("onverge" in str(w.message) for w in caught)
    return audit.at_least / audit.primal, min(1.0, audit.relative_gap), warned


def run(names: list[str]) -> None:
    FIGURES.parent.mkdir(exist_ok=True)
    done = {tuple(row[k] for k in FIELDS[:4]) for row in read()}
    with open(FIGURES, "a", newline="") as file:
        writer = csv.writer(file)
        if not done:
            writer.writerow(FIELDS)
        for line in figures(names, done):
            writer.writerow(line)
            file.flush()


def read() -> list[dict[str, str]]:
    if not FIGURES.exists():
        return []
    with open(FIGURES, newline="") as file:
        return list(csv.DictReader(file))


def page() -> None:
    """Write the page and its picture."""
    rows = read()
    draw_picture(rows)
    lines = [
        "| library | model | fits | more than 0.1 % above, raw | scaled | "
        "of these without a warning | median, raw | scaled |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for key in models_of(rows):
        own = [row for row in rows if (row["library"], row["model"]) == key]
        parts = [[r for r in own if r["columns"] == c] for c in ("raw", "scaled")]
        far = [[r for r in part if float(r["low"]) > NEAR] for part in parts]
        silent = sum(r["warned"] == "False" for part in far for r in part)
        medians = [np.median([float(r["high"]) for r in part]) for part in parts]
        lines.append(
            f"| {key[0]} | {key[1]} | {len(own)} | {len(far[0])} | {len(far[1])} | {silent} | "
            f"{_percent(medians[0])} | {_percent(medians[1])} |"
        )
    data = sorted({row["data"] for row in rows})
    text = (HERE / "defaults_page.txt").read_text()
    PAGE.write_text(
        text.replace("TABLE", "\n".join(lines))
        .replace("DATA", ", ".join(data))
        .replace("COUNT", str(len(data)))
        .replace("FITS", str(len(rows)))
    )


def _percent(share: float) -> str:
    return "100 %" if share >= 0.995 else f"{100 * share:.2g} %"


def models_of(rows: list[dict[str, str]]) -> list[tuple[str, str]]:
    """Return libraries and models in the order of the file, ours last."""
    found = dict.fromkeys((row["library"], row["model"]) for row in rows)
    return sorted(found, key=lambda key: key[0] == "zerogap")


def draw_picture(rows: list[dict[str, str]]) -> None:
    from matplotlib.figure import Figure

    keys = models_of(rows)
    figure = Figure(figsize=(9, 0.42 * len(keys) + 1.6), layout="constrained", dpi=120)
    axes = figure.add_subplot()
    colours = {"raw": "#D55E00", "scaled": "#0072B2"}
    for k, key in enumerate(keys):
        for columns, shift in (("raw", -0.17), ("scaled", 0.17)):
            own = [r for r in rows if (r["library"], r["model"]) == key and r["columns"] == columns]
            gaps = np.clip(np.sort([float(r["high"]) for r in own]), 1e-14, 1.0)
            heights = k + shift + np.linspace(-0.1, 0.1, len(gaps))
            axes.plot(gaps, heights, "o", ms=4, alpha=0.75, mew=0, color=colours[columns])
    axes.axvline(NEAR, color="#444444", lw=1)
    axes.set(
        xscale="log",
        xlim=(5e-15, 2),
        ylim=(len(keys) - 0.5, -0.5),
        xlabel="proved distance from the optimum, as a share of the objective (one dot per table)",
    )
    ticks = [1e-14, 1e-12, 1e-10, 1e-8, 1e-6, 1e-4, 1e-2, 1]
    axes.set_xticks(ticks, ["0", *(f"1e{round(np.log10(t))}" for t in ticks[1:-1]), "100 %"])
    axes.minorticks_off()
    axes.set_yticks(range(len(keys)), [f"{library}: {model}" for library, model in keys])
    axes.grid(axis="x", color="#dddddd", lw=0.6)
    axes.set_axisbelow(True)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    for columns, colour in colours.items():
        axes.plot([], [], "o", color=colour, label=f"{columns} columns")
    axes.plot([], [], color="#444444", lw=1, label="0.1 %")
    figure.legend(loc="outside upper center", ncols=3, frameon=False)
    PICTURE.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(PICTURE)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["run", "page"])
    parser.add_argument("data", nargs="*", help="names of tables; all if none is given")
    options = parser.parse_args()
    run(options.data) if options.what == "run" else page()
