"""Check a proof that a linear model is near its optimum: python verify.py model.proof data.npz

Needs NumPy and this file only; docs/proof-format.md has the format.  For rows x_i, weights s_i with
sum S, scores z_i = W x_i + b, losses phi_i, a dual point a and v = sum_i s_i a_i x_i, let

    P(W, b) = 1/S sum_i s_i phi_i(z_i)     + lam ((1 - r) |W|^2 / 2 + r |W|_1)
    D(a)    = 1/S sum_i -s_i phi_i*(-a_i)  - sum_j max(0, |v_j| - r lam S)^2 / (2 (1 - r) lam S^2)

A proof claims P(W, b) <= primal and D(a) >= dual.  D(a) <= min P, so the model is at most
primal - dual above the optimum.  Nothing is rounded but exp and log: 30 of their digits are right.
"""

import hashlib
import json
import math
import sys
import zipfile
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from functools import cache

import numpy as np

FORMAT, MOST_BYTES = "zerogap proof 1", 2**34  # of all arrays in a file
FEW, BLOCK = 1000, 2**15  # products: more than few go through float64, in blocks for the cache
PRECISE, LOG_ERROR = Context(prec=40), Fraction(1, 10**30)  # of exp and log, and sums of them
EXP = np.array([PRECISE.divide(1, math.factorial(k)) for k in range(11, -1, -1)])  # of e^11 to e^0
LOG = np.array([PRECISE.divide((-1) ** (k + 1), k) for k in range(11, 0, -1)] + [0])  # rest < 1e-36
FAULTS = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
upper = np.maximum
fractions = np.frompyfunc(lambda x: x if isinstance(x, Fraction) else Fraction(x), 1, 1)
decimals = np.frompyfunc(lambda x: Decimal(x.numerator) / Decimal(x.denominator), 1, 1)
near = np.frompyfunc(lambda x: round(1024 * x), 1, 1)
power = np.frompyfunc(cache(lambda k: PRECISE.exp(Decimal(k) / 1024)), 1, 1)  # rounded correctly


def need(condition, text):
    """Refuse what is not so."""
    if not condition:
        raise ValueError(text)


class Matrix:
    """The numbers x other than zero, in rows i and columns j, row by row."""

    def __init__(self, X):
        self.shape = n, d = tuple(int(length) for length in X.shape)
        if isinstance(X, np.ndarray):
            (i, j), x = np.nonzero(X), X[X != 0]
        else:  # CSR, as SciPy has it
            i = np.repeat(np.arange(n), np.diff(X.indptr))
            order = np.lexsort((X.indices, i))
            i, j, x = (part[order][X.data[order] != 0] for part in (i, X.indices, X.data))
            sound = len(order) == len(X.data) and np.all((j >= 0) & (j < d))
            need(sound and np.all(np.diff(i) | np.diff(j)), "X is no CSR matrix")
        need(min(n, d) > 0 and np.isfinite(x).all(), "X is empty or not finite")
        self.i, self.j, self.x = i.astype("<i8"), j.astype("<i8"), x.astype("<f8")
        self.plain = (abs(self.x) > 1e-60) & (abs(self.x) < 1e60) & (len(x) > FEW)

    def product(self, c, s=None, y=None, count=1):
        """Return sum_j x_ij c_j or, with s, sum_i x_ij s_i c_i over each class y, exactly."""
        if c.ndim == 2:  # the sum of its rows is meant
            return sum(self.product(x, s, y, count) for x in (c[0], *filter(np.any, c[1:])))
        source, sink, length, factors = self.j, self.i, self.shape[0], [c]
        if s is not None:
            d, source, factors = self.shape[1], self.i, [c, s]
            sink, length = self.j + (0 if y is None else d * y[self.i]), d * count
        alike = np.all([(abs(f) > 1e-60) & (abs(f) < 1e60) for f in factors], axis=0)
        plain = self.plain & alike[source]  # these go through float64
        rest = ~plain & np.all(factors, axis=0)[source]
        terms, unit = integers(self.x[rest], *(f[source[rest]] for f in factors))
        np.add.at(others := np.zeros(length, dtype=object), sink[rest], terms)
        factors = [np.where(alike, factor, 0.0) for factor in factors]
        x, i, j = (a if plain.all() else a[plain] for a in (self.x, source, sink))
        factors = factors if s is None else two_product(*factors)
        parts = [(others, unit), *(exact_sums(a, x, i, j, length) for a in factors if a.any())]
        unit = Fraction(1, math.lcm(*(own.denominator for _, own in parts)))
        return sum(sums * int(own / unit) for sums, own in parts) * unit


