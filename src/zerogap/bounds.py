"""A-priori bounds: how many updates suffice, known before anything has been run.

They are worst cases over all data; a certificate usually stops a run after a fraction of them.

References: S. Shalev-Shwartz and T. Zhang, "Stochastic dual coordinate ascent methods for
regularized loss minimization", JMLR 14, 2013.  S. Shalev-Shwartz, Y. Singer, N. Srebro and
A. Cotter, "Pegasos: primal estimated sub-gradient solver for SVM", Mathematical Programming, 2011.
"""

from __future__ import annotations

import bisect
import functools
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from numbers import Integral, Real
from typing import Any

import numpy as np

_SDCA = (
    "{} loss, phi >= 0, mean phi(0) <= {:g}; |x_i| <= {:g}; L2 penalty, no intercept, equal "
    "weights; rows drawn uniformly with replacement; alpha = 0 at the start; exact dual steps"
)
_PEGASOS = (
    "hinge loss; |x_i| <= {:g}; L2 penalty, no intercept; w_1 = 0, step 1/(lam t), {} projection; "
    "average of, or random choice from, w_1..w_T; mini-batches drawn uniformly from all rows"
)

__all__ = ["Bound", "pegasos", "sdca"]


@dataclass(frozen=True)
class Bound:
    """A number of updates and what is proved after them.

    Attributes
    ----------
    iterations : int
        T, the number of updates.
    error : float
        Bound of the duality gap (SDCA) or of P(w) - min P (Pegasos) after T updates.
    t0 : int or None
        Updates before averaging or drawing begins; None for the last iterate.
    epochs : float or None
        T divided by the number of rows, where that is known.
    probability : float or None
        Of the error being that small; None if it holds in expectation.
    assumptions : str
        What the proof assumes.
    curve : callable
        The bound after any numbers T of updates, to draw beside a run; NaN where nothing is proved.
        For SDCA it is curve(T, t0), with half of T as default of t0.
    """

    iterations: int
    error: float
    t0: int | None
    epochs: float | None
    probability: float | None
    assumptions: str
    curve: Callable[..., Any] = field(repr=False, compare=False)


def sdca(
    n_samples: int,
    lam: float,
    eps: float,
    *,
    loss: Any = None,
    lipschitz: float | None = None,
    gamma: float | None = None,
    radius: float = 1.0,
    initial: float = 1.0,
    theorem: str = "auto",
    output: str = "average",
    sharp: bool = False,
) -> Bound:
    """Return how many updates of SDCA make the expected duality gap at most `eps`.

    Shalev-Shwartz & Zhang (2013), for rows of any norm and with counts rounded up::

        L-Lipschitz     T = t_0 + n + 5 G / (lam eps),  T_0 = t_0 + 4 G / (lam eps),
                        t_0 = max(0, n log(2 lam n initial / G)),  G = 4 (L radius)^2
        1/gamma-smooth  T = a log(a initial / eps),  a = n + radius^2 / (lam gamma)      (last)
                        T = T_0 + k,  T_0 = a log(a initial / (k eps))    (average or random)

    If radius = initial = 1, the first T is max(0, n log(lam n / (2 L^2))) + n + 20 L^2 / (lam eps).
    In the last line k = a makes T smallest, or k = a initial / eps with T_0 = 0 if eps > initial.

    Parameters
    ----------
    n_samples, lam, eps : int, float, float
        Number of rows, regularisation, duality gap to reach.
    loss, lipschitz, gamma : str or Loss, float, float
        The loss, by default the hinge, or instead of it L, gamma or both.
    radius, initial : float
        Bounds of |x_i|, or of their root mean square for the Lipschitz case, and of the mean of
        phi(0; y_i), which is at most 1 in classification and a matter of scale in regression.
    theorem : "auto", "lipschitz" or "smooth"
        Which one to use for a loss that is both; "auto" takes the smaller T.
    output : "average", "random" or "last"
        The average of the iterates after T_0, a random one of them, or the last (smooth losses).
    sharp : bool
        Replace 2 L in G by the width of the interval that the dual variables are confined to.  It
        is 1 for the hinge: T = max(0, n log(2 lam n / radius^2)) + n + 5 radius^2 / (lam eps).

    Returns
    -------
    Bound
        Numbers of updates, and what is proved after them.

    Examples
    --------
    >>> import zerogap as zg
    >>> zg.bounds.sdca(452, lam=0.1, eps=1e-3).iterations
    201862
    >>> zg.bounds.sdca(452, lam=0.1, eps=1e-3, loss="logistic", output="last").iterations
    5921
    """
    _positive(lam=lam, eps=eps, radius=radius, initial=initial)
    _positive(Integral, n_samples=n_samples)
    _choose("theorem", theorem, "auto", "lipschitz", "smooth")
    _choose("output", output, "average", "random", "last")
    n, last = int(n_samples), output == "last"
    L, smoothness, width = _constants(loss, lipschitz, gamma)
    slope = radius * (width if sharp else 2.0 * L)
    G = math.inf if last or theorem == "smooth" else max(slope * slope, 1e-300)
    a = math.inf if theorem == "lipschitz" else n + radius / lam * radius * smoothness
    wait, found = 0, list[tuple[int, int | None, str]]()
    if math.isfinite(G):
        wait = max(0, _ceil(n * math.log(2.0 * lam * n * initial / G)))
        x = G / lam / eps
        found.append((wait + n + _ceil(5.0 * x), wait + _ceil(4.0 * x), "Lipschitz"))
    if math.isfinite(a):
        k = 1 if last else max(1, _ceil(min(a, a * initial / eps)))
        t0 = max(0, _ceil(a * math.log(a * initial / (k * eps))))
        found.append((max(1, t0), None, "smooth") if last else (t0 + k, t0, "smooth"))
    if not found:
        raise ValueError(
            f"no finite bound by {theorem=} for {output=} and a loss that is {L:g}-Lipschitz and "
            f"{smoothness:g}-smooth: try theorem='auto' and output='average'"
        )
    T, first, kind = min(found, key=lambda bound: bound[0])
    curve = functools.partial(_sdca_error, constants=(n, lam, G, wait, a, initial, last))
    return Bound(T, float(eps), first, T / n, None, _SDCA.format(kind, initial, radius), curve)


