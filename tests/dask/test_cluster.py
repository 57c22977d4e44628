"""Fits on real worker processes, some of which the tests kill or freeze."""

import functools
import multiprocessing
import os
import signal
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from distributed import Client, LocalCluster
from distributed.utils import get_mp_context
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

import dask
import zerogap as zg
from zerogap.dask import LinearClassifier, LinearRegressor, fitting, work
from zerogap.dask.backend import DaskBackend
from zerogap.model_io import read as read_model
from zerogap.model_io import recertify, save
from zerogap.store import Store, write_store

pytestmark = pytest.mark.timeout(600)  # seconds, but not on a busy machine


@pytest.fixture(scope="module", autouse=True)
def _workers_are_forked():
    """Fork workers from a process that has imported what they need: that is most of their start."""
    if sys.platform != "linux":  # forks of macOS may not use its frameworks
        yield
        return
    with dask.config.set({"distributed.worker.multiprocessing-method": "forkserver"}):
        get_mp_context()  # says what to import, which the next line replaces
        multiprocessing.set_forkserver_preload(["distributed", "zerogap.dask.work"])
        yield


@pytest.fixture(scope="module")
def client():
    with (
        dask.config.set({"distributed.comm.timeouts.connect": "5s"}),
        LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            dashboard_address=":0",
            memory_limit="1GB",
            silence_logs=50,
        ) as cluster,
        Client(cluster, set_as_default=True) as client,
    ):
        yield client


@pytest.fixture
def pids(client):
    """The processes of two living workers, all of which this file has started."""
    client.wait_for_workers(2, timeout=300)
    return list(client.run(os.getpid).values())


def make(n=2000, d=50, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) * (rng.random((n, d)) < 0.3)
    y = np.where(X @ rng.standard_normal(d) + rng.standard_normal(n) > 0, "yes", "no")
    return X, y


@dask.delayed
def read(path, start, stop):
    with np.load(path) as file:
        return sparse.csr_matrix(file["X"][start:stop]), file["y"][start:stop]


@pytest.fixture
def parts(tmp_path):
    """Four parts of a file, and the whole."""
    X, y = make()
    np.savez(tmp_path / "rows.npz", X=X, y=y)
    return [read(tmp_path / "rows.npz", k, k + 500) for k in range(0, 2000, 500)], X, y


def check(model, X, y, loss, tol=1e-6):
    """The model is as good as that of one machine, and says so itself."""
    certificate = model.certificate_
    assert certificate.stop_reason == "converged"
    assert certificate.relative_gap <= tol
    problem = zg.Problem(X, np.where(y == "yes", 1.0, -1.0), loss, model.lam, None, True)
    w, b = model.coef_[0], model.intercept_[0]
    assert problem.primal(w, b) == pytest.approx(certificate.primal, rel=1e-12)
    local = zg.LinearClassifier(loss, lam=model.lam, tol=tol, random_state=0).fit(X, y)
    assert abs(local.certificate_.primal - certificate.primal) <= 2 * tol * certificate.primal


def test_every_kind_of_collection_gives_the_same_model(client, tmp_path):
    X, y = make(400, 10)
    rows, labels = da.from_array(X, chunks=(100, 10)), da.from_array(y, chunks=100)
    frame = dd.from_pandas(pd.DataFrame(X, columns=[f"x{j}" for j in range(10)]), npartitions=4)
    write_store(tmp_path / "store", [(X, y)])
    kinds = {
        "other chunks of X and y, weights": (
            da.from_array(X, chunks=(100, 5)),
            da.from_array(y, chunks=80),
            da.ones(400, chunks=100),
        ),
        "csr, y in memory": (rows.map_blocks(sparse.csr_matrix), y),
        "frame": (frame, dd.from_pandas(pd.Series(y), npartitions=4)),
        "delayed": ([dask.delayed((X[k : k + 100], y[k : k + 100])) for k in range(0, 400, 100)],),
        "persisted": tuple(client.persist([rows, labels])),
        "store": (Store(tmp_path / "store"),),
    }
    expected = zg.LinearClassifier("logistic", lam=0.01, tol=1e-9).fit(X, y).coef_
    for name, data in kinds.items():
        clf = LinearClassifier("logistic", lam=0.01, tol=1e-9, n_groups=2).fit(*data)
        assert np.allclose(clf.coef_, expected, atol=1e-4), name
        assert list(clf.classes_) == ["no", "yes"]
    assert not any(client.run(lambda: len(work._GROUPS)).values())  # workers hold nothing more


