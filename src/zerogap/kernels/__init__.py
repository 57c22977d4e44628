"""Loops compiled by Numba: the bridge to it, exp and log, sums in twice the precision."""
