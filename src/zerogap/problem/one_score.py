"""The one optimisation problem that every solver works on, and the certificate of its solutions."""

from __future__ import annotations

import functools
import hashlib
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from zerogap.display import table_html
from zerogap.io.tensors import is_on_gpu
from zerogap.kernels.jit import Struct
from zerogap.losses import Loss, as_loss
from zerogap.penalties import L2, ElasticNet, as_penalty
from zerogap.problem.checks import (
    check_classes,
    check_intercept,
    check_scale,
    check_targets,
    check_vector,
    check_weights,
    is_positive,
)
from zerogap.problem.examining import Examining
from zerogap.problem.gap import Terms
from zerogap.problem.row_sums import (
    set_slopes,
    set_weights,
    sum_costs,
    sum_losses,
    sum_penalty_terms,
    sum_terms,
)
from zerogap.rows import CSRRows, DenseRows, as_rows, compact, find_shift, moved_targets

NOWHERE = np.empty(0)
_ON_DEVICE = ("cupy", "cupyx", "zerogap.cuda")  # modules of arrays and rows on a GPU


@dataclass(frozen=True, eq=False, init=False, repr=False)
class Problem(Examining, Struct):
    r"""An L2-regularised (or elastic-net) linear model with its dual.

    For rows x_i, targets y_i, weights s_i >= 0 with sum S, a loss phi and one lam > 0::

        P(w, b) = 1/S sum_i s_i phi(x_i.w + b, y_i) + lam g(w)      g(w) = |w|^2 / 2
        D(a)    = 1/S sum_i -s_i phi*(-a_i, y_i)    - lam g*(u(a))  a feasible
        u(a)    = 1/(lam S) sum_i s_i a_i x_i,      w(a) = grad g*(u(a))  (= u(a) for L2)
        gap     = P(w, b) - D(a)  >=  P(w, b) - min P

    With ``l1_ratio`` = r the penalty is g(w) = (1 - r) |w|^2 / 2 + r |w|_1, and w(a) is u(a)
    moved towards zero by r and divided by 1 - r.  With ``fit_intercept`` the intercept b is free,
    not regularised, and a feasible `a` also satisfies sum_i s_i a_i = 0; without, b is zero.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_samples, n_features)
        Used without a copy if it is float32 or float64 and C-contiguous or CSR.  Do not change
        it while the problem is in use.
    y : array-like of shape (n_samples,)
        Targets: -1 and +1 for classification losses, real numbers for regression losses.
    loss : str or Loss
        One of `zerogap.losses.LOSSES`, or an object.
    lam : float, optional
        Regularisation, > 0; 1 / S by default, which is C = 1 in LIBLINEAR's convention
        (C = 1 / (lam S)).  For scikit-learn's SGD estimators, lam is ``alpha``.
    sample_weight : array-like of shape (n_samples,), optional
        Non-negative weights; a weight of 2 is exactly a row that occurs twice.
    fit_intercept : bool
        Whether there is a free intercept b.
    l1_ratio : float in [0, 1)
        Share of L1 in the penalty.

    Examples
    --------
    >>> import zerogap as zg
    >>> problem = zg.Problem([[1.0], [2.0]], [-1, 1], "hinge", lam=0.5)
    >>> problem.primal(w=[0.0])
    1.0
    >>> zg.solve(problem, zg.SDCA(), tol=1e-6).certificate.relative_gap <= 1e-6
    True
    """

    rows: DenseRows | CSRRows
    y: np.ndarray
    share: np.ndarray  # s_i / S
    sqnorms: np.ndarray
    loss: Loss
    penalty: L2 | ElasticNet
    lam: float
    fit_intercept: bool
    origin: np.ndarray  # what was subtracted from the columns, if anything was
    # s_i times a power of two, if they differ and are known: shares are rounded one by one
    weight: np.ndarray
    blurred: float  # how far targets may be off that a shift has rounded

    def __new__(
        cls,
        X: Any,
        y: Any,
        loss: str | Loss,
        lam: float | None = None,
        sample_weight: Any = None,
        fit_intercept: bool = False,
        l1_ratio: float = 0.0,
    ) -> Problem:
        """Make the problem that the loss asks for: a loss of score vectors has many classes."""
        if cls is not Problem:
            return object.__new__(cls)
        many = as_loss(loss).task == "multiclass"
        if type(X).__module__.startswith(_ON_DEVICE) or is_on_gpu(X):
            from zerogap import cuda  # built on this file

            return object.__new__(cuda.DeviceMulticlassProblem if many else cuda.DeviceProblem)
        if many:
            return object.__new__(cls.joint)
        return object.__new__(Problem)

    def __init__(
        self,
        X: Any,
        y: Any,
        loss: str | Loss,
        lam: float | None = None,
        sample_weight: Any = None,
        fit_intercept: bool = False,
        l1_ratio: float = 0.0,
    ) -> None:
        loss = as_loss(loss)
        rows = self._wrapped(X)
        y = check_targets(self.host(y), rows.shape[0], loss)
        share, total, weight = check_weights(self.host(sample_weight), rows.shape[0])
        if fit_intercept and loss.task != "regression":
            check_classes(y, share, loss)
        if lam is None:
            lam = 1.0 / total
        elif not is_positive(lam):
            raise ValueError(f"lam must be a positive, finite number, got {lam!r}")
        check_scale(rows.sqnorms, float(lam), total)
        penalty, more = as_penalty(l1_ratio), self._more_fields(y)
        given = (loss, penalty, float(lam), bool(fit_intercept), NOWHERE)
        exact = NOWHERE if self.on_device else weight
        arrays = (rows, self.place(y), self.place(share), rows.sqnorms)
        self._set(*arrays, *given, exact, 0.0, *more)

    def _wrapped(self, X: Any) -> Any:
        """Return checked rows."""
        return compact(as_rows(X))

    @classmethod
    def part(
        cls,
        X: Any,
        y: np.ndarray,
        share: np.ndarray,
        loss: Loss,
        lam: float,
        fit_intercept: bool = False,
        l1_ratio: float = 0.0,
        n_classes: int = 0,
        blurred: float = 0.0,
    ) -> Problem:
        """Return some rows of a larger problem: `share` has their s_i / S, S the sum over all.

        Scores, `row_terms` and dual sums of the parts add up to those of the whole.
        """
        rows = as_rows(X)
        given = (loss, as_penalty(l1_ratio), lam, fit_intercept, NOWHERE, NOWHERE, blurred)
        fields = (rows, y, share, rows.sqnorms, *given)
        if loss.task == "multiclass":
            return _restore(cls.joint, (*fields, n_classes))
        return _restore(Problem, fields)

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore, (type(self), tuple(self.__getstate__().values()))

    def _more_fields(self, y: np.ndarray) -> tuple[Any, ...]:
        """Return the values of the fields that a subclass adds."""
        return ()

    def _set(self, *values: Any) -> None:
        for name, value in zip(type(self).__dataclass_fields__, values, strict=True):
            object.__setattr__(self, name, value)

    def _repr_html_(self) -> str:
        n, d = self.shape
        facts = {"rows": n, "features": d, "loss": self.loss, "lambda": f"{self.lam:.6g}"}
        facts |= {"penalty": self.penalty, "intercept": "free" if self.fit_intercept else "none"}
        return table_html(list(facts.items()), caption=type(self).__name__)

    def __repr__(self) -> str:
        n, d = self.shape
        intercept = " with intercept" if self.fit_intercept else ""
        return f"Problem({n} x {d}, {self.loss}, lam={self.lam:.6g}, {self.penalty}{intercept})"

    @property
    def shape(self) -> tuple[int, int]:
        """Number of samples and of features."""
        return self.rows.shape

    @property
    def l1_ratio(self) -> float:
        """Share of L1 in the penalty."""
        return self.penalty.l1_ratio if isinstance(self.penalty, ElasticNet) else 0.0

    @property
    def kind(self) -> tuple[Any, ...]:
        """What kernels are compiled for: the types of rows, loss and penalty."""
        return tuple(part._numba_type_ for part in (self.rows, self.loss, self.penalty))

    @property
    def dual_shape(self) -> tuple[int, ...]:
        """Shape of the dual variables."""
        return (self.shape[0],)

    @property
    def weight_shape(self) -> tuple[int, ...]:
        """Shape of the weights."""
        return (self.shape[1],)

    @property
    def strength(self) -> float:
        """Strong convexity of the penalty: lam times the share of L2."""
        return self.lam * (1.0 - self.l1_ratio)

    @property
    def largest_target(self) -> float:
        """Largest size of a target."""
        return float(abs(self.y).max())

    def primal(self, w: Any, b: float = 0.0) -> float:
        """Return P(w, b)."""
        w, b = self._vector(w), self.checked_intercept(b)
        return self.value_at(self.scores(w) + b, w)

    def gradient(self, w: Any, b: float = 0.0) -> np.ndarray:
        """Return the (sub-)gradient of P: d numbers, and one more for b with ``fit_intercept``."""
        w, b = self._vector(w), self.checked_intercept(b)
        slopes = self.slopes(self.scores(w) + b)
        r = self.l1_ratio
        gradient = self.lam * ((1 - r) * w + r * np.sign(w) + self.dual_sum(slopes))
        return np.append(gradient, self.share @ slopes) if self.fit_intercept else gradient

    def dual(self, alpha: Any) -> float:
        """Return D(alpha), which is -inf if alpha is not feasible."""
        alpha = self._dual_vector(alpha)
        imbalance = abs(self.share @ alpha)
        if self.fit_intercept and imbalance > 1e-12 * (self.share @ np.abs(alpha)):
            return -math.inf
        return self._dual_value(alpha, self.dual_sum(alpha))

    def _dual_value(self, alpha: np.ndarray, u: np.ndarray) -> float:
        """Return D(alpha) for a feasible alpha with the dual sum u."""
        return -self._mean_conjugate(alpha) - self.lam * self._penalty_conjugate(u)

    def _penalty_conjugate(self, u: np.ndarray) -> float:
        """Return g*(u), which is what w = 0 and u add to the gap."""
        u = u.ravel()
        return self.over_features(sum_penalty_terms, self.penalty, self.xp.zeros_like(u), u)[1]

    def weights(self, alpha: Any) -> np.ndarray:
        """Return w(alpha)."""
        return self.to_weights(self.dual_sum(self._dual_vector(alpha)))

    def checked_intercept(self, b: Any) -> Any:
        """Return b if a model of this problem may have it, else say why not.

        Without ``fit_intercept`` the bound D(a) is one for models with b = 0 alone.
        """
        return check_intercept(b, self.fit_intercept)

    def scores(self, w: np.ndarray) -> np.ndarray:
        """Return x_i . w for all rows."""
        return self.rows.times(w)

    def to_weights(self, u: np.ndarray) -> np.ndarray:
        """Return the primal vector of a dual sum u: the gradient of g* at u."""
        if isinstance(self.penalty, L2):
            return u.copy()
        w = np.empty_like(u)
        self.over_features(set_weights, self.penalty, w, u)
        return w

    def by_feature(self, w: np.ndarray) -> np.ndarray:
        """Return weights as kernels read them: one feature after another, with all its classes."""
        return w

    def by_class(self, u: np.ndarray) -> np.ndarray:
        """Undo `by_feature`."""
        return u

    def take(self, order: np.ndarray) -> Problem:
        """Return the same problem with its rows in another order, as a copy."""
        names = ("y", "share", "sqnorms", *(["weight"] if len(self.weight) else []))
        arrays = {name: getattr(self, name)[order] for name in names}
        return self._with(rows=self.rows.take(order), **arrays)

    def shifted(self) -> tuple[Problem, np.ndarray, float]:
        """Return the problem on columns and targets near zero, and what it subtracts from them."""
        kept = vars(self)  # found once, for solvers and for what they have proved
        if "_shifted" not in kept:
            kept["_shifted"] = self._find_shifted()
        moved, origin, target = kept["_shifted"]
        return self if moved is None else moved, origin, target

    def _find_shifted(self) -> tuple[Problem | None, np.ndarray, float]:
        rows, origin = self.rows.centred
        target = 0.0
        if self.loss.task == "regression" and not self.blurred:
            target = float(find_shift(self.host(self.y)[:, None])[0])
        if not len(origin) and not target:
            return None, origin, 0.0
        y, lost = moved_targets(self.y, target) if target else (self.y, 0.0)
        moved = origin if len(origin) else np.zeros(self.shape[1])
        changes = {"rows": rows, "sqnorms": rows.sqnorms, "y": y}
        changes["blurred"] = self.blurred or lost
        return self._with(origin=moved, **changes), moved, target

    def without_features(self) -> Problem:
        """Return the problem on the processor with rows of length zero: what the loss needs."""
        fields = {name: self.host(value) for name, value in self.__getstate__().items()}
        fields["rows"] = DenseRows(np.empty((self.shape[0], 0)))
        many = self.loss.task == "multiclass"
        return _restore(self.joint if many else Problem, tuple(fields.values()))

    def with_columns(self, places: np.ndarray) -> Problem:
        """Return the same problem with some of its features, as a copy."""
        return self._with(rows=self.rows.columns(places))

    def with_loss(self, loss: Loss) -> Problem:
        """Return the same problem with another loss for the same kind of targets."""
        if loss.task != self.loss.task:
            raise ValueError(f"{loss} is a loss for {loss.task}, the problem is {self.loss.task}")
        return self._with(loss=loss)

    def _with(self, **changes: Any) -> Problem:
        if "share" in changes:
            changes.setdefault("weight", NOWHERE)
        return _restore(type(self), tuple({**self.__getstate__(), **changes}.values()))

    @functools.cached_property
    def fingerprint(self) -> str:
        """Digest of all that defines the problem: equal only for equal problems."""
        digest = hashlib.blake2b(repr((self, self.lam)).encode(), digest_size=16)
        for array in (*self.rows.__getstate__().values(), self.y, self.share):
            digest.update(np.ascontiguousarray(array).data)
        return digest.hexdigest()

    def plain_gap(
        self, w: np.ndarray, b: Any, z: np.ndarray, alpha: np.ndarray
    ) -> tuple[float, float]:
        """Return P and P - D as they are computed, for solvers: not a proof."""
        u, terms = self.dual_sum(alpha), self.row_terms(z, b, alpha)
        cost, slack = self.over_features(sum_penalty_terms, self.penalty, w.ravel(), u.ravel())
        primal, gap = terms.value + self.lam * cost, terms.excess + self.lam * slack
        return (primal, gap) if math.isfinite(gap) else (primal, math.inf)

    def row_terms(self, z: np.ndarray, b: float, alpha: np.ndarray) -> Terms:
        """Return what the rows add to P, to the gap, and to the bounds of its rounding."""
        return Terms(*self.over_rows(sum_terms, self.loss, self.y, self.share, alpha, z, b))

    def value_at(self, z: np.ndarray, w: np.ndarray) -> float:
        """Return the objective of a model with weights w and scores z, the intercept included."""
        cost = self.over_features(sum_costs, self.penalty, w.ravel())
        return self.mean_loss(z) + self.lam * cost

    def mean_loss(self, z: np.ndarray) -> float:
        """Return 1/S sum_i s_i phi(z_i)."""
        return self.over_rows(sum_losses, self.loss, self.y, self.share, z)

    def column(self) -> Any:
        """Return zeros for all rows."""
        return self.xp.zeros(self.dual_shape)

    def dual_from_scores(self, z: np.ndarray) -> np.ndarray:
        """Return a_i = -phi'(z_i, y_i) for all rows, which need not sum to zero."""
        return -self.slopes(z)

    def slopes(self, z: np.ndarray) -> np.ndarray:
        """Return phi'(z_i, y_i) for all rows."""
        slopes = np.empty_like(z)
        self.over_rows(set_slopes, self.loss, self.y, z, slopes)
        return slopes

    def dual_sum(self, alpha: np.ndarray) -> np.ndarray:
        """Return u(alpha)."""
        return self.rows.transposed_times(self.share * alpha / self.lam)

    def penalty_terms(self, w: np.ndarray, u: np.ndarray) -> tuple[float, float]:
        """Return the penalty of the weights w, and what it adds to the gap for a dual sum u."""
        terms = self.over_features(sum_penalty_terms, self.penalty, w.ravel(), u.ravel())
        return self.lam * terms[0], self.lam * terms[1]

    def over_rows(self, loop: Any, *args: Any) -> Any:
        """Run a row-wise kernel over all rows; return its sums, as one number if it has one."""
        first, *others = self.rows.blocks() or [(0, 0)]  # a part of the rows may have none
        found = loop(*args, *first)
        if not others:
            return found
        parts = [found, *(loop(*args, *block) for block in others)]
        if loop.sums < 2:
            return math.fsum(parts) if loop.sums else None
        return tuple(math.fsum(part[k] for part in parts) for k in range(loop.sums))

    def over_features(self, loop: Any, *args: Any) -> Any:
        """Run such a kernel over the entries of its last argument."""
        return loop(*args, 0, len(args[-1]))

    def _vector(self, w: Any) -> np.ndarray:
        return check_vector(w, self.shape[1], "w", "features")

    def _dual_vector(self, alpha: Any) -> np.ndarray:
        return check_vector(alpha, self.shape[0], "alpha", "samples")


def _restore(cls: type[Problem], values: tuple[Any, ...]) -> Problem:
    """Return a problem made of checked fields."""
    problem = object.__new__(cls)
    problem._set(*values)
    return problem
