"""Cells, their digests, and how they are run."""

import dataclasses

import numpy as np
import pytest

import zerogap as zg
from lab import toys
from zerogap.lab import Arm, Data, Experiment, final
from zerogap.lab import data as lab_data
from zerogap.lab import tables as lab_tables
from zerogap.lab.cells import make_problem, optimum
from zerogap.lab.runner import run
from zerogap.problem.checks import code_targets

SIMULATED = Data("simulated", options={"n_samples": 60}, test=0.25)
EXPERIMENT = Experiment(
    id="toy",
    title="Toy",
    question="?",
    data=(SIMULATED, dataclasses.replace(SIMULATED, label="noisy", options={"n_samples": 50})),
    lams=(0.1,),
    arms=(
        Arm("SDCA", "sdca"),
        Arm("ASDCA", "asdca:batch_size=4", loss="smooth-hinge"),
        Arm("Pegasos, 7 steps", "pegasos:batch_size=8", updates=7),
    ),
    seeds=range(3),
    epochs=4,
    metrics=("test_error", "primal:hinge", "coordinates", toys.largest_weight),
    reference=1e-6,
)
NOISE = Experiment(
    id="noise", title="", question="?", arms=(Arm("a"),), seeds=range(4), function=toys.noise
)


@pytest.fixture(scope="module")
def outcome(tmp_path_factory):
    return run([EXPERIMENT], tmp_path_factory.mktemp("out"), jobs=0)


@pytest.fixture(scope="module")
def table(outcome):
    return outcome.tables["toy"]


def without_times(path):
    table, facts = lab_tables.read(path)
    return table.drop(columns=[name for name in table if name.endswith("seconds")]), facts


def test_every_combination_is_a_cell_once():
    cells = EXPERIMENT.cells()
    assert len(cells) == 2 * 3 * 3 + 2 * 2  # and a reference for each data set and loss
    assert len({cell.digest("") for cell in cells}) == len(cells)
    doubled = dataclasses.replace(EXPERIMENT, arms=EXPERIMENT.arms * 2)
    assert doubled.cells() == cells


def test_digest_follows_settings_data_and_code():
    cell = EXPERIMENT.cells()[0]
    assert cell.digest("a") == EXPERIMENT.cells()[0].digest("a")
    others = [
        dataclasses.replace(cell, seed=7),
        dataclasses.replace(cell, lam=0.2),
        dataclasses.replace(cell, arm=dataclasses.replace(cell.arm, columns={"k": 1})),
        dataclasses.replace(cell, data=dataclasses.replace(cell.data, test=0.5)),
        dataclasses.replace(cell, function="lab.toys:noise"),
    ]
    digests = {other.digest("a") for other in others} | {cell.digest("b")}
    assert len(digests) == 6
    assert cell.digest("a") not in digests


def test_table_holds_the_runs(table):
    assert list(table)[:5] == ["data", "loss", "lam", "solver", "seed"]
    assert list(table)[-2:] == ["seconds", "cpu_seconds"]
    assert set(table["solver"]) == {"SDCA", "ASDCA", "Pegasos, 7 steps"}
    last = final(table)
    assert len(last) == 18
    assert (last.loc[last["solver"] == "Pegasos, 7 steps", "updates"] == 7).all()
    assert (last.loc[last["solver"] == "SDCA", "epoch"] == 4).all()
    assert (table["suboptimality"] >= 0).all()
    assert (table["gap"] >= table["suboptimality"] - 1e-12).all()
    other = table[table["loss"] == "smooth-hinge"]
    assert (other["hinge_primal"] > other["primal"]).any()
    same = table[table["loss"] == "hinge"]
    assert np.allclose(same["hinge_primal"], same["primal"], rtol=1e-12)
    weights = table[[f"w{j}" for j in range(1, 11)]].abs().max(axis=1)
    assert np.allclose(weights, table["largest_weight"])


def test_optimum_is_the_true_one(table):
    cell = EXPERIMENT.cells()[0]
    problem, _ = make_problem(cell, lab_data.load(cell.data, cell.seed))
    best = optimum(problem).certificate
    found = table[(table["data"] == "simulated") & (table["loss"] == "hinge")]["optimum"]
    assert found.nunique() == 1
    assert found.iloc[0] <= best.primal
    assert found.iloc[0] >= best.primal * (1 - 1e-5)


