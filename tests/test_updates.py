"""Models that take up rows, or forget them, are those of a training from scratch."""

import pickle

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import zerogap as zg
from problems import make_data
from proofs_updates import prove_updates
from zerogap.losses import ALL_LOSSES
from zerogap.model_io import load, recertify, save
from zerogap.model_io.files import read
from zerogap.store import Store, write_store
from zerogap.streamed import load as load_store

TASKS = {name: cls.task for name, cls in ALL_LOSSES.items()}
rng = np.random.default_rng(0)
X = rng.standard_normal((150, 6))
Y2 = np.where(X[:, 0] + 0.7 * rng.standard_normal(150) > 0.3, "yes", "no")
Y3 = np.argmax(X[:, :3] + 0.7 * rng.standard_normal((150, 3)), axis=1)
YR = X @ [1.0, -2.0, 0.0, 3.0, 0.5, 0.0] + rng.standard_normal(150)
WEIGHTS = rng.integers(1, 4, 150).astype(float)
GONE = [0, 17, 100, 149]
LEFT = np.delete(np.arange(150), GONE)


def make(loss, **options):
    cls = zg.LinearRegressor if TASKS[loss] == "regression" else zg.LinearClassifier
    return cls(loss, **{"tol": 1e-4, "max_epochs": 5000, "random_state": 0, **options})


def targets(loss):
    return {"regression": YR, "classification": Y2, "multiclass": Y3}[TASKS[loss]]


def assert_same(model, scratch):
    """Both are within their gaps of one optimum, and the data and shapes are the same."""
    ours, theirs = model.certificate_, scratch.certificate_
    assert max(ours.relative_gap, theirs.relative_gap) <= model.tol
    assert abs(ours.primal - theirs.primal) <= max(ours.gap, theirs.gap) + 1e-12 * ours.primal
    assert model.fingerprint_ == scratch.fingerprint_
    # |w - w*| <= sqrt(2 gap / mu); two classes of a joint model are kept as their difference
    mu = (model.lam or 1.0 / len(model.row_ids_) / 3.0) * (1.0 - model.l1_ratio)
    reach = np.sqrt(2.0 * ours.gap / mu) + np.sqrt(2.0 * theirs.gap / mu)
    assert np.linalg.norm(model.coef_ - scratch.coef_) <= np.sqrt(2.0) * reach
    for name in ("coef_", "intercept_", "dual_coef_", "row_ids_"):
        assert np.shape(getattr(model, name)) == np.shape(getattr(scratch, name))


# the result


@pytest.mark.parametrize("intercept", [True, False], ids=["intercept", "none"])
@pytest.mark.parametrize("loss", TASKS)
def test_rows_come_and_go(loss, intercept):
    y = targets(loss)
    model = make(loss, fit_intercept=intercept, keep_data=True).fit(X[:125], y[:125], WEIGHTS[:125])
    assert model.update(X[125:], y[125:], WEIGHTS[125:]) is model
    assert_same(model, make(loss, fit_intercept=intercept).fit(X, y, WEIGHTS))
    assert model.forget(GONE) is model
    assert_same(model, make(loss, fit_intercept=intercept).fit(X[LEFT], y[LEFT], WEIGHTS[LEFT]))
    assert model.row_ids_.tolist() == LEFT.tolist()


@pytest.mark.parametrize(
    "options",
    [
        {"lam": 0.05},
        {"class_weight": "balanced"},
        {"class_weight": {0: 3.0, 1: 0.5, 2: 1.0}},
        {"l1_ratio": 0.4, "lam": 0.02},
        {"solver": "newton"},
        {"solver": "sdca"},
        {"n_jobs": 2},
    ],
    ids=str,
)
def test_every_setting(options):
    """One against the rest: three problems, three certificates."""
    model = make("hinge", **options).fit(X[:140], Y3[:140])
    model.update(X[140:], Y3[140:], data=(X[:140], Y3[:140]))
    assert len(model.certificate_.parts) == 3
    assert_same(model, make("hinge", **options).fit(X, Y3))
    model.forget(GONE, data=(X, Y3))
    assert_same(model, make("hinge", **options).fit(X[LEFT], Y3[LEFT]))


@pytest.mark.parametrize("loss", ["softmax", "multiclass-hinge"])
def test_two_classes_of_a_joint_model(loss):
    model = make(loss).fit(X, Y2).forget(GONE, data=(X, Y2))
    assert_same(model, make(loss).fit(X[LEFT], Y2[LEFT]))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("storage", [np.asarray, sparse.csr_matrix, sparse.csc_array])
def test_every_storage(storage, dtype):
    rows = storage(X.astype(dtype))
    model = make("logistic").fit(rows[:140], Y2[:140])
    model.update(rows[140:], Y2[140:], data=(rows[:140], Y2[:140]))
    assert_same(model, make("logistic").fit(rows, Y2))
    model.forget(GONE, data=(rows, Y2))
    assert_same(model, make("logistic").fit(rows[LEFT], Y2[LEFT]))


