"""Intervals of an overloaded machine, as section 4.6.2 of Glesser 2016 replays them.

The thesis has intervals of the trace of Curie, 2012. In place of it stands a generated workload of
that size, or any that is named.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hpcgym.benchmarks.studies.logs import load_jobs
from hpcgym.cluster.pool import Cluster
from hpcgym.errors import HpcgymError
from hpcgym.schedule.result import Result
from hpcgym.simulation.run import simulate
from hpcgym.workload.load import load_workload
from hpcgym.workload.model import Workload

HOUR_S = 3_600
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
DAY_S = 86_400
MINUTE_S = 60

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


def load(source: str, requests: str, cluster: Cluster, jobs: int = JOBS) -> Workload:
    """Return the workload of a source, ``substitute:SEED`` or what :func:`load_jobs` takes.

    Raises
    ------
    HpcgymError : a source that cannot be read, or jobs larger than the machine.
    """
    kind, _, seed = source.partition(":")
    workload = substitute(int(seed), jobs) if kind == SUBSTITUTE else load_jobs(source)
    largest = int(workload.requested_processors.max(initial=0))
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