def test_same_seeds_same_bytes_but_for_times(outcome, tmp_path):
    again = run([EXPERIMENT], tmp_path / "b", jobs=2)
    assert again.failures == []
    first, facts = without_times(lab_folder(outcome, tmp_path) / "toy.parquet")
    second, more_facts = without_times(tmp_path / "b" / "tables" / "toy.parquet")
    lab_tables.write(first, tmp_path / "1.parquet", facts)
    lab_tables.write(second, tmp_path / "2.parquet", more_facts)
    for suffix in (".parquet", ".csv"):
        contents = [(tmp_path / f"{k}{suffix}").read_bytes() for k in (1, 2)]
        assert contents[0] == contents[1]
    assert facts["seeds"] == [0, 1, 2]
    assert set(facts["environment"]) >= {"zerogap", "numpy", "Python"}


def lab_folder(outcome, tmp_path):
    folder = tmp_path / "a"
    folder.mkdir()
    lab_tables.write(outcome.tables["toy"], folder / "toy.parquet", outcome.facts["toy"])
    return folder


def test_done_cells_are_kept(tmp_path):
    tallies = []
    for experiment in (NOISE, dataclasses.replace(NOISE, seeds=range(6))):
        run([experiment], tmp_path, jobs=0, on_progress=lambda t: tallies.append((t.total, t.kept)))
    assert tallies[0] == (4, 0)
    assert tallies[-1] == (2, 4)
    for path in (tmp_path / "cells").rglob("*.parquet"):
        path.write_bytes(b"not whole")
    run([NOISE], tmp_path, jobs=0, on_progress=lambda t: tallies.append((t.total, t.kept)))
    assert tallies[-1] == (4, 0)


def test_a_failing_cell_does_not_stop_the_rest(tmp_path):
    arms = (Arm("a", columns={"fails": 1}), Arm("bb"))
    outcome = run([dataclasses.replace(NOISE, arms=arms)], tmp_path, jobs=0)
    assert [str(failure) for failure in outcome.failures] == [
        "noise (loss hinge, solver a, seed 1, fails 1): ValueError: this seed is not wanted"
    ]
    assert outcome.unfinished == {"noise": 1}
    assert outcome.tables["noise"].groupby("solver").seed.nunique().to_dict() == {"a": 3, "bb": 4}


@pytest.mark.posix
def test_a_dying_process_costs_its_cell_alone(tmp_path):
    arms = (Arm("a", columns={"dies": 1}),)
    outcome = run([dataclasses.replace(NOISE, arms=arms)], tmp_path, jobs=1)
    assert len(outcome.failures) == 1
    assert "exit code -9" in outcome.failures[0].error
    assert sorted(outcome.tables["noise"].seed.unique()) == [0, 2, 3]


def test_interrupted_work_is_resumed(tmp_path):
    whole = dataclasses.replace(NOISE, arms=(Arm("a", columns={"interrupts": 2}),))
    outcome = run([whole], tmp_path, jobs=0)
    assert outcome.interrupted
    assert outcome.unfinished == {"noise": 2}
    assert sorted(outcome.tables["noise"].seed.unique()) == [0, 1]
    tallies = []
    later = dataclasses.replace(whole, seeds=(0, 1, 3))
    assert not run([later], tmp_path, jobs=0, on_progress=tallies.append).interrupted
    assert tallies[0].kept == 2


def test_ctrl_c_ends_the_processes_and_keeps_what_is_done(tmp_path):
    def press(tally):
        if tally.done == 1:
            raise KeyboardInterrupt

    outcome = run([NOISE], tmp_path, jobs=1, on_progress=press)
    assert outcome.interrupted
    assert outcome.unfinished == {"noise": 3}
    assert run([NOISE], tmp_path, jobs=0).tables["noise"].seed.nunique() == 4


