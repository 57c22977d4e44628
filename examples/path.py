"""Follow a support vector machine along lambda, and prove what lies between the solves as well."""

import argparse
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

import zerogap as zg

TOL = 1e-2
LAM_MIN, LAM_MAX = 1e-4, 10.0
BLUE, ORANGE, GREY = "#0072B2", "#D55E00", "#595959"  # from Okabe and Ito's palette


def proved_gap(X, y, lam, *models) -> float:
    """Recompute from scratch what models and their dual points prove at lam: the best of it."""
    problem = zg.Problem(X, y, "hinge", lam, fit_intercept=True)
    proofs = [problem.certificate(model.w, model.b, model.alpha) for model in models]
    return min(proof.relative_gap for proof in proofs)


def draw(lams, gaps, path: zg.Path) -> Figure:
    """Left, the gap at all lambdas; right, the weights."""
    figure = Figure(figsize=(10, 4.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    left.plot(lams, gaps["fixed"], color=ORANGE, label="as many lambdas in equal ratios")
    left.plot(lams, gaps["path"], color=BLUE, label="the path's own lambdas")
    left.plot(path.lams, [c.relative_gap for c in path.certificates], "o", color=BLUE, ms=4)
    left.axhline(TOL, color=GREY, ls="--", lw=1, label="tolerance that was asked for")
    left.set(ylim=(0, 2 * TOL), title="Every lambda has a model within tolerance")
    left.set_ylabel("duality gap (share of the primal value)")
    for weights in path.coefs.T:
        right.stairs(weights, path.edges, baseline=None, color=BLUE, lw=1)
    right.set(title="Each model serves an interval", ylabel="weights")
    for axes in (left, right):
        axes.set(xscale="log", xlim=(LAM_MIN, LAM_MAX), xlabel=r"regularisation $\lambda$")
        axes.spines[["top", "right"]].set_visible(False)
    left.legend(frameon=False, loc="upper left")
    return figure


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", default="path.png", help="where to save the picture")
    out = Path(parser.parse_args().out).resolve()

    X, y, _ = zg.datasets.make_simulated(400, random_state=1)
    path = zg.path(X, y, lam_min=LAM_MIN, lam_max=LAM_MAX, tol=TOL, random_state=0)
    epochs = sum(certificate.epochs for certificate in path.certificates)
    print(f"{len(path.lams)} models, {epochs:g} epochs, prove every lambda of the interval.")
    fixed = np.geomspace(LAM_MIN, LAM_MAX, len(path.lams))
    grid = zg.path(X, y, fixed, tol=TOL / 4, random_state=0).results

    lams = np.geomspace(LAM_MIN, LAM_MAX, 500)
    right = np.searchsorted(fixed, lams).clip(1, len(fixed) - 1)
    gaps = {
        "path": [proved_gap(X, y, lam, path.at(lam)) for lam in lams],
        "fixed": [
            proved_gap(X, y, lam, grid[k - 1], grid[k]) for lam, k in zip(lams, right, strict=True)
        ],
    }
    for name, values in gaps.items():
        print(f"largest relative gap, {name}: {max(values):.4f} (asked for {TOL:g})")
    draw(lams, gaps, path).savefig(out, dpi=150)
    print(f"Picture: {out}")


if __name__ == "__main__":
    main()
