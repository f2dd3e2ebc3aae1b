"""Idle processors that are switched off: the rules of :mod:`hpcgym.reference.pool`, and these.

Rules
-----
 1. Idle processors are a stack. From the first submission on, of a job that follows none, all of
    them lie in it. A job that ends puts its processors on top, and one that starts takes those
    that became idle last.
 2. One that became idle at t begins to switch off at t + ``shutdown_after``, or at a command. In
    that very second a job still gets it at once. Later it must first be off, and is then switched
    on: it is there after the rest of ``shutdown_time``, and ``boot_time``.
 3. A job starts when the last of its processors is on; the others wait idle.
 4. A pass plans as if processors were ready at once. Once a job has its processors, its predicted
    end is counted from its start: in the same pass already where no job before it waits.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from hpcgym.reference.jobs import Job
from hpcgym.reference.pool import PoolSimulation

STATES = ("idle", "off", "switching_off", "switching_on")
NEVER = 2**62  # [s] later than anything


class IdleStretch(NamedTuple):
    """What a processor without a job, or one that waits for others, does from when to when [s]."""

    state: str
    since: int
    until: int


class Idle(NamedTuple):
    """A processor in the stack: since when, and when it begins to switch off [s]."""

    since: int
    off_from: int


class SwitchingSimulation(PoolSimulation):
    """All rules on a pool whose idle processors are switched off; times in seconds, None: never."""

    def __init__(
        self,
        jobs: Iterable[Job],
        processors: int,
        shutdown_after: int | None = None,
        shutdown_time: int = 0,
        boot_time: int = 0,
        **rules: Any,
    ):
        super().__init__(jobs, processors, **rules)
        self.shutdown_after, self.shutdown_time = shutdown_after, shutdown_time
        self.boot_time = boot_time
        self.stack: list[Idle] = []
        self.stretches: list[IdleStretch] = []
        self.late: list[tuple[Job, int]] = []  # jobs that were planned to start before, rule 4
        self.put_back(processors, self.coming[-1].submit if self.coming else 0)

    def run(self) -> list[Job]:
        """Simulate to the end; return the jobs in the order of their numbers."""
        jobs = super().run()
        end = max((job.end for job in jobs), default=0)
        for idle in self.stack:
            self.note_idle(idle, end)
        return jobs

    def schedule(self, now: int) -> None:
        """Make a pass."""
        super().schedule(now)
        for job, ready in self.late:
            self.delay(job, ready)
        self.late = []

    def start(self, job: Job, now: int, *, backfilled: bool) -> None:
        """Start a job of the queue as soon as its processors are on."""
        super().start(job, now, backfilled=backfilled)
        ready = self.take(job.processors, now)
        if backfilled:
            self.late.append((job, ready))
        else:
            self.delay(job, ready)

    def delay(self, job: Job, ready: int) -> None:
        """Rule 3."""
        job.start, job.since, job.end = ready, ready, ready + job.actual

    def terminate(self, job: Job) -> None:
        """Let a job end."""
        super().terminate(job)
        self.put_back(job.processors, job.end)

    def put_back(self, processors: int, now: int) -> None:
        """Rule 1."""
        after = self.shutdown_after
        self.stack += [Idle(now, NEVER if after is None else now + after)] * processors

    def take(self, processors: int, now: int) -> int:
        """Take processors for a job; return when all of them are on: rules 1 to 3."""
        ready = []
        for _ in range(processors):
            idle = self.stack.pop()
            if now > idle.off_from:
                boot = max(now, idle.off_from + self.shutdown_time)
                self.note_idle(idle, boot)
                ready.append(boot + self.boot_time)
                self.stretches.append(IdleStretch("switching_on", boot, ready[-1]))
            else:
                self.note_idle(idle, now)
                ready.append(now)
        self.stretches += [IdleStretch("idle", time, max(ready)) for time in ready]
        return max(ready)

    def note_idle(self, idle: Idle, until: int) -> None:
        """Note what a processor of the stack has done up to some time."""
        off = idle.off_from + self.shutdown_time
        cuts = [min(time, until) for time in (idle.since, idle.off_from, off, until)]
        states = ("idle", "switching_off", "off")
        self.stretches += map(IdleStretch, states, cuts, cuts[1:])

    def switch_off(self, now: int) -> None:
        """Let all idle processors begin to switch off."""
        self.stack = [Idle(idle.since, min(idle.off_from, now)) for idle in self.stack]

    def seconds(self) -> dict[str, int]:
        """Return the processor seconds in each state, of all but those that run jobs."""
        total = dict.fromkeys(STATES, 0)
        for state, since, until in self.stretches:
            total[state] += until - since
        return total
