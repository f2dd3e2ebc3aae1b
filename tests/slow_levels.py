"""Rules of levels that change while jobs run, for the slow simulator of `slow_limits.py`.

They add to the rules there, under caps alone; whatever is not said stays as it is.

Rules
-----
Work
21. At a level with slowdown d, in millionths, a job does ceil(10^15 / d) units of work in each
    second, and 10^9 at the highest. A time of X seconds at the highest is X * 10^9 units: it is
    over at the first whole second in which they are done. What was done before a change counts in
    full. So run, requested and predicted end move with each change. A corrected prediction is as
    many units as are done by then at the present level.
22. Caps reckon with the longest that a job may take: `until` is its requested end if it runs at
    the lowest level from now on, as of the last pass; 7 and 9 take that. They reckon with the
    least power of jobs in forecasts (9) and in plans (17, 18), the head's and others': at the
    lowest level.
Levels
23. Below caps in force a job starts at the highest level at which it fits, the others as they are.
    If it fits at none it may still start at the lowest, unless it is backfilled, if it fits with
    all others at the lowest.
24. Where the power is above a cap in force, at a pass before jobs are killed (11) and after each
    start, the job that started last goes down level by level until it is not, then the one
    before it, and so on.
25. At the end of a pass each job, in the order of their starts, goes up to the highest level at
    which the power is within all caps in force. Jobs that wait for their nodes are as others.
"""

from __future__ import annotations

from typing import Any

from slow_limits import LimitedSimulation
from slow_machines import Cap, LimitedJob

SECOND = 10**9  # units of work at the highest level


