"""Accounts of budgets, and the head's reservation, of the slow simulator; see `slow_limits.py`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from slow_machines import NEVER, OFF, ON, SHUTTING, Budget, Cap, LimitedJob, Node, ceil_slow, pieces

BUDGET_RULES = ("powercap", "reduce-pc", "energy-bud")


class Accounts:
    """Rules 12 to 14 and 20, for a simulation."""

    def off_of(self, budget: Budget) -> int:
        """What a node that is off counts as."""
        return self.m.rest if budget.as_idle else self.m.off

    def above_of(self, budget: Budget, but: Iterable[int] = ()) -> int:
        """What all components count as, once some nodes are on."""
        return self.m.above(set() if budget.as_idle else self.dark(but))

    def left_of(self, budget: Budget, job: LimitedJob, time: int) -> int:
        return max(min(job.until, budget.end) - max(time, job.passed), 0)

    def look(self, now: int) -> None:
        for budget in self.budgets:
            if budget.start <= now <= budget.end and (
                now == budget.end or (now - budget.start) % budget.period == 0
            ):
                budget.saved = budget.mean * (now - budget.start) - budget.read
                budget.looked = now

    def reserved(self, budget: Budget) -> int:
        return sum(
            (power - budget.mean) * self.left_of(budget, job, budget.looked)
            for job, power in budget.reserves.values()
        )

    def idle_energy(self, budget: Budget, begin: int) -> int:
        """A node that is on and free from `begin` on."""
        total = 0
        for time in pieces(begin, budget.end, [begin + self.m.off_time]):
            first, last = time
            power = self.m.rest
            if budget.shutdown and first >= begin + self.m.off_time:
                power = self.off_of(budget)
            total += power * (last - first)
        return total

    def free_energy(self, budget: Budget, begin: int, node: Node) -> int:
        if node.state == ON:
            return self.idle_energy(budget, begin)
        if node.state == OFF:
            return self.off_of(budget) * (budget.end - begin)
        done = min(max(node.until, begin), budget.end)
        if node.state == SHUTTING:
            return self.m.rest * (done - begin) + self.off_of(budget) * (budget.end - done)
        return self.m.rise * (done - begin) + self.idle_energy(budget, done)

    def job_energy(
        self, budget: Budget, begin: int, job: LimitedJob, level: int, ready: int, until: int
    ) -> int:
        total = 0
        for first, last in pieces(begin, min(until, budget.end), [ready]):
            power = self.waiting(job, level) if first < ready else self.work(job, level)
            total += power * (last - first)
        return total + job.nodes * self.idle_energy(budget, max(until, begin))

    def ahead(self, budget: Budget, also: Any = None, asked: int = 0) -> int:
        """Rule 13."""
        begin = max(self.now, budget.start)
        taken = () if also is None else also[2]
        total = self.above_of(budget, taken) * (budget.end - begin)
        for n, node in enumerate(self.nodes):
            if node.job is None and n not in taken:
                total += self.free_energy(budget, begin, node)
        for job in self.running:
            total += self.job_energy(budget, begin, job, job.level, job.start, job.until)
        if also is not None:
            job, level, _, ready = also
            total += self.job_energy(budget, begin, job, level, ready, ready + asked)
        return total

    def power_with(self, budget: Budget, also: Any) -> int:
        """Rule 14."""
        if budget.start <= self.now:
            return self.charged(also, budget.as_idle)
        job, level, taken, ready = also
        total = self.above_of(budget, taken)
        for n, node in enumerate(self.nodes):
            if node.job is None and n not in taken:
                total += self.off_of(budget) if node.state in (OFF, SHUTTING) else self.m.rest
        for other in self.running:
            if other.until <= budget.start:
                total += other.nodes * self.m.rest
            elif other.start > budget.start:
                total += self.waiting(other, other.level)
            else:
                total += self.work(other, other.level)
        later = ready > budget.start
        return total + (self.waiting(job, level) if later else self.work(job, level))


class Plans(Accounts):
    """Rules 17 to 19."""

    def plan(self, head: LimitedJob, now: int) -> None:
        """Rules 17 to 19: shadow, spare nodes, watts, the row, the excess, what is left."""
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
                    self.spare = (time, *spare)
                    return
        self.spare = (now, -1, [(0, -1)], range(self.m.nodes), {}, {})

    def planned(self, head: LimitedJob, level: int, time: int) -> Any:
        until = time + ceil_slow(head.requested, head.factors[level])
        bar = self.kept_off(time, until)
        held = {n for job in self.still(time) for n in job.cells}
        free = [n for n in range(bar, self.m.nodes) if n not in held]
        if len(free) < head.nodes:
            return None
        row = range(0)
        if self.contiguous:
            rows = [range(n, n + head.nodes) for n in free]
            rows = [row for row in rows if set(row) <= set(free)]
            if not rows:
                return None
            row = rows[0]
        watts = []
        for cap in self.announced():
            if cap.end <= time or cap.start >= until:
                continue
            power = self.planned_floor(cap, self.still(max(time, cap.start)))
            power += self.work(head, level) - head.nodes * self.m.rest
            if power > cap.mw:
                return None
            watts.append((self.m.rest, cap.mw - power))
        heads, lefts = {}, {}
        for budget in self.budgets:
            if not budget.binds or budget.end <= self.now:
                continue
            heads[id(budget)] = 0
            if budget.start < until and budget.end > time:
                spare = self.planned_budget(budget, head, level, time, until)
                if spare is None:
                    return None
                heads[id(budget)], below = spare
                watts += below
            if budget.start <= self.now:
                left = self.left_at(budget, min(time, budget.end))
                lefts[id(budget)] = left - heads[id(budget)]
        # of several budgets the one that leaves least
        of_limits = [(rest, spare) for rest, spare, *mark in watts if mark]
        of_caps = [(rest, spare) for rest, spare, *mark in watts if not mark]
        if of_limits:
            of_caps.append(min(of_limits, key=lambda pair: pair[1]))
        return len(free) - head.nodes, of_caps, row, heads, lefts

    def still(self, time: int) -> list[LimitedJob]:
        return [job for job in self.running if job.predicted_end > time]

    def planned_floor(self, cap: Cap, jobs: list[LimitedJob]) -> int:
        total = self.m.above(set(range(cap.off)))
        held = {n for job in jobs for n in job.cells}
        for n in set(range(self.m.nodes)) - held:
            total += self.m.off if n < cap.off else self.m.rest
        return total + sum(self.work(job, job.level) for job in jobs)

    def planned_power(self, budget: Budget, time: int) -> int:
        """Without the head."""
        rest = self.off_of(budget) if budget.shutdown else self.m.rest
        jobs = self.still(time)
        total = self.above_of(budget) + sum(self.work(job, job.level) for job in jobs)
        held = {n for job in jobs for n in job.cells}
        for n, node in enumerate(self.nodes):
            if n not in held:
                total += self.off_of(budget) if self.goes_dark(node) else rest
        return total

    def goes_dark(self, node: Node) -> bool:
        return node.job is None and (
            node.state == OFF or (node.state == SHUTTING and not node.boots)
        )

    def planned_energy(self, budget: Budget, until: int) -> int:
        begin = max(self.now, budget.start)
        ends = [job.predicted_end for job in self.running]
        return sum(
            self.planned_power(budget, first) * (last - first)
            for first, last in pieces(begin, min(until, budget.end), ends)
        )

    def left_at(self, budget: Budget, time: int) -> int:
        left = budget.mean * (time - budget.start) - budget.read - self.planned_energy(budget, time)
        for job, power in budget.reserves.values():
            if job.predicted_end > time:
                left -= (power - budget.mean) * max(min(job.until, budget.end) - time, 0)
        return left

    def planned_budget(
        self, budget: Budget, head: LimitedJob, level: int, time: int, until: int
    ) -> Any:
        """The head's excess and the watts that are spare, or None."""
        rest = self.off_of(budget) if budget.shutdown else self.m.rest
        seconds = min(until, budget.end) - max(time, budget.start)
        held = {n for job in self.still(time) for n in job.cells}
        dark = sum(self.goes_dark(node) for node in self.nodes)
        on = min(head.nodes, self.m.nodes - len(held) - dark)
        more = self.work(head, level) - on * rest - (head.nodes - on) * self.off_of(budget)
        total = budget.read + self.planned_energy(budget, budget.end) + more * seconds
        if total > budget.mj:
            return None
        if self.rule not in BUDGET_RULES:
            return more * seconds, []
        power = self.planned_power(budget, max(time, budget.start)) + more
        if power <= budget.mean:
            return 0, [(rest, budget.mean - power, "of a budget")]
        if self.rule == "powercap" or time < budget.start:
            return None
        excess = (power - budget.mean) * seconds
        return (excess, []) if excess <= self.left_at(budget, time) else None
