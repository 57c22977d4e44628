"""Balance flows between classes: make the inflow and the outflow of each class equal."""

from __future__ import annotations

import math

import numpy as np

ROUNDING_OF_SUMS = 1e-13  # relative difference of in- and outflow that counts as rounding
# The votes of a class are dropped if they are less than HARDLY_ANY of all, and the share UNEVEN of
# them is not balanced
HARDLY_ANY = 1e-12
UNEVEN = 1e-6
NEARLY_EVEN = 0.1  # relative difference of in- and outflow below which Newton's method converges
# Share of the diagonal that is added to it: the equations leave a common factor undetermined
_RIDGE_OF_FACTORS = 1e-13
_LEAST_KEPT = 0.9  # share of the flow that must be left; else a linear program is solved


def balancing_factors(flow: np.ndarray, largest: bool = True) -> np.ndarray:
    """Return factors in [0, 1] that turn a matrix of flows into one with equal in- and outflows.

    If the flows are nearly balanced, as they are near an optimum, a diagonal similarity finds the
    factors.  If that fails or loses much of the flow, a linear program finds the largest
    circulation; it takes milliseconds, and `largest=False` leaves it out.
    """
    circling = np.where(_is_on_cycles(flow), flow, 0.0)  # no other flow can be balanced
    circling = _without_noise(circling)
    if is_balanced(circling):
        return (circling > 0.0) * 1.0
    best = circling * _similarity_factors(circling)
    if not _is_circulation(best) or best.sum() < _LEAST_KEPT * circling.sum():
        # a linear program has some ten right digits; sums of cycles are balanced exactly
        flows = (_largest_circulation(circling), circling) if largest else (circling,)
        of_cycles = max(map(_sum_of_cycles, flows), key=np.sum)
        if not _is_circulation(best) or of_cycles.sum() > best.sum():
            best = of_cycles
    return np.minimum(np.divide(best, flow, out=np.zeros_like(flow), where=flow > 0), 1.0)


def is_balanced(flow: np.ndarray) -> bool:
    """Tell whether in- and outflows of each class are equal up to rounding."""
    into, out = flow.sum(axis=0), flow.sum(axis=1)
    return bool(np.all(np.abs(out - into) <= ROUNDING_OF_SUMS * (out + into)))


def _without_noise(flow: np.ndarray) -> np.ndarray:
    """Return the flows without classes whose flows are tiny and far from balanced.

    The rows of such a class are decided: the remaining votes are rounding errors.  Balancing them
    would scale other flows down, dropping them costs nothing that shows.
    """
    flow = flow.copy()
    for _ in range(len(flow)):
        into, out = flow.sum(axis=0), flow.sum(axis=1)
        noise = (out + into <= HARDLY_ANY * flow.sum()) & (
            np.abs(out - into) > UNEVEN * (out + into)
        )
        if not noise.any():
            break
        flow[noise] = flow[:, noise] = 0.0
    return flow


def _is_circulation(flow: np.ndarray) -> bool:
    """Tell whether in- and outflows are equal up to rounding."""
    return bool(np.abs(flow.sum(axis=1) - flow.sum(axis=0)).max() <= 1e-14 * flow.sum())


def _is_on_cycles(flow: np.ndarray) -> np.ndarray:
    """Tell for each pair of classes whether there is a flow, and a way back."""
    there = flow > 0
    if (there | np.eye(len(flow), dtype=bool)).all():  # near an optimum, as a rule
        return there
    from scipy.sparse import csgraph

    _, part = csgraph.connected_components(there, connection="strong")
    return there & (part[:, None] == part)


def _similarity_factors(flow: np.ndarray) -> np.ndarray:
    """Balance a matrix by a diagonal similarity, if that is possible: it minimises its sum.

    Sweeps over the classes (Osborne, 1960) approach it, and where in- and outflows hardly differ
    Newton's method on the logarithms of the scale ends there.
    """
    scale = np.ones(len(flow))
    for _ in range(200):
        flows = flow * scale[:, None] / scale
        out, into = flows.sum(axis=1), flows.sum(axis=0)
        missing, through = out - into, out + into
        if np.abs(missing).max() <= 1e-15 * out.sum():
            break
        if np.all(np.abs(missing) <= NEARLY_EVEN * through):
            bends = -flows - flows.T
            np.fill_diagonal(
                bends, np.where(through > 0.0, through, 1.0) * (1.0 + _RIDGE_OF_FACTORS)
            )
            scale *= np.exp(np.clip(np.linalg.solve(bends, -missing), -1.0, 1.0))
        else:
            _sweep(flow, scale)
    factors = np.where(flow > 0, scale[:, None] / scale, 0.0)
    top = factors.max()
    return factors / top if top > 0 else factors


def _sweep(flow: np.ndarray, scale: np.ndarray) -> None:
    """Make the in- and outflow of one class after another equal, in place."""
    columns = np.ascontiguousarray(flow.T)
    for k in range(len(flow)):
        out, into = scale[k] * (flow[k] @ (1.0 / scale)), columns[k] @ scale / scale[k]
        if out > 0.0 and into > 0.0:
            scale[k] *= math.sqrt(into / out)


def _largest_circulation(flow: np.ndarray) -> np.ndarray:
    """Return the flows f <= flow with equal in- and outflows and the largest sum."""
    from scipy import optimize, sparse

    sources, sinks = np.nonzero(flow)
    if not len(sources):
        return np.zeros_like(flow)
    places = np.arange(len(sources))
    ends = np.concatenate([sources, sinks]), np.concatenate([places, places])
    signs = np.repeat([1.0, -1.0], len(sources))
    conservation = sparse.csr_matrix((signs, ends), (len(flow), len(sources)))
    limits, unit = flow[sources, sinks], float(flow.max())
    bounds = np.column_stack([np.zeros(len(limits)), limits / unit])
    zeros = np.zeros(len(flow))
    found = optimize.linprog(-np.ones(len(limits)), A_eq=conservation, b_eq=zeros, bounds=bounds)
    best = np.zeros_like(flow)
    if found.status == 0:
        best[sources, sinks] = np.clip(unit * found.x, 0.0, limits)
    return best


def _sum_of_cycles(flow: np.ndarray) -> np.ndarray:
    """Return a circulation below a matrix of flows, which follows the largest flows around."""
    rest, total = flow.copy(), np.zeros_like(flow)
    while rest.any():
        at = int(np.argmax(rest.max(axis=1)))
        path = [at]
        while rest[at].any():
            at = int(np.argmax(rest[at]))
            if at in path:
                ring = path[path.index(at) :]
                steps = (ring, [*ring[1:], ring[0]])
                least = rest[steps].min()
                total[steps] += least
                rest[steps] -= least  # which is zero for one of them
                break
            path.append(at)
        else:
            rest[:, at] = 0.0  # no way out of this class
    return total
