"""From chunks to models: the problems that the data state, and one run for each."""

from __future__ import annotations

import contextlib
import hashlib
import math
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from distributed import Client, LocalCluster

from zerogap.dask.chunks import Summary, joint_shifts
from zerogap.dask.gather import Gather
from zerogap.dask.lbfgs import LBFGS
from zerogap.dask.local_epochs import LocalEpochs
from zerogap.dask.newton import Newton
from zerogap.dask.run import Run
from zerogap.dask.saving import Saved, load
from zerogap.dask.work import Spec
from zerogap.dask.workers import Workers
from zerogap.losses import Loss
from zerogap.problem import Problem
from zerogap.problem.checks import check_scale, is_positive
from zerogap.problem.validation import class_factors
from zerogap.solvers.limits import Limits
from zerogap.solvers.loop import Way, run_all
from zerogap.solvers.result import Result


@contextlib.contextmanager
def connected(client: Client | None) -> Iterator[Client]:
    """Give the client, the current one, or one of a cluster that is started and closed here."""
    if client is None:
        with contextlib.suppress(ValueError):
            client = Client.current()
    if client is not None:
        if client.asynchronous:
            raise ValueError("client is asynchronous: give one made with asynchronous=False")
        yield client
        return
    with (
        LocalCluster(threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster) as own,
    ):
        yield own


def run_id() -> str:
    """Return a name under which workers keep the state of one fit."""
    return uuid.uuid4().hex


@dataclass(frozen=True)
class Stated:
    """What all chunks together say about the problem."""

    rows: int
    n_features: int
    total: float  # weight, with that of classes
    classes: np.ndarray | None
    factors: np.ndarray | None
    shares: np.ndarray  # of the classes
    mean_sqnorm: float
    largest: float
    mean: float  # of the targets, in regression
    digest: str
    origin: np.ndarray  # what to subtract from the columns,
    target: float  # and from the targets


def state(summaries: list[Summary], classify: bool, class_weight: Any) -> Stated:
    """Add up what the chunks say; refuse chunks that do not belong together."""
    features = summaries[0].features
    for summary in summaries:
        if summary.features != features:
            raise ValueError(
                f"chunk {summary.number} has {summary.features} features, chunk "
                f"{summaries[0].number} has {features}"
            )
    weight = math.fsum(summary.weight for summary in summaries)
    if not 0 < weight < np.inf:
        raise ValueError(f"the sample weights must have a positive, finite sum, got {weight}")
    classes = factors = None
    total, shares = weight, np.empty(0)
    if classify:
        labels = [summary.labels[summary.label_weights > 0] for summary in summaries]
        if len({array.dtype.kind in "US" for array in labels if len(array)}) > 1:
            raise ValueError("some chunks have labels that are text, others numbers: use one type")
        classes = np.unique(np.concatenate([array for array in labels if len(array)]))
        if len(classes) < 2:
            raise ValueError(
                f"a classifier needs at least two classes, but y has only one class, "
                f"{classes.tolist()[0]!r}"
            )
        amounts: list[list[float]] = [[] for _ in classes]
        for summary in summaries:
            for label, amount in zip(summary.labels, summary.label_weights, strict=True):
                if amount > 0:
                    amounts[np.searchsorted(classes, label)].append(amount)
        totals = np.array([*map(math.fsum, amounts)])
        if class_weight is not None:
            factors = class_factors(class_weight, classes, np.arange(len(classes)), totals)
            totals = totals * factors
        total = math.fsum(totals)
        if not 0 < total < np.inf:
            raise ValueError(f"class_weight leaves rows of the total weight {total}")
        shares = totals / total
    shifts = joint_shifts([s.far for s in summaries if s.far is not None], features)
    prints = "\n".join(summary.fingerprint for summary in summaries)
    return Stated(
        sum(summary.rows for summary in summaries),
        features,
        total,
        classes,
        factors,
        shares,
        sum(summary.sqnorms for summary in summaries) / weight,
        max(summary.largest for summary in summaries),
        sum(summary.moment for summary in summaries) / weight,
        hashlib.blake2b(prints.encode(), digest_size=16).hexdigest(),
        *shifts,
    )


