"""Certificates hold in exact arithmetic, on extreme problems and those once certified wrongly."""

import dataclasses
import warnings
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import proofs_extreme_evaluators
import zerogap as zg
from proofs_extreme import (
    JOINT,
    ONE_SCORE,
    check,
    draw,
    exact,
    prove_extreme,
    prove_given_points,
    refused,
)
from proofs_extreme_evaluators import (
    certified,
    in_memory,
    in_store,
    on_workers,
    prove_evaluators,
)
from proofs_extreme_statements import (
    prove_raw_classes,
    prove_raw_leave_one_out,
    prove_raw_paths,
    prove_raw_predictions,
    prove_raw_regions,
)
from proofs_extreme_ways import (
    hold_model,
    prove_audits,
    prove_estimators,
    prove_handed_over,
    prove_stored_runs,
)
from zerogap.dask.chunks import read
from zerogap.dask.fitting import state
from zerogap.problem.certificate import Certificate
from zerogap.problem.proving import Proof
from zerogap.regions.enclosures import score_doubt, times_length
from zerogap.solvers import SOLVERS
from zerogap.store import write_store


def test_every_solver_is_among_those_that_are_tried():
    assert {cls.__name__ for cls in SOLVERS.values()} <= set(ONE_SCORE)
    assert {cls.__name__ for cls in SOLVERS.values() if cls.multiclass} <= set(JOINT)


@pytest.mark.parametrize("start", range(0, 120, 30))
def test_no_certificate_of_an_extreme_problem_claims_too_much(start):
    found = [prove_extreme(seed) for seed in range(start, start + 30)]
    assert sum(gap is not None for gap in found) > 15
    assert min(gap for gap in found if gap is not None) < 1e-3


@pytest.mark.parametrize("start", range(0, 200, 50))
def test_no_certificate_of_a_given_point_claims_too_much(start):
    found = [prove_given_points(seed) for seed in range(start, start + 50)]
    assert sum(gap is not None for gap in found) > 25


@pytest.mark.parametrize("start", range(0, 60, 20))
def test_no_evaluator_claims_too_much(start):
    """The GPU's is among them in tests/cuda_cases/extreme.py."""
    found = [prove_evaluators(seed) for seed in range(start, start + 20)]
    assert sum(gap is not None for gap in found) > 10
    assert min(gap for gap in found if gap is not None) < 1e-6


def test_groups_of_workers_without_rows_add_nothing_to_precise_sums():
    assert prove_evaluators(5017) is not None


@pytest.mark.parametrize("evaluator", [in_memory, in_store, on_workers])
def test_evaluators_that_claim_too_much_would_be_found(evaluator, monkeypatch):
    def boasting(*given):
        found = certified(*given)
        if given[0] is not evaluator or found is None:
            return found
        *point, certificate = found
        gap = 0.5 * certificate.gap
        changes = {"gap": gap, "dual": certificate.primal - gap}
        return *point, dataclasses.replace(certificate, **changes)

    monkeypatch.setattr(proofs_extreme_evaluators, "certified", boasting)
    with pytest.raises(AssertionError, match=evaluator.__name__):
        [prove_evaluators(seed) for seed in range(10)]


@pytest.mark.parametrize(
    "prove",
    [
        prove_raw_regions,
        prove_raw_predictions,
        prove_raw_classes,
        prove_raw_paths,
        prove_raw_leave_one_out,
    ],
)
def test_statements_about_raw_data_hold_for_exact_optima(prove):
    found = [prove(seed) for seed in range(25)]
    assert sum(said is not None for said in found) > 12


@pytest.mark.parametrize(
    "prove", [prove_handed_over, prove_estimators, prove_audits, prove_stored_runs]
)
def test_every_way_to_a_certificate_of_an_extreme_problem_claims_what_is_true(prove):
    found = [prove(seed) for seed in range(12)]
    assert sum(said is not None for said in found) > 5


