"""Sweeps: validation error over a grid of parameters, or over all lambdas of an interval."""

from zerogap.sweeps.curve import Curve, Step, path_cv
from zerogap.sweeps.curve_picture import draw_curve
from zerogap.sweeps.outcome import Cell, Fit, Sweep
from zerogap.sweeps.picture import draw
from zerogap.sweeps.run import sweep

__all__ = ["Cell", "Curve", "Fit", "Step", "Sweep", "draw", "draw_curve", "path_cv", "sweep"]
