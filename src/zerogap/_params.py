"""Parameters of losses and solvers, with scikit-learn's two methods."""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, Self


class Parameters:
    """Base of frozen dataclasses whose fields can be searched over, as in ``loss__gamma``."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name, as scikit-learn does."""
        return {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}  # type: ignore[arg-type]

    def set_params(self, **params: Any) -> Self:
        """Change parameters in place, for scikit-learn's searches; checked at the next use."""
        known = self.get_params()
        for name, value in params.items():
            if name not in known:
                raise ValueError(
                    f"{type(self).__name__} has no parameter {name!r}; it has {sorted(known)}"
                )
            object.__setattr__(self, name, value)
        self.__dict__.pop("_numba_type_", None)  # the compiled view of a struct is out of date
        return self

    def _require(self, condition: bool, what: str) -> None:
        if not condition:
            raise ValueError(f"{self!r}: {what}")

    def _choose(self, name: str, choices: Sequence[Any]) -> None:
        value = getattr(self, name)
        self._require(value in choices, f"{name} must be one of {choices}, got {value!r}")


def parse(text: str, known: Mapping[str, Any]) -> Any:
    """Return the object that a text such as ``pegasos:batch_size=8:projection=true`` describes.

    `known` has the classes by name.
    """
    name, *options = (part.strip() for part in text.split(":"))
    if name not in known:
        raise ValueError(f"{name!r} is unknown: choose one of {', '.join(known)}")
    params: dict[str, Any] = {}
    for option in options:
        key, equals, value = option.partition("=")
        if not (equals and key and value):
            raise ValueError(f"{text}: write options as name=value, not {option!r}")
        try:
            params[key] = ast.literal_eval(value.capitalize())  # true, false and none as well
        except (ValueError, SyntaxError):
            params[key] = value
    return known[name]().set_params(**params)
