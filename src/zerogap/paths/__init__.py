"""Regularisation paths: one certified model per lambda, or a proof for every lambda."""

from zerogap.paths.intervals import PathError
from zerogap.paths.run import Model, Path, path

__all__ = ["Model", "Path", "PathError", "path"]
