"""The report: one HTML file that needs no network, pictures beside it, and a short summary."""

from __future__ import annotations

import dataclasses
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from zerogap.comparison.page import environment, fill, resource, script_json
from zerogap.io.atomic import replace_file
from zerogap.lab.experiment import Chapter, Experiment
from zerogap.lab.inventory import REPORTS, errata, items
from zerogap.lab.pictures import save_all
from zerogap.lab.runner import Outcome
from zerogap.lab.statistics import Count, Interval, number
from zerogap.lab.verdicts import DEPENDS, FAILS, HOLDS, UNDECIDED, Claim, Verdict

NOT_JUDGED = "not judged"
EXTENSIONS = "Our extensions, which the report does not claim:"
VERDICTS = (HOLDS, DEPENDS, UNDECIDED, FAILS, NOT_JUDGED)


@dataclass(frozen=True)
class Judged:
    """A claim with its verdict, or with the reason why there is none."""

    claim: Claim
    experiment: str
    found: Verdict | None
    problem: str = ""

    @property
    def verdict(self) -> str:
        """The verdict in a word or three."""
        return NOT_JUDGED if self.found is None else self.found.verdict

    @property
    def sentence(self) -> str:
        """What the runs say, or why they say nothing."""
        return self.problem if self.found is None else self.found.sentence


@dataclass(frozen=True)
class Section:
    """An experiment with what its table came to."""

    experiment: Experiment
    drawings: tuple[dict[str, Any], ...]
    tables: tuple[dict[str, Any], ...]
    judged: tuple[Judged, ...]
    facts: Mapping[str, Any]
    missing: tuple[str, ...]
    unfinished: int
    problems: tuple[str, ...]


@dataclass(frozen=True)
class Report:
    """All that the page and the summary are made from."""

    title: str
    chapters: tuple[tuple[Chapter, tuple[Section, ...]], ...]
    outcome: Outcome
    quick: bool

    @property
    def sections(self) -> Iterator[Section]:
        """The sections of all chapters."""
        return (section for _, sections in self.chapters for section in sections)

    @property
    def drawings(self) -> list[dict[str, Any]]:
        """All figures."""
        return [drawing for section in self.sections for drawing in section.drawings]

    @property
    def judged(self) -> list[Judged]:
        """All claims."""
        return [judged for section in self.sections for judged in section.judged]

    @property
    def claims(self) -> list[Judged]:
        """What the reports say, in the order of their text as the inventory has it."""
        return sorted((one for one in self.judged if not one.claim.extension), key=_by_id)

    @property
    def extensions(self) -> list[Judged]:
        """What no report says."""
        return sorted((one for one in self.judged if one.claim.extension), key=_by_id)

    @staticmethod
    def counts(judged: Sequence[Judged]) -> dict[str, int]:
        """Return the number of claims by verdict."""
        found = Counter(one.verdict for one in judged)
        return {verdict: found[verdict] for verdict in VERDICTS if found[verdict]}

    @property
    def places(self) -> dict[str, str]:
        """Where each row of the inventory is: the anchor of its section or chapter."""
        found: dict[str, str] = {}
        for chapter, sections in self.chapters:
            found |= dict.fromkeys(chapter.notes, chapter.id)
            for section in sections:
                for covered in section.experiment.covers:
                    found.setdefault(covered, section.experiment.id)
        return found


def make_report(
    chapters: Sequence[Chapter], outcome: Outcome, *, title: str, quick: bool = False
) -> Report:
    """Judge the claims and draw the figures of chapters whose experiments have been run."""
    made = [
        (chapter, tuple(_section(experiment, outcome) for experiment in chapter.experiments))
        for chapter in chapters
    ]
    return Report(title, tuple(made), outcome, quick)


def write_report(report: Report, out: str | Path, jobs: int = 1) -> dict[str, Path]:
    """Write report.html, SUMMARY.md and figures/ID.png and .svg; return where they are."""
    out = Path(out)
    pictures = out / "figures"
    pictures.mkdir(parents=True, exist_ok=True)
    save_all(report.drawings, pictures, jobs)
    paths = {"report": out / "report.html", "summary": out / "SUMMARY.md"}
    for path, text in zip(paths.values(), (render(report), summary(report)), strict=True):
        replace_file(path, lambda file, text=text: file.write(text.encode()))  # type: ignore[misc]
    return paths | {"figures": pictures, "tables": out / "tables"}


def render(report: Report) -> str:
    """Return the page."""
    shown = [chapter.id for chapter, _ in report.chapters if chapter.id in REPORTS]
    by_report = {
        label: [erratum for erratum in errata().values() if erratum.report == label]
        for label in shown
    }
    return fill(
        resource("report.html.j2", "zerogap.lab"),
        report=report,
        items=[item for item in items().values() if item.report in shown],
        errata=by_report,
        reports=REPORTS,
        environment=environment(),
        cell=cell_text,
        tied=tied,
        said=said,
        lab_css=resource("report.css", "zerogap.lab"),
        lab_js=resource("report.js", "zerogap.lab"),
        data=script_json({d["id"]: d for d in report.drawings if d["kind"] != "gallery"}),
    )