def test_ways_that_claim_too_much_would_be_found(monkeypatch):
    def boasting(self, **more):
        return Certificate(self.primal, self.primal - 0.5 * self.gap, 0.5 * self.gap, **more)

    monkeypatch.setattr(Proof, "certified", boasting)
    with pytest.raises(AssertionError):
        [prove_handed_over(seed) for seed in range(12)]


def test_runs_that_rounding_stops_end_at_their_budgets():
    """They waited for a method of more digits, which a run without an epoch left never began."""
    assert prove_estimators(1728) is not None


@pytest.mark.parametrize("seed", [158, 889])
def test_objectives_whose_dual_point_overflows_are_known_as_well_as_others(seed):
    """What rounding may have taken from them was said to be nothing."""
    assert prove_audits(seed) >= 1.0


def prove_underflow(seed):
    """Return the relative gap of a point whose objective, norms or products underflow."""
    X, y, loss, lam, weights, free, ratio = draw(seed)
    rng = np.random.default_rng([seed, 30])
    X = np.nan_to_num(X.astype(float).toarray() if hasattr(X, "toarray") else X.astype(float))
    X *= 10.0 ** rng.uniform(-320, -140) / max(np.abs(X).max(), 1e-300)
    if loss.task == "regression":
        y = y / max(np.abs(y).max(), 1e-300) * 10.0 ** rng.uniform(-320, -80)
    lam = 10.0 ** rng.uniform(-200, 40)
    try:
        problem = zg.Problem(X, y, loss, lam, weights, free, ratio)
        with np.errstate(all="ignore"):
            start = rng.standard_normal(problem.dual_shape) * 10.0 ** rng.uniform(-320, 1)
            alpha = problem.feasible(start)
            w = problem.to_weights(problem.dual_sum(alpha))
            w = w * (1.0 + rng.choice([0.0, 1e-15, 1.0]) * rng.standard_normal(w.shape))
            b = problem.constant() if free else 0.0
            certificate = problem.prove(w, b, problem.scores(w), alpha).certificate
    except ValueError as error:
        return refused(error)
    check((X, y, loss, lam, weights, free, ratio), w, b, alpha, certificate, seed)
    return certificate.relative_gap


def test_numbers_too_small_for_a_double_are_not_taken_for_zero():
    """A norm that underflows bounded rounding by nothing, and gaps were said to be 0."""
    found = [prove_underflow(seed) for seed in range(200)]
    assert sum(gap is not None for gap in found) > 150
    for loss in ("squared", "absolute", "huber"):  # 0 where every number is
        problem = zg.Problem(np.zeros((3, 1)), np.zeros(3), loss, lam=1.0)
        run = zg.solve(problem, zg.Auto(), tol=1e-6)
        assert run.stop_reason == "converged"
        assert run.certificate.relative_gap == 0.0
        assert run.certificate.gap <= 1e-280


@pytest.mark.parametrize("loss", ["softmax", "multiclass-hinge"])
def test_common_offsets_of_scores_take_no_digits_from_gaps(loss):
    rng = np.random.default_rng(0)
    for offset in 10.0 ** rng.uniform(3, 11, 20):
        X, y = rng.standard_normal((4, 2)), np.array([0, 1, 2, 0])
        problem = zg.Problem(X, y, loss, lam=0.1, fit_intercept=True)
        run = zg.solve(problem, zg.Auto(), tol=1e-13, random_state=0)
        b = run.b + offset + np.sqrt(1e-16 * offset) * rng.standard_normal(3)
        claimed = problem.certificate(run.w, b, run.alpha)
        data, none = (X, y, problem.loss, problem.lam, None, True, 0.0), 0.0 * run.alpha
        (far, _), (_, best) = (exact(data, run.w, at, none)[0] for at in (b, run.b))
        assert Fraction(claimed.gap) >= far - best, (offset, claimed)


