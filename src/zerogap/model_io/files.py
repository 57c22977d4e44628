"""Fitted estimators as files of JSON and arrays, see `zerogap.io.container`."""

from __future__ import annotations

import contextlib
import dataclasses
import math
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

import zerogap
from zerogap.estimators import LinearClassifier, LinearRegressor
from zerogap.estimators.outputs import refuse_several
from zerogap.io.atomic import write_file
from zerogap.io.container import FileError, read_bytes, short, unpack, write
from zerogap.losses import ALL_LOSSES, Loss, as_loss
from zerogap.model_io import calibrations
from zerogap.problem.certificate import Certificate
from zerogap.regions import Evidence, Known, Region
from zerogap.solvers import SOLVERS, Solver

_ESTIMATORS: dict[str, Any] = {c.__name__: c for c in (LinearClassifier, LinearRegressor)}
_PARTS: dict[str, dict[str, Any]] = {"loss": ALL_LOSSES, "solver": SOLVERS}
_NUMBERS = ("primal", "dual", "gap", "epochs", "seconds")
_LOCAL = ("callback", "checkpoint")  # code and paths: a file neither keeps nor sets them
_REGION = ("radius", "low", "high")  # names of arrays
_REGION_AT_ORIGIN = ("radius_at_origin", "low_at_origin", "high_at_origin", "origin")
_ROUNDING = 1e-12  # of a certificate's values, relative to them: sums and differences of float64
_BLUR = 1e-4  # of P: more than rounding leaves unknown of it
_SMALL = 8_000_000  # bytes of dual variables that are kept unasked

Model = LinearClassifier | LinearRegressor


class ModelFileError(FileError):
    """The file is not a model that this version can read: one line that says what and where."""


@dataclass(frozen=True, eq=False)
class ModelFile:
    """What a model file holds.

    Attributes
    ----------
    model : LinearClassifier or LinearRegressor
        The fitted estimator.
    encoder : zerogap.readers.Encoder or None
        How tables become its features.
    fingerprint : str
        Size and checksums of the data of the fit.
    version : str
        Version of zerogap that wrote the file.
    has_dual : bool
        Whether the dual variables were kept.
    training : dict
        Name, rows and SHA-256 of the file of the fit, as far as they are known.
    deviation : array or None
        Standard deviation of each feature in the data of the fit.
    """

    model: Model
    encoder: Any
    fingerprint: str
    version: str
    has_dual: bool
    training: dict[str, Any] = dataclasses.field(default_factory=dict)
    deviation: np.ndarray | None = None


