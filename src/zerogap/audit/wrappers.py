"""Models that wrap others: the linear models inside, and the data each one was fitted to."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.model_selection import check_cv
from sklearn.utils import _safe_indexing

from zerogap.audit.convention import Convention, UnknownObjective, from_C, package_of, require
from zerogap.audit.libraries import LIBRARIES
from zerogap.audit.parts import Part, bare
from zerogap.audit.scikit_learn import ridge_at
from zerogap.losses import EpsilonInsensitive, Hinge


def parts_of(part: Part) -> Iterator[Part]:
    """Yield the linear models of a model, each with the data of its fit."""
    model, name = part.model, type(part.model).__name__
    if part.convention is None and (read := LIBRARIES.get((package_of(model), name))):
        yield from read(part)
        return
    if hasattr(model, "steps"):
        inner = _pipeline(part)
    elif name in WRAPPERS and not _is_plain(model):
        inner = WRAPPERS[name](part)
    else:
        yield part
        return
    for found in inner:
        yield from parts_of(found)


def _is_plain(model: Any) -> bool:
    """Tell whether a support vector machine has one problem, as LinearSVC has."""
    return type(model).__name__ == "SVC" and len(model.classes_) == 2


def _pipeline(part: Part) -> list[Part]:
    """The last step, on what that step sees."""
    model = part.model
    X = model[:-1].transform(part.X) if len(model.steps) > 1 else part.X
    return [replace(part, model=model[-1], X=X)]


def _search(part: Part) -> list[Part]:
    """The model that was refitted to all rows."""
    if not hasattr(part.model, "best_estimator_"):
        raise UnknownObjective(f"{type(part.model).__name__} needs refit=True, and a fit")
    return [replace(part, model=part.model.best_estimator_)]


def _threshold(part: Part) -> list[Part]:
    return [replace(part, model=part.model.estimator_)]


def _elimination(part: Part) -> list[Part]:
    """The model of the features that are left."""
    return [replace(part, model=part.model.estimator_, X=part.model.transform(part.X))]


def _by_column(part: Part, targets: np.ndarray) -> list[Part]:
    """One model for each column of targets; of a constant one there is nothing to minimise."""
    found = zip(part.model.estimators_, targets.T, strict=True)
    return [
        replace(part, model=model, y=column)
        for model, column in found
        if type(model).__name__ != "_ConstantPredictor"
    ]


def _against_rest(part: Part) -> list[Part]:
    labels = part.model.label_binarizer_.transform(part.y)
    return _by_column(part, labels.toarray() if sparse.issparse(labels) else labels)


def _pairs(part: Part) -> list[Part]:
    """One model for each pair of classes, fitted to their rows: the second one is positive."""
    codes = np.searchsorted(part.model.classes_, part.y)
    pairs = combinations(range(len(part.model.classes_)), 2)
    found = []
    for model, (i, j) in zip(part.model.estimators_, pairs, strict=True):
        rows = part.rows(np.flatnonzero((codes == i) | (codes == j)))
        rows["y"] = (np.searchsorted(part.model.classes_, rows["y"]) == j).astype(int)
        found.append(replace(part, model=model, **rows))
    return found


def _codes(part: Part) -> list[Part]:
    """One model for each column of the code book, a sign for each class."""
    return _by_column(part, part.model.code_book_[np.searchsorted(part.model.classes_, part.y)])


def _chain(part: Part) -> list[Part]:
    """One model for each target, those before it among its features."""
    chain, targets = part.model, np.asarray(part.y)
    require(chain.cv is None, chain, "cv, whose predictions are not kept,")
    found = []
    for k, model in enumerate(chain.estimators_):
        before, now = targets[:, chain.order_[:k]], targets[:, chain.order_[k]]
        stack = sparse.hstack if sparse.issparse(part.X) else np.hstack
        found.append(replace(part, model=model, X=stack([part.X, before]), y=now))
    return found


def _inliers(part: Part) -> list[Part]:
    """The model of the rows that were found to agree."""
    rows = part.rows(np.flatnonzero(part.model.inlier_mask_))
    return [replace(part, model=part.model.estimator_, **rows)]


def _outputs(part: Part) -> list[Part]:
    return _by_column(part, np.asarray(part.y))


def _votes(part: Part) -> list[Part]:
    """The models of an ensemble on all rows; a classifier's know its classes by number."""
    y = part.model.le_.transform(part.y) if hasattr(part.model, "le_") else part.y
    return [replace(part, model=model, y=y) for model in part.model.estimators_]


def _bags(part: Part) -> list[Part]:
    """The models of a bag, each on its own rows and features."""
    y = np.asarray(part.y)
    if hasattr(part.model, "classes_"):
        y = np.searchsorted(part.model.classes_, y)
    require(part.sample_weight is None, part.model, "sample weights")
    found, bag = [], part.model
    for k, model in enumerate(bag.estimators_):
        rows = bag.estimators_samples_[k]
        X = _safe_indexing(_safe_indexing(part.X, rows), bag.estimators_features_[k], axis=1)
        found.append(replace(part, model=model, X=X, y=y[rows]))
    return found


def _other_targets(part: Part) -> list[Part]:
    """The model of transformed targets."""
    y = np.asarray(part.y, dtype=np.float64)
    seen = part.model.transformer_.transform(y.reshape(len(y), -1))
    return [replace(part, model=part.model.regressor_, y=seen[:, 0] if y.ndim == 1 else seen)]


