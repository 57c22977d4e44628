"""The lab: experiments declared as data, tidy tables, figures, verdicts, one HTML report.

How to write a chapter (``chapters/s4.py`` is the pattern, ``zerogap reproduce S4`` runs it):

1.  A chapter is a module ``chapters/sN.py`` with one `Chapter` named ``CHAPTER``: introduction and
    `Experiment` objects.  Nothing runs when it is imported.
2.  An `Experiment` declares ``data x losses x lams x arms x seeds``: every combination is a cell.
    `Data` says where rows come from and what happens to them (rows, split, transforms, seed); an
    `Arm` is a named solver as on the command line, ``"pegasos:batch_size=8:output=average"``, with
    what differs for it alone (loss, lam, epochs, updates, seeds).
3.  A sweep is an arm (or a `Data`) per value, with the value in ``columns``:
    ``tuple(Arm("SGD", f"sgd:step={s}", columns={"step": s}) for s in STEPS)``.
4.  A cell runs `zerogap.solve` and returns a row per record: epoch, updates, examples, primal,
    dual, gap, the metrics, seconds, cpu_seconds.  ``metrics=("test_error", "primal:hinge")``
    records the test error and, as ``hinge_primal``, the objective with another loss than the one
    that is minimised; a function of a module (problem, data, y_test) -> function of (w, b) is a
    metric named after the function.  ``reference=1e-6`` adds a long run of SDCA and with it the
    column ``suboptimality``.  ``record="end"`` keeps the last record alone.
5.  What no solver run gives (spectra, images, stopping times) is a function (cell, data) -> rows,
    at the top of a module of its own, ``chapters/sN_cells.py``, because editing that file makes its
    cells run anew.  Its parameters are ``cell.arm.columns``, its rows plain dictionaries; use
    ``cell.seed``, never global randomness.  Images are ``{"label": ..., **pixels(array)}``.
6.  The tidy table is a pandas DataFrame: data, loss, lam, solver, seed, your columns, what was
    recorded, times last.  Same seeds, same table, byte for byte except times.
7.  Figures are `Lines` (curves over epochs, examples, updates, seconds or a parameter; median and
    band over seeds), `Points` (means with intervals, a line per category), `Heat` and `Gallery`.
    Where the report's axis is unfair: ``x=("updates", "examples"), side_by_side=True``.
    ``zoom`` draws a panel again, enlarged; ``distinct`` gives every line its own colour.
    ``prepare`` is a function table -> table for what the declaration cannot say.
8.  A `Table` has a function table -> list of dictionaries: texts, numbers, `Interval`, `Count`.
9.  A claim is ``claim(id, judge, *tables)``: ``claims.toml`` says what the report states, where,
    in which setting and how cautiously; the judge is a function table -> `Verdict`: "holds", "does
    not hold", "depends" (on what) or "undecided", in the report's own setting, one sentence, and
    evidence from the statistics below.  Other settings are a second line, ``robustness``.  `below`,
    `above`, `within`, `mostly` and `always` answer one comparison with yes, no or open; `conclude`
    makes the verdict of all answers.  `lower` judges "A ends lower than B" group by group.  A
    verdict without evidence, or from one run, is refused.
10. Figures, tables and claims say which rows of the inventory they cover (``covers``; a claim's
    own id by default).  What a sentence settles goes into ``Chapter.notes``.
11. Say what the report had (``original``), what is different here and why (``differs``), and which
    mistakes matter (``errata``).
12. ``quick`` overrides the derived small version (3 seeds, 5 epochs, 1000 rows): all chapters
    together must take two minutes with ``--quick`` and half an hour without, on two cores.
"""

from zerogap.lab.experiment import Arm, Cell, Chapter, Data, Experiment
from zerogap.lab.figures import Figure, Gallery, Heat, Lines, Points
from zerogap.lab.images import pixels
from zerogap.lab.inventory import claim
from zerogap.lab.statistics import (
    Calculation,
    Count,
    Interval,
    differences,
    mean,
    median,
    paired_difference,
    sign_test,
)
from zerogap.lab.verdicts import (
    DEPENDS,
    FAILS,
    HOLDS,
    NO,
    OPEN,
    UNDECIDED,
    YES,
    Claim,
    Table,
    Verdict,
    above,
    always,
    below,
    conclude,
    final,
    listed,
    lower,
    mostly,
    settle,
    sorted_by,
    split,
    within,
)

__all__ = [
    "DEPENDS",
    "FAILS",
    "HOLDS",
    "NO",
    "OPEN",
    "UNDECIDED",
    "YES",
    "Arm",
    "Calculation",
    "Cell",
    "Chapter",
    "Claim",
    "Count",
    "Data",
    "Experiment",
    "Figure",
    "Gallery",
    "Heat",
    "Interval",
    "Lines",
    "Points",
    "Table",
    "Verdict",
    "above",
    "always",
    "below",
    "claim",
    "conclude",
    "differences",
    "final",
    "listed",
    "lower",
    "mean",
    "median",
    "mostly",
    "paired_difference",
    "pixels",
    "settle",
    "sign_test",
    "sorted_by",
    "split",
    "within",
]
