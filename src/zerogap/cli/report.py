"""The page that `zerogap train --report` writes: one HTML file that needs no network."""

from collections.abc import Iterable
from html import escape
from pathlib import Path
from typing import Any

from zerogap.cli.coefficients import coefficients
from zerogap.cli.drawings import Plot
from zerogap.cli.inputs import Input
from zerogap.cli.output import score_text
from zerogap.cli.show import columns_of, decision, draw, predicted_number

_COEFFICIENTS_SHOWN = 25  # those with most effect
_MOST_CLASSES = 12  # of a confusion matrix
_POINTS_DRAWN = 400  # of a curve or a cloud
_CALIBRATION_BINS = 10  # with equally many rows
_CSS = """
svg { max-width: 100%; height: auto; }
.plots { display: flex; flex-wrap: wrap; gap: 1rem; }
table.narrow { width: auto; } table.narrow td, table.narrow th { padding-right: 2rem; }
figure { margin: 0; flex: 1 1 16rem; max-width: 20rem; }
figcaption { font-size: .875rem; color: var(--soft); max-width: 20rem; }
td:first-child { padding-left: 0; }
.plots { margin-top: 1rem; }
td.text, th.text { text-align: left; white-space: normal; }
"""


def write_report(
    path: Path, model: Any, given: Input, told: dict[str, Any], deviation: Any
) -> None:
    """Write the page on a model that was just trained."""
    from zerogap.comparison.page import resource
    from zerogap.io.atomic import write_file

    tested = given.X_test is not None
    X, y = (given.X_test, given.y_test) if tested else (given.X, given.y)
    where = "test data" if tested else "training data: new data are predicted less well"
    parts = [
        _certificate(model, told),
        _convergence(model),
        _section("Coefficients", _coefficients(model, given, deviation)),
        _section(
            f"Quality, on the {where}",
            _classes(model, X, y)
            if hasattr(model, "classes_")
            else _numbers(model, X, y, getattr(given.encoder, "target", None)),
        ),
        _section("Columns", _columns(given)),
    ]
    title = f"Model of {escape(Path(told['data']).name)}"
    kinds = f", {told['classes']} classes" if told["classes"] else ""
    lead = f"{told['rows']:,} rows, {told['features']:,} features{kinds}; {escape(told['loss'])}"
    page = (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; '
        "style-src 'unsafe-inline'\">"
        f"<title>{title}</title><style>{resource('base.css')}{_CSS}</style></head><body><main>"
        f'<h1>{title}</h1><p class="lead">{lead} loss, lam = {told["lam"]:.4g}</p>'
        f"{''.join(parts)}</main></body></html>\n"
    )
    write_file(path, lambda file: file.write(page.encode()))


def _section(title: str, *content: str) -> str:
    return f"<section><h2>{escape(title)}</h2>{''.join(content)}</section>\n"


def _list(pairs: Iterable[tuple[str, str]]) -> str:
    rows = "".join(f"<dt>{escape(name)}</dt><dd>{escape(text)}</dd>" for name, text in pairs)
    return f"<dl>{rows}</dl>"


def _table(head: list[str], rows: Iterable[list[str]], text: int = 1, narrow: bool = False) -> str:
    """Return a table whose first columns are text; a narrow one is no wider than its cells."""

    def cells(row: list[str], tag: str) -> str:
        return "".join(
            f"<{tag}{' class=text' if k < text else ''}>{escape(cell)}</{tag}>"
            for k, cell in enumerate(row)
        )

    body = "".join(f"<tr>{cells(row, 'td')}</tr>" for row in rows)
    return (
        f'<div class="scroll" tabindex="0"><table{" class=narrow" if narrow else ""}>'
        f"<thead><tr>{cells(head, 'th')}</tr></thead>"
        f"<tbody>{body}</tbody></table></div>"
    )


