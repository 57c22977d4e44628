"""Chapter S0: every judge gives every verdict, with a sentence that follows the outcome."""

import numpy as np
import pandas as pd
import pytest

from lab.outcomes import ALL_FOUR, SIGNS, check, noise, told
from zerogap.lab import DEPENDS, FAILS, HOLDS, UNDECIDED
from zerogap.lab.chapters import s0_batch, s0_judges, s0_outputs, s0_races

SLOW, QUICK = 9, 2


def race(places, data="made up", seeds=6, theory=True):
    """Return runs that jump from 1 to the optimum 0.2 at the given number of updates."""
    arms = dict(places)
    if theory and "ASDCA" in places:
        arms[s0_races.THEORY] = 1
    rows = [
        {
            "data": data,
            "lam": 0.1,
            "loss": "smooth-hinge" if solver.startswith("ASDCA") else "hinge",
            "solver": solver,
            "seed": seed,
            "updates": t,
            "examples": t * (8 if solver in ("ASDCA", "mini-batch PEGASOS") else 1),
            "hinge_primal": 1.0 if t < place else 0.2,
            "optimum": 0.2,
        }
        for solver, place in arms.items()
        for seed in range(seeds)
        for t in range(11)
    ]
    return pd.DataFrame(rows)


ORDERS = {
    True: {"SDCA": 4, "PEGASOS": SLOW, "ASDCA": QUICK, "mini-batch PEGASOS": 6},
    False: {"SDCA": 6, "PEGASOS": 1, "ASDCA": SLOW, "mini-batch PEGASOS": 2},
}


@pytest.mark.parametrize(
    ("judge", "so", "words"),
    [
        (s0_races.judge_slowest, ORDERS[True], "PEGASOS is last of the four"),
        (
            s0_races.judge_genomic,
            {"SDCA": 4, "PEGASOS": 5, "ASDCA": 6, "mini-batch PEGASOS": 1},
            "mini-batch PEGASOS is first",
        ),
        (s0_races.judge_simulated, ORDERS[True], "SDCA is second behind it"),
        (s0_races.judge_sdca_first, ORDERS[True], "SDCA is ahead of PEGASOS"),
        (s0_races.judge_dual_first, ORDERS[True], "SDCA is ahead of mini-batch PEGASOS"),
    ],
)
def test_races_give_every_verdict(judge, so, words):
    """By iterations, at 90, 95 and 99 % of the way; five runs of five may be chance."""
    reverse = {name: 12 - place for name, place in so.items()}
    tables = {
        HOLDS: (race(so), race(so, "other")),
        FAILS: (race(reverse), race(reverse, "other")),
        DEPENDS: (race(so), race(reverse, "other")),
        UNDECIDED: (race(so), race(so, "other", seeds=5)),
    }
    told(judge, tables, dict.fromkeys(tables, words))
    found = judge(*tables[HOLDS])
    assert "90, 95 and 99 % of the way" in found.sentence
    assert "6, 6 and 6 of 6 runs" in found.sentence
    assert found.robustness.startswith("By examples read")
    assert judge(*tables[DEPENDS]).on_what == "the data set"


def test_variants_are_judged_overall():
    """Ahead in most of the runs of all data sets together; one data set may differ."""
    so = {"SDCA": 7, "PEGASOS": 8, "ASDCA": 1, "mini-batch PEGASOS": 2}
    reverse = {name: 10 - place for name, place in so.items()}
    told(
        s0_races.judge_variants,
        {
            HOLDS: (race(so), race(so, "other"), race(reverse, "third", seeds=2)),
            FAILS: (race(reverse), race(reverse, "other")),
            UNDECIDED: (race(so), race(reverse, "other")),
        },
        {HOLDS: "24, 24 and 24 of 28 runs", FAILS: "0, 0 and 0 of 24 runs"},
    )


def test_a_stand_in_is_named():
    found = s0_races.judge_slowest(race(ORDERS[True], "gravier"))
    assert "on gravier (for genomic) in" in found.sentence
    (line, *_) = s0_races.with_problem(race(ORDERS[True], "gravier"))["problem"]
    assert line.startswith("gravier (for genomic)")


