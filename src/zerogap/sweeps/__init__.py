"""Sweeps: validation error over a grid of parameters, with a certificate for every fit."""

from zerogap.sweeps.outcome import Cell, Fit, Sweep
from zerogap.sweeps.picture import draw
from zerogap.sweeps.run import sweep

__all__ = ["Cell", "Fit", "Sweep", "draw", "sweep"]
