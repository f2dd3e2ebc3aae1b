"""Intervals of means of values that follow one another: the bootstrap of blocks."""

from __future__ import annotations

from collections import Counter
from itertools import product

import numpy as np
import pytest

from hpcgym.errors import HpcgymError
from hpcgym.evaluation.intervals import against, block_length, bootstrap, how_often, win_rates


@pytest.mark.parametrize(
    ("n", "length"), [(0, 1), (1, 1), (7, 2), (8, 2), (9, 3), (27, 3), (28, 4), (64, 4), (105, 5)]
)
def test_blocks_grow_as_the_third_root(n: int, length: int) -> None:
    assert block_length(n) == length


def test_each_resample_is_of_blocks_that_follow_one_another() -> None:
    """Of five rows in blocks of two: two whole blocks and the first row of a third."""
    seen = Counter(map(tuple, how_often(5, 40_000, 3, block=2).tolist()))
    expected: Counter[tuple[int, ...]] = Counter()
    for one, other, last in product(range(5), repeat=3):
        rows = [one, (one + 1) % 5, other, (other + 1) % 5, last]
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
        ends = [bootstrap(one[:, None], 500, block=block) for one in samples.T]
        held[block] = np.mean([low <= 0 <= high for low, high in ends])
    # an interval that knew the truth held it 95 times in 100; neighbours make the mean 1.7 times
    # as uncertain as the plain one believes
    assert 0.65 < held[1] < 0.80
    assert 0.84 < held[5] < 0.95


def test_few_blocks_have_no_interval() -> None:
    assert np.isnan(bootstrap(np.ones((14, 1)), block=3)).all()
    assert np.array_equal(bootstrap(np.ones((15, 1)), block=3), [[1.0], [1.0]])


@pytest.mark.parametrize(
    ("change", "low", "high", "words"),
    [
        (-9, -12, -2, "better than easy, -9 % [-12, -2]"),
        (-9, -12, 2, "no better than easy, -9 % [-12, +2]"),
        (9, 1, 20, "worse than easy, +9 % [+1, +20]"),
        (9, np.nan, np.nan, "+9 % against easy (fewer than five weeks: no interval)"),
    ],
)
def test_words(change: float, low: float, high: float, words: str) -> None:
    assert against("easy", change, low, high) == words


def test_wins_add_up_to_1() -> None:
    assert win_rates(np.array([[1.0, 1.0, 2.0], [3.0, np.nan, 2.0]])).tolist() == [0.25, 0.25, 0.5]


@pytest.mark.parametrize("number", [1, 5])
def test_intervals_need_resamples(number: int) -> None:
    with pytest.raises(HpcgymError, match="resamples must be a whole number of at least 1, not 0"):
        bootstrap(np.ones((number, 1)), 0)