def test_total_weights_of_stores_and_clusters_are_rounded_once(tmp_path):
    X, y, weights = np.ones((100_000, 1)), np.arange(100_000) % 2, np.full(100_000, 0.1)
    weights[0] = 0.2
    exactly = Fraction(0.1) * 99_999 + Fraction(0.2)
    store = write_store(tmp_path / "store", [(X, y, weights)], task="classification")
    rows = (X[:70_000], y[:70_000], weights[:70_000]), (X[70_000:], y[70_000:], weights[70_000:])
    summaries = [read(k, part, classify=True).summary for k, part in enumerate(rows)]
    totals = [store.total_weight, sum(store.class_weights), state(summaries, True, None).total]
    assert all(abs(Fraction(total) - exactly) <= exactly / 2**52 for total in totals)


def test_bounds_of_rounding_count_the_weights_of_all_classes():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((6, 500)), np.arange(6)
    problem = zg.Problem(X, y, "softmax", lam=1.0)
    w = rng.standard_normal(problem.weight_shape)
    proof = problem.proof_of(w, np.zeros(6))
    assert proof.blur >= w.size * 2.0**-53 * 0.5 * np.square(w).sum()


@pytest.mark.parametrize("above", [1e-3, 1e-7, 1e-11, 1e-15])
def test_the_conjugate_of_elastic_nets_keeps_its_digits_at_the_kink(above):
    problem = zg.Problem(np.ones((1, 1)), [1.0], "squared", lam=1.0, l1_ratio=0.3)
    u = 0.3 + above
    exact_one = (Fraction(u) - Fraction(0.3)) ** 2 / (2 * (1 - Fraction(0.3)))
    found = Fraction(problem._penalty_conjugate(np.array([u])))
    assert abs(found - exact_one) <= exact_one / 10**14


def test_only_what_zerogap_refuses_counts_as_a_refusal():
    with pytest.raises(ValueError, match="lam") as refusal:
        zg.Problem(np.eye(2), [-1.0, 1.0], "hinge", lam=-1.0)
    assert refused(refusal.value) is None
    with pytest.raises(np.linalg.LinAlgError) as fault:
        np.linalg.cholesky(-np.eye(2))
    with pytest.raises(np.linalg.LinAlgError):
        refused(fault.value)


@pytest.mark.filterwarnings("error")
def test_doubt_of_scores_without_weights_is_known_for_rows_too_long_for_a_double():
    rows, lengths = SimpleNamespace(width=3), np.array([0.0, 1.0, np.inf])
    assert np.all(score_doubt(rows.width, lengths, 0.0) < 1e-300)
    assert np.all(np.isfinite(score_doubt(rows.width, lengths, np.array([0.0, 1.0]))[:2]))
    assert times_length(lengths, np.inf).tolist() == [0.0, np.inf, np.inf]
    assert np.isnan(times_length(lengths, np.nan)[1:]).all()  # an unknown radius stays unknown


@pytest.mark.parametrize("seed", [194, 402, 475, 549])
def test_a_row_left_out_takes_its_own_part_of_the_gap_with_it(seed):
    """It was taken from a sum of lower bounds by another lower bound: predictions were excluded."""
    assert prove_raw_leave_one_out(seed)


def test_certified_predictions_far_from_zero_are_as_tight_as_near():
    rng = np.random.default_rng(0)
    X = np.round(64.0 * rng.standard_normal((60, 3))) / 64.0
    y = X @ [1.0, -2.0, 0.5] + 0.1 * rng.standard_normal(60)
    widths = []
    for offset in (0.0, 2.0**20, 2.0**36):
        settings = {"lam": 0.01, "tol": 1e-8, "random_state": 0}
        model = zg.LinearRegressor("huber", **settings).fit(X + offset, y)
        _, low, high = model.predict_certified(X + offset)
        widths.append(np.max(high - low))
    assert max(widths) <= 2.0 * widths[0]
    assert widths[0] <= 1e-2


