"""Tables whose verdict is known in advance, and what every sentence must be like."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from zerogap.lab import DEPENDS, FAILS, HOLDS, UNDECIDED, Verdict

SIGNS = {HOLDS: (1, 1), FAILS: (-1, -1), DEPENDS: (1, -1), UNDECIDED: (1, 0)}
"""For two comparisons: so, not so, or too noisy to tell."""
ALL_FOUR = pytest.mark.parametrize("verdict", SIGNS)
RIDDLES = (
    "for half of the way",
    "0 of 1 problem",
    "the smallest slack is",
    "of what the bound allows",
    "of 1 lambda",
    "nearly one problem",
    "nan",
)


def noise(sign: int, seeds: int = 6, size: float = 1.0) -> np.ndarray:
    """Return one number per seed: clearly of that sign, or around 0 if the sign is 0."""
    steps = np.linspace(-0.1, 0.1, seeds)
    return size * (sign + steps if sign else 10 * steps * (-1.0) ** np.arange(seeds))


def check(found: Verdict, verdict: str, *words: str) -> Verdict:
    """See that the verdict is as expected and that its sentence says so, in plain words."""
    assert found.verdict == verdict, found
    for text in (found.sentence, found.robustness):
        assert not any(riddle in text for riddle in RIDDLES), text
    assert found.sentence.endswith(".")
    assert not found.sentence[0].islower()
    for word in words:
        assert word in found.sentence, found.sentence
    return found


def told(judge: Any, tables: dict[str, Any], words: dict[str, str]) -> None:
    """See that each table gets its verdict, and that no two verdicts share a sentence."""
    sentences = {}
    for verdict, table in tables.items():
        parts = table if isinstance(table, tuple) else (table,)
        sentences[verdict] = check(judge(*parts), verdict, words.get(verdict, "")).sentence
    assert len(set(sentences.values())) == len(sentences)
