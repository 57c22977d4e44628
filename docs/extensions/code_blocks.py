"""Run what the pages show: Python blocks, command lines, and the output that stands below them.

A page's ```python blocks run one after the other in one namespace; a ```text block right below is
what they print, where `...` stands for anything.  Lines of ```console blocks that begin with `$ `
run in a shell, and the lines below them are their output.  All blocks of a page share an empty
directory.  A block that is meant to be read only is marked ```python no-run.

The site shows what was printed, in place of outputs with `...`.
"""

from __future__ import annotations

import contextlib
import doctest
import io
import os
import re
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any, NamedTuple

from sphinx.errors import ExtensionError

FENCE = re.compile(r"^```(\w+)([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LENIENT = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
LONGEST_COMMAND = 300  # seconds


class Block(NamedTuple):
    """A fenced block: its language, the line it begins on, and its text."""

    language: str
    line: int
    text: str


class BlockError(AssertionError):
    """A block that fails, or prints something else than the page says."""


def blocks_of(page: Path) -> list[Block]:
    """Return the blocks of a page that run, and the outputs that follow them."""
    text = page.read_text(encoding="utf-8")
    found = []
    for match in FENCE.finditer(text):
        if "no-run" not in match[2] and match[1] in ("python", "text", "console"):
            found.append(Block(match[1], text.count("\n", 0, match.start()) + 1, match[3]))
    return found


def run_page(page: Path, shown: list[tuple[str, str]] | None = None) -> int:
    """Run all blocks of a page; return how many there were.

    `shown` takes the text of each block with `...`, and what was printed.
    """
    shown = [] if shown is None else shown
    names: dict[str, Any] = {"__name__": "__main__"}
    printed, count = "", 0
    here = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            for block in blocks_of(page):
                where = f"{page.name}, line {block.line}"
                if block.language == "text":
                    compare(block.text, printed, where)
                    if "..." in block.text:
                        shown.append((block.text, printed))
                    continue
                count += 1
                if block.language == "python":
                    printed = run_python(block, names, where)
                else:
                    text = run_console(block, where)
                    if "..." in block.text:
                        shown.append((block.text, text))
        finally:
            os.chdir(here)
    return count


def run_python(block: Block, names: dict[str, Any], where: str) -> str:
    """Run a block in the namespace of its page; return what it printed."""
    out = io.StringIO()
    code = compile("\n" * block.line + block.text, where, "exec")
    with contextlib.redirect_stdout(out), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec(code, names)
    return out.getvalue()


def run_console(block: Block, where: str) -> str:
    """Run the lines of a block that begin with `$ `, and compare the others with their output.

    Return the block with what was printed in place of outputs that have `...`.
    """
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    text = []
    for part in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]:
        lines, _, expected = part.partition("\n")
        while lines.endswith("\\"):
            more, _, expected = expected.partition("\n")
            lines += "\n" + more
        command = lines.replace("\\\n", "")
        done = subprocess.run(
            command,
            shell=True,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=LONGEST_COMMAND,
            env={**os.environ, "PATH": path, "COLUMNS": "100"},
        )
        printed = done.stdout.replace(f"{Path.cwd()}{os.sep}", "")  # files of the page's folder
        if expected.strip():
            compare(expected, printed, f"{where}: {command}")
        elif done.returncode not in (0, 3):  # 3: stopped before the gap that was asked for
            raise BlockError(f"{where}: {command} failed:\n{printed}")
        text.append(f"$ {lines}\n{printed if '...' in expected else expected}")
    return "".join(text)


def compare(expected: str, printed: str, where: str) -> None:
    """Refuse a page whose output differs from what its code prints."""
    if not doctest.OutputChecker().check_output(expected, printed, LENIENT):
        raise BlockError(f"{where}: the page says\n{expected}\nand the code prints\n{printed}")


def run_all(app: Any) -> None:
    """Run every page before the site is built."""
    if not app.config.run_code_blocks:
        return
    root = Path(app.srcdir)
    failures = []
    for page in sorted(root.rglob("*.md")):
        if "build" not in page.parts and blocks_of(page):
            name = page.relative_to(root).with_suffix("").as_posix()
            try:
                run_page(page, app.shown_outputs.setdefault(name, []))
            except Exception as error:  # whatever the code of a page raises
                failures.append(f"{page.relative_to(root)}: {error}")
    if failures:
        raise ExtensionError("\n\n".join(failures))


def show(app: Any, page: str, source: list[str]) -> None:
    """Put what the code printed in place of outputs with `...`."""
    done, rest = "", source[0]
    for text, printed in app.shown_outputs.get(page, []):  # blocks may have the same text
        before, found, rest = rest.partition(f"\n{text}```")
        done += before + (f"\n{printed.rstrip()}\n```" if found else "")
    source[0] = done + rest


def setup(app: Any) -> dict[str, Any]:
    """Register the run with Sphinx."""
    app.add_config_value("run_code_blocks", True, "env")
    app.shown_outputs = {}
    app.connect("builder-inited", run_all)
    app.connect("source-read", show)
    return {"parallel_read_safe": True}
