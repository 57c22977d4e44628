"""Default fits of tables that nobody scaled: all must end with their certificate."""

import dataclasses

import numpy as np
import pytest
from table_peers import PEERS, fit_peer, peers_of

from raw_cases import (
    ALL_LOSSES,
    CERTIFIED,
    FAILED,
    REFUSED,
    draw_case,
    fit_case,
    verdict_on,
)
from zerogap.losses import as_loss

FITS = 300
GROUPS = 12  # so that a failure names few seeds, and processes can share the work
FEWEST_ROWS, MOST_ROWS = 20, 200  # 300 fits in less than a minute


def small_case(seed):
    """Return a case with 20 to 200 rows, log-uniform."""
    share = seed * 89 % FITS / FITS  # 89 and 300 have no common divisor: every share occurs once
    return draw_case(seed, round(FEWEST_ROWS * (MOST_ROWS / FEWEST_ROWS) ** share))


@pytest.mark.parametrize("group", range(GROUPS))
def test_raw_tables_are_certified(group):
    wrong = []
    for seed in range(group, FITS, GROUPS):
        case = small_case(seed)
        outcome = fit_case(case, max_seconds=30.0)
        if outcome.verdict not in (CERTIFIED, REFUSED):
            wrong.append(f"{case}: {outcome.why}, relative gap {outcome.relative_gap:.1e}")
    assert not wrong, f"{len(wrong)} of {FITS // GROUPS} without certificate:\n" + "\n".join(wrong)


@pytest.mark.parametrize("seed", [1703, 1860, 2261, 3197, 4375, 8275, 9165])
def test_weights_that_cancel_are_rounded_together(seed):
    """Near copies and offsets of 1e9 to 1e14: doubles one by one are 1e-5 and more off."""
    assert fit_case(draw_case(seed)).verdict == CERTIFIED


def test_a_class_that_others_are_separable_from_is_certified():
    """Squared hinge, one against the rest, columns of very different sizes: P is 1e-6 of others."""
    assert fit_case(draw_case(4396)).verdict == CERTIFIED


def test_other_methods_are_tried_before_twice_the_precision():
    """Two rows of a class beside unix times: where Newton's method stalls, interior points end."""
    solver = fit_case(draw_case(382)).model.certificate_.solver
    assert "then InteriorPoint, chosen" in solver


def test_cases_follow_from_their_seed():
    for seed in range(20):
        first, second = draw_case(seed), draw_case(seed)
        assert str(first) == str(second)
        assert np.array_equal(first.table.y, second.table.y)
        assert (first.weights is None) == (second.weights is None)
        assert first.lam == second.lam


def test_cases_have_every_loss_and_setting():
    cases = [small_case(seed) for seed in range(FITS)]
    assert {case.name for case in cases} == set(ALL_LOSSES)
    assert {case.tol for case in cases} == {1e-3, 1e-6}
    assert {case.fit_intercept for case in cases} == {False, True}
    assert 0.1 < np.mean([case.l1_ratio > 0 for case in cases]) < 0.3
    assert {(case.loss.task, case.table.target) for case in cases} == {
        ("classification", "binary"),
        ("classification", "multiclass"),
        ("multiclass", "binary"),
        ("multiclass", "multiclass"),
        ("regression", "number"),
    }


def test_only_tables_out_of_range_may_be_refused():
    case = next(c for c in map(small_case, range(FITS)) if c.table.target == "number")
    huge = dataclasses.replace(case, table=case.table._replace(y=np.full(case.table.y.shape, 1e16)))
    assert verdict_on(ValueError(), case) == FAILED
    assert verdict_on(ValueError(), huge) == REFUSED
    assert verdict_on(FloatingPointError(), huge) == FAILED
    assert fit_case(dataclasses.replace(case, C=-1.0)).verdict == FAILED


def easy_case(seed):
    """Return a small case with normal columns and a strong penalty."""
    case = draw_case(seed, 60)
    X = np.random.default_rng(seed).standard_normal((60, 4))
    y = case.table.y
    if case.is_regression:
        y = (y - np.median(y)) / (np.std(y) or 1.0)
    loss = as_loss(case.name)
    table = case.table._replace(X=X, y=y)
    return dataclasses.replace(case, table=table, loss=loss, C=0.1, tol=1e-6)


def test_peers_minimise_what_ours_does():
    found = set()
    for case in map(easy_case, range(150)):
        ours = fit_case(case)
        assert ours.verdict == CERTIFIED
        for peer in peers_of(case):
            _, primal = fit_peer(peer, case)
            assert primal >= (1 - 1e-6) * ours.primal, (peer.name, str(case))
            if primal <= 1.01 * ours.primal:
                found.add((case.name, peer.name))
    assert found == {(loss, peer.name) for peer in PEERS for loss in peer.losses}
