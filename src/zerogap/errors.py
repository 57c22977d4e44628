"""Errors that callers tell from others; a module that is quick to import."""


class ScaleError(ValueError):
    """Features are so large that squares overflow; scaled ones would do."""
