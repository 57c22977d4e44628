"""The one optimisation problem that every solver works on, and the certificate of its solutions."""

from __future__ import annotations

import functools
import hashlib
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from zerogap.display import table_html
from zerogap.io.memory import free_memory
from zerogap.kernels.jit import Struct
from zerogap.kernels.minimiser import minimiser
from zerogap.kernels.twofold import exact_sum
from zerogap.losses import Loss, as_loss
from zerogap.penalties import L2, ElasticNet, as_penalty
from zerogap.problem.certificate import Certificate
from zerogap.problem.checks import (
    check_classes,
    check_intercept,
    check_scale,
    check_targets,
    check_vector,
    check_weights,
    is_positive,
)
from zerogap.problem.gap import FAR, Terms
from zerogap.problem.proving import Proof, Proving
from zerogap.problem.refining import refinement
from zerogap.problem.row_sums import (
    clip_duals,
    set_slopes,
    set_weights,
    sum_conjugates,
    sum_costs,
    sum_losses,
    sum_penalty_conjugates,
    sum_penalty_terms,
    sum_signs,
    sum_slopes,
    sum_terms,
)
from zerogap.rows import CSRRows, DenseRows, as_rows, compact, find_shift

NOWHERE = np.empty(0)
_SIGNS = np.array([-1.0, 1.0])
_ON_DEVICE = ("cupy", "cupyx", "zerogap.cuda")  # modules of arrays and rows on a GPU


class OnProcessor:
    """Where the arrays of a problem are; those on a GPU have a class of their own."""

    on_device: ClassVar[bool] = False
    streamed: ClassVar[bool] = False  # whether rows are read when they are needed
    xp: ClassVar[Any] = np  # makes arrays
    pace: ClassVar[float] = 1.0  # values read in the time that a processor takes for one, roughly

    def host(self, a: Any) -> Any:
        """Return an array of this problem as numpy's."""
        return a

    def place(self, a: Any) -> Any:
        """Return an array of numpy's as one of this problem."""
        return a

    def finish(self) -> None:
        """Wait until all work that was asked for is done."""

    def free_memory(self) -> float:
        """Return the bytes that are free where the arrays are."""
        return free_memory()


