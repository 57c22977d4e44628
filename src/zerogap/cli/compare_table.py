"""The table of a comparison: live on a terminal, a line per finished run elsewhere."""

import math
import sys
import time
from collections.abc import Sequence
from typing import Any, NamedTuple, Self

WAITING, RUNNING = "waiting", "running"
_WARMING_UP = "warming up: one epoch of each solver, which compiles it and does not count"
_LEAST_ROOM = 6  # for a bar
_COLOURS = {"reached": "green", RUNNING: "yellow"}


class Line(NamedTuple):
    """What the table says of a solver."""

    name: str
    run: str = ""
    epochs: float | None = None
    gap: float | None = None  # relative
    seconds: float | None = None
    error: float | None = None
    status: str = WAITING
    way: float = 0.0  # from the first gap to the target, on a logarithmic scale


class CompareTable:
    """Follow a comparison on standard error.

    Nothing is drawn in the background: the clock of a solver that is running must not notice.
    """

    def __init__(self, names: Sequence[str], seeds: Sequence[int], tol: float, form: str) -> None:
        self.names = set(names)
        self.lines = {name: Line(name) for name in names}
        self.seeds, self.tol, self.form = list(seeds), tol, form
        self.first = math.inf
        self.drawn = -math.inf
        self.live: Any = None

    def __enter__(self) -> Self:
        if sys.stderr.isatty():
            from rich.console import Console
            from rich.live import Live

            self.live = Live(console=Console(stderr=True), auto_refresh=False, transient=True)
            self.live.start()
            self._draw(_WARMING_UP)
        else:
            print(_WARMING_UP, file=sys.stderr, flush=True)
        return self

    def __exit__(self, *error: object) -> None:
        if self.live is not None:
            self.live.stop()

    def show(self, name: str, seed: int, record: Any) -> None:
        """Show a record, at most ten times a second; the end of a run always."""
        certificate = record.certificate
        gap = certificate.relative_gap
        reason = certificate.stop_reason
        if record.epoch == 0 and not reason:
            self.first = gap
        racing = name in self.names
        self.lines[name] = line = Line(
            name=name,
            run=f"{self.seeds.index(seed) + 1}/{len(self.seeds)}" if racing else "",
            epochs=record.epoch,
            gap=gap,
            seconds=record.seconds,
            error=record.metrics.get("test_error"),
            status={"": RUNNING, "converged": "reached"}.get(reason, reason.replace("_", " ")),
            way=_way(self.first, gap, self.tol),
        )
        if self.live is not None:
            if reason or time.monotonic() - self.drawn > 0.1:
                self._draw()
        elif reason:
            cells = _cells(line, self.form)
            words = ("", "run ", "epochs ", "gap ", "seconds ", "test error ", "")
            text = "  ".join(word + cell for word, cell in zip(words, cells, strict=True) if cell)
            print(text, file=sys.stderr, flush=True)

    def _draw(self, caption: str = "") -> None:
        lines = list(self.lines.values())
        table = make_table(lines, self.tol, self.form, self.live.console.width)
        table.caption = caption
        self.live.update(table, refresh=True)
        self.drawn = time.monotonic()


def error_form(problem: Any, tested: bool) -> str:
    """Return the format of test errors, empty if there are none."""
    if not tested:
        return ""
    return "{:.4g}" if problem.loss.task == "regression" else "{:.1%}"


def print_summary(comparison: Any) -> None:
    """Print the final table on standard output."""
    from rich.console import Console

    terminal = sys.stdout.isatty()
    console = Console(width=None if terminal else 120, highlight=False)
    lines = [
        Line(
            name=line.name,
            run=str(line.runs),
            epochs=line.epochs,
            gap=line.certificate.relative_gap,
            seconds=line.seconds,
            error=line.test_error,
            status=line.verdict,
            way=_way(1.0, line.certificate.relative_gap, comparison.tol),
        )
        for line in comparison.summary()
    ]
    form = error_form(comparison.problem, bool(comparison.error_name))
    width = console.width if terminal else 0
    console.print(make_table(lines, comparison.tol, form, width))


def make_table(lines: Sequence[Line], tol: float, form: str, width: int) -> Any:
    """Return the table, with bars if it is to be that wide and there is room for them."""
    from rich.progress_bar import ProgressBar
    from rich.table import Table
    from rich.text import Text

    room = min(30, width - 53 - max(len(line.name) for line in lines))
    table = Table(box=None, padding=(0, 1, 0, 0), header_style="bold", caption_justify="left")
    table.add_column("solver")
    for header in ("runs", "epochs", "gap"):
        table.add_column(header, justify="right", no_wrap=True)
    if room >= _LEAST_ROOM:
        aim = f"to {100 * tol:g} %"
        table.add_column(aim if len(aim) <= room else "", width=room)
    table.add_column("seconds", justify="right", no_wrap=True)
    if form:
        table.add_column("test error", justify="right", no_wrap=True)
    table.add_column("status", no_wrap=True)
    for line in lines:
        name, run, epochs, gap, seconds, error, status = _cells(line, form)
        bar = (
            [ProgressBar(1.0, line.way, width=room, complete_style="cyan", finished_style="green")]
            if room >= _LEAST_ROOM
            else []
        )
        cells: list[Any] = [name, run, epochs, gap, *bar, seconds, *([error] if form else [])]
        cells.append(Text(status, style=_COLOURS.get(status, "")))
        table.add_row(*cells, style="dim" if status == WAITING else None)
    return table


def _cells(line: Line, form: str) -> tuple[str, ...]:
    from zerogap.comparison.styles import percent

    def text(value: float | None, form: str) -> str:
        return "" if value is None else form.format(value)

    error = text(line.error, form).replace("%", " %")
    gap = "" if line.gap is None else percent(line.gap)
    epochs = text(line.epochs, "{:g}")
    seconds = text(line.seconds, "{:.4f}" if (line.seconds or 0) < 100 else "{:.1f}")
    return line.name, line.run, epochs, gap, seconds, error, line.status


def _way(first: float, gap: float, tol: float) -> float:
    """Return how much of the way from the first gap to the target is done, on a log scale."""
    target = max(tol, 1e-12)
    if not target < first < math.inf or not gap < math.inf:
        return 0.0
    return min(1.0, max(0.0, math.log(first / max(gap, target)) / math.log(first / target)))
