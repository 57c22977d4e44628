"""What all commands share: exit codes, one line per failure, and how they print."""

import contextlib
import datetime
import json
import math
import os
import re
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NoReturn

import typer

from zerogap.errors import DeviceError, ScaleError

_LONGEST_GUESS = 24 * 3600.0  # seconds; a longer estimate of the time left is not shown
_UNSEEN = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
FAILURE, USAGE, NOT_REACHED, INTERRUPTED = 1, 2, 3, 130  # exit codes


def visible(text: str) -> str:
    """Return text in which characters that would command a terminal, or are none, are written out.

    Names of columns, labels and files may come from anybody.
    """
    return _UNSEEN.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


class Reporting:
    """How the running command reports: --quiet, --log, and whether it has given up."""

    quiet = False
    stopped = False
    log: Path | None = None
    above: Callable[[str], None] | None = None  # prints a line above a progress bar that is shown

    @classmethod
    def set(cls, quiet: bool, log: Path | None) -> None:
        """Take what --quiet and --log say; refuse a log that cannot be written."""
        cls.quiet, cls.log = quiet, log
        if log is not None:
            with open(log, "a", encoding="utf-8"):
                pass

    @classmethod
    def write(cls, text: str) -> None:
        """Add a line to the log."""
        if cls.log is not None:
            now = datetime.datetime.now().isoformat(timespec="seconds")
            with open(cls.log, "a", encoding="utf-8") as file:
                file.write(f"{now}  {text}\n")


def stop(command: str, message: str, code: int) -> NoReturn:
    """Say why on standard error, and leave."""
    Reporting.stopped = True
    message = visible(message)
    Reporting.write(f"{message} (exit code {code})")
    typer.echo(f"zerogap {command}: {message}", err=True)
    raise typer.Exit(code)


def note(command: str, message: str) -> None:
    """Tell the user something on standard error, unless --quiet was given."""
    message = visible(message)
    Reporting.write(message)
    if Reporting.quiet:
        return
    line = f"zerogap {command}: {message}"
    if Reporting.above is None:
        typer.echo(line, err=True)
    else:
        Reporting.above(line)


@contextlib.contextmanager
def failures(command: str, can_scale: bool = False) -> Iterator[None]:
    """Turn Ctrl-C, and errors that a user can mend, into one line and an exit code.

    With `can_scale`, errors that scaled features would not have end in the command's option.
    """
    try:
        yield
    except BrokenPipeError:  # the reader, such as head, has seen enough: typer leaves quietly
        raise
    except ScaleError as error:
        stop(command, one_line(error) + (" (--scale standard)" if can_scale else ""), FAILURE)
    except (OSError, ValueError, MemoryError, ModuleNotFoundError, DeviceError) as error:
        stop(command, one_line(error), FAILURE)
    except KeyboardInterrupt:
        stop(command, "interrupted", INTERRUPTED)


def one_line(error: BaseException) -> str:
    """Return what an error says, in one line."""
    if isinstance(error, OSError) and error.filename and error.strerror:
        return f"{error.filename}: {error.strerror}"
    if isinstance(error, MemoryError):
        return ": ".join(["not enough memory", *str(error).splitlines()])
    return " ".join(str(error).split()) or type(error).__name__


def check_outputs(paths: Iterable[Path | None], *inputs: str | None) -> None:
    """See that files can be written, and that none of them would replace another one."""
    taken = {os.path.realpath(path) for path in (Reporting.log,) if path is not None}
    for path in filter(None, paths):
        check_output(path, *inputs)
        if (real := os.path.realpath(path)) in taken:
            raise ValueError(f"{path}: would be written twice, choose another name for one of them")
        taken.add(real)


def check_output(path: Path, *inputs: str | None) -> None:
    """See that a file can be written, before the work that it is for."""
    if path.exists() and not path.is_file():
        raise ValueError(f"{path}: is a folder or a device, not a file")
    if not path.parent.is_dir():
        raise ValueError(f"{path}: the folder {path.parent} does not exist")
    if path.exists() and any(i and Path(i).exists() and path.samefile(i) for i in inputs):
        raise ValueError(f"{path}: is what is read, choose another name to write to")
    try:
        with tempfile.TemporaryFile(dir=path.parent):
            pass
    except OSError as error:
        raise ValueError(f"{path}: cannot write into {path.parent}: {error.strerror}") from error


def printer() -> Any:
    """Return a function that prints a line: styled on a terminal, else plain."""
    encoding = sys.stdout.encoding or "utf-8"

    def shown(text: str) -> str:
        """Return what the terminal's encoding has, the rest written out."""
        return visible(text).encode(encoding, "backslashreplace").decode(encoding)

    if sys.stdout.isatty():
        from rich.console import Console

        console = Console(highlight=False, markup=False, soft_wrap=True)
        return lambda text, style="": console.print(shown(text), style=style or None)
    return lambda text, style="": typer.echo(shown(text))


def print_data(text: str) -> None:
    """Print data as they are into a file or a pipe, and for a terminal what can be seen of them."""
    typer.echo(visible(text) if sys.stdout.isatty() else text, nl=False)


