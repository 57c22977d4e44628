"""The time left: by the cost of what is left."""

from dataclasses import replace

import pytest

from zerogap.lab import Arm, Data, Experiment
from zerogap.lab import tally as lab_tally
from zerogap.lab.chapters import chapters
from zerogap.lab.tally import Tally


def cells(id, seeds, timed=False):
    experiment = Experiment(
        id, "t", "q", data=(Data("simulated"),), arms=(Arm("a", "sdca"),), seeds=seeds, timed=timed
    )
    return [(id, cell) for cell in experiment.cells()]


@pytest.fixture
def costs(monkeypatch):
    known = {"cheap": {"simulated": 0.1}, "dear": {"simulated": 10.0}}
    monkeypatch.setattr(lab_tally, "_costs", lambda: known)


def test_what_is_left_costs_what_it_is_known_to_cost(costs):
    """On a machine half as fast as expected, after a while."""
    todo = cells("cheap", range(1000)) + cells("dear", (0, 1, 2))
    tally = Tally(1, todo)
    assert tally.left == pytest.approx(1000 * 0.1 + 3 * 10.0)
    for _, cell in todo[:500]:
        tally.count("cheap", cell, 0.2)
    assert (tally.done, tally.total) == (500, 1003)
    assert tally.left == pytest.approx(500 * 0.2 + 3 * 20.0, rel=0.08)
    tally.count("dear", todo[1000][1], 30.0)
    tally.count("dear", todo[1001][1], 15.0)
    assert tally.left == pytest.approx(500 * 0.2 + (20.0 + 15.0) / 2, rel=0.08)


def test_compiling_is_not_taken_for_the_pace(costs):
    """A first run of 8 seconds, which costs .1 from then on, and a second group that compiles."""
    todo = cells("cheap", range(100)) + cells("dear", (0, 1, 2))
    tally = Tally(1, todo)
    tally.count("cheap", todo[0][1], 8.0)
    assert tally.left == pytest.approx(99 * 0.1 + 3 * 10.0)
    tally.count("cheap", todo[1][1], 0.1)
    tally.count("dear", todo[100][1], 25.0)
    assert tally.left == pytest.approx(98 * 0.1 + 2 * 10.0)


def test_timed_runs_are_not_shared_out(costs):
    todo = cells("dear", (0, 1)) + cells("dear", (2, 3), timed=True)
    assert Tally(2, todo).left == pytest.approx(10.0 + 20.0)


def test_unknown_runs_take_as_long_as_those_measured(costs):
    todo = cells("new", range(4))
    tally = Tally(1, todo)
    tally.count("new", todo[0][1], 3.0)
    assert tally.left == pytest.approx(9.0)
    assert Tally(1, cells("newer", (0,))).left == pytest.approx(1.0)


def test_every_experiment_of_the_chapters_has_its_cost():
    known = lab_tally._costs()
    for chapter in chapters():
        for experiment in chapter.experiments:
            labels = {data.label or data.name for data in experiment.data if data.name != "vert"}
            assert labels <= set(known[experiment.id]), experiment.id
            assert all(seconds > 0 for seconds in known[experiment.id].values())


def test_the_full_run_is_expected_to_take_some_tens_of_minutes():
    todo = [
        (experiment.id, cell)
        for chapter in chapters()
        for experiment in chapter.experiments
        for cell in replace(experiment).cells()
        if cell.data.name != "vert"
    ]
    assert 10 * 60 < Tally(2, todo).left < 45 * 60
