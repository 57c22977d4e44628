"""Fill the tables of RESULTS.md, and draw its pictures, from the recorded figures of TABLES.md.

python benchmarks/page.py
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from page_pictures import PICTURES, draw
from race_report import LEVEL
from recorded import FOLDER, at_least, number, tables

PAGE = FOLDER / "RESULTS.md"
IMAGES = FOLDER.parent / "docs" / "images" / "results"
LOSSES = ("hinge", "squared-hinge", "logistic", "squared", "absolute")


def markdown(head: str, rows: Iterable[Iterable[str]]) -> str:
    """Return a Markdown table; `head` has its columns between bars."""
    columns = head.count("|") + 1
    lines = [f"| {head} |", "| " + " | ".join(["---"] * columns) + " |"]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)])


def race() -> str:
    (rows,) = tables("The race")
    cells = {(row["target"], row["loss"]): row for row in rows}
    mean = "geometric mean of best peer / ours"

    def line(loss: str) -> list[str]:
        three, six = cells["1e-03", loss], cells["1e-06", loss]
        rows, missed, unproved = (
            int(three[k]) + int(six[k]) for k in ("rows", "behind", "unproved")
        )
        return [loss, str(rows), three[mean], six[mean], str(missed - unproved), str(unproved)]

    head = (
        "loss | fits | best peer / ours, to 1e-3 | to 1e-6 | a peer is faster | not proved in 20 s"
    )
    return markdown(head, map(line, (*LOSSES, "all")))


def behind() -> str:
    """Return the data sets and losses where a peer was faster or ours was not proved."""
    lost: dict[tuple[str, str], list[tuple[float, str]]] = {}
    total: dict[tuple[str, str], int] = {}
    for loss in LOSSES:
        for row in tables(loss)[0]:
            place = row["data"], loss
            total[place] = total.get(place, 0) + 1
            peer, cell = next((k, cell) for k, cell in row.items() if cell.startswith("**"))
            if number(cell) < LEVEL:
                lost.setdefault(place, []).append((number(cell), peer))
    lines = []
    for place, found in sorted(lost.items(), key=lambda item: min(item[1])):
        ratio, peer = min(found)
        share = f"{len(found)} of {total[place]}"
        lines.append([*place, share, f"{ratio:g}" if ratio else "not proved in 20 s", peer])
    return markdown("data | loss | fits behind | least ratio | peer", lines)


def raw() -> str:
    (rows,) = tables("Raw tables")
    losses = dict.fromkeys(row["loss"] for row in rows)

    def line(loss: str) -> list[str]:
        own = [row for row in rows if row["loss"] == loss]
        ratios = [row["peer / ours"] for row in own]
        ahead = sum(number(ratio) >= 1 for ratio in ratios)
        none = sum(map(at_least, ratios))
        return [loss, *map(str, (len(own), ahead, none)), f"{min(map(number, ratios)):g}"]

    head = "loss | fits, all proved | no peer is faster | no peer got there | least peer / ours"
    return markdown(head, map(line, losses))


def classes() -> str:
    (rows,) = tables("Ten classes: MNIST")
    lines = []
    for loss in ("multiclass-hinge", "softmax"):
        for lam in ("0.001", "0.0001"):
            own = [row for row in rows if (row["loss"], row["lam"]) == (loss, lam)]
            ours = next(row for row in own if row["solver"] == "Auto")
            peers = [row for row in own if row["solver"] not in ("Auto", "SDCA")]
            good = [row for row in peers if _above(row) <= _above(ours)]
            best = min(
                good or peers, key=lambda row: (_above(row) if not good else number(row["seconds"]))
            )
            ratio = number(best["seconds"]) / number(ours["seconds"])
            name = best["solver"].rsplit(" ", 1)[0] + ("" if good else ", not as close")
            lines.append([loss, lam, ours["seconds"], best["seconds"], name, f"{ratio:.1f}"])
    return markdown("loss | lam | ours, s | peer, s | peer | peer / ours", lines)


def _above(row: dict[str, str]) -> float:
    return number(row["objective above the bound"])


def certified() -> str:
    (rows,) = tables("Certified predictions")
    gaps = ("1e-02", "1e-03", "1e-04", "1e-05", "1e-06", "1e-08")
    head = "data | loss | " + " | ".join(f"gap {gap}" for gap in gaps)
    return markdown(head, ([r["data"], r["loss"], *(f"{r[g]} %" for g in gaps)] for r in rows))


def path() -> str:
    (rows,) = tables("Paths without holes")
    lines = []
    for row in rows:
        for tol in ("1e-2", "1e-3"):
            models, epochs, grid, hole = _path_cell(row[f"tol {tol}"])
            lines.append(
                [row["data"], row["loss"], tol, models, epochs, grid, f"{hole / float(tol):.1f}"]
            )
    head = "data | loss | tol | models | epochs | epochs of a grid | its largest gap / tol"
    return markdown(head, lines)


def _path_cell(cell: str) -> tuple[str, str, str, float]:
    """Return models, epochs, the epochs of a grid with as many models, and its largest gap."""
    models, epochs, grid, hole = re.fullmatch(r"(\d+) .*?, (\d+), .*\[(\d+), (.*)\]", cell).groups()
    return models, epochs, grid, float(hole)


def leave_one_out() -> str:
    (rows,) = tables("Leave-one-out")
    columns = ("loss", "C", "intercept", "free", "bound", "solved", "s", "1000 fits, s", "ratio")
    head = "loss | C | intercept | rows free | by the bound | by a fit | s | 1000 fits, s | ratio"
    return markdown(head, ([row[k] for k in columns] for row in rows))


def out_of_core() -> str:
    rows = tables("Out of core")[0]
    columns = ("loss", "lam n", "peak MB", "gap", "passes", "passes in memory", "read")
    head = "loss | lam n | peak MB | gap | passes | passes in memory | read, in sizes of the data"
    return markdown(head, ([row[k] for k in columns] for row in rows))


def chaos() -> str:
    rows = tables("A cluster, and what kills it")[1]
    columns = ("loss", "kills", "recoveries", "reported gap", "off the optimum", "seconds")
    return markdown(" | ".join(columns), ([row[k] for k in columns] for row in rows))


def gpu() -> str:
    rows = tables("On a GPU")[0]
    columns = ("data", "gap", "GPU ms", "CPU ms", "CPU / GPU")
    return markdown(" | ".join(columns), ([row[k] for k in columns] for row in rows))


TABLES: dict[str, Callable[[], str]] = {
    f.__name__: f
    for f in (race, behind, raw, classes, certified, path, leave_one_out, out_of_core, chaos, gpu)
}


def filled(page: str) -> str:
    """Return the page with every table between its two marks computed from TABLES.md."""

    def table(match: re.Match[str]) -> str:
        return f"{match[1]}\n\n{TABLES[match[2]]()}\n\n{match[3]}"

    marks = r"(<!-- table: (\w+) -->).*?(<!-- end -->)"
    return re.sub(marks, table, page, flags=re.DOTALL)


def main() -> None:
    PAGE.write_text(filled(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    IMAGES.mkdir(parents=True, exist_ok=True)
    for name in PICTURES:
        draw(name, IMAGES / f"{name}.png")


if __name__ == "__main__":
    main()
