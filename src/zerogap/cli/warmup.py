"""`zerogap warmup`: compile in advance, for images of containers and for first impressions."""

import time
import warnings
from typing import Any

from zerogap.cli.output import failures, print_table


def register(app: Any) -> None:
    """Add the command to the application."""

    @app.command()
    def warmup() -> None:
        """Compile the default solver for all losses, for dense and for sparse data, once.

        What is compiled is kept beside the package, or where NUMBA_CACHE_DIR says.
        """
        with failures("warmup"):
            print_table(_compile())


def _compile() -> list[tuple[str, str]]:
    """Fit tiny problems; return the seconds that each loss took."""
    import numpy as np
    from scipy import sparse

    from zerogap.estimators import LinearClassifier, LinearRegressor
    from zerogap.losses import LOSSES, MULTICLASS_LOSSES

    rng = np.random.default_rng(0)
    X = np.round(rng.standard_normal((60, 5)), 2)
    rows = []
    for name, loss in {**LOSSES, **MULTICLASS_LOSSES}.items():
        start = time.perf_counter()
        regression = loss.task == "regression"
        y: Any = X[:, 0] + rng.standard_normal(60) if regression else np.arange(60) % 3
        y = y if regression or loss.task == "multiclass" else y > 0
        cls = LinearRegressor if regression else LinearClassifier
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for data in (X, sparse.csr_matrix(X)):
                for solver in ("auto", "newton", "sdca"):
                    model = cls(name, solver=solver, max_epochs=20, random_state=0)
                    model.fit(data, y).predict(data)
        rows.append((name, f"{time.perf_counter() - start:.1f} s"))
    return rows
