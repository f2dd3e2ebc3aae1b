"""Accounts of budgets of energy, and the reservation of the first job that may not start.

Rules 12 to 14 and 17 to 20 of :mod:`hpcgym.reference.limits`.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import Any, NamedTuple

from hpcgym.reference.own_nodes import (
    BOOTING,
    NEVER,
    OFF,
    ON,
    SHUTTING,
    Budget,
    Cap,
    LimitedJob,
    OwnNodes,
    PossibleStart,
    PoweredMachine,
    PoweredNode,
    slowed,
)

#: Rules under budgets that say more than that these must suffice.
BUDGET_RULES = ("powercap", "reduce-pc", "energy-bud")

# --- Accounts of budgets: rules 12 to 14 and 20 ---------------------------------------------------


def pieces(begin: int, end: int, cuts: Iterable[int]) -> list[tuple[int, int]]:
    """Return the parts into which some times cut an interval."""
    if end <= begin:
        return []
    return list(pairwise(sorted({begin, end, *(time for time in cuts if begin < time < end)})))


class BudgetAccounts(OwnNodes):
    """What budgets have left, and what jobs would draw of them."""

    def __init__(
        self,
        jobs: Iterable[LimitedJob],
        machine: PoweredMachine,
        caps: list[Cap],
        budgets: list[Budget],
        rule: str,
        contiguous: bool = False,
        **rules: Any,
    ):
        super().__init__(jobs, machine, caps, contiguous, **rules)
        self.budgets, self.rule = budgets, rule

    def off_of(self, budget: Budget) -> int:
        """Return what a node that is off counts as."""
        return self.m.rest if budget.fixed else self.m.off

    def above_of(self, budget: Budget, but: Iterable[int] = ()) -> int:
        """Return what all components count as, once some nodes are on."""
        return self.m.above(set() if budget.fixed else self.dark(but))

    def in_use(self, budget: Budget) -> bool:
        """Rule 8."""
        started = budget.start <= self.now or any(j.until > budget.start for j in self.running)
        return budget.binds and budget.end > self.now and started

    def read_meters(self, now: int) -> None:
        """Rule 12."""
        for budget in self.budgets:
            seconds = min(now, budget.end) - max(self.now, budget.start)
            budget.read += self.drawn() * max(seconds, 0)

    def look(self, now: int) -> None:
        """Rule 12, at the looks."""
        for budget in self.budgets:
            since, ends = now - budget.start, now == budget.end
            if budget.start <= now <= budget.end and (ends or since % budget.period == 0):
                budget.saved = budget.mean * since - budget.read

    def idle_energy(self, budget: Budget, begin: int) -> int:
        """Return what a node draws that is on and free from a time on."""
        off = begin + self.m.off_time
        return sum(
            (self.off_of(budget) if budget.shuts and first >= off else self.m.rest) * (last - first)
            for first, last in pieces(begin, budget.end, [off])
        )

    def free_energy(self, budget: Budget, begin: int, node: PoweredNode) -> int:
        """Return what a node draws that has no job."""
        if node.state == ON:
            return self.idle_energy(budget, begin)
        if node.state == OFF:
            return self.off_of(budget) * (budget.end - begin)
        done = min(max(node.until, begin), budget.end)
        if node.state == SHUTTING:
            return self.m.rest * (done - begin) + self.off_of(budget) * (budget.end - done)
        return self.m.rise * (done - begin) + self.idle_energy(budget, done)

    def job_energy(self, budget: Budget, begin: int, start: PossibleStart, until: int) -> int:
        """Return what a job draws, and its nodes after it."""
        job, level, _, ready = start
        total = job.width * self.idle_energy(budget, max(until, begin))
        for first, last in pieces(begin, min(until, budget.end), [ready]):
            power = self.waiting if first < ready else self.work
            total += power(job, level) * (last - first)
        return total

    def ahead(self, budget: Budget, also: PossibleStart | None = None, asked: int = 0) -> int:
        """Rule 13."""
        begin = max(self.now, budget.start)
        taken = () if also is None else also.cells
        total = self.above_of(budget, taken) * (budget.end - begin)
        for n, node in enumerate(self.nodes):
            if node.job is None and n not in taken:
                total += self.free_energy(budget, begin, node)
        for job in self.running:
            own = PossibleStart(job, job.level, job.cells, job.start)
            total += self.job_energy(budget, begin, own, job.until)
        if also is not None:
            total += self.job_energy(budget, begin, also, also.ready + asked)
        return total

    def power_with(self, budget: Budget, also: PossibleStart) -> int:
        """Rule 14."""
        return self.charged(also, budget.free_mw)

    def within_budgets(self, n: int) -> bool:
        """Rule 8: whether all budgets in use suffice if a node that is off boots now."""
        node = self.nodes[n]
        given = node.state, node.until
        if node.state == OFF:
            node.state, node.until = BOOTING, self.now + self.m.boot_time
        used = [budget for budget in self.budgets if self.in_use(budget)]
        enough = all(budget.read + self.ahead(budget) <= budget.mj for budget in used)
        node.state, node.until = given
        return enough


# --- The head's reservation: rules 17 to 19 -------------------------------------------------------


class Spare(NamedTuple):
    """What the head leaves: see rule 18."""

    shadow: int
    nodes: int
    watts: list[int]  # below each cap [mW]
    row: range  # nodes of the head, where these are in a row
    reserved: dict[int, int]  # budget -> rule 15


class Plans(BudgetAccounts):
    """When and how the head may start, if nothing starts and jobs end as predicted."""

    spare: Spare

    def levels(self) -> range:
        """Rule 10."""
        return range(len(self.m.busy) - 1, self.m.lowest - 1, -1)

    def plan(self, head: LimitedJob, now: int) -> None:
        """Rules 17 and 19."""
        times = {now}
        times |= {job.predicted_end for job in self.running}
        times |= {cap.end for cap in self.announced()}
        for budget in self.budgets:
            times |= {budget.start, budget.end}
            if self.rule in BUDGET_RULES[1:]:
                times |= set(range(budget.start, budget.end, budget.period))
        for time in sorted(time for time in times if now <= time < NEVER):
            for level in self.levels():
                spare = self.planned(head, level, time)
                if spare is not None:
                    self.spare = spare
                    return
        self.spare = Spare(now, -1, [-1], range(self.m.nodes), {})

    def planned(self, head: LimitedJob, level: int, time: int) -> Spare | None:
        """Rules 17 and 18, at a time and a level; None: it does not fit."""
        until = time + slowed(head.requested, head.factors[level])
        held = {n for job in self.still(time) for n in job.cells}
        free = [n for n in range(self.kept_off(time, until), self.m.nodes) if n not in held]
        needed = self.need(head, self.now)
        if len(free) < needed:
            return None
        row = range(0)
        if self.contiguous:
            rows = [range(n, n + head.width) for n in free]
            rows = [row for row in rows if set(row) <= set(free)]
            if not rows:
                return None
            row = rows[0]
        watts = []
        for cap in self.announced():
            if cap.end <= time or cap.start >= until:
                continue
            power = self.planned_floor(cap, self.still(max(time, cap.start)))
            power += self.work(head, level) - head.width * self.m.rest
            if power > cap.mw:
                return None
            watts.append(cap.mw - power)
        reserved = {}
        for budget in self.budgets:
            reserved[id(budget)] = 0
            if not budget.binds or budget.start >= until or budget.end <= max(time, self.now):
                continue
            kept = self.planned_budget(budget, head, level, time, until)
            if kept is None:
                return None
            reserved[id(budget)] = kept
        return Spare(time, len(free) - needed, watts, row, reserved)

    def still(self, time: int) -> list[LimitedJob]:
        """Return the jobs that run at a time, as predicted."""
        return [job for job in self.running if job.predicted_end > time]

    def planned_floor(self, cap: Cap, jobs: list[LimitedJob]) -> int:
        """Return the power under a cap beside some jobs."""
        total = self.m.above(set(range(cap.off)))
        held = {n for job in jobs for n in job.cells}
        for n in set(range(self.m.nodes)) - held:
            total += self.m.off if n < cap.off else self.m.rest
        return total + sum(self.work(job, job.level) for job in jobs)

    def planned_power(self, budget: Budget, time: int, fixed: bool) -> int:
        """Return the power at a time, without the head; by rule 20 where that holds."""
        rest = self.off_of(budget) if budget.shuts else self.m.rest
        jobs = self.still(time)
        total = self.above_of(budget) + sum(self.work(job, job.level) for job in jobs)
        held = {n for job in jobs for n in job.cells}
        if fixed and budget.fixed:
            return total + (self.m.nodes - len(held)) * budget.free_mw
        for n, node in enumerate(self.nodes):
            if n not in held:
                total += self.off_of(budget) if self.goes_dark(node) else rest
        return total

    def goes_dark(self, node: PoweredNode) -> bool:
        """Whether a node is off, or will be."""
        stays = node.state == SHUTTING and not node.boots
        return node.job is None and (node.state == OFF or stays)

    def planned_parts(self, budget: Budget, until: int) -> list[tuple[int, int]]:
        """Return the parts of a period up to a time in which the planned power is constant."""
        begin, ends = max(self.now, budget.start), [job.predicted_end for job in self.running]
        return pieces(begin, min(until, budget.end), ends)

    def planned_budget(
        self, budget: Budget, head: LimitedJob, level: int, time: int, until: int
    ) -> int | None:
        """Return what is reserved for the head, None if it may not start."""
        rest = self.off_of(budget) if budget.shuts else self.m.rest
        seconds = min(until, budget.end) - max(time, budget.start)
        held = {n for job in self.still(time) for n in job.cells}
        dark = sum(self.goes_dark(node) for node in self.nodes)
        on = min(head.width, self.m.nodes - len(held) - dark)
        more = self.work(head, level) - on * rest - (head.width - on) * self.off_of(budget)
        total = budget.read + more * seconds
        for first, last in self.planned_parts(budget, budget.end):
            total += self.planned_power(budget, first, fixed=False) * (last - first)
        if total > budget.mj:
            return None
        if self.rule not in BUDGET_RULES:
            return more * seconds
        saved = budget.saved
        for first, last in self.planned_parts(budget, time):
            saved -= budget.above(self.planned_power(budget, first, fixed=True), first, last)
        if budget.fixed:
            more = self.work(head, level) - head.width * budget.free_mw
        power = self.planned_power(budget, time, fixed=True) + more
        above = budget.above(power, time, until)
        if self.rule == "powercap":
            return 0 if power <= budget.mean else None
        if self.rule == "reduce-pc" and power <= budget.mean:
            return 0
        return above if above <= saved else None
