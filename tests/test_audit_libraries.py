"""Models of other libraries, tightly solved, are found optimal in their own conventions.

Each test needs its library; those that are not installed are skipped.
"""

import importlib
import warnings

import numpy as np
import pytest
from sklearn.datasets import make_classification, make_regression

import zerogap as zg
from zerogap.audit import Glmnet, UnknownObjective, read_liblinear, read_onnx, read_vw

X, y = make_classification(150, 5, n_informative=3, n_redundant=0, flip_y=0.2, random_state=0)
SIGNS = np.where(y == 1, 1, -1)
XM, YM = make_classification(
    180, 6, n_informative=4, n_classes=3, n_redundant=0, flip_y=0.2, random_state=1
)
XR, YR = make_regression(150, 5, noise=20.0, random_state=2)
XR, YR = XR + 0.5, YR / YR.std() + 1.0

CASES = [  # package, class, parameters, data
    ("celer", "ElasticNet", {"alpha": 0.1, "l1_ratio": 0.5, "tol": 1e-12}, (XR, YR)),
    ("celer", "Lasso", {"alpha": 0.1, "tol": 1e-12}, (XR, YR)),
    ("celer", "LogisticRegression", {"C": 0.3, "tol": 1e-12}, (X, y)),
    ("cyanure", "Regression", {"penalty": "l1", "lambda_1": 0.1, "tol": 1e-10}, (XR, YR)),
    ("cyanure", "Regression", {"lambda_1": 0.1, "tol": 1e-10}, (XR, YR)),
    ("cyanure", "Classifier", {"loss": "logistic", "lambda_1": 0.1, "tol": 1e-10}, (X, SIGNS)),
    ("cyanure", "Classifier", {"loss": "logistic", "lambda_1": 0.1, "tol": 1e-10}, (XM, YM)),
    ("cyanure", "Classifier", {"loss": "sqhinge", "lambda_1": 0.1, "tol": 1e-10}, (X, SIGNS)),
    ("cyanure", "LogisticRegression", {"lambda_1": 0.1, "tol": 1e-10}, (X, SIGNS)),
    ("cyanure", "LinearSVC", {"lambda_1": 0.1, "tol": 1e-10}, (X, SIGNS)),
    ("cyanure", "Lasso", {"lambda_1": 0.05, "tol": 1e-10}, (XR, YR)),
    ("cyanure", "L1Logistic", {"lambda_1": 0.02, "tol": 1e-10}, (X, SIGNS)),
    (
        "cyanure",
        "Regression",
        {"penalty": "elasticnet", "lambda_1": 0.05, "lambda_2": 0.1, "tol": 1e-10},
        (XR, YR),
    ),
    ("glum", "GeneralizedLinearRegressor", {"alpha": 0.1, "gradient_tol": 1e-9}, (XR, YR)),
    (
        "glum",
        "GeneralizedLinearRegressor",
        {"family": "binomial", "alpha": 0.1, "l1_ratio": 0.3, "gradient_tol": 1e-9},
        (X, y * 1.0),
    ),
    (
        "glum",
        "GeneralizedLinearRegressor",
        {"alpha": 0.1, "l1_ratio": 1.0, "gradient_tol": 1e-9},
        (XR, YR),
    ),
    ("rehline", "plq_Ridge_Classifier", {"loss": {"name": "svm"}, "C": 0.3}, (X, y)),
    ("rehline", "plq_Ridge_Classifier", {"loss": {"name": "sSVM"}, "C": 0.3}, (X, y)),
    ("rehline", "plq_Ridge_Regressor", {"loss": {"name": "QR", "qt": 0.3}, "C": 0.3}, (XR, YR)),
    ("rehline", "plq_Ridge_Regressor", {"loss": {"name": "huber", "tau": 0.5}}, (XR, YR)),
    ("rehline", "plq_Ridge_Regressor", {"loss": {"name": "SVR", "epsilon": 0.2}}, (XR, YR)),
    ("rehline", "plqERM_Ridge", {"loss": {"name": "svm"}, "C": 0.3}, (X, SIGNS * 1.0)),
    ("skglm", "ElasticNet", {"alpha": 0.1, "l1_ratio": 0.5, "tol": 1e-10}, (XR, YR)),
    ("skglm", "Lasso", {"alpha": 0.1, "tol": 1e-10}, (XR, YR)),
    ("skglm", "LinearSVC", {"C": 0.3, "tol": 1e-10}, (X, y)),
    (
        "skglm",
        "SparseLogisticRegression",
        {"alpha": 0.02, "l1_ratio": 0.5, "tol": 1e-10},
        (X, y),
    ),
    ("snapml", "LinearRegression", {"regularizer": 3.0, "fit_intercept": True}, (XR, YR)),
    (
        "snapml",
        "LogisticRegression",
        {"regularizer": 3.0, "fit_intercept": True, "intercept_scaling": 2.0},
        (X, SIGNS),
    ),
    ("snapml", "LogisticRegression", {"regularizer": 3.0, "fit_intercept": False}, (XM, YM)),
    ("snapml", "SupportVectorMachine", {"loss": "hinge", "fit_intercept": True}, (X, SIGNS)),
    ("snapml", "SupportVectorMachine", {"regularizer": 3.0, "loss": "squared_hinge"}, (X, SIGNS)),
    ("snapml", "SnapLogisticRegression", {"regularizer": 3.0, "fit_intercept": True}, (X, SIGNS)),
    ("snapml", "SnapSVMClassifier", {"regularizer": 3.0, "fit_intercept": True}, (X, SIGNS)),
]
MORE = {  # what makes each library solve tightly
    "rehline": {"tol": 1e-10, "max_iter": 10**6},
    "snapml": {"tol": 1e-10, "max_iter": 10**5},
    "cyanure": {"verbose": False, "max_iter": 10**5, "n_threads": 1},
    "glum": {"max_iter": 10**5},
}


