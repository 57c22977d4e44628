"""Train a support vector machine and watch its proof of optimality tighten, epoch by epoch."""

import argparse
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

import zerogap as zg

TOL = 1e-6
BLUE, ORANGE, GREY = "#0072B2", "#D55E00", "#595959"  # from Okabe and Ito's palette


def show(c: zg.Certificate) -> None:
    """Print one line of the table."""
    values = f"{c.primal:12.8f}  {c.dual:12.8f}  {c.gap:9.2e}  {c.relative_gap:9.2e}"
    print(f"{c.epochs:6.0f}  {values}  {c.seconds:8.4f}", flush=True)


def is_round(epoch: float) -> bool:
    """Choose epochs 0 to 10, then 20, 30, ..., 100, 200, ...: one digit, then zeros."""
    return epoch % 10 ** (len(f"{epoch:.0f}") - 1) == 0


def draw(history: zg.History, optimum: float) -> Figure:
    """Left, the optimum between dual and primal; right, the gap above the true distance."""
    epoch, primal, dual, gap = (history[name] for name in ("epoch", "primal", "dual", "gap"))
    figure = Figure(figsize=(10, 4.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    left.fill_between(epoch, dual, primal, color=GREY, alpha=0.15, lw=0, label="duality gap")
    left.plot(epoch, primal, color=ORANGE, label="primal: objective of the model")
    left.plot(epoch, dual, color=BLUE, label="dual: no model is below this")
    left.set(title="The optimum lies between dual and primal", xlim=(0, 40), ylim=(0, 1))
    left.set_ylabel("objective (mean hinge loss + penalty)")

    # equal steps on the logarithmic axis: all epochs would paint the end of the curve solid
    some = np.unique(np.geomspace(1, len(epoch) - 1, 120).astype(int))
    proved, true = gap / primal, (primal - optimum) / primal
    right.plot(epoch[some], proved[some], color=BLUE, label="duality gap: what is proved")
    right.plot(epoch[some], true[some], color=ORANGE, label="true distance from the optimum")
    right.axhline(TOL, color=GREY, ls="--", lw=1, label="tolerance that was asked for")
    right.plot(epoch[-1], proved[-1], "o", color=BLUE)
    right.text(epoch[-1], TOL / 1.7, f"proved after {epoch[-1]:g} epochs", ha="right", va="top")
    right.set(xscale="log", yscale="log", xlim=(1, None), ylim=(TOL / 5, 2))
    right.set(title="The gap is never below the true distance", ylabel="share of the primal value")
    for axes in (left, right):
        axes.set_xlabel("epochs (passes over the data)")
        axes.legend(loc="upper right", frameon=False)
        axes.spines[["top", "right"]].set_visible(False)
    return figure


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", default="convergence.png", help="where to save the picture")
    out = Path(parser.parse_args().out).resolve()

    X, y, _ = zg.datasets.make_simulated(random_state=10)
    problem = zg.Problem(X, y, "hinge", lam=1 / 1000)
    options = {"record": "epoch", "max_epochs": 10_000, "random_state": 0}

    def follow(record):
        if is_round(record.epoch):
            show(record.certificate)

    print(f"{problem}\nRunning SDCA until gap <= {TOL:g} * primal.\n")
    print(" epoch        primal          dual        gap   rel. gap   seconds", flush=True)
    run = zg.solve(problem, zg.SDCA(), tol=TOL, callback=follow, **options)
    if not is_round(run.certificate.epochs):
        show(run.certificate)
    print(f"\n{run.certificate}")
    optimum = zg.solve(problem, zg.SDCA(), tol=1e-12, **options).certificate.dual
    draw(run.history, optimum).savefig(out, dpi=150)
    print(f"Picture: {out}")


if __name__ == "__main__":
    main()
