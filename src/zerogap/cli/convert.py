"""`zerogap data convert`, and what `zerogap data info` says of a store."""

import sys
import time
from datetime import timedelta
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Self

import typer

from zerogap.cli.choices import FormatOption, JsonOption, TargetOption
from zerogap.cli.output import INTERRUPTED, as_json, failures, note, print_table, start_bar, stop
from zerogap.cli.table_options import as_options, table_options

_SECONDS_BETWEEN_LINES = 10.0  # where there is no terminal
_CLASSES_SHOWN = 5  # of those that are counted
_DOING = {"scanning": "looking for categories", "reading": "reading", "writing": "writing blocks"}


class Task(StrEnum):
    """What the targets are."""

    CLASSIFICATION = "classification"
    REGRESSION = "regression"


class Dtype(StrEnum):
    """Types of stored values."""

    FLOAT32 = "float32"
    FLOAT64 = "float64"


def register(data: Any) -> None:
    """Add the command to `zerogap data`."""

    @data.command()
    @table_options(learn=True, weight=True)
    def convert(
        source: Annotated[
            str,
            typer.Argument(
                metavar="SOURCE",
                help="CSV, TSV, xlsx, Parquet, Arrow, JSON lines, svmlight or npz file; - for "
                "svmlight from standard input; or the name of a data set, see zerogap data list.",
            ),
        ],
        store: Annotated[Path, typer.Argument(metavar="STORE", help="Folder to make.")],
        task: Annotated[
            Task,
            typer.Option(metavar="NAME", help="classification, or regression: predict numbers."),
        ] = Task.CLASSIFICATION,
        format: FormatOption = None,
        target: TargetOption = None,
        dtype: Annotated[
            Dtype | None,
            typer.Option(
                metavar="NAME",
                help="float32 or float64; by default float32 if that is exact for all values.",
            ),
        ] = None,
        max_memory: Annotated[
            str | None,
            typer.Option(
                metavar="SIZE",
                help="Memory to take at most, like 2GB; by default a quarter of what is free.",
            ),
        ] = None,
        n_features: Annotated[
            int | None, typer.Option(min=1, help="Number of columns of svmlight data.")
        ] = None,
        zero_based: Annotated[
            bool, typer.Option("--zero-based", help="The first svmlight index is 0, not 1.")
        ] = False,
        seed: Annotated[int, typer.Option(min=0, help="Seed of the order of the rows.")] = 0,
        force: Annotated[
            bool, typer.Option("--force", help="Replace a store that is there.")
        ] = False,
        json: JsonOption = False,
        table: Any = None,
    ) -> None:
        """Turn data of any size into a store, which zerogap train reads block by block.

        Rows are put into random order.  Interrupted, the same command goes on where it was.
        """
        options: dict[str, Any] = {
            "task": task.value,
            "dtype": dtype and dtype.value,
            "max_memory": max_memory,
            "random_state": seed,
            "force": force,
        }
        reading: dict[str, Any] = {
            "format": format and format.value,
            "target": target,
            "n_features": n_features,
            "zero_based": zero_based,
        }
        from zerogap.io.atomic import naming

        with failures("data convert"), ConversionProgress() as shown:
            try:
                reading["options"] = as_options(table)
                with naming(store):
                    made = _convert(source, store, reading, options | {"progress": shown.show})
            except KeyboardInterrupt:
                if (store / "unfinished").exists():
                    again = "interrupted; the same command goes on where it was"
                    stop("data convert", again, INTERRUPTED)
                raise
        describe(made, json)


def _convert(source: str, store: Path, reading: dict[str, Any], options: dict[str, Any]) -> Any:
    """Convert a file, or the data set of that name."""
    if source == "-" or Path(source).exists():
        from zerogap.readers.conversion import convert

        return convert(source, store, **reading, **options)
    from zerogap.cli.inputs import open_data
    from zerogap.store import write_store

    given = open_data(source)
    return write_store(store, [(given.X, given.y)], **options)


def describe(store: Any, json: bool) -> None:
    """Print what a store holds."""
    classes = store.classes
    if json:
        names = ("n_samples", "n_features", "stored", "sparse", "weighted", "nbytes", "fingerprint")
        about = {name: getattr(store, name) for name in names}
        own = {"store": str(store.path), "dtype": store.dtype.name, "blocks": len(store.blocks)}
        typer.echo(as_json(own | about | {"classes": classes, "source": store.source}))
        return
    from zerogap.store.sizes import format_size

    largest = max(block.nbytes for block in store.blocks)
    kind = "sparse" if store.sparse else "dense"
    print_table(
        [
            ("store", str(store.path)),
            ("rows", f"{store.n_samples:,}{', weighted' if store.weighted else ''}"),
            ("features", f"{store.n_features:,}"),
            ("targets", "numbers" if classes is None else _listed(classes)),
            ("values", f"{store.stored:,}, {kind}, {store.dtype}"),
            (
                "blocks",
                f"{len(store.blocks)} of up to {format_size(largest)}, "
                f"{format_size(store.nbytes)} in all",
            ),
            ("source", str((store.source or {}).get("path", "not a file"))),
            ("fingerprint", store.fingerprint[:16]),
        ]
    )


def _listed(classes: Any) -> str:
    shown = ", ".join(str(label) for label in classes[:_CLASSES_SHOWN].tolist())
    return f"{len(classes)} classes: {shown}{', ...' if len(classes) > _CLASSES_SHOWN else ''}"


class ConversionProgress:
    """Follow a conversion on standard error: a bar on a terminal, a line now and then elsewhere."""

    def __init__(self) -> None:
        self.bar: Any = None
        self.task: Any = None
        self.first: Any = None  # of the stage
        self.began = self.shown = time.monotonic()

    def __enter__(self) -> Self:
        if sys.stderr.isatty():
            self.bar, self.task = start_bar()
        return self

    def __exit__(self, *error: object) -> None:
        if self.bar is not None:
            self.bar.stop()

    def show(self, progress: Any) -> None:
        """Show how far the work is."""
        now = time.monotonic()
        if self.first is None or progress.stage != self.first.stage:
            if progress.stage == "reading" and progress.rows:
                note("data convert", f"going on after {progress.rows:,} rows")
            self.first, self.began = progress, now
        elif self.first.rows and not self.first.done:  # only now has it gone on
            self.first, self.began = progress, now
        if self.bar is not None:
            text = self._text(progress, now)
            self.bar.update(
                self.task, completed=progress.done, total=progress.total, description=text
            )
        elif now - self.shown >= _SECONDS_BETWEEN_LINES:
            self.shown = now
            print(self._text(progress, now), file=sys.stderr, flush=True)

    def _text(self, progress: Any, now: float) -> str:
        from zerogap.store.sizes import format_size

        text = f"{_DOING[progress.stage]}  {progress.rows:,} rows"
        seconds, done = now - self.began, progress.done - self.first.done
        if seconds > 0:
            text += f"  {(progress.rows - self.first.rows) / seconds:,.0f} rows/s"
        if seconds > 0 and done > 0:
            text += f"  {format_size(done / seconds)}/s"
        if seconds > 0 and done > 0 and progress.total:
            left = seconds * max(0, progress.total - progress.done) / done
            text += f"  {progress.done / progress.total:.0%}"
            text += f"  about {timedelta(seconds=round(left))} left"
        return text
