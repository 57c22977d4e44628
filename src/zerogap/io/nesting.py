"""How deeply JSON is nested: to be known before a recursive parser reads it."""

from __future__ import annotations

import numpy as np

_STEPS = np.zeros(256, dtype=np.int8)  # of the depth, by character
_STEPS[[*b"[{"]], _STEPS[[*b"]}"]] = 1, -1
_PIECE = 1 << 16  # bytes looked at together: little memory, few steps
_WINDOW = 512  # bytes whose brackets are only counted


def depth(text: bytes) -> int:
    """Return how deep a text is nested; brackets in strings do not count."""
    plain = text.replace(rb"\\", b"").replace(
        rb"\"", b""
    )  # every quote left begins or ends a string
    signs = np.frombuffer(plain, dtype=np.uint8)
    quotes = now = most = 0
    for start in range(0, len(signs), _PIECE):
        piece = signs[start : start + _PIECE]
        places = quotes + np.cumsum(piece == ord('"'))
        depths = now + np.cumsum(np.where(places % 2, 0, _STEPS[piece]))
        quotes, now, most = int(places[-1]), int(depths[-1]), max(most, int(depths.max()))
    return most


class Rise:
    """An upper bound of how deeply JSON is nested, quickly, one piece after another.

    Brackets in strings count, too, and those within one window of bytes are not told apart.
    """

    def __init__(self) -> None:
        self.now = self.least = self.most = 0

    def add(self, piece: bytes) -> None:
        """Count the brackets of the next bytes."""
        steps = _STEPS[np.frombuffer(piece, dtype=np.uint8)]
        if not len(steps):
            return
        sums = np.add.reduceat(steps, np.arange(0, len(steps), _WINDOW), dtype=np.int64)
        ends = self.now + np.cumsum(sums)
        lows = np.minimum(self.least, np.minimum.accumulate(ends))
        self.most = max(self.most, int((ends - lows).max()))
        self.now, self.least = int(ends[-1]), int(lows[-1])