def test_more_than_the_workers_may_use_is_refused_before_it_is_read(client):
    rows = da.zeros((1_000_000, 400), chunks=(10_000, 400))
    with pytest.raises(MemoryError, match=r"The rows take 3.2 GB; 2 workers may use 2 GB, 1 to 1"):
        LinearClassifier().fit(rows, da.ones(1_000_000, chunks=10_000))


def test_two_fits_at_once_are_those_of_each_alone(client):
    X, y = make(1000, 20)
    data = da.from_array(X, chunks=(250, 20)), da.from_array(y, chunks=250)

    def fit(loss):
        return LinearClassifier(loss, lam=1e-2, tol=1e-6).fit(*data).certificate_

    alone = [fit(loss) for loss in ("hinge", "logistic")]
    with ThreadPoolExecutor(2) as pool:
        at_once = list(pool.map(fit, ("hinge", "logistic")))
    for one, other in zip(alone, at_once, strict=True):
        assert max(one.relative_gap, other.relative_gap) <= 1e-6
        assert one.primal == pytest.approx(other.primal, rel=2e-6)


def test_predictions_are_lazy_and_those_of_the_local_model(client, tmp_path):
    X, y = make(400, 10)
    lazy = da.from_array(X, chunks=(100, 5))
    y = np.where(X[:, 0] > 0.5, "maybe", y)
    for loss in ("logistic", "softmax"):
        clf = LinearClassifier(loss, lam=0.01, tol=1e-4).fit(lazy, da.from_array(y, chunks=100))
        local = clf.to_local()
        assert type(local) is zg.LinearClassifier
        for method in ("predict", "predict_proba", "decision_function"):
            result = getattr(clf, method)(lazy)
            assert isinstance(result, da.Array)
            assert np.array_equal(result.compute(), getattr(local, method)(X))
            assert np.array_equal(getattr(clf, method)(X), getattr(local, method)(X))
        assert clf.certificate_.relative_gap <= 1e-4
        assert clf.coef_.shape == (3, 10)
        save(local, tmp_path / "model.zg")
        file = read_model(tmp_path / "model.zg")
        assert np.array_equal(file.model.predict(X), local.predict(X))
        assert recertify(file, X, y).claim == "true"
    frame = dd.from_pandas(pd.DataFrame(X), npartitions=2)
    assert np.array_equal(clf.predict(frame).compute(), local.predict(X))


def test_regressor(client):
    X, _ = make(400, 10)
    y = X @ np.arange(10.0) + 3.0
    data = da.from_array(X, chunks=(100, 10)), da.from_array(y, chunks=100)
    model = LinearRegressor("squared", lam=1e-3, tol=1e-9).fit(*data)
    local = zg.LinearRegressor("squared", lam=1e-3, tol=1e-9).fit(X, y)
    assert np.allclose(model.coef_, local.coef_, atol=1e-3)
    assert model.intercept_ == pytest.approx(local.intercept_, abs=1e-3)
    assert np.array_equal(model.predict(data[0]).compute(), model.to_local().predict(X))


def once(function, at=3):
    """Return a callback that calls a function after that many rounds, once."""
    done = []

    def callback(record):
        if record.epoch >= at and not done:
            done.append(True)
            function()

    callback.done = done
    return callback


@pytest.mark.posix
def test_killed_worker(client, parts, pids):
    callback = once(lambda: os.kill(pids[0], signal.SIGKILL))
    clf = LinearClassifier("logistic", lam=1e-3, tol=1e-6, checkpoint_every=1, callback=callback)
    clf.fit(parts[0])
    assert callback.done
    assert len(clf.recoveries_) >= 1
    check(clf, *parts[1:], "logistic")


