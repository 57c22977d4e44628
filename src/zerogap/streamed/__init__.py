"""Problems whose rows lie in a store: what memory cannot hold is read block by block."""

from zerogap.streamed.columns import Column
from zerogap.streamed.extract import Extract
from zerogap.streamed.plan import worth_loading
from zerogap.streamed.problem import StreamedProblem, check_task
from zerogap.streamed.reading import load

__all__ = ["Column", "Extract", "StreamedProblem", "check_task", "load", "worth_loading"]
