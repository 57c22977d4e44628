"""Statistics and verdicts."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from zerogap.lab import (
    DEPENDS,
    FAILS,
    HOLDS,
    NO,
    OPEN,
    UNDECIDED,
    YES,
    Calculation,
    Claim,
    Count,
    Interval,
    Verdict,
    above,
    below,
    conclude,
    final,
    lower,
    mean,
    median,
    mostly,
    paired_difference,
    settle,
    sign_test,
    within,
)


def table(**shifts):
    """A tidy table of 8 seeds and 3 records; the shift is that of solver b over a, by data set."""
    rows = []
    for data, shift in shifts.items():
        rng = np.random.default_rng(0)
        for seed in range(8):
            noise = rng.normal(scale=5.0)  # shared by the pair
            for name, more in (("a", 0.0), ("b", shift)):
                rows += [
                    {
                        "data": data,
                        "solver": name,
                        "seed": seed,
                        "updates": updates,
                        "gap": noise + more + rng.normal(scale=0.01) + 100 / updates,
                    }
                    for updates in (1, 10, 100)
                ]
    return pd.DataFrame(rows)


def test_mean_is_students():
    values = np.random.default_rng(0).normal(size=12)
    found = mean(values, "x")
    known = stats.ttest_1samp(values, 0.0).confidence_interval(0.95)
    assert (found.low, found.high) == pytest.approx((known.low, known.high))
    assert found.n == 12
    assert found.method == "t"


def test_intervals_cover():
    rng = np.random.default_rng(1)
    for method, statistic in (("t", mean), ("bootstrap", median)):
        samples = [statistic(rng.normal(size=15)) for _ in range(300)]
        share = np.mean([s.low <= 0 <= s.high for s in samples])
        assert 0.9 <= share <= 0.99, method
    assert median([3.0, 1.0, 2.0]) == median([3.0, 1.0, 2.0])  # the bootstrap's seed is fixed


def test_differences_are_paired():
    effect = paired_difference(final(table(x=0.5)), "gap", "a", "b")
    assert effect.estimate == pytest.approx(-0.5, abs=0.02)
    assert effect.high - effect.low < 0.1  # the shared noise of 5 is gone
    with pytest.raises(ValueError, match="no solver 'c'"):
        paired_difference(final(table(x=0.5)), "gap", "a", "c")


def test_sign_test_is_the_binomial():
    assert sign_test([1, 1, 1, -1, 0]) == pytest.approx(stats.binomtest(3, 4).pvalue)


def test_counts_have_exact_intervals():
    known = stats.binomtest(3, 20).proportion_ci(method="exact")
    assert Count("x", 3, 20).interval == pytest.approx((known.low, known.high))
    assert Count("x", 0, 20).interval[0] == 0
    assert Count("x", 20, 20).interval[1] == 1


def test_no_verdict_from_a_single_run():
    one = Interval("x", 1.0, 0.9, 1.1, n=1)
    with pytest.raises(ValueError, match="single run"):
        Verdict(HOLDS, "so", (one,))
    with pytest.raises(ValueError, match="single run"):
        Verdict(HOLDS, "so", (Count("x", 1, 1),))
    with pytest.raises(ValueError, match="needs a statistic"):
        Verdict(HOLDS, "so", ())
    with pytest.raises(ValueError, match="repeat it"):
        mean([1.0])
    with pytest.raises(ValueError, match="not finite"):
        mean([1.0, np.inf])
    single = final(table(x=1.0)).query("seed == 0")
    with pytest.raises(ValueError, match="repeat it"):
        lower(single, "gap", "a", "b")
    assert Verdict(HOLDS, "so", (Calculation("1 + 1 = 2"),)).verdict == HOLDS


def test_depends_says_on_what():
    evidence = (Count("x", 1, 2),)
    with pytest.raises(ValueError, match="on_what"):
        Verdict(DEPENDS, "so", evidence)
    with pytest.raises(ValueError, match="on_what"):
        Verdict(HOLDS, "so", evidence, "data")
    with pytest.raises(ValueError, match="a verdict is"):
        Verdict("perhaps", "so", evidence)


def test_lower_judges_group_by_group():
    assert lower(table(x=0.5, y=0.2), "gap", "a", "b").verdict == HOLDS
    assert lower(table(x=-0.5, y=-0.2), "gap", "a", "b").verdict == FAILS
    open_ = lower(table(x=0.0), "gap", "a", "b")
    assert open_.verdict == UNDECIDED
    assert open_.sentence == "a ends with neither a lower nor a higher gap than b."
    mixed = lower(table(x=0.5, y=-0.2), "gap", "a", "b")
    assert (mixed.verdict, mixed.on_what) == (DEPENDS, "data")
    assert mixed.sentence == "a ends with a lower gap than b on x, a higher gap than b on y."
    assert [part.n for part in mixed.evidence] == [8, 8]


def test_an_interval_with_both_answers_refutes_nothing():
    clear, unclear = Interval("", 2.0, 1.0, 3.0, 9), Interval("", 0.0, -1.0, 1.0, 9)
    assert (above(clear), below(clear), above(unclear)) == (YES, NO, OPEN)
    assert (within(clear, 0, 4), within(clear, 4, 5), within(clear, 2, 4)) == (YES, NO, OPEN)
    counts = (Count("", 9, 9), Count("", 0, 9), Count("", 5, 9))
    assert [mostly(count) for count in counts] == [YES, NO, OPEN]
    assert settle([YES, YES]) == HOLDS
    assert settle([NO, OPEN]) == FAILS
    assert settle([YES, NO, OPEN]) == DEPENDS
    assert settle([YES, OPEN]) == settle([OPEN]) == settle([]) == UNDECIDED


def test_robustness_is_a_second_line():
    evidence = (Count("x", 1, 2),)
    found = conclude([YES], {HOLDS: "So."}, evidence, "data", "Elsewhere not.", evidence)
    assert (found.verdict, found.sentence, found.on_what) == (HOLDS, "So.", "")
    assert found.further == evidence
    with pytest.raises(ValueError, match="sentence on robustness"):
        Verdict(HOLDS, "So.", evidence, further=evidence)


def test_claims_cover_the_row_they_are_named_after():
    assert Claim("S0-52b", "so", lower).covers == ("S0-52",)
    assert Claim("extra", "so", lower, covers=("S0-1",)).covers == ("S0-1",)


def test_intervals_are_written_in_few_digits():
    assert Interval("", 1648.2, 1561.1, 1750.9, 5).numbers == "1650 [1560, 1750]"
    assert Interval("", 1e-17, -0.0363, 0.0363, 5).numbers == "0 [-0.0363, 0.0363]"
    assert Interval("", 0.544, 0.544, 0.544, 5).numbers == "0.544"
