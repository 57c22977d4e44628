r"""The optimum of a small problem to 1e-12, by a method that shares nothing with the library.

Losses are restated as `optimum_search` takes them.  The logistic loss is a softmax of the scores 0
and z.  An L1 penalty is one more row per weight, with the absolute loss.  The multiclass hinge
max_k (z_k - z_y + cost_k) is the least nu with nu + z_y - z_k >= cost_k: rows whose dual variables
have no upper end.

What is found is proved by the gap P(w, b) - D(a), computed from the definitions in extended
precision: |w - w*| <= radius = sqrt(2 gap / mu), mu the strong convexity of P.  The intercept b is
the best for scores that are `slip` off at most from those of w, hence |x_i| radius + slip off at
most from those of w*.  Slopes rise with scores, so that some best b* for w* is no further from b
than that; with many classes, neither are the differences that follow one another when b* - b is
sorted: beyond a larger one, all classes would get more votes than b* gives them.
"""

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from optimum_search import Rows, Soft, Task, minimise

ENOUGH = 1e-12  # gap, relative to the objective
NOTHING = 1e-30  # gap where the optimum is zero
SOFT = ("logistic", "softmax")
JOINT = ("multiclass-hinge", "softmax")
MARGIN = ("hinge", "smooth-hinge", "squared-hinge", "logistic")

# phi*(-a) = -a y + kappa a^2 / 2 + tube |a|, where low <= a <= high (a y, if of the margin)
CONJUGATES = {
    "hinge": (0.0, 1.0, 0.0, 0.0),
    "smooth-hinge": (0.0, 1.0, 1.0, 0.0),
    "squared-hinge": (0.0, np.inf, 0.5, 0.0),
    "squared": (-np.inf, np.inf, 1.0, 0.0),
    "absolute": (-1.0, 1.0, 0.0, 0.0),
    "epsilon-insensitive": (-1.0, 1.0, 0.0, 0.1),
    "huber": (-1.35, 1.35, 1.0, 0.0),
    "quantile": (-0.5, 0.5, 0.0, 0.0),
}


def value(loss, z, y):
    """Return phi(z; y) of a loss with a conjugate above."""
    short, far = np.maximum(0.0, 1.0 - y * z), np.abs(z - y)
    return {
        "hinge": short,
        "smooth-hinge": np.where(short < 1.0, short**2 / 2, short - 0.5),
        "squared-hinge": short**2,
        "squared": far**2 / 2,
        "absolute": far,
        "epsilon-insensitive": np.maximum(0.0, far - 0.1),
        "huber": np.where(far <= 1.35, far**2 / 2, 1.35 * (far - 1.35 / 2)),
        "quantile": far / 2,
    }[loss]


@dataclass(frozen=True)
class Optimum:
    """Weights of shape (outputs, features) and intercepts, and how far the optimum's may be."""

    w: np.ndarray
    b: np.ndarray
    primal: float
    gap: float
    radius: float
    shift: float  # of the intercept; of the difference of two, if there are many

    def scores(self, X):
        """Return the scores of dense rows, and how far those of an optimum may be from them."""
        away = np.linalg.norm(X, axis=1)[:, None] * self.radius
        if len(self.w) == 1:
            return X @ self.w.T + self.b, away + self.shift
        # differences of scores are what counts: each of the two gets half of the doubt
        return X @ self.w.T + self.b, 0.5 * (np.sqrt(2.0) * away + self.shift)


