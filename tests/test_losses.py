"""Five laws pin a loss: Fenchel-Young, its equality, slope, argmax, curvature of the conjugate."""

import math
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar
from sklearn.base import clone

import zerogap as zg
from zerogap.losses import LOSSES, Loss, as_loss

INSTANCES = [
    *(cls() for cls in LOSSES.values()),
    zg.SmoothHinge(0.05),
    zg.EpsilonInsensitive(0.0),
    zg.EpsilonInsensitive(1.5),
    zg.Huber(0.3),
    zg.Quantile(0.05),
    zg.Quantile(0.9),
]
EXACT = pytest.mark.parametrize("loss", INSTANCES, ids=repr)
finite = st.floats(-50, 50)
unit = st.floats(0, 1)


def target(loss, t):
    return (1.0 if t > 0 else -1.0) if loss.task == "classification" else t


def dual_variable(loss, y, share):
    """The point at that share of the domain, which is cut at +-20 where it is unbounded."""
    low, high = loss.domain(y)
    low, high = max(low, -20.0), min(high, 20.0)
    return min(high, max(low, low + share * (high - low)))


@EXACT
@given(z=finite, t=finite, share=unit)
def test_fenchel_young(loss, z, t, share):
    y = target(loss, t)
    a = dual_variable(loss, y, share)
    scale = 1 + abs(loss.value(z, y)) + abs(a * z) + abs(a * y)
    assert loss.value(z, y) + loss.conjugate(a, y) + a * z >= -1e-13 * scale
    assert loss.excess(a, z, y) == pytest.approx(
        loss.value(z, y) + loss.conjugate(a, y) + a * z, rel=1e-9, abs=1e-12 * scale
    )


@pytest.mark.parametrize("margin", [700.0, 709.0, 720.0, 744.0, 745.2, 800.0, 1e6])
def test_logistic_excess_is_finite_where_probabilities_vanish(margin):
    loss = zg.Logistic()
    for z in (margin, -margin):
        a = -loss.derivative(z, 1.0)
        assert 0.0 <= loss.excess(a, z, 1.0) < 1e-12 * margin
        assert 0.0 <= loss.excess(min(1.0, 1.001 * a), z, 1.0) < 1e-12 * margin


@EXACT
@given(z=finite, t=finite)
def test_equality_at_minus_the_derivative(loss, z, t):
    y = target(loss, t)
    a = -loss.derivative(z, y)
    low, high = loss.domain(y)
    assert low <= a <= high
    scale = 1 + abs(loss.value(z, y)) + abs(a * z) + abs(a * y)
    assert loss.value(z, y) + loss.conjugate(a, y) + a * z <= 1e-13 * scale


@EXACT
@given(z=finite, t=finite)
def test_derivative_is_the_slope(loss, z, t):
    """Convexity: each sub-gradient lies between the slopes to the left and to the right."""
    y, h = target(loss, t), 1e-4
    left = (loss.value(z, y) - loss.value(z - h, y)) / h
    right = (loss.value(z + h, y) - loss.value(z, y)) / h
    rounding = 1e-10 * (1 + abs(loss.value(z, y)))
    assert left - rounding <= loss.derivative(z, y) <= right + rounding


@EXACT
@given(t=finite, share=unit)
def test_stiffness_is_the_curvature_of_the_conjugate(loss, t, share):
    """Or infinite, where the conjugate ends or has a kink."""
    y, h = target(loss, t), 1e-4
    a = dual_variable(loss, y, share)
    low, high = loss.domain(y)
    kinks = [low, high, *([0.0] if isinstance(loss, zg.EpsilonInsensitive) and loss.eps else [])]
    if a in kinks:
        assert loss.stiffness(a, y) == math.inf
    elif all(abs(a - kink) > 0.01 for kink in kinks):
        values = [loss.conjugate(a + k * h, y) for k in (-1, 0, 1)]
        curvature = (values[0] - 2 * values[1] + values[2]) / h**2
        assert loss.stiffness(a, y) == pytest.approx(curvature, rel=1e-3, abs=1e-3 * (1 + abs(y)))


@EXACT
@given(z=finite, t=finite)
def test_stiffness_is_the_inverse_of_the_second_derivative(loss, z, t):
    y, h = target(loss, t), 1e-6
    left, middle, right = (loss.derivative(z + k * h, y) for k in (-1, 0, 1))
    rises = (middle - left) / h, (right - middle) / h
    if math.isfinite(loss.smoothness) and abs(rises[0] - rises[1]) < 1e-3:  # not across a bend
        expected = 1.0 / loss.stiffness(-middle, y)
        assert expected == pytest.approx(0.5 * (rises[0] + rises[1]), abs=1e-3)


@EXACT
@given(z=finite, t=finite, share=unit, q=st.one_of(st.just(0.0), st.floats(1e-6, 1e4)))
@settings(max_examples=150)
def test_dual_step_is_the_argmax(loss, z, t, share, q):
    y = target(loss, t)
    a = dual_variable(loss, y, share)
    low, high = loss.domain(y)

    def objective(step):
        return -loss.conjugate(min(high, max(low, a + step)), y) - step * z - 0.5 * q * step * step

    step = loss.dual_step(a, y, z, q)
    assert low - 1e-12 <= a + step <= high + 1e-12
    bounds = (max(low, -200.0) - a, min(high, 200.0) - a)
    other = minimize_scalar(lambda s: -objective(s), bounds=bounds, options={"xatol": 1e-12}).x
    best = max(objective(s) for s in (*bounds, other, 0.0))
    assert objective(step) >= best - 1e-9 * (1 + abs(best))


