"""The page of a comparison, opened in a browser."""

import csv
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

import zerogap as zg
from zerogap.cli import make_app
from zerogap.comparison import compare
from zerogap.comparison.page import render

playwright = pytest.importorskip("playwright.sync_api")

BROWSER = next(filter(None, map(shutil.which, ("chromium", "google-chrome", "chrome"))), None)
OPTIONS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
NAME = "<i>a & b</i></script>"
AXIS_TITLES = "() => [plot.layout.xaxis.title.text, plot.layout.yaxis.title.text]"
LINES = "() => plot.data.filter(t => t.name).map(t => [t.name, t.x, t.y, t.visible])"


@pytest.fixture(scope="module")
def outcome():
    X, y, _ = zg.datasets.make_simulated(160, 4, random_state=3)
    problem = zg.Problem(X[:100], y[:100], "smooth-hinge", lam=0.01)
    return compare(
        problem,
        ["sdca", "pegasos", "gd"],
        max_epochs=15,
        seeds=[0, 1],
        X_test=X[100:],
        y_test=y[100:],
        data=NAME,
    )


@pytest.fixture(scope="module")
def path(outcome, tmp_path_factory):
    return outcome.save(tmp_path_factory.mktemp("page"))["page"]


@pytest.fixture(scope="module")
def browser():
    if BROWSER is None:
        pytest.skip("no Chromium or Chrome here")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=BROWSER, args=OPTIONS)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def opened(browser, path):
    """The page, opened; every complaint and every request it makes is kept."""
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.complaints, page.requests = [], []
    page.on("console", lambda message: page.complaints.append(message.text))
    page.on("pageerror", lambda error: page.complaints.append(str(error)))
    page.on("request", lambda request: page.requests.append(request.url))
    page.goto(path.as_uri())
    page.wait_for_selector("#plot .scatterlayer .trace .js-line", state="attached")
    return page


@pytest.fixture
def page(opened):
    """The page as it is at first: opening it anew for every test would take long."""
    opened.emulate_media(color_scheme="light")
    opened.set_viewport_size({"width": 1280, "height": 900})
    for group, value in (("x", "epoch"), ("y", "gap"), ("scale", "log")):
        press(opened, group, value)
    yield opened
    assert opened.complaints == []


def press(page, group, value):
    page.click(f"[data-group={group}][data-value={value}]")


def test_nothing_is_wrong_and_nothing_is_fetched(page, path):
    for group, values in {
        "y": ("suboptimality", "test_error", "gap"),
        "x": ("examples", "seconds", "cpu_seconds", "epoch"),
        "scale": ("linear", "log"),
    }.items():
        for value in values:
            press(page, group, value)
            assert page.get_attribute(f"[data-value={value}]", "aria-pressed") == "true"
    assert page.requests == [path.as_uri()]


def test_curves_are_drawn(page, outcome):
    drawn = page.evaluate(LINES)
    assert [name for name, *_ in drawn] == outcome.names
    curve = outcome.curve("SDCA", "epoch", "gap")
    assert drawn[0][1] == curve.x.tolist()
    assert drawn[0][2] == pytest.approx(curve.middle.tolist(), rel=1e-6)
    lines = page.locator("#plot .scatterlayer .js-line").count()
    assert lines == len(outcome.names)
    assert page.locator("#plot .scatterlayer .point").count() > 10


def test_buttons_change_axes_and_data(page, outcome):
    assert page.evaluate(AXIS_TITLES) == ["epochs (passes over the data)", "duality gap"]
    press(page, "x", "seconds")
    assert page.evaluate(AXIS_TITLES)[0] == "seconds of updates"
    seconds = outcome.curve("GD", "seconds", "gap").x
    assert page.evaluate(LINES)[2][1] == pytest.approx(seconds.tolist(), rel=1e-6)
    press(page, "y", "test_error")
    assert page.evaluate(AXIS_TITLES)[1] == "test error (misclassified rows)"
    errors = outcome.curve("GD", "epoch", "test_error").middle
    assert page.evaluate(LINES)[2][2] == pytest.approx(errors.tolist(), rel=1e-6)
    assert page.evaluate("() => plot.layout.yaxis.type") == "linear"
    press(page, "y", "gap")
    assert page.evaluate("() => plot.layout.yaxis.type") == "log"
    press(page, "scale", "linear")
    assert page.evaluate("() => plot.layout.yaxis.type") == "linear"


