"""The rows of a data matrix, dense or CSR, behind the operations that linear methods need.

Values may be float32; all arithmetic is in double.
"""

from zerogap.rows.base import CLASSES, SAMPLED_ROWS, Rows
from zerogap.rows.csr import CSRRows, NotFiniteError
from zerogap.rows.dense import DenseRows
from zerogap.rows.matrices import as_rows, compact
from zerogap.rows.shifts import find_shift, moved_targets, shift_from

__all__ = [
    "CLASSES",
    "SAMPLED_ROWS",
    "CSRRows",
    "DenseRows",
    "NotFiniteError",
    "Rows",
    "as_rows",
    "compact",
    "find_shift",
    "moved_targets",
    "shift_from",
]
