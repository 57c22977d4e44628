"""The practical: digits with gradient descent, SGD or block-coordinate Frank-Wolfe.

One command trains a linear multiclass model on MNIST, prints a line per epoch and draws the run.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from zerogap import solvers
from zerogap.datasets import Mnist, load_mnist
from zerogap.problem import Problem

LOSSES = {"svm": "multiclass-hinge", "logistic": "softmax"}
_LOOSE_GAP = 0.1  # relative gap that is explained
NAMES = {"gd": "GD", "sgd": "SGD", "bcfw": "BCFW"}
BLUE, ORANGE = "#0072B2", "#D55E00"  # from Okabe and Ito's palette

Metric = Callable[[np.ndarray, Any], float]


class UsageError(ValueError):
    """Settings that do not go together."""


class Say(Protocol):
    """Print one line, with a style where the output can show it."""

    def __call__(self, text: str, style: str = "") -> None: ...


@dataclass(frozen=True)
class Settings:
    """What the command line says; None where it says nothing."""

    dataset: str = "mnist"
    opt: str = "sgd"
    obj: str = "svm"
    init_lr: float | None = None
    fix_lr: bool = False
    batch_size: int | None = None
    epochs: int = 5
    mu: float = 1e-3
    seed: int | None = None
    xp_name: str = ""

    @property
    def name(self) -> str:
        """Name of the run, and of its picture."""
        return self.xp_name or f"{self.dataset}_{self.obj}_{self.opt}"

    def check(self) -> None:
        """Raise UsageError for what is impossible or would have no effect."""
        _require(0 < self.mu < math.inf, f"--mu must be a positive number, got {self.mu:g}")
        _require(self.epochs >= 1, f"--epochs must be at least 1, got {self.epochs}")
        _require(self.seed is None or self.seed >= 0, f"--seed must be >= 0, got {self.seed}")
        plain = Path(self.name).name == self.name and self.name not in (".", "..")
        _require(plain, f"--xp-name must be a plain file name, got {self.name!r}; use --out")
        if self.opt == "bcfw":
            for flag, given in (("--init-lr", self.init_lr is not None), ("--fix-lr", self.fix_lr)):
                _require(not given, f"--opt bcfw takes no {flag}: it has no learning rate")
            _require(
                self.obj != "logistic",
                "--opt bcfw needs --obj svm: softmax has no closed-form step",
            )
        if self.opt == "gd":
            _require(
                self.batch_size is None,
                "--opt gd takes no --batch-size: each of its steps uses all rows",
            )
            _require(
                not self.fix_lr or self.init_lr is not None,
                "--opt gd takes --fix-lr only with --init-lr, which it never changes",
            )
        if self.batch_size is not None:
            _require(self.batch_size >= 1, f"--batch-size must be >= 1, got {self.batch_size}")
        if self.init_lr is not None:
            _require(
                0 < self.init_lr <= 1 / self.mu,
                f"--init-lr must be in (0, 1 / mu = {1 / self.mu:g}], got {self.init_lr:g}",
            )

    def options(self, n: int) -> dict[str, Any]:
        """Return the solver's options for n rows; the default batch size is 256, or n if less."""
        options: dict[str, Any] = {}
        if self.opt != "gd":
            _require(
                self.batch_size is None or self.batch_size <= n,
                f"--batch-size must be at most {n}, the rows for training, got {self.batch_size}",
            )
            options["batch_size"] = self.batch_size or min(256, n)
        if self.opt == "sgd":
            options["step"] = 1e-2 if self.init_lr is None else self.init_lr
            options["schedule"] = "constant" if self.fix_lr else "sqrt"
        if self.opt == "gd" and self.init_lr is not None:
            options["step"] = self.init_lr
        return options


@dataclass(frozen=True)
class Outcome:
    """What a run came to."""

    result: Any
    test_error: float
    picture: Path


def run(settings: Settings, out: str | Path = ".", say: Say | None = None) -> Outcome:
    """Train, print a line per epoch and the summary, save the picture.

    Raises UsageError for settings that do not go together, and OSError or ValueError where data
    are missing, files cannot be written, or the run diverges.
    """
    began = time.perf_counter()
    say = say or _silent
    settings.check()
    if find_spec("matplotlib") is None:
        raise ValueError("the picture needs matplotlib: pip install 'zerogap[lab]'")
    data = load_mnist(settings.dataset)
    folder = Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    result = _train(settings, data, say)
    if result.stop_reason == "diverged":
        raise ValueError("the objective is no longer finite: try a smaller --init-lr")
    if result.history["epoch"][-1] == 0:
        raise KeyboardInterrupt  # before there was anything to show
    test_error = error_rate(data.X_test, data.y_test)(result.w, result.b)
    picture = (folder / f"{settings.name}.png").resolve()
    draw(result.history, settings).savefig(picture, dpi=150)
    seconds, total = result.history["seconds"][-1], time.perf_counter() - began
    say(f"\ncertificate  {result.certificate}")
    if result.certificate.relative_gap > _LOOSE_GAP and settings.opt != "bcfw":
        say(
            f"             so wide because {settings.opt} keeps no dual point: one is made of the "
            f"last scores.  More --epochs narrow it"
            f"{', --opt bcfw closes it' if settings.obj == 'svm' else ''}"
        )
    say(f"test error   {100 * test_error:.2f} %", "bold")
    say(f"total time   {seconds:.3f} s for updates, {total:.1f} s in all")
    say(f"picture      {picture}")
    return Outcome(result, test_error, picture)