def print_table(rows: Iterable[tuple[str, str]]) -> None:
    """Print names and values in two columns."""
    rows, say = list(rows), printer()
    width = max(len(name) for name, _ in rows)
    for name, value in rows:
        line = visible(f"{name.ljust(width)}  {value}".replace("\n", " "))
        Reporting.write(line)
        say(line)


def as_json(content: dict[str, Any]) -> str:
    """Return one JSON object; numbers that JSON cannot hold become null."""
    text = json.dumps(_plain(content), allow_nan=False, ensure_ascii=False)
    return _UNSEEN.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def _plain(value: Any) -> Any:
    """Replace arrays, numpy numbers and non-finite numbers by what JSON has."""
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not abs(value) < float("inf"):
        return None
    return value


def certificate_rows(certificate: Any, tol: float) -> list[tuple[str, str]]:
    """Return a certificate, and the relative gap that was asked for, as names and values."""
    return [
        ("primal", f"{certificate.primal:.8g}"),
        ("dual", f"{certificate.dual:.8g}"),
        ("gap", f"{certificate.gap:.3g}"),
        ("relative gap", f"{certificate.relative_gap:.3g} (asked for {tol:g})"),
        ("epochs", f"{certificate.epochs:g}"),
        ("seconds", f"{certificate.seconds:.3g}"),
        ("stopped", certificate.stop_reason),
        ("solver", certificate.solver),
    ]


def certificate_json(certificate: Any) -> dict[str, Any]:
    """Return a certificate as a JSON object."""
    names = ("primal", "dual", "gap", "relative_gap", "epochs", "seconds", "stop_reason", "solver")
    return {name: getattr(certificate, name) for name in names}


def score_text(name: str, value: float) -> str:
    """Return an accuracy in percent, any other score as it is."""
    return f"{name} {100 * value:.2f} %" if name == "accuracy" else f"{name} {value:.5g}"


def time_left(done: float, total: float | None, seconds: float, budget: float | None) -> str:
    """Estimate the time left from the share that is done; it is at most the budget."""
    if total is None or done <= 0 or seconds <= 0:
        return ""
    left = seconds * max(0.0, total / done - 1.0)
    if budget is not None:
        left = min(left, max(0.0, budget - seconds))
    if left > _LONGEST_GUESS:
        return ""
    minutes = f"{left / 60:.0f} min" if left >= 120 else f"{left:.0f} s"
    return f", about {minutes} left"


@contextlib.contextmanager
def progress(tol: float, max_seconds: float | None = None) -> Iterator[Callable[[Any], None]]:
    """Yield a callback for `solve`: on a terminal it shows the gap, the rate and the time left.

    The gap falls by a constant factor per second on most problems, so the bar is logarithmic.
    """

    def log(record: Any) -> None:
        gap = record.certificate.relative_gap
        Reporting.write(f"epoch {record.epoch:g}, {record.seconds:.3g} s, relative gap {gap:.3g}")

    if not sys.stderr.isatty() or Reporting.quiet:
        yield log
        return

    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn

    bar = Progress(
        BarColumn(bar_width=20),
        TextColumn("{task.description}", markup=False),
        console=Console(stderr=True),
        transient=True,
    )
    task = bar.add_task("starting", total=None)
    first, before = math.inf, math.inf

    total = None

    def show(record: Any) -> None:
        nonlocal first, before, total
        log(record)
        gap = record.certificate.relative_gap
        if record.epoch < before:  # a new problem: the first one, or the next class
            first = gap
            total = math.log(gap / tol) if 0 < tol < gap < math.inf else None
            bar.reset(task, total=total)
        before = record.epoch
        rate = f" ({record.epoch / record.seconds:.3g}/s)" if record.seconds > 0 else ""
        done = math.log(first / gap) if 0 < gap < first < math.inf else 0.0
        left = time_left(done, total, record.seconds, max_seconds)
        text = f"gap {gap:.1e} of {tol:.0e}, epoch {record.epoch:g}{rate}{left}"
        bar.update(task, completed=done, description=text)

    def above(line: str) -> None:
        bar.console.print(line, markup=False, highlight=False, soft_wrap=True)

    with bar:
        Reporting.above = above
        try:
            yield show
        finally:
            Reporting.above = None


@contextlib.contextmanager
def compiling(command: str) -> Iterator[Callable[[], float]]:
    """Measure the seconds of compiling, and say so on the terminal if it takes long."""
    from zerogap.kernels.machine_code import compile_timer

    def tell(line: str) -> None:
        if sys.stderr.isatty():
            note(command, line)

    with compile_timer(tell) as seconds:
        yield seconds


def start_bar(auto_refresh: bool = True) -> tuple[Any, Any]:
    """Return a progress bar on standard error, which has begun, and its task."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn

    bar = Progress(
        BarColumn(bar_width=30),
        TextColumn("{task.description}", markup=False),
        console=Console(stderr=True),
        auto_refresh=auto_refresh,
        transient=True,
    )
    task = bar.add_task("starting", total=None)
    bar.start()
    return bar, task
