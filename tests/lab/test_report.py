"""Figures, the report, and the report in a browser."""

import xml.etree.ElementTree as ET

import numpy as np
import pandas as pd
import pytest

from lab import toys
from test_page import BROWSER, OPTIONS, playwright
from zerogap.lab import (
    HOLDS,
    Arm,
    Chapter,
    Claim,
    Count,
    Data,
    Experiment,
    Gallery,
    Heat,
    Lines,
    Points,
    Table,
    Verdict,
    final,
    lower,
    mean,
)
from zerogap.lab.images import unpack
from zerogap.lab.line_styles import looks
from zerogap.lab.pictures import draw
from zerogap.lab.report import NOT_JUDGED, make_report, tied, write_report
from zerogap.lab.runner import run

NASTY = "<i>a & b</i></script>"
SIMULATED = Data("simulated", options={"n_samples": 60}, test=0.25)


def judge(table):
    counts = (Count("so", 3, 3),)
    return Verdict(HOLDS, f"It is so, {NASTY}.", counts, robustness="Elsewhere too.")


def broken(table):
    raise ValueError("this table is too short")


SOLVERS = Experiment(
    id="S4-solvers",
    title="Solvers",
    question=f"Which? {NASTY}",
    data=(SIMULATED, Data("two-gaussians", options={"n_samples": 60}, test=0.25)),
    lams=(0.1, 0.01),
    arms=(
        Arm("SDCA", "sdca"),
        Arm("SDCA, cyclic", "sdca:sampling=cyclic"),
        Arm("Pegasos", "pegasos:batch_size=8"),
    ),
    seeds=range(3),
    epochs=4,
    metrics=("test_error",),
    reference=1e-4,
    figures=(
        Lines(
            id="lines",
            title="Sides",
            y=("primal", "suboptimality"),
            x=("updates", "epoch", "seconds"),
            side_by_side=True,
            where={"lam": 0.1, "data": "simulated"},
            covers=("S4-14",),
        ),
        Lines(
            id="lambdas",
            title="Lambdas",
            y="gap",
            by="lam",
            panels="data",
            band="interval",
            where={"solver": "SDCA"},
        ),
        Points(
            id="points",
            title="Errors",
            value="test_error",
            by="data",
            prepare=final,
            mark={"printed": 0.3},
        ),
        Heat(id="heat", title="Heat", value="primal", x="lam", y="solver", prepare=final),
    ),
    tables=(
        Table(
            "errors",
            "Errors",
            lambda table: [
                {"solver": NASTY, "runs": "all", "error": mean([0.1, 0.2])},
                {"solver": "none", "error": 1648.2},
            ],
        ),
    ),
    claims=(
        Claim("S4-05", "It is so", judge, where="lemma 1", setting="in a toy", caution="seems"),
        Claim("S4-14", "We find", judge, extension=True),
        Claim("S4-06", "SDCA ends lower", lambda t: lower(t, "gap", "SDCA", "Pegasos")),
        Claim("S4-07", "It cannot be told", broken),
        Claim("S4-08", "It needs another", judge, tables=("S4-absent",)),
    ),
    original={"data": "not said"},
    differs=("The data.",),
    errata=("E4-1", "E4-11"),
)
IMAGES = Experiment(
    id="S4-images",
    title="Images",
    question="What do they look like?",
    function=toys.pictures,
    seeds=(0,),
    figures=(Gallery(id="images", title="Images"),),
)
CHAPTER = Chapter("S4", "A title", "a source", "One.\n\nTwo.", (SOLVERS, IMAGES), {"S4-09": "So."})
PANELS = 2 + 2 + 1 + 1
TITLES = "id => plots(id).map(p => p.layout.xaxis.title.text)"


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    outcome = run([SOLVERS, IMAGES], tmp_path_factory.mktemp("runs"), jobs=0)
    return make_report([CHAPTER], outcome, title=f"Report {NASTY}", quick=True)


@pytest.fixture(scope="module")
def paths(report, tmp_path_factory):
    return write_report(report, tmp_path_factory.mktemp("report"))


@pytest.fixture(scope="module")
def browser():
    if BROWSER is None:
        pytest.skip("no Chromium or Chrome here")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=BROWSER, args=OPTIONS)
        yield browser
        browser.close()