def _certificate(model: Any, told: dict[str, Any]) -> str:
    found = model.certificate_
    percent = 100 * found.relative_gap
    reached = "" if told["converged"] else f" The run stopped before that: {found.stop_reason}."
    words = (
        f"<p>No model whatsoever has an objective below {found.dual:.8g}; this one has "
        f"{found.primal:.8g}. So it is proved to be at most {percent:.2g} % above the best "
        f"possible; asked for was {100 * model.tol:g} %.{escape(reached)} What is proved is about "
        f"the objective on the training rows, not about new data.</p>"
    )
    pairs = [
        ("gap", f"{found.gap:.3g}"),
        ("stopped", f"{found.stop_reason} after {found.epochs:g} epochs, {found.seconds:.3g} s"),
        ("solver", found.solver),
        ("model file", told["model"] or "not saved"),
    ]
    if told.get("cv"):
        cv = told["cv"]
        pairs.append(("lam", f"{cv['lam']:.4g}, chosen in {cv['folds']} folds ({cv['measure']})"))
    for name in ("train", "test"):
        if (score := told[f"{name}_score"]) is not None:
            pairs.append((f"{name} score", score_text(told["score"], score)))
    return _section("Certificate", words, _list(pairs))


def _convergence(model: Any) -> str:
    history = model.history_[0] if isinstance(model.history_, list) else model.history_
    epochs, gaps = history["epoch"], history["gap"]
    known = gaps > 0
    if known.sum() < 2:
        return ""
    epochs, gaps = epochs[known], gaps[known]
    asked = model.tol * abs(model.certificate_.primal) or float(gaps.min())
    plot = Plot(
        (0.0, float(epochs[-1])),
        (min(asked, float(gaps.min())), float(gaps.max())),
        ("epochs", "duality gap"),
        log_y=True,
        width=640,
    )
    plot.line([0.0, float(epochs[-1])], [asked, asked], -1, "3")
    plot.line(epochs.tolist(), gaps.tolist())
    plot.points(epochs.tolist(), gaps.tolist())
    first = "" if history is model.history_ else " (first of the classes)"
    note = f'<p class="note">Dotted: the gap that was asked for, {asked:.3g}.</p>'
    return _section(f"Convergence{first}", plot.svg(), note)


def _coefficients(model: Any, given: Input, deviation: Any) -> str:
    found = coefficients(model, given.encoder, deviation)
    note = (
        f'<p class="note">The {_COEFFICIENTS_SHOWN} of {len(found):,} with most effect; '
        f"zerogap show MODEL --csv has all.</p>"
        if len(found) > _COEFFICIENTS_SHOWN
        else ""
    )
    said = decision(model)
    lead = "" if said is None else f"<p>Predicts {escape(said)}.</p>"
    score = predicted_number(model, given.encoder)
    found = sorted(found, key=lambda c: -abs(c.coef if c.effect is None else c.effect))
    return lead + draw(found[:_COEFFICIENTS_SHOWN], score) + note


def _columns(given: Input) -> str:
    columns = columns_of(given.encoder)
    notes = [*(f"guessed: {name} {value}" for name, value in given.guesses.items()), *given.notes]
    listed = "".join(f"<li>{escape(text)}</li>" for text in notes)
    said = f"<ul>{listed}</ul>" if listed else ""
    scaling = "none" if given.encoder is None else given.encoder.scaling
    lead = f"<p>Scaling of the features: {scaling}.</p>"
    if not columns:
        return f"{lead}{said}<p>The data are a matrix: its columns are used as they are.</p>"
    rows = ([name, what] for name, what in columns)
    return lead + said + _table(["column", "what was done to it"], rows, text=2)


def _classes(model: Any, X: Any, y: Any) -> str:
    """Return confusion matrix and, of two classes, ROC, precision-recall and calibration."""
    import numpy as np
    from sklearn.metrics import confusion_matrix

    labels = model.classes_
    parts = []
    if len(labels) <= _MOST_CLASSES:
        counts = confusion_matrix(y, model.predict(X), labels=labels)
        names = [str(label) for label in labels]
        rows = ([name, *(f"{v:,}" for v in row)] for name, row in zip(names, counts, strict=True))
        parts.append(_table(["is \\ predicted", *names], rows, narrow=True))
    else:
        parts.append(_hardest(model.predict(X), np.asarray(y), labels))
    if len(labels) == 2:
        positive = np.asarray(y) == labels[1]
        if positive.any() and not positive.all():
            parts.append(_curves(model, X, positive))
    return "".join(parts)


