"""Whether results are the same, though not the same engine made them."""

from __future__ import annotations

from dataclasses import fields
from itertools import pairwise
from typing import Any

import numpy as np

import hpcgym
from hpcgym.workload.model import Workload

LISTS = ("start", "run_time", "predicted_run_time", "reserved_start", "backfilled")
LISTS += ("suspended", "idle_seconds", "frequency", "limits")


def plain(value: Any) -> Any:
    """Arrays as lists, and what has several of them as its parts."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return {name: plain(part) for name, part in value._asdict().items() if name != "failures"}
    return value


def cells(held: Any) -> Any:
    """The units of each job, or run, on each node, whatever their order."""
    if held is None:
        return None
    ends = zip(held.first[:-1], held.first[1:], strict=True)
    return [sorted(zip(held.node[a:b], held.units[a:b], strict=True)) for a, b in ends]


def intervals(result: hpcgym.Result) -> list[Any]:
    """When nodes were not on, or down, in any order."""
    states = result.node_states
    columns = [] if states is None else [np.asarray(c).tolist() for c in vars(states).values()]
    return sorted(zip(*columns, strict=True))


def assert_same_results(slow: hpcgym.Result, fast: hpcgym.Result) -> None:
    """All that a result tells is the same."""
    assert {field.name for field in fields(slow)} >= {*LISTS}
    for name in LISTS:
        assert plain(getattr(slow, name)) == plain(getattr(fast, name)), name
    for name in ("lost", "pieces"):
        slow_runs, other = getattr(slow, name), getattr(fast, name)
        assert cells(slow_runs) == cells(other)
        if slow_runs is not None:
            for column in ("job", "start", "end"):
                assert plain(getattr(slow_runs, column)) == plain(getattr(other, column)), (
                    name,
                    column,
                )
    assert cells(slow.allocation) == cells(fast.allocation)
    assert intervals(slow) == intervals(fast)
    assert slow.workload.job_number.tolist() == fast.workload.job_number.tolist()
    assert slow.workload.submit_time.tolist() == fast.workload.submit_time.tolist()
    assert (slow.given is None) == (fast.given is None)
    assert plain(slow.policy_run_time) == plain(fast.policy_run_time)
    assert plain(slow.candidate_run_time) == plain(fast.candidate_run_time)
    assert slow.metrics == fast.metrics


def assert_same(result: hpcgym.Result, expected: list[Any], lost: list[Any]) -> None:
    """Compare all that the reference records."""
    came = sorted(expected, key=lambda job: (job.submit, job.number))
    assert result.workload.submit_time.tolist() == [job.submit for job in came]
    for name in ("start", "end", "backfilled", "reserved_start"):
        assert getattr(result, name).tolist() == [getattr(job, name) for job in came], name
    assert result.predicted_run_time.tolist() == [job.predicted for job in came]
    rows = {job.number: row for row, job in enumerate(came)}
    runs = sorted(((rows[run[0]], *run[1:]) for run in lost), key=lambda run: run[:3])
    mine = result.interrupted
    if mine is None:
        assert not runs
        assert result.killed.tolist() == [job.killed for job in came]
    else:
        runs_told = zip(mine.job.tolist(), mine.start.tolist(), mine.end.tolist(), strict=True)
        assert [*runs_told] == [run[:3] for run in runs]
    if result.lost is not None:
        restarts = [sum(run[0] == row for run in runs) for row in range(len(came))]
        assert result.restarts.tolist() == restarts
    if result.suspended is not None:
        assert result.suspended.tolist() == [job.paused for job in came]
    if result.allocation is not None:
        assert cells_of(result.allocation) == [dict(job.nodes) for job in came]
        if mine is not None:
            assert cells_of(mine) == [run[3] for run in runs]


def cells_of(held: Any) -> list[dict[int, int]]:
    """Return of each job, or run, node -> units on it."""
    parts = [slice(*ends) for ends in pairwise(held.first.tolist())]
    return [dict(zip(held.node[a].tolist(), held.units[a].tolist(), strict=True)) for a in parts]


def agreed(workload: Workload, slow: bool = True, **rules: Any) -> hpcgym.Result:
    """Simulate; the reference must say the same, where it has the rules, and all is proved."""
    result = hpcgym.simulate(workload, **rules)
    if slow:
        assert_same_results(hpcgym.simulate(workload, engine="reference", **rules), result)
    hpcgym.validate_schedule(result)
    return result