def open_page(browser, path, **options):
    page = browser.new_page(**options)
    page.complaints, page.requests = [], []
    page.on("console", lambda message: page.complaints.append(message.text))
    page.on("pageerror", lambda error: page.complaints.append(str(error)))
    page.on("request", lambda request: page.requests.append(request.url))
    page.goto(path.as_uri())
    page.evaluate(
        "() => { window.plots = id => [...document.querySelectorAll("
        "`[data-figure='${id}'] [data-panel]`)]; }"
    )
    return page


@pytest.fixture(scope="module")
def opened(browser, paths):
    """The report, opened once and drawn: that takes long."""
    page = open_page(browser, paths["report"], viewport={"width": 1280, "height": 800})
    page.evaluate("drawAll()")
    return page


@pytest.fixture
def page(opened, paths):
    opened.emulate_media(color_scheme="light")
    opened.set_viewport_size({"width": 1280, "height": 800})
    yield opened
    requests = [url for url in opened.requests if not url.startswith("data:")]
    assert requests == [paths["report"].as_uri()]
    assert opened.complaints == []


def until(page, condition):
    """Wait for a condition; the page's own policy forbids Playwright's way to do so."""
    for _ in range(200):
        if page.evaluate(condition):
            return
        page.wait_for_timeout(50)
    raise AssertionError(condition)


def press(page, figure, group, value):
    page.click(f"[data-figure={figure}] [data-group={group}][data-value='{value}']")


def test_figures_hold_medians_and_ranges(report):
    table = report.outcome.tables["S4-solvers"]
    drawing = report.chapters[0][1][0].drawings[0]
    series = drawing["panels"][0]["series"][0]
    rows = table[
        (table["lam"] == 0.1) & (table["data"] == "simulated") & (table["solver"] == "SDCA")
    ]
    groups = rows.groupby("updates")["primal"]
    for found, known in zip(
        series["y"]["primal"], (groups.median(), groups.min(), groups.max()), strict=True
    ):
        assert np.array_equal(found, known)
    assert series["x"]["epoch"].tolist() == [0, 1, 2, 3, 4]
    assert [panel["axis"] for panel in drawing["panels"]] == ["updates", "epoch"]
    assert series["runs"] == 3


def test_points_are_means_with_intervals(report):
    table = final(report.outcome.tables["S4-solvers"])
    points = report.chapters[0][1][0].drawings[2]["panels"][0]["series"][0]
    rows = table[(table["data"] == "simulated") & (table["solver"] == "SDCA")]
    known = mean(rows.groupby("seed")["test_error"].mean())
    assert points["value"][0] == pytest.approx(known.estimate)
    assert (points["low"][0], points["high"][0]) == pytest.approx((known.low, known.high))


def test_a_line_is_thinned_and_an_empty_figure_refused():
    table = pd.DataFrame({"T": range(1000), "y": range(1000), "solver": "a", "seed": 0})
    drawing = Lines(id="x", title="", x="T", y="y").drawing(table, {})
    places = drawing["panels"][0]["series"][0]["x"]["T"]
    assert len(places) <= 250
    assert (places[0], places[-1]) == (0, 999)
    table = table.assign(updates=table["T"], epoch=table["T"], data=["x", "y"] * 500)
    with pytest.raises(ValueError, match="several values of data"):
        Lines(id="x", title="", x="epoch", y="y").drawing(table, {})
    with pytest.raises(ValueError, match="no row"):
        Lines(id="x", title="", x="T", y="y", where={"solver": "b"}).drawing(table, {})


def test_a_panel_is_drawn_again_enlarged(tmp_path):
    table = pd.DataFrame(
        {"updates": [1, 2, 3], "epoch": [1.0, 2.0, 3.0], "gap": [9.0, 1.0, 0.9], "solver": "a"}
    ).assign(data="x", seed=0)
    figure = Lines(
        id="zoomed",
        title="t",
        y=("gap", "epoch"),
        x=("updates", "epoch"),
        side_by_side=True,
        panels="data",
        zoom={"x": (0.5, 1.5), "other": (0.0, 1.0)},
    )
    drawing = figure.drawing(table, {})
    panels = drawing["panels"]
    assert [panel["title"] for panel in panels] == ["x", "x", "x, enlarged", "x, enlarged"]
    assert [panel["side"] for panel in panels] == ["the report's axis", "a fair axis"] * 2
    assert panels[2]["zoom"] == {"gap": (0.5, 1.5)}
    drawn = draw(drawing)
    axes = drawn.get_axes()
    assert axes[2].get_ylim() == (0.5, 1.5)
    assert axes[0].get_ylim()[1] > 5
    assert axes[3].get_title() == "x, enlarged, a fair axis"