@dataclass(frozen=True, eq=False, init=False, repr=False)
class Problem(Proving, OnProcessor, Struct):
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
    weight: np.ndarray  # s_i, if they differ and are known: shares are rounded one by one

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
        if type(X).__module__.startswith(_ON_DEVICE):
            from zerogap import cuda  # built on this file

            return object.__new__(cuda.DeviceMulticlassProblem if many else cuda.DeviceProblem)
        if many:
            from zerogap.problem.multiclass import MulticlassProblem  # built on this file

            return object.__new__(MulticlassProblem)
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
        self._set(*arrays, *given, exact, *more)

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
    ) -> Problem:
        """Return some rows of a larger problem: `share` has their s_i / S, S the sum over all.

        Scores, `row_terms` and dual sums of the parts add up to those of the whole.
        """
        rows = as_rows(X)
        given = (loss, as_penalty(l1_ratio), lam, fit_intercept, NOWHERE, NOWHERE)
        fields = (rows, y, share, rows.sqnorms, *given)
        if loss.task == "multiclass":
            from zerogap.problem.multiclass import MulticlassProblem  # built on this file

            return _restore(MulticlassProblem, (*fields, n_classes))
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
        """Return g*(u)."""
        return self.over_features(sum_penalty_conjugates, self.penalty, u.ravel())

    def _mean_conjugate(self, alpha: np.ndarray) -> float:
        """Return 1/S sum_i s_i phi*(-a_i)."""
        return self.over_rows(sum_conjugates, self.loss, self.y, self.share, alpha)

    def weights(self, alpha: Any) -> np.ndarray:
        """Return w(alpha)."""
        return self.to_weights(self.dual_sum(self._dual_vector(alpha)))

    def certificate(self, w: Any, b: float = 0.0, alpha: Any = None) -> Certificate:
        """Return the certificate of the model (w, b).

        Parameters
        ----------
        w : array-like of shape (n_features,)
            Weights.
        b : float
            Intercept; zero if the problem has none.
        alpha : array-like of shape (n_samples,), optional
            A dual point; it is made feasible.  By default the one that belongs to (w, b),
            a_i = -phi'(x_i.w + b), which for smooth losses and the L2 penalty, without intercept,
            gives the gap |grad P|^2 / (2 lam) exactly.
        """
        return self.proof_of(w, b, alpha).certificate

    def proof_of(self, w: Any, b: Any, alpha: Any = None, doubt: float = 0.0) -> Proof:
        """Return what is proved of (w, b), as `certificate` does, if b may be off by `doubt`."""
        w, b = self._vector(w), self.checked_intercept(b)
        z = self.scores(w)
        alpha = self.dual_point(z, b) if alpha is None else self.feasible(self._dual_vector(alpha))
        return self.prove(w, b, z, alpha, doubt=doubt)

    def refined_proof_of(self, w: Any, b: Any, alpha: Any = None, doubt: float = 0.0) -> Proof:
        """Return the same, by a dual point with twice the digits of alpha if that proves more."""
        proof = self.proof_of(w, b, alpha, doubt)
        row_terms = proof.gap - proof.rounding - proof.slack
        if self.on_device or not math.isfinite(proof.primal) or row_terms > 0.5 * proof.gap:
            return proof
        w = self._vector(w)
        rest = refinement(self, w, proof.alpha)
        given = (w, proof.b, proof.z, proof.alpha)
        return min(proof, self.prove(*given, rest=rest, doubt=doubt), key=lambda found: found.gap)

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
        w = np.empty_like(u)
        self.over_features(set_weights, self.penalty, w, u)
        return w

    def by_feature(self, w: np.ndarray) -> np.ndarray:
        """Return weights as kernels read them: one feature after another, with all its classes."""
        return w

    def by_class(self, u: np.ndarray) -> np.ndarray:
        """Return the weights that `by_feature` has listed."""
        return u

    def dual_point(self, z: np.ndarray, b: float = 0.0) -> np.ndarray:
        """Return a feasible dual point for the scores z and the intercept b: a_i = -phi'(z_i + b).

        With an intercept the a_i must sum to zero.  If b minimises P(w, .) they can: at a kink of
        the loss a_i may be anything between minus the two one-sided slopes.
        """
        if not self.fit_intercept:
            return -self.slopes(z)
        z = z + b
        if math.isfinite(self.loss.smoothness):
            return self.feasible(-self.slopes(z))
        hair = 1e-9 * (1.0 + np.abs(z))
        low, high = -self.slopes(z + hair), -self.slopes(z - hair)
        room = self.share @ (high - low)
        part = np.clip(-(self.share @ low) / room, 0.0, 1.0) if room > 0 else 0.5
        return self.feasible(low + part * (high - low))

    def feasible(self, alpha: np.ndarray) -> np.ndarray:
        """Return alpha clipped to the loss' domain and, with an intercept, made to sum to zero.

        See `balanced`.
        """
        alpha = alpha.copy()
        self.over_rows(clip_duals, self.loss, self.y, alpha)
        return self.balanced(alpha, self.balance_sums(alpha)) if self.fit_intercept else alpha

    def balance_sums(self, alpha: np.ndarray) -> np.ndarray:
        """Return the sums that `balanced` needs; those of parts of the rows add up."""
        return np.array(self.over_rows(sum_signs, self.share, alpha))

    def balanced(self, alpha: np.ndarray, sums: np.ndarray) -> np.ndarray:
        """Return alpha, which may be that of a part of the rows, with a sum of zero over all rows.

        The heavier sign is scaled down, which cannot leave a domain that contains zero; where the
        domain is the whole line the mean is subtracted, which changes D less.
        """
        up, down = map(float, sums)
        if self.loss.domain(1.0) == (-math.inf, math.inf):
            return alpha - (up - down)
        if up == down:
            return alpha
        heavy = alpha > 0.0 if up > down else alpha < 0.0
        return np.where(heavy, alpha * (min(up, down) / max(up, down)), alpha)

    def first_intercept(self) -> Any:
        """Return the intercept to start from: the best one for w = 0."""
        return self._best_constant

    @functools.cached_property
    def _best_constant(self) -> float:
        if self.loss.task != "classification" or self.on_device:
            return self.best_intercept(self.xp.zeros(self.shape[0]))
        given = (self.loss, _SIGNS, self._class_shares, np.zeros(2))
        return minimiser(lambda b: sum_slopes(*given, b, 0, 2))

    @functools.cached_property
    def _class_shares(self) -> np.ndarray:
        """Shares of the rows of either class, which are alike to a constant model."""
        return np.array([self.share @ (self.y == sign) for sign in _SIGNS])

    def constant_proof(self) -> Proof:
        """Return what is proved of the best constant model, without any dual variables."""
        w, zeros = self.xp.zeros(self.weight_shape), self.xp.zeros(self.dual_shape)
        b, terms, none = self.constant(), None, np.zeros(2)
        if self.loss.task == "classification" and not self.on_device:
            terms = Terms(*sum_terms(self.loss, _SIGNS, self._class_shares, none, none, b, 0, 2))
        return self.prove(w, b, zeros, zeros, terms=terms, u=w)

    def constant(self) -> Any:
        """Return the intercept of the best constant model: zero if there is none."""
        return self.first_intercept() if self.fit_intercept else 0.0

    def best_intercept(self, z: np.ndarray, near: float = 0.0, accuracy: float = 0.0) -> float:
        """Return a minimiser of P(w, .) for the scores z, to within `accuracy` in P."""
        slope = functools.partial(self.over_rows, sum_slopes, self.loss, self.y, self.share, z)
        if self.loss.is_parabola:
            return near - slope(near) / self.loss.smoothness
        return minimiser(slope, near, accuracy)

    def examine(
        self,
        w: np.ndarray,
        b: float,
        alpha: np.ndarray | None,
        accuracy: float = 0.0,
        trust: bool = True,
        tolerated: float = 0.0,
    ) -> Proof:
        """Certify (w, b) with the best b for this w.

        Unless the given alpha is to be trusted, it competes with the point that belongs to (w, b)
        and with zero.  Rounding up to that share of P does not ask for more precision.
        """
        z = self.scores(w)
        b = self.best_intercept(z, b, accuracy) if self.fit_intercept else 0.0 * b
        points = [] if alpha is None else [self.feasible(alpha)]
        if alpha is None or not trust:
            points.append(self.dual_point(z, b))
        proofs = [self.prove(w, b, z, point, tolerated) for point in points]
        if (alpha is None or not trust) and not proofs[-1].gap < FAR * proofs[-1].primal:
            origin = self.xp.zeros(self.dual_shape)  # far from the optimum it may be better
            proofs.append(self.prove(w, b, z, origin, tolerated))
        return min(proofs, key=lambda proof: proof.gap)

    def refined(
        self,
        w: np.ndarray,
        b: Any,
        alpha: np.ndarray,
        accuracy: float,
        tolerated: float,
        rest: np.ndarray | None = None,
        b_low: Any = 0.0,
    ) -> Iterator[tuple[np.ndarray, Proof, np.ndarray | None, Any]]:
        """Yield weights, what is proved of them, and what to add to alpha and to b for it.

        The dual point has twice the digits of alpha: alpha + rest, if the rest is given and alpha
        is feasible with it.  The weights are w, and those that belong to the dual point, which
        differ where few dual variables are between their bounds.
        """
        intercepts = [(b, b_low)]
        if rest is None:
            alpha = self.feasible(alpha)
            rest, intercepts = refinement(self, w, alpha), []
        if rest is not None:  # the same point, of which alpha alone is as much as a double can be
            alpha, rest = exact_sum(alpha, rest)
        u = self.precise_dual_sum_of(alpha)
        u = u if rest is None else u + self.precise_dual_sum_of(rest)
        for v in (w, self.to_weights(u)):
            z = self.scores(v)
            best = self.best_intercept(z, b, accuracy) if self.fit_intercept else 0.0 * b
            for c, low in (*intercepts, (best, 0.0)):
                yield v, self.prove(v, c, z, alpha, tolerated, rest, b_low=low), rest, low

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
        if self.loss.task == "regression":
            target = float(find_shift(self.host(self.y)[:, None])[0])
        if not len(origin) and not target:
            return None, origin, 0.0
        y = self.y - target if target else self.y
        moved = origin if len(origin) else np.zeros(self.shape[1])
        return self._with(rows=rows, y=y, sqnorms=rows.sqnorms, origin=moved), moved, target

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

    def constant_loss(self, b: Any) -> float:
        """Return the mean loss of the model without weights whose intercept is b."""
        return self.mean_loss(self.xp.zeros(self.dual_shape) + b)

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
