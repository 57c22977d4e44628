"""Put the summary of a full run of `zerogap reproduce` into docs/five-reports.md.

    python docs/update_five_reports.py zerogap-report/SUMMARY.md

All between the two marks is replaced by the verdicts; what is above them is written by hand.
"""

import re
import sys
from pathlib import Path

PAGE = Path(__file__).parent / "five-reports.md"
BEGIN, END = "<!-- SUMMARY.md begins -->", "<!-- SUMMARY.md ends -->"


def updated(page: str, summary: str) -> str:
    """Return the page with the verdicts of the summary, one level of headings deeper."""
    verdicts, _, lacking = summary.partition("\n")[2].partition("## Not run")
    failed = [line for line in lacking.splitlines() if line and not line.startswith("- data set")]
    if failed or "Quick run" in verdicts or "| not judged |" in verdicts:
        raise SystemExit("that is no full run: the page holds the verdicts of full runs alone")
    text = verdicts.strip().replace("\n## ", "\n### ")
    found = re.subn(f"(?s){BEGIN}.*{END}", lambda _: f"{BEGIN}\n\n{text}\n\n{END}", page)
    if found[1] != 1:
        raise SystemExit(f"{PAGE} has no marks")
    return found[0]


if __name__ == "__main__":
    summary = Path(sys.argv[1]).read_text(encoding="utf-8")
    PAGE.write_text(updated(PAGE.read_text(encoding="utf-8"), summary), encoding="utf-8")