@pytest.mark.parametrize(
    ("package", "name", "parameters", "data"),
    CASES,
    ids=lambda v: "" if isinstance(v, tuple) else str(v),
)
def test_optimal_models_are_found_optimal(package, name, parameters, data):
    library = pytest.importorskip(package)
    cls = getattr(library, name, None) or getattr(
        importlib.import_module(f"{package}.estimators"), name
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = cls(**parameters, **MORE.get(package, {}))
        model.fit(*data)
    audit = zg.certify(model, *data)
    assert audit.relative_gap <= 1e-5
    assert audit.at_least <= audit.gap


def test_skglm_with_any_datafit():
    skglm = pytest.importorskip("skglm")
    penalty = skglm.penalties.L1_plus_L2(0.1, 0.5)
    solver = skglm.solvers.AndersonCD(tol=1e-10, fit_intercept=True)
    model = skglm.GeneralizedLinearEstimator(skglm.datafits.Quadratic(), penalty, solver)
    assert zg.certify(model.fit(XR, YR), XR, YR).relative_gap <= 1e-6
    quadratic, L1 = skglm.datafits.Quadratic(), skglm.penalties.L1
    lasso = skglm.GeneralizedLinearEstimator(quadratic, L1(0.1), solver).fit(XR, YR)
    assert zg.certify(lasso, XR, YR).relative_gap <= 1e-6
    other = skglm.GeneralizedLinearEstimator(quadratic, L1(0.1, positive=True), solver)
    with pytest.raises(UnknownObjective, match="positive=True cannot be certified"):
        zg.certify(other.fit(XR, YR), XR, YR)


@pytest.mark.parametrize(
    ("options", "data"),
    [
        ("-s 0 -c 0.3 -B 1", (X, y)),
        ("-s 7 -c 0.3", (X, SIGNS)),
        ("-s 1 -c 0.3 -B 2", (XM, YM)),
        ("-s 2 -c 0.3", (X, y)),
        ("-s 3 -c 0.3 -B 1", (X, y)),
        ("-s 4 -c 0.3 -B 1", (XM, YM)),
        ("-s 5 -c 0.3 -B 1", (XM, YM)),
        ("-s 6 -c 0.3 -B 2", (X, y)),
        ("-s 11 -c 0.3 -B 1 -p 0.1", (XR, YR)),
        ("-s 12 -c 0.3 -B 1 -p 0.1", (XR, YR)),
        ("-s 13 -c 0.3 -B 1 -p 0.1", (XR / 10, YR)),  # else it stops at its 1000 iterations
    ],
    ids=lambda v: "" if isinstance(v, tuple) else v,
)
def test_model_files_of_liblinear(options, data, tmp_path):
    library = pytest.importorskip("liblinear.liblinearutil")
    model = library.train(data[1].tolist(), data[0], f"{options} -e 1e-10 -q")
    path = tmp_path / "model"
    library.save_model(str(path), model)
    audit = zg.certify(read_liblinear(path, C=0.3), *data)
    assert audit.relative_gap <= 1e-5
    assert zg.certify(read_liblinear(path, C=3.0), *data).at_least > max(1e-6, 100 * audit.gap)


LIBLINEAR_FILE = """solver_type L2R_L1LOSS_SVC_DUAL
nr_class 2
label 1 -1
nr_feature 1
bias -1
w
0.5
"""


def test_liblinear_files_without_liblinear(tmp_path):
    """The first label is the positive one, and damage is refused."""
    path = tmp_path / "model"
    path.write_text(LIBLINEAR_FILE)
    rows, labels = [[1.0], [2.0]], [-1, 1]
    audit = zg.certify(read_liblinear(path, C=1.0), rows, labels)
    problem = zg.Problem(rows, labels, "hinge", 0.5)
    assert audit.primal == problem.primal([0.5])
    path.write_text(LIBLINEAR_FILE.replace("label 1 -1", "label -1 1"))
    audit = zg.certify(read_liblinear(path, C=1.0), rows, labels)
    assert audit.primal == problem.primal([-0.5])
    path.write_text(LIBLINEAR_FILE.replace("L2R_L1LOSS_SVC_DUAL", "ONECLASS_SVM"))
    with pytest.raises(UnknownObjective, match="type ONECLASS_SVM cannot be certified"):
        read_liblinear(path)
    for damage in ("nr_feature 3", "nr_feature x", "bias"):
        path.write_text(LIBLINEAR_FILE.replace("nr_feature 1", damage))
        with pytest.raises(ValueError, match=r"is not a model file|rows of weights"):
            read_liblinear(path)


@pytest.mark.parametrize("loss", ["logistic", "squared"])
def test_readable_models_of_vowpal_wabbit(loss, tmp_path):
    vw = pytest.importorskip("vowpalwabbit")
    rows, targets = (X, SIGNS) if loss == "logistic" else (XR, YR)
    lines = [
        f"{target} | " + " ".join(f"{j}:{value!r}" for j, value in enumerate(row.tolist()))
        for target, row in zip(targets, rows, strict=True)
    ]
    data, path = tmp_path / "data", tmp_path / "model"
    data.write_text("\n".join(lines) + "\n")
    work = vw.Workspace(
        f"--bfgs --passes 200 --l2 3 --loss_function {loss} -d {data} -k -c --noconstant "
        f"--cache_file {tmp_path / 'cache'} --readable_model {path} --holdout_off --quiet "
        f"--termination 1e-12 --predict_only_model"
    )
    work.finish()
    lam = 3 / len(rows) / (1 if loss == "logistic" else 2)
    audit = zg.certify(read_vw(path, 5), rows, targets, loss=loss, lam=lam)
    assert audit.relative_gap <= 1e-4


def test_linear_layers_of_torch():
    torch = pytest.importorskip("torch")
    layer = torch.nn.Linear(5, 1).double()
    rows, signs = torch.tensor(X), torch.tensor(SIGNS)[:, None]
    optimiser = torch.optim.LBFGS(layer.parameters(), max_iter=500, tolerance_grad=1e-10)

    def objective():
        optimiser.zero_grad()
        loss = torch.nn.functional.softplus(-signs * layer(rows)).mean()
        loss = loss + 0.05 * (layer.weight**2).sum()
        loss.backward()
        return loss

    optimiser.step(objective)
    w, b = layer.weight.detach().numpy(), layer.bias.detach().numpy()
    audit = zg.certify_weights(w, b, X, y, loss="logistic", lam=0.1)
    assert audit.relative_gap <= 1e-6
    assert audit.primal == pytest.approx(objective().item(), rel=1e-6)


@pytest.mark.parametrize("standardize", [True, False])
@pytest.mark.parametrize("alpha", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("family", ["gaussian", "binomial"])
def test_coefficients_of_glmnet(family, alpha, standardize):
    library = pytest.importorskip("glmnet")
    cls = library.ElasticNet if family == "gaussian" else library.LogitNet
    rows, targets = (XR * [1, 2, 3, 4, 5], 7 * YR) if family == "gaussian" else (X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = {"lambda_path": [0.5, 0.2, 0.1], "n_splits": 0, "tol": 1e-12, "max_iter": 10**6}
        model = cls(alpha=alpha, standardize=standardize, **path).fit(rows, targets)
    w, b = model.coef_path_[..., -1].ravel(), model.intercept_path_[..., -1].ravel()
    found = Glmnet(w, b, 0.1, alpha, family, standardize)
    assert zg.certify(found, rows, targets).relative_gap <= 1e-8
    other = Glmnet(w, b, 0.2, alpha, family, standardize)
    assert zg.certify(other, rows, targets).at_least > 1e-6


@pytest.mark.parametrize("ratio", [0.0, 0.5])
def test_regularised_least_squares_of_statsmodels(ratio):
    models = pytest.importorskip("statsmodels.api")
    found = models.OLS(YR, XR).fit_regularized(alpha=0.1, L1_wt=ratio, cnvrg_tol=1e-12)
    audit = zg.certify_weights(found.params, 0.0, XR, YR, loss="squared", lam=0.1, l1_ratio=ratio)
    assert audit.relative_gap <= 1e-6


def test_onnx_files(tmp_path):
    converters = pytest.importorskip("skl2onnx")
    from sklearn.linear_model import LogisticRegression, Ridge

    for model, data, loss, lam in (
        (LogisticRegression(C=0.3, tol=1e-8), (X, y), "logistic", 1 / (0.3 * 150)),
        (Ridge(3.0), (XR, YR), "squared", 3.0 / 150),
    ):
        path = tmp_path / "model.onnx"
        content = converters.to_onnx(model.fit(*data), data[0][:1].astype(np.float32))
        path.write_bytes(content.SerializeToString())
        audit = zg.certify(read_onnx(path), *data, loss=loss, lam=lam)
        assert audit.relative_gap <= 1e-6  # ONNX has float32


def test_weights_of_several_classes_and_a_regularised_intercept():
    from sklearn.linear_model import LogisticRegression
    from sklearn.svm import LinearSVC

    joint = LogisticRegression(C=0.3, tol=1e-9, max_iter=1000).fit(XM, YM)
    audit = zg.certify_weights(
        joint.coef_, joint.intercept_, XM, YM, loss="softmax", lam=1 / (0.3 * len(YM))
    )
    assert audit.relative_gap <= 1e-8
    svc = LinearSVC(C=0.3, intercept_scaling=2.0, tol=1e-9, max_iter=10**6).fit(X, y)
    audit = zg.certify_weights(
        svc.coef_,
        svc.intercept_,
        X,
        y,
        loss="squared-hinge",
        lam=1 / (0.3 * len(y)),
        intercept_scaling=2.0,
    )
    assert audit.relative_gap <= 1e-8


@pytest.mark.parametrize("intercept", [True, False], ids=["intercept", "none"])
@pytest.mark.parametrize("epochs", [1, 10**5], ids=["loose", "tight"])
@pytest.mark.parametrize("name", ["plq_ElasticNet_Regressor", "plqERM_ElasticNet"])
def test_the_elastic_nets_of_rehline_have_its_objective(name, epochs, intercept):
    rehline, weights = pytest.importorskip("rehline"), np.arange(150.0) % 4
    if not hasattr(rehline, name) or (intercept and "ERM" in name):
        pytest.skip("this class is not there, or has no intercept")
    more = {} if "ERM" in name else {"fit_intercept": intercept, "intercept_scaling": 2.0}
    loss = {"name": "huber", "tau": 0.5}
    model = getattr(rehline, name)(loss=loss, C=0.3, l1_ratio=0.4, max_iter=epochs, **more)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(XR, YR, sample_weight=weights)
    b = model.intercept_ if intercept else 0.0
    left = np.abs(YR - XR @ model.coef_ - b)
    v = np.append(model.coef_, b / 2.0)  # the intercept is the weight of a constant 2
    data = 0.3 * weights @ np.where(left <= 0.5, left**2 / 2, 0.5 * (left - 0.25))
    wanted = (data + 0.4 * np.abs(v).sum() + 0.3 * v @ v) / (0.3 * weights.sum())
    audit = zg.certify(model, XR, YR, sample_weight=weights)
    np.testing.assert_allclose(audit.primal, wanted, rtol=1e-9)
    assert audit.at_least <= audit.gap
    if epochs > 1:
        assert audit.relative_gap <= 1e-4


@pytest.mark.parametrize(("family", "target"), [("normal", YR), ("binomial", y * 1.0)])
def test_glum_is_audited_at_the_strength_that_it_has_chosen(family, target):
    glum, A = pytest.importorskip("glum"), XR if family == "normal" else X
    given = {"l1_ratio": [0.3, 0.6], "n_alphas": 5, "cv": 3, "gradient_tol": 1e-9}
    model = glum.GeneralizedLinearRegressorCV(family=family, max_iter=10**5, **given).fit(A, target)
    z = A @ model.coef_ + model.intercept_
    losses = (target - z) ** 2 / 2 if family == "normal" else np.logaddexp(0, z) - target * z
    r, w = model.l1_ratio_, model.coef_
    wanted = losses.mean() + model.alpha_ * (r * np.abs(w).sum() + (1 - r) * w @ w / 2)
    audit = zg.certify(model, A, target)
    np.testing.assert_allclose(audit.primal, wanted, rtol=1e-9)
    assert audit.relative_gap <= 1e-5


@pytest.mark.parametrize(
    ("package", "name", "parameters", "message"),
    [
        ("skglm", "MCPRegression", {}, "MCPRegression .* not convex"),
        ("skglm", "WeightedLasso", {"weights": np.ones(5)}, "WeightedLasso .* each feature"),
        ("skglm", "GroupLasso", {"groups": 1}, "GroupLasso .* groups of weights"),
        ("celer", "GroupLasso", {"groups": 1}, "GroupLasso .* groups of weights"),
        ("celer", "Lasso", {"weights": np.ones(5)}, "Lasso with weights of features"),
        ("glum", "GeneralizedLinearRegressor", {"family": "poisson", "alpha": 1.0}, "family="),
        ("glum", "GeneralizedLinearRegressor", {"alpha": 0.0}, "no penalty"),
    ],
)
def test_unknown_objectives_of_libraries_are_refused_by_name(package, name, parameters, message):
    model = getattr(pytest.importorskip(package), name)(**parameters).fit(XR, np.abs(YR))
    with pytest.raises(UnknownObjective, match=message):
        zg.certify(model, XR, np.abs(YR))
