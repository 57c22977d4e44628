"""The problems of `zerogap.problem` with their arrays on a GPU."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from zerogap.cuda.columns import best_intercepts
from zerogap.cuda.device import SIMULATED, arrays, check_memory, free_memory, to_host, watched
from zerogap.cuda.kernels import launch
from zerogap.cuda.rows import DeviceDenseRows, as_device_rows
from zerogap.problem.multiclass import MulticlassProblem
from zerogap.problem.one_score import NOWHERE, Problem

# rows whose slopes one block of threads adds up sooner than all blocks are asked to
_SHORT = 10 if SIMULATED else 1 << 18


class _OnDevice:
    """What problems on a GPU do differently from those on the processor."""

    on_device = True
    pace = 1000.0
    rows: Any
    shape: Any
    share: Any
    lam: float

    def __init_subclass__(cls) -> None:
        """Let errors in what users call be DeviceErrors."""
        for name in ("primal", "gradient", "dual", "weights", "certificate"):
            setattr(cls, name, watched()(getattr(cls, name)))

    def __init__(self, *given: Any, **named: Any) -> None:
        with watched():
            super().__init__(*given, **named)

    @property
    def xp(self) -> Any:
        """CuPy."""
        return arrays()

    def over_rows(self, loop: Any, *args: Any) -> Any:
        return launch(loop, self.shape[0], *args)

    def over_features(self, loop: Any, *args: Any) -> Any:
        return launch(loop, len(args[-1]), *args)

    def _wrapped(self, X: Any) -> Any:
        return as_device_rows(X)

    def host(self, a: Any) -> Any:
        return to_host(a)

    def place(self, a: Any) -> Any:
        return arrays().asarray(a) if np.ndim(a) else a  # kernels take numbers as they are

    def finish(self) -> None:
        if hasattr(arrays(), "cuda"):
            arrays().cuda.get_current_stream().synchronize()

    def free_memory(self) -> float:
        return free_memory()

    @property
    def fingerprint(self) -> str:
        raise ValueError(
            "checkpoints are not written from a GPU: use device='cpu' or no checkpoint"
        )

    def _on_device(self, a: Any, shape: tuple[int, ...], name: str) -> Any:
        a = arrays().ascontiguousarray(arrays().asarray(a, dtype=np.float64))
        if a.shape != shape or not bool(np.isfinite(a).all()):
            raise ValueError(f"{name} must be finite numbers of shape {shape}, got {a.shape}")
        return a


class DeviceProblem(_OnDevice, Problem):
    """A `Problem` on a GPU."""

    def best_intercept(self, z: Any, near: Any = 0.0, accuracy: float = 0.0) -> float:
        near = float(near)  # sums are arrays of one number
        if len(z) > _SHORT:
            return super().best_intercept(z, near, accuracy)
        return float(best_intercepts(self, self.y[:, None], z[:, None], [near], [accuracy])[0])

    def _vector(self, w: Any) -> Any:
        return self._on_device(w, self.weight_shape, "w")

    def _dual_vector(self, alpha: Any) -> Any:
        return self._on_device(alpha, self.dual_shape, "alpha")


class DeviceMulticlassProblem(_OnDevice, MulticlassProblem):
    """A `MulticlassProblem` on a GPU."""

    def scores(self, w: np.ndarray) -> np.ndarray:
        return self.rows.product(w)

    def gathered(self, c: np.ndarray) -> np.ndarray:
        return self.rows.transposed_product(c)

    @property
    def by_matrices(self) -> bool:
        return isinstance(self.rows, DeviceDenseRows)

    @functools.cached_property
    def _labels(self) -> Any:
        """A one in the place of each row's class."""
        labels = arrays().zeros(self.dual_shape)
        labels[arrays().arange(len(labels)), self.y] = 1.0
        return labels

    def _votes(self, alpha: np.ndarray) -> np.ndarray:
        return self._labels - alpha

    def flow(self, alpha: np.ndarray) -> np.ndarray:
        others = -alpha * (1.0 - self._labels)
        return to_host(self._labels.T @ (self.share[:, None] * others))

    def _matrix(self, a: Any, shape: tuple[int, int], name: str) -> Any:
        return self._on_device(a, shape, name)


def to_device(problem: Problem) -> Problem:
    """Return the problem with its arrays on the GPU."""
    if isinstance(problem, _OnDevice):
        return problem
    many = isinstance(problem, MulticlassProblem)
    cls = DeviceMulticlassProblem if many else DeviceProblem
    check_memory(
        problem.rows.nbytes + 100.0 * np.prod(problem.dual_shape), f"training on {problem.shape}"
    )
    fields = problem.__getstate__()
    rows = as_device_rows(problem.rows)
    on_device = object.__new__(cls)
    moved = {name: on_device.place(fields[name]) for name in ("y", "share", "sqnorms")}
    moved["weight"] = NOWHERE
    on_device._set(*{**fields, "rows": rows, **moved}.values())
    return on_device
