"""RLScheduler's rules: a plain simulator of what is decided there when.

Zhang, Dai, He, Bao and Xie (RLScheduler: an automated HPC batch job scheduler using reinforcement
learning, SC 2020) let a policy select one job whenever the queue has any. Nothing else is selected
until this job has started. It begins on a machine without jobs, and goes from event to event. Jobs
run for as long as they ran, whatever they requested. With backfilling, those start around the
selected job, in order of submission, that would end by their request before the selected one can
start. When that is, is told once, when the job is selected.
"""

from __future__ import annotations

import math
from bisect import insort
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcgym.agents.rlscheduler import Network, Sight, chosen
from hpcgym.errors import HpcgymError
from hpcgym.workload.model import Workload

#: Of the rows in the queue, in order of submission, the time and the free processors: which row.
Select = Callable[[list[int], int, int], int]

#: Policy -> submission, processors, requested time -> score, the least first. Where a policy looks
#: at waiting, the jobs of a queue have all "waited" -1 - submission: there a job that waits has -1
#: in the place of its start. SAF is not among theirs.
SCORES: dict[str, Callable[[int, int, int], Any]] = {
    "fcfs": lambda submit, processors, requested: submit,
    "wfp3": lambda submit, processors, requested: -(((-1 - submit) / requested) ** 3) * processors,
    "unicef": lambda submit, processors, requested: (
        (1 + submit - 1e-15) / (math.log2(processors + 1e-15) * requested)
    ),
    "sjf": lambda submit, processors, requested: (requested, submit),
    "f1": lambda submit, processors, requested: (
        math.log10(max(requested, 0.1)) * processors + 870 * math.log10(max(submit, 0.1))
    ),
    "saf": lambda submit, processors, requested: (requested * processors, submit),
}


def least_score(jobs: Workload, policy: str) -> Select:
    """Return what selects the job of the least score, of :data:`SCORES`."""
    columns = jobs.submit_time, jobs.requested_processors, jobs.requested_time
    scores = [*map(SCORES[policy], *(column.tolist() for column in columns))]
    return lambda queue, time, free: min(queue, key=scores.__getitem__)


def by_network(network: Network, sight: Sight, chance: np.random.Generator | None) -> Select:
    """Return what selects the job that a network takes: its best, or drawn by chance."""
    processors = sight.processors

    def select(queue: list[int], time: int, free: int) -> int:
        rows = np.array(queue)
        rows = rows[sight.visible(rows)]
        numbers = network(sight.features(rows, time, processors[rows] <= free))
        return int(rows[chosen(numbers, chance)])

    return select


def play(jobs: Workload, select: Select, backfill: bool) -> NDArray[np.int64]:
    """Return when each job starts under their rules, (n_jobs,) int64 [s]."""
    machine = _Machine(jobs)
    while machine.queue or machine.to_come < len(jobs):
        if not machine.queue:
            machine.go_on()
            continue
        selected = select(machine.queue, machine.time, machine.free)
        machine.wait_for(selected, backfill)
        machine.start(selected)
    return np.array(machine.starts, np.int64)


class _Machine:
    """A pool of processors, on which their rules go from event to event."""

    def __init__(self, jobs: Workload) -> None:
        self._submit, self._run = jobs.submit_time.tolist(), jobs.run_time.tolist()
        self._processors = jobs.requested_processors.tolist()
        self._requested = jobs.requested_time.tolist()
        self.starts = [-1] * len(jobs)
        self.free, self.time, self.to_come = jobs.processors, self._submit[0], 0
        self.queue: list[int] = []  # in order of submission
        self._running: list[int] = []  # the first to end first

    def _end(self, row: int) -> int:
        return int(self.starts[row] + self._run[row])

    def _expected_end(self, row: int) -> int:
        return int(self.starts[row] + self._requested[row])

    def go_on(self) -> None:
        """Go on by one event: a submission, or an end that is before it."""
        comes = self.to_come < len(self._submit)
        first_end = self._end(self._running[0]) if self._running else math.inf
        if comes and self._submit[self.to_come] <= first_end:
            self.time = max(self.time, self._submit[self.to_come])
            self.queue.append(self.to_come)
            self.to_come += 1
        else:
            row = self._running.pop(0)
            self.time = max(self.time, self._end(row))
            self.free += self._processors[row]

    def start(self, row: int) -> None:
        """Start a job of the queue."""
        self.starts[row] = self.time
        self.free -= self._processors[row]
        self.queue.remove(row)
        insort(self._running, row, key=self._end)

    def _shadow(self, row: int) -> int:
        """Return when a job that does not fit will, by requested times."""
        free = self.free
        # they sort the list itself, so that jobs which end at once end in this order
        self._running.sort(key=self._expected_end)
        for other in self._running:
            free += self._processors[other]
            if free >= self._processors[row]:
                break
        else:
            raise HpcgymError(f"job {row} wants more processors than the machine has")
        shadow = self._expected_end(other)
        self._running.sort(key=self._end)
        return shadow

    def wait_for(self, row: int, backfill: bool) -> None:
        """Let time pass until a selected job fits; others may end before it is expected to."""
        shadow = self._shadow(row) if backfill and self._processors[row] > self.free else 0
        while self._processors[row] > self.free:
            if backfill:
                for other in list(self.queue):
                    ends = self.time + self._requested[other]
                    if ends < shadow and self._processors[other] <= self.free:
                        self.start(other)
            self.go_on()
