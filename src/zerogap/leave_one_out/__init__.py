"""Leave-one-out predictions and their error, from the dual of one fit."""

from zerogap.leave_one_out.models import leave_one_out_of
from zerogap.leave_one_out.search import LeaveOneOut, leave_one_out

__all__ = ["LeaveOneOut", "leave_one_out", "leave_one_out_of"]
