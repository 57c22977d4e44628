"""Examples in the documentation run, and public names are documented."""

import doctest
import importlib
import inspect
import re
import runpy
import sys
from pathlib import Path

import numpy as np
import pytest

import zerogap

ROOT = Path(__file__).parents[1]
SOURCES = sorted((ROOT / "src" / "zerogap").rglob("*.py"))
MODULES = [
    ".".join(path.relative_to(ROOT / "src").with_suffix("").parts).removesuffix(".__init__")
    for path in SOURCES
    if ">>> " in path.read_text(encoding="utf-8")
]
OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


@pytest.mark.parametrize("module", MODULES)
def test_docstring_examples(module):
    outcome = doctest.testmod(importlib.import_module(module), optionflags=OPTIONS)
    assert outcome.failed == 0


@pytest.mark.parametrize("name", sorted(zerogap._MODULES))
def test_public_names_are_documented(name):
    thing = getattr(zerogap, name)
    assert inspect.getdoc(thing)
    if inspect.isfunction(thing) or name in (
        "LinearClassifier",
        "LinearRegressor",
        "Problem",
        "SDCA",
    ):
        assert ">>>" in inspect.getdoc(thing), "an example that runs"
        parameters = set(inspect.signature(thing).parameters)
        described = set(re.findall(r"[A-Za-z_0-9]+", inspect.getdoc(thing).split("Examples")[0]))
        assert parameters <= described


PAGES = [  # read in the repository; what the site links to, its own build checks
    *ROOT.glob("*.md"),
    *(ROOT / "benchmarks").glob("*.md"),
    *(ROOT / "docs" / "decisions").glob("*.md"),
    *(ROOT / "docs" / f"{name}.md" for name in ("architecture", "five-reports", "proof-format")),
]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_to_files(page):
    text = page.read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        path = target.partition("#")[0]
        if path and "://" not in path:
            assert (page.parent / path).exists(), f"{page.name} leads to {target}"


def test_architecture_names_what_there_is():
    """Each `name` after a path in the table is defined in that file."""
    page = ROOT / "docs" / "architecture.md"
    rows = [line for line in page.read_text(encoding="utf-8").splitlines() if line[:2] == "| "]
    named = 0
    for row in rows:
        for path, names in re.findall(r"\(\.\./(src/[^)]+)\): ((?:`[^`]+`(?: and )?)+)", row):
            source = (ROOT / path).read_text(encoding="utf-8")
            for name in re.findall(r"[A-Za-z_]+", names.replace(" and ", " ")):
                assert re.search(rf"(def|class) {name}\b|^{name}\b.*=", source, re.MULTILINE), name
                named += 1
    assert named >= 15
    rooms = [p.name for p in (ROOT / "src" / "zerogap").iterdir() if (p / "__init__.py").exists()]
    drawing = page.read_text(encoding="utf-8").split("```")[1]
    assert [room for room in rooms if room not in drawing] == []


def test_quick_tests_are_there():
    """What `make test-quick` runs: files, and functions of files that would take too long."""
    for line in (ROOT / "tests" / "quick.txt").read_text(encoding="utf-8").split():
        path, _, name = line.partition("::")
        assert f"def {name}" in (ROOT / path).read_text(encoding="utf-8"), line


def test_results_are_those_of_the_recorded_tables():
    import page

    text = page.PAGE.read_text(encoding="utf-8")
    assert page.filled(text) == text, "run `make results`"
    shown = set(re.findall(r"images/results/(\w+)\.png", text))
    assert shown == set(page.PICTURES) == {file.stem for file in page.IMAGES.iterdir()}


PAGES = [page for page in sorted((ROOT / "docs").rglob("*.md")) if "build" not in page.parts]


