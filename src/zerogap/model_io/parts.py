"""What a model file holds, part by part: written plainly, and checked when it is read."""

from __future__ import annotations

import contextlib
import dataclasses
import math
from typing import Any

import numpy as np

from zerogap.estimators import LinearClassifier
from zerogap.io.container import FileError, short
from zerogap.losses import ALL_LOSSES, Loss, as_loss
from zerogap.problem.certificate import Certificate
from zerogap.readers import DataError, Encoder
from zerogap.regions import KnownRegion, ProofWithoutRows, Region
from zerogap.solvers import SOLVERS, Solver

_PARTS: dict[str, dict[str, Any]] = {"loss": ALL_LOSSES, "solver": SOLVERS}
_NUMBERS = ("primal", "dual", "gap", "epochs", "seconds")
LOCAL = ("callback", "checkpoint")  # code and paths: a file neither keeps nor sets them
_REGION = ("radius", "low", "high")  # names of arrays
_REGION_AT_ORIGIN = ("radius_at_origin", "low_at_origin", "high_at_origin", "origin")
_ROUNDING = 1e-12  # of a certificate's values, relative to them: sums and differences of float64
_LARGEST_BLUR = 1e-4  # of P: rounding leaves less of it unknown


def checked_training(value: Any) -> dict[str, Any]:
    """Return what a file says of the data of the fit."""
    plain = isinstance(value, dict) and all(type(v) in (str, int, float) for v in value.values())
    if not plain:
        raise FileError(f"what it says of its training data is {short(value)}")
    return value


def set_arrays(model: Any, arrays: dict[str, np.ndarray], object_classes: bool) -> None:
    """Set the fitted attributes that are arrays, after checking that they fit together."""
    coef, intercept = floats(arrays, "coef"), floats(arrays, "intercept")
    if isinstance(model, LinearClassifier):
        classes = arrays.get("classes", np.empty(0))
        if classes.ndim != 1 or len(classes) < 2 or not np.all(classes[1:] > classes[:-1]):
            raise FileError("classes must be two or more different labels, in order")
        count = 1 if len(classes) == 2 else len(classes)
        fits = coef.ndim == 2 and len(coef) == count and intercept.shape == (count,)
        model.classes_ = classes.astype(object) if object_classes else classes
        model.intercept_ = intercept
    else:
        fits = coef.ndim == 1 and intercept.shape == ()
        model.intercept_ = float(intercept) if fits else None
    dual = floats(arrays, "dual") if "dual" in arrays else np.empty((*coef.shape[:-1], 0))
    if not fits or not coef.size or dual.shape[:-1] != coef.shape[:-1] or dual.ndim != coef.ndim:
        shapes = ", ".join(f"{name} {array.shape}" for name, array in arrays.items())
        raise FileError(f"the shapes of its arrays do not fit together: {short(shapes)}")
    ids = arrays.get("row_ids", np.arange(dual.shape[-1]))
    sound = ids.dtype == np.int64 and ids.shape == dual.shape[-1:]
    if not sound or np.any(np.diff(ids, prepend=-1) <= 0):
        raise FileError("row_ids must be the numbers of the rows of its dual, in order")
    model.coef_, model.dual_coef_, model.row_ids_ = coef, dual, ids
    model.n_features_in_ = coef.shape[-1]
    _set_regions(model, arrays)


def region_arrays(model: Any) -> dict[str, np.ndarray]:
    """Return where the optimum is, if the model knows: what certified predictions need."""
    regions = [_found_again(known) for known in model._region_sources]
    if not regions:
        return {}
    origin = regions[0].origin
    names = _REGION if not len(origin) else _REGION_AT_ORIGIN
    bounds = (
        np.array([region.radius for region in regions]),
        np.concatenate([region.low for region in regions]),
        np.concatenate([region.high for region in regions]),
        origin,
    )
    sound = all(np.isfinite(bound).all() for bound in bounds)
    return dict(zip(names, bounds, strict=False)) if sound else {}


