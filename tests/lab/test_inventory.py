"""Every figure, table, number, claim and theorem of the reports has its place."""

import re
import sys
from collections import Counter
from pathlib import Path

import pytest

import zerogap
from zerogap.lab.chapters import chapter
from zerogap.lab.inventory import REPORTS, claims, errata, items

RECORD = Path(__file__).parents[2] / "docs" / "five-reports.md"


@pytest.mark.parametrize("label", REPORTS)
def test_every_row_has_its_place(label):
    """In a section of the page, or by the name of what has it in the library."""
    rows = [item for item in items().values() if item.report == label]
    assert {item.id for item in rows if not item.name} <= chapter(label).covers
    for item in rows:
        found = zerogap
        for part in item.name.split(".") if item.name else ():
            fields = getattr(found, "__dataclass_fields__", {})
            found = fields[part] if part in fields else getattr(found, part)


@pytest.mark.parametrize("label", REPORTS)
def test_what_is_covered_exists(label):
    found = chapter(label)
    known = {item.id for item in items().values() if item.report == label}
    extra = {name for name in found.covers - known if name.startswith("S")}
    assert all(name.partition("-")[0] == label for name in extra)  # other rows of the reports
    for experiment in found.experiments:
        assert set(experiment.errata) <= set(errata())
        assert experiment.id.startswith(f"{label}-")
        assert experiment.question
        for figure in experiment.figures:
            assert figure.title


@pytest.mark.parametrize("label", REPORTS)
def test_ids_are_unique(label):
    experiments = chapter(label).experiments
    for kind in ("figures", "tables", "claims"):
        ids = [part.id for experiment in experiments for part in getattr(experiment, kind)]
        assert len(ids) == len(set(ids)), kind
    assert len({experiment.id for experiment in experiments}) == len(experiments)


def test_inventory_is_whole():
    counts = {label: sum(item.report == label for item in items().values()) for label in REPORTS}
    assert counts == {"S0": 59, "S1": 28, "S2": 32, "S3": 35, "S4": 18}
    mistakes = {label: sum(e.report == label for e in errata().values()) for label in REPORTS}
    assert mistakes == {"S0": 20, "S1": 18, "S2": 16, "S3": 13, "S4": 12}
    kinds = {item.kind for item in items().values()}
    assert kinds >= {"figure", "table", "number", "claim", "theorem", "formula", "algorithm"}


@pytest.mark.parametrize("label", REPORTS)
def test_small_versions_are_small(label):
    for experiment in chapter(label).experiments:
        assert len(experiment.small().cells()) <= len(experiment.cells())


def test_every_claim_is_stated_with_its_section_and_setting():
    judged = [c for label in REPORTS for e in chapter(label).experiments for c in e.claims]
    assert {claim.id for claim in judged} == set(claims())
    for claim in judged:
        assert claim.where
        assert claim.setting
        assert claim.statement.endswith(".")
        assert claim.statement.count(". ") == 0  # one sentence
        assert set(claim.covers) <= set(items())


def test_the_record_has_every_claim_as_it_is_stated_now():
    record = RECORD.read_text(encoding="utf-8")
    for id, known in claims().items():
        assert f"| {id} ({known['where']}" in record
        assert f"{known['says'].replace('|', '&#124;')} | {known['setting']} | " in record, id


def test_the_record_counts_its_verdicts():
    """The line above the tables has the sums of their rows."""
    record = RECORD.read_text(encoding="utf-8")
    found = {False: Counter(), True: Counter()}
    for line in re.findall(r"(?m)^\| S\d-\d.*$", record):
        id, verdict = line[2:].partition(" ")[0], line.split(" | ")[2]
        found[claims()[id].get("extension", False)][verdict.partition(" on ")[0]] += 1
    assert found[False].total() + found[True].total() == len(claims())
    for extension, words in ((False, "in its own setting"), (True, "which no report claims")):
        (told,) = re.findall(rf"(?m)^.*{words}: (.*)\.$", record)
        counts = (part.partition(" ") for part in told.split(", "))
        assert {verdict: int(count) for count, _, verdict in counts} == found[extension]


def test_cautions_of_the_reports_are_kept():
    """Words of the reports, such as "seems"; what they quote from papers is called so."""
    kept = {
        "S0-50a": "seem to show",
        "S0-51a": "might be preferable",
        "S0-51b": "should",
        "S0-54a": "somehow similar",
        "S0-57a": "seems to always",
        "S1-25a": "about",
        "S1-27": "may, seems",
        "S2-29b": "highly probable",
        "S3-09": "most often",
        "S3-33b": "a hint",
    }
    assert {id: claims()[id].get("caution") for id in kept} == kept
    quoted = {id for id, known in claims().items() if "quoted" in known.get("caution", "")}
    assert quoted >= {"S0-16a", "S0-16b", "S0-17", "S0-28", "S2-06", "S2-28a"}
    assert not any(known.get("caution") for known in claims().values() if known.get("extension"))


def test_a_verdict_is_given_in_the_report_s_own_setting():
    """The axis and lambda of the report stand in the setting, and so does a stand-in."""
    for id in ("S0-50a", "S0-50b", "S0-50c", "S0-51a", "S0-51b", "S0-57a", "S0-58a"):
        assert "by iterations" in claims()[id]["setting"]
    for id in ("S0-50b", "S0-51a", "S0-52b", "S0-54a", "S0-54b"):
        assert "lambda = 50" in claims()[id]["setting"]
    for known in claims().values():
        if "genomic" in known["setting"]:
            assert "gravier for genomic" in known["setting"]
    assert "CPU time of the updates" in claims()["S1-25c"]["setting"]
    assert "operations" in claims()["S3-13"]["setting"]


def test_what_no_report_says_stands_apart():
    extensions = {id for id, known in claims().items() if known.get("extension")}
    ours = {"S0-49a", "S0-54d", "S1-06", "S2-20", "S3-10", "S3-31d", "S3-32b", "S3-32c"}
    assert extensions == ours | {"S4-14", "S4-15"}


def test_remarks_are_not_called_errors():
    remarks = (
        "E0-12",
        "E1-5",
        "E1-18",
        "E2-11",
        "E3-1",
        "E3-11",
        "E3-12",
        "E3-13",
        "E4-11",
        "E4-12",
    )
    for id in remarks:
        assert errata()[id].printed.startswith(("(a remark, not an error)", "(no error)"))
    assert "label is misplaced" in errata()["E1-3"].correct
    assert "without alpha_i" not in errata()["E1-3"].printed


def test_every_judge_is_fed_with_made_up_tables():
    """By its own name, or by that of the function that makes it."""
    tests = "".join(
        path.read_text(encoding="utf-8") for path in Path(__file__).parent.glob("test_s*.py")
    )
    for label in REPORTS:
        for claim in (c for e in chapter(label).experiments for c in e.claims):
            module = vars(sys.modules[claim.judge.__module__])
            names = {name for name, value in module.items() if value is claim.judge}
            names.add(claim.judge.__qualname__.partition(".")[0])
            assert any(re.search(rf"\b{name}\b", tests) for name in names), claim.id
