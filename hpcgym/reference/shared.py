"""Nodes that jobs share: their rules as a program to read.

The formulas of rates and remaining times are those of ELiSE, "The simulation workflow".

Rules
-----
Jobs and time
 1. Jobs are numbered in order of submission, ties as given. There are T ticks in a second. A job's
    work is min(run, requested) seconds in ticks: what it takes compact, killed at its request.
 2. left, rate and speedups are float64, all times in ticks are ints. A job that starts has its
    work left. When its rate changes at tick t: left -= rate * (t - since), since = t, and its end
    = t + max(1, ceil(left / rate)). A rate that stays the same touches nothing.
 3. Predicted: the requested time, twice that, or the work.
Nodes
 4. N nodes of so many sockets of c cores, C together. A node has K parts, of floor(c / K) cores of
    each socket, P together. Exclusive jobs have all parts of their nodes: compact ones need
    ceil(p / C) nodes; spread ones ceil(p / P) with P for K = 2. A part job needs ceil(p / P) nodes
    and has one part of each. Spread and part jobs that need more than N nodes are placed compact;
    one that is too large then, or P = 0, is an error.
 5. s(a, b) is the speedup of code a beside code b. Rates: compact 1; spread alone(a); part: the
    least s(own, other) of all jobs on any of its nodes, alone(own) without any.
 5a. A machine may have a file system that all jobs share, of B whole bytes a second. Alone at
    full speed, a code does I/O for a share f of its time, and each of its cores asks for b bytes a
    second meanwhile, whole too. D is the sum of processors * b of all running jobs, whatever
    rates they have; the congestion is k = max(1, D / B). All I/O takes k times as long: at a
    rate r of 5 a job has the rate r / (1 + r * (f * (k - 1))), as each second of its work takes
    1 / r and f * (k - 1) more, whatever job is beside it. Without a file system it is r.
Events
 6. At a tick: all jobs that end then go; then the rates of their former neighbours are renewed, and
    where there is a file system those of all jobs; all submissions; one pass. A job that starts
    renews these rates at once, and then has its own. Nothing is touched where neither the rate nor
    that of 5 has become another.
Order of the queue, ties in order of submission
 7. fcfs: submission; lcfs: the last submission; sjf, lpf: least, largest requested time; sqf, lqf:
    least, largest processors; saf: least requested time * processors.
 8. Weights (w_fit, w_popularity, w_shortness): the greatest sum of these times, anew whenever a job
    is chosen, where all jobs that wait count:
    fit = nodes needed / nodes with room by counts: idle ones, for part jobs those with a part free.
    -1 if there are too few;
    popularity = other jobs whose pair mean with it is above 1, of all others; 0 without others;
    shortness = the least requested time of all / its own.
 8a. A function: greatest value first, of the state as the pass begins, and not anew in it. free is
    the share of all parts that no job has; a job fits if it needs at most as many parts as are
    free, on whichever nodes.
Starts
 9. What the scheduler knows of speedups is believed; rates are true. The mean of a pair is
    (s(a, b) + s(b, a)) / 2. Two jobs are good partners if pairs_above is None, or their mean
    is above it, strictly.
10. An exclusive job can start on idle nodes, the first by number. A part job can have nodes with
    a free part and good partners only, no exclusive one. partners: "best" takes them by its least
    speedup there, highest first, idle ones count as alone(own); "fill" nodes in use first, by
    that speedup; "first" by number; "used" nodes in use first, by number. Ties by number.
11. A pass: while the first job of the order can start it does. The first that cannot is the head.
    none: the pass is over. fill: all others that can start do, in the order; where scores change
    it begins from the first again after each start. easy, until-shadow: 12 to 16, once for each.
    first-come:K: 16b, for the first K behind the first that came.
EASY
12. The predicted end of a running job is t + max(1, ceil((left + (predicted - work)) / floor)), of
    the tick t at which its rate last changed; floor = min(rate of 5, alone(own)), for compact jobs
    1, by 5a with k of t: none that goes makes it slower than that. Where floor has not fallen it is
    at most what it was, whatever the rounding, and no job ends after it. Of a candidate: now +
    max(1, ceil(predicted / floor)), where its rate of 5 is the least believed speedup beside the
    jobs on its nodes, and k is that of now, without the candidate.
13. The shadow time is the first predicted end at which enough nodes count for the head: those with
    room for it once all that are predicted to have ended by then, inclusive, are gone. Room is
    as in 10. Slack is how many more count than it needs. All this is of the time when the head
    is found; of those that start after it the ones of 15 are taken to be gone then too. If the
    order does not change, the first shadow time of a job is its promise.
14. Candidates come in the backfill order: fcfs by number, sjbf least prediction, policy: as the
    queue (where scores change anew before each, the best that has not been tried). Nodes are those
    of 10, but without any node that has a job which ends by the shadow time, as predicted, and
    beside the candidate would not. Beside it: as in 12, but as of now, and its floor is min(its
    rate of 5, s(own, candidate), alone(own)), by 5a with k of now; the rate does not count if it
    has no neighbour yet.
15. If the candidate is predicted to end by the shadow time on the first nodes of these, it starts.
16. Else it takes nodes in the same order, but of those that count for the head, and would not while
    it stays, only so many as there is slack, which is then so much less. They still count if a
    part is left and it and the head are good partners. If they are too few it waits, and the slack
    is as it was.
16a. until-shadow: by 15 only those start that are predicted to end before the shadow time, and
    none by 16.
16b. first-come: whatever the order, the job has the reservation that came first of those that wait.
    Each running job is taken to end at its start + predicted, whatever its speed. The reservation
    is the first of these ends by which enough nodes count for it, as in 13, if there are any that
    do already the first end; and never before now. The next K, as they came, start on their nodes
    by 10 if now + predicted is at most that. It is the promise of 13.
Records
17. backfilled: a job was chosen before it in this pass and could not start.
Restrictions
18. Quotas: a key for each job, or none, how much it asks for of some amount, and how much the
    running jobs of one key may have together. A job that would be too much when its turn comes is
    passed over: it is no head, and 17 does not count it; one that asks for nothing is not. It
    waits, for 8, like all others. Some jobs are spared: they count, and start.
19. Dependencies: some jobs follow one or several others. They are submitted at the first whole
    second at which all of these have ended and a time to think is over since the last end, but not
    before a time of their own. Ties are by these submissions, of one time by number; so is fcfs.
20. Quotas of submitted jobs: a key for each job, or none, and how many of one key may wait or run.
    A job that is to be submitted, by 1 or 19, waits outside where it would be one too many of any
    of its keys. At each whole second, once all that end by then have ended, those outside are gone
    through in the order of the times at which they were to be submitted, ties by number; a job that
    is not one too many, with those that have just come, is submitted. A pass comes only if some
    are.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hpcgym.reference.jobs import Spared

# --- Jobs that share nodes, and how fast ----------------------------------------------------------

COMPACT, SPREAD, PART = "compact", "spread", "part"


@dataclass(eq=False)
class SharedJob:
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
class SharedMachine:
    """So many nodes of so many sockets of so many cores."""

    nodes: int
    sockets: int
    cores: int

    def part(self, parts: int) -> int:
        """Return how many cores a part of a node has."""
        return self.sockets * (self.cores // parts)


@dataclass(frozen=True)
class Speedups:
    """``pairs[a][b]`` of code a beside code b, ``alone[a]`` on half sockets with no job beside."""

    pairs: Sequence[Sequence[float]]
    alone: Sequence[float]


@dataclass(frozen=True)
class FileSystem:
    """``bandwidth`` [bytes/s]; by code the ``share`` of time, and the ``demand`` of a core."""

    bandwidth: int
    share: Sequence[float]
    demand: Sequence[int]


@dataclass(frozen=True)
class SharedRules:
    """The scheduler.

    ``order`` is a name, the weights of fit, popularity and shortness, or a function of the
    simulation and a job.

    ``quotas``, ``places``: of rules 18 and 20, keys of the jobs in their order, for quotas what
    they ask for, and how much there may be of one key. ``follows``: of rule 19, by number of a job
    those of the others, the time to think and the earliest time.
    """

    allocation: str = PART
    parts: int = 2
    partners: str = "best"
    pairs_above: float | None = None
    backfill: str = "easy"
    order: Any = "fcfs"
    backfill_order: str = "fcfs"
    estimate: str = "requested"
    quotas: Sequence[tuple[Sequence[Any], Sequence[int], float]] = ()
    places: Sequence[tuple[Sequence[Any], float]] = ()
    follows: Mapping[int, tuple[Sequence[int], int, int]] = field(default_factory=dict)


class SharedNodesSimulation:
    """The places and rates of jobs, and events in time."""

    def __init__(
        self,
        jobs: Iterable[SharedJob],
        machine: SharedMachine,
        rules: SharedRules,
        true: Speedups,
        believed: Speedups | None = None,
        ticks: int = 10**9,
        files: FileSystem | None = None,
    ):
        self.m, self.rules, self.ticks, self.files = machine, rules, ticks, files
        self.true, self.believed = true, believed or true
        asked = ((j.submit, j.run, j.requested, j.processors, j.code) for j in jobs)
        self.jobs = sorted((SharedJob(*job) for job in asked), key=lambda job: job.submit)
        for number, job in enumerate(self.jobs):
            job.number = number
            job.shape, job.needed = self.place(job)
        self.coming = [job for job in self.jobs if job.number not in rules.follows]
        self.outside: list[SharedJob] = []  # by the times at which they were to be submitted
        self.freed = False  # whether jobs have ended since these were gone through
        self.queue: list[SharedJob] = []
        self.running: list[SharedJob] = []  # in the order of their starts
        self.now = -1
        self.shadow = self.slack = -1
        self.head: SharedJob | None = None
        self.leaving: list[SharedJob] = []
        self.values: dict[int, float] = {}  # of a function, by number, as the pass began

    def place(self, job: SharedJob) -> tuple[str, int]:
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

    def work(self, job: SharedJob) -> int:
        """Return what a job takes alone, in ticks (rule 1)."""
        return min(job.run, job.requested) * self.ticks

    def predicted(self, job: SharedJob) -> int:
        """Return its prediction, in ticks (rule 3)."""
        if self.rules.estimate == "clairvoyant":
            return self.work(job)
        twice = 2 if self.rules.estimate == "double-requested" else 1
        return twice * job.requested * self.ticks

    def spare(self, job: SharedJob) -> float:
        """How much more it may take than it does."""
        return float(self.predicted(job) - self.work(job))

    def left_now(self, job: SharedJob) -> float:
        """Return the work that is left of a job now."""
        return job.left - job.rate * (self.now - job.since)

    def after(self, work: float, rate: float) -> int:
        """Return when so much work is done at a rate."""
        return self.now + max(1, math.ceil(work / rate))

    # --- Places of jobs ---------------------------------------------------------------------

    def on(self, node: int) -> list[SharedJob]:
        """Return the jobs on a node."""
        return [job for job in self.running if any(node == own for own, _ in job.nodes)]

    def neighbours(self, job: SharedJob) -> list[SharedJob]:
        """Return the jobs that share a node with a job, in the order of their starts."""
        beside = [other for node, _ in job.nodes for other in self.on(node)]
        return [other for other in self.running if other in beside and other is not job]

    def true_rate(self, job: SharedJob) -> float:
        """Rule 5."""
        if job.shape == COMPACT:
            return 1.0
        beside = [self.true.pairs[job.code][other.code] for other in self.neighbours(job)]
        return min(beside) if beside else self.true.alone[job.code]

    def congested(self, job: SharedJob, rate: float) -> float:
        """Return the rate that becomes of one of rule 5 (rule 5a)."""
        if self.files is None:
            return rate
        asked = sum(other.processors * self.files.demand[other.code] for other in self.running)
        k = max(1.0, asked / self.files.bandwidth)
        return rate / (1.0 + rate * (self.files.share[job.code] * (k - 1.0)))

    def renew(self, job: SharedJob) -> None:
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

    def lasting(self, job: SharedJob) -> float:
        """Rule 12."""
        if job.shape == COMPACT:
            return 1.0
        return min(job.beside, self.believed.alone[job.code])

    # --- Events -----------------------------------------------------------------------------

    def run(self) -> list[SharedJob]:
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

    def submitted(self) -> list[SharedJob]:
        """Return the jobs that are submitted now (rule 20)."""
        due = [job for job in self.coming if job.submit * self.ticks == self.now]
        self.outside += sorted(due, key=lambda job: job.number)
        self.coming = [job for job in self.coming if job not in due]
        if self.now % self.ticks:
            return []
        self.freed = False
        jobs: list[SharedJob] = []
        for job in list(self.outside):
            there = [*self.queue, *self.running, *jobs]
            if all(
                keys[job.number] is None
                or isinstance(keys[job.number], Spared)
                or sum(keys[other.number] == keys[job.number] for other in there) < most
                for keys, most in self.rules.places
            ):
                self.outside.remove(job)
                job.submit = self.now // self.ticks
                jobs.append(job)
        return jobs

    def follow(self, ended: list[SharedJob]) -> None:
        """Let the jobs be due whose last other has ended now (rule 19)."""
        over = {job.number for job in self.jobs if 0 <= job.end <= self.now}
        for number, (others, think, earliest) in self.rules.follows.items():
            if over.issuperset(others) and any(job.number in others for job in ended):
                self.jobs[number].submit = max(self.second(self.now) + think, earliest)
                self.coming.append(self.jobs[number])

    def barred(self, job: SharedJob) -> bool:
        """Whether a job would be one too many now (rule 18)."""
        for keys, asks, most in self.rules.quotas:
            key, asked = keys[job.number], asks[job.number]
            beside = sum(asks[o.number] for o in self.running if keys[o.number] == key)
            spared = key is None or isinstance(key, Spared)
            if not spared and asked > 0 and beside + asked > most:
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

    def start(self, job: SharedJob, nodes: list[int], *, backfilled: bool) -> None:
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


# --- Nodes that jobs share: their rules as a program to read --------------------------------------


class SharedSimulation(SharedNodesSimulation):
    """All rules on nodes that jobs share."""

    # --- Order of the queue -----------------------------------------------------------------

    def dynamic(self) -> bool:
        """Return whether the order depends on which jobs wait."""
        return not isinstance(self.rules.order, str)

    def in_order(self) -> list[SharedJob]:
        """Return the queue in its order (rules 7 and 8)."""
        keys = {
            "fcfs": lambda job: 0,
            "lcfs": lambda job: -job.submit,
            "sjf": lambda job: job.requested,
            "lpf": lambda job: -job.requested,
            "sqf": lambda job: job.processors,
            "lqf": lambda job: -job.processors,
            "saf": lambda job: job.requested * job.processors,
        }
        if callable(self.rules.order):
            return sorted(self.queue, key=lambda job: -self.values[job.number])
        if self.dynamic():
            return sorted(self.queue, key=lambda job: -self.score(job))
        return sorted(self.queue, key=keys[self.rules.order])

    def score(self, job: SharedJob) -> float:
        """Rule 8."""
        fit, popularity, shortness = self.rules.order
        others = [other for other in self.queue if other is not job]
        popular = sum(self.pair(job, other) > 1 for other in others)
        least = min(other.requested for other in self.queue)
        total = fit * self.fit(job)
        total += popularity * (popular / len(others) if others else 0.0)
        return float(total + shortness * (least / job.requested))

    def fit(self, job: SharedJob) -> float:
        """Return the part of the nodes with room that a job needs (rule 8)."""
        idle = [node for node in range(self.m.nodes) if not self.on(node)]
        if job.shape == PART:
            room = [node for node in range(self.m.nodes) if self.held(node) < self.rules.parts]
        else:
            room = idle
        return job.needed / len(room) if job.needed <= len(room) else -1.0

    def parts(self, job: SharedJob) -> int:
        """Return how many parts of nodes it needs."""
        return job.needed * (1 if job.shape == PART else self.rules.parts)

    def free(self) -> int:
        """Return how many parts no job has (rule 8a)."""
        return self.m.nodes * self.rules.parts - sum(map(self.parts, self.running))

    # --- Where a job can start --------------------------------------------------------------

    def speedup(self, job: SharedJob, other: SharedJob) -> float:
        """Return what the scheduler takes for the speedup of a job beside another."""
        return self.believed.pairs[job.code][other.code]

    def pair(self, job: SharedJob, other: SharedJob) -> float:
        """Return the mean of both (rule 9)."""
        return (self.speedup(job, other) + self.speedup(other, job)) / 2

    def good(self, job: SharedJob, other: SharedJob) -> bool:
        """Return whether two jobs are good partners (rule 9)."""
        above = self.rules.pairs_above
        return above is None or self.pair(job, other) > above

    def room_beside(self, job: SharedJob, others: list[SharedJob]) -> bool:
        """Whether a job finds room on a node that these jobs have parts of."""
        if job.shape != PART:
            return not others
        if any(other.shape != PART for other in others):
            return False
        return len(others) < self.rules.parts and all(self.good(job, other) for other in others)

    def least_speedup(self, job: SharedJob, others: list[SharedJob]) -> float:
        """Return its least speedup beside some jobs, or alone."""
        beside = [self.speedup(job, other) for other in others]
        return min(beside) if beside else self.believed.alone[job.code]

    def places(self, job: SharedJob) -> list[int]:
        """Rule 10: all nodes it may take, in the order in which it takes them."""
        nodes = [node for node in range(self.m.nodes) if self.room_beside(job, self.on(node))]
        if job.shape != PART or self.rules.partners == "first":
            return nodes
        if self.rules.partners == "best":
            return sorted(nodes, key=lambda node: -self.least_speedup(job, self.on(node)))
        used = [node for node in nodes if self.on(node)]
        if self.rules.partners == "fill":
            used.sort(key=lambda node: -self.least_speedup(job, self.on(node)))
        return used + [node for node in nodes if not self.on(node)]

    # --- A pass -----------------------------------------------------------------------------

    def do_pass(self) -> None:
        """Rule 11."""
        if callable(self.rules.order):
            self.values = {job.number: self.rules.order(self, job) for job in self.queue}
        refused = self.start_in_order(only_first=self.rules.backfill != "fill")
        kind, _, behind = self.rules.backfill.partition(":")
        if refused is not None and kind in ("easy", "until-shadow"):
            self.reserve(refused)
            self.backfill()
        elif refused is not None and kind == "first-come":
            self.start_before_first_come(int(behind))

    def start_in_order(self, *, only_first: bool) -> SharedJob | None:
        """Start what can start, and return the first job that cannot, if there is one."""
        before: SharedJob | None = None
        while True:
            for job in self.in_order():
                if self.barred(job):
                    continue
                places = self.places(job)
                if len(places) >= job.needed:
                    self.start(job, places[: job.needed], backfilled=before is not None)
                    break
                before = before or job
                if only_first:
                    return before
            else:
                return before

    def start_before_first_come(self, behind: int) -> None:
        """Rule 16b."""
        first, *others = (job for job in self.queue if not self.barred(job))
        self.shadow, self.leaving = self.now, []
        for job in sorted(self.running, key=self.over_as_predicted):
            self.leaving.append(job)
            self.shadow = max(self.over_as_predicted(job), self.now)
            if len(self.counting(first)) >= first.needed:
                break
        if first.promised == -1 and not self.dynamic():
            first.promised = self.shadow
        for job in others[:behind]:
            places = self.places(job)
            over = self.now + self.predicted(job) <= self.shadow
            if over and not self.barred(job) and len(places) >= job.needed:
                self.start(job, places[: job.needed], backfilled=True)

    def over_as_predicted(self, job: SharedJob) -> int:
        """Return when a running job ends if it takes as long as predicted, whatever its speed."""
        return job.start + self.predicted(job)

    # --- EASY -------------------------------------------------------------------------------

    def expected_beside(self, job: SharedJob, candidate: SharedJob) -> int:
        """Rule 14."""
        floor = min(self.speedup(job, candidate), self.believed.alone[job.code])
        if self.neighbours(job):
            floor = min(floor, job.beside)
        return self.after(self.left_now(job) + self.spare(job), self.congested(job, floor))

    def candidates_end(self, job: SharedJob, nodes: list[int]) -> int:
        """Return when a candidate is predicted to end on some nodes (rule 12)."""
        floor = 1.0
        if job.shape != COMPACT:
            beside = [other for node in nodes for other in self.on(node)]
            floor = min(self.least_speedup(job, beside), self.believed.alone[job.code])
        return self.after(self.predicted(job), self.congested(job, floor))

    def staying(self, node: int) -> list[SharedJob]:
        """Return the jobs of a node that are predicted to run beyond the shadow time (rule 13)."""
        return [job for job in self.on(node) if job not in self.leaving]

    def counting(self, head: SharedJob) -> list[int]:
        """Return the nodes that count for the head (rule 13)."""
        return [n for n in range(self.m.nodes) if self.room_beside(head, self.staying(n))]

    def reserve(self, head: SharedJob) -> None:
        """Rule 13."""
        self.head = head
        for time in sorted({job.expected for job in self.running}):
            self.shadow = time
            self.leaving = [job for job in self.running if job.expected <= time]
            self.slack = len(self.counting(head)) - head.needed
            if self.slack >= 0:
                break
        assert self.slack >= 0, "the head is larger than the machine"
        if head.promised == -1 and not self.dynamic():
            head.promised = self.shadow

    def backfill(self) -> None:
        """Rules 14 to 16."""
        tried = [self.head]
        while True:
            candidates = [job for job in self.in_order_of_backfill() if job not in tried]
            if not candidates:
                return
            tried.append(candidates[0])
            if self.barred(candidates[0]):
                continue
            nodes = self.nodes_behind(candidates[0])
            if nodes is not None:
                self.start(candidates[0], nodes, backfilled=True)

    def in_order_of_backfill(self) -> list[SharedJob]:
        """Return the queue in the order of backfilling (rule 14)."""
        by = self.rules.backfill_order
        if by == "policy":
            return self.in_order()
        return sorted(self.queue, key=self.predicted) if by == "sjbf" else list(self.queue)

    def nodes_behind(self, job: SharedJob) -> list[int] | None:
        """Rules 14 to 16a: nodes on which it may start, None if it has to wait."""
        strict = self.rules.backfill == "until-shadow"
        places = [node for node in self.places(job) if not self.delays_one_on(node, job)]
        if len(places) < job.needed:
            return None
        if self.candidates_end(job, places[: job.needed]) <= self.shadow - strict:
            self.leaving.append(job)
            return places[: job.needed]
        if strict:
            return None
        chosen, slack = [], self.slack
        for node in places:
            if self.takes_from_head(node, job):
                if slack == 0:
                    continue
                slack -= 1
            chosen.append(node)
            if len(chosen) == job.needed:
                self.slack = slack
                return chosen
        return None

    def delays_one_on(self, node: int, job: SharedJob) -> bool:
        """Whether a job that ends by the shadow time would not beside this one."""
        return any(
            other.expected <= self.shadow < self.expected_beside(other, job)
            for other in self.on(node)
        )

    def takes_from_head(self, node: int, job: SharedJob) -> bool:
        """Whether the node counts for the head, and would not with this job staying."""
        staying = self.staying(node)
        assert self.head is not None
        if not self.room_beside(self.head, staying):
            return False
        return not self.room_beside(self.head, [*staying, job])


def simulate_shared(
    jobs: Iterable[SharedJob],
    machine: SharedMachine,
    rules: SharedRules,
    true: Speedups,
    believed: Speedups | None = None,
    ticks: int = 10**9,
    files: FileSystem | None = None,
) -> list[SharedJob]:
    """Schedule the jobs by the rules above; return them by number, the given untouched.

    ``believed``: what the scheduler takes the speedups to be, by default what they are;
    ``ticks``: in a second; ``files``: the file system, None without one. Raises ValueError as rule
    4 says.
    """
    return SharedSimulation(jobs, machine, rules, true, believed, ticks, files).run()
