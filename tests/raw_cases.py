"""Random fits of raw tables, each drawn from its seed alone, and what became of them.

Tests fit some hundred of them, benchmarks/tables.py many thousand.
"""

import time
import warnings
from dataclasses import dataclass

import numpy as np
from scipy import sparse

import zerogap as zg
from zerogap.losses import LOSSES, MULTICLASS_LOSSES, as_loss

ALL_LOSSES = [*LOSSES, *MULTICLASS_LOSSES]
OTHER_TARGET = 0.2  # of the fits for classes: one against the rest, or a joint loss on two classes
ELASTIC_NET = 0.2  # of all fits
BEYOND = 1e15  # range of a table from which on it may be refused, or stop early and say why
CERTIFIED, UNCERTIFIED, REFUSED, FAILED = "certified", "uncertified", "refused", "failed"


@dataclass(frozen=True)
class Case:
    """A table and how to fit it."""

    seed: int
    table: zg.datasets.RawTable
    loss: zg.losses.Loss
    name: str  # of the loss
    C: float
    tol: float
    weights: np.ndarray | None
    fit_intercept: bool
    l1_ratio: float

    @property
    def total_weight(self):
        return len(self.table.y) if self.weights is None else float(self.weights.sum())

    @property
    def lam(self):
        return 1.0 / (self.C * self.total_weight)

    @property
    def is_regression(self):
        return self.loss.task == "regression"

    @property
    def in_range(self):
        """Whether the table spans less than 1e15, from the largest value to the least spread."""
        X = self.table.X.toarray() if sparse.issparse(self.table.X) else self.table.X
        X = np.asarray(X, np.float64)
        largest = max(np.abs(X).max(initial=0), np.abs(self.table.y).max(initial=0))
        spread = (X - X[:1]).std(axis=0)
        least = spread[spread > 1e-12 * np.abs(X).max(axis=0)].min(initial=1.0)
        return bool(largest < BEYOND and largest < BEYOND * least)

    def estimator(self, **options):
        kind = zg.LinearRegressor if self.is_regression else zg.LinearClassifier
        return kind(
            self.loss,
            lam=self.lam,
            l1_ratio=self.l1_ratio,
            fit_intercept=self.fit_intercept,
            tol=self.tol,
            random_state=0,
            **options,
        )

    def __str__(self):
        rows, columns = self.table.X.shape
        form = "sparse" if sparse.issparse(self.table.X) else "dense"
        target = self.table.target
        if target == "multiclass":
            target = f"{len(np.unique(self.table.y))} classes"
        weighted = "" if self.weights is None else ", weights"
        intercept = "" if self.fit_intercept else ", no intercept"
        return (
            f"seed {self.seed}: {rows} x {columns} {form} {self.table.X.dtype}, {target}, "
            f"{self.loss}, C {self.C:.3g}, tol {self.tol:.0e}, l1_ratio {self.l1_ratio:.2g}"
            f"{weighted}{intercept}"
        )


@dataclass(frozen=True)
class Outcome:
    """What became of a fit."""

    verdict: str
    relative_gap: float
    why: str  # the reason to stop, or the exception
    seconds: float  # of fit() alone
    primal: float = float("nan")
    model: object = None


def loss_of(seed):
    """Return the name of the loss of a seed's case, without drawing its table."""
    return str(np.random.default_rng(seed).choice(ALL_LOSSES))


def draw_case(seed, n_samples=None):
    """Return the case of a seed; `n_samples` makes another one, with so many rows."""
    rng = np.random.default_rng(seed)
    name = str(rng.choice(ALL_LOSSES))
    target = _target(rng, as_loss(name).task)
    table = zg.datasets.make_raw_table(n_samples, target=target, random_state=rng)
    return Case(
        seed,
        table,
        loss=_loss(rng, name, table.y),
        name=name,
        C=10.0 ** rng.uniform(-3, 5),
        tol=float(rng.choice([1e-3, 1e-6])),
        weights=_weights(rng, table),
        fit_intercept=bool(rng.random() < 0.7),
        l1_ratio=float(rng.uniform(0.1, 0.95)) if rng.random() < ELASTIC_NET else 0.0,
    )


def fit_case(case, **options):
    """Fit a case, time `fit` alone, and say what became of it."""
    model = case.estimator(**options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        start = time.perf_counter()
        try:
            model.fit(case.table.X, case.table.y, case.weights)
        except Exception as error:  # reported as a failure
            seconds = time.perf_counter() - start
            said = " ".join(f"{type(error).__name__}: {error}".split())[:200]
            return Outcome(verdict_on(error, case), float("inf"), said, seconds)
        seconds = time.perf_counter() - start
    proof = model.certificate_
    verdict = CERTIFIED if proof.stop_reason == "converged" else UNCERTIFIED
    if proof.stop_reason in ("stalled", "rounding") and not case.in_range:
        verdict = REFUSED
    return Outcome(verdict, proof.relative_gap, proof.stop_reason, seconds, proof.primal, model)


def verdict_on(error, case):
    """Say whether an exception is a refusal, which is right beyond 1e15 only, or a failure."""
    return REFUSED if isinstance(error, ValueError) and not case.in_range else FAILED


def _target(rng, task):
    """Return the kind of target for a loss: mostly the one that it is made for."""
    if task == "regression":
        return "number"
    own, other = ("multiclass", "binary") if task == "multiclass" else ("binary", "multiclass")
    return other if rng.random() < OTHER_TARGET else own


def _loss(rng, name, y):
    """Return the loss; widths are the default ones, or in the unit of the targets."""
    if name == "quantile":
        return zg.Quantile(q=float(rng.uniform(0.05, 0.95)))
    if name in ("huber", "epsilon-insensitive") and rng.random() < 0.5:
        width = float(rng.uniform(0.05, 1.5) * np.std(y)) or 1.0
        return zg.Huber(delta=width) if name == "huber" else zg.EpsilonInsensitive(eps=width)
    return as_loss(name)


def _weights(rng, table):
    """Return no weights, integers with zeros, or log-normal ones; no class is without weight."""
    n = len(table.y)
    kind = rng.choice(["none", "integers", "log-normal"])
    if kind == "none":
        return None
    if kind == "log-normal":
        return rng.lognormal(sigma=1.0, size=n)
    weights = rng.integers(0, 4, n).astype(float)
    first_rows = np.unique(table.y, return_index=True)[1] if table.target != "number" else [0]
    weights[first_rows] = 1.0
    return weights