def specs(
    stated: Stated, loss: Loss, lam: float | None, l1_ratio: float, fit_intercept: bool, seed: int
) -> list[tuple[Spec, Any]]:
    """Return the problems to solve, each with the intercept to begin with."""
    if lam is not None and not is_positive(lam):
        raise ValueError(f"lam must be a positive, finite number, got {lam!r}")
    if fit_intercept and stated.classes is not None and not stated.shares.all():
        name = stated.classes.tolist()[int(stated.shares.argmin())]
        raise ValueError(f"an intercept needs rows of every class: class {name!r} has no weight")
    lam = 1.0 / stated.total if lam is None else float(lam)
    check_scale(np.array([stated.largest]), lam, stated.total)
    origin = stated.origin if fit_intercept else np.zeros(stated.n_features)
    target = stated.target if fit_intercept and stated.classes is None else 0.0
    count = 0 if stated.classes is None else len(stated.classes)
    joint = loss.task == "multiclass"
    made = []
    for number in range(count if count > 2 and not joint else 1):
        spec = Spec(
            number,
            loss,
            lam,
            l1_ratio,
            fit_intercept,
            stated.total,
            stated.classes,
            stated.factors,
            seed,
            origin,
            target,
        )
        made.append((spec, _first_intercept(stated, spec) if fit_intercept else _zero(spec)))
    return made


def _zero(spec: Spec) -> Any:
    assert spec.loss is not None
    joint = spec.loss.task == "multiclass" and spec.classes is not None
    return np.zeros(len(spec.classes)) if joint and spec.classes is not None else 0.0


def _first_intercept(stated: Stated, spec: Spec) -> Any:
    """Return the best intercept for w = 0, or nearly so in regression."""
    if stated.classes is None:
        return stated.mean - spec.target
    shares, n_classes = stated.shares, len(stated.classes)
    y = np.arange(n_classes)
    if spec.loss.task != "multiclass":
        positive = shares[spec.number if n_classes > 2 else 1]
        shares, y = np.array([1.0 - positive, positive]), np.array([-1.0, 1.0])
    given = (spec.loss, spec.lam, True, 0.0, n_classes)
    return Problem.part(np.zeros((len(y), 1)), y, shares, *given).first_intercept()


def train(
    workers: Workers,
    spec: Spec,
    stated: Stated,
    b: Any,
    limits: Limits,
    folder: Path | None,
    verbose: int = 0,
) -> Result:
    """Solve one problem with the rows that the workers hold."""
    run = Run(workers, spec, stated.rows, limits, b, verbose)
    saved = None
    if folder is not None:
        defines = (spec.number, spec.loss, spec.lam, spec.l1_ratio, spec.fit_intercept)
        factors = None if spec.factors is None else spec.factors.tolist()
        run.path = Path(folder) / f"problem-{spec.number}.zerogap"
        run.identity = f"{stated.digest} {defines!r} {factors!r}"
        if run.centred:
            run.identity += " shifted"
        saved = load(run.path, run.identity)
    run.restart(workers.begin(spec, saved.alphas if saved is not None else None))
    run.measure()
    if saved is not None:
        run.b = saved.b[()]
    return run_all([run], _ways(run, saved), None)[0]


def _ways(run: Run, saved: Saved | None) -> list[Way]:
    """Return how to step: local epochs first, then what finds the last digits sooner."""
    last = Newton if run.takes_newton else LBFGS
    if saved is not None and not saved.alphas:
        return [last(run, saved.w)]
    if run.is_hopeless and run.takes_newton:
        return [Newton(run)]
    return [LocalEpochs(run), last(run) if run.smooth else Gather(run)]
