"""Jobs that share nodes, and how fast: rules 1 to 6, 18 to 20 of :mod:`hpcgym.reference.shared`."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

COMPACT, SPREAD, PART = "compact", "spread", "part"


@dataclass(eq=False)
class Job:
    """What is asked for, in seconds, and below what became of it, in ticks."""

    submit: int
    run: int
    requested: int
    processors: int
    code: int

    number: int = -1
    shape: str = ""
    needed: int = 0
    start: int = -1
    end: int = -1
    nodes: tuple[tuple[int, int], ...] = ()  # (node, parts), by number
    promised: int = -1
    backfilled: bool = False
    left: float = 0.0
    rate: float = 0.0
    beside: float = 0.0  # its rate if there was no congestion
    floor: float = 0.0
    since: int = 0
    expected: int = -1  # its predicted end


@dataclass(frozen=True)
class Machine:
    """So many nodes of so many sockets of so many cores."""

    nodes: int
    sockets: int
    cores: int

    def part(self, parts: int) -> int:
        """Return how many cores a part of a node has."""
        return self.sockets * (self.cores // parts)


@dataclass(frozen=True)
class Speedups:
    """``pairs[a][b]`` of code a beside code b, ``alone[a]`` on half sockets with nobody beside."""

    pairs: Sequence[Sequence[float]]
    alone: Sequence[float]


@dataclass(frozen=True)
class FileSystem:
    """``bandwidth`` [bytes/s]; by code the ``share`` of time, and the ``demand`` of a core."""

    bandwidth: int
    share: Sequence[float]
    demand: Sequence[int]


@dataclass(frozen=True)
class Rules:
    """The scheduler; ``order`` is a name, or the weights of fit, popularity and shortness.

    ``quotas``, ``places``: of rules 18 and 20, keys of the jobs in their order and how much may be
    there of one: jobs and processors, or jobs. ``follows``: of rule 19, by number of a job those of
    the others, the time to think and the earliest time.
    """

    allocation: str = PART
    parts: int = 2
    partners: str = "best"
    pairs_above: float | None = None
    backfill: str = "easy"
    order: Any = "fcfs"
    backfill_order: str = "fcfs"
    estimate: str = "requested"
    quotas: Sequence[tuple[Sequence[Any], float, float]] = ()
    places: Sequence[tuple[Sequence[Any], float]] = ()
    follows: Mapping[int, tuple[Sequence[int], int, int]] = field(default_factory=dict)


class SharedNodes:
    """Who is where, how fast each job runs, and what happens in time."""

    def __init__(
        self,
        jobs: Iterable[Job],
        machine: Machine,
        rules: Rules,
        true: Speedups,
        believed: Speedups | None = None,
        ticks: int = 10**9,
        files: FileSystem | None = None,
    ):
        self.m, self.rules, self.ticks, self.files = machine, rules, ticks, files
        self.true, self.believed = true, believed or true
        asked = ((j.submit, j.run, j.requested, j.processors, j.code) for j in jobs)
        self.jobs = sorted((Job(*job) for job in asked), key=lambda job: job.submit)
        for number, job in enumerate(self.jobs):
            job.number = number
            job.shape, job.needed = self.place(job)
        self.coming = [job for job in self.jobs if job.number not in rules.follows]
        self.outside: list[Job] = []  # by the times at which they were to be submitted
        self.freed = False  # whether jobs have ended since these were gone through
        self.queue: list[Job] = []
        self.running: list[Job] = []  # in the order of their starts
        self.now = -1
        self.shadow = self.slack = -1
        self.head: Job | None = None
        self.leaving: list[Job] = []

    def place(self, job: Job) -> tuple[str, int]:
        """Rule 4."""
        if self.rules.allocation != COMPACT:
            part = self.m.part(2 if self.rules.allocation == SPREAD else self.rules.parts)
            if part == 0:
                raise ValueError("a part has no cores")
            needed = math.ceil(job.processors / part)
            if needed <= self.m.nodes:
                return self.rules.allocation, needed
        needed = math.ceil(job.processors / (self.m.sockets * self.m.cores))
        if needed > self.m.nodes:
            raise ValueError("a job is larger than the machine")
        return COMPACT, needed

    # --- Times ------------------------------------------------------------------------------

    def work(self, job: Job) -> int:
        """Return what a job takes alone, in ticks (rule 1)."""
        return min(job.run, job.requested) * self.ticks

    def predicted(self, job: Job) -> int:
        """Return its prediction, in ticks (rule 3)."""
        if self.rules.estimate == "clairvoyant":
            return self.work(job)
        twice = 2 if self.rules.estimate == "double-requested" else 1
        return twice * job.requested * self.ticks

    def spare(self, job: Job) -> float:
        """How much more it may take than it does."""
        return float(self.predicted(job) - self.work(job))

    def left_now(self, job: Job) -> float:
        """Return the work that is left of a job now."""
        return job.left - job.rate * (self.now - job.since)

    def after(self, work: float, rate: float) -> int:
        """Return when so much work is done at a rate."""
        return self.now + max(1, math.ceil(work / rate))

    # --- Who is where -----------------------------------------------------------------------

    def on(self, node: int) -> list[Job]:
        """Return the jobs on a node."""
        return [job for job in self.running if any(node == own for own, _ in job.nodes)]

    def neighbours(self, job: Job) -> list[Job]:
        """Return who has a node in common with a job, in the order of their starts."""
        beside = [other for node, _ in job.nodes for other in self.on(node)]
        return [other for other in self.running if other in beside and other is not job]

    def true_rate(self, job: Job) -> float:
        """Rule 5."""
        if job.shape == COMPACT:
            return 1.0
        beside = [self.true.pairs[job.code][other.code] for other in self.neighbours(job)]
        return min(beside) if beside else self.true.alone[job.code]

    def congested(self, job: Job, rate: float) -> float:
        """Return the rate that becomes of one of rule 5 (rule 5a)."""
        if self.files is None:
            return rate
        asked = sum(other.processors * self.files.demand[other.code] for other in self.running)
        k = max(1.0, asked / self.files.bandwidth)
        return rate / (1.0 + rate * (self.files.share[job.code] * (k - 1.0)))

    def renew(self, job: Job) -> None:
        """Rule 2."""
        beside = self.true_rate(job)
        rate = self.congested(job, beside)
        if rate != job.rate or beside != job.beside:
            before, floor_before = job.expected, job.floor
            job.left = self.left_now(job)
            job.since, job.rate, job.beside = self.now, rate, beside
            job.floor = self.congested(job, self.lasting(job))
            job.expected = self.after(job.left + self.spare(job), job.floor)
            if before >= 0 and job.floor >= floor_before:
                job.expected = min(job.expected, before)
            job.end = min(self.after(job.left, rate), job.expected)

    def lasting(self, job: Job) -> float:
        """Rule 12."""
        if job.shape == COMPACT:
            return 1.0
        return min(job.beside, self.believed.alone[job.code])

    # --- Events -----------------------------------------------------------------------------

    def run(self) -> list[Job]:
        """Simulate to the end; return the jobs in the order of their numbers."""
        while self.coming or self.running or self.outside:
            times = [job.end for job in self.running]
            times += [job.submit * self.ticks for job in self.coming]
            if self.freed and self.outside:
                times.append(self.second(self.now) * self.ticks)
            self.now = min(times)
            number = len(self.running)
            self.end_jobs()
            arrived = self.submitted()
            self.queue += arrived
            if arrived or len(self.running) < number:
                self.do_pass()
        return self.jobs

    def second(self, tick: int) -> int:
        """Return the first whole second from a tick on."""
        return -(-tick // self.ticks)

    def submitted(self) -> list[Job]:
        """Return the jobs that are submitted now (rule 20)."""
        due = [job for job in self.coming if job.submit * self.ticks == self.now]
        self.outside += sorted(due, key=lambda job: job.number)
        self.coming = [job for job in self.coming if job not in due]
        if self.now % self.ticks:
            return []
        self.freed = False
        found: list[Job] = []
        for job in list(self.outside):
            there = [*self.queue, *self.running, *found]
            if all(
                keys[job.number] is None
                or sum(keys[other.number] == keys[job.number] for other in there) < most
                for keys, most in self.rules.places
            ):
                self.outside.remove(job)
                job.submit = self.now // self.ticks
                found.append(job)
        return found

    def follow(self, ended: list[Job]) -> None:
        """Let the jobs be due whose last other has ended now (rule 19)."""
        over = {job.number for job in self.jobs if 0 <= job.end <= self.now}
        for number, (others, think, earliest) in self.rules.follows.items():
            if over.issuperset(others) and any(job.number in others for job in ended):
                self.jobs[number].submit = max(self.second(self.now) + think, earliest)
                self.coming.append(self.jobs[number])

    def barred(self, job: Job) -> bool:
        """Whether a job would be one too many now (rule 18)."""
        for keys, most_jobs, most_processors in self.rules.quotas:
            key = keys[job.number]
            beside = [other.processors for other in self.running if keys[other.number] == key]
            wide = sum(beside) + job.processors > most_processors
            if key is not None and (len(beside) >= most_jobs or wide):
                return True
        return False

    def end_jobs(self) -> None:
        """Let the jobs go that end now (rule 6)."""
        ended = [job for job in self.running if job.end == self.now]
        self.freed = self.freed or bool(ended)
        self.follow(ended)
        left_behind = [other for job in ended for other in self.neighbours(job)]
        self.running = [job for job in self.running if job not in ended]
        for job in self.running:
            if self.files is not None or job in left_behind:
                self.renew(job)

    def start(self, job: Job, nodes: list[int], *, backfilled: bool) -> None:
        """Start a job of the queue on nodes."""
        parts = 1 if job.shape == PART else self.rules.parts
        job.nodes = tuple((node, parts) for node in sorted(nodes))
        assert len(job.nodes) == job.needed
        job.start, job.since, job.backfilled = self.now, self.now, backfilled
        job.left = float(self.work(job))
        self.queue.remove(job)
        self.running.append(job)
        assert all(self.held(node) <= self.rules.parts for node in nodes)
        others = self.neighbours(job) if self.files is None else self.running
        for other in sorted(others, key=lambda other: other.number):
            if other is not job:
                self.renew(other)
        self.renew(job)

    def held(self, node: int) -> int:
        """How many of its parts are taken."""
        return sum(parts for job in self.on(node) for own, parts in job.nodes if own == node)

    def do_pass(self) -> None:
        """Start what can start."""
        raise NotImplementedError
