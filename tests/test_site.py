"""The documentation in a browser, from plain files: search, navigation, copy buttons, all pages."""

import re
from pathlib import Path

import pytest

from test_page import BROWSER, OPTIONS, playwright

BUILT = Path(__file__).parents[1] / "docs" / "build"
SITE = next((BUILT / kind for kind in ("quick", "html") if (BUILT / kind).is_dir()), None)
pytestmark = pytest.mark.skipif(
    SITE is None or BROWSER is None, reason="needs `make docs-quick` and Chromium or Chrome"
)

FAULTS = """() => {
    const broken = [...document.images].filter(i => i.complete && !i.naturalWidth).map(i => i.src);
    const root = document.documentElement;
    const wide = root.scrollWidth > root.clientWidth ? ["wider than the screen"] : [];
    const title = document.querySelectorAll("h1").length == 1 ? [] : ["no title, or several"];
    const texts = (what) => [...document.querySelectorAll(what)].map(e => e.innerText);
    const tables = texts("p").some(t => t.startsWith("| ")) ? ["a table that is none"] : [];
    const outputs = texts(".highlight-console pre").some(t => /^\\.\\.\\.$/m.test(t));
    const scrolls = (e) => ["auto", "scroll", "hidden"].includes(getComputedStyle(e).overflowX);
    const cut = [...document.querySelectorAll("article *:not(a.headerlink)")].filter(e => {
        if (e.getBoundingClientRect().right <= root.clientWidth + 1) return false;
        for (let up = e; up && up.tagName != "ARTICLE"; up = up.parentElement)
            if (scrolls(up)) return false;
        return true;
    }).map(e => "cut off: " + e.textContent.slice(0, 60));
    const left = outputs ? ["an output left out"] : [];
    return [...broken, ...wide, ...title, ...tables, ...left, ...cut.slice(0, 3)];
}"""


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=BROWSER, args=OPTIONS)
        yield browser
        browser.close()


@pytest.fixture
def page(browser):
    """The landing page; nothing but files may be asked for."""
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.set_default_timeout(10_000)
    page.requests = []
    page.on("request", lambda request: page.requests.append(request.url))
    page.goto((SITE / "index.html").as_uri())
    yield page
    assert all(url.startswith(("file:", "data:")) for url in page.requests)
    page.close()


def title(page):
    return page.locator("h1").inner_text().rstrip("#")


@pytest.mark.parametrize(
    ("clicks", "found"),
    [
        (["The command line"], "zerogap train train.csv --target income"),
        (["Get started"], "zerogap train customers.csv"),
        (["The audit"], "zg.certify(model, X, y)"),
        (["How to read a certificate"], "relative_gap is gap / primal"),
        (["Reference", "How to read a certificate"], "relative_gap is gap / primal"),
        (["what people ask for most", "every fit ends with a number"], "failed to converge"),
    ],
)
def test_what_newcomers_look_for_is_few_clicks_away(page, clicks, found):
    for text in clicks:
        page.locator("article").get_by_role("link", name=text, exact=True).first.click()
        page.wait_for_load_state()
    assert found in page.locator("article").inner_text()


def test_navigation_at_the_top_and_the_side(page):
    page.locator("header").get_by_role("link", name="Understand").click()
    assert title(page) == "Understand"
    page.get_by_role("link", name="What a duality gap proves").first.click()
    side = page.locator("#pst-primary-sidebar")
    side.get_by_role("link", name="What rounding does to a proof").click()
    assert title(page) == "What rounding does to a proof"
    page.locator("a.right-next").click()
    assert title(page) == "What else a certificate makes possible"


def test_search_finds_a_page(page):
    page.locator("button.search-button__button:visible").first.click()
    box = page.locator("input[type=search]:visible")
    box.fill("leave-one-out")
    box.press("Enter")
    hit = page.locator("#search-results li a", has_text="exact leave-one-out error").first
    hit.click()
    assert title(page) == "How do I get the exact leave-one-out error?"


def test_copy_buttons_copy_the_code(page):
    block = page.locator("div.highlight-python").first
    block.hover()
    block.locator("button.copybtn").click()
    page.evaluate("document.body.prepend(document.createElement('textarea'))")
    area = page.locator("textarea").first
    area.focus()
    page.keyboard.press("Control+V")
    assert area.input_value().strip() == block.locator("pre").inner_text().strip()
    assert "zg.certify" in area.input_value()


def test_light_and_dark(page):
    colours = {}
    for mode in ("light", "dark"):
        page.locator("button.theme-switch-button:visible").click()
        page.locator(f"button.theme-change-button[data-mode={mode}]:visible").click()
        page.wait_for_selector(f"html[data-theme={mode}]")
        colours[mode] = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert colours["light"] == "rgb(255, 255, 255)" != colours["dark"]


def test_no_page_loads_anything_from_elsewhere():
    """Links may lead anywhere; scripts, styles, fonts and pictures are files of the site."""
    loaded = re.compile(
        r"""<(?:script|img|iframe|source)\b[^>]*\bsrc="(?:https?:)?//[^"]*"
                            |<link\b[^>]*\bhref="(?:https?:)?//[^"]*" """,
        re.VERBOSE,
    )
    pages = {str(p.relative_to(SITE)): p.read_text("utf-8") for p in SITE.rglob("*.html")}
    assert {name: hits for name, text in pages.items() if (hits := loaded.findall(text))} == {}


@pytest.mark.parametrize("width", [1280, 400])
def test_every_page_fits_the_screen_and_has_its_pictures(browser, width):
    page = browser.new_page(viewport={"width": width, "height": 900})
    pages = [
        *SITE.glob("*.html"),
        *(file for file in sorted(SITE.rglob("*/*.html")) if "_static" not in file.parts),
    ]
    names = sorted(SITE.rglob("api/*.html"), key=lambda p: len(p.name))  # the longest are widest
    pages = [p for p in pages if p.parent.name != "api"] + names[::40] + names[-8:]
    assert len(pages) > 100
    faults = {}
    for file in pages:
        if file.name in ("search.html", "genindex.html"):
            continue
        page.goto(file.as_uri(), wait_until="load")
        if found := page.evaluate(FAULTS):
            faults[str(file.relative_to(SITE))] = found
    assert faults == {}
    page.close()
