"""Calibrations of scores in model files."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

from zerogap.estimators.calibration import Calibration
from zerogap.io.container import FileError, short
from zerogap.problem.certificate import Certificate


def parts(model: Any) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return what a file holds of a model's calibration: nothing, if it has none."""
    found: Calibration | None = getattr(model, "calibration_", None)
    if found is None:
        return {}, {}
    told = {
        "scores": found.scores,
        "refitted": found.refitted,
        "certificate": dataclasses.asdict(found.certificate),
    }
    return {"calibration": told}, {"calibration": np.array([found.slope, found.offset])}


def restore(
    model: Any,
    header: dict[str, Any],
    arrays: dict[str, np.ndarray],
    certificate: Callable[[dict[str, Any]], Certificate],
) -> None:
    """Give a model the calibration of its file, checked."""
    if "calibration" not in arrays:
        return
    table, told = arrays["calibration"], header.get("calibration", {})
    sound = table.shape == (2, len(model.coef_)) and table.dtype == np.float64
    if not sound or not np.isfinite(table).all() or not hasattr(model, "classes_"):
        raise FileError("its calibration must be a slope and an offset for each score")
    told = told if isinstance(told, dict) else {}
    scores, refitted, given = (told.get(key) for key in ("scores", "refitted", "certificate"))
    known = scores in ("leave-one-out", "folds") and isinstance(given, dict)
    if not known or type(refitted) is not int or given is None:
        raise FileError(f"what it says of its calibration is {short(told)}")
    model.calibration_ = Calibration(table[0], table[1], str(scores), refitted, certificate(given))
