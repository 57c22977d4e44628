"""Every figure, table, number, claim and theorem of the reports has its place."""

import pytest

from zerogap.lab.chapters import chapter
from zerogap.lab.inventory import REPORTS, errata, items

MISSING = {}  # rows that no chapter covers yet, by report


@pytest.mark.parametrize("label", REPORTS)
def test_every_row_has_its_place(label):
    wanted = {item.id for item in items().values() if item.report == label}
    assert wanted - chapter(label).covers == set(MISSING.get(label, ()))


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
    assert counts == {"S0": 20, "S1": 13, "S2": 11, "S3": 5, "S4": 11}
    mistakes = {label: sum(e.report == label for e in errata().values()) for label in REPORTS}
    assert mistakes == {"S0": 20, "S1": 18, "S2": 16, "S3": 13, "S4": 12}
    kinds = {"figure", "table", "number", "claim", "theorem"}
    assert {item.kind for item in items().values()} == kinds


@pytest.mark.parametrize("label", REPORTS)
def test_small_versions_are_small(label):
    for experiment in chapter(label).experiments:
        assert len(experiment.small().cells()) <= len(experiment.cells())
