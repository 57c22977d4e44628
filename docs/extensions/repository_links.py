"""Links between files of the repository, as links between pages of the site.

Pages that are read in the repository, too, point to files that the site does not have: those
become plain text.
"""

from __future__ import annotations

import posixpath
import re
from typing import Any

LINK = re.compile(r"(?<!!)\[([^\]]+)\]\(((?:\.\./)+[^)#\s]*)(#[^)\s]*)?\)")
PAGES = {
    "../CONTRIBUTING.md": "develop/contributing.md",
    "../CHANGELOG.md": "develop/changelog.md",
    "../benchmarks/RESULTS.md": "benchmarks/RESULTS.md",
    "../benchmarks/TABLES.md": "benchmarks/TABLES.md",
    "../benchmarks/LOG.md": "benchmarks/LOG.md",
}
"""Files of the repository, seen from docs/, and where the site has them."""


def rewrite(app: Any, page: str, source: list[str]) -> None:
    """Rewrite the links of one page."""
    folder = posixpath.dirname(page)

    def target(match: re.Match[str]) -> str:
        text, path, anchor = match[1], match[2], match[3] or ""
        file = posixpath.normpath(posixpath.join(folder, path))
        if not file.startswith("../"):
            return match[0]
        if file in PAGES:
            return f"[{text}]({posixpath.relpath(PAGES[file], folder or '.')}{anchor})"
        return text

    source[0] = LINK.sub(target, source[0])


def rewrite_included(app: Any, file: Any, page: str, source: list[str]) -> None:
    """Rewrite the links of a file at the top of the repository that a page includes."""
    if "/" in posixpath.normpath(str(file)).replace("../", ""):
        return
    source[0] = re.sub(r"\]\(docs/", "](../", source[0])


def setup(app: Any) -> dict[str, Any]:
    """Register the change with Sphinx."""
    app.connect("source-read", rewrite)
    app.connect("include-read", rewrite_included)
    return {"parallel_read_safe": True}
