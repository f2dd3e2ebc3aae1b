"""Jobs that share a file system: by hand, and what holds of every schedule."""

from __future__ import annotations

import dataclasses
from functools import partial
from typing import Any

import numpy as np
import pytest
from drawing import HealthCheck, given, settings
from mistakes import mistakes_of
from shared_strategies import Case, cases, coded, with_files
from test_corun_conformance import cluster_of, heatmap_of, one_that_both_take, simulated

import hpcgym
from hpcgym.machine.speedups import Heatmap, LearnedSpeedups
from hpcgym.workload import Workload

RANDOM = settings(max_examples=100, suppress_health_check=list(HealthCheck))

#: Codes: one that only computes, one that reads half of the time, one that rarely writes, but much.
CODES = ("cpu", "read", "write")
ONES = Heatmap(CODES, np.ones((3, 3)), io_share=[0, 0.5, 0.125], io_demand_mb_s=[0, 10, 20])


workload = partial(coded, processors=16)


def machine(gb_s: float | None, shape: str = "4x1x4") -> hpcgym.Cluster:
    return dataclasses.replace(hpcgym.machine.find_cluster(shape), io_bandwidth_gb_s=gb_s)


def simulate(jobs: Workload, scheduler: Any = "easy", **rules: Any) -> hpcgym.Result:
    arguments = {"cluster": machine(0.04), "speedups": ONES, **rules}
    result = hpcgym.simulate(jobs, scheduler, **arguments)
    assert {"parts", "work"} <= set(hpcgym.validate_schedule(result))
    return result


# --- The slow simulator by hand -------------------------------------------------------------------


# --- By hand --------------------------------------------------------------------------------------


def test_a_lone_job_has_what_it_asks_for_or_less() -> None:
    # 4 cores of 10 MB/s: all of 40 MB/s; of 20 MB/s half, so that its I/O takes twice as long
    jobs = workload((0, 100, 100, 4, "read"))
    alone = simulate(jobs)
    assert alone.end.tolist() == [100.0]
    assert alone.metrics["io_congestion"] == 1
    assert simulate(jobs, cluster=machine(0.02)).end.tolist() == [150.0]
    assert simulate(jobs, cluster=machine(0.01)).end.tolist() == [250.0]


def test_readers_slow_each_other_down_wherever_they_are() -> None:
    # from 50 s on two ask for twice the bandwidth: 1 / 1.5 as fast, compact and on other nodes.
    # The first has 50 left, done at 125; the second has done 50 then, and goes on alone
    jobs = workload((0, 100, 100, 4, "read"), (0, 100, 100, 4, "cpu"), (50, 100, 100, 4, "read"))
    result = simulate(jobs)
    assert result.end.tolist() == [125.0, 100.0, 175.0]
    assert result.job_speedup.tolist() == [0.8, 1.0, 0.8]
    # twice as long from 50 s to 125 s, of 175 s
    assert result.metrics["io_congestion"] == pytest.approx(1 + 75 / 175)


def test_ticks_are_fewer_where_congestion_is_worse() -> None:
    jobs = workload((0, 2**31 - 1, 2**31 - 1, 16, "read"))
    result = simulate(jobs, cluster=machine(1e-6))
    assert result.coschedule is not None
    assert result.coschedule.ticks < simulate(jobs).coschedule.ticks  # type: ignore[union-attr]
    assert result.end[0] == pytest.approx((2**31 - 1) * (1 + 0.5 * (160e6 / 1e3 - 1)))


# --- What holds of every schedule -----------------------------------------------------------------


def schedule_of(result: hpcgym.Result) -> list[Any]:
    shared, allocation = result.coschedule, result.allocation
    assert shared is not None
    assert allocation is not None
    times = (shared.start_ticks, shared.end_ticks, shared.promised_ticks, allocation.node)
    return [shared.ticks, *(array.tolist() for array in times)]


@pytest.mark.slow
@RANDOM
@given(with_files(cases()))
def test_enough_bandwidth_changes_nothing(case: Case) -> None:
    case = one_that_both_take(case)
    assert case.files is not None
    files = dataclasses.replace(case.files, bandwidth=max(case.asked, 1))
    plenty, _ = simulated(dataclasses.replace(case, files=files))
    without = dataclasses.replace(case, files=None)
    plain, _ = simulated(without)
    assert schedule_of(plenty) == schedule_of(plain)
    # nor do demands where the machine has no bandwidth
    unasked = hpcgym.simulate(
        plain.workload, plain.scheduler, cluster=cluster_of(without), speedups=heatmap_of(case)
    )
    assert schedule_of(unasked) == schedule_of(plain)


# --- Refusals -------------------------------------------------------------------------------------


def test_what_does_not_go_with_a_bandwidth() -> None:
    jobs = workload((0, 10, 10, 4, "read"))
    assert simulate(jobs, "easy-co", pair_estimate=ONES).end.tolist() == [10.0]


def test_machines_of_other_jobs_may_have_a_bandwidth() -> None:
    jobs = workload((0, 10, 10, 4, "read"))
    result = hpcgym.simulate(jobs, "easy", cluster=machine(1e-3))
    assert result.end.tolist() == [10]
    assert "io_congestion" not in result.metrics
    assert "io_congestion" not in simulate(jobs, cluster=machine(None)).metrics


test_mistakes = mistakes_of(globals(), LearnedSpeedups)