@pytest.mark.parametrize("when", ["before", "after"])
def test_rows_lost_while_a_second_fit_loads_them(client, parts, monkeypatch, when):
    """Finding F1: their tasks were cancelled as "lost dependencies", and the fit raised."""
    settings = {"lam": 1e-3, "tol": 1e-6, "client": client}
    LinearClassifier("logistic", **settings).fit(parts[0])
    ask, lost = DaskBackend.homes, []

    def lose(self, data, seconds):
        if when == "after":
            found = ask(self, data, seconds)
        if not lost:
            lost.extend(data)
            client.cancel(data, force=True)
        return found if when == "after" else ask(self, data, seconds)

    monkeypatch.setattr(DaskBackend, "homes", lose)
    clf = LinearClassifier("logistic", **settings).fit(parts[0])
    assert len(lost) == len(parts[0])
    check(clf, *parts[1:], "logistic")


@pytest.mark.posix
def test_all_workers_killed_at_once_and_coming_back(client, parts, pids):
    callback = once(lambda: [os.kill(pid, signal.SIGKILL) for pid in pids])
    clf = LinearClassifier("hinge", lam=1e-3, tol=1e-6, callback=callback).fit(parts[0])
    assert callback.done
    assert {g for r in clf.recoveries_ for g in r.groups} == {0, 1}
    check(clf, *parts[1:], "hinge")


@pytest.mark.posix
def test_frozen_worker(client, parts, pids):
    callback = once(lambda: os.kill(pids[0], signal.SIGSTOP))
    try:
        clf = LinearClassifier("hinge", lam=1e-3, tol=1e-6, callback=callback, round_timeout=2.0)
        clf.fit(parts[0])
    finally:
        os.kill(pids[0], signal.SIGCONT)
    assert "no answer" in clf.recoveries_[0].reason
    check(clf, *parts[1:], "hinge")


@pytest.mark.posix
def test_a_lost_scheduler_is_said_and_another_cluster_goes_on(parts, tmp_path):
    delayed, X, y = parts
    options = {"n_workers": 1, "threads_per_worker": 1, "dashboard_address": ":0"}
    common = {"lam": 1e-4, "tol": 1e-6, "checkpoint_every": 1, "checkpoint_dir": tmp_path}
    common |= {"loss": "hinge", "n_groups": 2, "random_state": 0}
    with (
        dask.config.set({"distributed.comm.timeouts.connect": "5s"}),
        LocalCluster(**options, silence_logs=50) as cluster,
        Client(cluster) as first,
    ):
        lose = once(lambda: cluster.sync(cluster.scheduler.close), at=9)
        with pytest.raises(RuntimeError, match=r"the Dask scheduler is gone.*same checkpoint_dir"):
            LinearClassifier(**common, client=first, callback=lose).fit(delayed)
    assert lose.done
    seen = []
    with LocalCluster(**options, silence_logs=50) as cluster, Client(cluster) as second:
        clf = LinearClassifier(**common, client=second, callback=seen.append).fit(delayed)
    assert seen[0].certificate.relative_gap < 0.5  # it did not begin anew
    check(clf, X, y, "hinge")


@pytest.mark.posix
def test_a_worker_that_joins_is_used(parts):
    delayed, X, y = parts
    options = {"n_workers": 1, "threads_per_worker": 1, "dashboard_address": ":0"}
    with LocalCluster(**options, silence_logs=50) as cluster, Client(cluster) as client:

        def add_worker():
            cluster.scale(2)
            client.wait_for_workers(2, timeout=300)

        callback = once(add_worker)
        clf = LinearClassifier("hinge", lam=1e-4, tol=1e-6, n_groups=2, checkpoint_every=1,
                               client=client, callback=callback).fit(delayed)  # fmt: skip
    assert [recovery.reason for recovery in clf.recoveries_] == [
        "moved to a worker that had nothing to do"
    ]
    check(clf, X, y, "hinge")


