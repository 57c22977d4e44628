"""From chapters to a folder: run, judge, draw, write."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from zerogap.lab.experiment import Chapter
from zerogap.lab.report import Report, make_report, write_report
from zerogap.lab.runner import run
from zerogap.lab.tally import Tally


def study(
    chapters: Sequence[Chapter],
    out: str | Path,
    *,
    title: str,
    quick: bool = False,
    folder: str | os.PathLike[str] | None = None,
    jobs: int | None = None,
    on_progress: Callable[[Tally], Any] | None = None,
) -> tuple[Report, dict[str, Path]]:
    """Run all experiments of some chapters and write the report.

    Parameters
    ----------
    chapters : sequence of Chapter
        What to run.
    out : path
        Folder for report.html, SUMMARY.md, figures, tables, and the cells that need not run again.
    title : str
        Title of the report.
    quick : bool
        Whether to run the small versions.
    folder, jobs, on_progress
        As in `zerogap.lab.runner.run`.

    Returns
    -------
    Report, dict
        Verdicts, tables and drawings, and the paths of what was written.
    """
    if quick:
        chapters = [
            replace(chapter, experiments=tuple(e.small() for e in chapter.experiments))
            for chapter in chapters
        ]
    jobs = (os.cpu_count() or 1) if jobs is None else jobs
    experiments = [experiment for chapter in chapters for experiment in chapter.experiments]
    outcome = run(experiments, out, folder=folder, jobs=jobs, on_progress=on_progress)
    report = make_report(chapters, outcome, title=title, quick=quick)
    return report, write_report(report, out, jobs)
