"""Linear models in text files of other programs, read without running anything of them."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import numpy as np

from zerogap.audit.convention import Convention, UnknownObjective, from_C
from zerogap.audit.losses import SquaredEpsilonInsensitive
from zerogap.audit.parts import bare
from zerogap.losses import EpsilonInsensitive, Hinge, Logistic, Loss, MulticlassHinge, SquaredHinge

_LIBLINEAR: dict[str, tuple[Any, float]] = {  # loss, and how often ours is in theirs
    "L2R_LR": (Logistic(), 1.0),
    "L2R_LR_DUAL": (Logistic(), 1.0),
    "L2R_L2LOSS_SVC_DUAL": (SquaredHinge(), 1.0),
    "L2R_L2LOSS_SVC": (SquaredHinge(), 1.0),
    "L2R_L1LOSS_SVC_DUAL": (Hinge(), 1.0),
    "MCSVM_CS": (MulticlassHinge(), 1.0),
    "L2R_L2LOSS_SVR": (SquaredEpsilonInsensitive, 2.0),
    "L2R_L2LOSS_SVR_DUAL": (SquaredEpsilonInsensitive, 2.0),
    "L2R_L1LOSS_SVR_DUAL": (EpsilonInsensitive, 1.0),
    "L1R_L2LOSS_SVC": (SquaredHinge(), 1.0),
    "L1R_LR": (Logistic(), 1.0),
}


def read_liblinear(path: str | Path, C: float = 1.0, eps: float = 0.1) -> Any:
    r"""Read a model file of LIBLINEAR, for `certify`.

    Parameters
    ----------
    path : path
        What ``train`` wrote.
    C, eps : float
        The options -c and -p of the training, which the file does not tell.

    Returns
    -------
    object with `coef_`, `intercept_`, `classes_` and `convention`
        The objective is |w|^2 / 2 + C sum phi_i, or |w|_1 + C sum phi_i, with the intercept (-B)
        regularised, and without weights of classes.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> lines = ["solver_type L2R_LR", "nr_class 2", "label 1 -1", "nr_feature 1", "bias -1"]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "heart.model"
    ...     length = path.write_text("\n".join([*lines, "w", "0.5", ""]))
    ...     read_liblinear(path, C=10.0).coef_.tolist()
    [[0.5]]
    """
    try:
        lines = Path(path).read_text(encoding="ascii").split("\n")
        place = lines.index("w")
        header = dict(line.split(" ", 1) for line in lines[:place] if line)
        values = np.array([line.split() for line in lines[place + 1 :] if line], dtype=np.float64)
        n_features, bias = int(header["nr_feature"]), float(header["bias"])
        kind = header["solver_type"]
    except (ValueError, KeyError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} is not a model file of LIBLINEAR: {error}") from None
    if kind not in _LIBLINEAR:
        raise UnknownObjective(f"a LIBLINEAR model of type {kind} cannot be certified")
    if values.ndim != 2 or len(values) != n_features + (bias >= 0):
        raise ValueError(f"{path} has {len(values)} rows of weights for {n_features} features")
    given, factor = _LIBLINEAR[kind]
    loss: Loss = given(eps) if isinstance(given, type) else given
    coef, intercept = values[:n_features].T, np.zeros(values.shape[1])
    if bias >= 0:
        intercept = bias * values[n_features]
    classes = None
    if "label" in header:
        labels = np.array(header["label"].split(), dtype=np.int64)
        order = np.argsort(labels)
        classes = labels[order]
        if len(coef) == 1:  # the first label is the positive one
            sign = 1.0 if labels[0] == classes[-1] else -1.0
            coef, intercept = sign * coef, sign * intercept
        else:
            coef, intercept = coef[order], intercept[order]
    model = bare(coef, intercept, classes)
    model.convention = Convention(
        loss,
        from_C(C, factor),
        l1_ratio=float(kind.startswith("L1R")),
        fit_intercept=False,
        penalised=max(0.0, bias),
    )
    return model


def read_coefficients(path: str | Path) -> Any:
    r"""Read a table of names and coefficients, as R or a spreadsheet writes it, for `certify`.

    Each line has the name of a feature and its weight; one named intercept, (Intercept) or const
    is the intercept.  A first line without numbers or without a name, quotes and any of comma,
    semicolon, tab and blanks are taken.  R writes one by ``write.csv(as.matrix(coef(fit)), path)``,
    pandas by ``pd.Series(w, names).to_csv(path)``.

    Parameters
    ----------
    path : path
        The file.

    Returns
    -------
    object with `coef_`, `intercept_` and names
        In the order of the file.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "coefficients.csv"
    ...     length = path.write_text("(Intercept),1.5\nage,0.25\n")
    ...     model = read_coefficients(path)
    >>> model.names, model.coef_.tolist(), model.intercept_.tolist()
    (['age'], [[0.25]], [1.5])
    """
    weights: list[float] = []
    names: list[str] = []
    intercept = 0.0
    try:
        lines = Path(path).read_text(encoding="utf-8-sig").splitlines()
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is no table of coefficients, which is text: {error}") from None
    for number, line in enumerate(lines, 1):
        cells = [
            cell.strip().strip("\"'") for cell in re.split(r"[,;\t]|\s+", line) if cell.strip()
        ]
        corner = re.match(r"""\s*(""|'')?\s*[,;\t]""", line)  # the heading of rows' names: none
        if not cells or (number == 1 and corner):
            continue
        try:
            value = float(cells[-1])
        except ValueError:
            if number == 1:
                continue
            raise ValueError(f"{path}: line {number} has no number in its last cell") from None
        if not math.isfinite(value):
            raise ValueError(f"{path}: line {number} has {cells[-1]}, which is no weight")
        name = cells[0] if len(cells) > 1 else f"column{len(weights) + 1}"
        if name.lower().strip("()") in ("intercept", "const", "bias"):
            intercept = value
            continue
        names.append(name)
        weights.append(value)
    if not weights:
        raise ValueError(f"{path} has no coefficients: a line has a name and a number")
    model = bare(np.array([weights]), intercept)
    model.names = names
    return model


def read_onnx(path: str | Path) -> Any:
    """Read the coefficients of the one linear model in an ONNX file; `certify` needs loss and lam.

    Takes the operators LinearClassifier and LinearRegressor of `ai.onnx.ml`.

    Parameters
    ----------
    path : path
        The file.

    Returns
    -------
    object with `coef_` and `intercept_`, of a classifier also `classes_`
        The coefficients.

    Examples
    --------
    >>> import zerogap as zg
    >>> model = zg.audit.read_onnx("model.onnx")  # doctest: +SKIP
    >>> zg.certify(model, X, y, loss="logistic", lam=0.1)  # doctest: +SKIP
    """
    import onnx

    nodes = onnx.load(str(path)).graph.node
    linear = [node for node in nodes if node.op_type in ("LinearClassifier", "LinearRegressor")]
    if len(linear) != 1:
        raise ValueError(f"{path} holds {len(linear)} linear models, one is needed")
    values = {a.name: onnx.helper.get_attribute_value(a) for a in linear[0].attribute}
    intercept = np.array(values.get("intercepts", [0.0]), dtype=np.float64)
    coef = np.array(values["coefficients"], dtype=np.float64).reshape(len(intercept), -1)
    classes: Any = values.get("classlabels_ints") or values.get("classlabels_strings", [])
    if linear[0].op_type == "LinearRegressor":
        return bare(coef, intercept)
    labels = [label.decode() if isinstance(label, bytes) else label for label in classes]
    if len(coef) == 2:  # both signs of one model
        coef, intercept = coef[1:], intercept[1:]
    return bare(coef, intercept, labels)


def read_vw(path: str | Path, n_features: int) -> Any:
    r"""Read a readable model of Vowpal Wabbit (--readable_model), for `certify` with loss and lam.

    Features must have been given by number, as in svmlight files; the constant is the intercept.
    With ``--bfgs --l2 v`` the objective is sum phi_i + v |w|^2 / 2 over all weights but the
    constant's: lam = v / n.  Its squared loss has no half: lam = v / (2 n).

    Parameters
    ----------
    path : path
        The file.
    n_features : int
        Number of features; those that the file does not name have weight zero.

    Returns
    -------
    object with `coef_` and `intercept_`
        The coefficients.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "readable.txt"
    ...     length = path.write_text("Version 9.10\n:0\n2:0.5\n116060:1.5\n")
    ...     read_vw(path, n_features=3).coef_.tolist()
    [[0.0, 0.0, 0.5]]
    """
    weights: dict[int, float] = {}
    for line in Path(path).read_text(encoding="ascii", errors="replace").splitlines():
        place, _, value = line.partition(":")
        if place.isdigit() and value:
            weights[int(place)] = float(value.split()[0])
    coef = np.array([weights.get(j, 0.0) for j in range(n_features)])
    return bare(coef[None, :], weights.get(_VW_CONSTANT, 0.0))


_VW_CONSTANT = 116_060  # the index of the constant feature