def test_changed_source_file_is_refused(client, parts, tmp_path):
    def change_and_lose():
        X, y = make()
        np.savez(tmp_path / "new.npz", X=1.001 * X, y=y)
        os.replace(tmp_path / "new.npz", tmp_path / "rows.npz")
        client.run(lambda: work._GROUPS.clear())

    clf = LinearClassifier("logistic", lam=1e-3, tol=1e-6, callback=once(change_and_lose))
    with pytest.raises(ValueError, match="has changed since the fit began"):
        clf.fit(parts[0])


def test_errors_of_a_loader_are_those_of_the_fit(client):
    @dask.delayed
    def broken():
        raise FileNotFoundError("rows.npz")

    with pytest.raises(FileNotFoundError, match=r"rows\.npz"):
        LinearClassifier().fit([broken()])


class Unreadable:
    """What can be packed, and not unpacked, as by a scheduler that lacks its module."""

    def __reduce__(self):
        return int, ("not a number",)


def test_a_loader_that_the_scheduler_cannot_unpack_is_said_at_once(client):
    """It looked like fifty workers that died, one after the other."""
    with pytest.raises(RuntimeError, match="deserialization of the task graph"):
        LinearClassifier().fit([dask.delayed(len)(Unreadable())])


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ((np.eye(3), [0, 1, 0]), "for data in memory use"),
        ((da.eye(3, chunks=3),), "y is missing"),
        ((da.eye(3, chunks=3), [0, 1]), "X has 3 rows but y has 2"),
        ((da.eye(4, chunks=2), da.zeros(3, chunks=3)), "X has 4 rows but y has 3"),
    ],
)
def test_bad_data_is_refused_before_anything_runs(data, message):
    with pytest.raises(ValueError, match=message):
        LinearClassifier().fit(*data)


@pytest.mark.parametrize(
    "bad",
    [{"n_groups": 0}, {"max_rounds": 0}, {"checkpoint_every": 1.5}, {"loss": "none"}, {"lam": -1}],
)
def test_bad_parameters(client, bad):
    with pytest.raises(ValueError, match=next(iter(bad))):
        LinearClassifier(**bad).fit(da.eye(3, chunks=3), [0, 1, 0])


def test_cluster_of_its_own_is_closed(monkeypatch):
    local = functools.partial(LocalCluster, n_workers=1, processes=False)
    opened = []

    def start(**more):
        opened.append(local(**more))
        return opened[-1]

    monkeypatch.setattr(fitting, "LocalCluster", start)
    monkeypatch.setattr(fitting.Client, "current", classmethod(_no_client))
    clf = LinearClassifier(tol=1e-2).fit(da.eye(4, chunks=2), [0, 1, 0, 1])
    assert clf.certificate_.relative_gap <= 1e-2
    assert [cluster.status.name for cluster in opened] == ["closed"]


def _no_client(cls):
    raise ValueError("No clients found")


def test_verbose_says_where_it_stands(client, capsys):
    LinearClassifier(tol=1e-2, verbose=1).fit(da.eye(4, chunks=2), [0, 1, 0, 1])
    first = capsys.readouterr().out.splitlines()[0]
    for word in ("round 2", "gap", "MB", "workers"):  # the first one measures the rows
        assert word in first


def test_time_limit_is_kept_and_reported(client, parts):
    clf = LinearClassifier("hinge", lam=1e-7, tol=1e-12, max_seconds=1.0)
    began = time.monotonic()
    with pytest.warns(ConvergenceWarning, match="max_seconds"):
        clf.fit(parts[0])
    assert time.monotonic() - began < 60
    assert np.isfinite(clf.certificate_.gap)


def test_a_fit_without_progress_says_which_columns_are_why(client):
    """It used to end in silence."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 3)) * [1e9, 1e-7, 1.0]
    X[:, 2] = X[:, 0] * (1 + 1e-12 * rng.standard_normal(60))
    y = np.where(1e7 * X[:, 1] + rng.standard_normal(60) > 0, 1, 0)
    clf = LinearClassifier("logistic", lam=1e-8, tol=1e-9, random_state=0)
    with pytest.warns(ConvergenceWarning, match=r"column \d has values of about 1e\+09, column 1"):
        clf.fit(da.from_array(X, chunks=(30, 3)), y)
    assert clf.certificate_.stop_reason in ("stalled", "rounding")