@EXACT
@given(z=finite, t=finite, other=finite)
def test_declared_constants(loss, z, t, other):
    y = target(loss, t)
    rise = abs(loss.value(z, y) - loss.value(other, y))
    bend = abs(loss.derivative(z, y) - loss.derivative(other, y))
    assert rise <= loss.lipschitz * abs(z - other) + 1e-9 or math.isinf(loss.lipschitz)
    assert bend <= loss.smoothness * abs(z - other) + 1e-9 or math.isinf(loss.smoothness)


@EXACT
@given(t=finite, beyond=st.floats(1e-6, 10))
def test_conjugate_is_infinite_outside_its_domain(loss, t, beyond):
    y = target(loss, t)
    for edge, sign in zip(loss.domain(y), (-1.0, 1.0), strict=True):
        if math.isfinite(edge):
            assert math.isinf(loss.conjugate(edge + sign * beyond, y))
            assert math.isfinite(loss.conjugate(edge, y))


@given(m=st.floats(-700, 700), b=unit, q=st.floats(0, 1e8))
@settings(max_examples=500)
def test_exact_logistic_step_solves_its_equation_to_rounding(m, b, q):
    """The root is bracketed by t minus and plus the rounding of the step, however small t is."""
    t = b + zg.Logistic().dual_step(b, 1.0, m, q)
    assert 0 <= t <= 1
    hair = 1e-12 * t + 3e-16

    def left(t):
        return math.log(t) - math.log1p(-t) + q * (t - b) + m

    rounding = 1e-14 * (abs(m) + q)
    assert t - hair <= 1e-300 or left(t - hair) <= rounding
    assert t + hair >= 1.0 or left(t + hair) >= -rounding


@pytest.mark.parametrize("q", [1e3, 1e8, 1e16, 1e40, 1e100])
@pytest.mark.parametrize("b", [0.0, 1e-16, 0.3, 0.5, 1.0])
@pytest.mark.parametrize("m", [-30.0, -1.0, 0.0, 1e-8, 1.0, 30.0])
def test_exact_logistic_step_never_descends_however_large_the_row(m, b, q):
    """A row so large has no room for a step: t found to rounding, less b, would be too long."""
    loss = zg.Logistic()
    step = loss.dual_step(b, 1.0, m, q)
    assert 0.0 <= b + step <= 1.0
    gain = loss.conjugate(b, 1.0) - loss.conjugate(b + step, 1.0) - step * (m + 0.5 * q * step)
    assert gain >= -1e-12


@given(m=st.floats(-30, 30), b=unit, q=st.floats(0, 1e4))
def test_approximate_logistic_step_ascends(m, b, q):
    loss = zg.Logistic(approximate=True)
    objective = lambda s: -loss.conjugate(b + s, 1.0) - s * m - 0.5 * q * s * s  # noqa: E731
    step = loss.dual_step(b, 1.0, m, q)
    assert objective(min(1 - b, max(-b, step))) >= objective(0.0) - 1e-12


def test_logistic_is_stable_for_any_score():
    loss = zg.Logistic()
    assert loss.value(1e4, 1.0) == 0.0
    assert loss.value(-1e4, 1.0) == 1e4
    assert loss.derivative(-1e4, 1.0) == -1.0
    assert loss.excess(0.5, 1e4, 1.0) == pytest.approx(5000 - math.log(2))


@pytest.mark.parametrize("name", LOSSES)
def test_registry(name):
    assert type(as_loss(name)) is LOSSES[name]
    assert isinstance(as_loss(name), Loss)


@pytest.mark.parametrize(
    "loss",
    [
        zg.SmoothHinge(0.0),
        zg.SmoothHinge(math.nan),
        zg.EpsilonInsensitive(-1),
        zg.Huber(0),
        zg.Quantile(1.0),
    ],
    ids=repr,
)
def test_impossible_parameters_are_refused_at_use(loss):
    with pytest.raises(ValueError, match=type(loss).__name__):
        as_loss(loss)


def test_unknown_names_list_the_choices():
    with pytest.raises(ValueError, match=r"unknown loss 'hindge'.*smooth-hinge"):
        as_loss("hindge")
    with pytest.raises(ValueError, match="must be a name or a zerogap Loss"):
        as_loss(3)


def test_parameters_like_scikit_learn():
    loss = zg.SmoothHinge(gamma=0.5)
    assert clone(loss) == loss
    assert clone(loss) is not loss
    assert pickle.loads(pickle.dumps(loss)) == loss
    assert loss.set_params(gamma=0.25).get_params() == {"gamma": 0.25}
    with pytest.raises(ValueError, match="no parameter 'delta'"):
        loss.set_params(delta=1)


def test_changed_parameter_reaches_the_kernels():
    X, y = np.ones((2, 1)), np.array([1.0, -1.0])
    loss = zg.SmoothHinge(gamma=1.0)
    before = zg.Problem(X, y, loss).primal([0.0])
    after = zg.Problem(X, y, loss.set_params(gamma=0.5)).primal([0.0])
    assert (before, after) == (0.5, 0.75)
