"""Change proofs a little, and see that the verifier refuses those that became false.

    python benchmarks/tamper.py [--count 10000]

Each proof is of a small random problem, one of every loss.  One number is changed, by one unit in
the last place or by more, and written back as a forger would: a change of weights, dual variables
or claims leaves a well-formed proof, and a change of data comes with the old digest.  Whether the
change matters is decided by an evaluation of P and D that is not the verifier's.  Ends with exit
code 1 if a change that matters is accepted, or one that does not is refused.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections import Counter
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, localcontext
from fractions import Fraction
from functools import cache
from operator import add, mul
from typing import Any, NamedTuple

import numpy as np

import zerogap as zg
from zerogap import verify
from zerogap.losses import LOSSES
from zerogap.model_io import prove

KINDS = ("weights", "intercept", "duals", "primal", "dual", "problem", "X", "y", "sample weights")
NAMES = [*LOSSES, "multiclass-hinge", "softmax"]


class Case(NamedTuple):
    """A proof that is true, and its data."""

    proof: dict[str, np.ndarray]
    data: tuple[np.ndarray, np.ndarray, np.ndarray]


@cache
def make_case(number: int) -> Case:
    """Return the proof of a small random problem; the loss is one of eleven, in turn.

    Every second of the eleven has columns of units for which dual variables need a `rest`.
    """
    rng, loss = np.random.default_rng(number), NAMES[number % len(NAMES)]
    X = rng.standard_normal((20, 3))
    score = X @ rng.standard_normal(3) + 0.5 * rng.standard_normal(20)
    X *= [1.0, 1e6, 1e12] if number // len(NAMES) % 2 else 1.0
    joint, margin = loss not in LOSSES, loss in LOSSES and LOSSES[loss].task == "classification"
    y = np.argsort(np.argsort(score)) * 3 // 20 if joint else score
    y = np.where(score > np.median(score), 1, -1) if margin else y
    s = 0.5 + rng.random(20)
    options = {"lam": 0.1, "tol": 1e-6, "l1_ratio": 0.3 * (number % 2), "random_state": 0}
    cls = zg.LinearClassifier if margin or joint else zg.LinearRegressor
    model = cls(loss, max_epochs=10_000, **options).fit(X, y, s)
    return Case(prove(model, X, y, s), (X, y, s))


def tampered(case: Case, kind: str, rng: np.random.Generator) -> tuple[Any, Any, bool]:
    """Return a changed proof, its data, and whether the change made it false."""
    proof = {name: array.copy() for name, array in case.proof.items()}
    data = [array.copy() for array in case.data]
    header = json.loads(proof["header"].tobytes())
    arrays = {"weights": proof["w"], "intercept": proof["b"], "duals": proof["alpha"]}
    arrays |= {"X": data[0], "y": data[1], "sample weights": data[2]}
    if "rest" in proof and rng.random() < 0.5:
        arrays["duals"] = proof["rest"]
    if kind in arrays:
        array = arrays[kind]
        place = tuple(int(rng.integers(size)) for size in array.shape)
        if array.dtype.kind == "i":  # a class
            labels = np.unique(array)
            array[place] = rng.choice(labels[labels != array[place]])
        else:
            array[place] = changed(float(array[place]), rng)
    elif kind in ("primal", "dual"):
        header[kind] = [changed(header[kind][0], rng)]
    else:
        names = [name for name in ("lam", "l1_ratio", "parameter") if header[name]]
        name = names[int(rng.integers(len(names)))]
        header[name] = changed(header[name], rng)
    proof["header"] = np.frombuffer(json.dumps(header).encode(), np.uint8)
    if kind in ("X", "y", "sample weights"):
        return proof, data, True  # other data than those that the digest is of
    point = [proof[k][0] for k in ("w", "b", "alpha", "rest") if k in proof]
    return proof, data, not is_true(header, *case.data, *point)


def changed(value: float, rng: np.random.Generator) -> float:
    """Return another number: the next one up or down, or one that differs more."""
    toward = math.inf if rng.random() < 0.5 else -math.inf
    if rng.random() < 0.5:
        return math.nextafter(value, toward)
    step = 10.0 ** rng.uniform(-15, 1) * (abs(value) or 1.0)
    return value + math.copysign(max(step, 2 * math.ulp(value)), toward)


def is_true(
    header: dict[str, Any], X: Any, y: Any, s: Any, w: Any, b: Any, *duals: np.ndarray
) -> bool:
    """Decide a claim with decimals of 90 digits, row by row, by the formulas of the losses."""
    with localcontext(Context(prec=90, Emax=MAX_EMAX, Emin=MIN_EMIN)):
        numbers = [[Decimal(float(x)) for x in row] for row in X], [Decimal(float(x)) for x in s]
        found = _evaluate(header, *numbers, y, w, b, duals)
        if found is None:
            return False
        margin = Decimal(10) ** -45  # more than 90 digits lose, less than two floats differ
        primal, dual = (Decimal(header[name][0]) for name in ("primal", "dual"))
        return found[0] <= primal + margin and found[1] >= dual - margin


def _evaluate(header: Any, X: Any, s: Any, y: Any, w: Any, b: Any, duals: Any) -> Any:
    """Return P and D, None for a point or a problem that is outside of its domain."""
    lam, r, p = (Decimal(header[name] or 0) for name in ("lam", "l1_ratio", "parameter"))
    loss, free, n = header["loss"], header["fit_intercept"], len(y)
    needs = loss in ("smooth-hinge", "epsilon-insensitive", "huber", "quantile")
    if lam <= 0 or not 0 <= r < 1 or (needs and p <= 0) or (loss == "quantile" and p >= 1):
        return None
    w, b, *points = (
        [[Decimal(x) for x in row] for row in part.tolist()] for part in (w, b[None], *duals)
    )
    a = [[sum(parts) for parts in zip(*rows, strict=True)] for rows in zip(*points, strict=True)]
    z = [[sum(map(mul, row, wk)) + bk for wk, bk in zip(w, b[0], strict=True)] for row in X]
    S = sum(s)
    if loss in LOSSES:
        targets = [Decimal(float(t)) for t in y]
        low, high = _ends(loss, p)
        margin = LOSSES[loss].task == "classification"
        signed = [x * t if margin else x for x, t in zip(a[0], targets, strict=True)]
        if min(signed) < low or max(signed) > high:
            return None
        up = sum(si * max(x, 0) for si, x in zip(s, a[0], strict=True))
        down = sum(si * max(-x, 0) for si, x in zip(s, a[0], strict=True))
        if free and up > down:
            a = [[x * down / up if x > 0 else x for x in a[0]]]
        elif free and down > up:
            a = [[x * up / down if x < 0 else x for x in a[0]]]
        values = [_value(loss, p, z[i][0], targets[i]) for i in range(n)]
        costs = [_conjugate(loss, p, a[0][i], targets[i]) for i in range(n)]
    else:
        votes = [[row[i] for row in a] for i in range(n)]
        if any(
            min(v) < 0 or sum(map(Fraction, v)) > 1 or v[k] for v, k in zip(votes, y, strict=True)
        ):
            return None
        votes = _balanced(votes, s, y, len(a)) if free else votes
        pairs = [_joint(loss, z[i], votes[i], y[i]) for i in range(n)]
        values, costs = zip(*pairs, strict=True)
        a = [[(k == y[i]) * sum(votes[i]) - votes[i][k] for i in range(n)] for k in range(len(a))]
    size = sum((1 - r) / 2 * x * x + r * abs(x) for row in w for x in row)
    v = [sum(s[i] * row[i] * X[i][j] for i in range(n)) for row in a for j in range(len(X[0]))]
    star = sum(max(Decimal(0), abs(x) / (lam * S) - r) ** 2 for x in v) / (2 * (1 - r))
    return sum(map(mul, s, values)) / S + lam * size, -sum(map(mul, s, costs)) / S - lam * star


def _ends(loss: str, p: Decimal) -> tuple[Decimal, Decimal]:
    one, infinite = Decimal(1), Decimal("inf")
    ends = {"squared": (-infinite, infinite), "squared-hinge": (0 * one, infinite)}
    ends |= {"huber": (-p, p), "quantile": (p - 1, p)}
    ends |= dict.fromkeys(("absolute", "epsilon-insensitive"), (-one, one))
    return ends.get(loss, (0 * one, one))


def _value(loss: str, p: Decimal, z: Decimal, y: Decimal) -> Decimal:
    m, e, zero = 1 - y * z, abs(z - y), Decimal(0)
    if loss == "smooth-hinge":
        return zero if m <= 0 else m - p / 2 if m >= p else m * m / (2 * p)
    return {
        "hinge": lambda: max(zero, m),
        "squared-hinge": lambda: max(zero, m) ** 2,
        "logistic": lambda: (1 + (-y * z).exp()).ln(),
        "squared": lambda: e * e / 2,
        "absolute": lambda: e,
        "epsilon-insensitive": lambda: max(zero, e - p),
        "huber": lambda: e * e / 2 if e <= p else p * (e - p / 2),
        "quantile": lambda: p * (y - z) if z <= y else (1 - p) * (z - y),
    }[loss]()


def _conjugate(loss: str, p: Decimal, a: Decimal, y: Decimal) -> Decimal:
    if loss == "logistic":
        return _entropy([a * y, 1 - a * y])
    curvature = {"smooth-hinge": p, "squared-hinge": Decimal("0.5"), "squared": 1, "huber": 1}
    tube = p * abs(a) if loss == "epsilon-insensitive" else 0
    return -a * y + curvature.get(loss, Decimal(0)) * a * a / 2 + tube


def _entropy(votes: list[Decimal]) -> Decimal:
    return sum((x * x.ln() for x in votes if x > 0), Decimal(0))


def _balanced(votes: Any, s: Any, y: Any, count: int) -> Any:
    """Return votes of which every class gives what it gets, by the rule of the format."""
    mass = [sum(si for si, k in zip(s, y, strict=True) if k == c) for c in range(count)]
    excess = [Decimal(0)] * count
    for si, row, k in zip(s, votes, y, strict=True):
        for m, vote in enumerate(row):
            excess[k] += si * vote
            excess[m] -= si * vote
    much = sum(x for x in excess if x > 0) or Decimal(1)
    lack = [max(Decimal(0), -x) / m for x, m in zip(excess, mass, strict=True)]
    given = [[lack[k] * max(Decimal(0), x) / much for x in excess] for k in range(count)]
    shares = [[x / (1 + max(lack)) for x in row] for row in given]
    scaled = [[x / (1 + max(lack)) for x in row] for row in votes]
    return [list(map(add, row, shares[k])) for row, k in zip(scaled, y, strict=True)]


def _joint(loss: str, z: Any, votes: Any, y: int) -> tuple[Decimal, Decimal]:
    gone = sum(votes)
    if loss == "softmax":
        return sum((x - z[y]).exp() for x in z).ln(), _entropy([*votes, 1 - gone])
    return max(x - z[y] + (k != y) for k, x in enumerate(z)), -gone


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--count", type=int, default=10_000, help="changes that matter")
    count = parser.parse_args().count
    tried, mattered, wrong, start = Counter(), Counter(), [], time.perf_counter()
    number = 0
    while mattered.total() < count:
        kind, rng = KINDS[number % len(KINDS)], np.random.default_rng(number)
        proof, data, matters = tampered(make_case(number // len(KINDS) % 44), kind, rng)
        answer = verify.verify(proof, *data)[0]
        tried[kind] += 1
        mattered[kind] += matters
        if (answer != "true") != matters:
            wrong.append(f"number {number}, {kind}: {answer}, matters: {matters}")
        number += 1
    print(f"{'changed':16}{'proofs':>8}{'made false':>12}{'still true':>12}")
    for kind in KINDS:
        print(f"{kind:16}{tried[kind]:8}{mattered[kind]:12}{tried[kind] - mattered[kind]:12}")
    refused = mattered.total() - sum("matters: True" in text for text in wrong)
    print(f"{refused} of {mattered.total()} false proofs refused, {len(wrong)} wrong answers")
    print(f"{time.perf_counter() - start:.0f} s")
    print("\n".join(wrong[:20]))
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
