"""The steps of dual coordinate ascent: the loops that take the time."""

from __future__ import annotations

import numpy as np

from zerogap.kernels.instructions import prefetch
from zerogap.kernels.jit import kernel
from zerogap.rows import CLASSES

_ROWS_AHEAD = 16  # rows between asking for one and using it


@kernel
def sdca_steps(
    problem, rows, slots, order, moved, alpha, u, bias, rho, relax, trace, age, weighted, watch
):
    """Maximise the dual over alpha_i alone, exactly, for each i in `order` (Procedure SDCA).

    Relaxed, a step is that of a curvature divided by `relax`: too long, but it raises the dual.
    Keeps u = u(alpha) and bias = (b, mean(alpha)) with b = centre + rho mean(alpha).  The rows may
    be a copy of those to visit: that of i = order[k] is number slots[k].  moved[k] tells whether
    alpha_i has changed.  Returns, if it is to watch, what rows added to the gap when visited.
    """
    loss, penalty = problem.loss, problem.penalty
    excess = 0.0
    curvature = 1.0 / (problem.lam * penalty.convexity())
    averaging = len(trace) > 0
    last = len(order) - 1
    for k in range(len(order)):
        # Random order defeats the processor's own guesses; told ahead, it hides memory's latency
        soon = order[min(k + 2 * _ROWS_AHEAD, last)]
        rows.hint(slots[min(k + 2 * _ROWS_AHEAD, last)])
        prefetch(alpha, soon)
        prefetch(problem.y, soon)
        prefetch(problem.share, soon)
        prefetch(problem.sqnorms, soon)
        rows.fetch(slots[min(k + _ROWS_AHEAD, last)])

        i = order[k]
        s = problem.share[i]
        z = rows.dot(slots[k], u, penalty) + bias[0]
        if watch:
            excess += s * max(0.0, loss.excess(alpha[i], z, problem.y[i]))
        q = s * (problem.sqnorms[i] * curvature + rho) / relax
        step = loss.dual_step(alpha[i], problem.y[i], z, q)
        moved[k] = step != 0.0
        if moved[k]:  # saves a quarter of a hinge epoch
            alpha[i] += step
            rows.add_to(u, slots[k], s * step / problem.lam)
            bias[1] += s * step
            bias[0] += rho * s * step
            if averaging:
                missed = age + k  # iterates that do not have this step
                trace[i] += step * (0.5 * missed * (missed + 1) if weighted else missed)
    return excess


@kernel
def block_steps(
    problem, rows, slots, order, moved, alpha, u, w, bias, rho, relax, trace, age, weighted
):
    """Maximise the dual over the vector alpha_i alone for each i in `order`, as `sdca_steps`.

    u and w = to_primal(u), which are one array for L2, list the classes of feature after feature.
    Returns what the rows added to the gap when they were visited.
    """
    loss, penalty = problem.loss, problem.penalty
    excess = 0.0
    curvature = 1.0 / (problem.lam * penalty.convexity())
    averaging = len(trace) > 0
    C, last = alpha.shape[1], len(order) - 1
    padded = (C + CLASSES - 1) // CLASSES * CLASSES
    scores, step = np.empty(padded), np.empty(padded)
    p, new, z = np.empty(C), np.empty(C), scores[:C]
    for c in range(padded):
        step[c] = 0.0
    for k in range(len(order)):
        rows.hint(slots[min(k + 2 * _ROWS_AHEAD, last)])
        rows.fetch(slots[min(k + _ROWS_AHEAD, last)])

        i = order[k]
        s, y = problem.share[i], problem.y[i]
        for c in range(padded):
            scores[c] = 0.0
        rows.add_scores(scores, slots[k], w)
        for c in range(C):
            z[c] += bias[0, c]
            p[c] = (c == y) - alpha[i, c]
        q = s * (problem.sqnorms[i] * curvature + rho) / relax
        moved[k] = False
        if not loss.block_step(p, z, y, q, new):
            continue
        excess += s * loss.vector_excess(p, z, y)
        for c in range(C):
            change = p[c] - new[c]
            if change != 0.0:
                moved[k] = True
                alpha[i, c] += change
                bias[1, c] += s * change
                bias[0, c] += rho * s * change
                if averaging:
                    missed = age + k
                    trace[i, c] += change * (0.5 * missed * (missed + 1) if weighted else missed)
            step[c] = s * change / problem.lam
        if moved[k]:
            rows.add_outer(u, w, slots[k], step, penalty)
    return excess


@kernel
def modified_sgd(problem, order, alpha, u, bias, rho, mass, trace, age, weighted):
    """First epoch of "SDCA with modified-SGD initialisation": row t is the last of a t-row problem.

    `mass` is the share of the rows seen before; u is kept as the dual sum of the whole problem,
    so that u / mass is the iterate of the rows seen so far and the hand-over to SDCA is exact.
    """
    rows, loss = problem.rows, problem.loss
    averaging = len(trace) > 0
    for k in range(len(order)):
        i = order[k]
        s = problem.share[i]
        if s > 0.0:
            z = bias[0] + (rows.dot(i, u, problem.penalty) / mass if mass > 0.0 else 0.0)
            mass += s
            q = s * (problem.sqnorms[i] / problem.lam + rho) / mass
            step = loss.dual_step(0.0, problem.y[i], z, q)
            alpha[i] = step
            rows.add_to(u, i, s * step / problem.lam)
            bias[1] += s * step
            if averaging:
                missed = age + k  # iterates that do not have this step
                trace[i] += step * (0.5 * missed * (missed + 1) if weighted else missed)
    return mass
