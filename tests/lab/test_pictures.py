"""The pictures of the chapters show what is judged, in lines that can be told apart."""

import pytest

from zerogap.comparison.page import resource
from zerogap.lab.chapters import chapters
from zerogap.lab.chapters.s0_outputs import _OPTIONS
from zerogap.lab.line_styles import looks

FIGURES = {f.id: f for chapter in chapters() for e in chapter.experiments for f in e.figures}


@pytest.mark.parametrize(
    "id", ["S0-fig4", "S0-fig5", "S1-fig2a", "S1-fig2b", "S1-fig3a", "S1-fig6", "S3-descent"]
)
def test_lines_of_one_solver_differ_in_colour(id):
    assert FIGURES[id].distinct


def test_nine_options_differ_in_colour_or_marker():
    found = looks(list(_OPTIONS), {})
    assert len({look.marker for look in found.values()}) == len(_OPTIONS) == 9
    assert len({(look.colour, look.symbol) for look in found.values()}) == 9


def test_ten_lines_differ_in_their_marker_and_the_legend_has_it():
    found = looks([f"line {k}" for k in range(10)], {}, distinct=True)
    symbols = {look.symbol for look in found.values()}
    assert len(symbols) == 10
    shapes = resource("swatch.html.j2", "zerogap.comparison")
    assert all(f'"{symbol}": "M' in shapes for symbol in symbols)


@pytest.mark.parametrize("id", ["S1-fig2a", "S1-fig2b", "S1-fig3a", "S1-fig3b"])
def test_curves_are_enlarged_where_they_are_judged(id):
    ((title, (low, high)),) = FIGURES[id].zoom.items()
    assert title == ""
    assert 0 < low < high


@pytest.mark.parametrize("id", ["S0-fig1", "S0-fig2", "S0-fig3"])
def test_races_show_what_is_left_of_the_way(id):
    way = FIGURES[f"{id}-way"]
    assert way.side_by_side
    assert list(way.overlay.values()) == ["90 % of the way", "95 % of the way", "99 % of the way"]


def test_bands_on_logarithmic_axes_do_not_vanish():
    """A mean minus its half interval may be negative; quantiles of positive numbers are not."""
    for figure in FIGURES.values():
        if getattr(figure, "scale", "") == "log" and figure.kind == "lines":
            first = figure.y if isinstance(figure.y, str) else figure.y[0]
            assert figure.band != "interval" or first == "primal", figure.id
