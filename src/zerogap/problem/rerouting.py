"""How much of the votes between classes has to go, for equal in- and outflows at all of them."""

from __future__ import annotations

import math

import numpy as np


def rerouted(flow: np.ndarray, missing: np.ndarray) -> float:
    """Return which share of a flow has to go at most, for equal in- and outflows at all classes.

    What a class has too much or too little is taken from the widest path between it and the class
    with the largest flow, of those that it exchanges votes with: at most missing_k / width_k of any
    flow on the path.  Where no votes pass, between groups of classes, none are missing.
    """
    through, width = flow.sum(axis=1) + flow.sum(axis=0), np.zeros(len(flow))
    missing, left = missing.copy(), through > 0.0
    while left.any():
        root = int(np.argmax(np.where(left, through, -1.0)))
        group = _widest(flow + flow.T, root) > 0.0
        width[group] = np.minimum(_widest(flow, root), _widest(flow.T, root))[group]
        missing[root] = 0.0
        left &= ~group
    if np.any((missing > 0.0) & (width == 0.0)):
        return 1.0
    return float(np.divide(missing, width, out=np.zeros_like(width), where=missing > 0.0).sum())


def _widest(flow: np.ndarray, root: int) -> np.ndarray:
    """Return, for each class, the largest flow that one path from the root can carry to it."""
    width, known = flow[root].astype(float), np.zeros(len(flow), np.bool_)
    width[root], known[root] = math.inf, True
    for _ in range(len(flow) - 1):
        k = int(np.argmax(np.where(known, -1.0, width)))
        known[k] = True
        width = np.where(known, width, np.maximum(width, np.minimum(width[k], flow[k])))
    return width