def test_distinct_lines_share_no_colour():
    arms = {"A": "sdca", "B": "sdca:sampling=cyclic", "C": "sdca:sampling=random"}
    found = looks(list(arms), arms, distinct=True)
    assert len({look.colour for look in found.values()}) == 3
    assert len({look.marker for look in found.values()}) == 3
    assert looks(["A", "C"], arms, distinct=True)["C"] == found["C"]  # a figure with fewer lines


def test_one_colour_per_solver():
    solvers = {"A": "sdca", "B": "pegasos:batch_size=8", "C": "sdca:sampling=cyclic", "D": "sgd"}
    one, other = looks(["A", "B", "C"], solvers), looks(["D", "C", "B"], solvers)
    assert one["A"].colour == one["C"].colour == other["C"].colour
    assert one["B"].colour == other["B"].colour
    assert len({one["A"].colour, one["B"].colour, other["D"].colour}) == 3
    assert one["A"][1:] != one["C"][1:]
    scale = looks([0.1, 1.0, 10.0], {})
    assert len({look.colour for look in scale.values()}) == 3


def test_images_come_back():
    grey, red = (unpack(row) for row in toys.pictures(None, None))
    assert np.array_equal(grey, np.arange(100).reshape(10, 10))
    assert red.shape == (6, 8, 3)
    assert red[0, 0].tolist() == [255, 0, 0]


def test_entries_stay_in_their_columns(page):
    rows = page.evaluate(
        "[...document.querySelectorAll('[aria-labelledby=table-errors] tr')].map("
        "row => [...row.cells].map(cell => cell.innerText))"
    )
    assert rows[0] == ["solver", "runs", "error"]
    assert rows[2] == ["none", "", "1648"]


def test_panels_fill_their_rows(page):
    """Pairs of axes are side by side; a telephone has one column."""
    places = "id => new Set(plots(id).map(p => p.getBoundingClientRect().left)).size"
    assert page.evaluate(places, "lines") == 2
    page.set_viewport_size({"width": 400, "height": 800})
    assert page.evaluate(places, "lines") == 1


