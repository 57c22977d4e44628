"""What both estimators document, and how a fit leaves them if it is refused."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from zerogap.cuda.device import watched

_SHARED_PARAMETERS = """
    lam : float, optional
        Regularisation, > 0.  By default 1 / (sum of the sample weights), that is 1 / n_samples,
        which is ``C=1`` in scikit-learn's support vector machines: C = 1 / (lam n).
    l1_ratio : float in [0, 1)
        Share of L1 in the penalty: lam ((1 - l1_ratio) |w|^2 / 2 + l1_ratio |w|_1).
    fit_intercept : bool
        Whether to fit an intercept.  It is not regularised.
    solver : str or Solver
        "auto", "sdca", "asdca", "pegasos", "sgd", "gd", "bcfw", "newton", "interior-point", or an
        object such as ``zg.SDCA(sampling="cyclic")``.
    tol : float
        Stop when the duality gap is at most tol times the objective: a proof that the objective
        is within a factor 1 / (1 - tol) of the optimum.
    max_epochs : int
        Stop after so many passes over the data, with a ConvergenceWarning.
    max_seconds : float, optional
        Stop after so many seconds.
    device : "cpu", "cuda" or "cuda-deterministic"
        Where to compute.  On an NVIDIA GPU (``pip install 'zerogap[gpu]'``) data are moved there
        once, or used where they are if they are CuPy's; then the fitted attributes are CuPy's, too.
        The bits of a result depend on the order in which a GPU's threads run, unless
        "cuda-deterministic" is asked for, which is slower.
    warm_start : bool
        Whether to start from the previous fit.
    random_state : None, int, numpy Generator or RandomState
        Seed: same seed, same bits.
    verbose : int
        Whether to show progress.
    callback : callable, optional
        Called with each `zerogap.solvers.history.Record`; the fit stops if it returns True.
    checkpoint : path, optional
        File to save the fit to now and then and, if it exists, to resume it from, bit for bit;
        one for each class where they are separated one against the rest, with the class' number
        appended.  It needs a `random_state` that is a number.
    keep_data : bool
        Whether the fitted model keeps a reference to its training data, so that `update` and
        `forget` need not be given them.  A pickle then holds the data; a model file never does.
"""


def with_shared_parameters(cls: type) -> type:
    """Write the parameters that both estimators have into a docstring."""
    if cls.__doc__:  # absent under python -OO
        cls.__doc__ = cls.__doc__.replace(
            "    SHARED PARAMETERS\n", _SHARED_PARAMETERS.lstrip("\n")
        )
    return cls


def keep(estimator: Any, arguments: dict[str, Any]) -> None:
    """Make attributes of the arguments of a constructor, given as its ``locals()``."""
    for name, value in arguments.items():
        if name not in ("self", "__class__"):
            setattr(estimator, name, value)


def all_or_nothing(fit: Callable) -> Callable:
    """Make a refused fit leave the estimator as it was, and errors of a GPU DeviceErrors."""

    @functools.wraps(fit)
    def wrapped(self, *args, **kwargs):
        before = dict(vars(self))
        try:
            with watched():
                return fit(self, *args, **kwargs)
        except (ValueError, TypeError):
            vars(self).clear()
            vars(self).update(before)
            raise

    return wrapped