def _calibrated(part: Part) -> list[Part]:
    """The models under the calibration: one for each fold, or one for all rows."""
    model = part.model
    found = [inner.estimator for inner in model.calibrated_classifiers_]
    if any(type(inner).__name__ == "FrozenEstimator" for inner in found):
        raise UnknownObjective(f"{type(model).__name__} holds a frozen model: certify that one")
    if len(found) == 1 and model.ensemble is not True:
        return [replace(part, model=found[0])]
    splitter = check_cv(model.cv, part.y, classifier=True)
    seed = getattr(splitter, "random_state", 0)
    shuffled = getattr(splitter, "shuffle", hasattr(splitter, "random_state"))
    require(not shuffled or isinstance(seed, int), model, "folds that cannot be drawn again")
    folds = list(splitter.split(part.X, part.y))
    return [
        replace(part, model=inner, **part.rows(train))
        for inner, (train, _) in zip(found, folds, strict=True)
    ]


def _machine(part: Part) -> list[Part]:
    """A support vector machine with a linear kernel and several classes, or with nu.

    NuSVC has the optimum of SVC at a C that its dual variables tell: they sum to nu n C.  NuSVR has
    that of SVR at the epsilon that its free support vectors have as residual, over n.
    """
    model, y = part.model, np.asarray(part.y)
    require(model.kernel == "linear", model, f"kernel={model.kernel!r}")
    nu = type(model).__name__ != "SVC"
    require(not nu or part.sample_weight is None, model, "sample weights")
    require(not nu or getattr(model, "class_weight", None) is None, model, "class weights")
    if not hasattr(model, "classes_"):
        return [_nu_regression(part)]
    codes, coef = np.searchsorted(model.classes_, y), _dense(model.coef_)
    weights = np.ones(len(y)) if part.sample_weight is None else np.asarray(part.sample_weight)
    part = replace(part, sample_weight=weights * model.class_weight_[codes])
    found, sizes = [], np.cumsum([0, *model.n_support_])
    for k, (i, j) in enumerate(combinations(range(len(model.classes_)), 2)):
        rows = part.rows(np.flatnonzero((codes == i) | (codes == j)))
        positive = i if len(model.classes_) > 2 else j  # libsvm's order, scikit-learn's for two
        rows["y"] = np.where(codes[(codes == i) | (codes == j)] == positive, 1.0, -1.0)
        if nu:
            duals = abs(_dense(model.dual_coef_))
            first, second = duals[j - 1], duals[i]  # the row of the other class
            total = first[sizes[i] : sizes[i + 1]].sum() + second[sizes[j] : sizes[j + 1]].sum()
            C = float(total / (model.nu * len(rows["y"])))
        else:
            C = float(model.C)
        convention = Convention(Hinge(), from_C(C))
        pair = bare(coef[k], model.intercept_[k])
        found.append(Part(pair, convention=convention, **rows))
    return found


def _nu_regression(part: Part) -> Part:
    model, y = part.model, np.asarray(part.y, dtype=np.float64)
    coef = _dense(model.coef_)[0]
    residuals = abs(y - np.ravel(part.X @ coef) - model.intercept_[0])
    sizes = abs(_dense(model.dual_coef_)[0])
    free = model.support_[sizes < model.C * (1 - 1e-9)]
    require(len(free), model, "no support vector between its bounds")
    eps = float(np.median(residuals[free]))
    convention = Convention(EpsilonInsensitive(eps), from_C(model.C))
    return Part(bare(coef, model.intercept_[0]), part.X, y, None, convention)


def _kernel_ridge(part: Part) -> list[Part]:
    """Sum s_i r_i^2 + alpha |w|^2 without an intercept: w is in the dual variables."""
    model = part.model
    require(model.kernel == "linear", model, f"kernel={model.kernel!r}")
    coef = np.atleast_2d((model.X_fit_.T @ model.dual_coef_).T)
    convention = ridge_at(model, model.alpha)
    return [replace(part, model=bare(coef), convention=convention)]


def _dense(array: Any) -> np.ndarray:
    return np.asarray(array.toarray() if sparse.issparse(array) else array)


WRAPPERS: dict[str, Callable[[Part], list[Part]]] = {
    "BaggingClassifier": _bags,
    "BaggingRegressor": _bags,
    "CalibratedClassifierCV": _calibrated,
    "ClassifierChain": _chain,
    "FixedThresholdClassifier": _threshold,
    "GridSearchCV": _search,
    "HalvingGridSearchCV": _search,
    "HalvingRandomSearchCV": _search,
    "KernelRidge": _kernel_ridge,
    "MultiOutputClassifier": _outputs,
    "MultiOutputRegressor": _outputs,
    "NuSVC": _machine,
    "NuSVR": _machine,
    "OneVsOneClassifier": _pairs,
    "OneVsRestClassifier": _against_rest,
    "OutputCodeClassifier": _codes,
    "RANSACRegressor": _inliers,
    "RFE": _elimination,
    "RFECV": _elimination,
    "RandomizedSearchCV": _search,
    "RegressorChain": _chain,
    "SVC": _machine,
    "SelectFromModel": _threshold,
    "TransformedTargetRegressor": _other_targets,
    "TunedThresholdClassifierCV": _threshold,
    "VotingClassifier": _votes,
    "VotingRegressor": _votes,
}