def save(
    model: Model,
    path: str | os.PathLike[str],
    *,
    encoder: Any = None,
    keep_dual: bool | None = None,
    training: dict[str, Any] | None = None,
    deviation: np.ndarray | None = None,
) -> None:
    """Write a fitted estimator to one file, atomically.

    The file holds JSON and arrays, no code.  A loaded model predicts the same bits and has the
    same parameters and attributes, except: ``history_`` is not kept, ``dual_coef_`` is empty unless
    kept, `callback`, `checkpoint` and a `random_state` that is a generator become None.

    Parameters
    ----------
    model : LinearClassifier or LinearRegressor
        Fitted, with a loss and a solver of this library: your own cannot be rebuilt from a file.
    path : path
        Where to.  Whenever the process ends, there is the old file or the new one.
    encoder : zerogap.readers.Encoder, optional
        How tables become features; kept with the model.
    keep_dual : bool, optional
        Whether to keep the dual variables, with which `zerogap.model_io.recertify` proves the
        certificate at once and the model can `update` and `forget`.  By default if they take 8 MB
        or less.
    training : dict, optional
        What to say of the data of the fit: texts and numbers by name.
    deviation : array of shape (n_features,), optional
        Standard deviations of the features of the fit, by which `zerogap show` sorts coefficients.

    Examples
    --------
    >>> import zerogap as zg
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> X, y, beta = zg.datasets.make_simulated(random_state=0)
    >>> model = zg.LinearClassifier("logistic", random_state=0).fit(X, y)
    >>> with TemporaryDirectory() as folder:
    ...     save(model, Path(folder, "model.zg"))
    ...     same = load(Path(folder, "model.zg"))
    >>> bool((same.decision_function(X) == model.decision_function(X)).all())
    True
    """
    encoder = model.encoder_ if encoder is None and hasattr(model, "encoder_") else encoder
    name = type(model).__name__
    if _ESTIMATORS.get(name) is not type(model):
        raise ValueError(f"only {' and '.join(_ESTIMATORS)} can be saved, got {name}")
    check_is_fitted(model, "coef_")
    refuse_several(model, "a model file")
    names = getattr(model, "feature_names_in_", None)
    header = {
        "kind": "model",
        "class": name,
        "library": zerogap.__version__,
        "params": {key: _encode(key, value) for key, value in model.get_params(False).items()},
        "certificate": dataclasses.asdict(model.certificate_),
        "n_iter": model.n_iter_,
        "fingerprint": model.fingerprint_,
        "feature_names": None if names is None else list(names),
        "encoder": None if encoder is None else encoder.to_json(),
        "training": training or {},
    }
    arrays = {"coef": model.coef_, "intercept": np.asarray(model.intercept_)}
    if isinstance(model, LinearClassifier):
        arrays["classes"], header["object_classes"] = _labels(model.classes_)
    kept = model.dual_coef_
    if keep_dual and not kept.size:
        raise ValueError("keep_dual=True, but the model was loaded from a file without duals")
    if kept.size and (kept.nbytes <= _SMALL if keep_dual is None else keep_dual):
        arrays["dual"] = kept
        if model.row_ids_[-1] != len(model.row_ids_) - 1:  # rows are missing in between
            arrays["row_ids"] = model.row_ids_
    arrays |= _bounds(model)
    told, sigmoids = calibrations.parts(model)
    header |= told
    arrays |= sigmoids
    if deviation is not None:
        arrays["deviation"] = np.asarray(deviation, dtype=np.float64)
    write_file(Path(path), lambda file: write(file, header, arrays))


def load(path: str | os.PathLike[str]) -> Model:
    """Return the fitted estimator that `save` wrote.  Reading a file runs no code from it.

    Nor does a file name places to write to: `checkpoint` and `callback` of the model are None.
    What it says of itself, in ``certificate_`` and through ``predict_certified``, is its own word:
    impossible values are refused, and `zerogap.model_io.recertify` checks the others on the data.

    Parameters
    ----------
    path : path
        A model file.

    Returns
    -------
    LinearClassifier or LinearRegressor

    Raises
    ------
    ModelFileError
        A ValueError: the file is damaged, no model file, or from a newer major version.
    OSError
        The file cannot be read.

    Examples
    --------
    >>> import zerogap as zg
    >>> from tempfile import NamedTemporaryFile
    >>> X, y, beta = zg.datasets.make_simulated(random_state=0)
    >>> with NamedTemporaryFile(suffix=".zg") as file:
    ...     save(zg.LinearClassifier(lam=0.1, random_state=0).fit(X, y), file.name)
    ...     load(file.name)
    LinearClassifier(lam=0.1, random_state=0)
    """
    return read(path).model


def read(path: str | os.PathLike[str]) -> ModelFile:
    """Return all that a model file holds; errors as in `load`.

    Parameters
    ----------
    path : path
        A model file.

    Returns
    -------
    ModelFile
        The model, its encoder, and what is known about the fit.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import zerogap as zg
    >>> model = zg.LinearClassifier(random_state=0).fit([[0.0], [1.0]], [0, 1])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     zg.save(model, Path(folder) / "model.zg")
    ...     held = read(Path(folder) / "model.zg")
    >>> held.version == zg.__version__, held.has_dual
    (True, True)
    """
    try:
        return _build(read_bytes(Path(path)))
    except FileError as error:
        raise ModelFileError(f"{os.fspath(path)} is not a readable model: {error}") from None


def loads(content: bytes) -> ModelFile:
    """Return what a model file of this content holds; errors as in `load`.

    Parameters
    ----------
    content : bytes
        What a model file has in it.

    Returns
    -------
    ModelFile
        The model, its encoder, and what is known about the fit.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import zerogap as zg
    >>> model = zg.LinearClassifier(random_state=0).fit([[0.0], [1.0]], [0, 1])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     zg.save(model, Path(folder) / "model.zg")
    ...     held = loads((Path(folder) / "model.zg").read_bytes())
    >>> held.model.predict([[1.0]]).tolist()
    [1]
    """
    try:
        return _build(content)
    except FileError as error:
        raise ModelFileError(f"not a readable model: {error}") from None


