"""The optimisation problem that every solver works on, and the certificate of its solutions."""

from zerogap.problem.multiclass import MulticlassProblem
from zerogap.problem.one_score import Problem

__all__ = ["MulticlassProblem", "Problem"]
