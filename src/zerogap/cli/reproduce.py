"""`zerogap reproduce`: the reports' experiments, run anew."""

from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import typer

from zerogap.cli.choices import JsonOption
from zerogap.cli.output import (
    FAILURE,
    INTERRUPTED,
    NOT_REACHED,
    USAGE,
    as_json,
    failures,
    note,
    print_table,
    printer,
    stop,
)

_TITLE = "Five reports on SDCA and Pegasos, run anew"


def register(app: Any) -> None:
    """Add the command to the application."""

    @app.command()
    def reproduce(
        what: Annotated[
            list[str] | None,
            typer.Argument(
                metavar="[all | S0 ... S4 | S0-fig4 ...]",
                help="Reports, experiments, figures, tables or claims; all if nothing is named.",
                show_default=False,
            ),
        ] = None,
        quick: Annotated[
            bool, typer.Option("--quick", help="Small versions, two minutes for all.")
        ] = False,
        jobs: Annotated[
            int | None,
            typer.Option(
                help="Processes; one per CPU if not given.  What is timed runs alone.", min=1
            ),
        ] = None,
        out: Annotated[
            Path, typer.Option(metavar="FOLDER", help="Folder for report, figures and tables.")
        ] = Path("zerogap-report"),
        data: Annotated[
            Path | None,
            typer.Option(
                metavar="FOLDER",
                help="Folder of the data files; if not given, ZEROGAP_DATA and the cache.",
            ),
        ] = None,
        json: JsonOption = False,
    ) -> None:
        """Rerun the experiments of the five reports, with a verdict on every claim.

        Writes report.html, SUMMARY.md, figures as PNG and SVG, and tidy tables as Parquet and CSV.
        Runs that are done are kept: after Ctrl-C the same command goes on from there.
        """
        from zerogap.cli.progress_table import ProgressTable

        with failures("reproduce"):
            check_packages()
            from zerogap.lab.chapters import select
            from zerogap.lab.study import study

            try:
                chosen = select(what or ["all"])
            except ValueError as error:
                stop("reproduce", str(error), USAGE)
            if data is not None and not data.is_dir():
                stop("reproduce", f"--data {data}: is not a folder", USAGE)
            with ProgressTable() as board:
                report, paths = study(
                    chosen,
                    out,
                    title=_TITLE,
                    quick=quick,
                    folder=data,
                    jobs=jobs,
                    on_progress=board.show,
                )
        show_report("reproduce", report, paths, json)


def check_packages() -> None:
    """See that all packages of the lab are there, before the work."""
    for package in ("matplotlib", "plotly", "jinja2", "pandas"):
        if find_spec(package) is None:
            raise ValueError(f"the report needs {package}: pip install 'zerogap[lab]'")
    if find_spec("pyarrow") is None:
        raise ValueError("tables need pyarrow: pip install 'zerogap[cli]'")


def show_report(command: str, report: Any, paths: dict[str, Path], json: bool) -> None:
    """Print the verdicts and where the files are; leave with the exit code that fits."""
    outcome = report.outcome
    if json:
        typer.echo(as_json(_content(report, paths)))
    else:
        say = printer()
        for judged in report.judged:
            say(f"{judged.claim.id:8}  {judged.verdict:13}  {judged.sentence}")
        typer.echo("")
        print_table([(name, str(path)) for name, path in paths.items()])
    for name, why in outcome.missing.items():
        note(command, f"without data set {name}: {why}")
    for failure in outcome.failures[:5]:
        note(command, f"failed: {failure}")
    lacking = [section for section in report.sections if section.missing and not section.facts]
    others = (section for section in report.sections if section not in lacking)
    problems = [problem for section in others for problem in section.problems]
    if not outcome.tables and outcome.interrupted:
        stop(command, "interrupted", INTERRUPTED)
    if not outcome.tables:
        stop(command, "nothing could be run", FAILURE)
    if outcome.failures:
        stop(command, f"{len(outcome.failures)} runs failed", FAILURE)
    if outcome.interrupted:
        stop(command, "interrupted; the same command goes on from here", NOT_REACHED)
    if problems:
        stop(command, f"{len(problems)} parts of the report failed: {problems[0]}", FAILURE)
    # what has no public source cannot be run here: the page names it, and the report is whole
    wanted = [section for section in lacking if any(map(_has_source, section.missing))]
    if wanted:
        names = ", ".join(section.experiment.id for section in wanted)
        stop(command, f"not run, data missing: {names}", NOT_REACHED)


def _has_source(name: str) -> bool:
    """Whether all files of a data set could be downloaded."""
    from zerogap import datasets

    return all(file.url for file in datasets.info(name).files)


def _content(report: Any, paths: dict[str, Path]) -> dict[str, Any]:
    outcome = report.outcome
    return {
        "verdicts": [
            {
                "claim": judged.claim.id,
                "statement": judged.claim.statement,
                "where": judged.claim.where,
                "setting": judged.claim.setting,
                "caution": judged.claim.caution,
                "extension": judged.claim.extension,
                "experiment": judged.experiment,
                "verdict": judged.verdict,
                "on_what": judged.found.on_what if judged.found else "",
                "sentence": judged.sentence,
                "evidence": [str(part) for part in judged.found.evidence] if judged.found else [],
                "robustness": judged.found.robustness if judged.found else "",
                "further": [str(part) for part in judged.found.further] if judged.found else [],
            }
            for judged in report.judged
        ],
        "quick": report.quick,
        "interrupted": outcome.interrupted,
        "missing": outcome.missing,
        "failures": [str(failure) for failure in outcome.failures],
        "files": {name: str(path) for name, path in paths.items()},
    }