def test_asdca_is_measured_by_its_own_limit():
    """It ends above the hinge optimum by construction, and still converges."""
    table = race({"SDCA": 4, "ASDCA": 2})
    smooth = table["solver"].str.startswith("ASDCA") & (table["hinge_primal"] < 1)
    table.loc[smooth, "hinge_primal"] = 0.5
    (places, *_) = s0_races.arrivals(s0_races.with_limit(table), "updates", 0.01)
    assert places["ASDCA"][0] <= 2
    (places, *_) = s0_races.arrivals(
        s0_races.with_limit(table[table["solver"] != s0_races.THEORY]), "updates", 0.01
    )
    assert places["ASDCA"][0] == np.inf


def test_the_same_rate_is_within_a_factor_of_two():
    def table(asdca, spread=0):
        parts = [race({"SDCA": 4, "ASDCA": asdca + spread * (-1) ** k}) for k in range(6)]
        return pd.concat(p[p["seed"] == 0].assign(seed=k) for k, p in enumerate(parts))

    check(s0_races.judge_same_rate(table(5)), HOLDS, "times the iterations of SDCA")
    far = race({"SDCA": 1, "ASDCA": 10})
    check(s0_races.judge_same_rate(far), FAILS)
    check(s0_races.judge_same_rate(table(6, 4)), UNDECIDED)


def test_advice_counts_each_data_set_once():
    def runs(first, data):
        arms = {"SDCA": 5, "PEGASOS": 6, "ASDCA": 7, "mini-batch PEGASOS": 8} | {first: 1}
        parts = [race(arms, data).assign(lam=lam) for lam in (50.0, 1.0, 0.1)]
        return pd.concat(parts)

    judge = s0_races.judge_wide
    good, bad = (
        lambda data: runs("mini-batch PEGASOS", data),
        lambda data: runs("SDCA", data),
    )
    few = good("b")
    tables = {
        HOLDS: pd.concat([good("gravier"), good("b")]),
        FAILS: pd.concat([bad("gravier"), bad("b")]),
        DEPENDS: pd.concat([good("gravier"), bad("b")]),
        UNDECIDED: pd.concat([good("gravier"), few[few["seed"] < 5]]),
    }
    told(judge, tables, {HOLDS: "in 6 of 6 runs on gravier (for genomic)", FAILS: "in 0 of 6"})
    found = judge(tables[HOLDS])
    assert [count.n for count in found.evidence] == [6, 6]  # lambdas are not counted as problems
    assert "in 36 of 36 runs by iterations" in found.robustness


def test_advice_for_tall_data_is_judged_by_the_report_s_own_figures():
    """Other data, batches and thetas are robustness, whatever they say."""
    first = {"SDCA": 5, "PEGASOS": 6, "ASDCA": 1, "mini-batch PEGASOS": 8}
    last = first | {"ASDCA": SLOW}
    elsewhere = race(first, "ijcnn1")
    tables = {
        HOLDS: (race(first, "simulated"), race(first, "skin")),
        FAILS: (race(last, "simulated"), race(last, "skin")),
        DEPENDS: (race(first, "simulated"), race(last, "skin")),
        UNDECIDED: (race(first, "simulated"), race(first, "skin", seeds=5)),
    }
    told(
        s0_races.judge_tall,
        {verdict: (elsewhere, *figures) for verdict, figures in tables.items()},
        {HOLDS: "on skin in 6, 6 and 6 of 6 runs", FAILS: "on skin in 0, 0 and 0 of 6 runs"},
    )
    found = s0_races.judge_tall(elsewhere, *tables[FAILS])
    assert "first in 6 of 6 runs on ijcnn1" in found.robustness


def curves(values, seeds=6, data="made up", lam=50.0):
    """Return runs with the given distances from the optimum 1, by solver: one row per record."""
    rows = [
        {
            "data": data,
            "lam": lam,
            "solver": solver,
            "seed": seed,
            "updates": k + 1,
            "epoch": float(k + 1),
            "optimum": 0.5,
            "suboptimality": value[seed] if np.ndim(value) else value,
        }
        for solver, curve in values.items()
        for seed in range(seeds)
        for k, value in enumerate(curve)
    ]
    return pd.DataFrame(rows).assign(primal=lambda t: t["optimum"] + t["suboptimality"])


