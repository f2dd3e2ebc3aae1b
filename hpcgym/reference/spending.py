"""What jobs have used: rule 33."""

from __future__ import annotations

from decimal import Decimal, localcontext
from functools import lru_cache
from typing import Any

from hpcgym.reference.jobs import IN_ALL, USED, Job, Spared
from hpcgym.reference.shares import DIGITS

#: At multiples of what use counts [s], where Slurm's settings do not say otherwise.
USE_PERIOD_S = 300
#: Less than this has been forgotten [s].
NOTHING_LEFT = Decimal("1e-9")


def is_budget(quota: tuple[Any, ...]) -> bool:
    """Return whether a quota bounds what jobs have used."""
    return USED in quota[3:] or IN_ALL in quota[3:]


@lru_cache(1 << 16)
def left_of(half_life: int | None, seconds: int) -> Decimal:
    """Return what is left of 1 after so many seconds."""
    with localcontext(DIGITS):
        return Decimal(1 if half_life is None else 1 - 0.693 / half_life) ** seconds


@lru_cache(1 << 16)
def parts_of(begin: int, end: int, period: int) -> list[tuple[int, int]]:
    """Return at which multiples a piece counts that is over, or as of which, and its seconds."""
    parts = []
    while begin < end:
        until = (begin // period + 1) * period
        seconds = min(end, until) - begin
        parts.append((until if until < end else until - period, seconds))
        begin += seconds
    return parts


class UsedByJobs:
    """The part of a simulation that knows what jobs have used."""

    def __init__(self, simulation: Any):
        self.simulation = simulation
        self.known: dict[Any, Decimal] = {}  # what has been used, while the same is true

    @property
    def period(self) -> int:
        """At multiples of which use counts [s]."""
        slurm = self.simulation.slurm
        return USE_PERIOD_S if slurm is None else slurm["calc_period"] or USE_PERIOD_S

    def last(self, now: int) -> int:
        """Return the last multiple that has counted."""
        return (now - 1) // self.period * self.period

    def pieces(self) -> list[tuple[Job, int, float]]:
        """Return all runs so far, and what was run before suspensions, each with begin and end."""
        made, never = self.simulation, float("inf")
        stopped = [(made.jobs[n], begin, end) for n, begin, end, *_ in made.lost + made.cancelled]
        ended = [job for jobs in made.terminated.values() for job in jobs]
        runs = [job for job in made.running if job.number < len(made.jobs)]
        return [
            *stopped,
            *((job, job.since, job.end) for job in ended),
            *((job, job.since, never) for job in runs),
        ]

    def counted(self, begin: int, end: float, now: int) -> list[tuple[int, int]]:
        """Return how many seconds of a piece have counted, and as of which multiple."""
        if end <= now:
            return parts_of(begin, int(end), self.period)
        # without the second behind the last multiple
        return parts_of(begin, max(self.last(now), begin) + 1, self.period)[:-1]

    def used(self, quota: tuple[Any, ...], key: Any, now: int) -> Decimal:
        """Return what jobs of a key have used, less what is forgotten [s]."""
        keys, asks, _, _, half_life = quota
        last = self.last(now)
        pieces = [piece for piece in self.pieces() if keys[piece[0].number] == key]
        state = id(quota), key, last, tuple((job.number, b, e) for job, b, e in pieces if e <= now)
        if state not in self.known:
            used = sum(
                asks[job.number] * seconds * left_of(half_life, seconds + last - at)
                for job, begin, end in pieces
                for at, seconds in self.counted(begin, end, now)
            )
            self.known[state] = Decimal(used if used >= NOTHING_LEFT else 0)
        return self.known[state]

    def ahead(self, quota: tuple[Any, ...], key: Any, now: int) -> int:
        """Return what running jobs of a key still may use [s]."""
        keys, asks, *_ = quota
        held = [
            job
            for job in self.simulation.running + self.simulation.suspended
            if keys[job.number] == key and asks[job.number]
        ]
        total = 0
        for job in held:
            own = [(b, e) for other, b, e in self.pieces() if other is job and b >= job.start]
            ran = sum(seconds for b, e in own for _, seconds in self.counted(b, e, now))
            total += asks[job.number] * (job.requested - ran)
        return total

    def exceeds(self, job: Job, quota: tuple[Any, ...], now: int) -> bool:
        """Whether a job would exceed a budget."""
        keys, asks, most, how, _ = quota
        key, asked = keys[job.number], asks[job.number]
        if key is None or isinstance(key, Spared) or asked == 0:
            return False
        minutes = int(self.used(quota, key, now) // 60)
        if how == USED:
            return bool(minutes >= most)
        minutes += self.ahead(quota, key, now) // 60
        return bool(60 * minutes + asked * job.requested > 60 * most)

    def may_change(self, job: Job, quota: tuple[Any, ...], now: int) -> bool:
        """Whether what a budget has of the key of a job may become less without an event."""
        keys, asks, _, _, half_life = quota
        runs = any(
            keys[other.number] == keys[job.number] and asks[other.number]
            for other in self.simulation.running
        )
        return runs or (half_life is not None and self.used(quota, keys[job.number], now) > 0)
