"""`zerogap bounds`: how many updates suffice, known before anything is run."""

from typing import Annotated, Any

import typer

from zerogap.cli.choices import JsonOption, Loss, LossOption, TargetOption
from zerogap.cli.inputs import open_data
from zerogap.cli.output import USAGE, as_json, failures, printer, stop


def register(app: Any) -> None:
    """Add the command to the application."""

    @app.command()
    def bounds(
        data: Annotated[
            str | None,
            typer.Argument(help="File, - or data set to compute --n, --radius, --initial from."),
        ] = None,
        n: Annotated[int | None, typer.Option("--n", help="Number of rows.", min=1)] = None,
        lam: Annotated[float | None, typer.Option(help="Regularisation; 1/n if not given.")] = None,
        radius: Annotated[
            float | None, typer.Option(help="Largest norm of a row; 1 if not given.")
        ] = None,
        eps: Annotated[float, typer.Option(help="Distance from the optimum to reach.")] = 1e-3,
        loss: LossOption = Loss.HINGE,
        lipschitz: Annotated[
            float | None, typer.Option(help="Instead of --loss: its Lipschitz constant L.")
        ] = None,
        gamma: Annotated[
            float | None, typer.Option(help="Instead of --loss: phi' is 1/gamma-Lipschitz.")
        ] = None,
        initial: Annotated[
            float | None, typer.Option(help="Mean loss of w = 0; 1 if not given.")
        ] = None,
        delta: Annotated[
            float | None, typer.Option(help="Also bound Pegasos with probability 1 - delta.")
        ] = None,
        target: TargetOption = None,
        json: JsonOption = False,
    ) -> None:
        """Say how many updates of SDCA and Pegasos suffice.

        The bounds hold for all data of that size, with an L2 penalty and without intercept.  They
        are worst cases: a certificate usually stops a run after a fraction of them.
        """
        constants: dict[str, Any] = {"lipschitz": lipschitz, "gamma": gamma}
        if lipschitz is None and gamma is None:
            constants = {"loss": str(loss)}
        if loss in (Loss.MULTICLASS_HINGE, Loss.SOFTMAX):
            stop("bounds", f"no bound is known for {loss}: choose a loss of one score", USAGE)
        if data is None and n is None:
            stop("bounds", "give the number of rows by --n, or the data", USAGE)
        with failures("bounds"):
            found = (n, 1.0, 1.0)
            if data is not None:
                found = _look_at(open_data(data, target=target), constants.get("loss"))
            n, radius, initial = map(_first, (n, radius, initial), found)
            setting = {"n": n, "lam": _first(lam, 1.0 / n), "radius": radius, "initial": initial}
            rows = _bounds(**setting, eps=eps, constants=constants, delta=delta)
        setting |= {"eps": eps, **constants}
        if json:
            typer.echo(as_json({**setting, "bounds": rows}))
        else:
            _show(setting, rows)


def _first(given: Any, otherwise: Any) -> Any:
    return otherwise if given is None else given


def _look_at(data: Any, loss: str | None) -> tuple[int, float, float]:
    """Return number of rows, largest norm and mean loss of w = 0."""
    import numpy as np

    from zerogap.losses import as_loss
    from zerogap.rows import as_rows

    rows = as_rows(data.X)
    initial = 1.0
    if loss is not None:
        phi = as_loss(loss)
        targets = [1.0] if phi.task == "classification" else np.asarray(data.y, dtype=float)
        initial = float(np.mean([phi.value(0.0, y) for y in targets]))
    return rows.shape[0], float(np.sqrt(rows.sqnorms.max())), initial


def _bounds(
    n: int,
    lam: float,
    radius: float,
    initial: float,
    eps: float,
    constants: dict[str, Any],
    delta: float | None,
) -> list[dict[str, Any]]:
    """Return what is proved of each method, the published constants first."""
    from zerogap.bounds import pegasos, sdca

    shared = {"radius": radius, "initial": initial, **constants}
    average, sharp = (sdca(n, lam, eps, sharp=sharp, **shared) for sharp in (False, True))
    found = [("SDCA, average after T_0", average)]
    if sharp.iterations < average.iterations:
        found.append(("the same, sharper constants", sharp))
    if average.assumptions.startswith("smooth"):
        found.append(("SDCA, last iterate", sdca(n, lam, eps, output="last", **shared)))
    if constants.get("loss") == "hinge":
        found.append(("Pegasos, average", pegasos(lam, eps, radius=radius)))
        if delta is not None:
            likely = pegasos(lam, eps, radius=radius, delta=delta)
            found.append((f"the same, probability {likely.probability:g}", likely))
    return [
        {
            "method": method,
            "updates": bound.iterations,
            "epochs": bound.iterations / n,
            "t0": bound.t0,
            "probability": bound.probability,
            "assumptions": bound.assumptions,
        }
        for method, bound in found
    ]


def _show(setting: dict[str, Any], rows: list[dict[str, Any]]) -> None:
    say = printer()
    say(", ".join(f"{key} {_short(value)}" for key, value in setting.items() if value) + "\n")
    say(f"{'':30}{'updates':>15}{'epochs':>12}{'T_0':>15}", "bold")
    for row in rows:
        first = f"{row['t0']:,}" if row["t0"] else "-"
        say(f"{row['method']:30}{row['updates']:>15,}{row['epochs']:>12,.1f}{first:>15}")
    say("\nSDCA: the expected duality gap is at most eps.  Pegasos: the expected P(w) - min P.")
    say("Assumed:")
    for text in dict.fromkeys(row["assumptions"] for row in rows):
        say(f"- {text}")


def _short(value: Any) -> str:
    return f"{value:.5g}" if isinstance(value, float) else str(value)
