"""Losses phi(z; y) of a score vector z, one score per class, and a class y = 0, 1, ..., C - 1.

The dual variables of a row are a vector a = e_y - p with p in the simplex: p is the mixture of
classes that the row votes for, -a is a sub-gradient, and the conjugate is taken at -a as for the
other losses.  Methods work in place on vectors, in Python and in kernels alike.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, inf, log, log1p

import numpy as np

from zerogap.kernels.jit import in_order
from zerogap.losses.base import Loss


class MulticlassLoss(Loss):
    """A loss of a score vector; its methods are the vector forms of those of `Loss`.

    Examples
    --------
    >>> import zerogap as zg
    >>> isinstance(zg.Softmax(), zg.losses.MulticlassLoss), zg.Softmax().task
    (True, 'multiclass')
    """

    task = "multiclass"
    bends_in_votes = True
    """Whether phi* bends in the votes: then a row's term may rise by more than its loss where some
    votes go to the row's own class, by as much as scores differ."""

    def vector_value(self, z, y):
        """phi(z; y)"""
        raise NotImplementedError

    def votes(self, z, y, p):
        """p such that p - e_y is the (sub-)gradient of phi at z"""
        raise NotImplementedError

    def vector_conjugate(self, p, y):
        """phi*(-a; y) for a = e_y - p with p in the simplex"""
        raise NotImplementedError

    def vector_excess(self, p, z, y):
        """phi(z) + phi*(-a) + a.z >= 0, as a sum of terms that are not negative"""
        raise NotImplementedError

    def within(self, p, z, y, doubt):
        """How far phi(z) may be off, and an upper bound of the excess, if scores are off by doubt

        There is a doubt for each class.  A loss rises by twice the largest one at most, as its
        excess does.
        """
        most = 2.0 * doubt.max()
        return most, self.vector_excess(p, z, y) + most

    def block_step(self, p, z, y, q, new):
        """The mixture that maximises  -phi*(-(e_y - new)) + z.new - q |new - p|^2 / 2

        Returns False if that is known to be p, for which the excess is zero.
        """
        raise NotImplementedError


@dataclass(frozen=True)
class MulticlassHinge(MulticlassLoss):
    """The loss of Crammer and Singer (2001) with 0/1 cost.

    ::

        phi(z; y) = max_k (1[k != y] + z_k) - z_y
        phi*(-a; y) = -(1 - p_y)  for p = e_y - a in the simplex, else +inf.

    The block step is the projection of p + (z + 1 - e_y) / q on the simplex.

    Examples
    --------
    >>> import zerogap as zg
    >>> loss = zg.MulticlassHinge()
    >>> X, y = [[0.0], [1.0], [2.0]], [0, 1, 2]
    >>> model = zg.LinearClassifier(loss, lam=0.01, tol=1e-6).fit(X, y)
    >>> model.predict(X).tolist()
    [0, 1, 2]
    """

    bends_in_votes = False

    def vector_value(self, z, y):
        best = z[y]
        for k in range(len(z)):
            best = max(best, z[k] + (k != y))
        return best - z[y]

    def votes(self, z, y, p):
        best = y
        for k in range(len(z)):
            p[k] = 0.0
            if z[k] + (k != y) > z[best] + (best != y):
                best = k
        p[best] = 1.0

    def vector_conjugate(self, p, y):
        others = 0.0  # of which 1 - p_y has lost the digits below 1e-16
        for k in range(len(p)):
            others += p[k] if k != y else 0.0
        return -others

    def vector_excess(self, p, z, y):
        best = z[y]
        for k in range(len(z)):
            best = max(best, z[k] + (k != y))
        total = 0.0
        for k in range(len(z)):
            total += p[k] * (best - z[k] - (k != y))
        return total

    def within(self, p, z, y, doubt):
        # a class that leads by more than all doubt leads: rows beyond their margins have no loss
        first, second, least = y, -inf, -inf
        for k in range(len(z)):
            if z[k] + (k != y) + doubt[k] > z[first] + (first != y) + doubt[first]:
                first = k
            least = max(least, z[k] + (k != y) - doubt[k])
        moved = 0.0
        for k in range(len(z)):
            highest = z[k] + (k != y) + doubt[k]
            second = max(second, highest) if k != first else second
            moved = max(moved, doubt[k]) if highest >= least else moved
        top, worst, off = z[first] + (first != y) + doubt[first], 0.0, 0.0
        for k in range(len(z)):
            other = second if k == first else top
            ahead = max(0.0, other - (z[k] + (k != y)) + doubt[k])
            worst += p[k] * ahead
            off = ahead if k == y else off
        return min(off, moved + doubt[y]), worst

    def block_step(self, p, z, y, q, new):
        best = y
        for k in range(len(z)):
            if z[k] + (k != y) > z[best] + (best != y):
                best = k
        if p[best] == 1.0:  # decided, as most rows are in the end
            for k in range(len(z)):
                new[k] = p[k]
            return False
        top, scale = z[best] + (best != y), 1.0 / max(q, 1e-200)
        most = p[best]
        for k in range(len(z)):
            # a shift by the best score leaves the projection alone; it is the best despite rounding
            new[k] = p[k] - max(0.0, top - z[k] - (k != y)) * scale if k != best else p[k]
            most = max(most, new[k])
        # Michelot's projection: give all classes an equal share of what is missing to one, drop
        # those that would be negative, and again; what is one below the largest gets none
        shift, count = most - 1.0, 0
        for _ in range(len(z)):  # rounding might let a class come back, and go, forever
            kept, total = 0, 0.0
            for k in range(len(z)):
                kept += new[k] > shift
                total += new[k] if new[k] > shift else 0.0
            if kept == count:
                break
            shift, count = (total - 1.0) / kept, kept
        for k in range(len(z)):
            new[k] = max(0.0, new[k] - shift)
        return True


