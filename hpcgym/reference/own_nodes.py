"""Nodes that jobs have to themselves: their powers and states, and caps of power.

Rules 1 to 4 and 7 to 9 of :mod:`hpcgym.reference.limits`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, NamedTuple

from hpcgym.reference.jobs import Job
from hpcgym.reference.pool import PoolSimulation

ON, OFF, SHUTTING, BOOTING = "on", "off", "shutting", "booting"
NEVER = 2**62  # [s] later than anything

# --- What there is --------------------------------------------------------------------------------


@dataclass
class PoweredNode:
    """A node: its state, since when, until when if it is being switched, and the job on it."""

    state: str = ON
    since: int = 0
    until: int = NEVER
    job: Any = None
    boots: bool = False  # once it is off


@dataclass
class Cap:
    """A cap of power [mW] from start to end [s], with its first nodes off."""

    start: int
    end: int
    announced: int
    mw: int
    kills: bool
    off: int
    known: bool = False


@dataclass
class Budget:
    """A budget of energy [mJ], and what has been read of it."""

    start: int
    end: int
    mj: int
    period: int
    shuts: bool
    binds: bool = True
    free_mw: int = -1  # rule 20; -1: it has no such power
    read: int = 0
    saved: int = 0

    @property
    def fixed(self) -> bool:
        """Whether rule 20 holds."""
        return self.free_mw >= 0

    @property
    def mean(self) -> int:
        """Return L, its mean power [mW]."""
        return self.mj // (self.end - self.start)

    def above(self, power: int, begin: int, end: int) -> int:
        """Return the energy above L in a part of the period, at one power [mJ]."""
        seconds = min(end, self.end) - max(begin, self.start)
        return (power - self.mean) * max(seconds, 0)


@dataclass(eq=False)
class LimitedJob(Job):
    """A job with nodes of its own."""

    width: int = 0  # nodes
    measured: Any = None  # [mW] at each level, or None
    factors: Any = ()  # [millionths] at each level
    level: int = -1
    passed: int = -1  # when it was given its nodes
    until: int = -1  # its requested end
    cells: Any = ()  # its nodes
    began: bool = False
    order: int = -1
    real: int = -1  # run time, once it is known
    asked: int = -1  # requested time at its level
    killed_at: int = -1  # by a cap, at a pass

    @property
    def actual(self) -> int:
        """How long it runs."""
        return self.real if self.real >= 0 else min(self.run, self.requested)


@dataclass
class PoweredMachine:
    """What does not change. Powers in mW."""

    nodes: int
    cores: int  # of each node
    idle: int
    off: int
    shut: int
    boot: int
    busy: list[int]
    off_time: int
    boot_time: int
    levels: list[tuple[int, int]]  # (nodes below, mW)
    timeout: int | None
    switches: bool
    lowest: int

    @property
    def rest(self) -> int:
        """Return what a free node that is on counts as."""
        return max(self.idle, self.shut) if self.switches else self.idle

    @property
    def rise(self) -> int:
        """Return what a node that boots counts as."""
        return max(self.boot, self.rest)

    def above(self, off: set[int]) -> int:
        """Power of components, less that of off nodes below those of the first level."""
        total = 0
        for number, (size, mw) in enumerate(self.levels):
            for at in range(0, self.nodes, size):
                below = set(range(at, min(at + size, self.nodes)))
                if not below <= off:
                    total += mw
                elif number == 0:
                    total -= self.off * len(below)
        return total


class PossibleStart(NamedTuple):
    """A job that may start: at which level, on which nodes, and when these are on."""

    job: LimitedJob
    level: int
    cells: Any
    ready: int


def slowed(time: int, millionths: int) -> int:
    """Return a time at a level, rounded up."""
    return -(-time * millionths // 10**6)


def up(watts: float) -> int:
    """Return a power in milliwatts, rounded up."""
    return math.ceil(Decimal(repr(float(watts))) * 1000)


def machine_of(cluster: Any, power: Any, switches: bool, lowest: int) -> PoweredMachine:
    """Return the machine of a :class:`hpcgym.Cluster` whose nodes all have one power."""
    levels, below = [], 1
    for level in cluster.levels:
        below *= level.of
        levels.append((below, up(level.power_w)))
    return PoweredMachine(
        nodes=cluster.nodes,
        cores=cluster.groups[0].resources["core"],
        idle=up(power.idle_w),
        off=up(power.off_w),
        shut=up(power.shutdown_w),
        boot=up(power.boot_w),
        busy=[up(watts) for watts in power.busy_levels_w],
        off_time=power.shutdown_time_s,
        boot_time=power.boot_time_s,
        levels=levels,
        timeout=cluster.shutdown_after_s,
        switches=switches,
        lowest=lowest,
    )


def limited_jobs_of(workload: Any, power: Any, widths: list[int], cores: int) -> list[LimitedJob]:
    """Return the jobs of a :class:`hpcgym.Workload`, of so many nodes of so many cores each.

    A measured job draws its own power on each core that it asks for, at lower levels in proportion
    to that of nodes, in steps of 2^-20 W; and the idle power on cores that are left.
    """
    busy, ghz = power.busy_levels_w, power.frequency_ghz
    jobs = []
    for row, width in enumerate(widths):
        job = LimitedJob(
            int(workload.submit_time[row]),
            int(workload.requested_processors[row]),
            int(workload.run_time[row]),
            int(workload.requested_time[row]),
            int(workload.user_id[row]),
            first_submit=workload.first_submit_s,
            recorded_wait=int(workload.wait_time[row]),
            width=width,
            factors=[round(factor * 10**6) for factor in power.slowdowns],
        )
        own, slowdown = float(workload.power_w[row]), float(workload.slowdown[row])
        if own >= 0:
            left = (width * cores - job.processors) / cores * power.idle_w
            scale = [watts / busy[-1] if busy[-1] else 1.0 for watts in busy]
            draws = [round(own * part * 2**20) / 2**20 * job.processors + left for part in scale]
            job.measured = [math.ceil(1000 * watts) for watts in draws]
        if slowdown >= 0 and power.levels > 1:
            shares = [(ghz[-1] - f) / (ghz[-1] - ghz[0]) for f in ghz]
            job.factors = [round((1 + (slowdown - 1) * share) * 10**6) for share in shares]
        jobs.append(job)
    return jobs


# --- Nodes, their power, and caps -----------------------------------------------------------------


class OwnNodes(PoolSimulation):
    """Nodes of a machine, their states and powers, and caps of power."""

    running: list[Any]
    queue: list[Any]

    def __init__(
        self,
        jobs: Iterable[LimitedJob],
        machine: PoweredMachine,
        caps: list[Cap],
        contiguous: bool,
        **rules: Any,
    ):
        given = list(jobs)
        super().__init__([], machine.nodes * machine.cores, passes="per-timestamp", **rules)
        self.jobs: list[Any] = sorted(given, key=lambda job: job.submit)
        for number, job in enumerate(self.jobs):
            job.number = number
        self.coming = [job for job in reversed(self.jobs) if job.number not in self.follows]
        self.m, self.caps, self.contiguous = machine, caps, contiguous
        begin = self.coming[-1].submit if self.coming else 0
        self.nodes = [PoweredNode(since=begin) for _ in range(machine.nodes)]
        self.now = -2
        self.intervals: list[tuple[int, str, int, int]] = []  # node, state, from when to when

    # Orders and room

    def width_of(self, job: Any) -> int:
        """Return how many nodes a job takes."""
        return int(job.width)

    @property
    def size(self) -> int:
        """How many nodes there are."""
        return self.m.nodes

    def free(self, time: int) -> int:
        """Return how many nodes no job has that is predicted to run beyond a time."""
        held = sum(int(job.width) for job in self.running if job.predicted_end > time)
        return self.m.nodes - held

    # Power

    def work(self, job: LimitedJob, level: int) -> int:
        """Rule 3: of a job that runs."""
        power = job.width * max(self.m.busy[level], self.m.rest)
        return power if job.measured is None else max(power, job.measured[level])

    def waiting(self, job: LimitedJob, level: int) -> int:
        """Rule 3: of a job that waits for nodes."""
        return max(self.work(job, level), job.width * self.m.rise)

    def dark(self, but: Iterable[int] = ()) -> set[int]:
        """Return the nodes that are off, except some."""
        off = {n for n, node in enumerate(self.nodes) if node.state == OFF}
        return off - set(but)

    def charged(self, also: PossibleStart | None = None, free_mw: int = -1) -> int:
        """Rule 3; with another job, and by rule 20."""
        taken = () if also is None else also.cells
        total = self.m.above(set() if free_mw >= 0 else self.dark(taken))
        charges = {OFF: self.m.off, BOOTING: self.m.rise}
        for n, node in enumerate(self.nodes):
            if node.job is None and n not in taken:
                total += charges.get(node.state, self.m.rest) if free_mw < 0 else free_mw
        for job in self.running:
            total += self.work(job, job.level) if job.began else self.waiting(job, job.level)
        if also is not None:
            power = self.waiting if also.ready > self.now else self.work
            total += power(also.job, also.level)
        return total

    def drawn(self) -> int:
        """Rule 2."""
        total = self.m.above(self.dark())
        powers = {ON: self.m.idle, OFF: self.m.off, SHUTTING: self.m.shut, BOOTING: self.m.boot}
        for node in self.nodes:
            if node.job is None or not node.job.began:
                total += powers[node.state]
        for job in self.running:
            if job.began:
                busy = job.width * self.m.busy[job.level]
                total += busy if job.measured is None else job.measured[job.level]
        return total

    # States of nodes

    def set_state(self, n: int, state: str, until: int = NEVER) -> None:
        """Let a node be in another state, from now on."""
        node = self.nodes[n]
        if node.state != ON and self.now > node.since:
            self.intervals.append((n, node.state, node.since, self.now))
        node.state, node.since, node.until = state, self.now, until

    def shut(self, n: int) -> None:
        """Let a node begin to switch off."""
        time = self.m.off_time
        self.set_state(n, SHUTTING, self.now + time) if time else self.set_state(n, OFF)

    def boot(self, n: int) -> None:
        """Let a node begin to switch on, once it is off."""
        node, time = self.nodes[n], self.m.boot_time
        if node.state == SHUTTING:
            node.boots = True
        elif node.state == OFF:
            self.set_state(n, BOOTING, self.now + time) if time else self.set_state(n, ON)

    def finish_switching(self, now: int) -> None:
        """Let nodes be on, or off, that have been switched."""
        for n, node in enumerate(self.nodes):
            if node.until > now:
                continue
            if node.state == BOOTING:
                self.set_state(n, ON)
            else:
                self.set_state(n, OFF)
                if node.job is not None:
                    self.boot(n)
                    node.boots = False

    def shut_free(self, numbers: Iterable[int], since: int) -> None:
        """Let nodes begin to switch off that have been idle since then."""
        for n in numbers:
            node = self.nodes[n]
            if node.job is None and node.state == ON and node.since <= since:
                self.shut(n)

    def choose(self, job: LimitedJob, asked: int, avoid: range = range(0)) -> Any:
        """Rules 1 and 7: nodes and when they are ready, or None."""
        bar = self.kept_off(self.now, self.now + asked)
        while True:
            cells = self.pick(job, bar, avoid)
            if cells is None:
                return None
            ready = max([self.now, *(self.ready(self.nodes[n]) for n in cells)])
            again = self.kept_off(self.now, ready + asked)
            if again <= bar:
                return cells, ready
            bar = again

    def pick(self, job: LimitedJob, bar: int, avoid: range) -> list[int] | None:
        """Rule 1, behind the first nodes."""
        free = [n for n in range(bar, self.m.nodes) if self.nodes[n].job is None]
        on = [n for n in free if self.nodes[n].state == ON]
        if self.contiguous:
            for allowed in (on, free):
                there = set(allowed) - set(avoid)
                for n in allowed:
                    row = range(n, n + job.width)
                    if set(row) <= there:
                        return list(row)
            return None
        chosen = (on + [n for n in free if n not in on])[: job.width]
        return sorted(chosen) if len(chosen) == job.width else None

    def ready(self, node: PoweredNode) -> int:
        """Return when a node can be on."""
        boot = self.m.boot_time
        times = {ON: self.now, OFF: self.now + boot, SHUTTING: node.until + boot}
        return times.get(node.state, node.until)

    # Caps

    def announced(self) -> list[Cap]:
        """Return the caps that are known."""
        return [cap for cap in self.caps if cap.known]

    def kept_off(self, begin: int, end: int) -> int:
        """Rule 7."""
        bars = (
            cap.off
            for cap in self.announced()
            if begin < cap.end and end > cap.start - self.m.off_time
        )
        return max(bars, default=0)

    def cap_near(self, now: int) -> bool:
        """Rule 8."""
        soon = now + max(self.m.boot_time, 1)
        caps = [(cap.start - self.m.off_time, cap.end) for cap in self.announced()]
        return any(start < soon and end > now for start, end in caps)

    def forecast(self, cap: Cap, also: PossibleStart | None = None) -> int:
        """Rule 9."""
        total, held = 0, set[int]()
        for job in self.running:
            if job.until > cap.start:
                power = self.waiting if job.start > cap.start else self.work
                total += power(job, job.level)
                held |= {*job.cells}
        if also is not None:
            power = self.waiting if also.ready > cap.start else self.work
            boots = [n for n in also.cells if self.then(n, cap) == self.m.rise > self.m.rest]
            total += power(also.job, also.level) + len(boots) * (self.m.rise - self.m.rest)
            held |= {*also.cells}
        free = {n: self.then(n, cap) for n in range(self.m.nodes) if n not in held}
        total += self.m.above({n for n, power in free.items() if power is None})
        return total + sum(self.m.off if power is None else power for power in free.values())

    def then(self, n: int, cap: Cap) -> int | None:
        """Return what a node without a job at the start of a cap counts as; None: it is off."""
        node = self.nodes[n]
        if node.job is None and node.state == BOOTING and node.until > cap.start:
            return self.m.rise
        free = node.until if node.state in (SHUTTING, BOOTING) else self.now
        if node.job is not None:
            free = node.job.until
        off_time = self.m.off_time if node.job is not None or node.state in (ON, BOOTING) else 0
        return None if n < cap.off and free + off_time <= cap.start else self.m.rest
