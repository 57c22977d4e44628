"""A problem on a device claims no more than exact arithmetic grants, nor do other evaluators."""

import pytest

from proofs_extreme_evaluators import SIMULATED, prove_evaluators


@pytest.mark.skipif(not SIMULATED, reason="the points are tiny: a GPU runs what it simulates")
def test_no_evaluator_claims_too_much():
    found = [prove_evaluators(seed) for seed in range(12)]
    assert sum(gap is not None for gap in found) > 6