def _hardest(found: Any, y: Any, labels: Any) -> str:
    """Return a table of the classes that are missed most often."""
    import numpy as np

    rows = []
    for label in labels:
        own = y == label
        wrong = found[own][found[own] != label]
        others, counts = np.unique(wrong, return_counts=True)
        instead = f"{others[np.argmax(counts)]} ({counts.max():,})" if len(others) else ""
        rows.append((len(wrong), str(label), int(own.sum()), instead))
    rows.sort(key=lambda row: -row[0])
    shown = [[name, instead, f"{n:,}", f"{wrong:,}"] for wrong, name, n, instead in rows]
    head = ["class", "most often taken for", "rows", "missed"]
    more = f'<p class="note">Those that are missed most often, of {len(labels)}.</p>'
    return _table(head, shown[:_MOST_CLASSES], text=2, narrow=True) + more


def _curves(model: Any, X: Any, positive: Any) -> str:
    from sklearn.metrics import (
        average_precision_score,
        precision_recall_curve,
        roc_auc_score,
        roc_curve,
    )

    scores = model.decision_function(X)
    fall, hit, _ = roc_curve(positive, scores)
    roc = Plot((0, 1), (0, 1), ("false positives", "true positives"))
    roc.line([0, 1], [0, 1], -1, "3")
    roc.line(*_thinned(fall, hit))
    precision, recall, _ = precision_recall_curve(positive, scores)
    pr = Plot((0, 1), (0, 1), ("recall", "precision"))
    share = float(positive.mean())
    pr.line([0, 1], [share, share], -1, "3")
    pr.line(*_thinned(recall[::-1], precision[::-1]))
    kind = model.classes_[1]
    figures = [
        (roc, f"ROC, area {roc_auc_score(positive, scores):.4f}"),
        (pr, f"Precision and recall, average {average_precision_score(positive, scores):.4f}"),
    ]
    if hasattr(model, "predict_proba"):
        figures.append(_calibration(model.predict_proba(X)[:, 1], positive))
    drawn = "".join(
        f"<figure>{plot.svg()}<figcaption>{escape(text)}</figcaption></figure>"
        for plot, text in figures
    )
    return f'<div class="plots">{drawn}</div><p class="note">Positive is {escape(str(kind))}.</p>'


def _calibration(likely: Any, positive: Any) -> tuple[Plot, str]:
    """Return the share of positive rows against the probability, in bins of equally many rows."""
    import numpy as np

    parts = np.array_split(np.argsort(likely), _CALIBRATION_BINS)
    parts = [part for part in parts if len(part)]
    plot = Plot((0, 1), (0, 1), ("predicted probability", "share of positives"))
    plot.line([0, 1], [0, 1], -1, "3")
    x = [float(likely[part].mean()) for part in parts]
    y = [float(positive[part].mean()) for part in parts]
    plot.line(x, y)
    plot.points(x, y)
    return plot, f"Calibration, in {len(parts)} parts of equally many rows"


def _numbers(model: Any, X: Any, y: Any, target: str | None) -> str:
    """Return residuals against predictions, and their spread."""
    import numpy as np

    found = model.predict(X)
    left = np.asarray(y, dtype=float) - found
    some = np.random.default_rng(0).permutation(len(left))[: 2 * _POINTS_DRAWN]
    sides = (float(found.min()), float(found.max())), (float(left.min()), float(left.max()))
    of = "" if target is None else f" of {target}"
    plot = Plot(*sides, (f"prediction{of}", "residual: truth - prediction"), width=640)
    plot.line(list(sides[0]), [0.0, 0.0], -1, "3")
    plot.points(found[some].tolist(), left[some].tolist())
    pairs = [
        ("mean absolute error", f"{np.abs(left).mean():.5g}"),
        ("root mean square error", f"{np.sqrt((left**2).mean()):.5g}"),
    ]
    return _list(pairs) + plot.svg()


def _thinned(x: Any, y: Any) -> tuple[list[float], list[float]]:
    """Return some points of a curve, its ends among them."""
    import numpy as np

    keep = np.unique(np.linspace(0, len(x) - 1, _POINTS_DRAWN).astype(int))
    return x[keep].tolist(), y[keep].tolist()