@dataclass(frozen=True)
class Softmax(MulticlassLoss):
    """Cross-entropy of the softmax of the scores, the loss of multinomial logistic regression.

    ::

        phi(z; y) = log(sum_k exp z_k) - z_y
        phi*(-a; y) = sum_k p_k log p_k  for p = e_y - a in the simplex, else +inf.

    1/2-smooth.  The block step solves log p_k + q p_k = z_k + q p_k^old - nu for the one multiplier
    nu at which the p_k sum to one.

    Examples
    --------
    >>> import zerogap as zg
    >>> loss = zg.Softmax()
    >>> X, y = [[0.0], [1.0], [2.0]], [0, 1, 2]
    >>> model = zg.LinearClassifier(loss, lam=0.001, tol=1e-6).fit(X, y)
    >>> model.predict(X).tolist()
    [0, 1, 2]
    """

    smoothness = 0.5

    def largest(self, z):
        """max_k z_k"""
        top = z[0]
        for k in range(1, len(z)):
            top = max(top, z[k])
        return top

    def vector_value(self, z, y):
        best = 0
        for k in range(1, len(z)):
            best = k if z[k] > z[best] else best
        others = 0.0
        for k in range(len(z)):
            if k != best:
                others += exp(z[k] - z[best])
        # Kernels may add terms in any order.  Where the own class leads, the difference of scores
        # is no term: a loss of 1e-16 beside scores of 20 would be lost.
        return log1p(others) if y == best else log1p(others) + (z[best] - z[y])

    def votes(self, z, y, p):
        top = self.largest(z)
        total = 0.0
        for k in range(len(z)):
            p[k] = exp(z[k] - top)
            total += p[k]
        for k in range(len(z)):
            p[k] /= total

    def vector_conjugate(self, p, y):
        total, others = 0.0, 0.0
        for k in range(len(p)):
            if k != y and p[k] > 0.0:
                total += p[k] * log(p[k])
                others += p[k]
        # p_y has lost the digits of others below 1e-16
        return total + (1.0 - others) * log1p(-others) if others < 1.0 else total

    @in_order
    def vector_excess(self, p, z, y):
        # Differences of scores come first, and in this order: a common offset of all scores, of
        # which no loss knows, would take their digits.
        top = self.largest(z)
        norm = 0.0
        for k in range(len(z)):
            norm += exp(z[k] - top)
        shift, total = log(norm), 0.0
        others, shares = 0.0, 0.0
        for k in range(len(z)):
            if k != y:
                behind = top - z[k]
                s = exp(-behind - shift)
                others += p[k]
                shares += s
                total += s - p[k]  # p log(p / s) - p + s is at least zero, term by term
                if p[k] > 0.0:
                    total += p[k] * ((log(p[k]) + behind) + shift)
        # the row's own class, from what the others leave: where that is all, few digits are lost
        total += others - shares
        if others < 1.0:
            rest = (z[y] - top) - shift if shares > 0.5 else log1p(-shares)
            total += (1.0 - others) * (log1p(-others) - rest)
        return total

    def within(self, p, z, y, doubt):
        # odds of any two classes are off by a factor of exp(2 doubt) at most
        best, rest, far, doubt = 0, 0.0, 0.0, doubt.max()
        for k in range(1, len(z)):
            best = k if z[k] > z[best] else best
        for k in range(len(z)):
            rest += exp(z[k] - z[best]) if k != best else 0.0
        not_best = rest / (1.0 + rest)
        own = exp(z[y] - z[best]) / (1.0 + rest)
        for k in range(len(z)):
            s = exp(z[k] - z[best]) / (1.0 + rest)
            far += abs(s - p[k]) + 1e-14 * (s + p[k]) if k != y else 0.0
        times = exp(min(2.0 * doubt, 700.0))
        not_own = not_best if y == best else 1.0 - own
        # the slope of the loss in the scores is s - e_y, that of the excess s - p, for the shares
        # s of the classes; both rise by the variance of the change over classes
        bent = 2.0 * doubt * doubt * min(1.0, 2.0 * times * not_best)
        off = min(2.0 * doubt, 2.0 * doubt * times * not_own * (1.0 + 1e-9))
        return off, self.vector_excess(p, z, y) + 2.0 * doubt * far + bent

    def block_step(self, p, z, y, q, new):
        if not self.near_block_step(p, z, q, new):
            self.sure_block_step(p, z, q, new)
        return True

    def near_block_step(self, p, z, q, new):
        """Newton's method on all log p_k and nu together, from p; false if it fails, as far away"""
        logs, best = np.empty(len(p)), 0
        for k in range(len(p)):
            if p[k] < 1e-100:
                return False
            logs[k] = log(p[k])
            best = k if p[k] > p[best] else best
        nu, largest = z[best] - logs[best], 1.0
        for _ in range(20):
            total, pull, slope = 0.0, 0.0, 0.0
            for k in range(len(z)):
                new[k] = exp(logs[k])
                weight = new[k] / (1.0 + q * new[k])
                total += new[k]
                pull += weight * (z[k] + q * (p[k] - new[k]) - nu - logs[k])
                slope += weight
            if largest < 1e-8:  # the error is about its square
                for k in range(len(new)):
                    new[k] /= total
                return True
            change, largest = (pull + total - 1.0) / slope, 0.0
            nu += change
            for k in range(len(z)):
                move = (z[k] + q * (p[k] - new[k]) - nu - logs[k]) / (1.0 + q * new[k])
                logs[k] += move
                largest = max(largest, abs(move))
            if not largest < 30.0:
                break
        return False

    def sure_block_step(self, p, z, q, new):
        """Newton's method on nu, with p_k(nu) found by another one"""
        # g(nu) = sum_k p_k(nu) - 1 falls and is convex: Newton from the left of the root climbs
        # to it.  At nu = max_k (c_k - q) one p_k is 1, so the root is not to the left of it.
        C = len(z)
        nu = -inf
        for k in range(C):
            nu = max(nu, z[k] + q * p[k] - q)
        for _ in range(100):
            total, slope = 0.0, 0.0
            for k in range(C):
                t = z[k] + q * p[k] - nu
                x = min(t, log(max(t, 1.0) / q)) if q * exp(min(t, 700.0)) > 1.0 else t
                for _ in range(50):  # x + q exp x = t, convex and rising in x = log p_k
                    weight = q * exp(x)
                    move = (x + weight - t) / (1.0 + weight)
                    x -= move
                    if abs(move) <= 1e-15 * (1.0 + abs(x)):
                        break
                new[k] = exp(x)
                total += new[k]
                slope += new[k] / (1.0 + q * new[k])
            move = (total - 1.0) / slope
            nu += move
            if abs(total - 1.0) <= 1e-14:
                break
        for k in range(C):
            new[k] /= total
