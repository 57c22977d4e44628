"""Chapter S1: its cell functions on small data, its judges on made-up tables."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from lab.test_s1_outcomes import curves
from zerogap.lab import Arm, Data
from zerogap.lab.chapters import s1_cells
from zerogap.lab.chapters.s1_tables import BUG, PEGASOS, SDCA, arrivals
from zerogap.lab.data import Loaded
from zerogap.lab.experiment import Cell
from zerogap.losses import Hinge


@pytest.fixture
def rows() -> Loaded:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 5)).astype(np.float32)
    y = np.where(X[:, 0] + 0.3 * rng.standard_normal(300) > 0, 1, -1)
    return Loaded(X[:200], y[:200], X[200:], y[200:])


def make_cell(solver: str, columns: dict[str, Any], of_data: dict[str, Any] | None = None) -> Cell:
    data = Data("made-up", columns=of_data or {})
    arm = Arm("arm", solver, columns=columns)
    return Cell("", data, "hinge", 0.01, arm, 0, 20, 0.0, "epoch", ("test_error",), False, False)


@pytest.mark.parametrize("z", [-2.0, 0.1, 0.9, 3.0])
def test_the_wrong_step_of_factor_one_is_the_right_one(z: float) -> None:
    assert s1_cells.WrongStep(1.0).dual_step(0.3, 1.0, z, 2.0) == Hinge().dual_step(
        0.3, 1.0, z, 2.0
    )


def test_steps_with_d_for_n_are_slower_but_feasible(rows: Loaded) -> None:
    right = s1_cells.run(make_cell("sdca:shrink=false", {"step": "lambda n"}), rows)
    wrong = s1_cells.run(make_cell("sdca:shrink=false", {"step": "lambda d"}), rows)
    assert len(right) == len(wrong) == 21
    assert 0 < right[-1]["gap"] < 0.1 * wrong[-1]["gap"] < 1.0
    assert [row["dual"] for row in wrong] == sorted(row["dual"] for row in wrong)


@pytest.mark.parametrize("solver", ["sdca:shrink=false", "pegasos:batch_size=100:sampling=epochs"])
def test_interpreted_and_compiled_steps_end_at_the_same_objective(
    rows: Loaded, solver: str
) -> None:
    compiled = s1_cells.time_epochs(make_cell(solver, {"code": "compiled"}), rows)[-1]
    (interpreted,) = s1_cells.time_epochs(make_cell(solver, {"code": "interpreted"}), rows)
    assert interpreted["primal"] == pytest.approx(compiled["primal"], rel=0.05)


@pytest.mark.parametrize("centred", ["centred", "not centred"])
def test_altered_rows_have_the_norm_asked_for(
    rows: Loaded, monkeypatch: pytest.MonkeyPatch, centred: str
) -> None:
    seen = []
    monkeypatch.setattr(s1_cells, "run_solver", lambda cell, data: seen.append(data) or [])
    shifted = Loaded(rows.X + 3, rows.y, rows.X_test + 3, rows.y_test)
    wanted = {"d": 2, "centred": centred, "noise": 0.1, "norm": 36.0}
    s1_cells.run_altered(make_cell("sdca", {}, wanted), shifted)
    (data,) = seen
    assert (data.X.shape, data.X_test.shape) == ((200, 2), (100, 2))
    assert np.mean(np.sum(data.X**2, axis=1)) == pytest.approx(36.0**2, rel=1e-4)
    assert (np.linalg.norm(data.X.mean(axis=0)) < 1e-3) == (centred == "centred")


def photograph(rng: np.random.Generator) -> np.ndarray:
    """Return a bright nucleus with three satellites of its own, on a dark ground."""
    place = np.indices((120, 120)) - 60.0
    image = np.full((120, 120), 0.2)
    for radius, size in (
        (0.0, 14.0),
        *((rng.uniform(18, 30), rng.uniform(3, 7)) for _ in range(3)),
    ):
        angle = rng.uniform(0, 2 * np.pi)
        away = np.hypot(place[0] - radius * np.cos(angle), place[1] - radius * np.sin(angle))
        image[away < size] = 0.6 if radius else 0.9
    return image


def test_turned_and_mirrored_pictures_are_led_back_to_their_photograph() -> None:
    pytest.importorskip("cv2")
    from scipy.ndimage import rotate

    rng = np.random.default_rng(0)
    truth, images = [], []
    for k in range(12):
        source = photograph(rng)
        for j in range(10):
            image = source[:, ::-1] if j % 2 else source
            image = rotate(image, rng.uniform(0, 360), reshape=False, order=1, mode="nearest")
            images.append(image.astype(np.float32).ravel())
            truth.append(k)
    X, y = np.array(images), np.repeat([-1, 1, -1, 1], 30)
    numbers = np.tile([0, 1, 2], 40)  # as many as photographs, and no more than that
    data = Loaded(X[:60], y[:60], X[60:], y[60:], numbers[:60], numbers[60:])
    found = s1_cells.photographs(data)
    pairs = set(zip(found.group.tolist(), truth, strict=True))
    assert len(pairs) == len(set(truth)) == len(set(found.group.tolist()))
    train, test = s1_cells._divide(data, "by photograph", seed=1)
    assert not set(found.group[train]) & set(found.group[test])
    assert len(train) + len(test) == 120
    assert len(test)
    check = s1_cells.source_check(make_cell("", {}), data)
    assert all(row["same_group"] == 1.0 > row["same_number"] for row in check)


def test_an_error_is_reached_when_it_stays() -> None:
    table = curves({SDCA: [0.5, 0.3, 0.2, 0.2], PEGASOS: [0.5, 0.2, 0.4, 0.2], BUG: [0.5] * 4})
    there = arrivals(table).groupby("solver")["epoch"].first()
    assert there.to_dict() == {SDCA: 2.0, PEGASOS: 3.0, BUG: 4.0}


def test_pictures_as_columns_take_the_same_steps(rows: Loaded) -> None:
    """Only where the numbers lie differs: both codes end at the same objective."""
    ends = [
        s1_cells.time_epochs(make_cell("sdca:shrink=false", {"code": code}), rows)[0]["primal"]
        for code in ("interpreted", "columns")
    ]
    assert ends[0] == pytest.approx(ends[1], rel=1e-5)
