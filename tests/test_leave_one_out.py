"""Leave-one-out predictions are those of the optimal models without the row."""

import dataclasses

import numpy as np
import pytest
from scipy import sparse
from sklearn.svm import SVC

import proofs_leave_one_out
import zerogap as zg
from problems import make_problem
from proofs_leave_one_out import prove_leave_one_out, score_without
from zerogap.leave_one_out import leave_one_out
from zerogap.losses import LOSSES

PROBLEMS = 200


@pytest.mark.parametrize("first", range(0, PROBLEMS, 20))
def test_random_problems_agree_with_fits_without_the_row(first):
    assert sum(prove_leave_one_out(seed) or 0 for seed in range(first, first + 20)) >= 40


def test_wrong_bounds_would_be_found(monkeypatch):
    def shifted(problem, **options):
        found = leave_one_out(problem, **options)
        return dataclasses.replace(found, low=found.low + 1e-3, high=found.high + 1e-3)

    monkeypatch.setattr(proofs_leave_one_out, "leave_one_out", shifted)
    with pytest.raises(AssertionError, match=r"seed \d+, row \d+"):
        [prove_leave_one_out(seed) for seed in range(20)]


@pytest.mark.parametrize("last", [-1.0, 1.0])
@pytest.mark.parametrize("loss", ["hinge", "squared-hinge", "smooth-hinge"])
def test_M5_without_the_last_row_of_a_class_any_large_intercept_is_optimal(loss, last):
    """All of them lie in the interval, also the one nearest to zero, and none nearer is optimal."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((12, 2)), np.full(12, -last)
    y[4] = last
    problem = zg.Problem(X, y, loss, 0.1, fit_intercept=True)
    found = leave_one_out(problem)
    rest = zg.Problem(np.delete(X, 4, 0), np.delete(y, 4), loss, 0.1)

    def constant(b):
        return rest.mean_loss(np.full(11, b))

    best = constant(-last * 1e6)
    nearest = found.high[4] if last > 0 else found.low[4]
    for b in (nearest, 1.5 * nearest, 100.0 * nearest):
        assert found.low[4] <= b <= found.high[4]
        assert constant(b) <= best + 1e-15
    assert constant(0.999 * nearest) > best
    assert (found.high[4] if last < 0 else -found.low[4]) == np.inf
    assert nearest == pytest.approx(-last)
    assert found.signs[4] == -last
    assert found.error_low >= 1 / 12


def make_classes(n=60, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 3))
    return X, np.where(X[:, 0] + 0.7 * rng.standard_normal(n) > 0.3, 1.0, -1.0)


@pytest.mark.parametrize("intercept", [False, True])
def test_ridge_regression_has_a_closed_form(intercept):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((30, 4))
    y = X @ [1.0, -2.0, 0.5, 0.0] + 0.3 * rng.standard_normal(30) + 2.0
    weights = rng.uniform(0.5, 2.0, 30)
    problem = zg.Problem(X, y, "squared", 0.1, weights, intercept)
    found = leave_one_out(problem, tol=1e-3)
    Z = np.column_stack([X, np.ones(30)]) if intercept else X
    scores = np.empty(30)
    for i in range(30):
        others = np.arange(30) != i
        penalty = 0.1 * weights.sum() * np.eye(Z.shape[1])
        penalty[4:, 4:] = 0.0
        moments = (Z[others].T * weights[others]) @ Z[others] + penalty
        scores[i] = Z[i] @ np.linalg.solve(moments, (Z[others].T * weights[others]) @ y[others])
    assert np.all((found.low <= scores + 1e-9) & (scores <= found.high + 1e-9))
    error = 0.5 * weights @ (scores - y) ** 2 / weights.sum()
    assert found.error_low <= error <= found.error_high <= 1.001 * found.error_low
    assert found.counts["solved"] + found.counts["bound"] == 30


def test_support_vector_machine_agrees_with_libsvm():
    X, y = make_classes()
    found = leave_one_out(zg.Problem(X, y, "hinge", fit_intercept=True))
    assert found.counts["free"] > 15
    assert found.counts["bound"] > 5
    assert found.counts["solved"] > 5
    for i in range(60):
        others = np.arange(60) != i
        fit = SVC(kernel="linear", C=1.0, tol=1e-10).fit(X[others], y[others])
        score = float(fit.decision_function(X[[i]])[0])
        assert found.low[i] - 1e-5 <= score <= found.high[i] + 1e-5
        assert found.signs[i] == np.sign(score)
    assert found.error_low == found.error_high == pytest.approx(np.mean(found.signs != y))


@pytest.mark.parametrize("loss", ["hinge", "squared-hinge", zg.EpsilonInsensitive(eps=1.0)])
def test_rows_without_a_dual_variable_are_free(loss):
    problem = make_problem(loss, n=80, d=3, lam=0.1)
    found = leave_one_out(problem)
    exact = zg.solve(problem, zg.SDCA(), tol=1e-12, max_epochs=20_000, random_state=0)
    free = found.how == "free"
    assert free.sum() > 10
    assert np.all(exact.alpha[free] == 0.0)
    scores = problem.scores(exact.w)
    assert np.allclose(0.5 * (found.low + found.high)[free], scores[free], atol=1e-3)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("loss", [name for name in LOSSES if LOSSES[name].task == "classification"])
def test_what_is_wrong_remains_wrong(loss, intercept):
    X, y = make_classes()
    problem = zg.Problem(X, y, loss, fit_intercept=intercept)
    found = leave_one_out(problem)
    exact = zg.solve(problem, zg.SDCA(), tol=1e-10, max_epochs=20_000, random_state=0)
    wrong = y * (X @ exact.w + exact.b) < -1e-3
    assert wrong.sum() > 3
    assert np.all(found.how[wrong] == "bound")
    assert np.all(found.signs[wrong] == -y[wrong])
    assert np.all(y * found.signs <= np.sign(y * (X @ exact.w + exact.b)))


def test_bounds_hold_for_a_rough_model_too():
    from zerogap.leave_one_out.bounds import Origin, PrimalDualPair

    X, y = make_classes()
    for intercept in (False, True):
        problem = zg.Problem(X, y, "logistic", fit_intercept=intercept)
        exact = [score_without(problem, X, np.ones(60), i)[0] for i in range(12)]
        widths = []
        for w in (np.full(3, 0.3), np.zeros(3)):
            for alpha in (None, 0.1 * y):
                proof = problem.examine(w, 0.0, alpha)
                rough = PrimalDualPair.of(problem, w, proof)
                grid = 2.0 ** np.arange(-10, 20) if intercept else np.empty(0)
                low, high = rough.bounds(np.arange(12), Origin.of(rough), grid)
                assert np.all((low <= exact) & (exact <= high))
                widths.append(np.median(high - low))
        assert np.all(np.isfinite(widths))


def test_weights_count_rows_several_times():
    X, y = make_classes(30)
    weights = np.ones(30)
    weights[:5] = 0.0
    with_zeros = leave_one_out(zg.Problem(X, y, "hinge", 0.05, weights, True))
    without = leave_one_out(zg.Problem(X[5:], y[5:], "hinge", 0.05, None, True))
    assert np.all(with_zeros.signs[5:] == without.signs)
    assert with_zeros.error == pytest.approx(without.error)


def test_two_rows_at_the_same_place_are_tied():
    X, y = np.array([[1.0], [1.0], [1.0]]), np.array([1.0, -1.0, 1.0])
    found = leave_one_out(zg.Problem(X, y, "logistic", 0.1))
    assert list(found.how) == ["tied", "bound", "tied"]  # without row 0 or 2 the score is 0
    assert list(found.signs) == [0, 1, 0]
    assert (found.error_low, found.error_high) == (pytest.approx(1 / 3), pytest.approx(1.0))
    assert "between" in str(found)


def test_intercept_that_is_not_unique_leaves_both_labels_open():
    X, y = np.zeros((5, 1)), np.array([-1.0, 1.0, -1.0, 1.0, 1.0])
    found = leave_one_out(zg.Problem(X, y, "hinge", 0.1, None, True))
    assert list(found.how[y > 0]) == ["tied"] * 3  # two of each remain: any b in [-1, 1] is best
    assert np.all(found.low[y > 0] <= -1.0)
    assert np.all(found.high[y > 0] >= 1.0)
    assert np.all(found.signs[y < 0] == 1)


def test_intercept_anywhere_in_a_tube_leaves_all_of_it_open():
    """Without the first row all fit into a tube: nothing is lost, and rounding decides nothing."""
    X = [[0.37364], [-0.26674], [-0.32573], [0.0], [-0.1528]]
    y = np.array([1.06052564, 1.53536642, 1.47172355, 1.45349632, 1.53666026])
    found = leave_one_out(zg.Problem(X, y, "epsilon-insensitive", lam=0.00295, fit_intercept=True))
    assert found.how[0] == "tied"
    assert found.low[0] <= y[1:].max() - 0.1
    assert found.high[0] >= y[1:].min() + 0.1


def test_the_only_row_of_a_class_is_always_wrong():
    X, y = make_classes(12)
    y[:] = -1.0
    y[3] = 1.0
    found = leave_one_out(zg.Problem(X, y, "logistic", 0.1, None, True))
    assert found.low[3] == found.high[3] == -np.inf
    assert found.signs[3] == -1


def test_time_that_is_up_leaves_bounds():
    X, y = make_classes(200)
    problem = zg.Problem(X, y, "hinge", 1e-3)
    exact, short = leave_one_out(problem), leave_one_out(problem, max_seconds=1e-9)
    assert short.counts["undecided"] > 0
    assert short.error_low <= exact.error_low == exact.error_high <= short.error_high
    assert np.all((short.signs == exact.signs) | (short.signs == 0))
    assert "undecided" in str(short)


def test_refusals():
    X, y = make_classes(10)
    problem = zg.Problem(X, y, "hinge", 0.1)
    with pytest.raises(ValueError, match="two classes or a regression"):
        leave_one_out(zg.Problem(X, np.arange(10) % 3, "softmax", 0.1))
    with pytest.raises(ValueError, match="tol must be a positive number"):
        leave_one_out(problem, tol=0)
    with pytest.raises(ValueError, match="max_seconds must be positive"):
        leave_one_out(problem, max_seconds=-1)
    with pytest.raises(ValueError, match="at least two rows"):
        leave_one_out(zg.Problem(X[:1], y[:1], "hinge", 0.1))


def test_same_seed_same_bits_and_sparse_as_dense():
    X, y = make_classes(40)
    found = [leave_one_out(zg.Problem(X, y, "hinge", 0.02), random_state=3) for _ in range(2)]
    assert np.array_equal(found[0].low, found[1].low)
    csr = leave_one_out(zg.Problem(sparse.csr_matrix(X), y, "hinge", 0.02))
    assert np.array_equal(csr.signs, found[0].signs)


def test_classifier_leaves_out_the_rows_of_its_fit():
    X, y = make_classes(50)
    labels, weights = np.where(y > 0, "yes", "no"), np.arange(50) % 3 + 1.0
    clf = zg.LinearClassifier("hinge", lam=0.02, class_weight={"no": 2.0, "yes": 1.0})
    clf.set_params(random_state=0).fit(X, labels, weights)
    factors = np.where(y > 0, 1.0, 2.0)
    found = clf.leave_one_out(X, labels, weights)
    expected = leave_one_out(zg.Problem(X, y, "hinge", 0.02, weights * factors, True))
    assert np.array_equal(found.signs, expected.signs)
    assert found.error == pytest.approx(expected.error)
    assert np.array_equal(clf.support_, np.flatnonzero(clf.dual_coef_[0]))
    assert list(clf.n_support_) == [np.sum(clf.dual_coef_ < 0), np.sum(clf.dual_coef_ > 0)]
    assert set(labels[clf.dual_coef_[0] > 0]) == {"yes"}


def test_regressor_leaves_out_the_rows_of_its_fit():
    X, y = make_classes(40)
    target = X @ [1.0, 2.0, 3.0] + y
    model = zg.LinearRegressor("huber", lam=0.1, random_state=0).fit(X, target)
    found = model.leave_one_out(X, target)
    expected = leave_one_out(zg.Problem(X, target, "huber", 0.1, None, True))
    assert found.error == pytest.approx(expected.error, rel=2e-3)
    assert model.n_support_ == [len(model.support_)]


def test_estimators_refuse_other_data():
    X, y = make_classes(30)
    clf = zg.LinearClassifier("logistic", lam=0.1, random_state=0).fit(X, y)
    for other in ((X[::-1], y), (X[1:], y[1:]), (X, -y), (X, y, 2.0 * np.ones(30))):
        with pytest.raises(ValueError, match="not the data of the fit"):
            clf.leave_one_out(*other)
    several = zg.LinearClassifier("logistic", lam=0.1, random_state=0).fit(X, np.arange(30) % 3)
    with pytest.raises(ValueError, match="two classes, this model has 3"):
        several.leave_one_out(X, np.arange(30) % 3)
    joint = zg.LinearClassifier("softmax", lam=0.1, random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="binary loss"):
        joint.leave_one_out(X, y)


def test_kept_data_need_not_be_given():
    X, y, _ = zg.datasets.make_simulated(n_samples=80, random_state=0)
    kept = zg.LinearClassifier("hinge", lam=0.1, keep_data=True, random_state=0).fit(X, y)
    given = zg.LinearClassifier("hinge", lam=0.1, random_state=0).fit(X, y)
    assert kept.leave_one_out().error == given.leave_one_out(X, y).error
    with pytest.raises(ValueError, match="give X and y, or keep_data"):
        given.leave_one_out()


@pytest.mark.parametrize("lam", [None, 0.05])
def test_M6_support_vectors_alone_have_the_same_optimum_at_the_same_c(lam):
    X, y = make_classes(60)
    options = {"tol": 1e-10, "max_epochs": 10**5, "random_state": 0}
    whole = zg.LinearClassifier("hinge", lam=lam, **options).fit(X, y)
    rows = whole.support_
    assert len(rows) < len(y)

    def fit(lam):
        return zg.LinearClassifier("hinge", lam=lam, **options).fit(X[rows], y[rows]).coef_

    kept = None if lam is None else lam * len(y) / len(rows)
    np.testing.assert_allclose(fit(kept), whole.coef_, atol=1e-4)
    if lam is not None:
        assert np.abs(fit(lam) - whole.coef_).max() > 1e-3
