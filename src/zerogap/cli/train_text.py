"""What `zerogap train` says at its end: the report, the table, and why a run fell short."""

from pathlib import Path
from typing import Any

from zerogap.cli.inputs import Input
from zerogap.cli.output import certificate_json, certificate_rows, print_table, score_text


def training_report(model: Any, given: Input, out: Path | None) -> dict[str, Any]:
    """Return what there is to say of the fit, scores included."""
    store = not hasattr(given.X, "shape")
    rows, features = (given.X.n_samples, given.X.n_features) if store else given.X.shape
    weights = given.sample_weight
    total = given.X.total_weight if store else rows if weights is None else float(weights.sum())
    classes = getattr(model, "classes_", None)
    return {
        "data": given.name,
        "guessed": given.guesses,
        "notes": list(given.notes),
        "rows": rows,
        "features": features,
        "classes": None if classes is None else len(classes),
        "loss": str(model.loss),
        "lam": model.lam if model.lam is not None else 1.0 / total,
        "converged": model.certificate_.stop_reason == "converged",
        "certificate": certificate_json(model.certificate_),
        "score": "R2" if classes is None else "accuracy",
        "train_score": float(model.score(given.X, given.y)),
        "test_score": (
            None if given.X_test is None else float(model.score(given.X_test, given.y_test))
        ),
        "model": None if out is None else str(out),
    }


def show_report(report: dict[str, Any], model: Any, tol: float) -> None:
    """Print the report as a table."""
    kinds = f", {report['classes']} classes" if report["classes"] else ""
    size = f"{report['rows']:,} rows, {report['features']:,} features{kinds}"
    scores = [
        (f"{part} score", score_text(report["score"], report[f"{part}_score"]))
        for part in ("train", "test")
        if report[f"{part}_score"] is not None
    ]
    print_table(
        [
            ("data", f"{report['data']}: {size}"),
            ("loss", f"{report['loss']}, lam {report['lam']:.4g}{_chosen(report)}"),
            *certificate_rows(model.certificate_, tol),
            *_compiling(report["compile_seconds"]),
            *scores,
            ("model", report["model"] or "not saved: give --out MODEL"),
        ]
    )


def _compiling(seconds: float) -> list[tuple[str, str]]:
    """Say what compiling took, which is not in the seconds of the fit."""
    from zerogap.kernels.machine_code import SECONDS_NOTICED

    return [("compiling", f"once: {seconds:.1f} s")] if seconds > SECONDS_NOTICED else []


def _chosen(report: dict[str, Any]) -> str:
    """Say how lam was chosen."""
    if (found := report.get("cv")) is None:
        return ""
    error = f"{found['measure']} {found['error']:.4g} +- {found['standard_error']:.2g}"
    return f", the best of {found['folds']} folds: {error}"


def shortfall(model: Any, tol: float, out: Path | None, advice: str) -> str:
    """Say why a run ended early, how far it came, and what to do."""
    certificate, columns = model.certificate_, model._about_columns
    gap = f"a relative gap of {certificate.relative_gap:.2g}, asked for {tol:g}"
    if certificate.stop_reason == "interrupted":
        where = f"is in {out}" if out else "is not saved: give --out"
        return f"interrupted at {gap}; the best certified model so far {where}"
    reason = certificate.stop_reason
    option = {"max_epochs": "--max-epochs", "max_seconds": "--max-seconds"}.get(reason, "--tol")
    why = f"; {columns}" if columns else ""
    return f"stopped ({reason}) at {gap}{why}: raise {option} or --lam{advice}"
