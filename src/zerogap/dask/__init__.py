"""Training on a cluster: the rows stay where they are, and losing a worker costs time only.

>>> from zerogap.dask import LinearClassifier
"""

from importlib.util import find_spec

if find_spec("distributed") is None:
    raise ImportError("distributed training needs dask: pip install 'zerogap[dask]'")

from zerogap.dask.estimators import LinearClassifier, LinearRegressor
from zerogap.dask.workers import Recovery

__all__ = ["LinearClassifier", "LinearRegressor", "Recovery"]