@pytest.mark.parametrize("start", range(0, 40, 10))
def test_constant_models_are_certified_without_dual_variables(start):
    for seed in range(start, start + 10):
        data = draw(seed)
        try:
            problem = zg.Problem(*data)
        except ValueError as error:
            refused(error)
            continue
        proof, w = problem.constant_proof(), np.zeros(problem.weight_shape)
        check(data, w, proof.b, np.zeros(problem.dual_shape), proof.certificate, seed)
        (low, high), _ = exact(data, w, proof.b, np.zeros(problem.dual_shape))
        assert low - Fraction(proof.blur) <= Fraction(proof.primal) <= high + Fraction(proof.blur)
        assert proof.gap <= 1.000001 * proof.primal + 1e-284


def test_P1_scores_that_cancel_are_not_certified_as_zero():
    signs, large = np.tile([1.0, -1.0], 20), 2.0**54
    X = np.vstack([[large, large], np.c_[signs, 0 * signs], [large, large]])
    problem = zg.Problem(X, np.r_[1, signs, -1], "hinge", lam=1e-3)
    best = problem.certificate([1.0, -1.0])
    assert best.primal == pytest.approx(0.04861904761904762)
    for solver in (zg.Newton(), zg.Auto(), zg.SDCA()):
        found = zg.solve(problem, solver, tol=1e-6, max_epochs=50, random_state=0).certificate
        assert found.dual <= best.primal


@pytest.mark.parametrize("offset", [0.0, 1e6, 1e9, 1e12, 1e13, 1e14])
def test_P2_gaps_are_not_negative_and_offsets_cost_nothing(offset):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 2)) + offset
    y = X[:, 0] + 0.01 * rng.standard_normal(40)
    model = zg.LinearRegressor("squared", tol=1e-6, random_state=0).fit(X, y)
    assert model.certificate_.gap >= 0.0
    assert model.certificate_.stop_reason == "converged"
    signs = np.where(X[:, 0] > offset, 1.0, -1.0)
    problem = zg.Problem(X[:, :1], signs, "hinge", fit_intercept=True)
    found = zg.solve(problem, zg.InteriorPoint(), tol=1e-6)
    assert found.stop_reason == "converged"
    z = [Fraction(x) * Fraction(found.w[0]) + Fraction(found.b) for x in X[:, 0]]
    losses = [max(Fraction(0), 1 - Fraction(s) * t) for s, t in zip(signs, z, strict=True)]
    lam = Fraction(problem.lam)
    exact = sum(losses) / len(losses) + lam / 2 * Fraction(found.w[0]) ** 2
    assert abs(exact - Fraction(found.certificate.primal)) <= Fraction(1, 10**9)


def test_a_tolerance_below_double_precision_ends_with_that_reason():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((50, 3))
    y = np.where(X[:, 0] + rng.standard_normal(50) > 0, 1.0, -1.0)
    run = zg.solve(zg.Problem(X, y, "hinge", lam=0.01), zg.Auto(), tol=1e-20, random_state=0)
    assert run.stop_reason == "rounding"
    assert 0.0 <= run.certificate.gap - run.certificate.rounding <= 1e-12
    assert run.certificate.rounding <= 1e-12


@pytest.mark.parametrize("loss", ["softmax", "multiclass-hinge"])
def test_differences_of_two_classes_are_the_model_that_is_certified(loss):
    """Columns far from zero show the last digits of weights, and a difference rounds them again."""
    for seed in range(12):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((20, 2)) + 10.0 ** rng.integers(6, 13, 2)
        y = np.append([0, 1], rng.integers(2, size=18))
        model = zg.LinearClassifier(loss, lam=0.1, tol=1e-12, random_state=0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # rounding is all that is left
            model.fit(X, y)
        hold_model(model, X, y, None, seed)
