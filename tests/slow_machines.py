"""What the slow simulator of limits works on: nodes, caps, budgets, jobs; see `slow_limits.py`."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import pairwise
from typing import Any

from hpcgym.reference.jobs import Job

ON, OFF, SHUTTING, BOOTING = "on", "off", "shutting", "booting"
NEVER = 2**62
HUGE = 2**61


def up(watts: float) -> int:
    return math.ceil(Decimal(repr(float(watts))) * 1000)


@dataclass
class Node:
    state: str = ON
    since: int = 0
    until: int = NEVER
    job: Any = None
    boots: bool = False


@dataclass
class Cap:
    start: int
    end: int
    announced: int
    mw: int
    kills: bool
    off: int
    known: bool = False


@dataclass
class Budget:
    start: int
    end: int
    mj: int
    period: int
    shutdown: bool
    binds: bool = True
    as_idle: bool = False
    read: int = 0
    saved: int = 0
    looked: int = -1
    reserves: dict[int, tuple[Any, int]] = field(default_factory=dict)

    @property
    def mean(self) -> int:
        return self.mj // (self.end - self.start)


@dataclass(eq=False)
class LimitedJob(Job):
    nodes: int = 0
    measured: Any = None  # [mW] at each level, or None
    factors: Any = ()  # [millionths] at each level
    level: int = -1
    passed: int = -1
    until: int = -1
    cells: Any = ()
    began: bool = False
    order: int = -1
    real: int = -1  # run time, once it is known
    asked: int = -1  # requested time at its level
    killed_at: int = -1  # by a cap, at a pass

    @property
    def actual(self) -> int:
        return self.real if self.real >= 0 else min(self.run, self.requested)


@dataclass
class Machine:
    """What does not change. Powers in mW."""

    nodes: int
    idle: int
    off: int
    shut: int
    boot: int
    busy: list[int]
    off_time: int
    boot_time: int
    levels: list[tuple[int, int]]  # (nodes below, mW)
    switches: bool
    timeout: int | None
    lowest: int

    @property
    def rest(self) -> int:
        return max(self.idle, self.shut) if self.switches else self.idle

    @property
    def rise(self) -> int:
        return max(self.boot, self.rest)

    def components(self) -> list[tuple[list[int], int, bool]]:
        """Nodes below, power, and whether it is of the first level."""
        found = []
        for number, (size, mw) in enumerate(self.levels):
            for at in range(0, self.nodes, size):
                found.append((list(range(at, min(at + size, self.nodes))), mw, number == 0))
        return found

    def above(self, off: set[int]) -> int:
        """Power of components, less that of off nodes below those of the first level."""
        total = 0
        for below, mw, first in self.components():
            if not set(below) <= off:
                total += mw
            elif first:
                total -= self.off * len(below)
        return total


def ceil_slow(time: int, millionths: int) -> int:
    return -(-time * millionths // 10**6)


def pieces(begin: int, end: int, cuts: Iterable[int]) -> list[tuple[int, int]]:
    """The parts into which some times cut an interval."""
    if end <= begin:
        return []
    times = sorted({begin, end, *(time for time in cuts if begin < time < end)})
    return list(pairwise(times))