def summary(report: Report) -> str:
    """Return the summary as Markdown."""
    lines = [f"# {report.title}", ""]
    if report.quick:
        lines += [
            "**Quick run: small versions of the experiments; do not quote its verdicts.**",
            "",
        ]
    lines += [f"Claims of the reports, each judged in its own setting: {_counted(report.claims)}."]
    if report.extensions:
        lines += [f"Our extensions, which no report claims: {_counted(report.extensions)}."]
    lines += [""]
    for chapter, sections in report.chapters:
        judged = sorted((one for section in sections for one in section.judged), key=_by_id)
        lines += [f"## {chapter.id}: {chapter.title}", ""]
        for extension, heading in (
            (False, ""),
            (True, "Our extensions, which the report does not claim:"),
        ):
            chosen = [one for one in judged if one.claim.extension is extension]
            if chosen:
                lines += [heading, ""] if heading else []
                lines += ["| claim | setting | verdict | finding | robustness |"]
                lines += ["| --- | --- | --- | --- | --- |", *map(_line, chosen), ""]
    troubles = [f"- data set {name}: {why}" for name, why in report.outcome.missing.items()]
    troubles += [f"- {failure}" for failure in report.outcome.failures]
    if troubles:
        lines += ["## Not run", "", *troubles, ""]
    return "\n".join(lines)


def _by_id(judged: Judged) -> str:
    return judged.claim.id


def _counted(judged: Sequence[Judged]) -> str:
    counts = Report.counts(judged)
    return ", ".join(f"{count} {verdict}" for verdict, count in counts.items()) or "none"


def cell_text(value: Any) -> str:
    """Return an entry of a table as text."""
    if isinstance(value, Interval):
        return value.numbers
    if isinstance(value, Count):
        return f"{value.k} of {value.n}"
    if hasattr(value, "item"):
        value = value.item()
    if not isinstance(value, float):
        return str(value)
    return number(value, 4 if abs(value) >= 1000 else 3)


def tied(text: Any) -> str:
    """Return a text whose units and last words do not begin a line."""
    return re.sub(r" (?=%|runs\b|t\)|bootstrap\))", "\N{NO-BREAK SPACE}", str(text))


def _line(judged: Judged) -> str:
    claim, verdict, robustness = judged.claim, judged.verdict, ""
    if judged.found is not None:
        verdict += f" on {judged.found.on_what}" if judged.found.on_what else ""
        robustness = judged.found.robustness
    texts = [f"{claim.id}{said(claim)}: {claim.statement}", claim.setting, verdict]
    texts += [judged.sentence, robustness]
    return f"| {' | '.join(text.replace('|', '&#124;') for text in texts)} |"


def said(claim: Claim) -> str:
    """Return where the report says it and how cautiously, in brackets."""
    caution = f'"{claim.caution}"' if claim.caution else ""
    parts = [part for part in (claim.where, caution) if part]
    return f" ({', '.join(parts)})" if parts else ""


def _section(experiment: Experiment, outcome: Outcome) -> Section:
    table = outcome.tables.get(experiment.id)
    problems: list[str] = []
    drawings, tables = [], []
    if table is None:
        problems.append(_absence(experiment, outcome))
    else:
        for figure in experiment.figures:
            drawn = _tried(problems, figure.id, figure.drawing, table, experiment.solvers)
            if drawn is not None:
                drawings.append({**drawn, "caption": figure.caption, "covers": figure.covers})
        for declared in experiment.tables:
            rows = _tried(problems, declared.id, declared.make, table)
            if rows:
                texts = [n for n in rows[0] if all(isinstance(row.get(n, ""), str) for row in rows)]
                tables.append({**dataclasses.asdict(declared), "rows": rows, "texts": texts})
    return Section(
        experiment,
        tuple(drawings),
        tuple(tables),
        tuple(_judged(claim, experiment, outcome) for claim in experiment.claims),
        outcome.facts.get(experiment.id, {}),
        _missing(experiment, outcome),
        outcome.unfinished.get(experiment.id, 0),
        tuple(problems),
    )


def _tried(problems: list[str], name: str, make: Any, *arguments: Any) -> Any:
    """Return what a part of a chapter makes, or note why it cannot: the rest of the page stands."""
    try:
        return make(*arguments)
    except Exception as error:
        problems.append(f"{name}: {type(error).__name__}: {error}")
        return None


def _judged(claim: Claim, experiment: Experiment, outcome: Outcome) -> Judged:
    needed = claim.tables or (experiment.id,)
    lacking = [name for name in needed if name not in outcome.tables]
    if lacking:
        reason = f"needs {', '.join(lacking)}, which has not been run"
        return Judged(claim, experiment.id, None, reason)
    problems: list[str] = []
    verdict = _tried(problems, claim.id, claim.judge, *(outcome.tables[name] for name in needed))
    return Judged(claim, experiment.id, verdict, " ".join(problems))


def _missing(experiment: Experiment, outcome: Outcome) -> tuple[str, ...]:
    names = dict.fromkeys(data.name for data in experiment.data)
    return tuple(name for name in names if name in outcome.missing)


def _absence(experiment: Experiment, outcome: Outcome) -> str:
    if lacking := _missing(experiment, outcome):
        return f"not run, data missing: {', '.join(lacking)}"
    return "interrupted before it was run" if outcome.interrupted else "not run: see the failures"
