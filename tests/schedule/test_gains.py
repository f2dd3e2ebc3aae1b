"""What a schedule gains on EASY's, and the gate, by hand."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from few_jobs import few_jobs
from mistakes import mistakes_of

from hpcgym import Workload, simulate
from hpcgym.schedule.gains import Felt, Gain, felt, gain, gain_of_replays, used
from hpcgym.study.intervals import mean_of
from hpcgym.units import WEEK_S
from hpcgym.workload.stretching import stretched


def felt_by_hand(
    bsld: list[float], jobs: list[int], longest_h: float = 10.0, weighted_h: float = 1.0
) -> Felt:
    return Felt(np.array(jobs), np.array(bsld), longest_h, weighted_h)


def two_weeks() -> Workload:
    """On one processor: jobs of 100 s and of 50 s at once, and again in the second week."""
    later = WEEK_S - 1, WEEK_S  # the first of these is the last of its week
    return few_jobs(1, [0, 0, *later], [100, 50, 100, 50], [1, 1, 1, 1])


def test_what_jobs_felt_by_hand() -> None:
    result = simulate(two_weeks(), "fcfs")
    assert result.wait.tolist() == [0, 100, 0, 99]
    on_part = felt(result, np.ones(4, bool))
    assert on_part.jobs.tolist() == [3, 1]
    assert on_part.bsld.tolist() == [(1 + 150 / 50 + 1) / 3, 149 / 50]
    assert on_part.longest_wait_h == 100 / 3600
    areas = 100 + 50 + 100 + 50
    assert on_part.area_weighted_wait_h == pytest.approx((50 * 100 + 50 * 99) / areas / 3600)


def test_jobs_of_a_part_are_in_the_weeks_of_the_log() -> None:
    result = simulate(two_weeks(), "fcfs")
    on_part = felt(result, np.array([False, False, False, True]))
    assert on_part.jobs.tolist() == [0, 1]
    assert math.isnan(on_part.bsld[0])
    assert on_part.bsld[1] == 149 / 50
    assert on_part.longest_wait_h == on_part.area_weighted_wait_h == 99 / 3600


def test_weeks_with_few_jobs_do_not_count() -> None:
    easy = felt_by_hand([8.0, 4.0, 9.0], [20, 19, 400])
    ours = felt_by_hand([2.0, 1.0, 18.0], [20, 19, 400])
    gained = gain(easy, ours)
    assert gained.weeks.tolist() == [math.log(4), math.log(0.5)]
    assert gained.score == pytest.approx(math.log(2) / 2)  # each week alike, however many jobs


@pytest.mark.parametrize(
    ("easy", "ours", "broken"),
    [
        ((100.0, 5.0), (200.0, 10.0), []),  # twice is allowed
        ((100.0, 5.0), (200.1, 10.0), ["longest wait 200.1 h, at most 200.0 h"]),
        ((100.0, 5.0), (90.0, 10.1), ["area-weighted wait 10.1 h, at most 10.0 h"]),
        ((100.0, 5.0), (300.0, 20.0), ["longest", "area-weighted"]),
        ((1.0, 5.0), (72.0, 5.0), []),  # the floor
        ((1.0, 5.0), (72.1, 5.0), ["longest wait 72.1 h, at most 72.0 h"]),
        ((37.0, 5.0), (74.0, 5.0), []),  # the floor is of the bound, and not of EASY's wait
        ((37.0, 5.0), (75.0, 5.0), ["longest wait 75.0 h, at most 74.0 h"]),
        ((0.0, 0.0), (72.0, 0.0), []),
        ((0.1, 3.4 / 3600), (0.1, 7.5 / 3600), []),  # seconds
        ((0.0, 0.0), (1.0, 1.0), []),  # the floor
        ((0.0, 0.0), (1.0, 1.1), ["area-weighted wait 1.1 h, at most 1.0 h"]),
        ((1.0, 0.6), (1.0, 1.2), []),  # the floor is of the bound, and not of EASY's wait
        ((1.0, 0.6), (1.0, 1.3), ["area-weighted wait 1.3 h, at most 1.2 h"]),
    ],
)
def test_the_gate(easy: tuple[float, ...], ours: tuple[float, ...], broken: list[str]) -> None:
    gained = gain(felt_by_hand([4.0], [20], *easy), felt_by_hand([2.0], [20], *ours))
    assert len(gained.broken) == len(broken)
    assert all(
        break_text.startswith(said) for break_text, said in zip(gained.broken, broken, strict=True)
    )
    assert gained.weeks.tolist() == [math.log(2)]
    assert gained.score == (0 if broken else math.log(2))


def test_the_share_of_the_gate_that_is_used() -> None:
    """By hand; where nothing waits under EASY, a share of the floors."""
    easy, idle = felt_by_hand([4.0], [20], 50.0, 5.0), felt_by_hand([4.0], [20], 0.0, 0.0)
    assert used(easy, felt_by_hand([2.0], [20], 80.0, 15.0)) == (0.8, 1.5)
    assert used(idle, felt_by_hand([2.0], [20], 36.0, 0.1)) == (0.5, 0.1)
    assert used(idle, idle) == used(easy, idle) == (0.0, 0.0)
    no_area = felt_by_hand([4.0], [20], 0.0, math.nan)  # of jobs that run for no time
    assert used(no_area, no_area) == (0.0, 0.0)


def test_easy_gains_nothing_on_itself() -> None:
    jobs = few_jobs(2, list(range(0, 2000, 50)), [100] * 40, [1, 2] * 20)
    itself = felt(simulate(jobs, "easy"), np.ones(40, bool))
    assert gain(itself, itself) == Gain(pytest.approx([0.0]), ())
    shortest = gain(itself, felt(simulate(jobs, "spf"), np.ones(40, bool)))
    assert shortest.weeks.tolist() == [
        math.log(simulate(jobs, "easy").bsld.mean() / simulate(jobs, "spf").bsld.mean())
    ]


def test_each_log_counts_alike() -> None:
    """However many weeks it has; where weeks are alike, so are all resamples."""
    assert mean_of([np.full(40, 1.0), np.full(8, 0.5)]) == (0.75, 0.75, 0.75)
    assert mean_of([np.full(100, 1.0), np.zeros(8)])[0] == 0.5


def test_too_few_weeks_have_no_interval() -> None:
    for lengths, has in (((20,), True), ((19,), False), ((12, 8), True), ((40, 7), False)):
        value, *ends = mean_of([np.ones(n) for n in lengths])
        assert value == 1
        assert [math.isnan(end) for end in ends] == [not has] * 2
    assert all(map(math.isnan, mean_of([np.ones(20), np.ones(0)])))


def test_weeks_are_drawn_in_blocks_of_four() -> None:
    """The same values in blocks that differ have wider intervals than in turns."""
    blocks, turns = np.repeat([0.0, 1.0] * 10, 4), np.array([0.0, 1.0] * 40)
    wide, narrow = mean_of([blocks]), mean_of([turns])
    assert wide.value == narrow.value == 0.5
    assert (narrow.low, narrow.high) == (0.5, 0.5)  # any four that follow each other have two
    # of 20 blocks; a mean of 20 coins would have 0.22, and blocks begin anywhere
    assert 0.1 < wide.high - 0.5 < 0.22
    assert 0.1 < 0.5 - wide.low < 0.22
    of_two = mean_of([blocks, blocks])
    assert of_two.high - of_two.low == pytest.approx((wide.high - wide.low) / math.sqrt(2), rel=0.1)


def test_replays_keep_the_gate_in_their_mean_and_a_wider_one_each() -> None:
    weeks = np.full(8, 40)

    def replay(bsld: float, longest: float, weighted: float = 1.0) -> Felt:
        return Felt(weeks, np.full(8, bsld), longest, weighted)

    easy = [replay(8.0, 50.0), replay(4.0, 150.0)]  # on the mean 100 h
    kept = gain_of_replays(easy, [replay(2.0, 100.0), replay(2.0, 300.0)])
    assert kept.broken == ()
    np.testing.assert_allclose(kept.weeks, np.log([[4.0] * 8, [2.0] * 8]))
    assert kept.score == pytest.approx(np.log(8) / 2)
    mean = gain_of_replays(easy, [replay(2.0, 101.0), replay(2.0, 300.0)])
    assert mean.broken == ("longest wait 200.5 h, at most 200.0 h",)
    assert mean.score == 0
    once = gain_of_replays(easy, [replay(2.0, 126.0), replay(2.0, 100.0)])
    assert once.broken == ("longest wait 126.0 h, at most 125.0 h, in a replay",)
    assert gain_of_replays(easy, [replay(2.0, 125.0), replay(2.0, 100.0)]).broken == ()


def test_jobs_are_of_the_weeks_of_the_log_as_it_is() -> None:
    """Also wide jobs: more than a quarter of the machine."""
    submit = np.array([0, 604_799, 604_800])
    jobs = few_jobs(4, submit, [100] * 3, [1, 2, 2])
    later = simulate(stretched(jobs, 1.5), "easy")
    assert later.workload.submit_time.tolist() == [0, 907_198, 907_200]
    every = np.ones(3, bool)
    assert felt(later, every).jobs.tolist() == [1, 2]
    assert felt(later, every, submit).jobs.tolist() == [2, 1]
    waited = replace(later, start=later.workload.submit_time + np.array([7200, 3600, 0]))
    assert felt(waited, every, submit).wide_wait_h == 0.5


def test_intervals_are_over_replays_too() -> None:
    """Where all weeks are alike, they are of replays alone, each drawn with the same chance."""
    replays = np.repeat([[0.0], [1.0]], 40, axis=1)
    mean = mean_of([replays])
    assert (mean.value, mean.low, mean.high) == (0.5, 0.0, 1.0)
    noise = np.random.default_rng(0).normal(0, 1, 80)
    same, alone = mean_of([np.stack([noise] * 5)]), mean_of([noise])
    assert same.value == pytest.approx(alone.value)
    assert same.high - same.low == pytest.approx(alone.high - alone.low, rel=0.1)


test_mistakes = mistakes_of(globals())
