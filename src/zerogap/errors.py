"""Errors that callers tell from others; a module that is quick to import."""

from typing import Any


class ScaleError(ValueError):
    """Features are so large that squares overflow; scaled ones would do."""


class DeviceError(RuntimeError):
    """The GPU is not there, too small, or has failed.

    ``result`` has the last certified model, if there is one.
    """

    result: Any = None
