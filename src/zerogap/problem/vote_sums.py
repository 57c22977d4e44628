"""Loops over rows with a score vector each: what `MulticlassProblem` adds up."""

from __future__ import annotations

from zerogap.kernels.jit import kernel, rowwise


@kernel
def set_scores(rows, W, z, padded, start, stop):
    """z_i = W x_i"""
    for i in range(start, stop):
        for k in range(len(padded)):
            padded[k] = 0.0
        rows.add_scores(padded, i, W)
        for k in range(z.shape[1]):
            z[i, k] = padded[k]


@kernel
def add_rows(rows, c, u, padded, identity, start, stop):
    """u += sum_i c_i x_i'"""
    for i in range(start, stop):
        moved = False
        for k in range(c.shape[1]):
            padded[k] = c[i, k]
            moved = moved or c[i, k] != 0.0
        if moved:
            rows.add_outer(u, u, i, padded, identity)


@rowwise(sums=0)
def normalise(p, start, stop):
    """Move rows of p into the simplex, as those that left it by rounding alone need"""
    for i in range(start, stop):
        total = 0.0
        for k in range(p.shape[1]):
            p[i, k] = max(p[i, k], 0.0)
            total += p[i, k]
        for k in range(p.shape[1]):
            p[i, k] /= total


@rowwise(sums=0)
def set_complements(y, alpha, p, start, stop):
    """p_i = e_y - alpha_i"""
    for i in range(start, stop):
        for k in range(p.shape[1]):
            p[i, k] = -alpha[i, k]
        p[i, y[i]] += 1.0


@rowwise(sums=0)
def set_duals(y, p, alpha, start, stop):
    """alpha_i = e_y - p_i, whose own class has the sum of the other votes"""
    for i in range(start, stop):
        others = 0.0
        for k in range(p.shape[1]):
            alpha[i, k] = -p[i, k]
            others += p[i, k] if k != y[i] else 0.0
        alpha[i, y[i]] = min(others, 1.0)


@rowwise(sums=1)
def sum_values(loss, y, share, z, start, stop):
    """sum_i share_i phi(z_i)"""
    total = 0.0
    for i in range(start, stop):
        total += share[i] * loss.vector_value(z[i], y[i])
    return total


@rowwise(sums=1)
def sum_vote_conjugates(loss, y, share, p, start, stop):
    """sum_i share_i phi*(-alpha_i) for votes p_i"""
    total = 0.0
    for i in range(start, stop):
        total += share[i] * loss.vector_conjugate(p[i], y[i])
    return total


@rowwise(sums=0)
def set_votes(loss, y, z, p, start, stop):
    """Fill p with the votes that belong to the scores z"""
    for i in range(start, stop):
        loss.votes(z[i], y[i], p[i])


@kernel
def add_votes(y, share, alpha, flow):
    """Add the votes of each class for each other class"""
    for i in range(len(y)):
        for k in range(alpha.shape[1]):
            if k != y[i]:
                flow[y[i], k] -= share[i] * alpha[i, k]


@rowwise(sums=5)
def sum_row_terms(loss, y, share, p, z, start, stop):
    """The sums of `gap.Terms` except for the balance: a_y is the sum of the other votes"""
    value, excess, mass, energy, cross = 0.0, 0.0, 0.0, 0.0, 0.0
    for i in range(start, stop):
        if share[i] > 0.0:
            value += share[i] * loss.vector_value(z[i], y[i])
            others, squares = 0.0, 0.0
            for k in range(z.shape[1]):
                value += 0.0 * z[i, k]  # which must be finite
                if k != y[i]:
                    others += p[i, k]
                    squares += p[i, k] * p[i, k]
                    cross += share[i] * abs(p[i, k] * (z[i, k] - z[i, y[i]]))
            mass += 2.0 * share[i] * others
            energy += share[i] * (others * others + squares)
            term = loss.vector_excess(p[i], z[i], y[i])
            excess += share[i] * term if not term < 0.0 else 0.0
    return value, excess, mass, energy, cross


@rowwise(sums=2)
def sum_outward_terms(loss, y, share, p, z, doubt, start, stop):
    """How far the losses may be off, and their part of the gap, where scores are off by doubt"""
    off, excess = 0.0, 0.0
    for i in range(start, stop):
        if share[i] > 0.0:
            lost, worst = loss.within(p[i], z[i], y[i], doubt[i])
            off += share[i] * lost
            excess += share[i] * worst
    return off, excess


@rowwise(sums=0)
def set_row_gaps(loss, y, share, p, z, gaps, start, stop):
    """Fill gaps with what each row adds to the gap"""
    for i in range(start, stop):
        gaps[i] = share[i] * loss.vector_excess(p[i], z[i], y[i])
