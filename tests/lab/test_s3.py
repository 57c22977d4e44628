"""Chapter S3: Frank-Wolfe as printed, the practical's split, and judges on made-up tables."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import zerogap as zg
from zerogap.lab import DEPENDS, FAILS, HOLDS, Data
from zerogap.lab.chapters import s3, s3_cells, s3_judges
from zerogap.lab.data import Loaded


def made_up(n=120, d=6, classes=3):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d))
    return X, (X[:, :classes] + rng.standard_normal((n, classes))).argmax(axis=1)


def frank_wolfe(batch, clip=True, passes=20, mu=0.1):
    X, y = made_up()
    rng = np.random.default_rng(1)
    method = s3_cells.BlockFrankWolfe(X, y, 3, mu, batch, rng, clip)
    gaps = []
    for _ in range(passes):
        for j in rng.permutation(len(method.blocks)):
            method.step(j)
        gaps.append(method.gap)
    return method, zg.Problem(X, y, "multiclass-hinge", mu), np.array(gaps)


def test_with_one_block_it_is_the_librarys_frank_wolfe():
    method, problem, _ = frank_wolfe(batch=120)
    result = zg.solve(problem, zg.BCFW(batch_size=120), tol=0.0, max_epochs=20, random_state=0)
    np.testing.assert_allclose(method.w, result.w, atol=1e-10)


@pytest.mark.parametrize("batch", [1, 16, 120])
def test_clipped_steps_stay_feasible_and_the_gap_is_primal_minus_dual(batch):
    method, problem, gaps = frank_wolfe(batch)
    assert (gaps >= 0).all()
    assert gaps[-1] < gaps[0] / 2
    assert problem.primal(method.w) - method.dual == pytest.approx(method.gap, abs=1e-12)
    np.testing.assert_allclose(method.w, method.w_blocks.sum(axis=0), atol=1e-12)


def test_printed_steps_leave_the_feasible_set():
    assert frank_wolfe(1, clip=False)[2].min() < 0


def test_the_split_is_that_of_the_practical(data_folder):
    (experiment,) = (e for e in s3.CHAPTER.experiments if e.id == "S3-duel")
    arm = next(arm for arm in experiment.arms if arm.name == s3_judges.TUNED)
    data = Data("mini-mnist", rows=300)
    cell = experiment._cell(data, arm, "multiclass-hinge", 1e-3, 3)
    rows = s3_cells.digits(cell, Loaded(folder=str(data_folder)))
    assert rows[-1]["setting"] in s3_cells.GRID
    assert rows[-1]["examples"] == 300
    digits = zg.datasets.load_mnist("mini-mnist", data_folder)
    found = s3_cells.split("mini-mnist", 300, str(data_folder))
    np.testing.assert_array_equal(found.X, digits.X_train[:300])
    np.testing.assert_array_equal(found.y_validation, digits.y_validation)


def test_dense_and_sparse_frank_wolfe_store_what_they_say():
    size = s3_cells.Size(N=20, d=5, C=3)
    (_, dense), (_, sparse) = (
        s3_cells.COSTS[f"Frank-Wolfe, A {form}"][0](size, 0) for form in ("dense", "sparse")
    )
    assert dense == 20 * 5 * 3 * 3 + 60
    assert sparse == 2 * 5 * 20 * 2 + 60  # columns of the row's own class are zero


def descent(sgd_epochs):
    """GD reaches 0.5 after 10 passes; SGD after so many, seed by seed, on two sets."""
    lines = []
    for data, n in (("mini-mnist", 100), ("mnist", 1000)):
        for epoch, primal in ((1, 2.0), (10, 0.5)):
            lines.append((data, s3_judges.GD, 0, epoch, epoch, epoch * n, primal, epoch))
        for seed, epoch in enumerate(sgd_epochs[data]):
            for at, primal in ((epoch / 2, 1.0), (epoch, 0.4)):
                lines.append((data, s3_judges.SGD, seed, at, at * n, at * n, primal, at))
    names = ["data", "solver", "seed", "epoch", "updates", "examples", "primal", "cpu_seconds"]
    return pd.DataFrame(lines, columns=names)


def test_sgd_is_faster_where_it_needs_fewer_passes():
    fast = descent({"mini-mnist": (1.0, 1.1, 0.9), "mnist": (0.1, 0.11, 0.09)})
    assert s3_judges.judge_speed(s3_judges.best)(fast).verdict == HOLDS
    assert s3_judges.judge_full_set(fast).verdict == HOLDS
    slow = descent({"mini-mnist": (9.0, 9.5, 9.2), "mnist": (9.0, 9.5, 9.2)})
    assert s3_judges.judge_speed(s3_judges.as_given)(slow).verdict == FAILS
    assert s3_judges.judge_full_set(slow).verdict == FAILS


def by_mu(excess):
    lines = [
        (mu, solver, seed, 5.0, 5, 1.0 + value + 0.01 * seed, 1.0, 1.0 - 0.1 * k)
        for solver in (s3_judges.SINGLE, s3_judges.SMALL)
        for k, (mu, value) in enumerate(excess.items())
        for seed in range(4)
    ]
    names = ["lam", "solver", "seed", "epoch", "updates", "primal", "optimum", "dual"]
    return pd.DataFrame(lines, columns=names).assign(gap=lambda t: t["primal"] - t["dual"])


def test_mu_is_judged_by_the_distance_from_the_optimum():
    assert s3_judges.judge_mu(by_mu({0.1: 0.1, 0.01: 1.0, 0.001: 9.0})).verdict == HOLDS
    assert s3_judges.judge_mu(by_mu({0.1: 9.0, 0.01: 1.0, 0.001: 0.1})).verdict == FAILS


def costs(method, exponents):
    lines = [
        (method, seed, size, factor, 100.0 * factor ** s3_judges.power("N d C", size), factor**p)
        for size, p in exponents.items()
        for factor in (1, 2, 4)
        for seed in range(3)
    ]
    names = ["solver", "seed", "grows", "factor", "numbers", "step_seconds"]
    return pd.DataFrame(lines, columns=names)


def test_costs_depend_on_the_cache_where_only_large_arrays_are_slower():
    judge = s3_judges.judge_cost("algorithm 4")
    small = costs("algorithm 4", {"N": 0.0, "d": 0.9, "C": 1.0})
    large = costs("algorithm 4, large", {"N": 0.0, "d": 1.6, "C": 1.0})
    assert judge(small).verdict == HOLDS
    assert judge(pd.concat([small, large])).verdict == DEPENDS
    assert judge(costs("algorithm 4", {"N": 1.0, "d": 1.0, "C": 1.0})).verdict == FAILS