@dataclass(frozen=True)
class Case:
    """A problem: rows with positive weights c, of sum one."""

    X: np.ndarray
    y: np.ndarray
    c: np.ndarray
    loss: str
    lam: float
    fit_intercept: bool
    l1_ratio: float

    @property
    def hot(self):
        """One in the column of a row's class."""
        if self.loss == "logistic":
            return np.column_stack([self.y < 0, self.y > 0]).astype(float)
        return np.eye(int(self.y.max()) + 1)[self.y.astype(int)]

    def task(self, outputs):
        """Return the problem as `optimum_search` takes it."""
        (n, d), soft = self.X.shape, None
        features = np.column_stack([self.X, np.ones(n)]) if self.fit_intercept else self.X
        scores = np.einsum("kl,ij->iklj", np.eye(outputs), features).reshape(n, outputs, -1)
        ridge = np.tile(
            self.lam * (1.0 - self.l1_ratio) * (np.arange(features.shape[1]) < d), outputs
        )
        slope = np.zeros(len(ridge))
        if self.loss in SOFT:
            none = np.zeros((n, int(self.loss == "logistic"), len(ridge)))  # the score of -1
            soft = Soft(np.hstack([none, scores]), self.c, self.hot)
            rows = make_rows(np.empty((0, len(ridge))))
        elif self.loss in JOINT:
            own = (self.hot[:, :, None] * scores).sum(axis=1, keepdims=True)
            tops = np.repeat(np.eye(n), outputs, axis=0)
            R = np.hstack([(own - scores).reshape(n * outputs, -1), tops])
            c, t = np.repeat(self.c, outputs), 1.0 - self.hot.ravel()
            rows = make_rows(R, c, t, 0.0, 0.0, np.inf)
            ridge, slope = np.append(ridge, np.zeros(n)), np.append(slope, self.c)
        else:
            rows = self.plain_rows(features)
        if self.l1_ratio:
            rows = join(rows, make_rows(np.eye(len(ridge))[ridge > 0], self.lam * self.l1_ratio))
        # of many intercepts only the differences matter: the first one stays
        pin = np.arange(len(ridge)) == (d if outputs > 1 and self.fit_intercept else -1)
        return Task(ridge, slope, rows, soft, pin.astype(float))

    def plain_rows(self, features):
        """Return the rows of a loss of one score."""
        (low, high, kappa, tube), y = CONJUGATES[self.loss], self.y
        if tube:  # a tube has two sides, exactly where `value` has them
            y = y.astype(np.longdouble)
            above = make_rows(features, self.c, y - tube, kappa, 0.0, high)
            return join(above, make_rows(features, self.c, y + tube, kappa, low, 0.0))
        if self.loss in MARGIN:
            low, high = np.where(y > 0, low, -high), np.where(y > 0, high, -low)
        return make_rows(features, self.c, y, kappa, low, high)

    def prove(self, w, b, a):
        """Return P(w, b) and the gap, from definitions; soft rows have their own a."""
        X, y, c, w, b, a = (np.asarray(x, np.longdouble) for x in (self.X, self.y, self.c, w, b, a))
        z, r = X @ w.T + b, np.longdouble(self.l1_ratio)
        if self.loss in SOFT:
            s = np.hstack([np.zeros_like(z), z]) if self.loss == "logistic" else z
            top = s.max(axis=1, keepdims=True)
            top = top + np.log(np.exp(s - top).sum(axis=1, keepdims=True))
            p = np.exp(s - top)
            losses, conjugates = self.hot * (top - s), p * np.log(p)
            a = (self.hot - p)[:, -z.shape[1] :]
        elif self.loss in JOINT:
            p = a.reshape(z.shape) / a.reshape(z.shape).sum(axis=1, keepdims=True)
            top = (z + 1.0 - self.hot).max(axis=1, keepdims=True)
            losses, conjugates = self.hot * (top - z), self.hot * (p - 1.0)
            a = self.hot - p
        else:
            _, _, kappa, tube = CONJUGATES[self.loss]
            a, y = a.reshape(-1, len(X)).sum(axis=0)[:, None], y[:, None]  # both sides of a tube
            losses = value(self.loss, z, y)
            conjugates = -a * y + kappa * a**2 / 2 + tube * np.abs(a)
        u = a.T @ (c[:, None] * X) / self.lam
        penalty = ((1 - r) / 2 * w**2 + r * np.abs(w)).sum()
        opposite = (np.maximum(0, np.abs(u) - r) ** 2).sum() / (2 * (1 - r))
        primal = c @ losses.sum(axis=1) + self.lam * penalty
        gap = primal + c @ conjugates.sum(axis=1) + self.lam * opposite
        if self.fit_intercept:  # sums that are not quite zero, for intercepts near b
            gap += np.abs(c @ a) @ (1 + np.abs(b))
        return float(primal), float(abs(gap) + 1e-18 * primal)

    def solve(self, accuracy, polished=True):
        """Return the optimum, as good as ends told apart to `accuracy` make it."""
        d, outputs = self.X.shape[1], self.hot.shape[1] if self.loss in JOINT else 1
        task = self.task(outputs)
        theta, a = minimise(task, accuracy, polished)
        model = theta[: outputs * (d + self.fit_intercept)].reshape(outputs, -1)
        w, b = model[:, :d], model[:, d] if self.fit_intercept else np.zeros(outputs)
        primal, gap = self.prove(w, b, a[: len(a) - bool(self.l1_ratio) * w.size])
        radius = float(np.sqrt(2.0 * gap / (self.lam * (1.0 - self.l1_ratio))))
        shift = np.linalg.norm(self.X, axis=1).max() * radius + task.slip(theta, a)
        shift *= 2.0 * (outputs - 1) if outputs > 1 else 1.0
        return Optimum(w, b, primal, gap, radius, shift if self.fit_intercept else 0.0)


def make_rows(R, c=0.0, t=0.0, kappa=0.0, low=-1.0, high=1.0):
    """Return rows with these numbers for all, or one for each."""
    return Rows(R, *(np.broadcast_to(x, len(R)) + 0.0 for x in (c, t, kappa, low, high)))


def join(*parts):
    return Rows(*map(np.concatenate, zip(*parts, strict=True)))


def optimum(X, y, loss, lam=None, weights=None, fit_intercept=False, l1_ratio=0.0):
    """Return the optimum of a problem as `zerogap.Problem` takes it, or raise ArithmeticError."""
    X = X.toarray() if sparse.issparse(X) else np.asarray(X, float)
    weights = np.ones(len(X)) if weights is None else weights
    total, kept = weights.sum(), weights > 0
    lam = 1.0 / total if lam is None else lam
    case = Case(X[kept], y[kept], weights[kept] / total, loss, lam, fit_intercept, l1_ratio)
    left = "no system of equations could be solved"
    # where ends cannot be told apart, because too many rows are at one, nothing is to be polished
    for accuracy, polished in ((1e-11, True), (1e-13, True), (1e-9, True), (1e-15, False)):
        try:
            found = case.solve(accuracy, polished)
        except np.linalg.LinAlgError:  # rows were told to be at an end, or free, that are not
            continue
        if found.gap <= max(ENOUGH * found.primal, NOTHING):
            return found
        left = f"a relative gap of {found.gap / found.primal:.1e} is left"
    where = f"{loss}, {X.shape}, lam={lam:g}, l1_ratio={l1_ratio:g}, fit_intercept={fit_intercept}"
    raise ArithmeticError(f"{left}: {where}")