@pytest.mark.parametrize(
    ("panels", "paired", "across"),
    [(1, False, 1), (2, False, 2), (4, False, 2), (6, False, 3), (8, False, 2), (6, True, 2)],
)
def test_rows_of_panels_have_no_holes(panels, paired, across):
    names = [f"p{k}" for k in range(panels // 2 if paired else panels)]
    table = pd.DataFrame({"p": names, "solver": "a", "updates": 1, "epoch": 1.0, "gap": 1.0})
    figure = Lines(
        id="f", title="t", y="gap", x=("updates", "epoch"), panels="p", side_by_side=paired
    )
    assert figure.drawing(table, {})["across"] == across


def test_units_do_not_begin_a_line():
    assert tied("a: 5 of 9 runs [21 %, 86 %]") == "a: 5 of 9\xa0runs [21\xa0%, 86\xa0%]"


def test_verdicts_are_given_or_say_why_not(report):
    found = {judged.claim.id: judged for judged in report.judged}
    assert found["S4-05"].verdict == HOLDS
    assert found["S4-06"].found.evidence[0].n == 3
    assert found["S4-07"].verdict == NOT_JUDGED
    assert "this table is too short" in found["S4-07"].sentence
    assert "needs S4-absent" in found["S4-08"].sentence
    assert set(report.places) == {"S4-14", "S4-05", "S4-06", "S4-07", "S4-08", "S4-09"}


def test_pictures_and_summary_are_beside_it(paths):
    names = ["lines", "lambdas", "points", "heat", "images"]
    for name in names:
        assert (paths["figures"] / f"{name}.png").read_bytes().startswith(b"\x89PNG")
        assert ET.parse(paths["figures"] / f"{name}.svg").getroot().tag.endswith("svg")
    summary = paths["summary"].read_text()
    assert "Quick run" in summary
    assert '| S4-05 (lemma 1, "seems"): It is so | in a toy | holds |' in summary
    places = [summary.index(f"| {id}") for id in ("S4-05", "S4-06", "S4-07", "S4-08")]
    assert places == sorted(places)  # claim by claim, as in the report
    assert "Our extensions, which no report claims: 1 holds" in summary
    assert "| Elsewhere too. |" in summary


def test_every_chart_is_drawn(page):
    assert page.locator("[data-panel]").count() == PANELS
    assert page.locator("[data-panel] .main-svg:first-child").count() == PANELS
    assert page.locator("[data-figure=lines] .js-line").count() == 2 * 3
    assert page.locator("[data-figure=heat] .hm image").count() == 1
    assert page.locator("[data-figure=points] .point").count() == 6
    assert page.locator(".strip img").count() == 2
    sizes = page.evaluate("[...document.querySelectorAll('.strip img')].map(i => i.naturalWidth)")
    assert sizes == [10, 8]


def test_charts_wait_until_they_are_near(browser, paths):
    page = open_page(browser, paths["report"], viewport={"width": 1280, "height": 300})
    before = page.locator("[data-panel] .main-svg:first-child").count()
    assert before < PANELS
    page.locator("[data-figure=heat]").scroll_into_view_if_needed()
    page.wait_for_selector("[data-figure=heat] .main-svg")
    page.close()


def test_axes_switch(page):
    sides = ["iterations (updates)", "epochs (passes over the data)"]
    assert page.evaluate(TITLES, "lines") == sides
    press(page, "lines", "x", "seconds")
    assert page.evaluate(TITLES, "lines") == ["seconds of updates"] * 2
    press(page, "lines", "x", "")
    assert page.evaluate(TITLES, "lines") == sides
    press(page, "lines", "y", "suboptimality")
    words = page.evaluate("plots('lines')[0].layout.yaxis.title.text")
    assert words == "primal objective minus optimum"
    for scale in ("linear", "log"):
        press(page, "lines", "scale", scale)
        assert page.evaluate("plots('lines').map(p => p.layout.yaxis.type)") == [scale] * 2
    assert page.evaluate(TITLES, "lambdas") == ["epochs (passes over the data)"] * 2


def test_solvers_are_toggled(page):
    count = "plots('lines')[1].data.filter(t => t.name === 'Pegasos' && t.visible).length"
    assert page.evaluate(count) == 1
    page.click("[data-figure=lines] [data-line=Pegasos]")
    assert page.evaluate(count) == 0
    assert page.get_attribute("[data-figure=lines] [data-line=Pegasos]", "aria-pressed") == "false"
    page.click("[data-figure=lines] [data-line=Pegasos]")
    assert page.evaluate(count) == 1


def test_hovering_shows_values(page):
    page.locator("[data-figure=lines]").scroll_into_view_if_needed()
    box = page.locator("[data-figure=lines] .scatterlayer .point").nth(2).bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.wait_for_selector("[data-figure=lines] .hoverlayer .hovertext")


def test_links_lead_somewhere(page):
    lost = page.evaluate(
        "[...document.querySelectorAll('a[href^=\"#\"]')].map(a => a.getAttribute('href'))"
        ".filter(h => !document.getElementById(h.slice(1)))"
    )
    assert lost == []
    assert page.locator("#E4-11").count() == 1
    assert page.locator("[data-item]").count() == 18  # what report S4 contains


@pytest.mark.parametrize("width", [400, 1600])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_layout_holds(page, width, scheme):
    page.emulate_media(color_scheme=scheme)
    page.set_viewport_size({"width": width, "height": 900})
    until(page, f"document.documentElement.scrollWidth <= {width}")
    drawn = "[...document.querySelectorAll('.main-svg:first-child')].map(s => s.clientWidth)"
    until(page, f"Math.max(...{drawn}) <= {width}")
    assert min(page.evaluate(drawn)) >= 280


def test_names_are_text(page):
    assert NASTY in page.text_content("h1")
    assert page.locator("main i").count() == 0


def test_print_draws_all(browser, paths):
    page = open_page(browser, paths["report"], viewport={"width": 1280, "height": 300})
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    drawn = "document.querySelectorAll('[data-panel] .main-svg:first-child').length"
    until(page, f"{drawn} === {PANELS}")
    page.emulate_media(media="print")
    assert not page.is_visible("nav")
    page.close()
