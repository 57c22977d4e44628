"""The few things that training asks of a cluster, and how Dask does them."""

from __future__ import annotations

import contextlib
import itertools
import uuid
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError
from typing import Any, Protocol

from dask.graph_manipulation import clone
from distributed import Client, Future, KilledWorker, wait
from distributed.comm.core import CommClosedError

import dask

_OF_A_LOST_CLIENT = (OSError, RuntimeError, AttributeError)
SILENT_SECONDS = 30.0  # without a sign of life, while others give some: usual are .5 to 10 s
LOST = object()
RUNNING = object()
_QUIET = {"distributed.admin.large-graph-warning-threshold": "100GB"}  # weights travel in tasks


class Backend(Protocol):
    """A cluster: workers with addresses, which run functions and keep what these leave behind."""

    def workers(self) -> list[str]:
        """Return the addresses of the workers that are alive, in a fixed order."""

    def stuck(self) -> set[str]:
        """Return the workers that begin nothing: their memory is nearly used up, or they hang."""

    def memory(self) -> list[int]:
        """Return the bytes that each worker may use, as far as limits are known."""

    def submit(self, worker: str, function: Callable, *args: Any) -> Any:
        """Start a function on that worker and on no other; return a handle."""

    def wait(self, tasks: Sequence[Any], seconds: float) -> None:
        """Return when one of the tasks has ended, or after so many seconds."""

    def outcome(self, task: Any) -> Any:
        """Return what the function returned; RUNNING or LOST (with its worker) if it has not.

        An error of the function is raised here.
        """

    def cancel(self, tasks: Sequence[Any]) -> None:
        """Give up tasks, whatever state they are in."""

    def data(self, source: Any, worker: str | None) -> Any:
        """Return a handle of the rows of a source, which that worker reads: for `submit`."""

    def check(self, data: Sequence[Any]) -> None:
        """Raise the error of data that cannot be read, if it is not that their worker was lost."""

    def homes(self, data: Sequence[Any], seconds: float) -> list[str | None] | None:
        """Return the worker that holds each source, None if some are not there after a while."""


class DaskBackend:
    """Dask's distributed scheduler.

    Every task has a key of its own and is bound to one worker.  Dask leaves such a task waiting
    forever when that worker dies, so the caller watches `workers` and gives it up.
    """

    def __init__(self, client: Client) -> None:
        self.client = client
        self.name = f"zerogap-{uuid.uuid4().hex[:8]}"
        self.count = itertools.count()

    def workers(self) -> list[str]:
        try:
            return sorted(self.client.ncores())
        except _OF_A_LOST_CLIENT as error:
            raise RuntimeError(
                "the Dask scheduler is gone: start a cluster and fit again, with the same "
                "checkpoint_dir to go on where this fit was"
            ) from error

    def stuck(self) -> set[str]:
        known: dict[str, Any] = {}
        with contextlib.suppress(*_OF_A_LOST_CLIENT):  # which `workers` tells
            known = self._known()
        latest = max((about["last_seen"] for about in known.values()), default=0.0)
        return {
            name
            for name, about in known.items()
            if about["status"] == "paused" or latest - about["last_seen"] > SILENT_SECONDS
        }

    def memory(self) -> list[int]:
        return [int(about["memory_limit"] or 0) for about in self._known().values()]

    def _known(self) -> dict[str, Any]:
        return dict(self.client.scheduler_info(n_workers=-1)["workers"])

    def submit(self, worker: str, function: Callable, *args: Any) -> Future:
        with dask.config.set(_QUIET):
            return self.client.submit(
                function,
                *args,
                key=self._key(function.__name__),
                workers=[worker],
                allow_other_workers=False,
                pure=False,
            )

    def wait(self, tasks: Sequence[Future], seconds: float) -> None:
        with contextlib.suppress(TimeoutError, CancelledError):
            wait(list(tasks), timeout=seconds, return_when="FIRST_COMPLETED")

    def outcome(self, task: Future) -> Any:
        if task.status == "pending":
            return RUNNING
        try:
            return task.result(timeout=5.0)
        except TimeoutError:  # its worker has just died
            return RUNNING
        except (KilledWorker, CancelledError, CommClosedError):
            return LOST

    def cancel(self, tasks: Sequence[Future]) -> None:
        self.client.cancel([task for task in tasks if isinstance(task, Future)], force=True)

    def data(self, source: Any, worker: str | None) -> Any:
        if not dask.is_dask_collection(source):
            return source  # a block of a store, or rows that are in the cluster
        if worker is None:
            return self.client.compute(source)
        # New keys throughout: Dask does not run a task again that was there when three workers
        # died, and leaves one waiting that is bound to a worker that has gone.
        with dask.config.set(_QUIET):
            return self.client.compute(clone(source), workers=[worker])

    def check(self, data: Sequence[Any]) -> None:
        for item in data:  # what depends on data that the scheduler cannot unpack looks only lost
            if isinstance(item, Future) and item.status == "error":
                self.outcome(item)

    def homes(self, data: Sequence[Any], seconds: float) -> list[str | None] | None:
        futures = [item for item in data if isinstance(item, Future)]
        if not futures:
            return [None] * len(data)
        try:
            wait(futures, timeout=seconds)
            holders = self.client.who_has(futures)
        except TimeoutError:
            return None
        except CancelledError:  # their worker died: loading them fails, and reads them anew
            return [None] * len(data)
        return [
            next(iter(sorted(holders.get(item.key, ()))), None) if item in futures else None
            for item in data
        ]

    def _key(self, what: str) -> str:
        return f"{self.name}-{what}-{next(self.count)}"
