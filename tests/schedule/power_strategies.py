"""Random small machines with power, and schedules on them that nobody simulated."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
from drawing import strategies as st

from hpcgym.machine import Cluster, Level, NodeGroup, NodePower
from hpcgym.machine.power import slowed
from hpcgym.schedule.result import Result
from hpcgym.schedule.runs import Allocation, NodeStates
from hpcgym.schedule.schedule import job_slowdowns
from hpcgym.scheduler.rules import Scheduler
from hpcgym.workload.model import Workload

WATTS = st.sampled_from([0.0, 0.1, 1.0, 14.0, 117.0, 1 / 3, 190.738, 358.0])


@st.composite
def powers(draw: st.DrawFn) -> NodePower:
    levels = draw(st.sampled_from([1, 1, 2, 3]))
    busy = sorted(draw(st.lists(WATTS, min_size=levels, max_size=levels)))
    ghz = tuple(sorted(draw(st.permutations([1.2, 1.8, 2.0, 2.7]))[:levels]))
    slowdown: Any = 1.0
    if levels > 1:
        slowdown = draw(st.sampled_from([1.0, 1.63, 2.5, (2.0, 1.3, 1.0)[-levels:]]))
    return NodePower(
        draw(WATTS),
        busy,
        draw(WATTS),
        ghz if levels > 1 or draw(st.booleans()) else (),
        slowdown,
        shutdown_w=draw(st.one_of(st.none(), WATTS)),
        boot_w=draw(st.one_of(st.none(), WATTS)),
    )


@st.composite
def machines(draw: st.DrawFn, pools: bool = True) -> Cluster:
    """A pool, or 1 to 12 nodes in up to 3 groups, with up to 2 levels above."""
    flat = {
        "idle_power_w": draw(WATTS),
        "busy_power_w": draw(WATTS),
        "off_power_w": draw(WATTS),
    }
    sizes = draw(st.lists(st.integers(1, 4), min_size=1, max_size=3))
    if pools and draw(st.sampled_from([True] + [False] * 5)):
        return Cluster(draw(st.integers(1, 8)), **flat)
    groups = [
        NodeGroup(
            f"g{i}",
            nodes,
            {"core": draw(st.sampled_from([1, 2, 3, 4]))},
            draw(st.one_of(powers(), powers(), st.none())),
        )
        for i, nodes in enumerate(sizes)
    ]
    count = draw(st.integers(0, 2))
    levels = [Level(f"l{i}", draw(st.integers(1, 3)), draw(WATTS)) for i in range(count)]
    return Cluster(groups=groups, levels=levels, **flat)


@st.composite
def schedules(draw: st.DrawFn) -> Result:
    """A schedule that is possible: up to 10 jobs in about 20 seconds, some cut at their limit."""
    cluster = draw(machines())
    n = draw(st.integers(draw(st.sampled_from([0, 3, 6])), 10))
    cores = cluster.capacity[:, 0]
    units, each, columns = (
        [],
        [],
        {name: [] for name in ("submit_time", "run_time", "requested_time")},
    )
    for _ in range(n):
        each.append(draw(st.integers(1, int(cores.max()))))
        units.append(draw(st.integers(1, min(int((cores // each[-1]).sum()), 6))))
        columns["submit_time"].append(draw(st.integers(0, 8)))
        run = draw(st.integers(1, 9))
        columns["run_time"].append(run)
        columns["requested_time"].append(max(run + draw(st.sampled_from([-3, 0, 0, 5])), 1))
    columns["submit_time"].sort()
    columns["requested_processors"] = [u * c for u, c in zip(units, each, strict=True)]
    columns["user_id"] = draw(st.lists(st.integers(0, 2), min_size=n, max_size=n))
    if draw(st.booleans()):
        known = st.sampled_from([-1.0, -1.0, 0.0, 5.0, 1 / 7, 22.5])
        columns["power_w"] = draw(st.lists(known, min_size=n, max_size=n))
    if draw(st.booleans()):
        known = st.sampled_from([-1.0, -1.0, 1.0, 1.1, 3.0])
        columns["slowdown"] = draw(st.lists(known, min_size=n, max_size=n))
    nodes = {"units": units, "per_unit": {"core": each}} if cluster.groups else {}
    workload = Workload.from_columns(columns, processors=cluster.processors, **nodes)
    frequency = None
    if draw(st.booleans()):
        frequency = np.array(draw(st.lists(st.integers(0, 2), min_size=n, max_size=n)), np.int64)
    return _placed(draw, cluster, workload, frequency)


def _placed(draw: st.DrawFn, cluster: Cluster, workload: Workload, frequency: Any) -> Result:
    """Place the jobs one by one where they fit at all times, and switch nodes in between."""
    n, nodes = len(workload), cluster.nodes
    actual = np.minimum(workload.run_time, workload.requested_time)
    free = np.repeat(cluster.capacity[:, :1], 400, axis=1)  # (nodes, seconds)
    start, length = np.zeros(n, np.int64), np.zeros(n, np.int64)
    first, on, held = [0], [], []
    for job in range(n):
        each = 1 if workload.units is None else int(workload.per_unit["core"][job])
        wanted = int(workload.requested_processors[job]) // each
        order = draw(st.permutations(range(nodes)))
        now = int(workload.submit_time[job]) + draw(st.integers(0, 4))
        span = int(actual[job])
        if frequency is not None:  # the slowest of all groups is long enough to place it
            lone = Cluster(groups=cluster.groups) if cluster.groups else cluster
            cells = Allocation(np.array([0, nodes]), np.arange(nodes), np.ones(nodes))
            alone = _bare(lone, workload.take(slice(job, job + 1)), frequency[job : job + 1], cells)
            span = int(slowed(span, job_slowdowns(alone)[0]))
        while True:
            room = free[:, now : now + span].min(axis=1) // each
            if room.sum() >= wanted:
                break
            now += 1
        left = wanted
        for node in order:
            taken = min(int(room[node]), left)
            if taken:
                on.append(node)
                held.append(taken)
                free[node, now : now + span] -= taken * each
                left -= taken
        first.append(len(on))
        start[job] = now
    allocation = Allocation(np.array(first), np.array(on, np.int32), np.array(held, np.int32))
    result = _bare(cluster, workload, frequency, allocation if cluster.groups else None)
    length = slowed(actual, job_slowdowns(result))
    states = _states(draw, cluster, free) if cluster.groups and draw(st.booleans()) else None
    return _bare(cluster, workload, frequency, result.allocation, start, length, states)


def _states(draw: st.DrawFn, cluster: Cluster, free: Any) -> NodeStates:
    """Switch nodes where they have no job for some seconds."""
    rows = []
    together = draw(st.booleans())  # else hardly a component would be off
    for node, cores in enumerate(cluster.capacity[:, 0].tolist()):
        now = draw(st.integers(0, 6)) if not together else 0
        while now < 40:
            end = now
            while end < 40 and free[node, end] == cores:
                end += 1
            wanted = 40 if together else draw(st.integers(0, 8))
            if min(end, now + wanted) > now:
                code = 0 if together else draw(st.integers(0, 2))
                rows.append((node, code, now, min(end, now + wanted)))
            now = max(end, now) + 1
    return NodeStates(*np.array(rows, np.int64).reshape(-1, 4).T)


def _bare(
    cluster: Cluster,
    workload: Workload,
    frequency: Any,
    allocation: Any,
    start: Any = None,
    length: Any = None,
    states: Any = None,
) -> Result:
    """A result that only has what books need."""
    none = np.zeros(len(workload), np.int64)
    return Result(
        workload,
        cluster,
        Scheduler(),
        start=none if start is None else start,
        run_time=none if length is None else length,
        predicted_run_time=workload.requested_time,
        reserved_start=none - 1,
        backfilled=none > 0,
        allocation=allocation,
        frequency=frequency,
        node_states=states,
    )


def in_seconds(watts: dict[int, Fraction]) -> dict[int, Fraction]:
    """The power in each second, of that from each change on."""
    times = sorted(watts)
    return {now: watts[at] for at, end in pairwise(times) for now in range(at, end)}
