"""Solvers on a GPU."""
