"""The page on security says what is so: extras and their packages, and nothing is unpickled."""

import ast
import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "reference" / "security.md").read_text()
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
READS_CODE = {"pickle", "cPickle", "dill", "cloudpickle", "marshal", "shelve", "yaml"}


def packages(requirements):
    """Return the names of packages, without versions and parts of them."""
    return {re.match(r"[\w-]+", requirement)[0].lower() for requirement in requirements}


def test_the_list_of_extras_is_that_of_the_project():
    rows = dict(re.findall(r"^\| `(\w+)` \| (.+?) \|$", PAGE, re.MULTILINE))
    listed = {name: set(text.lower().split(", ")) for name, text in rows.items()}
    known = PROJECT["optional-dependencies"].items()
    assert listed == {name: packages(given) for name, given in known if name != "all"}
    heading = re.search(r"packages besides (.+?) \|", PAGE)[1].lower()
    assert set(re.split(r", | and ", heading)) == packages(PROJECT["dependencies"])


def test_nothing_that_is_read_is_unpickled():
    for path in (ROOT / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                assert not {alias.name for alias in node.names} & READS_CODE, path
            elif isinstance(node, ast.ImportFrom):
                assert node.module not in READS_CODE, path
            elif isinstance(node, ast.Call):
                named = {word.arg: word.value for word in node.keywords}
                called = getattr(node.func, "attr", "")
                owner = getattr(getattr(node.func, "value", None), "id", "")
                if (owner, called) == ("np", "load"):
                    assert "allow_pickle" not in named or named["allow_pickle"].value is False, path
                assert (owner, called) not in {("joblib", "load"), ("torch", "load")}, path