def test_target_lies_on_its_value(page, outcome):
    shape = page.locator("#plot .shapelayer path").first.bounding_box()
    axis = page.evaluate("() => plot.getBoundingClientRect().top + plot._fullLayout.yaxis._offset")
    pixel = page.evaluate(f"() => plot._fullLayout.yaxis.d2p({outcome.target!r})")
    assert shape["y"] + shape["height"] / 2 == pytest.approx(axis + pixel, abs=2)


def test_legend_hides_and_shows(page):
    page.click("[data-solver='1']")
    assert [visible for *_, visible in page.evaluate(LINES)] == [True, False, True]
    assert page.get_attribute("[data-solver='1']", "aria-pressed") == "false"
    page.click("[data-solver='1']")
    assert [visible for *_, visible in page.evaluate(LINES)] == [True, True, True]


def test_hovering_shows_values(page):
    box = page.locator("#plot .scatterlayer .point").nth(3).bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.wait_for_selector("#plot .hoverlayer .hovertext")
    assert "range" in page.text_content("#plot .hoverlayer .hovertext")


def test_table_holds_the_certificates(page, outcome):
    rows = page.locator("tbody tr")
    assert rows.count() == len(outcome.names)
    for k, line in enumerate(outcome.summary()):
        text = rows.nth(k).inner_text()
        assert line.name in text
        assert f"{line.reached} of {line.runs}" in text
        assert f"{line.certificate.gap:.1e}" in text
        assert f"{line.certificate.dual:.7g}" in text
    assert page.inner_text("h1") == f"Solvers compared on {NAME}"


@pytest.mark.parametrize("width", [320, 390, 1280])
def test_nothing_is_wider_than_the_screen(page, width):
    page.set_viewport_size({"width": width, "height": 800})
    page.wait_for_timeout(300)
    assert page.evaluate("() => document.documentElement.scrollWidth") <= width
    assert page.locator("#plot .main-svg").first.bounding_box()["width"] <= width


def test_dark_mode(page):
    light = page.evaluate("() => getComputedStyle(document.body).backgroundColor")
    page.emulate_media(color_scheme="dark")
    dark = page.evaluate("() => getComputedStyle(document.body).backgroundColor")
    assert (light, dark) == ("rgb(245, 246, 248)", "rgb(16, 18, 21)")
    page.wait_for_function("() => plot.layout.font.color === '#e8eaed'")


def test_page_tells_nothing_about_the_user(outcome):
    import socket

    own = render(outcome).split("<script>")  # without plotly's code
    text = own[0] + own[-1]
    assert socket.gethostname() not in text
    assert str(Path.home()) + "/" not in text
    assert "&lt;i&gt;a &amp; b&lt;/i&gt;&lt;/script&gt;" in text


EVIL = '"></title></script><script>document.title = "broken into"</script><img src=x onerror=f()>'
EXPERIMENT = """
title = '{evil}'
question = '{evil}'
losses = ["hinge"]
lams = [0.1]
seeds = 1
epochs = 2

[[data]]
name = "{file}"
options = {{ target = '{evil}' }}

[[solvers]]
name = '{evil}'
solver = "sdca"
"""


@pytest.fixture
def evil_table(tmp_path):
    """A table whose column names, categories and labels are pieces of HTML."""
    path = tmp_path / "<b>evil'.csv"
    rows = [[f"{k % 7}", (EVIL, "plain")[k % 3 == 0], ("no", EVIL)[k % 2]] for k in range(40)]
    with open(path, "w", newline="") as file:
        csv.writer(file).writerows([[f"a{EVIL}", f"b{EVIL}", EVIL], *rows])
    return path


def check_nothing_broke_out(browser, page_file):
    page = browser.new_page()
    page.goto(page_file.as_uri())
    assert page.title() != "broken into"
    assert "broken into" in page.content()  # as text
    assert page.locator("img[src=x]").count() == 0


def test_hostile_names_stay_text_in_a_report(browser, evil_table, tmp_path):
    page_file = tmp_path / "report.html"
    command = ["train", str(evil_table), "--target", EVIL, "--report", str(page_file)]
    result = CliRunner().invoke(make_app(), command)
    assert result.exit_code == 0, result.output
    check_nothing_broke_out(browser, page_file)


def test_hostile_names_stay_text_in_an_experiment(browser, evil_table, tmp_path):
    table = tmp_path / "table.csv"
    table.write_text(evil_table.read_text())
    config = tmp_path / "experiment.toml"
    config.write_text(EXPERIMENT.format(evil=EVIL, file=table.name))
    out = tmp_path / "out"
    result = CliRunner().invoke(make_app(), ["compare", "--config", str(config), "--out", str(out)])
    assert result.exit_code == 0, result.output
    (page_file,) = out.glob("*.html")
    check_nothing_broke_out(browser, page_file)
