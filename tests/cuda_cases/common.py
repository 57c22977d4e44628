"""What the cases share.

They are what training on a GPU must do, whatever runs the kernels.  `test_cuda.py` runs them in
the simulator of `conftest.py`, where numpy takes the place of CuPy and Python runs each thread of
a GPU: data are tiny.  `test_gpu.py` runs them on a GPU.
"""

import numpy as np

import zerogap as zg
from problems import make_data
from zerogap.cuda import DeviceError
from zerogap.cuda.solvers.sdca import DeviceSDCA
from zerogap.losses import MULTICLASS_LOSSES

PLAIN = ("dense", np.float64, False, False, 0.0)
VARIANTS = [  # storage, dtype, weighted, intercept, l1_ratio
    PLAIN,
    ("dense", np.float32, True, True, 0.0),
    ("csr", np.float64, True, False, 0.3),
    ("csr", np.float32, False, True, 0.0),
]
BOTH = {"dense": PLAIN, "csr": ("csr", np.float32, True, True, 0.0)}


def make(loss, storage, dtype, weighted, intercept, l1_ratio, lam=0.1, n=14):
    """A problem of three features; with many classes, of three."""
    many = loss in MULTICLASS_LOSSES
    X, y = make_data("squared" if many else loss, n, 3, storage=storage, dtype=dtype)
    if many:
        y = np.digitize(y, np.quantile(y, [1 / 3, 2 / 3]))
    weights = np.arange(n) % 3 if weighted else None
    return zg.Problem(X, y, loss, lam, weights, intercept, l1_ratio)


def solve(problem, solver, tol=1e-6, where="cuda", **options):
    return zg.solve(problem, solver, tol=tol, random_state=0, device=where, **options)


def near_optimum(problem):
    best = zg.solve(problem, zg.SDCA(), tol=1e-10, max_epochs=100_000, random_state=0)
    assert best.stop_reason == "converged"
    return best.certificate


def break_down(monkeypatch, epochs):
    """Let the device fail in the epoch after so many."""
    steps = DeviceSDCA.steps

    def failing(self, problem, state, count):
        if state.updates >= epochs * problem.shape[0]:
            raise DeviceError("the GPU has failed")
        return steps(self, problem, state, count)

    monkeypatch.setattr(DeviceSDCA, "steps", failing)