class ChangingSimulation(LimitedSimulation):
    """Rules 21 to 25. `levels_log` has each job's level from some time on, as of the passes."""

    def __init__(self, *given: Any, dvfs_when: str, **rules: Any):
        assert dvfs_when == "running"
        super().__init__(*given, **rules)
        self.levels_log: list[tuple[int, int, int]] = []

    # --- Rule 21 ------------------------------------------------------------------------------

    def speed(self, job: LimitedJob, level: int) -> int:
        return -(-(10**15) // job.factors[level])

    def seconds(self, job: LimitedJob, work: int, level: int) -> int:
        return -(-work // self.speed(job, level))

    def done(self, job: Any) -> int:
        return job.done + max(self.now - job.since, 0) * self.speed(job, job.level)

    def set_times(self, job: Any) -> None:
        def length(work: int) -> int:
            end = job.since + self.seconds(job, work - job.done, job.level)
            return end - job.start

        job.real = length(job.whole * SECOND)
        job.end = job.start + job.real
        job.asked = length(job.requested * SECOND)
        if job.predicted * SECOND > job.done:
            job.foreseen = length(job.predicted * SECOND)
        job.prediction = length(job.awaited)

    def set_level(self, job: Any, level: int) -> None:
        job.done = self.done(job)
        job.since = max(self.now, job.start)
        job.level = level
        self.set_times(job)

    def corrected(self, job: Any, now: int) -> int:
        given = job.predicted, job.requested
        job.predicted, job.requested = job.foreseen, job.asked
        try:
            # the rule of the oracle, with the times that the job has
            found = super(LimitedSimulation, self).corrected(job, now)
        finally:
            job.predicted, job.requested = given
        more = job.start + found - job.since
        job.awaited = job.done + more * self.speed(job, job.level)
        return found

    # --- Rule 22 ------------------------------------------------------------------------------

    def renew_until(self, job: Any) -> None:
        left = job.requested * SECOND - self.done(job)
        job.until = max(self.now, job.start) + self.seconds(job, left, self.m.lowest)

    def least_at(self, job: LimitedJob, start: int, time: int) -> int:
        low = self.m.lowest
        return self.waiting(job, low) if start > time else self.work(job, low)

    def forecast(self, cap: Cap, also: Any = None) -> int:
        lasting = [
            (job.cells, self.least_at(job, job.start, cap.start))
            for job in self.running
            if job.until > cap.start
        ]
        if also is not None:
            job, _, cells, ready = also
            power = self.least_at(job, ready, cap.start)
            boots = [n for n in cells if self.then(n, cap) == self.m.rise > self.m.rest]
            lasting.append((cells, power + len(boots) * (self.m.rise - self.m.rest)))
        return self.floor(cap, lasting)

    def planned_floor(self, cap: Cap, jobs: list[LimitedJob]) -> int:
        now = sum(self.work(job, job.level) - self.work(job, self.m.lowest) for job in jobs)
        return super().planned_floor(cap, jobs) - now

    def planned(self, head: LimitedJob, level: int, time: int) -> Any:
        return super().planned(self.as_slow(head), self.m.lowest, time)

    def as_slow(self, job: Any) -> Any:
        """The job, whose requested time at the lowest level is what `ceil_slow` makes of it."""

        class Slow:
            nodes, measured = job.nodes, job.measured
            requested = self.seconds(job, job.requested * SECOND, self.m.lowest)
            factors = [10**6] * len(job.factors)

        return Slow()

    # --- Rules 23 to 25 -----------------------------------------------------------------------

    def in_force(self) -> list[Cap]:
        return [cap for cap in self.announced() if cap.start <= self.now < cap.end]

    def within(self, power: int) -> bool:
        return all(power <= cap.mw for cap in self.in_force())

    def spared(self) -> int:
        """What all jobs at the lowest level would save."""
        return sum(
            self.now_or_waiting(job, self.now) - self.least_at(job, job.start, self.now)
            for job in self.running
        )

    def try_level(self, job: LimitedJob, level: int, backfills: bool) -> Any:
        longest = self.seconds(job, job.requested * SECOND, self.m.lowest)
        chosen = self.choose(job, longest)
        if chosen is None:
            return None
        if backfills:
            chosen = self.leaves_room(job, level, longest, chosen)
            if chosen is None:
                return None
        also = (job, level, *chosen)
        power = self.charged(also)
        if level == self.m.lowest and not backfills:
            power -= self.spared()
        if not self.within(power):
            return None
        for cap in self.announced():
            if self.now < cap.start < chosen[1] + longest and self.forecast(cap, also) > cap.mw:
                return None
        return also

    def runs_on(self, job: LimitedJob, level: int, ready: int) -> bool:
        """Whether a job is predicted to end after the shadow time."""
        return ready + self.seconds(job, job.predicted * SECOND, level) > self.spare[0]

    def leaves_room(self, job: LimitedJob, level: int, longest: int, chosen: Any) -> Any:
        _, nodes, watts, row, _, _ = self.spare
        if not self.runs_on(job, level, chosen[1]):
            return chosen
        if self.contiguous:
            chosen = self.choose(job, longest, row)
            if chosen is None:
                return None
        elif job.nodes > nodes:
            return None
        work = self.work(job, self.m.lowest)
        fits = all(work - job.nodes * rest <= spare for rest, spare in watts)
        return chosen if fits else None

    def begin(self, also: Any, backfills: bool) -> None:
        job, level, cells, ready = also
        if backfills and self.runs_on(job, level, ready):
            shadow, nodes, watts, row, heads, lefts = self.spare
            work = self.work(job, self.m.lowest)
            watts = [(rest, spare - (work - job.nodes * rest)) for rest, spare in watts]
            self.spare = (shadow, nodes - job.nodes, watts, row, heads, lefts)
        for n in cells:
            self.nodes[n].job = job
            self.boot(n)
        self.queue.remove(job)
        self.running.append(job)
        job.whole = job.actual
        job.level, job.cells, job.passed = level, cells, self.now
        job.start = job.since = ready
        job.done, job.awaited, job.told = 0, job.predicted * SECOND, -1
        self.set_times(job)
        self.renew_until(job)
        job.began = ready == self.now
        job.backfilled = backfills
        job.order = self.started
        self.started += 1
        self.slow_down()

    def by_start(self) -> list[LimitedJob]:
        return sorted(self.running, key=lambda job: job.order)

    def slow_down(self) -> None:
        for job in reversed(self.by_start()):
            while job.level > self.m.lowest and not self.within(self.charged()):
                self.set_level(job, job.level - 1)

    def speed_up(self) -> None:
        for job in self.by_start():
            now = self.charged() - self.now_or_waiting(job, self.now)
            for level in self.levels():
                if level <= job.level:
                    break
                power = self.work(job, level) if job.began else self.waiting(job, level)
                if self.within(now + power):
                    self.set_level(job, level)
                    break

    def kill(self, now: int) -> None:
        for job in self.running:
            self.renew_until(job)
        self.slow_down()
        super().kill(now)

    def do_pass(self, now: int) -> None:
        super().do_pass(now)
        self.speed_up()
        for job in self.running:
            if job.level != job.told:
                self.levels_log.append((job.number, now, job.level))
                job.told = job.level
