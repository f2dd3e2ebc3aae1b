"""What is proved of results whose jobs share nodes, for :mod:`hpcgym.validation.validate`."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from hpcgym.validation.books import check_books
from hpcgym.validation.corun_arrays import (
    COMPACT,
    PART,
    SPREAD,
    SharedSchedule,
    check_progress,
    prove_shared,
)
from hpcgym.validation.corun_files import Files
from hpcgym.validation.nodes import check_units
from hpcgym.validation.orders import policy_name
from hpcgym.validation.schedules import cases

if TYPE_CHECKING:
    from hpcgym.schedule.places import Coschedule
    from hpcgym.schedule.result import Result

_WANTED = {"spread": SPREAD, "half-socket": PART, "part": PART}  # by allocation; else COMPACT


def prove_coschedule(result: Result) -> Iterator[tuple[str, list[str]]]:
    """Look at all that can be proved; yield what is looked at, and what is wrong with it."""
    found = result.coschedule
    assert found is not None
    yield "lengths", _check_lengths(result, found)
    needs = np.column_stack([result.workload.requested_processors, np.ones_like(found.code)])
    units = check_units(result.allocation, needs, result.cluster.nodes)
    yield "units", units
    if not units:
        allocation = result.scheduler.allocation.partition(":")[0]
        schedule = shared_schedule(result, found)
        wanted = _WANTED.get(allocation, COMPACT)
        yield from prove_shared(schedule, wanted, guaranteed=_promises_hold(result, found))
        yield "progress", check_progress(schedule)
    if result.keeps_books:
        yield "energy", check_books(result)
    else:
        yield "energy", _check_energy(result)


def shared_schedule(result: Result, found: Coschedule) -> SharedSchedule:
    """Return a result as arrays in ticks; of what a job has of nodes, parts that its cores fill."""
    group = result.cluster.groups[0]
    allocation = result.allocation
    assert allocation is not None
    sockets = group.sockets
    cores = group.resources["core"] // sockets
    units = allocation.units.astype(np.int64)
    part = max(cores // max(found.parts, 2) * sockets, 1)
    shares = np.repeat(found.shape == PART, np.diff(allocation.first))
    return SharedSchedule(
        ticks=found.ticks,
        submit=result.workload.submit_time * found.ticks,
        start=found.start_ticks,
        end=found.end_ticks,
        work=np.minimum(result.workload.run_time, result.workload.requested_time) * found.ticks,
        promised=found.promised_ticks,
        processors=result.workload.requested_processors,
        code=found.code,
        shape=found.shape,
        first=allocation.first,
        node=allocation.node.astype(np.int64),
        units=np.where(shares, -(-units // part), found.parts),
        pairs=found.speedups.filled,
        alone=found.speedups.alone,
        nodes=result.cluster.nodes,
        sockets=sockets,
        cores=cores,
        parts=found.parts,
        files=_files(result, found),
    )


def _files(result: Result, found: Coschedule) -> Files | None:
    """Return the file system that the jobs of a result share, None if they do not."""
    bandwidth, speedups = result.cluster.io_bytes_s, found.speedups
    if bandwidth is None or speedups.io_share is None:
        return None
    demand = result.workload.requested_processors * speedups.io_bytes_s[found.code]
    return Files(bandwidth, speedups.io_share[found.code], demand)


def _promises_hold(result: Result, found: Coschedule) -> bool:
    """Return whether a promised start can never be missed."""
    if result.outside or found.pairs is not None or _files(result, found) is not None:
        return False
    if bool((result.predicted_run_time < found.compact_s).any()):
        return False
    rules = result.scheduler
    if rules.quotas:  # who was promised something may be passed over later
        return False
    if rules.backfill == "conservative":
        return True
    in_order = rules.threshold is None and policy_name(rules.policy) == "fcfs"
    return rules.reserves_one and in_order


def _check_lengths(result: Result, found: Coschedule) -> list[str]:
    """Compare times in seconds with those in ticks, and what was cut with the workload."""
    workload, wrong = result.workload, []
    pairs = (
        ("starts at", result.start, found.start_ticks),
        ("ends at", result.end, found.end_ticks),
        ("runs for", result.run_time, found.end_ticks - found.start_ticks),
        ("waits for", result.wait, found.start_ticks - workload.submit_time * found.ticks),
        ("is promised", np.maximum(result.reserved_start, 0), np.maximum(found.promised_ticks, 0)),
    )
    for what, seconds, ticks in pairs:
        expected = ticks / found.ticks
        differs = ~np.isclose(seconds, expected, rtol=1e-15, atol=0)
        wrong += cases(differs, f"job {{}} {what} {{}} s instead of {{}} s", seconds, expected)
    compact = np.minimum(workload.run_time, workload.requested_time)
    text = "job {} takes {} s compact instead of {} s"
    wrong += cases(found.compact_s != compact, text, found.compact_s, compact)
    cut = workload.killed | (workload.run_time > workload.requested_time)
    return wrong + cases(result.killed != cut, "job {} was killed and is not marked, or not and is")


def _check_energy(result: Result) -> list[str]:
    """Compare the energies with the integral of the flat powers, and the makespan."""
    cluster, metrics = result.cluster, result.metrics
    if not len(result.start):
        return []
    span = float(result.end.max() - result.workload.submit_time.min())
    work = result.workload.requested_processors * result.run_time
    busy = math.fsum(work.tolist())
    idle = cluster.processors * span - busy
    expected = {
        "makespan_s": span,
        "energy_busy_j": busy * cluster.busy_power_w,
        "energy_idle_j": idle * cluster.idle_power_w,
        "energy_j": busy * cluster.busy_power_w + idle * cluster.idle_power_w,
    }
    most = cluster.processors * span * max(cluster.busy_power_w, cluster.idle_power_w, 1)
    return [
        f"{name} is {metrics[name]} instead of {value}"
        for name, value in expected.items()
        if not math.isclose(metrics[name], value, rel_tol=1e-12, abs_tol=1e-15 * most)
    ]