def allowed_gap(primal: float, gap: float) -> float:
    """Return the gap that proves this one, except for rounding."""
    return 1.000001 * gap + 1e-13 * abs(primal)


def _found_again(known: ProofWithoutRows | KnownRegion) -> Region:
    """Return where the optimum is; if rounding dominates the gap, allow for another rounding."""
    if isinstance(known, KnownRegion) or known.proof.rounding <= 0.5 * known.proof.gap:
        return known.region
    proof = known.proof
    more = allowed_gap(proof.primal, proof.gap) - proof.gap
    proof = proof._replace(gap=proof.gap + more, slack=proof.slack + more)
    return dataclasses.replace(known, proof=proof).region


def _set_regions(model: Any, arrays: dict[str, np.ndarray]) -> None:
    model._region_sources = []
    names = next((known for known in (_REGION, _REGION_AT_ORIGIN) if known[0] in arrays), None)
    if names is None:
        return
    radius, low, high, *rest = (floats(arrays, name) for name in names)
    origin = rest[0] if rest else np.empty(0)
    joint = model._loss().task == "multiclass"
    outputs = len(model.classes_) if joint else np.size(model.intercept_)
    shapes = [(1 if joint else outputs,), (outputs,), (outputs,)]
    sound = [radius.shape, low.shape, high.shape] == shapes and (radius >= 0).all()
    if not sound or (low > high).any() or (rest and origin.shape != model.coef_.shape[-1:]):
        raise FileError("its bounds of the optimum do not fit together")
    parts = [slice(None)] if joint else [slice(k, k + 1) for k in range(outputs)]
    regions = zip(radius, parts, strict=True)
    model._region_sources = [
        KnownRegion(Region(float(r), low[part], high[part], origin), proved=False)
        for r, part in regions
    ]


def floats(arrays: dict[str, np.ndarray], name: str) -> np.ndarray:
    """Return an array of finite numbers."""
    array = arrays.get(name)
    if array is None or array.dtype != np.float64 or not np.isfinite(array).all():
        raise FileError(f"array {name!r} of finite float64 numbers is missing")
    return array


def plain_labels(classes: np.ndarray) -> tuple[np.ndarray, bool]:
    """Return class labels as an array of numbers or text, and whether it was one of objects."""
    if classes.dtype.kind != "O":
        return classes, False
    texts = classes.astype(np.str_)
    if not all(isinstance(label, str) for label in classes) or np.any(texts != classes):
        raise ValueError(f"class labels must be numbers or texts to be saved, got {classes!r}")
    return texts, True


def as_certificate(fields: dict[str, Any]) -> Certificate:
    """Return a certificate from its fields; those unknown come from a newer minor version."""
    known: dict[str, Any] = {k: float(get(fields, k, int | float)) for k in _NUMBERS}
    later = {"floor": 0.0, "rounding": 0.0}  # older files do not have them
    known |= {k: float(get({**later, **fields}, k, int | float)) for k in later}
    known |= {k: get(fields, k, str) for k in ("stop_reason", "solver")}
    parts = get(fields, "parts", list)
    if any(not isinstance(part, dict) or part.get("parts") for part in parts):
        raise FileError("the parts of a certificate must be certificates without parts")
    certificate = Certificate(**known, parts=tuple(map(as_certificate, parts)))
    _check_values(certificate)
    return certificate


def _check_values(certificate: Certificate) -> None:
    """Refuse what no fit can have found, whatever its data."""
    primal, dual, gap = certificate.primal, certificate.dual, certificate.gap
    rounding = _ROUNDING * primal + max(0.0, certificate.floor)
    if not 0.0 <= primal < math.inf:
        raise FileError(f"its certificate has a primal value of {primal:g}")
    if not gap >= -rounding:
        raise FileError(f"its certificate has a gap of {gap:g}")
    if not dual <= primal + rounding:
        raise FileError(f"its certificate has a dual value, {dual:g}, above the primal, {primal:g}")
    more = primal - dual - gap  # dual is rounded down by what P is not known by
    blur = _LARGEST_BLUR * primal + 10.0 * certificate.rounding
    if not (more == 0.0 or -rounding - _ROUNDING * abs(gap) <= more <= blur + rounding):
        raise FileError(f"its certificate has a gap of {gap:g}, but {primal:g} - {dual:g}")
    for name in ("epochs", "seconds", "floor", "rounding"):
        if not 0.0 <= getattr(certificate, name) < math.inf:
            raise FileError(f"its certificate has {name} = {getattr(certificate, name):g}")