def error_rate(X: np.ndarray, y: np.ndarray) -> Metric:
    """Return the share of rows whose largest score is not that of their class, as f(w, b)."""

    def error(w: np.ndarray, b: Any) -> float:
        z = X @ np.asarray(w, X.dtype).T + np.asarray(b, X.dtype)
        return float(np.mean(z.argmax(axis=1) != y))

    return error


def draw(history: Any, settings: Settings) -> Any:
    """Return a figure: the objective on a logarithmic axis, and the errors, against the epoch."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator, NullFormatter, NullLocator

    rows = [row for row in history.rows if row["epoch"] > 0]
    epoch = [row["epoch"] for row in rows]
    figure = Figure(figsize=(10, 4.2), layout="constrained")
    figure.suptitle(settings.name)
    left, right = figure.subplots(1, 2)
    values = [_objective(settings, row) for row in rows]
    left.plot(epoch, values, "o-", color=BLUE)
    left.set(yscale="log", ylabel=f"{_objective_name(settings)} (log scale)", title="Objective")
    if max(values) < 10 * min(values):  # powers of ten would leave the axis without numbers
        left.yaxis.set_major_locator(MaxNLocator(6))
        left.yaxis.set_minor_locator(NullLocator())
    left.yaxis.set_major_formatter("{x:g}")
    left.yaxis.set_minor_formatter(NullFormatter())
    for column, style, colour in (("validation", "o-", BLUE), ("training", "s--", ORANGE)):
        values = [100 * row[f"{column}_error"] for row in rows]
        right.plot(epoch, values, style, color=colour, label=f"{column} error")
    right.set(ylabel="misclassified rows (%)", title="Error at the end of the epoch")
    right.legend(frameon=False)
    for axes in (left, right):
        axes.set_xlabel("epochs (passes over the data)")
        axes.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
        axes.spines[["top", "right"]].set_visible(False)
    return figure


def _train(settings: Settings, data: Mnist, say: Say) -> Any:
    n, d = data.X_train.shape
    name, options = NAMES[settings.opt], settings.options(n)
    problem = Problem(data.X_train, data.y_train, LOSSES[settings.obj], settings.mu)
    seed = settings.seed
    if seed is None:
        seed = int(np.random.SeedSequence().generate_state(1)[0])
    parts = f"{len(data.y_validation)} for validation, {len(data.y_test)} for test"
    say(f"{settings.dataset}: {n} rows for training, {parts}, {d} features")
    chosen = ", ".join(f"{option}={value!r}" for option, value in options.items())
    say(f"{name}({chosen}), {LOSSES[settings.obj]}, mu = {settings.mu:g}, seed {seed}\n")
    objective = _objective_name(settings)
    say(f"epoch  time (s)  {objective}  training error  validation error", "bold")
    before = 0.0

    def follow(record: Any) -> None:
        nonlocal before
        if record.epoch > 0:
            row = record.row()
            value = f"{_objective(settings, row):{len(objective)}.6f}"
            errors = f"{100 * row['training_error']:12.2f} %  {100 * row['validation_error']:14.2f}"
            spent = record.seconds - before
            say(f"{record.epoch:5g}  {spent:8.3f}  {value}  {errors} %")
        before = record.seconds

    return solvers.solve(
        problem,
        getattr(solvers, name)(**options),
        tol=0.0,
        max_epochs=settings.epochs,
        record="epoch",
        metrics={
            "training_error": error_rate(data.X_train, data.y_train),
            "validation_error": error_rate(data.X_validation, data.y_validation),
        },
        callback=follow,
        random_state=seed,
    )


def _objective_name(settings: Settings) -> str:
    return "objective" if settings.opt == "bcfw" else "objective estimate"


def _objective(settings: Settings, row: dict[str, float]) -> float:
    """Return the mean objective of the epoch's batches, before each update; exact for BCFW."""
    return row["primal"] if settings.opt == "bcfw" else row["estimate"]


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise UsageError(message)


def _silent(text: str, style: str = "") -> None:
    pass
