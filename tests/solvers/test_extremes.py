"""Rows as long and as short as doubles allow: solvers end with a certificate, or refuse."""

import math

import numpy as np
import pytest

import zerogap as zg
from zerogap.solvers import SOLVERS

MARGINS = ("hinge", "logistic", "squared-hinge", "smooth-hinge")
RESIDUALS = ("absolute", "squared", "huber", "quantile", "epsilon-insensitive")
JOINT = ("softmax", "multiclass-hinge")
EXPONENTS = (-160, -150, -140, -121, -60, 60, 100, 118, 121, 125, 130, 140, 144, 150)
UNFIT = ("cannot take", "needs", "made for", "not made", "batch_size")  # what solvers refuse


def extreme_problem(seed):
    """A small problem whose rows, columns, targets or lambda have extreme sizes."""
    rng = np.random.default_rng(seed)
    n, d = rng.integers(8, 30), rng.integers(1, 5)
    X, size = rng.standard_normal((n, d)), 10.0 ** int(rng.choice(EXPONENTS))
    spread = abs(math.log10(size))
    X = [
        lambda: X * size,
        lambda: X * np.append(size, np.ones(d - 1)),
        lambda: X * np.append(size, np.ones(n - 1))[:, None],
        lambda: X * 10.0 ** rng.uniform(-spread, spread, d),
        lambda: X * 10.0 ** rng.uniform(-spread, spread, (n, 1)),
        lambda: X + np.append(size, np.zeros(d - 1)),
    ][seed % 6]()
    loss = str(rng.choice(MARGINS + RESIDUALS + JOINT))
    if loss in JOINT:
        y = np.arange(n) % 3
    elif loss in MARGINS:
        y = np.where(np.arange(n) % 2, 1.0, -1.0)
    else:
        y = rng.standard_normal(n) * 10.0 ** int(rng.choice([0, 0, 50, 100, -100]))
    lam = rng.choice([1.0 / n, 1e-2, 1e2, 1e-8, 1e50, 1e-30, 1e200])
    return zg.Problem(X, y, loss, lam, None, bool(rng.integers(2)), float(rng.choice([0, 0, 0.5])))


@pytest.mark.parametrize(
    ("name", "seeds", "epochs"),
    [
        (name, 600 if name == "interior-point" else 40 if slow else 150, 200 if slow else 10)
        for name in SOLVERS
        for slow in [name in ("auto", "newton", "interior-point")]
    ],
)
def test_P6_extreme_rows_end_with_a_certificate_or_a_refusal(name, seeds, epochs):
    """No other exception, and no warning: those are errors here."""
    solved = 0
    for seed in range(seeds):
        try:
            problem = extreme_problem(seed)
        except ValueError as error:
            if "overflow" not in str(error):
                raise
            continue
        try:
            result = zg.solve(problem, SOLVERS[name](), max_epochs=epochs, tol=1e-6, random_state=0)
        except ValueError as error:
            if not any(words in str(error) for words in UNFIT):
                raise
            continue
        solved += 1
        certificate = result.certificate
        assert math.isfinite(certificate.primal), seed
        assert certificate.gap >= -1e-12 * certificate.primal, seed
        constant = problem.primal(np.zeros(problem.weight_shape), problem.constant())
        assert certificate.dual <= constant * (1 + 1e-12), seed
        assert np.isfinite(result.w).all(), seed
    assert solved >= seeds // 20