def check_parts(model: Any) -> None:
    """Refuse a certificate that is not the sum of one part for each problem of the model."""
    certificate, outputs = model.certificate_, np.size(model.intercept_)
    several = outputs if outputs > 1 and model._loss().task != "multiclass" else 0
    if len(certificate.parts) != several:
        found = len(certificate.parts)
        raise FileError(f"its certificate has {found} parts, and the model {several}")
    if several:
        whole = Certificate.combine(certificate.parts)
        for name in ("primal", "dual", "gap", "floor"):
            ours, theirs = getattr(whole, name), getattr(certificate, name)
            if not (ours == theirs or abs(ours - theirs) <= _ROUNDING * (whole.primal + abs(ours))):
                raise FileError(f"its certificate has {name} = {theirs:g}, its parts {ours:g}")


def as_encoder(value: Any, n_features: int) -> Any:
    """Return the encoder that a file describes, if it has one."""
    if value is None:
        return None

    try:
        encoder = Encoder.from_json(value)
    except DataError as error:
        raise FileError(f"its encoder {error}") from None
    if encoder.n_features != n_features:
        raise FileError(f"the encoder has {encoder.n_features} features, not {n_features}")
    return encoder


def encoded(name: str, value: Any) -> Any:
    """Return a parameter as JSON."""
    if name in LOCAL or isinstance(value, np.random.Generator | np.random.RandomState):
        return None
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, dict):  # class_weight: the keys need not be texts
        return {"pairs": [[encoded(name, k), encoded(name, v)] for k, v in value.items()]}
    for part, table in _PARTS.items():
        for key, cls in table.items():
            if type(value) is cls:
                fields = value.get_params().items()
                return {part: key, "params": {k: encoded(f"{name}.{k}", v) for k, v in fields}}
    own = isinstance(value, Loss | Solver)
    why = "it is not part of zerogap, and a file holds no code" if own else "no JSON for it"
    raise ValueError(
        f"{name}={value!r} cannot be saved: {why}.  Pickle the model, or keep coef_ and intercept_"
    )


def decoded(value: Any) -> Any:
    """Return the parameter that JSON describes."""
    match value:
        case {"loss": str(name), "params": dict(params), **rest} if not rest:
            return _part("loss", name, params)
        case {"solver": str(name), "params": dict(params), **rest} if not rest:
            return _part("solver", name, params)
        case {"pairs": list(pairs), **rest} if not rest and all(map(_is_pair, pairs)):
            return dict(pairs)
        case dict() | list():
            raise FileError(f"a parameter is {short(value)}, which this version does not know")
    return value


def _is_pair(value: Any) -> bool:
    pair = isinstance(value, list) and len(value) == 2
    return pair and not any(isinstance(item, dict | list) for item in value)


def _part(part: str, name: str, params: dict[str, Any]) -> Any:
    """Return a loss or solver by its name in the library's own table."""
    simple = not any(isinstance(item, dict | list) for item in params.values())
    with contextlib.suppress(TypeError, ValueError):
        if simple and name in _PARTS[part]:
            made = _PARTS[part][name](**params)
            return as_loss(made) if part == "loss" else made
    raise FileError(f"{short(name)} with {short(params)} is no {part} that this version knows")


def get(header: dict[str, Any], key: str, kind: Any) -> Any:
    """Return a value of the header, of this type."""
    value = header.get(key)
    if not isinstance(value, kind) or isinstance(value, bool):
        raise FileError(f"{key} is missing or wrong in its header: {short(value)}")
    return value
