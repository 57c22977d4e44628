"""Draw the badges of the README from pyproject.toml: python docs/badges.py."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "docs" / "images" / "badges"
CHARACTER, PADDING = 6.6, 12  # pixels of a letter of 11 px in a sans-serif font, and around a word

BADGE = """\
<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="20" role="img" \
aria-label="{left}: {right}">
<rect width="{width}" height="20" rx="3" fill="#0072B2"/>
<path d="M3 0H{edge}V20H3Q0 20 0 17V3Q0 0 3 0Z" fill="#404040"/>
<g fill="#fff" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11" text-anchor="middle">
<text x="{first}" y="14">{left}</text>
<text x="{second}" y="14">{right}</text>
</g>
</svg>
"""


def facts() -> dict[str, tuple[str, str]]:
    """Return what the badges say, as the files of the project have it."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    about, checked = project["project"], project["tool"]["mypy"]["files"]
    package = (ROOT / "src" / "zerogap" / "__init__.py").read_text(encoding="utf-8")
    found = re.findall(r"Python :: (3\.\d+)", "\n".join(about["classifiers"]))
    pythons = sorted(found, key=lambda text: int(text.partition(".")[2]))
    assert about["requires-python"] == f">={pythons[0]}"
    assert checked == ["src/zerogap"]
    (version,) = re.findall(r'^__version__ = "(.+)"$', package, re.MULTILINE)
    return {
        "version": ("version", version),
        "python": ("python", f"{pythons[0]} to {pythons[-1]}"),
        "licence": ("licence", about["license"]),
        "types": ("types", "mypy"),
    }


def drawn(left: str, right: str) -> str:
    """Return a badge as SVG."""
    edge, rest = (round(PADDING + CHARACTER * len(text)) for text in (left, right))
    places = {"first": edge / 2, "second": edge + rest / 2}
    return BADGE.format(left=left, right=right, edge=edge, width=edge + rest, **places)


if __name__ == "__main__":
    for name, words in facts().items():
        (FOLDER / f"{name}.svg").write_text(drawn(*words), encoding="utf-8")
