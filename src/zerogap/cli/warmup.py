"""`zerogap warmup`: compile in advance, for images of containers and for first impressions."""

import time
import warnings
from typing import Any

from zerogap.cli.output import failures, print_table

_MANY_ROWS = 20_000  # from some thousands on, loops over rows are others


def register(app: Any) -> None:
    """Add the command to the application."""

    @app.command()
    def warmup() -> None:
        """Compile what nearly all fits need, for all losses, for dense and for sparse data, once.

        What is compiled is kept beside the package, or where NUMBA_CACHE_DIR says.
        """
        with failures("warmup"):
            print_table(_compile())


def _compile() -> list[tuple[str, str]]:
    """Fit small problems and cut a table; return the seconds that each took."""
    import numpy as np

    from zerogap.losses import LOSSES, MULTICLASS_LOSSES

    rng = np.random.default_rng(0)
    tables, rows = _tables(rng), [("large tables", _seconds(_cut_a_table))]
    for name, loss in {**LOSSES, **MULTICLASS_LOSSES}.items():
        start = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for X in tables:
                z = X @ rng.standard_normal(X.shape[1])
                z = (z - z.mean()) / z.std() + rng.standard_normal(X.shape[0])
                y = {"regression": z, "multiclass": np.digitize(z, [-0.5, 0.5])}.get(
                    loss.task, z > 0
                )
                _fit(name, loss.task == "regression", X, y)
        rows.append((name, f"{time.perf_counter() - start:.1f} s"))
    return rows


def _seconds(call: Any) -> str:
    start = time.perf_counter()
    call()
    return f"{time.perf_counter() - start:.1f} s"


def _cut_a_table() -> None:
    """Cut the text of a table into cells."""
    import pyarrow as pa

    from zerogap.readers.compiled import Cutter
    from zerogap.readers.dialect import Dialect

    Cutter(Dialect(), {"x": pa.float64(), "y": pa.string()}, ()).cut(b"1.5,a\n")


def _tables(rng: Any) -> list[Any]:
    """Return rows of all kinds, dense and sparse: few, many, and raw ones of unequal units."""
    import numpy as np
    from scipy import sparse

    few = np.round(rng.standard_normal((60, 5)), 2)
    many = np.round(rng.standard_normal((_MANY_ROWS, 5)), 2)
    units = np.c_[few[:, :2] * 1e4 + 1e6, np.eye(3)[np.arange(60) % 3], few[:, 2:3] * 1e-3]
    return [kind(X) for X in (few, units, many) for kind in (np.asarray, sparse.csr_matrix)]


def _fit(name: str, regression: bool, X: Any, y: Any) -> None:
    """Fit this loss in all the ways that the default may choose, to few and to many digits."""
    from zerogap.estimators import LinearClassifier, LinearRegressor

    cls = LinearRegressor if regression else LinearClassifier
    methods = ("auto", "newton", "sdca", "interior-point")
    for solver in methods if X.shape[0] < _MANY_ROWS else ("auto", "newton"):
        for tol in (1e-3, 1e-8):
            model = cls(name, solver=solver, max_epochs=30, tol=tol, random_state=0)
            try:
                model.fit(X, y).predict(X)
            except ValueError:  # of interior points: not for this loss
                break
