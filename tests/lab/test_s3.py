"""Chapter S3: Frank-Wolfe as printed, the practical's split, and judges on made-up tables."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import zerogap as zg
from zerogap.lab import Data
from zerogap.lab.chapters import s3, s3_cells, s3_judges, s3_printed_judges
from zerogap.lab.data import Loaded


def made_up(n=120, d=6, classes=3):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d))
    return X, (X[:, :classes] + rng.standard_normal((n, classes))).argmax(axis=1)


def frank_wolfe(batch, clip=True, passes=20, mu=0.1):
    X, y = made_up()
    rng = np.random.default_rng(1)
    method = s3_cells.BlockFrankWolfe(X, y, 3, mu, batch, clip)
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
    (_, dense, _), (_, sparse, _) = (
        s3_cells.COSTS[f"Frank-Wolfe, A {form}"][0](size, 0) for form in ("dense", "sparse")
    )
    assert dense == 20 * 5 * 3 * 3 + 60
    assert sparse == 2 * 5 * 20 * 2 + 60  # columns of the row's own class are zero


def test_algorithm_3_in_the_dual_takes_the_steps_of_algorithm_4():
    X, y = made_up()
    dual, primal = (
        s3_cells.DualFrankWolfe(X, y, 3, 0.1, clip=False),
        s3_cells.BlockFrankWolfe(X, y, 3, 0.1, 1, clip=False),
    )
    for j in np.random.default_rng(1).permutation(len(y)):
        assert dual.step(j) == pytest.approx(primal.step(j))
    np.testing.assert_allclose(dual.w, primal.w, atol=1e-12)
    np.testing.assert_allclose(dual.alpha.sum(axis=1), 1.0)
    assert dual.dual == pytest.approx(primal.dual)


def test_blocks_are_contiguous_and_the_last_may_be_shorter():
    X, y = made_up(n=10)
    blocks = s3_cells.BlockFrankWolfe(X, y, 3, 0.1, 4).blocks
    assert [block.tolist() for block in blocks] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]


def test_all_printed_algorithms_are_run_word_for_word_and_clipped():
    names = {arm.name for arm in s3.PRINTED.arms}
    for name in ("algorithm 3", "algorithm 4", "algorithm 5, b = 16", "algorithm 5, b = 256"):
        assert {f"{name}, as printed", f"{name}, clipped"} <= names
    solvers = {arm.solver for arm in s3.DESCENT.arms}
    assert {"sgd:schedule=sqrt:step=0.01:batch_size=256"} <= solvers


def test_algorithm_5_as_printed_is_measured_like_a_solver(data_folder):
    (experiment,) = (e for e in s3.CHAPTER.experiments if e.id == "S3-duel")
    arm = next(arm for arm in experiment.arms if arm.name == s3_judges.WORD_FOR_WORD)
    cell = experiment._cell(Data("mini-mnist", rows=300), arm, "multiclass-hinge", 1e-3, 3)
    rows = s3_cells.digits(cell, Loaded(folder=str(data_folder)))
    assert [row["epoch"] for row in rows] == [1, 2, 3, 4, 5]
    assert rows[0]["updates"] == 2  # 300 rows in blocks of 256
    assert rows[-1]["primal"] < rows[0]["primal"]
    assert 0 <= rows[-1]["test_error"] <= 1


@pytest.mark.parametrize("name", s3_cells.COSTS)
def test_counted_operations_grow_as_stated(name):
    start, _, growing = s3_cells.COSTS[name]
    base = s3_cells.Size(N=64, d=12, C=4, b=4)
    stated = s3_printed_judges.THEORY[name.removesuffix(s3_printed_judges.LARGE)][0]
    before = start(base, 0)[2]
    for size in growing:
        after = start(replace(base, **{size: 2 * getattr(base, size)}), 0)[2]
        assert np.log2(after / before) <= s3_printed_judges.power(stated, size) + 0.3


def test_pictures_of_digits_and_of_a_step(data_folder):
    (experiment,) = (e for e in s3.CHAPTER.experiments if e.id == "S3-pictures")
    (cell,) = experiment.cells()
    rows = s3_cells.pictures(cell, Loaded(folder=str(data_folder)))
    assert [row["label"] for row in rows if row["figure"] == "digits"] == [
        str(k // 2) for k in range(20)
    ]
    assert [row["label"] for row in rows if row["figure"] == "step"] == list(s3_cells.STEP_PICTURES)