def heights(sign, size=0.5):
    """Return a distance per seed: ten to the power of a number of that sign."""
    return 0.1 * 10.0 ** noise(sign, size=size)


@ALL_FOUR
def test_orders(verdict):
    first, second = SIGNS[verdict]
    table = curves(
        {"permutation": [0.1], "random": [heights(-first)], "cyclic": [heights(-second)]}
    )
    judge = s0_judges.judge_order("permutation", "random", "cyclic")
    words = {1: "significantly more", -1: "significantly less", 0: "not significantly different"}
    found = check(judge(table), verdict, words[first], words[second])
    beside = {1: "slower than", -1: "faster than", 0: "neither slower nor faster than"}
    assert f"{beside[first]} the random order" in found.robustness
    assert f"{beside[second]} the cyclic order" in found.robustness
    assert "lambdas" not in found.robustness


def test_orders_at_several_lambdas_are_called_much_alike():
    runs = {"cyclic": [0.1], "random": [heights(-1)]}
    table = pd.concat([curves(runs), curves(runs, lam=1.0)])
    found = s0_judges.judge_order("cyclic", "random")(table)
    assert "for 2 and faster for 0 of the 2 lambdas (problems" in found.robustness
    assert len(found.evidence) == 1
    assert "made up, lambda = 50" in found.evidence[0].what


def test_three_orders_have_one_rate_and_the_permutation_is_slowest():
    """The two parts are answered apart: about the same rate is within a factor of two."""

    def table(permutation, cyclic=0.1):
        runs = {"permutation": [permutation], "random": [0.1], "cyclic": [cyclic]}
        return curves(runs)

    told(
        s0_judges.judge_three_orders,
        {
            HOLDS: table(0.1 * 10.0 ** (0.1 + 0.01 * noise(1))),
            FAILS: table(heights(-1, 1.0), 10.0),
            DEPENDS: table(heights(-1, 0.1)),
            UNDECIDED: table(0.1 * 10.0 ** noise(0, size=0.05)),
        },
        {DEPENDS: "significantly less", UNDECIDED: "not significantly different"},
    )


@pytest.mark.parametrize(("sign", "verdict"), [(-1, HOLDS), (1, FAILS), (0, UNDECIDED)])
def test_default_order(sign, verdict):
    """Much slower means twice the distance: log10 of 2 is 0.3."""
    size = 0.5 if sign else 1.0
    random = 0.1 * 10.0 ** (noise(sign, size=size) + (0.0 if sign else 0.3))
    table = curves({"permutation": [0.1], "random": [random], "cyclic": [0.1]})
    check(s0_judges.judge_default(table), verdict, "much slower would be 2 times")
    mixed = curves({"permutation": [0.1], "random": [heights(1)], "cyclic": [10.0]})
    check(s0_judges.judge_default(mixed), DEPENDS)


def test_permutation_is_as_fast_and_less_steady():
    calm, wild = [0.1, 0.1, 0.1, 0.1], [0.3, 0.02, 0.3, 0.02]
    jitter = [v * (1 + 0.001 * np.arange(6)) for v in wild]
    told(
        s0_judges.judge_permutation,
        {
            HOLDS: curves({"permutation": jitter, "random": calm}),
            FAILS: curves({"permutation": [9.0] * 4, "random": [v * 1e-3 for v in jitter]}),
            DEPENDS: curves({"permutation": calm, "random": jitter}),
            UNDECIDED: curves({"permutation": calm, "random": calm}),
        },
        {HOLDS: "are larger", DEPENDS: "are smaller", UNDECIDED: "not significantly different"},
    )


def projected(plain, other):
    return curves({"PEGASOS": plain, "PEGASOS, projected": other})


