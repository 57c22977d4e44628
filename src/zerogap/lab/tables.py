"""Tidy tables: one per experiment, in a canonical order, with where they come from."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from zerogap.io.atomic import replace_file
from zerogap.lab.experiment import REFERENCE, Cell

TIMES = ("seconds", "cpu_seconds")
_PROBLEM = ("data", "loss", "lam")
_LABELS = ("data", "loss", "lam", "solver", "seed")


def tidy(results: Iterable[tuple[Cell, list[dict[str, Any]]]]) -> Any:
    """Return one DataFrame: labels first, times last, rows in the order of the cells."""
    import pandas as pd

    results = list(results)
    table = pd.DataFrame(_rows(results, reference=False))
    if reference := _rows(results, reference=True):
        special = {name for cell, _ in results for name in cell.data.columns}
        table = _with_suboptimality(table, pd.DataFrame(reference), [*_PROBLEM, *sorted(special)])
    labels = [name for name in _LABELS if name in table]
    times = [name for name in table if name.endswith(TIMES)]
    middle = [name for name in table if name not in labels and name not in times]
    return table[labels + middle + times]


def _rows(
    results: list[tuple[Cell, list[dict[str, Any]]]], reference: bool
) -> list[dict[str, Any]]:
    chosen = [result for result in results if (result[0].arm.name == REFERENCE) is reference]
    return [
        {**cell.labels, "run": k, **row} for k, (cell, rows) in enumerate(chosen) for row in rows
    ]


def _with_suboptimality(table: Any, reference: Any, keys: list[str]) -> Any:
    """Add the distance from the best dual value of the same problem."""
    keys = [name for name in keys if name in table and name in reference]
    table, reference = (_with_sample(part, reference) for part in (table, reference))
    keys.append("sample")
    both = [part.groupby(keys, dropna=False)["dual"].max() for part in (table, reference)]
    best = both[0].combine(both[1], max, fill_value=-math.inf).rename("optimum")
    table = table.merge(best.reset_index(), on=keys, how="left").drop(columns="sample")
    # less than zero by rounding only
    return table.assign(suboptimality=(table["primal"] - table["optimum"]).clip(lower=0.0))


def _with_sample(table: Any, reference: Any) -> Any:
    """Add which rows a run has: by its seed where a data set differs from seed to seed, else 0."""
    seeds = reference.groupby("data")["seed"].nunique()
    return table.assign(sample=table["seed"].where(table["data"].map(seeds) > 1, 0))


def write(table: Any, path: Path, facts: Mapping[str, Any]) -> None:
    """Write a table as Parquet, with facts as JSON in its metadata, and as CSV beside it."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    content = pa.Table.from_pandas(table, preserve_index=False)
    metadata = {"zerogap": json.dumps(facts, sort_keys=True)}
    content = content.replace_schema_metadata(metadata)
    replace_file(path, lambda file: pq.write_table(content, file))
    plain = table.drop(columns=[name for name in table if name == "pixels"])
    text = plain.to_csv(index=False, lineterminator="\n").encode()
    replace_file(path.with_suffix(".csv"), lambda file: file.write(text))


def read(path: Path) -> tuple[Any, dict[str, Any]]:
    """Return a table and its facts."""
    import pyarrow.parquet as pq

    content = pq.read_table(path)
    return content.to_pandas(), json.loads(content.schema.metadata[b"zerogap"])


def save_rows(rows: list[dict[str, Any]], path: Path) -> None:
    """Keep the rows of one cell."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    names = dict.fromkeys(name for row in rows for name in row)
    content = pa.table({name: [row.get(name) for row in rows] for name in names})
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(path, lambda file: pq.write_table(content, file))


def load_rows(path: Path) -> list[dict[str, Any]] | None:
    """Return the rows of a cell, or None if the file is missing or damaged."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return pq.read_table(path, use_threads=False).to_pylist()
    except (OSError, pa.ArrowInvalid):
        return None
