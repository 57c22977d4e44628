"""exp and log1p without the C library: as exact as it, in Python and in kernels."""

import math

import numpy as np
import pytest

from zerogap.kernels import exp_log
from zerogap.kernels.jit import kernel


@kernel
def _apply_exp(x, out):
    for i in range(len(x)):
        out[i] = exp_log.exp(x[i])


@kernel
def _apply_log1p(x, out):
    for i in range(len(x)):
        out[i] = exp_log.log1p(x[i])


def worst(found, exact):
    """Return the largest error, in units of the last place."""
    return float(np.max(np.abs(found - exact) / np.spacing(np.abs(exact.astype(float)))))


def test_exp_is_exact_to_the_last_places():
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.uniform(-708, 700, 50_000), rng.uniform(-1, 1, 50_000)])
    x = np.concatenate([x, 10.0 ** rng.uniform(-20, 0, 1000), [0.0, -745.0, -720.5]])
    out = np.empty_like(x)
    _apply_exp(x, out)
    assert worst(out, np.exp(x.astype(np.longdouble))) <= 2.0
    np.testing.assert_array_equal(out[-3:], np.exp(x[-3:]))


def test_log1p_is_exact_to_the_last_places():
    rng = np.random.default_rng(1)
    u = np.concatenate([rng.uniform(0, 1, 50_000), 10.0 ** rng.uniform(-300, 0, 50_000), [0, 1]])
    out = np.empty_like(u)
    _apply_log1p(u, out)
    assert worst(out[:-2], np.log1p(u[:-2].astype(np.longdouble))) <= 2.0
    assert out[-2] == 0.0
    assert out[-1] == pytest.approx(math.log(2.0), rel=3e-16)


def test_ends_of_the_range_and_what_is_no_number():
    x = np.array([-math.inf, -1e308, -746.0, math.nan])
    out = np.empty_like(x)
    with np.errstate(invalid="ignore"):
        _apply_exp(x, out)
    assert list(out[:3]) == [0.0, 0.0, 0.0]
    assert math.isnan(out[3])


def test_python_and_kernels_agree():
    x = np.linspace(-30.0, 3.0, 100)
    out = np.empty_like(x)
    _apply_exp(x, out)
    np.testing.assert_allclose([exp_log.exp(v) for v in x], out, rtol=4e-16)