def test_projection_keeps_value_and_speed():
    tiny = 1e-4 * (1 + 0.1 * np.arange(6))
    jitter = [0.4 * (1 + 0.01 * np.arange(6)), 0.01, 0.001]
    late = [0.4] * 8 + [0.001]
    told(
        s0_judges.judge_limit,
        {
            HOLDS: projected([0.4, 0.01, tiny], [0.4, 0.01, tiny]),
            DEPENDS: projected(late, [0.4, *[0.001] * 8]),
            FAILS: projected([*[0.4] * 8, 0.4], [0.4, *[0.001] * 8]),
            UNDECIDED: projected([0.4, 0.01, 1e-3], [0.4, 0.01, np.abs(noise(0, size=0.02))]),
        },
        {HOLDS: "of the optimum", DEPENDS: "times the iterations"},
    )
    assert "by proof" in s0_judges.judge_limit(projected(jitter, jitter)).robustness


@pytest.mark.parametrize(("sign", "verdict"), [(-1, HOLDS), (1, FAILS), (0, UNDECIDED)])
def test_projection_smooths(sign, verdict):
    words = {-1: "significantly smaller", 1: "significantly larger", 0: "not significantly"}
    table = projected([1.0, 0.5], [1.0, 0.5 - 0.3 * noise(sign)])
    check(s0_judges.judge_smoother(table), verdict, words[sign])


@ALL_FOUR
def test_larger_lambda_is_faster(verdict):
    """Steps to 95 % of the way, for two of the solvers."""

    def runs(solver, sign):
        parts = []
        for lam, late in ((1.0, sign < 0), (0.1, sign > 0)):
            for seed in range(6):
                slow = late if sign else (seed + (lam < 1)) % 2
                curve = [0.4, 0.4, 0.001] if slow else [0.4, 0.001, 0.001]
                part = curves({solver: curve}, seeds=1, lam=lam)
                parts.append(part.assign(seed=seed))
        return pd.concat(parts)

    names = ("SDCA", "PEGASOS")
    table = pd.concat(map(runs, names, SIGNS[verdict]))
    words = {1: "fewer steps for", -1: "more steps for", 0: "neither more nor fewer steps for"}
    found = [f"{words[s]} {n}" for s, n in zip(SIGNS[verdict], names, strict=True)]
    check(s0_judges.judge_faster(table), verdict, *found)


@ALL_FOUR
def test_larger_lambda_ends_higher(verdict):
    parts = []
    for solver, sign in zip(("SDCA", "PEGASOS"), SIGNS[verdict], strict=True):
        seeds = 6 if sign else 5
        for lam in (1.0, 0.1):
            part = curves({solver: [0.1 + (0.3 if sign < 0 and lam < 1 else 0)]}, seeds, lam=lam)
            rise = 0.05 if lam > 0.5 else 0.0
            parts.append(part.assign(loss="hinge", primal=part["primal"] + rise))
    check(
        s0_judges.judge_objective(pd.concat(parts)), verdict, "rises from each lambda to the next"
    )


# Outputs and theorems


def accuracies(gain, solvers=tuple(s0_outputs.PRINTED), as_printed=False, spread=0.002, seeds=40):
    """Return repeats of table 2; `gain` is what averaging adds, by solver."""
    rng = np.random.default_rng(1)
    rows = [
        {
            "data": "simulated",
            "solver": solver,
            "output": output,
            "seed": seed,
            "test_error": 1
            - (s0_outputs.PRINTED[solver][k] if as_printed else 0.87)
            - k * gain[j % len(gain)]
            - spread * rng.standard_normal(),
            "beta_error": 0.12,
            "angle": 10.0 - 10 * k * gain[j % len(gain)],
        }
        for seed in range(seeds)
        for j, solver in enumerate(solvers)
        for k, output in enumerate(("last", "averaged"))
    ]
    return pd.DataFrame(rows)


def test_averaging_is_unimportant_below_a_point():
    told(
        s0_outputs.judge_accuracy,
        {
            HOLDS: accuracies((0.0, 0.004)),
            FAILS: accuracies((0.03,)),
            DEPENDS: accuracies((0.0, 0.03)),
            UNDECIDED: accuracies((0.0, 0.01)),
        },
        {HOLDS: "8 of 8 options, and by more with 0", FAILS: "0 of 8 options, and by more with 8"},
    )


