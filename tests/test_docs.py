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


PAGES = [
    *ROOT.glob("*.md"),
    *(ROOT / "benchmarks").glob("*.md"),
    *(page for page in (ROOT / "docs").rglob("*.md") if "build" not in page.parts),
]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_pages_link_to_what_exists(page):
    """Links and pictures point to files, or to pages that the site makes."""
    made = ("docs/gallery", "docs/reference")
    for target in re.findall(r"\]\(([^)#\s]+)", page.read_text(encoding="utf-8")):
        if "://" not in target:
            file = (page.parent / target).resolve()
            inside = file.relative_to(ROOT).as_posix()
            there = file.exists() or file.with_suffix(".ipynb").exists()  # a page of a notebook
            assert there or inside.startswith(made), f"{page.name} links to {target}"


def test_the_reference_has_every_variable_format_and_exit_code():
    from zerogap.cli import output
    from zerogap.readers.formats import _SUFFIXES, FORMATS

    text = (ROOT / "docs" / "reference" / "files.md").read_text(encoding="utf-8")
    named = re.compile(r"environ(?:\.get\(|\[)\s*[\"'](\w+)")
    variables = {name for path in SOURCES for name in named.findall(path.read_text("utf-8"))}
    assert {"ZEROGAP_DATA", "ZEROGAP_NUMBA_CACHE"} <= variables
    for name in variables:
        assert re.search(rf"`{name}(=\w+)?`", text), name
    formats = re.findall(r"^\| `(\w+)` \| `\.", text, re.MULTILINE)
    assert sorted(formats) == sorted(FORMATS)
    for suffix in _SUFFIXES:
        assert f"`.{suffix}`" in text
    codes = {0, output.FAILURE, output.USAGE, output.NOT_REACHED, output.INTERRUPTED}
    assert set(map(int, re.findall(r"^\| (\d+) \|", text, re.MULTILINE))) == codes


def test_the_reference_has_every_command_option_and_name():
    """It is made from the code: nothing that is public may be left out."""
    import reference_pages
    import typer

    from zerogap.cli import make_app

    leaves = dict(reference_pages._leaves(typer.main.get_command(make_app()), ("zerogap",)))
    assert {("zerogap", "train"), ("zerogap", "data", "convert")} <= set(leaves)
    for path, command in leaves.items():
        section = "\n".join(reference_pages._section(path, command))
        shown = [p for p in command.params if not p.hidden and p.name != "help"]
        names = [name for p in shown for name in (*p.opts, *p.secondary_opts)]
        assert [n for n in names if n.startswith("-") and f"`{n}`" not in section] == [], path
    pages = {name for _, names in reference_pages.sections().values() for name in names}
    assert {f"zerogap.{name}" for name in zerogap._MODULES} <= pages
    top = [getattr(zerogap, name) for name in zerogap._MODULES]
    for module in zerogap._SUBMODULES:
        room = importlib.import_module(f"zerogap.{module}")
        for name in getattr(room, "__all__", ()):
            thing = getattr(room, name)
            known = not callable(thing) or any(thing is other for other in top)
            assert known or f"zerogap.{module}.{name}" in pages, name


@pytest.mark.parametrize(
    "library", ["scikit-learn", "liblinear", "glmnet", "vowpal-wabbit", "statsmodels"]
)
def test_tables_of_other_libraries_name_what_there_is(library):
    """What stands under "here" can be called, or is a parameter, an attribute or a name."""
    from sklearn import feature_extraction, linear_model, preprocessing, svm

    from zerogap.losses.registry import ALL_LOSSES

    there = {**vars(linear_model), **vars(svm)}
    here = {name: getattr(zerogap, name) for name in zerogap._MODULES}
    numbers = dict.fromkeys(("C", "n", "a", "e", "q", "r", "s", "t", "scale", "tiny"), 0.5)
    model = zerogap.LinearClassifier(random_state=0).fit([[0.0], [1.0], [2.0]], [0, 1, 1])
    words = {*model.get_params(), *vars(model), *here, *ALL_LOSSES}
    words |= {"sample_weight", "lam_min", "best", "simplest", "HashingVectorizer"}
    assert hasattr(feature_extraction.text, "HashingVectorizer")
    here["StandardScaler"] = preprocessing.StandardScaler
    calls = 0
    page = (ROOT / "docs" / "coming-from" / f"{library}.md").read_text(encoding="utf-8")
    for row in re.findall(r"^\| (.*) \|$", page, re.MULTILINE):
        theirs, ours, *_ = (re.findall(r"`([^`]+)`", cell) for cell in row.split(" | "))
        for code in ours:
            if re.match(r"[A-Z]\w*\(", code):
                eval(code.replace("...", ""), here | numbers)
                calls += 1
            else:
                name = re.match(r"\"?([\w-]+)", code)[1]
                assert name in words, code
        for code in theirs if library == "scikit-learn" else ():
            if "(" in code:
                eval(code, there | numbers)
    assert calls >= 1


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


def test_what_people_ask_for_most_has_a_page_for_each_question():
    folder = ROOT / "docs" / "how-to"
    rows = re.findall(r"^\| (.*) \| (.*) \|$", (folder / "frequent.md").read_text("utf-8"), re.M)
    questions = dict(rows[2:])  # below the heading and its line
    assert len(questions) == 25
    for question, answer in questions.items():
        pages = re.findall(r"\]\(([^)#]+)", answer)
        assert pages, question
        for page in pages:
            made = page.startswith("../gallery/")  # from the example of that name
            source = f"../../examples/gallery/{Path(page).stem}.py" if made else page
            assert (folder / source).is_file(), page


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


def test_each_block_shows_its_own_output(tmp_path):
    from code_blocks import run_page, show

    page = tmp_path / "page.md"
    page.write_text("".join(f"```python\nprint({k})\n```\n\n```text\n...\n```\n" for k in (1, 2)))
    shown = []
    run_page(page, shown)
    site = type("Site", (), {"shown_outputs": {"page": shown}})
    source = [page.read_text()]
    show(site, "page", source)
    assert re.findall(r"```text\n(.*)\n```", source[0]) == ["1", "2"]


def test_cells_of_tutorials_show_text_tables_and_figures(tmp_path):
    pytest.importorskip("matplotlib").use("Agg")
    from sphinx.errors import ExtensionError
    from tutorial_pages import outputs_of

    names, picture = {}, tmp_path / "images" / "cell.png"
    assert outputs_of("print('old\\rnew')\n1 + 1", names, "cell", picture) == [
        "```text no-run\nnew\n```",
        "```text no-run\n2\n```",
    ]
    table = "import zerogap as zg\nzg.Certificate(1.0, 0.9, 0.1, stop_reason='<b>')"
    (html,) = outputs_of(table, names, "cell", picture)
    assert "&lt;b&gt;" in html
    assert not picture.exists()
    draw = "import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()"
    assert "(images/cell.png)" in outputs_of(draw, names, "cell", picture)[0]
    assert picture.stat().st_size > 1000
    with pytest.raises(ExtensionError, match="cell: division by zero"):
        outputs_of("1 / 0", names, "cell", picture)


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
    "name", ["audit", "convergence", "duality", "certified", "path", "forgetting", "leave_one_out"]
)
def test_examples_draw_their_pictures(name, tmp_path, monkeypatch):
    picture = tmp_path / f"{name}.png"
    monkeypatch.setattr(sys, "argv", [f"{name}.py", "--out", str(picture)])
    runpy.run_path(str(ROOT / "examples" / f"{name}.py"), run_name="__main__")
    assert picture.stat().st_size > 10_000
