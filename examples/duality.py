"""Draw what weak duality says: each dual point is a parabola below the objective of all models."""

import argparse
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import zerogap as zg

LAM = 0.4
BLUE, ORANGE, GREY = "#0072B2", "#D55E00", "#595959"  # from Okabe and Ito's palette


def parabola(problem: zg.Problem, alpha: np.ndarray, w: np.ndarray) -> np.ndarray:
    """Return what alpha proves of each weight: D(alpha) + lam/2 (w - w(alpha))^2 <= P(w)."""
    (lowest,) = problem.weights(alpha)
    return problem.dual(alpha) + 0.5 * LAM * (w - lowest) ** 2


def draw(problem: zg.Problem, alpha: np.ndarray, model: float, axes: Axes) -> None:
    """The objective, the parabola of a dual point, and the gap between it and a model."""
    w = np.linspace(-1.5, 3.5, 400)
    primal = np.array([problem.primal([v]) for v in w])
    below, here = parabola(problem, alpha, w), problem.primal([model])
    (lowest,), dual = problem.weights(alpha), problem.dual(alpha)
    assert np.all(below <= primal + 1e-12)
    axes.plot(w, primal, color=ORANGE, label="P(w), the objective")
    axes.plot(w, below, color=BLUE, label="what the dual point a proves of each w")
    axes.plot(model, here, "o", color=ORANGE)
    axes.plot(lowest, dual, "o", color=BLUE)
    axes.axhline(dual, color=BLUE, ls=":", lw=1)
    axes.text(-1.45, dual - 0.02, "D(a): no model is below", color=BLUE, va="top")
    if here - dual > 0.05:
        axes.annotate("", (model, here), (model, dual), arrowprops={"arrowstyle": "<->"})
        axes.text(model + 0.08, here - 0.3, "gap", color=GREY)
    axes.set(xlabel="weight w", xlim=(-1.5, 3.5), ylim=(0, 2.7))
    axes.legend(loc="upper center", frameon=False)
    axes.spines[["top", "right"]].set_visible(False)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", default="duality.png", help="where to save the picture")
    out = Path(parser.parse_args().out).resolve()

    x = np.array([[-2.0], [-1.2], [-0.3], [0.4], [-0.5], [0.7], [1.1], [1.9]])
    y = np.array([-1.0, -1.0, -1.0, -1.0, 1.0, 1.0, 1.0, 1.0])
    problem = zg.Problem(x, y, "hinge", lam=LAM)
    best = zg.solve(problem, zg.SDCA(), tol=1e-9, max_epochs=10_000)
    rough = 0.25 * y  # any point of the domain will do
    figure = Figure(figsize=(10, 4.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    draw(problem, rough, 2.5, left)
    left.set(title="Any model, any dual point: a bound", ylabel="objective")
    draw(problem, best.alpha, best.w[0], right)
    right.set(title="The best of both: the gap is zero")
    figure.savefig(out, dpi=150)
    print(f"Picture: {out}")


if __name__ == "__main__":
    main()