def test_averaging_is_not_much_closer():
    def table(*shares):
        made = accuracies((0.0, 0.0), ("SDCA, random", "PEGASOS"), seeds=6)
        for solver, share in zip(("SDCA, random", "PEGASOS"), shares, strict=True):
            own = (made["solver"] == solver) & (made["output"] == "averaged")
            made.loc[own, "angle"] = 10.0 * np.asarray(share)
        return made

    open_ = 0.5 + noise(0, size=0.2)
    told(
        s0_outputs.judge_closer,
        {HOLDS: table(0.9, 0.8), FAILS: table(0.1, 0.2), DEPENDS: table(0.9, 0.1)}
        | {UNDECIDED: table(0.9, open_)},
        {HOLDS: "0.80 to 0.90 times", FAILS: "0.10 to 0.20 times"},
    )


@ALL_FOUR
def test_projection_and_accuracy(verdict):
    table = accuracies((0.0,), seeds=6, spread=0.0)
    for name, sign in zip(("PEGASOS", "mini-batch PEGASOS"), SIGNS[verdict], strict=True):
        for output in ("last", "averaged"):
            own = (table["solver"] == f"{name}, projected") & (table["output"] == output)
            table.loc[own, "test_error"] -= 0.01 * noise(sign)
    words = {1: "significantly better", -1: "significantly worse", 0: "not significant"}
    for output in ("last", "averaged"):
        found = s0_outputs.judge_projected(output)(table)
        check(found, verdict, *(words[sign] for sign in SIGNS[verdict]))


def test_table_2_agrees_or_contradicts():
    printed = accuracies((0.0,), as_printed=True, spread=1e-4)
    told(
        s0_outputs.judge_table,
        {
            HOLDS: printed,
            FAILS: printed.assign(test_error=1.74 - 1 - printed["test_error"] + 0.26),
            DEPENDS: printed.assign(
                test_error=printed["test_error"].where(printed["solver"] != "PEGASOS", 0.0 + 0.05)
            ),
            UNDECIDED: accuracies((0.0,), spread=0.05, seeds=10),
        },
        {HOLDS: "0 contradict the print", FAILS: "16 contradict the print"},
    )


def batches(places, cost, seeds=6):
    """Return runs that jump to their optimum at the given update, by the size of the batch."""
    rows = [
        {"data": data, "lam": 0.1, "loss": loss, "solver": f"{solver}, batches of {k}"}
        | {"seed": seed, "run": f"{data} {solver} {k} {seed}", "updates": t, "examples": k * t}
        | {"primal": start if t < places[k] else 0.2, "optimum": 0.2}
        | {"cpu_seconds": t * (cost if k == 32 else 1.0) * (1 + 0.01 * seed)}
        for data in ("simulated", "skin")
        for solver, loss, start in zip(
            s0_batch.SOLVERS, ("hinge", "smooth-hinge"), (1.0, 0.5), strict=True
        )
        for k in (2, 32)
        for seed in range(seeds)
        for t in range(11)
    ]
    return pd.DataFrame(rows)


def test_batches():
    """Fewer iterations and more time each; the two parts are told apart."""
    sooner, later = {2: 9, 32: 3}, {2: 3, 32: 9}
    told(
        s0_batch.judge_batches,
        {
            HOLDS: batches(sooner, 4.0),
            FAILS: batches(later, 0.5),
            DEPENDS: batches(later, 4.0),
            UNDECIDED: batches(sooner, 4.0, seeds=5),
        },
        {HOLDS: "takes 4 to 4 times the CPU time", FAILS: "0 of 6 runs (ASDCA on skin)"},
    )
    found = s0_batch.judge_batches(batches(sooner, 4.0))
    assert "By examples read they are first in 0 of 6 runs" in found.robustness
    assert "On other data, by iterations, in 6 of 6 runs" in found.robustness
