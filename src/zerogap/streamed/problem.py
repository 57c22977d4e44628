"""The problem whose rows lie in a store."""

from __future__ import annotations

import contextlib
import copy
import functools
import hashlib
import math
import operator
from collections.abc import Generator, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from zerogap.certificate import Certificate
from zerogap.checks import check_intercept, check_scale, is_positive
from zerogap.gap import Sizes, conclude
from zerogap.losses import Loss, as_loss
from zerogap.penalties import as_penalty
from zerogap.problem import OnProcessor, Problem
from zerogap.proving import Proof
from zerogap.row_sums import penalty_and_slack
from zerogap.rows import CSRRows, DenseRows
from zerogap.store import Store
from zerogap.streamed.columns import Column
from zerogap.streamed.extract import Extract
from zerogap.streamed.plan import fits, window
from zerogap.streamed.reading import block_rows


@dataclass(frozen=True, eq=False)
class _Survey:
    """What one pass over a store has found: targets, weights, and norms summed over classes."""

    y: Any
    weight: Any  # None if all are one
    sqnorms: np.ndarray  # sum of s_i |x_i|^2 for each class


class StreamedProblem(OnProcessor):
    """A `Problem` whose rows lie in a store, for `BlockSDCA`.

    Rows are read block by block.  What there is for each row - targets, dual variables, scores -
    is kept in memory or, where `store.max_memory` does not allow that, in nameless files beside
    the store, or in the folder for temporary files if that is closed to writing.  Making the
    problem reads the store once.

    Parameters
    ----------
    store : Store
        Rows, targets and weights.
    loss, lam, fit_intercept, l1_ratio
        As in `Problem`.
    class_weight : array-like of shape (n_classes,), optional
        Factors of the sample weights of each class.
    positive : int
        Number of the class whose target is +1, for losses of two classes; the others are -1.

    Raises
    ------
    ValueError
        If the store's targets are not of the loss' kind, or `store.max_memory` is not enough.

    Examples
    --------
    >>> import zerogap as zg
    >>> from tempfile import TemporaryDirectory
    >>> from zerogap.solvers.block_sdca import BlockSDCA
    >>> from zerogap.store import write_store
    >>> X, y, beta = zg.datasets.make_simulated(random_state=0)
    >>> with TemporaryDirectory() as folder:
    ...     problem = StreamedProblem(write_store(f"{folder}/store", [(X, y)]), "hinge", lam=0.01)
    ...     result = zg.solve(problem, BlockSDCA(), tol=1e-4, random_state=0)
    >>> result.certificate.relative_gap <= 1e-4
    True
    """

    def __init__(
        self,
        store: Store,
        loss: str | Loss,
        lam: float | None = None,
        fit_intercept: bool = False,
        l1_ratio: float = 0.0,
        class_weight: Any = None,
        positive: int = 1,
    ) -> None:
        self.store, self.loss, self.positive = store, as_loss(loss), positive
        self.fit_intercept, self.l1_ratio = bool(fit_intercept), l1_ratio
        self.penalty = as_penalty(l1_ratio)
        check_task(store, self.loss)
        self._factors = None if class_weight is None else np.asarray(class_weight, np.float64)
        class_weights: Any = store.class_weights
        weighted = class_weights is not None and self._factors is not None
        self._total = float(class_weights @ self._factors if weighted else store.total_weight)
        if lam is not None and not is_positive(lam):
            raise ValueError(f"lam must be a positive, finite number, got {lam!r}")
        self.lam = 1.0 / self._total if lam is None else float(lam)
        check_scale(np.array([store.largest_sqnorm]), self.lam, self._total)
        self.window = window(store)
        self.in_memory = fits(store, self.n_classes)
        self._survey = self._look()

    def against(self, positive: int) -> StreamedProblem:
        """Return the problem that separates another class from the rest, without a pass."""
        other = copy.copy(self)
        other.positive = positive
        other.__dict__.pop("fingerprint", None)
        return other

    def __repr__(self) -> str:
        return f"StreamedProblem({self.store!r}, {self.loss}, lam={self.lam:.6g}, {self.penalty})"

    @property
    def shape(self) -> tuple[int, int]:
        """Number of samples and of features."""
        return self.store.n_samples, self.store.n_features

    @property
    def rows(self) -> Store:
        """Where the rows are."""
        return self.store

    @property
    def n_classes(self) -> int:
        """Number of scores of a row: one, or the number of classes for a loss of score vectors."""
        classes: Any = self.store.classes
        return len(classes) if self.loss.task == "multiclass" else 1

    @property
    def dual_shape(self) -> tuple[int, ...]:
        """Shape of the dual variables."""
        n = self.shape[0]
        return (n, self.n_classes) if self.loss.task == "multiclass" else (n,)

    @property
    def weight_shape(self) -> tuple[int, ...]:
        """Shape of the weights."""
        d = self.shape[1]
        return (self.n_classes, d) if self.loss.task == "multiclass" else (d,)

    @functools.cached_property
    def fingerprint(self) -> str:
        """Digest of all that defines the problem."""
        factors = None if self._factors is None else self._factors.tolist()
        parts = (self.store.fingerprint, self.loss, self.lam, self.penalty, self.fit_intercept)
        text = repr((*parts, factors, self.positive, self.window))
        return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()

    @property
    def mean_sqnorm(self) -> float:
        """Weighted mean of |x_i|^2."""
        factors = 1.0 if self._factors is None else self._factors
        return float(np.sum(factors * self._survey.sqnorms)) / self._total

    def spans(self) -> Generator[slice]:
        """Yield the rows of each block."""
        for k in range(len(self.store.blocks)):
            yield self.span(k)

    def span(self, k: int) -> slice:
        """Return which rows block k has."""
        block = self.store.blocks[k]
        return slice(block.start, block.start + block.rows)

    def column(self, shape: tuple[int, ...] | None = None) -> Any:
        """Return zeros for all rows, to be used by slices: an array or, on disk, a `Column`."""
        shape = self.dual_shape if shape is None else shape
        return np.zeros(shape) if self.in_memory else Column(shape, self.store.path)

    def stream(
        self,
        order: Iterable[int] | None = None,
        kept: int = 1,
        source: Extract | None = None,
    ) -> Generator[tuple[int, Problem]]:
        """Yield the number of each block and its rows, as a part of the problem.

        The last `kept` parts are valid while the next one is asked for.  They may be those of
        an `Extract` instead.
        """
        make: Any = self._part if source is None else self._whole
        with contextlib.closing((source or self.store).stream(order, kept)) as blocks:
            for k, part in blocks:
                yield k, make(block_rows(part), part.y, part.sample_weight)

    def extract(self, blocks: Iterable[int], chosen: np.ndarray) -> Extract:
        """Copy the chosen rows of some blocks, one block after the other."""
        extract = Extract(self.store)
        with contextlib.closing(self.stream(blocks)) as parts:
            for k, part in parts:
                extract.add(k, part.take(np.flatnonzero(chosen[self.span(k)])))
        return extract

    def _look(self) -> _Survey:
        """Read all rows once, and keep what there is one number of for each."""
        store = self.store
        y = self.column((store.n_samples,))
        weight: Any = self.column((store.n_samples,)) if store.weighted else None
        sums = np.zeros(1 if store.classes is None else len(store.classes))
        with contextlib.closing(store.stream()) as blocks:
            for k, part in blocks:
                y[self.span(k)] = part.y
                terms = block_rows(part).sqnorms
                if part.sample_weight is not None:
                    weight[self.span(k)] = part.sample_weight
                    terms = terms * part.sample_weight
                codes = part.y.astype(np.int64) if len(sums) > 1 else np.zeros(len(terms), np.int64)
                sums += np.bincount(codes, terms, minlength=len(sums))
        return _Survey(y, weight, sums)

    def _part(self, rows: DenseRows | CSRRows, y: np.ndarray, weight: np.ndarray | None) -> Problem:
        """Return rows of the problem whose targets are class codes or numbers."""
        share = np.full(len(y), 1.0 / self._total) if weight is None else weight / self._total
        if self._factors is not None:
            share *= self._factors[y.astype(np.int64)]
        if self.loss.task == "classification":
            y = np.where(y == self.positive, 1.0, -1.0)
        return self._whole(rows, y, share)

    def _whole(self, rows: DenseRows | CSRRows, y: np.ndarray, share: np.ndarray) -> Problem:
        """Return rows of the problem with the targets and shares of their losses."""
        y = y.astype(np.int64) if self.loss.task == "multiclass" else y
        settings = (self.loss, self.lam, self.fit_intercept, self.l1_ratio, self.n_classes)
        return Problem.part(rows, y, share, *settings)

    def frame(self, rows: slice) -> Problem:
        """Return rows of the problem without their features: targets and shares alone."""
        n = rows.stop - rows.start
        empty = np.empty(0, self.store.dtype), np.empty(0, np.uint32), np.zeros(n + 1, np.int32)
        weight = self._survey.weight
        return self._part(
            CSRRows(*empty, self.shape[1]),
            self._survey.y[rows],
            None if weight is None else weight[rows],
        )

    def dual_sum(self, alpha: Any) -> np.ndarray:
        """Return u(alpha), from one pass over the store."""
        return self._read(np.zeros(self.weight_shape), alpha)[1]

    def _read(self, w: np.ndarray, alpha: Any) -> tuple[Any, np.ndarray]:
        """Return scores and dual sum, from one pass over the store unless both are zero."""
        z, u = self.column(), np.zeros(self.weight_shape)
        if w.any() or any(alpha[rows].any() for rows in self.spans()):
            with contextlib.closing(self.stream()) as blocks:
                for k, part in blocks:
                    rows = self.span(k)
                    z[rows] = part.scores(w)
                    u += part.dual_sum(np.ascontiguousarray(alpha[rows]))
        return z, u

    def to_weights(self, u: np.ndarray) -> np.ndarray:
        """Return the primal vector of a dual sum u."""
        return self._nothing.to_weights(u)

    def by_feature(self, w: np.ndarray) -> np.ndarray:
        """Return weights as kernels read them."""
        return self._nothing.by_feature(w)

    def by_class(self, u: np.ndarray) -> np.ndarray:
        """Return the weights that `by_feature` has listed."""
        return self._nothing.by_class(u)

    @property
    def _nothing(self) -> Problem:
        return self.frame(slice(0, 0))

    def dual(self, alpha: Any) -> float:
        """Return D of alpha made feasible."""
        proof = self.examine(np.zeros(self.weight_shape), 0.0, alpha)
        return proof.primal - proof.gap

    def certificate(self, w: Any, b: Any = 0.0, alpha: Any = None) -> Certificate:
        """Return the certificate of the model (w, b), as `Problem.certificate` does.

        Without alpha it takes two passes: a_i = -phi'(x_i.w + b) comes from the first.
        """
        w = np.ascontiguousarray(w, np.float64).reshape(self.weight_shape)
        b = check_intercept(b, self.fit_intercept)
        if alpha is None:
            alpha, _ = self._read(w, self.column())
            for rows in self.spans():
                alpha[rows] = self.frame(rows).dual_from_scores(alpha[rows] + b)
        alpha = self.feasible(alpha)
        return self._prove(w, b, alpha, *self._read(w, alpha)).certificate

    def examine(
        self,
        w: np.ndarray,
        b: Any,
        alpha: Any,
        accuracy: float = 0.0,
        trust: bool = True,
        tolerated: float = 0.0,
    ) -> Proof:
        """Certify (w, b) with the best b for this w."""
        alpha = self.feasible(alpha)
        z, u = self._read(w, alpha)
        if not self.fit_intercept:
            b = 0.0 * b
        elif self.loss.task != "multiclass":
            b = self.best_intercept(z, b, accuracy)
        return self._prove(w, b, alpha, z, u)

    @np.errstate(over="ignore", invalid="ignore", divide="ignore")
    def _prove(self, w: np.ndarray, b: Any, alpha: Any, z: Any, u: np.ndarray) -> Proof:
        """Return what (w, b) with its scores and a feasible alpha with its dual sum prove."""
        if not np.isfinite(w.sum() + u.sum() + np.sum(b)):  # nothing is proved
            return Proof(b, alpha, math.nan, math.inf, math.inf)
        spans = [(self.frame(rows), rows) for rows in self.spans()]
        parts = [part.row_terms(z[rows], b, alpha[rows]) for part, rows in spans]
        terms = functools.reduce(operator.add, parts)
        sizes = Sizes(*self.shape, math.sqrt(self.mean_sqnorm))
        penalty = penalty_and_slack(self.penalty, w.ravel(), u.ravel())

        def conjugates() -> tuple[float, float]:
            means = math.fsum(part._mean_conjugate(alpha[rows]) for part, rows in spans)
            return means, self._nothing._penalty_conjugate(u)

        found, _ = conclude(self, sizes, terms, w, b, penalty, u, conjugates)
        return Proof.of(found, b, alpha)

    def feasible(self, alpha: Any) -> Any:
        """Return alpha clipped to the loss' domain and, with an intercept, made to sum to zero.

        As `Problem.feasible` does, but the sums that decide by how much are those of all blocks.
        """
        clipped = self.column()
        for rows in self.spans():
            part = self.frame(rows)
            clipped[rows] = part._with(fit_intercept=False).feasible(alpha[rows])
        if self.fit_intercept:
            spans = [(self.frame(rows), rows) for rows in self.spans()]
            sums = np.sum([part.balance_sums(clipped[rows]) for part, rows in spans], axis=0)
            for part, rows in spans:
                clipped[rows] = part.balanced(clipped[rows], sums)
        return clipped

    def first_intercept(self) -> Any:
        """Return the intercept to start from: the best one for w = 0."""
        if self.loss.task == "multiclass":
            class_weights: Any = self.store.class_weights
            shares = class_weights * (1.0 if self._factors is None else self._factors) / self._total
            return np.log(np.maximum(shares, 1e-3 / self.shape[0]))
        return self.best_intercept(self.column())

    def best_intercept(self, z: Any, near: float = 0.0, accuracy: float = 0.0) -> float:
        """Return a minimiser of P(w, .) for the scores z, to within `accuracy` in P."""
        from scipy.optimize import brentq

        @functools.cache
        def slope(b: float) -> float:
            parts = ((self.frame(rows), z[rows]) for rows in self.spans())
            return math.fsum(part.share @ part.slopes(scores + b) for part, scores in parts)

        left = right = float(near)
        width = abs(slope(left))
        while slope(left) > 0.0 and width < 1e300:
            left, width = left - width, 2.0 * width
        while slope(right) < 0.0 and width < 1e300:
            right, width = right + width, 2.0 * width
        if slope(left) * slope(right) >= 0.0:
            return left if abs(slope(left)) < abs(slope(right)) else right
        steepest = max(-slope(left), slope(right))  # P changes by no more per step in b
        width = max(accuracy / steepest, 1e-300)
        return float(brentq(slope, left, right, xtol=width, maxiter=2000, disp=False))


def check_task(store: Store, loss: Loss) -> None:
    """Refuse a store whose targets the loss cannot be about."""
    kind, other = ("numbers", "classes") if store.classes is None else ("classes", "numbers")
    if (kind == "numbers") != (loss.task == "regression"):
        raise ValueError(
            f"{store.path} holds {kind} as targets, and {loss} is a loss for {other}: choose "
            f"another loss, or convert the data for the other task"
        )
    if store.classes is not None and len(store.classes) < 2:
        raise ValueError(
            f"a classifier needs at least two classes, but {store.path} has only one class, "
            f"{store.classes[0]!r}"
        )
