"""How an estimator runs its solver: one problem per model, from where the last fit ended."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, cast

import numpy as np
from joblib import effective_n_jobs
from sklearn.base import BaseEstimator

from zerogap.cuda.device import to_host
from zerogap.cuda.placing import on_device
from zerogap.errors import DeviceError
from zerogap.estimators.threads import Budget, run_all
from zerogap.estimators.updates import start_without
from zerogap.problem import Problem
from zerogap.problem.checks import as_seed
from zerogap.problem.validation import (
    class_factors,
    describe_columns,
    describe_sizes,
    describe_targets,
)
from zerogap.regions import KnownRegion, ProofWithoutRows
from zerogap.rows import CSRRows, DenseRows
from zerogap.solvers import SDCA, Auto, BlockSDCA, Result, Solver, as_solver, solve
from zerogap.solvers.kept import with_opposite_classes
from zerogap.solvers.placement import Together, problems_together
from zerogap.store import Store
from zerogap.streamed import StreamedProblem


class Running(BaseEstimator):
    """The part of an estimator that states problems and solves them."""

    _task: str
    _failure: Exception | None = None  # of a GPU, in the fit
    _about_columns = ""  # if no method made progress
    _rows_left = False  # whether rows have left the dual variables to start from

    def _solve(
        self, X: DenseRows | CSRRows, targets: np.ndarray, weights: Any, validation: Any = None
    ) -> list[Result]:
        """Solve one problem per row of `targets`, in threads if there are several."""
        loss = self._loss()
        self._failure = None
        if self.device != "cpu":
            if validation is not None:
                raise ValueError("stop='labels' needs device='cpu'")
            X = on_device(X)
        problems = [
            Problem(X, y, loss, self.lam, weights, self.fit_intercept, self.l1_ratio)
            for y in targets
        ]
        until = None if validation is None else self._until(len(problems), validation)
        several = len(problems) > 1 and self.device == "cpu"
        jobs = effective_n_jobs(self.n_jobs) if several else 1
        results = self._run(problems, as_solver(self.solver), jobs, until)
        self._about_columns = ""
        if _lack_digits(results):
            names = getattr(self, "feature_names_in_", None)
            numbers = loss.task == "regression"
            about_targets = describe_targets(targets[0], self.tol) if numbers else ""
            sizes = None if self.device == "cpu" else problems[0].host(problems[0].column_sizes)
            about = describe_columns(X, names) if sizes is None else describe_sizes(sizes, names)
            self._about_columns = about_targets or about
        return results

    def _solve_streamed(self, store: Store) -> list[Result]:
        """Solve the problems of a store, one after the other."""
        solver = as_solver(self.solver)
        if solver not in (Auto(), SDCA(), BlockSDCA()):
            raise ValueError(
                f"{solver} cannot read its rows from a store: use solver='auto' or 'sdca', or a "
                f"store without max_memory that fits into memory"
            )
        self.n_features_in_, self.fingerprint_ = store.n_features, store.fingerprint
        method = solver if solver == Auto() else BlockSDCA()
        problems = self._streamed_problems(store)
        results = self._run(problems, method, 1)
        self._about_columns = ""
        if _lack_digits(results):
            sizes = problems[0].shifted()[0].column_sizes
            self._about_columns = describe_sizes(sizes, store.feature_names)
        return results

    def _streamed_problems(self, store: Store) -> list[StreamedProblem]:
        """Return one problem per class to be separated, or the only one."""
        classes: Any = store.classes
        factors = None
        if getattr(self, "class_weight", None) is not None:
            codes, weights = np.arange(len(classes)), cast("np.ndarray", store.class_weights)
            factors = class_factors(self.class_weight, classes, codes, weights)
        settings = (self._loss(), self.lam, self.fit_intercept, self.l1_ratio)
        problem = StreamedProblem(store, *settings, factors)
        several = problem.loss.task == "classification" and len(classes) > 2
        return [problem.against(k) for k in range(len(classes))] if several else [problem]

    def _run(
        self,
        problems: list[Any],
        solver: Solver,
        jobs: int,
        until: Callable[[Problem], Callable] | None = None,
    ) -> list[Result]:
        """Solve problems that differ in their targets only, in `jobs` threads.

        If given, `until` makes the callback that ends the run of a problem; else the gap ends it.
        """
        starts = self._starts(len(problems), problems[0].shape)
        if self._rows_left:
            pairs = zip(problems, starts, strict=True)
            starts = [start_without(*pair, self.tol) for pair in pairs]
        seeds = np.random.SeedSequence(as_seed(self.random_state)).generate_state(len(problems))
        stop = threading.Event()
        budget = Budget(self.max_seconds, len(problems), jobs)
        files = [self.checkpoint] * len(problems)
        if self.checkpoint is not None and len(problems) > 1:
            files = [f"{self.checkpoint}.{k}" for k in range(len(problems))]

        def run(k: int) -> Result:
            try:
                return solve(
                    problems[k],
                    solver,
                    tol=self.tol if until is None else 0.0,
                    max_epochs=self.max_epochs,
                    max_seconds=budget.share(k),
                    callback=self.callback if until is None else until(problems[k]),
                    record="auto" if until is None else 1.2,
                    warm_start=starts[k],
                    random_state=int(seeds[k]),
                    verbose=self.verbose,
                    checkpoint=files[k],
                    interrupt=stop,
                    device=self.device,
                )
            except DeviceError as error:
                if error.result is None:
                    raise
                self._failure = error  # raised when the model has its attributes
                return error.result

        if together := problems_together(problems, solver, self.device):
            results = self._run_together(problems, together, starts, seeds, stop)
        elif len(problems) == 1:
            results = [run(0)]
        else:
            results = run_all(run, len(problems), jobs, stop)
        if problems[0].loss.task == "multiclass" and len(results[0].w) == 2:
            results = [with_opposite_classes(problems[0], results[0], self.tol)]
        self._region_sources: list[ProofWithoutRows | KnownRegion] = [
            ProofWithoutRows.of(problem, result.w, result.proof)
            for problem, result in zip(problems, results, strict=True)
            if isinstance(problem, Problem) and result.proof is not None
        ]
        return results

    def _run_together(
        self, problems: list[Any], together: Together, starts: Any, seeds: Any, stop: Any
    ) -> list[Result]:
        """Solve problems on a GPU that read their rows together."""
        if self.checkpoint is not None:
            raise ValueError("checkpoints are not written from a GPU: leave checkpoint out")
        try:
            return together(
                problems,
                tol=self.tol,
                max_epochs=self.max_epochs,
                max_seconds=self.max_seconds,
                callback=self.callback,
                warm_starts=starts,
                seeds=[int(seed) for seed in seeds],
                verbose=self.verbose,
                interrupt=stop,
            )
        except DeviceError as error:
            if error.result is None:
                raise
            self._failure = error
            return error.result

    def _starts(self, count: int, shape: tuple[int, int]) -> list[Any]:
        """Return where each problem starts: the previous fit, if it is to be used and fits."""
        if not self.warm_start or not hasattr(self, "coef_"):
            return [None] * count
        if self._loss().task == "multiclass":
            return [self._joint_start(shape)]
        coef = np.atleast_2d(to_host(self.coef_))
        if coef.shape != (count, shape[1]):
            return [None] * count
        duals = np.atleast_2d(to_host(self.dual_coef_))
        intercepts = np.atleast_1d(to_host(self.intercept_))
        kept = duals.shape == (count, shape[0])
        return [(coef[k], float(intercepts[k]), duals[k] if kept else None) for k in range(count)]

    def _joint_start(self, shape: tuple[int, int]) -> Any:
        W, b, alpha = map(to_host, (self.coef_, self.intercept_, self.dual_coef_.T))
        if len(W) == 1:  # two classes, of which the difference was kept: the optimum is symmetric
            W, b = np.vstack([-W, W]) / 2, np.append(-b, b) / 2
            alpha = np.hstack([-alpha, alpha])
        same_classes = len(W) == len(self.classes_) and W.shape[1] == shape[1]
        if not same_classes:
            return None
        return W, b, alpha if len(alpha) == shape[0] else None


def _lack_digits(results: list[Result]) -> bool:
    """Tell whether a run has ended because of the columns, not because of a limit."""
    return any(result.stop_reason in ("stalled", "rounding") for result in results)
