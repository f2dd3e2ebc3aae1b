"""Jobs are drawn on as many processors as they have, and no two on the same."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from drawing import given, settings
from drawing import strategies as st
from node_strategies import node_cases
from strategies import cases

import hpcgym
from hpcgym.machine import Cluster
from hpcgym.report.placement import (
    envelope,
    first_rows,
    place_jobs,
    rows_of,
)
from hpcgym.schedule.result import Result
from hpcgym.workload import assign_codes, load_workload


def assert_placed(result: Result) -> None:
    """Find each row held by one job at a time, and each job on the cores or lanes that it has."""
    job, begin, end, low, high = place_jobs(result)
    assert begin.tolist() == result.start[job].tolist()
    assert end.tolist() == result.end[job].tolist()
    row = np.concatenate([np.arange(a, b) for a, b in zip(low, high, strict=True)])
    owner = np.repeat(job, high - low)
    order = np.lexsort((result.start[owner], row))
    after = owner[order][1:], owner[order][:-1]
    same = np.diff(row[order]) == 0
    assert (result.end[after[1]] <= result.start[after[0]])[same].all()
    assert row.min() >= 0
    assert row.max() < rows_of(result)[-1]
    held, shared = result.allocation, result.coschedule
    if held is None:
        assert np.bincount(owner).tolist() == sizes(result).tolist()
        return
    of = np.repeat(np.arange(len(result.start)), np.diff(held.first))
    cores = sizes(result)[of] // np.bincount(of, held.units).astype(int)[of] * held.units
    if shared is not None:
        cores = np.where(shared.shares[of], 1, shared.parts)
    node = np.searchsorted(rows_of(result), row, "right") - 1
    wanted = zip(np.repeat(of, cores).tolist(), np.repeat(held.node, cores).tolist(), strict=True)
    assert sorted(zip(owner.tolist(), node.tolist(), strict=True)) == sorted(wanted)


def sizes(result: Result) -> Any:
    return result.workload.requested_processors


@settings(max_examples=100)
@given(st.one_of(cases().map(lambda case: (None, *case)), node_cases()))
def test_every_core_is_held_by_one_job_at_a_time(case: Any) -> None:
    cluster, workload, rules = case
    assert_placed(hpcgym.simulate(workload, cluster=cluster, **rules))


@pytest.mark.slow
@pytest.mark.parametrize("allocation", ["half-socket", "part:3", "spread", "compact"])
def test_every_lane_is_held_by_one_job_at_a_time(allocation: str) -> None:
    heatmap = hpcgym.generate_speedups(12, 1.05, 0.2, seed=4)
    log = load_workload("lublin:jobs=250,processors=192,seed=5,load=0.9")
    work = assign_codes(log, heatmap.codes, seed=6)
    rules = hpcgym.Scheduler(allocation=allocation)
    result = hpcgym.simulate(work, rules, cluster="16x2x6", speedups=heatmap)
    assert_placed(result)


def test_rows_are_counted_node_after_node() -> None:
    assert first_rows(hpcgym.machine.find_cluster("2x2x3")).tolist() == [0, 6, 12]
    assert first_rows(Cluster(5)).tolist() == [0, 5]


@pytest.mark.parametrize(
    ("jobs", "processors", "last"),
    [
        # at time 2 processors 0, 3 and 4 are free; the second place has room for two, the first not
        ([(0, 2, 1), (0, 7, 2), (0, 2, 2), (2, 2, 2)], 5, [(3, 5)]),
        ([(0, 2, 1), (0, 9, 1), (0, 2, 1), (2, 2, 2)], 3, [(0, 1), (2, 3)]),
        # what neighbours give back is one piece
        *(
            ([*((0, run, 1) for run in runs), (2, 1, 3)], 3, [(0, 3)])
            for runs in ((1, 1, 1), (2, 1, 2), (1, 2, 2), (2, 1, 1))
        ),
    ],
)
def test_a_job_is_in_one_piece_where_there_is_room(
    make: Callable[..., Any], jobs: Any, processors: int, last: list[tuple[int, int]]
) -> None:
    result = make(jobs, processors)
    assert result.start.tolist() == [submit for submit, _, _ in jobs]
    job, _, _, low, high = place_jobs(result)
    pieces = zip(low[job == len(jobs) - 1], high[job == len(jobs) - 1], strict=True)
    assert list(pieces) == last


def test_an_impossible_schedule_is_refused(make: Callable[..., Any]) -> None:
    result = make([(0, 5, 2), (0, 5, 2)], 3)
    with pytest.raises(ValueError, match="more processors than"):
        place_jobs(replace(result, start=np.array([0, 1])))


# --- What is summed up in bins is what was there --------------------------------------------------


@settings(max_examples=100)
@given(st.data(), st.integers(1, 12))
def test_a_bin_has_mean_least_and_greatest_of_what_holds_in_it(data: Any, n_bins: int) -> None:
    gaps = data.draw(st.lists(st.integers(0, 5), min_size=1, max_size=30).filter(any))
    times = np.cumsum([data.draw(st.integers(0, 50)), *gaps]) * n_bins  # edges are whole seconds
    size = {"min_size": times.size, "max_size": times.size}
    values = np.array(data.draw(st.lists(st.integers(0, 9), **size)))
    seconds = np.arange(times[0], times[-1])
    held = values[np.searchsorted(times, seconds, side="right") - 1].reshape(n_bins, -1)
    bins = envelope(times, values, np.linspace(times[0], times[-1], n_bins + 1))
    assert bins.mean == pytest.approx(held.mean(axis=1))
    assert bins.low.tolist() == held.min(axis=1).tolist()
    assert bins.high.tolist() == held.max(axis=1).tolist()


def test_a_peak_of_a_second_is_not_lost_in_a_year() -> None:
    times = np.array([0, 15_000_000, 15_000_001, 31_536_000])
    bins = envelope(times, np.array([0, 500, 0, 0]), np.linspace(0, 31_536_000, 301))
    assert bins.high.max() == 500
    assert np.count_nonzero(bins.high) == 1
    assert bins.mean.sum() * 31_536_000 / 300 == pytest.approx(500)
    assert bins.high.argmax() == int(15_000_000 / 31_536_000 * 300)
