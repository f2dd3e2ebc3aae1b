"""Sections 4.5 and 4.6 of Glesser 2016: an overloaded machine with a cap for an hour."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcgym import Cluster, HpcgymError, Result, Workload, simulate
from hpcgym.benchmarks.energy.plans import energy_within
from hpcgym.benchmarks.studies.harness import load_jobs, same_jobs
from hpcgym.machine import find_cluster
from hpcgym.machine.power_plans import greatest_w
from hpcgym.scheduler.limits import PowerCap
from hpcgym.units import DAY_S, HOUR_S, MINUTE_S
from hpcgym.workload import extract
from hpcgym.workload.extracts import recorded_run_time

Ints = NDArray[np.int64]

# --- Intervals of an overloaded machine -----------------------------------------------------------

#: Interval -> its hours.
INTERVALS = {"bigjob": 5, "medianjob": 5, "smalljob": 5, "24h": 24}
SMALL, SHORT_S = 512, 2 * MINUTE_S  # section 4.6.2: cores and run time
#: Least share of the cores that are in use where "most cores" are; the thesis does not tell.
BUSY = 0.9


@dataclass(frozen=True)
class Interval:
    """An interval of a log, with what section 4.6.2 says of the thesis's.

    Attributes
    ----------
    begin, end : [s].
    small : share of jobs of less than 512 cores, of those that wait at its beginning or come
        within; ``jobs`` of them.
    backlog : least cores that wait at any time within, over those of the machine.
    busy : mean of the cores in use, over those of the machine.
    short : share of jobs that are small and run for less than two minutes.
    huge : share of jobs that use more than the whole machine for an hour.
    longer, median_longer : how many times the run time jobs request, mean and median.
    """

    begin: int
    end: int
    small: float
    jobs: int
    backlog: float
    busy: float
    short: float
    huge: float
    longer: float
    median_longer: float


def load(source: str, machine: str | Cluster, jobs: int | None = None) -> Workload:
    """Return the workload of a source, as :func:`load_jobs` takes it, that tells when jobs ran.

    Of a source that does not, such as a generator, jobs run as EASY lets them. ``jobs``: only the
    first ones; None: all.

    Raises
    ------
    HpcgymError : a source that cannot be read, or jobs larger than the machine.
    """
    workload, cluster = load_jobs(source), find_cluster(machine)
    if jobs is not None and jobs < len(workload):
        workload = workload.take(slice(0, jobs))
    largest = int(workload.requested_processors.max(initial=0))
    if largest > cluster.processors:
        raise HpcgymError(
            f"{workload.name}: a job needs {largest:,} processors, {cluster.name} has"
            f" {cluster.processors:,}"
        )
    if (workload.wait_time >= 0).any():
        return workload
    as_simulated = simulate(workload, cluster=Cluster(cluster.processors)).as_workload()
    return as_simulated.take(slice(None), name=workload.name)


def choose(workload: Workload, processors: int, name: str, number: int) -> list[Interval]:
    """Return intervals of a log, chosen by what it tells of when jobs ran.

    Intervals may begin at each full hour, from a day after the first submission on. Of those in
    which at least as much waits at any time as would fill the machine, and of these the ones in
    which most cores are in use, ``bigjob`` are those with the least share of small jobs,
    ``smalljob`` with the greatest, the others those next to the median. If there are none, the
    tenth with the longest queue stands for them. No two overlap.

    Raises
    ------
    HpcgymError : a workload too short for it.
    """
    long, submit = INTERVALS[name] * HOUR_S, workload.submit_time
    first = -(-(int(submit[0]) + DAY_S) // HOUR_S) * HOUR_S
    begins = range(first, int(submit[-1]) - long, HOUR_S)
    intervals = list(_intervals(workload, processors, begins, long))
    if not intervals:
        raise HpcgymError(
            f"{workload.name}: no {INTERVALS[name]} hours from a day after its first job on"
        )
    full = [interval for interval in intervals if interval.backlog >= 1]
    full = [interval for interval in full if interval.busy >= BUSY] or full
    if not full:
        least = np.quantile([interval.backlog for interval in intervals], 0.9)
        full = [interval for interval in intervals if interval.backlog >= least]
    ordered = sorted(full, key=lambda interval: interval.small)  # equal ones stay in order of time
    middle = {"bigjob": 0, "smalljob": len(full) - 1}.get(name, (len(full) - 1) // 2)
    nearest = sorted(range(len(full)), key=lambda place: abs(place - middle))
    chosen: list[Interval] = []
    for interval in (ordered[place] for place in nearest):
        if all(interval.end <= other.begin or other.end <= interval.begin for other in chosen):
            chosen.append(interval)
    return chosen[:number]


def _intervals(workload: Workload, processors: int, begins: range, long: int) -> Iterator[Interval]:
    """Return what intervals are like, by when jobs ran, of those in which jobs wait."""
    start = workload.submit_time + np.maximum(workload.wait_time, 0)
    finish = start + recorded_run_time(workload)
    for first in range(0, len(begins), _TOGETHER):
        together = begins[first : first + _TOGETHER]
        near = (workload.submit_time < together[-1] + long) & (finish > together[0])
        sizes = workload.requested_processors, workload.requested_time
        jobs = Ran(*(of[near] for of in (workload.submit_time, start, finish, *sizes)))
        for begin in together:
            interval = _interval(jobs, processors, begin, begin + long)
            if interval is not None:
                yield interval


class Ran(NamedTuple):
    """When jobs came, started and ended by a log [s], their cores and requested times [s]."""

    submit: Ints
    start: Ints
    finish: Ints
    cores: Ints
    asked: Ints


_TOGETHER = 24  # intervals whose jobs are looked for at once


def _interval(jobs: Ran, machine: int, a: int, b: int) -> Interval | None:
    """Return what the interval from ``a`` up to ``b`` is like; None if no job waits or comes."""
    submit, start, finish, cores, asked = jobs
    there = (submit < b) & (start >= a)
    if not there.any():
        return None
    used = np.maximum(np.minimum(finish, b) - np.maximum(start, a), 0) * cores
    size, run = cores[there], (finish - start)[there]
    longer = asked[there] / np.maximum(run, 1)
    return Interval(
        begin=a,
        end=b,
        small=float(np.mean(size < SMALL)),
        jobs=int(there.sum()),
        backlog=_least_waiting(submit[there], start[there], size, a, b) / machine,
        busy=float(used.sum()) / (machine * (b - a)),
        short=float(np.mean((size < SMALL) & (run < SHORT_S))),
        huge=float(np.mean(size * run > machine * HOUR_S)),
        longer=float(longer.mean()),
        median_longer=float(np.median(longer)),
    )


def _least_waiting(submit: Ints, start: Ints, cores: Ints, a: int, b: int) -> int:
    """Return the least number of cores that wait at any time from ``a`` up to ``b``."""
    times = np.concatenate([[a], np.maximum(submit, a), start])
    change = np.concatenate([[0], cores, -cores])[times < b]
    times = times[times < b]
    order = np.argsort(times, kind="stable")
    waiting = np.cumsum(change[order])
    # the last of all changes at a time
    return int(waiting[np.flatnonzero(np.diff(times[order], append=b))].min())


# --- Section 4.6 of Glesser 2016 ------------------------------------------------------------------

#: What the thesis calls the policies -> the rule ``power`` here; without any, nodes are left idle.
POLICIES = {"SHUT": "shut", "DVFS": "dvfs", "MIX": "mix", "none": "none"}
CAPS = (0.8, 0.6, 0.4)
LENGTH_S = HOUR_S

#: How an interval begins -> in words.
LOGGED, EMPTY = "as logged", "all queued"
STARTS = {
    LOGGED: "jobs that ran at the beginning by the log run on from there, and others wait",
    EMPTY: "jobs that ran at the beginning by the log wait too; all start on an empty machine",
}


def jobs_of(workload: Workload, interval: Interval, begins: str) -> Workload:
    """Return the jobs of an interval, with those that run and wait at its beginning by the log.

    How it begins is a name of STARTS.
    """
    jobs = extract(workload, interval.begin, interval.end)
    if begins == LOGGED:
        return jobs
    submit = np.maximum(jobs.submit_time, interval.begin)
    return replace(jobs.with_columns(submit_time=submit), initial=None)


def capped(
    workload: Workload, cluster: Cluster, interval: Interval, cap: float, policy: str, begins: str
) -> Result:
    """Return the schedule of an interval under a cap, for the hour in its middle.

    The cap is a share of the power of the machine, with chassis and racks, and is told at the
    beginning of the interval. A cap of 1 limits nothing. ``begins``: see :func:`jobs_of`.
    """
    jobs = jobs_of(workload, interval, begins)
    if cap >= 1:
        return simulate(jobs, cluster=cluster, limits=[])
    start = (interval.begin + interval.end - LENGTH_S) // 2
    watts = cap * greatest_w(cluster)
    limit = PowerCap(watts, start, end=start + LENGTH_S, announced=interval.begin)
    return simulate(jobs, cluster=cluster, limits=[limit], power=POLICIES[policy])


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


def inputs_of(task: Mapping[str, Any]) -> tuple[Cluster, Workload, Interval]:
    """Return the machine, the jobs and the interval of a task; see :func:`measure`."""
    rest = task["cluster"], task["jobs"]
    workload = same_jobs(load, task["jobs_sha256"], task["source"], *rest)
    return find_cluster(task["cluster"]), workload, Interval(**task["interval"])


def measure(task: Mapping[str, Any]) -> dict[str, Any]:
    """Simulate an interval of a workload under all caps and policies.

    Parameters
    ----------
    task : "source" of a workload, "jobs" (None: all), and "jobs_sha256" of them; "begins", a name
        of STARTS; "interval", as :class:`Interval`; "caps"; "cluster".

    Returns
    -------
    outcome : "possible_j" and "possible_work", of a machine that is busy throughout; "rows", of
        :func:`amounts` with "cap" and "policy", no cap first.

    Raises
    ------
    HpcgymError : the workload cannot be read here, or has other jobs.
    """
    cluster, workload, interval = inputs_of(task)
    cells = [(1.0, "none"), *((cap, policy) for cap in task["caps"] for policy in POLICIES)]
    rows = []
    for cap, policy in cells:
        result = capped(workload, cluster, interval, cap, policy, task["begins"])
        rows.append({"cap": cap, "policy": policy} | amounts(result, interval))
    seconds = interval.end - interval.begin
    return {
        "possible_j": greatest_w(cluster) * seconds,
        "possible_work": cluster.processors * seconds,
        "rows": rows,
    }
