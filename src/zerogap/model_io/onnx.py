"""Predictions as ONNX graphs, for programs without Python."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from zerogap.cuda.device import to_host
from zerogap.estimators.outputs import refuse_several
from zerogap.io.atomic import write_file
from zerogap.model_io.onnx_encoder import DOMAINS, encode

_OPSET, _IR = 17, 8  # of 2022: what most runtimes still in use can read


def to_onnx(
    model: Any, path: str | os.PathLike[str] | None = None, *, dtype: str = "float32"
) -> Any:
    """Export the predictions of a fitted estimator to ONNX.

    The graph has one input, "X" of shape (n_samples, n_features).  That of a model which was
    trained on a table has instead one input of shape (n_samples, 1) for each column, under its
    name, and the encoder inside: numbers and truth values as numbers, NaN where missing;
    categories and texts as texts, "" where missing; dates as days since 1970 (float64).  Words of
    texts need ONNX Runtime.  The outputs are those of the
    estimator's methods: for a regressor "prediction"; for a classifier "label" and "scores", and
    "probabilities" where there is ``predict_proba``.  Names of features are in the metadata, as
    JSON.

    Parameters
    ----------
    model : LinearClassifier or LinearRegressor
        Fitted.
    path : path, optional
        File to write as well, atomically.
    dtype : {"float32", "float64"}
        Type of the input and of all arithmetic.

    Returns
    -------
    onnx.ModelProto
        The checked graph.  Needs the extra ``zerogap[onnx]``.

    Examples
    --------
    >>> import zerogap as zg
    >>> X, y, beta = zg.datasets.make_simulated(random_state=0)
    >>> proto = to_onnx(zg.LinearClassifier("logistic", random_state=0).fit(X, y))
    >>> [output.name for output in proto.graph.output]
    ['scores', 'label', 'probabilities']
    """
    try:
        import onnx
    except ModuleNotFoundError:
        raise ModuleNotFoundError(
            "exporting to ONNX needs onnx: pip install 'zerogap[onnx]'"
        ) from None
    if dtype not in ("float32", "float64"):
        raise ValueError(f"dtype must be 'float32' or 'float64', got {dtype!r}")
    check_is_fitted(model, "coef_")
    refuse_several(model, "ONNX")
    graph = _Graph(onnx, np.dtype(dtype))
    W = graph.number("coef", np.atleast_2d(to_host(model.coef_)))
    b = graph.number("intercept", np.atleast_1d(to_host(model.intercept_)))
    if model.encoder_ is not None:
        X = encode(graph, model.encoder_)
    else:
        X = graph.input("X", graph.dtype, model.n_features_in_)
    graph.node("Gemm", [X, W, b], "linear", transB=1)
    if hasattr(model, "classes_"):
        _classify(graph, model)
    else:
        flat = graph.node("Reshape", ["linear", graph.tensor("flat", np.array([-1]))])
        graph.output("prediction", flat, [None])
    proto = graph.finish(model)
    if path is not None:
        content = proto.SerializeToString()
        write_file(Path(path), lambda file: file.write(content))
    return proto


def _classify(graph: _Graph, model: Any) -> None:
    """Add label, scores and probabilities."""
    classes = model.classes_
    labels = classes.astype(np.int64) if classes.dtype.kind in "iu" else classes
    if len(classes) == 2:
        scores = graph.node("Reshape", ["linear", graph.tensor("flat", np.array([-1]))])
        positive = graph.node("Greater", [scores, graph.number("zero", 0.0)])
        code = graph.node("Cast", [positive], to=graph.onnx.TensorProto.INT64)
        graph.output("scores", scores, [None])
    else:
        code = graph.node("ArgMax", ["linear"], axis=1, keepdims=0)
        graph.output("scores", "linear", [None, len(classes)])
    label = graph.node("Gather", [graph.tensor("classes", labels), code])
    graph.output("label", label, [None], labels.dtype)
    if hasattr(model, "predict_proba"):
        graph.output("probabilities", _probabilities(graph, model), [None, len(classes)])


def _probabilities(graph: _Graph, model: Any) -> str:
    """Return the same formulas as those of ``predict_proba``."""
    count, scores = len(model.classes_), "linear"
    if (sigmoids := getattr(model, "calibration_", None)) is not None:
        slope = graph.tensor("slope", sigmoids.slope.astype(graph.dtype)[None])
        offset = graph.tensor("offset", sigmoids.offset.astype(graph.dtype)[None])
        scores = graph.node("Add", [graph.node("Mul", [scores, slope]), offset])
    elif count > 2 and model._loss().task == "multiclass":
        return graph.node("Softmax", ["linear"], axis=1)
    likely, one = graph.node("Sigmoid", [scores]), graph.number("one", 1.0)
    if count == 2:
        return graph.node("Concat", [graph.node("Sub", [one, likely]), likely], axis=1)
    total = graph.node("ReduceSum", [likely, graph.tensor("axis", np.array([1]))], keepdims=1)
    some = graph.node("Greater", [total, graph.number("zero", 0.0)])
    shares = graph.node("Div", [likely, graph.node("Where", [some, total, one])])
    return graph.node("Where", [some, shares, graph.number("even", 1.0 / count)])


class _Graph:
    """A graph in the making: tensors are known by their names."""

    def __init__(self, onnx: Any, dtype: np.dtype) -> None:
        self.onnx, self.dtype = onnx, dtype
        self.kind = onnx.helper.np_dtype_to_tensor_dtype(dtype)
        self.inputs: list[Any] = []
        self.nodes: list[Any] = []
        self.tensors: dict[str, Any] = {}
        self.outputs: list[Any] = []

    def tensor(self, name: str, value: np.ndarray) -> str:
        """Add a constant."""
        text = value.dtype.kind == "U"  # of texts, ONNX takes arrays of objects
        value = value.astype(object) if text else value
        self.tensors[name] = self.onnx.numpy_helper.from_array(value, name)
        return name

    def number(self, name: str, value: Any) -> str:
        """Add a constant of the type in which the graph computes."""
        return self.tensor(name, np.asarray(value, dtype=self.dtype))

    def input(self, name: str, dtype: np.dtype, width: int = 1) -> str:
        """Declare an input, of so many columns."""
        self.inputs.append(self.declaration(name, [None, width], dtype))
        return name

    def node(self, kind: str, inputs: list[str], name: str = "", **attributes: Any) -> str:
        """Add an operation; return the name of its result."""
        name = name or f"{kind}_{len(self.nodes)}"
        self.nodes.append(self.onnx.helper.make_node(kind, inputs, [name], **attributes))
        return name

    def output(self, name: str, source: str, shape: list[Any], dtype: Any = None) -> None:
        """Give a result to the outside world, under this name."""
        self.node("Identity", [source], name)
        self.outputs.append(self.declaration(name, shape, dtype or self.dtype))

    def declaration(self, name: str, shape: list[Any], dtype: np.dtype) -> Any:
        """Return name, type and shape of an input or output."""
        helper, text = self.onnx.helper, dtype.kind in "UO"
        kind = self.onnx.TensorProto.STRING if text else helper.np_dtype_to_tensor_dtype(dtype)
        return helper.make_tensor_value_info(name, kind, shape)

    def finish(self, model: Any) -> Any:
        """Return the finished ONNX model after its checks."""
        helper = self.onnx.helper
        tensors = list(self.tensors.values())
        name = type(model).__name__
        graph = helper.make_graph(self.nodes, name, self.inputs, self.outputs, tensors)
        opset = [helper.make_opsetid("", _OPSET)]
        domains = {node.domain for node in self.nodes if node.domain}
        if domains:
            opset += [helper.make_opsetid(name, DOMAINS[name]) for name in sorted(domains)]
        proto = helper.make_model(
            graph, opset_imports=opset, ir_version=_IR, producer_name="zerogap"
        )
        if hasattr(model, "feature_names_in_"):
            helper.set_model_props(proto, {"feature_names": json.dumps([*model.feature_names_in_])})
        self.onnx.checker.check_model(proto, full_check="com.microsoft" not in domains)
        return proto