def _build(content: bytes) -> ModelFile:
    header, arrays = unpack(content)
    if (kind := header.get("kind")) != "model":
        raise FileError(f"it is a {kind if kind == 'checkpoint' else short(kind)}, not a model")
    cls = _ESTIMATORS.get(_get(header, "class", str))
    if cls is None:
        raise FileError(f"class {short(header['class'])} is unknown")
    known = set(cls._get_param_names()).difference(_LOCAL)  # others are of a newer minor version
    params = {k: _decode(v) for k, v in _get(header, "params", dict).items() if k in known}
    model = cls(**params)
    try:
        model._loss()
    except ValueError as error:
        raise FileError(str(error)) from None
    model.certificate_ = _certificate(_get(header, "certificate", dict))
    model.n_iter_ = _get(header, "n_iter", int)
    if model.n_iter_ < 0:
        raise FileError(f"n_iter is {model.n_iter_}, a number of epochs")
    model.fingerprint_ = _get(header, "fingerprint", str)
    _set_arrays(model, arrays, header.get("object_classes") is True)
    calibrations.restore(model, header, arrays, _certificate)
    _check_parts(model)
    d = model.n_features_in_
    if header.get("feature_names") is not None:
        names = _get(header, "feature_names", list)
        if len(names) != d or not all(isinstance(name, str) for name in names):
            raise FileError(f"feature_names must be {d} texts, got {short(names)}")
        model.feature_names_in_ = np.array(names, dtype=object)
    encoder = _encoder(header.get("encoder"), d)
    version = _get(header, "library", str)
    if encoder is not None and encoder.columns:
        model.encoder_ = encoder
        if not hasattr(model, "feature_names_in_"):
            model.feature_names_in_ = np.array(encoder.feature_names, dtype=object)
    training = _training(header.get("training", {}))
    deviation = _floats(arrays, "deviation") if "deviation" in arrays else None
    if deviation is not None and (deviation.shape != (d,) or (deviation < 0).any()):
        raise FileError(f"deviation must be {d} numbers of 0 or more")
    more = "dual" in arrays, training, deviation
    return ModelFile(model, encoder, model.fingerprint_, version, *more)


def _training(value: Any) -> dict[str, Any]:
    plain = isinstance(value, dict) and all(type(v) in (str, int, float) for v in value.values())
    if not plain:
        raise FileError(f"what it says of its training data is {short(value)}")
    return value


def _set_arrays(model: Any, arrays: dict[str, np.ndarray], object_classes: bool) -> None:
    """Set the fitted attributes that are arrays, after checking that they fit together."""
    coef, intercept = _floats(arrays, "coef"), _floats(arrays, "intercept")
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
    dual = _floats(arrays, "dual") if "dual" in arrays else np.empty((*coef.shape[:-1], 0))
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


def _bounds(model: Any) -> dict[str, np.ndarray]:
    """Return where the optimum is, if the model knows: what certified predictions need."""
    regions = [_found_again(known) for known in model._evidence]
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
    """Return the gap that proves this one, but for rounding."""
    return 1.000001 * gap + 1e-13 * abs(primal)


def _found_again(known: Evidence | Known) -> Region:
    """Return where the optimum is; where rounding decides, with room for a gap found again."""
    if isinstance(known, Known) or known.proof.rounding <= 0.5 * known.proof.gap:
        return known.region
    proof = known.proof
    more = allowed_gap(proof.primal, proof.gap) - proof.gap
    proof = proof._replace(gap=proof.gap + more, slack=proof.slack + more)
    return dataclasses.replace(known, proof=proof).region