def test_pages_link_to_what_exists():
    """Links and pictures of pages, the README and CONTRIBUTING point to files that exist."""
    made = ("docs/gallery", "docs/reference")  # when the site is built
    for page in [*PAGES, ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md"]:
        for target in re.findall(r"\]\(([^)#\s]+)", page.read_text(encoding="utf-8")):
            if "://" in target:
                continue
            file = (page.parent / target).resolve()
            inside = file.relative_to(ROOT).as_posix()
            assert file.exists() or inside.startswith(made), f"{page.name} links to {target}"


def test_readme_is_a_landing_page_that_is_true():
    import badges

    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 200
    assert text.index("zg.certify(") < text.index("from zerogap.linear_model") < text.index("![SGD")
    pictures = re.findall(r"\]\((docs/images/\w+(?:/\w+)?\.png)\)", text)
    assert len(pictures) == 3
    for name, words in badges.facts().items():
        assert f"](docs/images/badges/{name}.svg)" in text
        assert (badges.FOLDER / f"{name}.svg").read_text(encoding="utf-8") == badges.drawn(*words)
    results = (ROOT / "benchmarks" / "RESULTS.md").read_text(encoding="utf-8")
    (race,) = re.findall(r"^\| all \| (.*) \|$", results, re.MULTILINE)
    fits, first, second, behind, unproved = race.split(" | ")
    assert f"| {first} to a gap of 1e-3, {second} to 1e-6; of {fits} fits {behind} are " in text
    assert f"behind, {unproved} not proved" in text


def test_every_example_of_the_gallery_is_short_and_has_a_picture():
    examples = sorted((ROOT / "examples" / "gallery").glob("plot_*.py"))
    assert len(examples) >= 25
    for example in examples:
        text = example.read_text(encoding="utf-8")
        assert text.count("plt.show()") == 1, example.name
        assert len(text.splitlines()) <= 80, example.name


def test_blocks_of_a_page_are_run_and_compared(tmp_path):
    from code_blocks import BlockError, run_page

    page = tmp_path / "page.md"
    page.write_text("```python\nprint(1 + 1)\n```\n\n```text\n2\n```\n")
    assert run_page(page) == 1
    page.write_text("```python\nprint(1 + 1)\n```\n\n```text\n3\n```\n")
    with pytest.raises(BlockError, match="line 5"):
        run_page(page)
    page.write_text("```console\n$ echo hello\nhello\n$ echo bye\nhello\n```\n")
    with pytest.raises(BlockError, match="echo bye"):
        run_page(page)


def test_dir_lists_the_public_names():
    assert set(zerogap.__all__) == set(dir(zerogap))
    assert set(zerogap.__all__) == {*zerogap._MODULES, *zerogap._SUBMODULES, "__version__"}
    with pytest.raises(AttributeError, match="no attribute 'LinearSVM'"):
        zerogap.LinearSVM  # noqa: B018


def test_simulated_data():
    X, y, beta = zerogap.datasets.make_simulated(2000, random_state=0)
    assert X.shape == (2000, 10)
    assert set(y) == {-1.0, 1.0}
    agreement = np.mean(np.sign(X @ beta) == y)
    expected = 1 - np.arctan(1 / np.linalg.norm(beta)) / np.pi  # the angle that the noise adds
    assert agreement == pytest.approx(expected, abs=0.03)
    noiseless = zerogap.datasets.make_simulated(200, noise=0.0, random_state=0)
    assert np.all(np.sign(noiseless.X @ noiseless.beta) == noiseless.y)


def test_examples_run(capsys):
    runpy.run_path(str(ROOT / "examples" / "pipelines.py"), run_name="__main__")
    lines = capsys.readouterr().out.splitlines()[1:]
    assert len(lines) == 12
    assert all(float(line.split()[-1]) <= 1e-4 for line in lines)


@pytest.mark.parametrize(
    "name", ["audit", "convergence", "certified", "path", "forgetting", "leave_one_out"]
)
def test_examples_draw_their_pictures(name, tmp_path, monkeypatch):
    picture = tmp_path / f"{name}.png"
    monkeypatch.setattr(sys, "argv", [f"{name}.py", "--out", str(picture)])
    runpy.run_path(str(ROOT / "examples" / f"{name}.py"), run_name="__main__")
    assert picture.stat().st_size > 10_000