def test_processes_use_one_thread_and_timed_cells_come_last(tmp_path, monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    order = []
    experiments = [
        dataclasses.replace(NOISE, id=f"e{k}", timed=k == 0, function=toys.threads, seeds=(k,))
        for k in range(3)
    ]
    outcome = run(experiments, tmp_path, jobs=2, on_progress=lambda t: order.append(t.experiment))
    assert order[-1] == "e0"
    assert set(order) == {"", "e0", "e1", "e2"}
    for table in outcome.tables.values():
        assert table[["omp", "numba"]].to_numpy().tolist() == [["1", "1"]]


def test_missing_data_are_told_once_and_the_rest_goes_on(tmp_path, monkeypatch):
    def refuse(file, folder):
        raise FileNotFoundError("put it here")

    monkeypatch.setattr(lab_data.files, "read", refuse)
    both = dataclasses.replace(
        EXPERIMENT, data=(Data("skin"), SIMULATED), metrics=(), seeds=(0, 1), reference=None
    )
    outcome = run([both], tmp_path / "out", folder=tmp_path, jobs=0)
    assert outcome.missing == {"skin": "put it here"}
    assert set(outcome.tables["toy"]["data"]) == {"simulated"}
    assert outcome.failures == []
    assert outcome.unfinished == {}


def test_small_version_is_smaller():
    big = dataclasses.replace(EXPERIMENT, seeds=range(10), epochs=50)
    small = big.small()
    assert (len(small.seeds), small.epochs, small.data[0].rows) == (3, 5, 1000)
    told = dataclasses.replace(big, quick={"seeds": (5,), "rows": None, "epochs": 2})
    assert (told.small().seeds, told.small().data, told.small().epochs) == ((5,), big.data, 2)


def test_functions_inside_others_are_refused():
    with pytest.raises(ValueError, match="must be a function of a module"):
        dataclasses.replace(NOISE, function=lambda cell, data: []).cells()


def test_rows_are_split_and_transformed_as_declared():
    data = Data("simulated", options={"n_samples": 200, "noise": 0.1}, test=0.25, seed=3)
    plain = lab_data.load(data, seed=0)
    assert plain.X.shape == (150, 10)
    assert plain.X_test.shape == (50, 10)
    assert plain.beta.shape == (10,)
    scaled = lab_data.load(dataclasses.replace(data, transforms=("standardise",)), 0)
    assert np.allclose(scaled.X.mean(axis=0), 0)
    assert not np.allclose(scaled.X_test.mean(axis=0), 0, atol=1e-3)
    leaky = lab_data.load(dataclasses.replace(data, first=("standardise",)), 0)
    assert np.allclose(np.vstack([leaky.X, leaky.X_test]).mean(axis=0), 0)
    fewer = lab_data.load(dataclasses.replace(data, rows=40, transforms=("pca:n_components=2",)), 0)
    assert fewer.X.shape == (30, 2)
    resplit = dataclasses.replace(data, seed=None)
    assert not np.array_equal(lab_data.load(resplit, 1).X, lab_data.load(resplit, 2).X)
    assert np.array_equal(lab_data.load(data, 1).X, lab_data.load(data, 2).X)


def test_groups_stay_together(monkeypatch):
    rows = lab_data.Loaded(
        np.arange(40.0).reshape(20, 2),
        np.tile([-1, 1], 10),
        np.zeros((4, 2)),
        np.array([1, -1, 1, -1]),
        groups=np.repeat(np.arange(5), 4),
        groups_test=np.full(4, 4),
    )
    monkeypatch.setattr(lab_data, "_raw", lambda *_: rows)
    found = lab_data.load(Data("bloodcells", test=0.3, seed=11), 0)
    assert not set(found.groups) & set(found.groups_test)
    assert len(found.y) + len(found.y_test) == 24
    mixed = lab_data.load(Data("bloodcells", test=0.3, groups=False, seed=11), 0)
    assert set(mixed.groups) & set(mixed.groups_test)


def test_one_class_against_the_rest():
    y, y_test = code_targets(zg.losses.as_loss("hinge"), ["b", "a", "b"], ["a"])
    assert (y.tolist(), y_test.tolist()) == ([1, -1, 1], [-1])
    with pytest.raises(ValueError, match="separates two classes, there are 3"):
        code_targets(zg.losses.as_loss("hinge"), [1, 2, 3])
    with pytest.raises(ValueError, match="class c of the test data"):
        code_targets(zg.losses.as_loss("hinge"), ["a", "b"], ["c"])


def test_the_optimum_is_that_of_the_run_s_own_rows(tmp_path):
    """One data set is the same for all seeds, the other is drawn anew for each."""
    drawn = dataclasses.replace(SIMULATED, label="drawn", seed=None)
    mixed = dataclasses.replace(EXPERIMENT, data=(SIMULATED, drawn), arms=EXPERIMENT.arms[:1])
    table = run([mixed], tmp_path, jobs=0).tables["toy"]
    optima = table.groupby("data")["optimum"].nunique()
    assert optima["simulated"] == 1
    assert optima["drawn"] == 3
    assert (table["gap"] >= table["suboptimality"] - 1e-9).all()
    assert "sample" not in table