def _set_regions(model: Any, arrays: dict[str, np.ndarray]) -> None:
    model._evidence = []
    names = next((known for known in (_REGION, _REGION_AT_ORIGIN) if known[0] in arrays), None)
    if names is None:
        return
    radius, low, high, *rest = (_floats(arrays, name) for name in names)
    origin = rest[0] if rest else np.empty(0)
    joint = model._loss().task == "multiclass"
    outputs = len(model.classes_) if joint else np.size(model.intercept_)
    shapes = [(1 if joint else outputs,), (outputs,), (outputs,)]
    sound = [radius.shape, low.shape, high.shape] == shapes and (radius >= 0).all()
    if not sound or (low > high).any() or (rest and origin.shape != model.coef_.shape[-1:]):
        raise FileError("its bounds of the optimum do not fit together")
    parts = [slice(None)] if joint else [slice(k, k + 1) for k in range(outputs)]
    regions = zip(radius, parts, strict=True)
    model._evidence = [
        Known(Region(float(r), low[part], high[part], origin), proved=False) for r, part in regions
    ]


def _floats(arrays: dict[str, np.ndarray], name: str) -> np.ndarray:
    array = arrays.get(name)
    if array is None or array.dtype != np.float64 or not np.isfinite(array).all():
        raise FileError(f"array {name!r} of finite float64 numbers is missing")
    return array


def _labels(classes: np.ndarray) -> tuple[np.ndarray, bool]:
    """Return class labels as an array of numbers or text, and whether it was one of objects."""
    if classes.dtype.kind != "O":
        return classes, False
    texts = classes.astype(np.str_)
    if not all(isinstance(label, str) for label in classes) or np.any(texts != classes):
        raise ValueError(f"class labels must be numbers or texts to be saved, got {classes!r}")
    return texts, True


def _certificate(fields: dict[str, Any]) -> Certificate:
    """Return a certificate from its fields; those unknown come from a newer minor version."""
    known: dict[str, Any] = {k: float(_get(fields, k, int | float)) for k in _NUMBERS}
    later = {"floor": 0.0, "rounding": 0.0}  # older files do not have them
    known |= {k: float(_get({**later, **fields}, k, int | float)) for k in later}
    known |= {k: _get(fields, k, str) for k in ("stop_reason", "solver")}
    parts = _get(fields, "parts", list)
    if any(not isinstance(part, dict) or part.get("parts") for part in parts):
        raise FileError("the parts of a certificate must be certificates without parts")
    certificate = Certificate(**known, parts=tuple(map(_certificate, parts)))
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
    blur = _BLUR * primal + 10.0 * certificate.rounding
    if not (more == 0.0 or -rounding - _ROUNDING * abs(gap) <= more <= blur + rounding):
        raise FileError(f"its certificate has a gap of {gap:g}, but {primal:g} - {dual:g}")
    for name in ("epochs", "seconds", "floor", "rounding"):
        if not 0.0 <= getattr(certificate, name) < math.inf:
            raise FileError(f"its certificate has {name} = {getattr(certificate, name):g}")


def _check_parts(model: Any) -> None:
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


def _encoder(value: Any, n_features: int) -> Any:
    if value is None:
        return None
    from zerogap.readers import DataError, Encoder

    try:
        encoder = Encoder.from_json(value)
    except DataError as error:
        raise FileError(f"its encoder {error}") from None
    if encoder.n_features != n_features:
        raise FileError(f"the encoder has {encoder.n_features} features, not {n_features}")
    return encoder


def _encode(name: str, value: Any) -> Any:
    """Return a parameter as JSON."""
    if name in _LOCAL or isinstance(value, np.random.Generator | np.random.RandomState):
        return None
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, dict):  # class_weight: the keys need not be texts
        return {"pairs": [[_encode(name, k), _encode(name, v)] for k, v in value.items()]}
    for part, table in _PARTS.items():
        for key, cls in table.items():
            if type(value) is cls:
                fields = value.get_params().items()
                return {part: key, "params": {k: _encode(f"{name}.{k}", v) for k, v in fields}}
    own = isinstance(value, Loss | Solver)
    why = "it is not part of zerogap, and a file holds no code" if own else "no JSON for it"
    raise ValueError(
        f"{name}={value!r} cannot be saved: {why}.  Pickle the model, or keep coef_ and intercept_"
    )


def _decode(value: Any) -> Any:
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


def _get(header: dict[str, Any], key: str, kind: Any) -> Any:
    value = header.get(key)
    if not isinstance(value, kind) or isinstance(value, bool):
        raise FileError(f"{key} is missing or wrong in its header: {short(value)}")
    return value
