"""Results show themselves: short reprs, tables in notebooks, axes and frames."""

import builtins

import matplotlib
import numpy as np
import pytest

import zerogap as zg

matplotlib.use("Agg")


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    """One of each kind of result, from one small problem."""
    X, y, _ = zg.datasets.make_simulated(60, random_state=0)
    problem = zg.Problem(X, y, "logistic", lam=0.1)
    result = zg.solve(problem, zg.SDCA(), tol=1e-6, random_state=0)
    model = zg.LinearClassifier("hinge", lam=0.1, random_state=0).fit(X, y)
    path = zg.path(X, y, lam_min=0.1, lam_max=1.0, loss="logistic", tol=1e-2)
    sweep = zg.sweep(X, y, {"lam": [0.1, 1.0]}, folds=2, random_state=0)
    records = []
    zg.solve(problem, zg.SDCA(), tol=1e-6, random_state=0, callback=records.append)
    return {
        "Problem": problem,
        "Result": result,
        "Certificate": result.certificate,
        "History": result.history,
        "Audit": zg.certify(model, X, y),
        "LeaveOneOut": model.leave_one_out(X, y),
        "Path": path,
        "Model": path.at(0.3),
        "Record": records[-1],
        "Region": zg.regions.find_region(problem, result.w, result.b, result.alpha),
        "Curve": zg.path_cv(X, y, 0.1, 1.0, loss="logistic", folds=2, tol=1e-1, random_state=0),
        "Sweep": sweep,
        "Cell": sweep.cells[0],
        "Comparison": zg.compare(problem, ["sdca", "newton"], tol=1e-3, seeds=[0]),
        "Store": zg.write_store(tmp_path_factory.mktemp("store") / "rows", [(X, y)]),
    }


KINDS = [
    *("Problem", "Result", "Certificate", "History", "Audit"),
    *("LeaveOneOut", "Path", "Curve", "Sweep", "Comparison", "Store"),
    *("Model", "Record", "Region", "Cell"),
]


@pytest.mark.parametrize("kind", KINDS)
def test_reprs_are_short_and_name_their_kind(shown, kind):
    text = repr(shown[kind])
    assert text.startswith(f"{kind}(")
    assert len(text) < 500
    assert "array" not in text


@pytest.mark.parametrize("kind", KINDS)
def test_notebooks_show_a_table(shown, kind):
    html = shown[kind]._repr_html_()
    assert html.startswith("<table>")
    assert html.count("<tr>") == html.count("</tr>") >= 2


def test_tables_escape_what_they_show():
    certificate = zg.Certificate(1.0, 0.9, 0.1, stop_reason="<script>alert(1)</script>")
    assert "<script>" not in certificate._repr_html_()


@pytest.mark.parametrize("kind", ["History", "Path", "Curve", "Sweep", "Comparison"])
def test_curves_are_drawn_on_new_or_given_axes(shown, kind):
    from matplotlib import pyplot

    axes = shown[kind].plot()
    assert axes.get_xlabel()
    assert axes.get_ylabel()
    _, given = pyplot.subplots()
    assert shown[kind].plot(ax=given) is given
    pyplot.close("all")


def test_slices_of_a_history_are_histories(shown):
    history = shown["History"]
    first = history[:1]
    assert isinstance(first, zg.History)
    assert first["gap"].tolist() == history["gap"][:1].tolist()
    np.testing.assert_array_equal(history[::2]["epoch"], history["epoch"][::2])


@pytest.mark.parametrize("kind", ["History", "Path", "Curve", "Sweep", "Comparison"])
def test_frames_say_what_is_missing(shown, kind, monkeypatch):
    assert len(shown[kind].to_frame()) >= (1 if kind in ("Path", "Curve") else 2)
    real = builtins.__import__

    def without_pandas(name, *rest):
        if name == "pandas":
            raise ModuleNotFoundError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without_pandas)
    with pytest.raises(ModuleNotFoundError, match="pip install"):
        shown[kind].to_frame()


@pytest.mark.parametrize(
    ("gap", "said"), [(0.001, "0.1 %"), (57.76, "5,776 %"), (4e207, "4e+209 %")]
)
def test_gaps_are_said_in_percent_that_fit_on_a_line(gap, said):
    assert f"({said} of primal)" in str(zg.Certificate(primal=1.0, dual=1.0 - gap, gap=gap))
