"""Simulations of jobs that share nodes: cases by hand, EASY without sharing, refusals."""

from __future__ import annotations

import copy
import dataclasses
import itertools
from typing import Any

import numpy as np
import pytest
from drawing import HealthCheck, given, settings
from drawing import strategies as st
from mistakes import mistakes_of
from shared_strategies import coded as workload

import hpcgym
from hpcgym.baselines.schedulers import COSCHEDULERS
from hpcgym.errors import HpcgymError
from hpcgym.machine.speedups import Heatmap, LearnedSpeedups
from hpcgym.workload import Workload
from hpcgym.workload.codes import with_codes

TWO = Heatmap(("a", "b"), [[1.0, 1.25], [0.8, 1.0]], alone=[1.0, 1.0])


def simulate(jobs: Workload, scheduler: Any = "easy-co", **rules: Any) -> hpcgym.Result:
    arguments = {"cluster": "2x1x4", "speedups": TWO, **rules}
    result = hpcgym.simulate(jobs, scheduler, **arguments)
    proved = hpcgym.validate_schedule(result)
    assert {"parts", "work", "energy"} <= set(proved)
    return result


def lublin(seed: int, jobs: int = 400) -> Workload:
    jobs_drawn = hpcgym.load_workload(f"lublin:jobs={jobs},processors=640,load=1,seed={seed}")
    codes = np.random.default_rng(seed).choice(["a", "b"], len(jobs_drawn))
    return with_codes(jobs_drawn, codes.tolist())


# --- By hand --------------------------------------------------------------------------------------


def test_two_jobs_beside_each_other() -> None:
    # both halves of both nodes; a is a quarter faster beside b, which is slower beside a: a ends
    # after 100 / 1.25 = 80 s, when b has done 64 of its 100 s; it goes on alone, at rate 1
    result = simulate(workload((0, 100, 200, 4, "a"), (0, 100, 200, 4, "b")))
    assert result.start.tolist() == [0.0, 0.0]
    assert result.end.tolist() == [80.0, 116.0]
    assert result.job_speedup.tolist() == [1.25, 100 / 116]


# --- Without sharing ------------------------------------------------------------------------------


@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.integers(0, 10**6), st.sampled_from(["fcfs", "sjf", "lpf", "lexp"]), st.booleans())
def test_compact_is_easy_on_nodes(seed: int, policy: str, backfills: bool) -> None:
    jobs = lublin(seed % 5, 100 + seed % 300)
    rules: dict[str, Any] = {"policy": policy, "backfill": "easy" if backfills else "none"}
    rules["threshold"] = [None, 600][seed % 2]
    shared = simulate(jobs, hpcgym.Scheduler(**rules), cluster="64x2x5")
    nodes = jobs.with_columns(requested_processors=-(-jobs.requested_processors // 10))
    plain = hpcgym.simulate(nodes, hpcgym.Scheduler(**rules), processors=64)
    # where jobs share nodes, passes promise nothing under an order that changes with time
    promised = () if policy == "lexp" else ("reserved_start",)
    for name in ("start", "end", "backfilled", *promised):
        np.testing.assert_array_equal(getattr(shared, name), getattr(plain, name))


@pytest.mark.parametrize("name", COSCHEDULERS)
def test_every_co_scheduler_starts_everything(name: str) -> None:
    jobs = lublin(2)
    result = simulate(jobs, name, cluster="64x2x5")
    assert (result.start >= jobs.submit_time).all()
    assert (result.run_time > 0).all()
    assert simulate(jobs, name, cluster="64x2x5").end.tolist() == result.end.tolist()


# --- Broken schedules -----------------------------------------------------------------------------


def idle_though_jobs_wait() -> None:
    """Prove a schedule in which a job starts later than it could."""
    result = simulate(workload((0, 10, 10, 4, "a"), (0, 10, 10, 8, "b"), (50, 1, 1, 1, "a")))
    times = result.coschedule
    assert times is not None
    at = 50 * times.ticks
    start, end = times.start_ticks.copy(), times.end_ticks.copy()
    end[1] += at - start[1]
    start[1] = at
    moved = {"start": start / times.ticks, "run_time": (end - start) / times.ticks}
    kept = times._replace(start_ticks=start, end_ticks=end)
    hpcgym.validate_schedule(dataclasses.replace(result, coschedule=kept, **moved))


# --- What is learned ------------------------------------------------------------------------------


def test_what_is_learned_comes_from_ends_alone() -> None:
    jobs, learner = lublin(2), LearnedSpeedups(codes=TWO.codes)
    before = copy.deepcopy(learner.matrix())
    result = simulate(jobs, cluster="64x2x5", pair_estimate=learner)
    np.testing.assert_array_equal(learner.matrix(), before)  # a copy learns
    assert result.coschedule is not None
    learned = result.coschedule.pairs.matrix()
    assert abs(learned - TWO.speedup).max() < abs(before - TWO.speedup).max()
    again = simulate(jobs, cluster="64x2x5", pair_estimate=learner)
    assert again.end.tolist() == result.end.tolist()


@pytest.mark.parametrize(("first", "learned"), [(140, 1), (100, 2)])
def test_ends_tell_of_a_pair_that_has_been_one_for_nine_tenths(first: int, learned: int) -> None:
    """The other is there for 75 s: of 121 s of the first, or of 81 s."""
    jobs = workload((0, first, first, 4, "a"), (0, 60, 60, 4, "b"))
    result = simulate(jobs, pair_estimate="learned")
    assert result.end.tolist() == [first - 93.75 + 75, 75]
    assert result.coschedule is not None
    assert result.coschedule.pairs.learned == learned


def slowed(speedup: float) -> Any:
    """Simulate jobs beside each other that get on very slowly."""
    slow = Heatmap(TWO.codes, np.full((2, 2), speedup))
    return simulate(workload((0, 100, 100, 4, "a"), (0, 100, 100, 4, "b")), speedups=slow)


def test_tiny_speedups_are_simulated() -> None:
    assert slowed(1e-8).end.tolist() == [100 / 1e-8] * 2


def test_true_speedups_are_not_seen_before_anything_has_ended() -> None:
    # the first jobs start before any end tells of a pair
    jobs = workload(*[(0, 50, 50, 2, code) for code in "abab"], processors=8)
    other = Heatmap(TWO.codes, TWO.speedup[::-1].copy(), alone=[3.0, 0.5])
    starts = [
        simulate(jobs, speedups=true, pair_estimate="learned").allocation for true in (TWO, other)
    ]
    assert starts[0] is not None
    assert starts[1] is not None
    assert starts[0].node.tolist() == starts[1].node.tolist()


# --- Refusals -------------------------------------------------------------------------------------


WITH_GPUS = Workload.from_columns(
    {"submit_time": [0, 0], "run_time": [9, 9], "requested_time": [9, 9]},
    processors=8,
    units=[1, 1],
    per_unit={"core": [1, 1], "gpu": [0, 2]},
)


def test_a_long_workload_has_longer_ticks() -> None:
    year = 365 * 86_400
    jobs = workload(*[(0, year, year, 8, "a")] * 100)
    result = simulate(jobs)
    assert result.coschedule is not None
    assert result.coschedule.ticks < 10**9
    assert result.end.tolist() == list(itertools.accumulate([float(year)] * 100))


test_mistakes = mistakes_of(globals(), with_codes, errors=HpcgymError)