@pytest.mark.parametrize(("old", "new"), [(np.asarray, sparse.csr_array), (sparse.csr_array, list)])
def test_new_rows_are_stored_as_the_old_ones(old, new):
    model = make("hinge").fit(old(X[:140]), Y2[:140])
    model.update(new(X[140:]), list(Y2[140:]), data=(old(X[:140]), Y2[:140]))
    assert_same(model, make("hinge").fit(old(X), Y2))


def test_the_certificate_is_that_of_the_new_problem():
    model = make("hinge", tol=1e-3).fit(X, Y2, WEIGHTS).forget(GONE, data=(X, Y2, WEIGHTS))
    signs = np.where(Y2 == "yes", 1.0, -1.0)
    problem = zg.Problem(X[LEFT], signs[LEFT], "hinge", None, WEIGHTS[LEFT], True)
    point = model.coef_[0], model.intercept_[0], model.dual_coef_[0]
    found = problem.certificate(*point)
    assert (found.primal, found.gap) == pytest.approx(
        (model.certificate_.primal, model.certificate_.gap), rel=1e-9
    )
    assert model.history_["gap"][-1] == model.certificate_.gap


@pytest.mark.parametrize("seed", range(10))
def test_random_problems(seed):
    gap = prove_updates(seed)
    assert gap is None or gap <= 0.1


# the effort


@pytest.mark.parametrize("tol", [1e-3, 1e-5])
@pytest.mark.parametrize("solver", ["auto", "sdca"])
def test_a_fraction_of_the_epochs(solver, tol):
    X, y, _ = zg.datasets.make_simulated(5000, 20, random_state=0)
    settings = {"tol": tol, "solver": solver, "random_state": 0}
    model = zg.LinearClassifier("logistic", **settings).fit(X, y)
    scratch = model.certificate_.epochs
    model.forget(range(5), data=(X, y))
    assert 0 < model.certificate_.epochs <= scratch / 2
    model.update(X[:5], y[:5], data=(X[5:], y[5:]))
    assert model.certificate_.epochs <= scratch / 2


def test_rows_without_a_part_in_the_model_cost_nothing():
    model = make("hinge").fit(X, Y2)
    before, idle = model.coef_.copy(), np.flatnonzero(model.dual_coef_[0] == 0)[:20]
    model.forget(idle, data=(X, Y2))
    assert model.certificate_.epochs == 0
    assert np.array_equal(model.coef_, before)


@pytest.mark.parametrize("loss", ["hinge", "squared", "softmax"])
def test_forgotten_rows_leave_the_weights(loss):
    """However little is asked for, weights are not those with the rows."""
    model = make(loss, tol=0.5).fit(X, targets(loss))
    before = model.coef_.copy()
    row = int(np.argmax(np.abs(np.atleast_2d(model.dual_coef_)[0])))
    model.forget(row, data=(X, targets(loss)))
    assert not np.array_equal(model.coef_, before)


# numbers of rows, and data


def test_rows_keep_their_numbers():
    model = make("hinge", tol=1e-3).fit(X, Y2)
    model.forget([0, 149], data=(X, Y2)).forget(7, data=(X, Y2))  # all rows, or those that are left
    rest = np.delete(np.arange(150), [0, 7, 149])
    model.forget([8], data=(X[rest], Y2[rest]))
    assert model.row_ids_.tolist() == np.delete(np.arange(150), [0, 7, 8, 149]).tolist()


def test_data_are_kept_only_on_request():
    model = make("hinge", tol=1e-3, keep_data=True).fit(X, Y2)
    assert np.shares_memory(model._data[0].X, X)
    assert len(pickle.loads(pickle.dumps(model)).forget(3).row_ids_) == 149
    assert model.forget(3)._data[0].shape == (149, 6)
    model.set_params(keep_data=False).fit(X, Y2)
    with pytest.raises(ValueError, match=r"give data=\(X, y\) or .* keep_data=True"):
        model.forget(3)
    with pytest.raises(ValueError, match="keep_data must be True or False"):
        make("hinge", keep_data="yes").fit(X, Y2)


def test_feature_names_stay_and_are_checked():
    frame = pd.DataFrame(X, columns=list("abcdef"))
    model = make("squared", keep_data=True).fit(frame[:145], YR[:145])
    model.update(frame[145:], YR[145:]).forget(3)
    assert model.feature_names_in_.tolist() == list("abcdef")
    with pytest.raises(ValueError, match="feature names"):
        model.update(frame[list("fedcba")], YR)


@pytest.mark.parametrize("keep_data", [True, False])
def test_the_rows_of_a_store(keep_data, tmp_path):
    store = write_store(tmp_path / "store", [(X, Y2)], task="classification")
    rows, y, _ = load_store(store)
    data = None if keep_data else store
    model = make("hinge", keep_data=keep_data).fit(store).forget(GONE[:2], data=data)
    model.forget(GONE[2:], data=data)
    assert_same(model, make("hinge").fit(rows[LEFT], y[LEFT]))
    with pytest.raises(ValueError, match="too large for memory"):
        model.forget(5, data=Store(store.path, max_memory="1 GB"))


