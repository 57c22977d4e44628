"""Fitted estimators as files of JSON and arrays, see `zerogap.io.container`."""

from __future__ import annotations

import dataclasses
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

import zerogap
from zerogap.cuda.device import to_host
from zerogap.estimators import LinearClassifier, LinearRegressor
from zerogap.estimators.outputs import refuse_several
from zerogap.io.atomic import write_file
from zerogap.io.container import FileError, read_bytes, short, unpack, write
from zerogap.model_io import calibrations
from zerogap.model_io.parts import (
    LOCAL,
    as_certificate,
    as_encoder,
    check_parts,
    checked_training,
    decoded,
    encoded,
    floats,
    get,
    plain_labels,
    region_arrays,
    set_arrays,
)

_ESTIMATORS: dict[str, Any] = {c.__name__: c for c in (LinearClassifier, LinearRegressor)}
_BYTES_KEPT_UNASKED = 8_000_000  # of dual variables, those of a million rows

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
        "params": {key: encoded(key, value) for key, value in model.get_params(False).items()},
        "certificate": dataclasses.asdict(model.certificate_),
        "n_iter": model.n_iter_,
        "fingerprint": model.fingerprint_,
        "feature_names": None if names is None else list(names),
        "encoder": None if encoder is None else encoder.to_json(),
        "training": training or {},
    }
    arrays = {"coef": to_host(model.coef_), "intercept": np.asarray(to_host(model.intercept_))}
    if isinstance(model, LinearClassifier):
        arrays["classes"], header["object_classes"] = plain_labels(model.classes_)
    kept = to_host(model.dual_coef_)
    if keep_dual and not kept.size:
        raise ValueError("keep_dual=True, but the model was loaded from a file without duals")
    if kept.size and (kept.nbytes <= _BYTES_KEPT_UNASKED if keep_dual is None else keep_dual):
        arrays["dual"] = kept
        if model.row_ids_[-1] != len(model.row_ids_) - 1:  # rows are missing in between
            arrays["row_ids"] = model.row_ids_
    arrays |= region_arrays(model)
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
    cls = _ESTIMATORS.get(get(header, "class", str))
    if cls is None:
        raise FileError(f"class {short(header['class'])} is unknown")
    known = set(cls._get_param_names()).difference(LOCAL)  # others are of a newer minor version
    params = {k: decoded(v) for k, v in get(header, "params", dict).items() if k in known}
    model = cls(**params)
    try:
        model._loss()
    except ValueError as error:
        raise FileError(str(error)) from None
    model.certificate_ = as_certificate(get(header, "certificate", dict))
    model.n_iter_ = get(header, "n_iter", int)
    if model.n_iter_ < 0:
        raise FileError(f"n_iter is {model.n_iter_}, a number of epochs")
    model.fingerprint_ = get(header, "fingerprint", str)
    set_arrays(model, arrays, header.get("object_classes") is True)
    calibrations.restore(model, header, arrays, as_certificate)
    check_parts(model)
    d = model.n_features_in_
    if header.get("feature_names") is not None:
        names = get(header, "feature_names", list)
        if len(names) != d or not all(isinstance(name, str) for name in names):
            raise FileError(f"feature_names must be {d} texts, got {short(names)}")
        model.feature_names_in_ = np.array(names, dtype=object)
    encoder = as_encoder(header.get("encoder"), d)
    version = get(header, "library", str)
    if encoder is not None and encoder.columns:
        model.encoder_ = encoder
        if not hasattr(model, "feature_names_in_"):
            model.feature_names_in_ = np.array(encoder.feature_names, dtype=object)
    training = checked_training(header.get("training", {}))
    deviation = floats(arrays, "deviation") if "deviation" in arrays else None
    if deviation is not None and (deviation.shape != (d,) or (deviation < 0).any()):
        raise FileError(f"deviation must be {d} numbers of 0 or more")
    more = "dual" in arrays, training, deviation
    return ModelFile(model, encoder, model.fingerprint_, version, *more)
