"""Small drawings as SVG: bars and curves, in the colours of the page around them."""

import math
from collections.abc import Sequence
from html import escape

_WIDTH, _LINE = 640, 22  # of bars: pixels
_SIDE = 320  # of curves
_MARGIN = 62  # left and below; 24 on the right
_INK, _SOFT, _GRID = "var(--ink, #1a1d21)", "var(--soft, #565d66)", "var(--line, #d5d9de)"
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")  # Okabe and Ito
_ROOM_FOR_NUMBER = 70  # beside the longest bar, in the drawing's units: -0.000123


def bars(names: Sequence[str], values: Sequence[float], unit: str) -> str:
    """Return horizontal bars around zero."""
    largest = max((abs(v) for v in values), default=1.0) or 1.0
    left, height = 260, _LINE * len(names) + 30
    half = (_WIDTH - left - 2 * _ROOM_FOR_NUMBER) / 2
    zero = left + half + _ROOM_FOR_NUMBER
    parts = [f'<line x1="{zero}" y1="0" x2="{zero}" y2="{height - 26}" stroke="{_GRID}"/>']
    for k, (name, value) in enumerate(zip(names, values, strict=True)):
        y, length = k * _LINE + 4, abs(value) / largest * half
        x = zero if value >= 0 else zero - length
        shown = name if len(name) <= 36 else name[:35] + "\u2026"
        text_x = zero + length + 5 if value >= 0 else zero - length - 5
        parts += [
            f'<text x="{left}" y="{y + 12}" text-anchor="end" fill="{_INK}">{escape(shown)}'
            f"<title>{escape(name)}</title></text>",
            f'<rect x="{x:.1f}" y="{y}" width="{max(length, 0.5):.1f}" height="14" rx="2" '
            f'fill="{COLOURS[0] if value >= 0 else COLOURS[1]}"/>',
            f'<text x="{text_x:.1f}" y="{y + 12}" text-anchor="{_anchor(value)}" fill="{_SOFT}">'
            f"{value:.3g}</text>",
        ]
    parts.append(
        f'<text x="{zero}" y="{height - 8}" text-anchor="middle" fill="{_SOFT}">'
        f"{escape(unit)}</text>"
    )
    return _svg(_WIDTH, height, parts, f"Bars of {len(names)} coefficients")


def _anchor(value: float) -> str:
    return "start" if value >= 0 else "end"


class Plot:
    """A square plot of curves and points, in two linear axes or with a logarithmic y axis."""

    def __init__(
        self,
        x: tuple[float, float],
        y: tuple[float, float],
        titles: tuple[str, str],
        log_y: bool = False,
        width: int = _SIDE,
    ) -> None:
        self.width, self.log = width, log_y
        self.x, self.y = x, tuple(map(math.log10, y)) if log_y else y
        self.titles, self.parts = titles, self._axes(titles)

    def _place(self, x: float, y: float) -> tuple[float, float]:
        y = math.log10(max(y, 1e-300)) if self.log else y
        wide, high = self.width - _MARGIN - 24, _SIDE - _MARGIN - 12
        across = (x - self.x[0]) / ((self.x[1] - self.x[0]) or 1.0)
        up = (y - self.y[0]) / ((self.y[1] - self.y[0]) or 1.0)
        clamp = min(1.0, max(0.0, up))
        return _MARGIN + wide * min(1.0, max(0.0, across)), _SIDE - _MARGIN - high * clamp

    def _axes(self, titles: tuple[str, str]) -> list[str]:
        parts = []
        bottom, right = _SIDE - _MARGIN, self.width - 24
        for value in _decades(*self.y) if self.log else _ticks(*self.y):
            place = self._place(self.x[0], 10**value if self.log else value)[1]
            shown = f"{10**value:.0e}" if self.log else f"{value:.6g}"
            parts += [
                f'<line x1="{_MARGIN}" y1="{place:.1f}" x2="{right}" y2="{place:.1f}" '
                f'stroke="{_GRID}"/>',
                f'<text x="{_MARGIN - 5}" y="{place + 4:.1f}" text-anchor="end" fill="{_SOFT}" '
                f'font-size="10">{shown}</text>',
            ]
        for value in _ticks(*self.x):
            across = self._place(value, 1.0)[0]
            parts.append(
                f'<text x="{across:.1f}" y="{bottom + 15}" text-anchor="middle" fill="{_SOFT}" '
                f'font-size="10">{value:.6g}</text>'
            )
        middle = (_MARGIN + right) / 2
        parts += [
            f'<text x="{middle}" y="{_SIDE - 8}" text-anchor="middle" fill="{_INK}">'
            f"{escape(titles[0])}</text>",
            f'<text x="12" y="{bottom / 2 + 6}" text-anchor="middle" fill="{_INK}" '
            f'transform="rotate(-90 12 {bottom / 2 + 6})">{escape(titles[1])}</text>',
        ]
        return parts

    def line(self, x: Sequence[float], y: Sequence[float], colour: int = 0, dash: str = "") -> None:
        """Draw a line through points."""
        pairs = (self._place(a, b) for a, b in zip(x, y, strict=True))
        points = " ".join(f"{a:.1f},{b:.1f}" for a, b in pairs)
        dashed = f' stroke-dasharray="{dash}"' if dash else ""
        stroke = _SOFT if colour < 0 else COLOURS[colour % len(COLOURS)]
        self.parts.append(
            f'<polyline points="{points}" fill="none" stroke="{stroke}" stroke-width="2"{dashed}/>'
        )

    def points(self, x: Sequence[float], y: Sequence[float], colour: int = 0) -> None:
        """Draw points."""
        for a, b in (self._place(p, q) for p, q in zip(x, y, strict=True)):
            self.parts.append(
                f'<circle cx="{a:.1f}" cy="{b:.1f}" r="2.5" fill-opacity="0.6" '
                f'fill="{COLOURS[colour % len(COLOURS)]}"/>'
            )

    def svg(self) -> str:
        """Return the drawing."""
        label = f"{self.titles[1]} against {self.titles[0]}"
        return _svg(self.width, _SIDE, self.parts, label)


def _ticks(low: float, high: float) -> list[float]:
    """Return round numbers between two others, about five of them."""
    if not high > low:
        return [low]
    unit = 10.0 ** math.floor(math.log10((high - low) / 4))
    step = next(k * unit for k in (1, 2, 2.5, 5, 10) if k * unit >= (high - low) / 5)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [k * step for k in range(first, last + 1)]


def _decades(low: float, high: float) -> list[float]:
    """Return up to six whole numbers between two logarithms; these two if there is none."""
    first, last = math.ceil(low), math.floor(high)
    step = max(1, math.ceil((last - first) / 5))
    return [float(k) for k in range(first, last + 1, step)] or [low, high]


def _svg(width: float, height: float, parts: list[str], label: str) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" '
        f'width="{width:g}" height="{height:g}" role="img" aria-label="{escape(label)}" '
        f'font-family="system-ui, sans-serif" font-size="12">{"".join(parts)}</svg>'
    )
