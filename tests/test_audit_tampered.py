"""Models that somebody has changed are refused with a reason, or certified as they are."""

from copy import deepcopy

import numpy as np
import pytest
from sklearn import linear_model, svm
from sklearn.kernel_ridge import KernelRidge

import zerogap as zg

RNG = np.random.default_rng(0)
X = RNG.standard_normal((40, 3))
NUMBERS = X @ [1.0, 2.0, -1.0] + RNG.standard_normal(40)
TWO = (NUMBERS > 0.2).astype(int)
THREE = np.digitize(NUMBERS, [-1.0, 1.0])
GONE = "the attribute is deleted"
VALUES = [None, np.nan, -1, "x", np.full((1, 3), np.nan), GONE]
MODELS = [
    (linear_model.LogisticRegression(), THREE),
    (svm.LinearSVC(), THREE),
    (linear_model.SGDRegressor(random_state=0), NUMBERS),
    (linear_model.RidgeCV(), NUMBERS),
    (linear_model.Lasso(0.1), NUMBERS),
    (linear_model.HuberRegressor(), NUMBERS),
    (linear_model.QuantileRegressor(alpha=0.1), NUMBERS),
    (svm.NuSVR(kernel="linear"), NUMBERS),
    (KernelRidge(), NUMBERS),
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("model", "y"), MODELS, ids=lambda v: getattr(type(v), "__name__", ""))
def test_changed_models_are_refused_or_certified_as_they_are(model, y):
    model = deepcopy(model).fit(X, y)
    fitted = [name for name in vars(model) if name.endswith("_") and not name.startswith("_")]
    for name in [*model.get_params(), *fitted]:
        for value in VALUES:
            changed = deepcopy(model)
            try:
                delattr(changed, name) if value is GONE else setattr(changed, name, value)
            except AttributeError:  # of one that is computed
                continue
            try:
                audit = zg.certify(changed, X, y, effort=3)
            except ValueError:  # nothing else: a traceback of another kind fails
                continue
            assert np.isfinite(audit.primal), (name, value)
            assert 0.0 <= audit.at_least <= audit.gap, (name, value)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("coef_", np.full((1, 3), 1j), "coef_ holds complex128"),
        ("coef_", None, "coef_ must have one or two dimensions"),
        ("intercept_", np.zeros(2), "1 rows of coef_ and 2 intercepts"),
        ("C", 0, "C must be a positive, finite number, got 0"),
        ("C", np.nan, "C must be a positive, finite number, got nan"),
        ("penalty", "l3", "LogisticRegression with penalty='l3' cannot be certified"),
        ("classes_", GONE, "LogisticRegression cannot be certified.*classes_"),
    ],
)
def test_the_reason_names_what_was_changed(name, value, message):
    model = linear_model.LogisticRegression().fit(X, TWO)
    delattr(model, name) if value is GONE else setattr(model, name, value)
    with pytest.raises(ValueError, match=message):
        zg.certify(model, X, TWO)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"coef_": np.full(3, np.nan)}, "coef_ holds nan"),
        ({"intercept_": np.inf}, "intercept_ holds inf"),
        ({"fit_intercept": False, "intercept_": 0.5}, "the problem has no intercept"),
        ({"coef_": np.zeros(2)}, "the model has 2 features, X has 3"),
        ({"quantile": np.nan}, "quantile=nan cannot be certified"),
        ({"alpha": np.inf}, "alpha=inf cannot be certified"),
    ],
    ids=str,
)
def test_changed_quantile_regressions_are_refused(changes, message):
    model = linear_model.QuantileRegressor(alpha=0.1).fit(X, NUMBERS)
    for name, value in changes.items():
        setattr(model, name, value)
    with pytest.raises(ValueError, match=message):
        zg.certify(model, X, NUMBERS)


@pytest.mark.parametrize(
    ("A", "b", "message"),
    [
        (np.where(X > 1, np.nan, X), NUMBERS, "contains NaN at row"),
        (X, np.where(NUMBERS > 1, np.nan, NUMBERS), "y contains NaN at position"),
        (X[:-1], NUMBERS, "X has 39 rows but y has 40"),
        (X, np.column_stack([NUMBERS, NUMBERS]), "y should be a 1d array"),
    ],
    ids=["X", "y", "short", "two targets"],
)
def test_quantile_regressions_need_their_data(A, b, message):
    model = linear_model.QuantileRegressor(alpha=0.1).fit(X, NUMBERS)
    with pytest.raises(ValueError, match=message):
        zg.certify(model, A, b)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"lam": None}, "lam must be a positive, finite number, got None"),
        ({"intercept_scaling": 0}, "intercept_scaling must be a positive"),
        ({"sample_weight": np.zeros(40)}, "at least one number that is not zero"),
        ({"effort": "much"}, "effort must be a number of epochs"),
    ],
    ids=str,
)
def test_options_of_bare_weights_are_checked(options, message):
    with pytest.raises(ValueError, match=message):
        zg.certify_weights(np.ones(3), 1.0, X, TWO, **{"loss": "hinge", "lam": 0.1, **options})
