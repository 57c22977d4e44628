"""The problem whose rows lie in a store."""

from __future__ import annotations

import contextlib
import copy
import functools
import hashlib
import math
from collections.abc import Generator, Iterable
from typing import Any

import numpy as np

from zerogap.io.memory import free_memory
from zerogap.losses import Loss, as_loss
from zerogap.penalties import as_penalty
from zerogap.problem.checks import check_scale, check_shares, is_positive
from zerogap.problem.gap import UNIT
from zerogap.problem.one_score import NOWHERE, Problem
from zerogap.problem.places import OnProcessor
from zerogap.rows import CSRRows, DenseRows, moved_targets
from zerogap.store import Part, Store
from zerogap.streamed.columns import Column
from zerogap.streamed.extract import Extract
from zerogap.streamed.plan import SHARE_FOR_MATRICES, fits, window
from zerogap.streamed.proving import StreamedProving
from zerogap.streamed.reading import block_rows
from zerogap.streamed.survey import Survey, find_shifts, stacked, survey


class StreamedProblem(StreamedProving, OnProcessor):
    """A `Problem` whose rows lie in a store, for `Auto`, `BlockSDCA` and `BlockNewton`.

    Rows are read block by block.  What there is for each row - targets, dual variables, scores -
    is kept in memory or, where `store.max_memory` does not allow that, in nameless files beside
    the store, or in the folder for temporary files if that is closed to writing.  The first
    question about all rows reads the store once.

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

    streamed = True

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
        self._total = math.fsum(class_weights * self._factors) if weighted else store.total_weight
        if lam is not None and not is_positive(lam):
            raise ValueError(f"lam must be a positive, finite number, got {lam!r}")
        self.lam = 1.0 / self._total if lam is None else float(lam)
        check_scale(np.array([store.largest_sqnorm]), self.lam, self._total)
        self.window = window(store)
        self.in_memory = fits(store, self.n_classes)
        self.origin, self.target = NOWHERE, 0.0  # what is subtracted from columns and targets
        self._found: dict[str, Any] = {}  # by reading the store, for the other classes as well

    def shifted(self) -> tuple[StreamedProblem, np.ndarray, float]:
        """Return the problem on columns and targets near zero, and what it subtracts from them."""
        if "shifts" not in self._found:
            self._found["shifts"] = find_shifts(self.store)
        origin, target = self._found["shifts"]
        target = target if self.loss.task == "regression" else 0.0
        if not origin.any() and not target:
            return self, NOWHERE, 0.0
        other = copy.copy(self)
        other.origin, other.target = origin, target
        if other.moves_columns:  # copies of blocks take more memory than the blocks
            other.window = window(self.store, moved=True)
            other.in_memory &= fits(self.store, self.n_classes, moved=True)
        return other, origin, target

    @property
    def moves_columns(self) -> bool:
        """Whether something is subtracted from the columns."""
        return bool(self.origin.any())

    @property
    def _survey(self) -> Survey:
        """What a pass over all rows has found."""
        name = "moved" if self.moves_columns else "given"
        if name not in self._found:
            self._found[name] = survey(self)
        return self._found[name]

    def against(self, positive: int) -> StreamedProblem:
        """Return the problem of another class against the rest, without reading the store."""
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
        return float(self._survey.squares.sum())

    @property
    def column_sizes(self) -> np.ndarray:
        """Roots of the mean squares of the columns."""
        return np.sqrt(self._survey.squares)

    @property
    def strength(self) -> float:
        """Strong convexity of the penalty: lam times the share of L2."""
        return self.lam * (1.0 - self.l1_ratio)

    @property
    def largest_target(self) -> float:
        """Largest size of a target."""
        return self._survey.largest_target

    @property
    def blurred(self) -> float:
        """How far targets may be off that a shift has rounded."""
        return 2.0 * UNIT * (self.largest_target + abs(self.target)) if self.target else 0.0

    def spare_memory(self) -> float:
        """Return the bytes that are left for matrices."""
        given = self.store.max_memory
        free = free_memory()
        return free if given is None else min(free, SHARE_FOR_MATRICES * given)

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
        if source is not None:
            with contextlib.closing(source.stream(order, kept)) as copies:
                for k, part in copies:
                    share: Any = part.sample_weight
                    yield k, self._whole(block_rows(part), part.y, share)
            return
        with contextlib.closing(self.read_blocks(order, kept)) as blocks:
            for k, rows, block in blocks:
                yield k, self.part(rows, block.y, block.sample_weight)

    def read_blocks(
        self, order: Iterable[int] | None = None, kept: int = 1
    ) -> Generator[tuple[int, DenseRows | CSRRows, Part]]:
        """Yield the number of each block, its rows from the origin, and the block as it is."""
        kept = 1 if self.moves_columns else kept  # copies are always valid
        with contextlib.closing(self.store.stream(order, kept)) as blocks:
            for k, block in blocks:
                rows = block_rows(block)
                yield k, rows.minus(self.origin) if self.moves_columns else rows, block

    def sample(self, rows: int) -> Problem:
        """Return so many rows, or what half of the window holds, as a problem of their own.

        Rows lie in a store in random order: those of its first blocks are a sample.
        """
        parts: list[Any] = []
        for k in range(max(1, self.window // 2)):
            with contextlib.closing(self.stream([k])) as blocks:
                parts += [part.take(np.arange(part.shape[0])) for _, part in blocks]
            if sum(part.shape[0] for part in parts) >= rows:
                break
        y, share = (np.concatenate([getattr(p, name) for p in parts]) for name in ("y", "share"))
        whole = self._whole(stacked([part.rows for part in parts]), y, share)
        return whole._with(share=share / share.sum())

    def new_extract(self) -> Extract:
        """Return an empty file for copies of rows."""
        return Extract(self.store, np.dtype(np.float64) if self.moves_columns else self.store.dtype)

    def extract(self, blocks: Iterable[int], chosen: np.ndarray) -> Extract:
        """Copy the chosen rows of some blocks, one block after the other."""
        extract = self.new_extract()
        with contextlib.closing(self.stream(blocks)) as parts:
            for k, part in parts:
                extract.add(k, part.take(np.flatnonzero(chosen[self.span(k)])))
        return extract

    def part(self, rows: DenseRows | CSRRows, y: np.ndarray, weight: np.ndarray | None) -> Problem:
        """Return rows of the problem whose targets are class codes or numbers."""
        weight = np.ones(len(y)) if weight is None else weight
        factors = 1.0 if self._factors is None else self._factors[y.astype(np.int64)]
        share = weight / self._total * factors
        check_shares(share, weight, factors)
        if self.loss.task == "classification":
            y = np.where(y == self.positive, 1.0, -1.0)
        y, lost = moved_targets(y, self.target) if self.target else (y, 0.0)
        return self._whole(rows, y, share, lost)

    def _whole(
        self, rows: DenseRows | CSRRows, y: np.ndarray, share: np.ndarray, blurred: float = 0.0
    ) -> Problem:
        """Return rows of the problem with the targets and shares of their losses."""
        y = y.astype(np.int64) if self.loss.task == "multiclass" else y
        settings = (self.loss, self.lam, self.fit_intercept, self.l1_ratio, self.n_classes)
        return Problem.part(rows, y, share, *settings, blurred)

    def frame(self, rows: slice) -> Problem:
        """Return rows of the problem without their features: targets and shares alone."""
        n = rows.stop - rows.start
        empty = np.empty(0, self.store.dtype), np.empty(0, np.uint32), np.zeros(n + 1, np.int32)
        weight = self._survey.weight
        return self.part(
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
        return self.nothing.to_weights(u)

    def by_feature(self, w: np.ndarray) -> np.ndarray:
        """Return weights as kernels read them."""
        return self.nothing.by_feature(w)

    def by_class(self, u: np.ndarray) -> np.ndarray:
        """Undo `by_feature`."""
        return self.nothing.by_class(u)

    @property
    def nothing(self) -> Problem:
        """The problem without its rows."""
        return self.frame(slice(0, 0))

    def first_intercept(self) -> Any:
        """Return the intercept to start from: the best one for w = 0."""
        if self.loss.task == "multiclass":
            return self._of_classes.first_intercept()
        return self.best_intercept(self.column())

    def constant(self) -> Any:
        """Return the intercept of the best constant model: zero if there is none."""
        if self.loss.task == "multiclass":
            return self._of_classes.constant()
        return self.first_intercept() if self.fit_intercept else 0.0

    def constant_loss(self, b: Any) -> float:
        """Return the mean loss of the model without weights whose intercept is b."""
        return math.fsum(self.frame(rows).constant_loss(b) for rows in self.spans())

    @property
    def _of_classes(self) -> Problem:
        """The problem with one row for each class, which has all of its weight, at zero."""
        class_weights: Any = self.store.class_weights
        shares = class_weights * (1.0 if self._factors is None else self._factors) / self._total
        y, settings = np.arange(self.n_classes), (self.loss, self.lam, self.fit_intercept)
        zeros = np.zeros((self.n_classes, 1))
        return Problem.part(zeros, y, shares, *settings, n_classes=self.n_classes)

    def with_loss(self, loss: Loss) -> StreamedProblem:
        """Return the same problem with another loss for the same kind of targets."""
        other = copy.copy(self)
        other.loss = loss
        other.__dict__.pop("fingerprint", None)
        return other

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
            f"{store.classes.tolist()[0]!r}"
        )
