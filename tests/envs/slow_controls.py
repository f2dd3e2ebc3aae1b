"""A slow simulator of machines that an agent steers; it shares no code with the environments.

It builds on `hpcgym.reference.limits`, whose rules hold. Added are an agent's decisions:

Rules
-----
 1. The first decision comes before everything, and holds from the first submission F on. By the
    clock (every L seconds) others hold from F + L, F + 2 L, ... on; where no job waits then,
    nothing is decided, and the last one goes on up to the next of these times that lies behind the
    next submission. By submissions (every n): a decision that is made when m jobs have been
    submitted holds at least up to job m (from 0), and up to the second before job m + n; the next
    holds from the second after the last event on. Once all have started nothing is decided.
 2. A decision is a number from -1 to 1 for each control, as a share x = (number + 1) / 2.
    Frequency: no job starts at a level above x * (levels - 1), rounded; a level that no rule allows
    else may be used then. Nodes: of N nodes all but x N, rounded, are off, the first ones. Power:
    at most idle + x * (greatest - idle), rounded down, both charged; of 1 there is no cap.
 3. The control is a cap of this power, with these nodes off, that is announced when it begins. It
    ends, for plans, where the next decision may be made by the clock, else never; and never if it
    caps nothing.
 4. When it begins, free nodes that the control before had off, and it has not, boot, unless a cap
    of the machine's own lies near, as far as budgets suffice (rule 8 of `hpcgym.reference.limits`).
    Otherwise a control lies near while it has nodes off.
 5. If the first job may not start and no job has nodes, it may start if it may without the control.
 6. A decision that caps nothing, as the one before did, with the same frequency, is none.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from hpcgym.reference.limits import LimitedSimulation
from hpcgym.reference.own_nodes import BOOTING, NEVER, OFF, SHUTTING, Cap

Numbers = dict[str, float]
Decide = Callable[[int], Numbers]  # the number of the decision -> a number for each control

HOUR = 3600
HUGE = 2**61  # [mW] more than there can be


def soon(seconds: float) -> float:
    return seconds / (seconds + HOUR)


class SteeredSimulation(LimitedSimulation):
    """Stops for decisions; `seen` has the time of each, and what is known of power then."""

    def __init__(self, decide: Decide, every: tuple[str, int], *given: Any, **rules: Any) -> None:
        super().__init__(*given, **rules)
        self.decide, (self.kind, self.length) = decide, every
        self.limits = list(self.caps)
        self.ceiling = len(self.m.busy) - 1
        self.control = Cap(NEVER, NEVER, NEVER, HUGE, False, 0)
        self.caps = [*self.limits, self.control]
        self.released = range(0)
        self.seen: list[tuple[int, list[float]]] = []
        first = self.jobs[0].submit
        self.stop = 0
        self.ask(0, first)

    # --- Decisions ----------------------------------------------------------------------------

    def ask(self, now: int, start: int) -> None:
        """Rules 1 to 3 and 6."""
        self.seen.append((now, self.power_seen(now)))
        numbers = self.decide(len(self.seen) - 1)
        self.stop = self.next_stop(start)
        end = self.stop + 1 if self.kind == "seconds" else NEVER
        share = {name: (number + 1) / 2 for name, number in numbers.items()}
        highest = len(self.m.busy) - 1
        ceiling = round(share.get("frequency", 1.0) * highest)
        off = self.m.nodes - round(share.get("nodes", 1.0) * self.m.nodes)
        mw = HUGE
        if share.get("power", 1.0) < 1:
            idle = self.m.nodes * self.m.rest + self.m.above(set())
            mw = idle + math.floor(share["power"] * (self.greatest() - idle))
        caps_nothing = (mw, off) == (HUGE, 0)
        capped_nothing = (self.control.mw, self.control.off) == (HUGE, 0)
        if caps_nothing and capped_nothing and ceiling == self.ceiling:
            return
        self.ceiling = ceiling
        self.released = range(off, self.control.off)
        self.control = Cap(start, NEVER if caps_nothing else end, start, mw, False, off)
        self.caps = [*self.limits, self.control]

    def greatest(self) -> int:
        return self.m.nodes * max(self.m.busy[-1], self.m.rest) + self.m.above(set())

    def next_stop(self, start: int) -> int:
        """The last second before the next decision, if jobs wait then."""
        if self.kind == "seconds":
            return start + self.length - 1
        if self.kind == "submissions":
            m = len(self.jobs) - len(self.coming)
            if m + self.length < len(self.jobs):
                return max(self.jobs[m].submit, self.jobs[m + self.length].submit - 1)
        return NEVER

    def next_time(self) -> int:
        time = super().next_time()
        while self.stop < min(time, NEVER):
            if not self.coming and not self.queue:
                self.extend(NEVER)
            elif self.kind == "submissions":
                self.ask(self.now, self.now + 1)
            elif self.queue:
                self.ask(self.stop, self.stop + 1)
            else:
                following = self.stop + 1
                while following <= self.coming[-1].submit:
                    following += self.length
                self.extend(following - 1)
            time = super().next_time()
        return time

    def extend(self, stop: int) -> None:
        if self.kind == "seconds" and self.control.end < NEVER:
            self.control.end = NEVER if stop == NEVER else stop + 1
        self.stop = stop

    # --- What they do -------------------------------------------------------------------------

    def levels(self) -> range:
        return range(self.ceiling, min(self.m.lowest, self.ceiling) - 1, -1)

    def schedule(self, now: int) -> None:
        if self.control.start == now and not self.cap_near(now):
            self.boot_free(self.released)
        super().schedule(now)

    def cap_near(self, now: int) -> bool:
        """Rule 4; a control that is about to begin is not known yet."""
        self.caps = [*self.limits, *([self.control] if self.control.off else [])]
        near = super().cap_near(now)
        self.caps = [*self.limits, self.control]
        return near

    def best(self, job: Any, backfills: bool) -> Any:
        start = super().best(job, backfills)
        if start is None and not backfills and not self.running:
            self.caps = self.limits
            start = super().best(job, backfills)
            self.caps = [*self.limits, self.control]
        return start

    # --- What is to be seen -------------------------------------------------------------------

    def power_seen(self, now: int) -> list[float]:
        """The field "power" of an observation at ``now``, when all events up to it have been."""
        most = self.greatest()
        free = [node for node in self.nodes if node.job is None]
        switching = [node for node in self.nodes if node.state in (SHUTTING, BOOTING)]
        n, highest = self.m.nodes, len(self.m.busy) - 1
        return [
            min(self.drawn() / most, 1),
            min(self.charged() / most, 1),
            *self.caps_seen(now, most),
            *self.budgets_seen(now, most),
            sum(node.state == OFF for node in free) / n,
            len(switching) / n,
            1 - len(free) / n,
            self.ceiling / highest if highest else 1,
        ]

    def caps_seen(self, now: int, most: int) -> list[float]:
        holding = [c for c in self.limits if c.announced <= now and c.start <= now < c.end]
        coming = [c for c in self.limits if c.announced <= now and c.start > now]
        seen = [1.0, 0.0, 1.0, 1.0]
        if holding:
            lowest = min(holding, key=lambda cap: cap.mw)
            if lowest.mw < most:
                seen[:2] = lowest.mw / most, soon(lowest.end - now)
        if coming:
            first = min(coming, key=lambda cap: cap.start)
            seen[2:] = min(first.mw / most, 1), soon(first.start - now)
        return seen

    def budgets_seen(self, now: int, most: int) -> list[float]:
        lasting = [budget for budget in self.budgets if budget.end > now]
        if not lasting:
            return [1.0, 0.0, 1.0, 0.0, 1.0]
        budget = min(lasting, key=lambda budget: budget.start)
        read = budget.read + self.drawn() * max(now - max(self.now, budget.start), 0)
        left = budget.mj - read
        total = max(budget.mj, 1)
        seconds = budget.end - max(now, budget.start)
        saved = budget.mean * max(now - budget.start, 0) - read
        return [
            max(left / total, 0),
            min(max(saved / total, -1), 1),
            min(max(left / (seconds * most), 0), 1),
            seconds / (budget.end - budget.start),
            soon(max(budget.start - now, 0)),
        ]