def pegasos(
    lam: float,
    eps: float | None = None,
    *,
    n_iterations: int | None = None,
    radius: float = 1.0,
    projection: bool = True,
    kind: str = "average",
    delta: float | None = None,
) -> Bound:
    """Return how many updates T of Pegasos bring P(w) - min P to `eps`, or the bound after T.

    Shalev-Shwartz et al. (2011): with c = (sqrt(lam) + radius)^2, or c = 4 radius^2 without the
    projection onto the ball of radius 1/sqrt(lam), P(w) - min P is at most::

        "average", "random"        c (1 + ln T) / (2 lam T)        in expectation
        the same with delta        c (1 + ln T) / (2 delta lam T)  with probability 1 - delta
        "high-probability"         21 c ln(T / delta) / (lam T)    with probability 1 - delta
        "high-probability-random"  42 c ln(T / delta) / (lam T)    ... (1 - delta) / 2

    for the average or, with "random" in its name, a random one of the iterates; not for the last.
    The first line, from which the published c ln T / (lam T), T >= 3, follows, holds for the
    average without expectation if every update uses all rows.

    Parameters
    ----------
    lam, eps, n_iterations : float, float, int
        Regularisation, and either the error to reach or T.
    radius, projection : float, bool
        Bound of |x_i|, and whether iterates are projected.
    kind, delta : str, float
        The line of the table, and its delta in (0, 1).  Lines 3 and 4 need T >= 3 and lam <=
        radius^2 / 4.  That is the paper's radius >= 1 and lam <= 1/4 up to scale: rows s x with
        s^2 lam give the iterates w / s, and a suitable s exists if lam <= radius^2 / 4.

    Returns
    -------
    Bound
        Numbers of updates, and what is proved after them.

    Examples
    --------
    >>> import zerogap as zg
    >>> zg.bounds.pegasos(lam=0.1, eps=0.01).iterations
    8727
    """
    _positive(lam=lam, radius=radius)
    _choose("kind", kind, "average", "random", "high-probability", "high-probability-random")
    if (eps is None) == (n_iterations is None):
        raise ValueError(f"give either eps or n_iterations, got {eps!r} and {n_iterations!r}")
    strong, attempts = kind.startswith("high"), 2 if kind == "high-probability-random" else 1
    if strong or delta is not None:
        _positive(Real, 1.0, delta=delta)
    if strong and 4.0 * lam > radius * radius:
        raise ValueError(f"{kind=} needs lam <= radius^2 / 4, not {lam=}, {radius=}: use 'average'")
    G, fail = math.sqrt(lam) + radius if projection else 2.0 * radius, float(delta or 1.0)
    factor, p, least = (21.0 * attempts, -math.log(fail), 3) if strong else (0.5 / fail, 1.0, 1)
    curve = functools.partial(_pegasos_error, constants=(factor * G / lam * G, p, least))
    T: Any = n_iterations
    if eps is not None:
        _positive(eps=eps)
        high = least
        while not curve(high) <= eps:
            high = _ceil(2.0 * high)
        T = bisect.bisect_left(range(high), True, least, key=lambda t: curve(t) <= eps)
    _positive(Integral, n_iterations=T)
    if least > T:
        raise ValueError(f"n_iterations must be at least {least} for kind={kind!r}, got {T!r}")
    sure, how = (1.0 - fail) / attempts if delta else None, "with" if projection else "without"
    return Bound(int(T), float(curve(T)), 0, None, sure, _PEGASOS.format(radius, how), curve)


