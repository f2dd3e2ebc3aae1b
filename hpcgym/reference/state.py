"""What a pass finds, as orders may look at it: rule 30."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from hpcgym.reference.jobs import Job

MONDAY = 4 * 86_400  # [s] since 1970
FEW = 5  # last jobs of a user


class State:
    """The state of a simulation as a pass of it begins, read once.

    ``coming``: jobs that are submitted now, and are not in its queue yet.
    """

    def __init__(self, simulation: Any, now: int, coming: Iterable[Job]) -> None:
        waiting = [*simulation.queue, *coming]
        self.now, self.width_of, self.machine = now, simulation.width_of, simulation.size
        self.waiting = [job.user for job in waiting]
        self.queue = waiting
        self.running = [job.user for job in simulation.running]
        self.free, self.then = (self.free_at(simulation, at) for at in (now, now + 3600))
        # running jobs may be stopped, and wait again; the holder of a node that is down is no job
        last = max(job.number for job in simulation.jobs)
        self.holders = [job for job in simulation.running if job.number <= last]
        seen = [*waiting, *self.holders]
        self.fits = {job.number: simulation.has_place(job, now) for job in seen}
        self.runs = {
            user: [job.actual for job in ended] for user, ended in simulation.terminated.items()
        }

    def free_at(self, simulation: Any, at: int) -> int:
        """Return how many processors, or nodes, no job has that is predicted to run on by then."""
        held = [self.width_of(job) for job in simulation.running if job.predicted_end > at]
        return int(self.machine - sum(held))

    def last(self, job: Job, number: int) -> Sequence[int]:
        """Return the run times of the last ended jobs of a job's user."""
        return self.runs.get(job.user, [])[-number:]


def leaves(state: State, job: Job, _: Any) -> float:
    """Return the share of the machine that a job would leave free."""
    left = state.free - state.width_of(job)
    return left / state.machine if state.fits[job.number] else 0.0


def behind(state: State, _: Job, workload: Any) -> float:
    """Return for how long the waiting jobs would fill the machine, by their requested times."""
    work = sum(int(requested(job, workload)) * state.width_of(job) for job in state.queue)
    return float(work / state.machine)


def last_run(state: State, job: Job, workload: Any) -> float:
    """Return the last run time."""
    runs = state.last(job, 1)
    return runs[0] if runs else requested(job, workload)


def mean_run(state: State, job: Job, workload: Any) -> float:
    """Return the mean of the last run times."""
    runs = state.last(job, FEW)
    return sum(runs) / len(runs) if runs else requested(job, workload)


def spread_run(state: State, job: Job, _: Any) -> float:
    """Return the standard deviation of the last run times."""
    runs = state.last(job, FEW)
    if not runs:
        return 0.0
    mean, total = sum(runs) / len(runs), 0.0
    for run in runs:
        total += (run - mean) * (run - mean)
    return math.sqrt(total / len(runs))


def requested(job: Job, workload: Any) -> float:
    """Return p~, whatever policies look at in its place."""
    return float(workload.requested_time[job.number])


def moment(state: State, workload: Any) -> time.struct_time:
    """Return date and time of a pass, by when the log began, or as if that was a Monday."""
    began = workload.header.get("UnixStartTime", [""])[0]
    return time.gmtime(state.now + (int(began) if began else MONDAY))


def hour(state: State, _: Job, workload: Any) -> float:
    """Return the hour of the day."""
    at = moment(state, workload)
    return (at.tm_hour * 3600 + at.tm_min * 60 + at.tm_sec) / 3600


def asked(job: Job, amount: str, workload: Any) -> int:
    """Return how much of an amount a job asks for; memory in MB."""
    if amount in ("jobs", "submitted"):
        return 1
    columns, row = workload.columns, job.number
    processors = int(columns["requested_processors"][row])
    if amount == "processors" or (amount == "billing" and columns["billing"][row] < 0):
        return processors
    if amount in columns:
        return int(columns[amount][row])
    if workload.units is None:
        of_processor = -(-int(columns["requested_memory"][row]) // 1000)
        return processors * max(of_processor, 0) if amount == "mem" else 0
    of_unit = workload.per_unit.get(amount)
    return 0 if of_unit is None else int(workload.units[row]) * int(of_unit[row])


#: What expressions may name of it, of one job of a workload.
STATE: dict[str, Callable[[State, Job, Any], float]] = {
    "free": lambda state, job, _: state.free / state.machine,
    "free_1h": lambda state, job, _: state.then / state.machine,
    "queued": lambda state, job, _: len(state.waiting),
    "behind": behind,
    "hour": hour,
    "weekday": lambda state, job, workload: moment(state, workload).tm_wday,
    "machine_size": lambda state, job, _: state.machine,
    "fits": lambda state, job, _: state.fits[job.number],
    "leaves": leaves,
    "user_running": lambda state, job, _: state.running.count(job.user),
    "user_waiting": lambda state, job, _: state.waiting.count(job.user),
    "last_run": last_run,
    "mean_run": mean_run,
    "spread_run": spread_run,
    "known_runs": lambda state, job, _: len(state.last(job, FEW)),
}