def test_a_saved_model_forgets_too(tmp_path):
    path = tmp_path / "model.zg"
    save(make("hinge").fit(X, Y3), path)
    save(load(path).forget(GONE[:2], data=(X, Y3)), path)
    model = load(path)
    assert model.row_ids_.tolist() == np.delete(np.arange(150), GONE[:2]).tolist()
    model.forget(GONE[2:], data=(X, Y3))
    assert_same(model, make("hinge").fit(X[LEFT], Y3[LEFT]))
    save(model, path)
    assert recertify(read(path), X[LEFT], Y3[LEFT]).claim == "true"


def test_a_model_of_an_older_version_forgets(tmp_path):
    path = tmp_path / "model.zg"
    save(make("hinge").fit(X, Y2), path)
    assert b"row_ids" not in path.read_bytes()  # as in the format before there were any
    assert load(path).row_ids_.tolist() == list(range(150))


# refusals


@pytest.mark.parametrize(
    ("rows", "text"),
    [
        ([], "one or more row numbers"),
        ([1.5], "one or more row numbers"),
        ([True, False], "one or more row numbers"),
        ([[1, 2]], "one or more row numbers"),
        ("3", "one or more row numbers"),
        ([4, 150], "row 150 is not one of the 150 rows"),
        ([-1], "row -1 is not one of the 150 rows"),
        ([5, 6, 5], "row 5 is named more than once"),
        (range(150), "all rows"),
        (np.flatnonzero(Y2 == "yes"), "the last rows of class .*yes"),
    ],
)
def test_wrong_rows_are_refused(rows, text):
    model = make("hinge", tol=1e-3).fit(X, Y2)
    before = pickle.dumps(model)
    with pytest.raises(ValueError, match=text):
        model.forget(rows, data=(X, Y2))
    assert pickle.dumps(model) == before


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ((X + 1e-12, Y2), "not the data that the model was trained on"),
        ((X, Y2[::-1]), "not the data that the model was trained on"),
        ((X, Y2, WEIGHTS), "not the data that the model was trained on"),
        ((X[::-1], Y2[::-1]), "not the data that the model was trained on"),
        ((X[:-1], Y2[:-1]), "not the data that the model was trained on"),
        ((X, Y2[:-1]), "inconsistent numbers of samples"),
        ((X[:, :3], Y2), "expecting 6 features"),
        (X, r"data must be \(X, y\)"),
    ],
)
def test_other_data_are_refused(data, text):
    model = make("hinge", tol=1e-3).fit(X, Y2)
    with pytest.raises(ValueError, match=text):
        model.forget(3, data=data)
    with pytest.raises(ValueError, match=text):
        model.update(X[:3], Y2[:3], data=data)


def test_data_that_changed_are_refused():
    own = X.copy()
    model = make("hinge", tol=1e-3, keep_data=True).fit(own, Y2)
    own[7, 1] += 1.0
    with pytest.raises(ValueError, match="not the data that the model was trained on"):
        model.forget(3)


@pytest.mark.parametrize(
    ("new", "y", "text"),
    [
        (X[:2], ["yes", "perhaps"], "does not know, .*perhaps"),
        (X[:2], ["yes"], "inconsistent numbers of samples"),
        (X[:2, :3], ["yes", "no"], "expecting 6 features"),
        (X[:0], [], "0 sample"),
        (X[:2] * np.nan, ["yes", "no"], "NaN"),
    ],
)
def test_wrong_new_rows_are_refused(new, y, text):
    model = make("hinge", tol=1e-3, keep_data=True).fit(X, Y2)
    before = model.coef_.copy()
    with pytest.raises(ValueError, match=text):
        model.update(new, y)
    assert np.array_equal(model.coef_, before)
    assert len(model.row_ids_) == 150


def test_without_dual_variables_nothing_is_forgotten(tmp_path):
    save(make("hinge").fit(X, Y2), tmp_path / "model.zg", keep_dual=False)
    with pytest.raises(ValueError, match="no dual variables to go on from"):
        load(tmp_path / "model.zg").forget(3, data=(X, Y2))


def test_ctrl_c_leaves_the_model_as_it_was():
    def interrupt(record):
        if armed:
            raise KeyboardInterrupt

    armed = False
    X, y = make_data("hinge", n=200, d=5)
    model = make("hinge", callback=interrupt, keep_data=True).fit(X, y)
    before, armed = model.coef_, True
    with pytest.raises(KeyboardInterrupt):
        model.forget(np.flatnonzero(model.dual_coef_[0])[:5])
    assert model.coef_ is before
    assert len(model.row_ids_) == 200


@pytest.mark.parametrize("lam", [None, 0.05])
def test_M6_new_rows_at_zero_shrink_the_weights_by_s_if_lam_is_given(lam):
    X, y = make_data("hinge", n=60)
    before = zg.Problem(X[:40], y[:40], "hinge", lam)
    alpha = zg.solve(before, zg.SDCA(), tol=1e-6, random_state=0).alpha
    after = zg.Problem(X, y, "hinge", lam).weights(np.append(alpha, np.zeros(20)))
    share = 1.0 if lam is None else 40 / 60
    np.testing.assert_allclose(after, share * before.weights(alpha), rtol=1e-12)
