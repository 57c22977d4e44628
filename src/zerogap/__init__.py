"""Linear models trained to a proved distance from the optimum.

>>> import zerogap as zg
>>> X, y, beta = zg.datasets.make_simulated(random_state=0)
>>> clf = zg.LinearClassifier(loss="hinge", tol=1e-4, random_state=0).fit(X, y)
>>> clf.certificate_.relative_gap <= 1e-4
True
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from zerogap import (
        audit,
        bounds,
        dask,
        datasets,
        lab,
        leave_one_out,
        linear_model,
        losses,
        model_io,
        readers,
        regions,
        solvers,
        store,
        svm,
        testing,
        transforms,
        verify,
    )
    from zerogap.audit import Audit, certify, certify_weights
    from zerogap.comparison import Comparison, compare
    from zerogap.estimators import LinearClassifier, LinearRegressor
    from zerogap.losses import (
        Absolute,
        EpsilonInsensitive,
        Hinge,
        Huber,
        Logistic,
        Loss,
        MulticlassHinge,
        Quantile,
        SmoothHinge,
        Softmax,
        Squared,
        SquaredHinge,
    )
    from zerogap.model_io.files import ModelFileError, load, save
    from zerogap.paths.intervals import PathError
    from zerogap.paths.run import Path, path
    from zerogap.problem import Problem
    from zerogap.problem.certificate import Certificate
    from zerogap.readers.conversion import convert
    from zerogap.solvers.asdca import ASDCA
    from zerogap.solvers.auto import Auto
    from zerogap.solvers.bcfw import BCFW
    from zerogap.solvers.gd import GD
    from zerogap.solvers.history import History
    from zerogap.solvers.interior_point import InteriorPoint
    from zerogap.solvers.loop import solve
    from zerogap.solvers.newton import Newton
    from zerogap.solvers.pegasos import Pegasos
    from zerogap.solvers.protocol import Solver
    from zerogap.solvers.result import Result
    from zerogap.solvers.sdca import SDCA
    from zerogap.solvers.sgd import SGD
    from zerogap.store import Store, write_store
    from zerogap.sweeps import Sweep, sweep
    from zerogap.sweeps.curve import Curve, path_cv

# Module -> names: nothing below is imported, and neither Numba nor scikit-learn, until it is used.
_NAMES = {
    "audit": ("Audit", "certify", "certify_weights"),
    "estimators": ("LinearClassifier", "LinearRegressor"),
    "solvers.history": ("History",),
    "losses": (
        *("Loss", "Absolute", "EpsilonInsensitive", "Hinge", "MulticlassHinge", "Softmax"),
        *("Huber", "Logistic", "Quantile", "SmoothHinge", "Squared", "SquaredHinge"),
    ),
    "paths.run": ("Path", "path"),
    "paths.intervals": ("PathError",),
    "sweeps.curve": ("Curve", "path_cv"),
    "store": ("Store", "write_store"),
    "readers.conversion": ("convert",),
    "problem.certificate": ("Certificate",),
    "problem": ("Problem",),
    "solvers.result": ("Result",),
    "solvers.protocol": ("Solver",),
    "solvers.loop": ("solve",),
    "solvers.auto": ("Auto",),
    "solvers.newton": ("Newton",),
    "solvers.interior_point": ("InteriorPoint",),
    "solvers.sdca": ("SDCA",),
    "solvers.asdca": ("ASDCA",),
    "solvers.bcfw": ("BCFW",),
    "solvers.pegasos": ("Pegasos",),
    "solvers.sgd": ("SGD",),
    "solvers.gd": ("GD",),
    "model_io.files": ("ModelFileError", "load", "save"),
    "comparison": ("Comparison", "compare"),
    "sweeps": ("Sweep", "sweep"),
}
_MODULES = {name: module for module, names in _NAMES.items() for name in names}
_SUBMODULES = (
    *("audit", "bounds", "dask", "datasets", "lab", "leave_one_out", "linear_model", "losses"),
    *("model_io", "readers", "regions", "solvers", "store", "svm", "testing", "transforms"),
    "verify",
)

__all__ = [
    "ASDCA",
    "BCFW",
    "GD",
    "SDCA",
    "SGD",
    "Absolute",
    "Audit",
    "Auto",
    "Certificate",
    "Comparison",
    "Curve",
    "EpsilonInsensitive",
    "Hinge",
    "History",
    "Huber",
    "InteriorPoint",
    "LinearClassifier",
    "LinearRegressor",
    "Logistic",
    "Loss",
    "ModelFileError",
    "MulticlassHinge",
    "Newton",
    "Path",
    "PathError",
    "Pegasos",
    "Problem",
    "Quantile",
    "Result",
    "SmoothHinge",
    "Softmax",
    "Solver",
    "Squared",
    "SquaredHinge",
    "Store",
    "Sweep",
    "__version__",
    "audit",
    "bounds",
    "certify",
    "certify_weights",
    "compare",
    "convert",
    "dask",
    "datasets",
    "lab",
    "leave_one_out",
    "linear_model",
    "load",
    "losses",
    "model_io",
    "path",
    "path_cv",
    "readers",
    "regions",
    "save",
    "solve",
    "solvers",
    "store",
    "svm",
    "sweep",
    "testing",
    "transforms",
    "verify",
    "write_store",
]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return getattr(import_module(f"zerogap.{_MODULES[name]}"), name)
    if name in _SUBMODULES:
        return import_module(f"zerogap.{name}")
    raise AttributeError(f"module 'zerogap' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
