"""Sections 4.5 and 4.6 of Glesser 2016: an overloaded machine with a cap for an hour."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcgym.benchmarks.energy.common import energy_within
from hpcgym.benchmarks.studies.harness import load_jobs, same_jobs
from hpcgym.errors import HpcgymError
from hpcgym.machine.files import find_cluster
from hpcgym.machine.pool import Cluster
from hpcgym.machine.power_plans import greatest_w
from hpcgym.naming import DAY_S, HOUR_S, MINUTE_S
from hpcgym.schedule.result import Result
from hpcgym.scheduler.limits import PowerCap
from hpcgym.simulation.run import simulate
from hpcgym.workload.load import load_workload
from hpcgym.workload.model import Workload

# --- Intervals of an overloaded machine -----------------------------------------------------------

SUBSTITUTE = "substitute"
PROCESSORS = 80_640
#: By which run times of the Lublin-Feitelson model are divided, which has 20 times as many huge
#: jobs as the thesis tells of Curie: with 7 one of a thousand is left.
SHORTER = 7
#: Median of requested over run times in the thesis's trace (Glesser 2016, section 4.6.2).
REQUESTED = 12_000
#: Of the substitute, which the thesis does not tell: what fills the queue.
LOAD = 1.2
JOBS, QUICK_JOBS = 16_000, 5_000
WARM_UP_S = 24 * HOUR_S
SMALL = 512  # cores; section 4.6.2

#: How long jobs request -> in words. Only the substitute has more than one.
AS_WRITTEN, AS_GENERATED, OF_SHORT = "12,000 times", "as requested", "12,000 times to a minute"
REQUESTS = {
    AS_WRITTEN: f"{REQUESTED:,} times the run time, the median in the thesis, but at most a day, as"
    " more than half of the jobs then ask for: 8,640 times at the median of substitute 0",
    AS_GENERATED: "as the workload has it; substitute 0 by a model, 71 times at the median",
    OF_SHORT: "12,000 times, but at most a day, of jobs that run for up to a minute, and as the"
    " workload has it of longer ones: 8,640 times at the median of substitute 0, weighted by core"
    " seconds 74",
}

#: Interval -> its hours.
INTERVALS = {"bigjob": 5, "medianjob": 5, "smalljob": 5, "24h": 24}


@dataclass(frozen=True)
class Interval:
    """An interval of a workload.

    Attributes
    ----------
    begin, end : [s].
    small : share of jobs of less than 512 cores, of those that wait at its beginning or come
        within.
    backlog : least cores that wait at any time within, over those of the machine.
    jobs : that wait at its beginning or come within.
    """

    begin: int
    end: int
    small: float
    backlog: float
    jobs: int


def substitute(seed: int, jobs: int = JOBS) -> Workload:
    """Return a generated workload in place of Curie's trace.

    Jobs of the Lublin-Feitelson model for 80,640 cores that run and request a seventh of the time
    there, rounded up, and come faster, so that 1.2 times as much comes as the machine can do.
    """
    source = f"lublin:jobs={jobs},processors={PROCESSORS},seed={seed},load={SHORTER * LOAD}"
    long = load_workload(source)
    short = {name: -(-long.columns[name] // SHORTER) for name in ("run_time", "requested_time")}
    return Workload.from_columns(
        {**long.columns, **short}, processors=PROCESSORS, name=f"{SUBSTITUTE} {seed}"
    )


def load(source: str, requests: str, machine: str | Cluster, jobs: int = JOBS) -> Workload:
    """Return the workload of a source, ``substitute:SEED`` or what :func:`load_jobs` takes.

    Raises
    ------
    HpcgymError : a source that cannot be read, or jobs larger than the machine.
    """
    kind, _, seed = source.partition(":")
    workload = substitute(int(seed), jobs) if kind == SUBSTITUTE else load_jobs(source)
    largest, cluster = int(workload.requested_processors.max(initial=0)), find_cluster(machine)
    if largest > cluster.processors:
        raise HpcgymError(
            f"{workload.name}: a job needs {largest:,} processors, {cluster.name} has"
            f" {cluster.processors:,}"
        )
    if requests in (AS_WRITTEN, OF_SHORT):
        run = workload.run_time
        longer = np.maximum(run, np.minimum(REQUESTED * run, DAY_S))
        if requests == OF_SHORT:
            longer = np.where(run <= MINUTE_S, longer, workload.requested_time)
        workload = workload.with_columns(requested_time=longer)
    return workload


def choose(workload: Workload, cluster: Cluster, name: str) -> Interval:
    """Return an interval of a workload, by its jobs under no limit.

    Intervals may begin at each full hour, from a day after the first submission on. Of those in
    which always as much waits as would fill the machine, ``bigjob`` has the least share of small
    jobs, ``smalljob`` the greatest, the others the median; the first of equals. If there is none,
    the tenth with the longest queue stands for them.

    Raises
    ------
    HpcgymError : a workload too short for it.
    """
    result = simulate(workload, cluster=cluster, limits=[])
    long = INTERVALS[name] * HOUR_S
    first = int(workload.submit_time[0]) + WARM_UP_S
    begins = range(-(-first // HOUR_S) * HOUR_S, int(workload.submit_time[-1]) - long, HOUR_S)
    found = [_interval(result, begin, begin + long) for begin in begins]
    found = [one for one in found if one.jobs]
    if not found:
        raise HpcgymError(
            f"{workload.name}: no {INTERVALS[name]} hours from a day after its first job on"
        )
    full = [one for one in found if one.backlog >= 1]
    if not full:
        least = np.quantile([one.backlog for one in found], 0.9)
        full = [one for one in found if one.backlog >= least]
    ordered = sorted(full, key=lambda one: one.small)  # equal ones stay in order of time
    places = {"bigjob": 0, "smalljob": len(full) - 1}
    return ordered[places.get(name, (len(full) - 1) // 2)]


def _interval(result: Result, begin: int, end: int) -> Interval:
    """Return what an interval is like under a schedule."""
    submit, cores = result.workload.submit_time, result.workload.requested_processors
    there = (submit < end) & (result.start >= begin)
    small = float(np.mean(cores[there] < SMALL)) if there.any() else 0.0
    backlog = _least_waiting(submit[there], result.start[there], cores[there], begin, end)
    jobs = int(there.sum())
    return Interval(begin, end, small, backlog / result.cluster.processors, jobs)


def _least_waiting(
    submit: NDArray[np.int64], start: NDArray[np.int64], cores: NDArray[np.int64], a: int, b: int
) -> int:
    """Return the least number of cores that wait at any time from ``a`` up to ``b``."""
    times = np.concatenate([[a], np.maximum(submit, a), start])
    change = np.concatenate([[0], cores, -cores])[times < b]
    times = times[times < b]
    order = np.argsort(times, kind="stable")
    waiting = np.cumsum(change[order])
    last = np.flatnonzero(np.diff(times[order], append=b))  # of all changes at a time
    return int(waiting[last].min())


# --- Section 4.6 of Glesser 2016 ------------------------------------------------------------------

#: What the thesis calls the policies -> the rule ``power`` here; without any, nodes are left idle.
POLICIES = {"SHUT": "shut", "DVFS": "dvfs", "MIX": "mix", "none": "none"}
CAPS = (0.8, 0.6, 0.4)
QUICK_CAPS = (0.6,)
LENGTH_S = HOUR_S

#: What a cap is a share of -> in words. Machines with nodes alone have the first only.
MACHINE, NODES, BONUS = "the machine", "nodes", "nodes with bonus"
CAPPED = {
    MACHINE: "a share of the power of the machine, with chassis and racks",
    NODES: "of the sum of its nodes (section 4.3.1); chassis and racks count nowhere",
    BONUS: "of the sum of its nodes, to which what grouped shutdown saves of chassis and racks is"
    " added (sections 4.2.2 and 4.6.3)",
}


def ways_to_cap(cluster: Cluster) -> list[str]:
    """Return what caps may be shares of on a machine: the first of CAPPED, or all."""
    return list(CAPPED) if cluster.levels else [MACHINE]


def nodes_of(cluster: Cluster) -> Cluster:
    """Return a machine without what stands above its nodes."""
    return replace(cluster, levels=())


def machine_and_cap(cluster: Cluster, cap: float, of: str) -> tuple[Cluster, float]:
    """Return the machine that is simulated under a cap, a share, and the cap [W].

    With the bonus the cap has all that stands above nodes in addition: only what is off of that
    leaves more than the share of the nodes' power for nodes.
    """
    if of == NODES:
        cluster = nodes_of(cluster)
    watts = cap * greatest_w(nodes_of(cluster) if of == BONUS else cluster)
    if of == BONUS:
        watts += greatest_w(cluster) - greatest_w(nodes_of(cluster))
    return cluster, watts


def capped(
    workload: Workload,
    cluster: Cluster,
    interval: Interval,
    cap: float,
    policy: str,
    of: str = MACHINE,
) -> Result:
    """Return the schedule under a cap, a share, for the hour in the middle of an interval.

    What it is a share of is a name of CAPPED. It is told at the beginning of the interval, so that
    what was before is the same under all. A cap of 1 limits nothing. Jobs that are
    submitted after the interval are left out.
    """
    jobs = workload.take(workload.submit_time < interval.end)
    machine, watts = machine_and_cap(cluster, cap, of)
    if cap >= 1:
        return simulate(jobs, cluster=machine, limits=[])
    start = (interval.begin + interval.end - LENGTH_S) // 2
    limit = PowerCap(watts, start, end=start + LENGTH_S, announced=interval.begin)
    return simulate(jobs, cluster=machine, limits=[limit], power=POLICIES[policy])


def amounts(result: Result, interval: Interval) -> dict[str, float]:
    """Return what happens within an interval.

    Returns
    -------
    amounts : "energy_j"; "launched", jobs that start; "work", core seconds in which jobs run, the
        thesis's accumulated cpu time; "computed", these at the highest frequency that would have
        done the same; "exceeded_s", how long the power is above the cap.
    """
    begin, end = interval.begin, interval.end
    runs = np.minimum(result.end, end) - np.maximum(result.start, begin)
    work = result.workload.requested_processors * np.maximum(runs, 0)
    computed = work * (result.full_speed_run_time / result.run_time)
    launched = (result.start >= begin) & (result.start < end)
    return {
        "energy_j": energy_within(result, begin, end),
        "launched": int(launched.sum()),
        "work": float(work.sum()),
        "computed": float(computed.sum()),
        "exceeded_s": int(result.metrics.get("cap_exceeded_s", 0)),
    }


def inputs_of(task: Mapping[str, Any]) -> tuple[Cluster, Workload]:
    """Return the machine and the jobs of a task; see :func:`measure`."""
    rest = task["requests"], task["cluster"], task["jobs"]
    return find_cluster(task["cluster"]), same_jobs(
        load, task["jobs_sha256"], task["source"], *rest
    )


def measure(task: Mapping[str, Any]) -> dict[str, Any]:
    """Simulate an interval of a workload under all caps and policies.

    Parameters
    ----------
    task : "source" of a workload, "jobs" of a substitute, and "jobs_sha256" of them; "requests";
        "capped", a name of CAPPED; "interval"; "caps"; "cluster".

    Returns
    -------
    outcome : "interval", as :class:`Interval`; "possible_j" and "possible_work", of a machine that
        is busy throughout; "rows", of :func:`amounts` with "cap" and "policy", no cap first.

    Raises
    ------
    HpcgymError : the workload cannot be read here, has other jobs, or is too short.
    """
    cluster, workload = inputs_of(task)
    interval = choose(workload, cluster, task["interval"])
    cells = [(1.0, "none"), *((cap, policy) for cap in task["caps"] for policy in POLICIES)]
    rows = []
    for cap, policy in cells:
        result = capped(workload, cluster, interval, cap, policy, task["capped"])
        rows.append({"cap": cap, "policy": policy} | amounts(result, interval))
    seconds = interval.end - interval.begin
    machine, _ = machine_and_cap(cluster, 1.0, task["capped"])
    return {
        "interval": vars(interval),
        "possible_j": greatest_w(machine) * seconds,
        "possible_work": cluster.processors * seconds,
        "rows": rows,
    }
