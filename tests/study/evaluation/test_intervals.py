"""Intervals, p-values and summaries, beside loops, by hand and against scipy."""

from __future__ import annotations

from collections import Counter
from itertools import product

import numpy as np
import pandas as pd
import pytest
from drawing import given
from drawing import strategies as st
from mistakes import mistakes_of

from hpcgym.study.intervals import (
    EXACT,
    FLIPS,
    Drawn,
    against,
    block_length,
    bootstrap,
    draw,
    how_often,
    intervals,
    iqm,
    iqms_of,
    means_of,
    p_values,
    subsets,
    summary,
    why_no_small_p,
    win_rates,
)

stats = pytest.importorskip("scipy.stats")

# --- Slices and trainings that are drawn anew -----------------------------------------------------


def drawn_again(values: np.ndarray, drawn: Drawn, place: int, resample: int) -> np.ndarray:
    """The values of a resample, written out: each seed and each slice as often as it was drawn."""
    seeds = drawn.seeds[place]
    times = np.ones(1, np.int64) if seeds is None else seeds[resample]
    assert times.sum() == len(values)
    of_seeds = np.repeat(values, times, axis=0)
    return np.repeat(of_seeds, drawn.slices[resample], axis=1)


@given(st.integers(1, 4), st.integers(1, 7), st.integers(0, 10**6))
def test_resamples_have_the_means_of_what_was_drawn(seeds: int, n: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows = [rng.normal(0, 1e4, (number, n)).round(rng.integers(-5, 3)) for number in (1, seeds)]
    drawn = draw(rows, 9, seed)
    means, middles = means_of(rows, drawn), iqms_of(rows, drawn)
    for (place, values), resample in product(enumerate(rows), range(9)):
        written = drawn_again(values, drawn, place, resample)
        assert written.shape == (len(values), drawn.slices[resample].sum())
        assert means[resample, place] == pytest.approx(written.mean(), abs=1e-6)
        trimmed = stats.trim_mean(written, 0.25, axis=None)  # as rliable has it
        assert middles[resample, place] == pytest.approx(trimmed, abs=1e-6)
    for values in rows:
        assert iqm(values) == pytest.approx(stats.trim_mean(values, 0.25, axis=None), abs=1e-6)


def test_what_failed_has_no_interquartile_mean() -> None:
    rows = [np.array([[1.0, np.nan, 2.0, 3.0, 4.0]]), np.array([[1.0, 1.0, 2.0, 3.0, 4.0]])]
    assert np.isnan([iqm(values_of_slices) for values_of_slices in rows]).tolist() == [True, False]
    low, high = intervals(rows, iqms_of, 50, 0)
    assert np.isnan([*low, *high]).tolist() == [True, False] * 2


def test_seeds_widen_an_interval_as_theory_says() -> None:
    """The variance of a mean over crossed effects is that of the seeds / S + of the slices / n."""
    rng = np.random.default_rng(3)
    seeds, slices = rng.normal(0, 2, 40), rng.normal(0, 1, 60)
    rows = [seeds[:, None] + slices]
    low, high = intervals(rows, means_of, 4000, 0)
    expected = 2 * 1.96 * np.sqrt(seeds.var() / 40 + slices.var() / 60)
    assert (high - low)[0] == pytest.approx(expected, rel=0.06)
    # of one mean of the seeds a slice, the seeds are forgotten
    low, high = bootstrap(rows[0].mean(axis=0)[:, None], 4000)
    assert (high - low)[0] == pytest.approx(2 * 1.96 * slices.std() / 60**0.5, rel=0.06)


def test_p_values_by_hand() -> None:
    # the signs +++ and --- of 8 are as far from 0 as 1 + 2 + 3
    assert p_values(np.array([[1.0], [2.0], [3.0]])).tolist() == [0.25]
    # 1 + 2 - 3 = 0, as far as all are
    table = np.array([[1.0, 0.0, np.nan], [2.0, 0.0, 1.0], [-3.0, 0.0, 1.0]])
    assert p_values(table)[:2].tolist() == [1.0, 1.0]
    assert np.isnan(p_values(table)[2])


@given(st.lists(st.integers(-50, 50), min_size=2, max_size=EXACT - 2))
def test_p_values_of_few_slices_are_those_of_all_signs(tenths: list[int]) -> None:
    differences = np.array(tenths) / 10
    p = p_values(differences[:, None])[0]
    expected = stats.permutation_test(
        (differences,),
        lambda samples, axis: samples.sum(axis=axis),
        permutation_type="samples",
        n_resamples=np.inf,
        vectorized=True,
    )
    # scipy doubles the smaller tail; all signs have both alike
    assert p == pytest.approx(min(1.0, expected.pvalue))


@pytest.mark.parametrize("shift", [0.0, 0.3, 1.0])
def test_p_values_of_many_slices_are_near_those_of_t(shift: float) -> None:
    differences = np.random.default_rng(5).normal(shift, 1, 40)
    p = p_values(differences[:, None])[0]
    assert p == pytest.approx(stats.ttest_1samp(differences, 0).pvalue, abs=0.02)
    assert p >= 1 / (FLIPS + 1)
    assert p_values(differences[:, None])[0] == p


def test_subsets_by_hand() -> None:
    """Of three slices there are seven, in turn as there are few; the means of 0, 6 and 24."""
    drawn = subsets(3, 30, np.random.default_rng(4))
    seen = Counter(map(tuple, drawn.tolist()))
    assert seen.keys() == {*product((0, 1), repeat=3)} - {(0, 0, 0)}
    assert sorted(seen.values()) == [4] * 5 + [5] * 2
    rows = [np.array([[0.0, 6.0, 24.0]])]
    assert {*means_of(rows, Drawn(drawn, [None]))[:, 0]} == {0, 6, 24, 3, 12, 15, 10}


def test_subsets_of_many_slices_are_equally_likely() -> None:
    """Of 17 slices there are more than are drawn; each slice, and each pair, is in its share."""
    drawn = subsets(17, 100_000, np.random.default_rng(4))
    assert drawn.any(axis=1).all()
    together = drawn.T @ drawn / len(drawn)
    expected = np.where(np.eye(17), 0.5, 0.25)
    assert np.abs(together - expected).max() < 0.008  # five standard errors


@pytest.mark.parametrize("n", [6, 9, 20])
@given(st.integers(0, 10**6))
def test_intervals_hold_what_the_permutation_test_does_not_reject(n: int, seed: int) -> None:
    """Their ends are where p is 0.05, but for chance and for steps of p where n is small."""
    _check_ends(n, seed)


def test_intervals_of_few_slices_do_not_depend_on_chance() -> None:
    """Of this seed the greatest means were drawn so seldom that the end was one too far in."""
    _check_ends(6, seed=26773)
    rows = [np.array([[1.0, 2.0, 4.0, 8.0, 16.0, 32.0]])]
    ends = {tuple(np.ravel(intervals(rows, means_of, 4000, seed))) for seed in range(50)}
    assert ends == {(1.5, 24.0)}  # the second of 63 means from below, and from above


def _check_ends(n: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    values = rng.lognormal(0, 1.5, (1, n)) * rng.choice([-1, 1], n)
    for end in np.array(intervals([values], means_of, 4000, seed)).ravel():
        assert p_values(values.T - end)[0] == pytest.approx(0.05, abs=0.02 + 2.0 ** (1 - n))


def test_as_many_intervals_as_they_say_hold_the_truth() -> None:
    """Of 95 % intervals of values that are often far off 95 % do, the bootstrap's do not."""
    rng = np.random.default_rng(1)
    held = {"subsets": 0, "bootstrap": 0}
    for seed in range(1000):
        values = rng.lognormal(0, 1.5, (1, 8)) * rng.choice([-1, 1], 8)
        ends = intervals([values], means_of, 500, seed), bootstrap(values.T, 500, seed)
        for way, (low, high) in zip(held, ends, strict=True):
            held[way] += int(low[0] <= 0 <= high[0])
    assert 925 < held["subsets"] < 965
    assert held["bootstrap"] < 900


@given(st.integers(1, EXACT - 3), st.integers(0, 10**6))
def test_no_p_value_is_below_what_is_told(n: int, seed: int) -> None:
    """It is met where all differences have one sign."""
    differences = np.random.default_rng(seed).exponential(size=(n, 1))
    (least,) = p_values(differences)
    assert least == 2 / 2**n
    assert p_values(differences * np.where(np.arange(n) == 0, -1, 1)[:, None])[0] >= least
    reason = why_no_small_p(n, "weeks")
    assert reason == ("" if n > 7 else f"no p can be below {least:.3g}: that needs more weeks, and "
                    f"there are {n}")  # fmt: skip


# --- Rows that follow one another -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("n", "length"), [(0, 1), (1, 1), (7, 2), (8, 2), (9, 3), (27, 3), (28, 4), (64, 4), (105, 5)]
)
def test_blocks_grow_as_the_third_root(n: int, length: int) -> None:
    assert block_length(n) == length


def test_each_resample_is_of_blocks_that_follow_one_another() -> None:
    """Of five rows in blocks of two: two whole blocks and the first row of a third."""
    seen = Counter(map(tuple, how_often(5, 40_000, 3, block=2).tolist()))
    expected: Counter[tuple[int, ...]] = Counter()
    for first, other, last in product(range(5), repeat=3):
        rows = [first, (first + 1) % 5, other, (other + 1) % 5, last]
        expected[tuple(rows.count(row) for row in range(5))] += 1
    assert seen.keys() == expected.keys()
    for rows, number in expected.items():
        # five standard errors of a share
        share = number / 125
        assert seen[rows] / 40_000 == pytest.approx(share, abs=5 * (share / 40_000) ** 0.5)


def test_an_interval_by_hand() -> None:
    """Ten weeks in blocks of two, all jobs in two neighbours: means of 36 per block that has both.

    A block holds both weeks with 1/10, one of them with 2/10. Of five blocks, a sum of s of these
    weeks comes with the coefficient of x^s in ((7 + 2 x + x^2) / 10)^5.
    """
    chances = np.array([1.0])
    for _ in range(5):
        chances = np.convolve(chances, [0.7, 0.2, 0.1])
    values = np.zeros((10, 1))
    values[4:6] = 10.0  # each time that one of them is drawn adds 1 to the mean
    below = np.cumsum(chances)
    low, high = (int(np.searchsorted(below, q)) for q in (0.025, 0.975))
    assert (low, high) == (0, 5)
    assert abs(below - 0.025).min() > 0.01  # no end is a matter of luck
    assert abs(below - 0.975).min() > 0.005
    ends = bootstrap(values, 20_000, block=2)
    assert [end.item() for end in ends] == [low, high]


def test_means_over_jobs_by_hand() -> None:
    """Weeks of one and of nine jobs: what is drawn is sums over numbers, not means of means."""
    sums, counts = np.array([5.0] + 5 * [9.0]), np.array([1.0] + 5 * [9.0])
    times = how_often(6, 500, 0)
    means = np.array([(row * sums).sum() / (row * counts).sum() for row in times])
    low, high = bootstrap(sums[:, None], 500, 0, counts=counts)
    assert (low.item(), high.item()) == tuple(np.percentile(means, [2.5, 97.5]))
    # the mean of means would give the first week a sixth of the weight, and 1.67 or so
    assert np.median(means) == pytest.approx((5 + 45) / (1 + 45))
    alone = bootstrap(np.array([[0.0]] * 4 + [[6.0]] * 2), counts=np.array([0, 0, 0, 0, 3, 1]))
    assert alone[0] == 2  # resamples without any job are left out: 6 / 3
    assert alone[1] == 6


def test_blocks_of_one_are_the_plain_bootstrap() -> None:
    values = np.random.default_rng(2).exponential(size=(30, 2))
    drawn = np.random.default_rng(5).multinomial(30, np.full(30, 1 / 30), size=400)
    expected = np.percentile(drawn @ values / 30, [2.5, 97.5], axis=0)
    assert np.array_equal(bootstrap(values, 400, 5), expected)


def test_of_weeks_that_feel_the_one_before_blocks_are_nearer_to_the_truth() -> None:
    n, runs, alike = 100, 300, 0.5
    rng = np.random.default_rng(1)
    steps = rng.normal(size=(n + 50, runs))
    for k in range(1, n + 50):
        steps[k] += alike * steps[k - 1]
    samples = steps[50:]
    held = {}
    for block in (1, block_length(n)):
        ends = [bootstrap(sample[:, None], 500, block=block) for sample in samples.T]
        held[block] = np.mean([low <= 0 <= high for low, high in ends])
    # an interval that knew the truth held it 95 times in 100; neighbours make the mean 1.7 times
    # as uncertain as the plain one believes
    assert 0.65 < held[1] < 0.80
    assert 0.84 < held[5] < 0.95


def test_too_few_have_no_interval_and_none_is_without_resamples() -> None:
    assert np.isnan(bootstrap(np.ones((14, 1)), block=3)).all()
    assert np.array_equal(bootstrap(np.ones((15, 1)), block=3), [[1.0], [1.0]])


@pytest.mark.parametrize(
    ("change", "low", "high", "words"),
    [
        (-9, -12, -2, "better than easy, -9 % [-12, -2]"),
        (-9, -12, 2, "no better than easy, -9 % [-12, +2]"),
        (9, 1, 20, "worse than easy, +9 % [+1, +20]"),
        (9, np.nan, np.nan, "+9 % against easy (fewer than five weeks: no interval)"),
        (-0.4, -1.2, 0.3, "no better than easy, 0 % [-1, 0]"),
        (-0.4, np.nan, np.nan, "0 % against easy (fewer than five weeks: no interval)"),
        (np.nan, np.nan, np.nan, "not compared with easy: no jobs"),
    ],
)
def test_words(change: float, low: float, high: float, words: str) -> None:
    assert against("easy", change, low, high) == words


def test_wins_add_up_to_1() -> None:
    assert win_rates(np.array([[1.0, 1.0, 2.0], [3.0, np.nan, 2.0]])).tolist() == [0.25, 0.25, 0.5]


# --- Sweeps ---------------------------------------------------------------------------------------


def table(n: int = 7) -> pd.DataFrame:
    """Return a table as of a sweep: two workloads, two slices of each of n seeds, three rules."""
    rng = np.random.default_rng(5)
    rows = [
        {"workload": workload, "slice": of, "seed": seed, "scheduler": scheduler,
         "mean_bsld": level * rng.lognormal(), "utilization": rng.uniform(0.2, 0.9)}
        for workload in ("a", "b")
        for of in ("week 1", "week 2")
        for seed in range(n)
        for scheduler, level in (("easy", 4.0), ("saf", 2.0), ("fcfs", 4.5))
    ]  # fmt: skip
    return pd.DataFrame(rows).astype({"seed": "Int64"})


def values(rows: pd.DataFrame, workload: str, scheduler: str) -> np.ndarray:
    chosen = rows[(rows["workload"] == workload) & (rows["scheduler"] == scheduler)]
    return chosen.sort_values(["slice", "seed"])["mean_bsld"].to_numpy()


def test_pairs_are_those_of_the_same_jobs() -> None:
    rows = table(6)
    shuffled = rows.sample(frac=1, random_state=3)
    table_of_means = summary(shuffled, ["mean_bsld"], paired="easy").set_index(
        ["workload", "scheduler"]
    )
    for workload in ("a", "b"):
        easy = values(rows, workload, "easy")
        for scheduler in ("saf", "fcfs"):
            line = table_of_means.loc[workload, scheduler]
            change = values(rows, workload, scheduler) - easy
            assert line["simulations"] == 12
            assert line["mean_bsld"] == pytest.approx(values(rows, workload, scheduler).mean())
            assert line["mean_bsld_above"] == pytest.approx(change.mean())
            assert line["mean_bsld_effect"] == pytest.approx(change.mean() / change.std(ddof=1))
            test = stats.permutation_test(
                (change,), np.mean, permutation_type="samples", n_resamples=np.inf
            )
            assert line["mean_bsld_p"] == pytest.approx(test.pvalue, abs=1e-3)
            for end in ("low", "high"):  # where the same test is about to reject
                p = p_values(change[:, None] - line[f"mean_bsld_above_{end}"])[0]
                assert p == pytest.approx(0.05, abs=0.02)
        assert table_of_means.loc[workload, "easy"].filter(like="_above").isna().all()


def test_ratios_are_geometric_means_of_pairs_above_0() -> None:
    rows = table()
    table_of_means = summary(rows, ["mean_bsld"], intervals=["mean_bsld"], normalise="easy")
    line = table_of_means.set_index(["workload", "scheduler"]).loc["b", "saf"]
    ratios = values(rows, "b", "saf") / values(rows, "b", "easy")
    assert line["mean_bsld"] == pytest.approx(np.prod(ratios) ** (1 / 14))
    assert line["mean_bsld_low"] < line["mean_bsld"] < line["mean_bsld_high"]
    rows.loc[0, "mean_bsld"] = 0.0  # easy on workload a
    table_of_means = summary(rows, ["mean_bsld"], normalise="easy")
    assert table_of_means["mean_bsld_ratios"].tolist() == [13, 13, 13, 14, 14, 14]


def test_a_pair_of_which_one_is_not_done_is_left_out() -> None:
    rows = table()
    rows = rows.drop(index=0)  # easy of the first jobs of workload a
    table_of_means = summary(rows, ["mean_bsld"], paired="easy").set_index(
        ["workload", "scheduler"]
    )
    assert table_of_means.loc[("a", "easy"), "simulations"] == 13
    change = values(rows, "a", "saf")[1:] - values(rows, "a", "easy")
    assert table_of_means.loc[("a", "saf"), "mean_bsld_above"] == pytest.approx(change.mean())


def test_rows_by_slice_and_few_of_them() -> None:
    table_of_means = summary(table(4), ["mean_bsld"], intervals=["mean_bsld"], by="slice")
    assert list(table_of_means.columns[:4]) == ["workload", "slice", "scheduler", "simulations"]
    assert len(table_of_means) == 12
    assert set(table_of_means["simulations"]) == {4}
    assert table_of_means["mean_bsld_low"].isna().all()  # of fewer than five there are none


test_mistakes = mistakes_of(globals())