def _sdca_error(t: Any, t0: Any = None, *, constants: tuple[Any, ...]) -> Any:
    """The inequalities behind the theorems, with k = T - T_0 and dual sub-optimality E:

    n / (s k) E(T_0) + s G / (2 lam n), s = min(1, n / k), and a E(T_0) / k for smooth losses.
    """
    n, lam, G, wait, a, initial, last = constants
    t = np.asarray(t, dtype=float)
    if last:
        return (a * initial * np.exp(-t / a))[()]
    first = t // 2 if t0 is None else np.asarray(t0, dtype=float)
    k = np.where(t > first, t - first, np.nan)
    gap = a * initial * np.exp(-first / a) / k if math.isfinite(a) else np.full(k.shape, np.inf)
    if math.isfinite(G):
        s, noise = np.minimum(1.0, n / k), 0.5 * G / lam / n
        late = 4.0 * n * noise / (2 * n + np.maximum(0.0, first - wait))
        dual = np.where(first < wait, initial * np.exp(-first / n) + noise, late)
        gap = np.minimum(gap, n / (s * k) * np.minimum(initial, dual) + s * noise)
    return gap[()]


def _pegasos_error(t: Any, *, constants: tuple[float, ...]) -> Any:
    scale, p, least = constants
    t = np.where(np.asarray(t) >= least, t, np.nan)
    return (scale * (p + np.log(t)) / t)[()]


def _constants(loss: Any, lipschitz: Any, gamma: Any) -> tuple[float, float, float]:
    """Return the Lipschitz constants of phi and of phi', and the width of the dual domain."""
    if lipschitz is None and gamma is None:
        from zerogap.losses import as_loss  # here, because it brings Numba

        loss = as_loss("hinge" if loss is None else loss)
        low, high = loss.domain(1.0)
        return loss.lipschitz, loss.smoothness, high - low
    if loss is not None:
        raise ValueError(f"give loss or its constants, got {loss!r}, {lipschitz=} and {gamma=}")
    _positive(lipschitz=1 if lipschitz is None else lipschitz, gamma=1 if gamma is None else gamma)
    L = math.inf if lipschitz is None else lipschitz
    return L, math.inf if gamma is None else 1.0 / gamma, 2.0 * L


def _positive(kind: Any = Real, below: float = math.inf, **values: Any) -> None:
    for name, value in values.items():
        if not isinstance(value, kind) or isinstance(value, bool) or not 0 < value < below:
            what = "integer" if kind is Integral else "number"
            raise ValueError(f"{name} must be a positive {what} below {below:g}, got {value!r}")


def _choose(name: str, value: str, *choices: str) -> None:
    if value not in choices:
        raise ValueError(f"{name} must be one of {choices}, got {value!r}")


def _ceil(x: float) -> int:
    if not x < 2**52:
        raise ValueError("the bound exceeds 10^15 updates: increase lam or eps, or shrink radius")
    return math.ceil(x)