def integers(x, *factors):
    """Return numbers, or products of them, as integers that count a unit, and the unit."""
    above, below = np.frompyfunc(lambda x: x.as_integer_ratio(), 1, 2)(x)
    common = math.lcm(*set(np.ravel(below).tolist()))
    counts, unit = integers(*factors) if factors else (1, 1)
    return above * (common // below) * counts, Fraction(unit) / common


def total(*factors):
    """Return the sum of products of numbers, exactly."""
    counts, unit = integers(*factors)
    return sum(np.ravel(counts).tolist()) * unit


def two_product(a, b):
    """Return a b as a rounded product and its error (Dekker), exactly if neither is extreme."""
    p, (a1, b1) = a * b, (134217729.0 * x - (134217729.0 * x - x) for x in (a, b))
    a2, b2 = a - a1, b - b1
    return p, ((a1 * b1 - p) + a1 * b2 + a2 * b1) + a2 * b2


def exact_sums(c, x, source, sink, length):
    """Return the sum of x_k c_source(k) over the k of each sink, as `integers` does."""
    bits = 52 - (2 * int(np.bincount(sink, minlength=1).max())).bit_length()
    top = sum(int(np.frexp(abs(a).max(initial=0.0))[1]) for a in (x, c))  # |x c| < 2^top
    levels: list[np.ndarray] = []  # sums of so few bits of the products that none is rounded
    for k in range(0, len(x), BLOCK):
        rest = np.concatenate(two_product(x[k : k + BLOCK], c[source[k : k + BLOCK]]))
        sinks, level = np.tile(sink[k : k + BLOCK], 2), 0
        while rest.any():
            if level == len(levels):
                levels.append(np.zeros(length))
            shift = 1.5 * 2.0 ** (top + 52 - bits * (level + 1))
            whole = (rest + shift) - shift  # a multiple of 2^(top - bits (level + 1))
            levels[level] += np.bincount(sinks, whole, length)
            rest, level = rest - whole, level + 1
    out = np.zeros(length, dtype=object)
    for level, sums in enumerate(levels):
        out = (out << bits) + np.ldexp(sums, bits * (level + 1) - top).astype("i8").astype(object)
    return out, Fraction(2) ** (top - bits * len(levels))


def log(x):
    """log x = k / 1024 + log(1 + e) for x = exp(k / 1024) (1 + e); any number for 0"""
    k = near([math.log(t) if t > 1e-300 else (t or Decimal(1)).ln() for t in x])
    return k / Decimal(1024) + np.polyval(LOG, x * power(-k) - 1)


def logsumexp(*z, unit=1):
    """log sum_k exp z_k, up to LOG_ERROR, for z in a unit; exp x = exp(k / 1024) exp(e)"""
    with localcontext(PRECISE):
        top = np.max(z, axis=0)
        k = near(x := upper(decimals(np.subtract(z, top)) * decimals(unit), -1000))
        return top * unit + fractions(log(sum(power(k) * np.polyval(EXP, x - k / Decimal(1024)))))


def plogp(*p, unit=1):
    """sum_k p_k log p_k, up to LOG_ERROR, for p_k in a unit that are 0 to 1"""
    with localcontext(PRECISE):
        return fractions(sum(x * log(x) for x in decimals(p) * decimals(unit)))


def rounded(t, width):
    """0 up to 0, then t^2 / (2 width) up to the width, then a line of slope 1"""
    part = np.minimum(upper(t, 0), width)
    return part * (t - part / 2) / width


# f, its conjugate f* and the ends of the domain of f*, for a parameter p.  Losses are f(1 - y z),
# phi*(-a) = f*(y a) - y a, for classes y = -1 and 1; f(y - z), f*(a) - y a for numbers y.
LOSSES = {
    "hinge": lambda p: (lambda t: upper(t, 0), lambda b: 0 * b, 0, 1),
    "smooth-hinge": lambda p: (lambda t: rounded(t, p), lambda b: p * b * b / 2, 0, 1),
    "squared-hinge": lambda p: (lambda t: upper(t, 0) ** 2, lambda b: b * b / 4, 0, math.inf),
    "logistic": lambda p: (lambda t: logsumexp(0 * t, t - 1), lambda b: b + plogp(b, 1 - b), 0, 1),
    "squared": lambda p: (lambda t: t * t / 2, lambda b: b * b / 2, -math.inf, math.inf),
    "absolute": lambda p: (abs, lambda b: 0 * b, -1, 1),
    "epsilon-insensitive": lambda p: (lambda t: upper(abs(t) - p, 0), lambda b: p * abs(b), -1, 1),
    "huber": lambda p: (lambda t: p * rounded(abs(t), p), lambda b: b * b / 2, -p, p),
    "quantile": lambda p: (lambda t: upper(p * t, (p - 1) * t), lambda b: 0 * b, p - 1, p),
}
MOST = {"smooth-hinge": 1e300, "epsilon-insensitive": 1e300, "huber": 1e300, "quantile": 1}  # of p


def one_score(header, matrix, y, s, z, unit, alpha):
    """Return the sums of s phi(z) and s phi*(-a), and v, for a loss of one score."""
    sign, target = map(fractions, (y * 0 + 1, y) if header["classes"] is None else (y, y * y))
    f, conjugate, low, high = LOSSES[header["loss"]](Fraction(header["parameter"] or 0))
    a = fractions(alpha[0]).sum(axis=0)
    need(low <= min(sign * a) and max(sign * a) <= high, "alpha is outside its domain")
    halves, free = (a > 0, a < 0), header["fit_intercept"]  # sum_i s_i a_i = 0: one sign is scaled
    up, down = (abs(total(s[half], a[half])) if free else 1 for half in halves)
    shares = [min(1, down / (up or 1)), min(1, up / (down or 1))]
    a = sign * a * np.where(halves[0], *shares)
    v = sum(c * matrix.product(alpha[0] * half, s) for c, half in zip(shares, halves, strict=True))
    return total(s, f(target - sign * z[0] * unit)), total(s, conjugate(a) - a * target), v


def many_scores(header, matrix, y, s, z, unit, alpha):
    """Return the same for a loss of a score per class and votes alpha for the other classes."""
    y, own = y.astype(int), np.eye(len(z))[:, y.astype(int)]
    votes, layers = alpha.sum(axis=1), np.concatenate(alpha)  # rounded, but of right sign
    over = [math.fsum((*row, -1.0)) for row in layers.T.tolist()]
    need(votes.min() >= 0 and not (own * votes).any() and max(over) <= 0, "alpha is not feasible")
    by_class, more, most = (s, y, len(z)), np.full((len(z), len(z)), Fraction(0)), Fraction(0)
    if header["fit_intercept"]:  # each class must give as many votes as it gets: some give more
        ones = Matrix(np.ones((len(y), 1)))
        masses, *flow = (ones.product(votes, *by_class) for votes in (np.ones(len(y)), *alpha))
        need(masses.all(), "an intercept needs rows of every class")
        excess = np.sum(flow, axis=0) - np.sum(flow, axis=1)
        lack, much = upper(-excess, 0) / masses, upper(excess, 0)
        more, most = np.outer(lack, much / (much.sum() or 1)), lack.max()
    v = -np.array([matrix.product(votes, s) for votes in alpha])
    while (sums := np.array([math.fsum(row) for row in layers.T.tolist()])).any():
        v += matrix.product(sums, *by_class).reshape(v.shape)  # a row's own class has them all
        layers = np.vstack([layers, -sums])  # what was rounded away is left
    (counts, size), (extra, share) = integers(alpha), integers(more)
    whole, weight = integers(matrix.product(np.ones(len(y)), *by_class).reshape(v.shape))
    v += (extra.sum(axis=1)[:, None] * whole - extra.T.dot(whole)) * (share * weight)
    votes = counts.sum(axis=1) * share.denominator + extra[y].T * size.denominator
    one, mine = int((1 + most) / size / share), z[y, np.arange(len(y))]  # votes are counts of 1/one
    gone, size = votes.sum(axis=0), Fraction(1, one)
    if header["loss"] == "softmax":
        value, cost = logsumexp(*z, unit=unit), plogp(*votes, one - gone, unit=size)
    else:
        value, cost = np.where(own, z, z + unit.denominator).max(axis=0) * unit, -gone * size
    return total(s, value - mine * unit), total(s, cost), v / (1 + most)


def bounds(header, matrix, y, s, w, b, alpha, part=0):
    """Return bounds of P(w, b) and of D at the point that alpha (scores, 1 or 2, n) stands for."""
    r, lam, S = Fraction(header["l1_ratio"]), Fraction(header["lam"]), total(s)
    terms = one_score if header["loss"] in LOSSES else many_scores
    if terms is one_score and header["classes"] is not None:
        y = np.where(y == (1 if len(header["classes"]) == 2 else part), 1.0, -1.0)
    z, unit = integers(np.column_stack([[matrix.product(row) for row in w], b]))
    value, cost, v = terms(header, matrix, y, s, z[:, :-1] + z[:, -1:], unit, alpha)
    primal = value / S + lam * ((1 - r) / 2 * total(w, w) + r * total(abs(w)))
    over = upper(abs(np.ravel(v)) - r * lam * S, 0)
    dual = -cost / S - total(over, over) / (2 * (1 - r) * lam * S * S)
    error = LOG_ERROR if header["loss"] in ("logistic", "softmax") else 0
    return (primal - error, primal + error), (dual - error, dual + error)


def prepare(header, X, y, sample_weight=None):
    """Return rows, targets (numbers, or places of classes), weights and digest of the data."""
    matrix, y = Matrix(X), np.asarray(y)
    s = np.asarray(sample_weight if header["weighted"] else np.ones(len(y)), dtype="<f8")
    if header["classes"] is not None:
        places = {label: k for k, label in enumerate(header["classes"])}
        y = np.array([places[label] for label in y.tolist()])
    y = y.astype("<f8")
    arrays = (np.array(matrix.shape, dtype="<i8"), matrix.i, matrix.j, matrix.x, y, s)
    digest = hashlib.sha256(b"".join(array.tobytes() for array in arrays)).hexdigest()
    if header["class_weight"] is not None:
        s = s * np.array(header["class_weight"], dtype=float)[y.astype(int)]
    need(y.shape == s.shape == matrix.shape[:1] and np.isfinite([y, s]).all(), "y does not fit X")
    need(min(s) >= 0 and max(s) > 0, "weights must not be negative, nor all be zero")
    return matrix, y, s, digest


def check(header, w, b, alpha, n, d):
    """Refuse what is no problem of the format, and arrays that do not fit it."""
    loss, p, classes = (header[name] for name in ("loss", "parameter", "classes"))
    need(header["format"] == FORMAT, f"the format is not {FORMAT!r}")
    need(loss in LOSSES or (loss in ("multiclass-hinge", "softmax") and classes), "unknown loss")
    need(0 < p < MOST[loss] if loss in MOST else p is None, "the parameter of the loss is wrong")
    need({type(header[k]) for k in ("fit_intercept", "weighted")} == {bool}, "a flag is no flag")
    need(0 < header["lam"] < math.inf and 0 <= header["l1_ratio"] < 1, "lam or l1_ratio is wrong")
    count = 2 if classes is None else len(set(classes))
    need(classes is None or 2 <= count == len(classes), "classes must be two or more labels")
    shape = (1 if count == 2 else count, 1) if loss in LOSSES else (1, count)
    for x, size in ((w, (*shape, d)), (b, shape), (alpha, (*shape, alpha.shape[-2], n))):
        fits = x.shape == size and x.dtype == float and np.isfinite(x).all()
        need(fits, "w, b or alpha have a wrong shape, or are not finite")
    need(header["fit_intercept"] or not b.any(), "b is not zero, but there is no intercept")


def verify(proof, X, y, sample_weight=None):
    """Return "true", "false" or "undecided", why, and bounds of P and D; X may be SciPy's CSR."""
    try:
        with np.errstate(all="ignore"):
            header = json.loads(proof["header"].tobytes())
            matrix, y, s, digest = prepare(header, X, y, sample_weight)
            need(digest == header["data"], "these are not the data of the proof")
            points = [proof["alpha"], *(proof[name] for name in proof if name == "rest")]
            arrays = [proof["w"], proof["b"], np.stack(points, axis=2)]
            check(header, *arrays, *matrix.shape)
            parts = enumerate(zip(*arrays, strict=True))
            found = [bounds(header, matrix, y, s, w, b, a, k) for k, (w, b, a) in parts]
            claims = np.array([header["primal"], header["dual"]], dtype=float).T
            need(np.isfinite(claims).all(), "a claim is not a finite number")
            claimed = list(zip(found, claims.tolist(), strict=True))
    except FAULTS as error:
        return "false", f"{error}", []
    if any(P[0] > primal or D[1] < dual for (P, D), (primal, dual) in claimed):
        return "false", "P(w, b) is larger, or D(alpha) smaller, than claimed", found
    if all(P[1] <= primal and D[0] >= dual for (P, D), (primal, dual) in claimed):
        return "true", "P(w, b) and D(alpha) are as claimed", found
    return "undecided", "the claim is closer to the truth than logarithms are known", found


def load(path):
    """Return the arrays in a file, if they are not too large."""
    try:
        with zipfile.ZipFile(path) as archive, np.load(path, allow_pickle=False) as arrays:
            need(sum(x.file_size for x in archive.infolist()) <= MOST_BYTES, "it is too large")
            return dict(arrays)
    except Exception as error:  # NumPy and zipfile fail in many ways
        raise ValueError(f"{path} is not readable: {error}") from error


if __name__ == "__main__":
    proof, data = map(load, sys.argv[1:])
    X = data["X"] if "X" in data else type("CSR", (), data)
    answer, reason, found = verify(proof, X, data["y"], data.get("sample_weight"))
    print(f"{answer}: {reason}")
    for P, D in found:
        print(f"P(w, b) = {float(P[1])!r}, min P >= {float(D[0])!r}, gap {float(P[1] - D[0])!r}")
    sys.exit({"true": 0, "false": 1, "undecided": 3}[answer])
