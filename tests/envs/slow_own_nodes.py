"""Slow simulators of environments whose jobs have nodes of their own; none shares code with them.

Machines are those of `slow_limits.py`, without limits; who decides, and when, is told in
`slow_environments.py`. Here a job *fits* if it would start as the first of the queue.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from oracle import weighted
from slow_limits import LimitedSimulation
from slow_machines import ON


class Asking(LimitedSimulation):
    """Stops for decisions; `seen` has the free nodes at each, and how many of them are on."""

    def __init__(self, *given: Any, **rules: Any) -> None:
        super().__init__(*given, **rules)
        self.seen: list[tuple[int, int]] = []

    def note(self) -> None:
        free = [node for node in self.nodes if node.job is None]
        self.seen.append((len(free), sum(node.state == ON for node in free)))

    def some_fit(self) -> bool:
        return any(self.best(job, backfills=False) is not None for job in self.queue)

    def starved_first(self, order: list[Any], now: int) -> list[Any]:
        if self.threshold is None:
            return order
        starved = [job for job in self.queue if now - job.submit > self.threshold]
        return starved + [job for job in order if job not in starved]


class OwnSelection(Asking):
    """``choose(now, rows)``: the place of a job among the visible ones, given by their rows."""

    def __init__(
        self,
        choose: Callable[[int, list[int]], int],
        kept: bool,
        window: int,
        *given: Any,
        **r: Any,
    ) -> None:
        super().__init__(*given, **r)
        self.choose_job, self.kept, self.window = choose, kept, window
        self.selected: Any = None

    def serve(self, now: int) -> Any:
        while self.queue:
            if not self.kept and not self.some_fit():
                return None
            if self.selected is None:
                visible = self.queue[: self.window]
                self.selected = visible[self.choose_job(now, [job.number for job in visible])]
                self.note()
            head = self.selected
            also = self.best(head, backfills=False)
            if also is None:
                if not self.kept:
                    self.selected = None
                return head
            self.begin(also, backfills=False)
            self.selected = None
        return None


class OwnOrdering(Asking):
    """``choose(now, rows)``: a score for each of the visible jobs, given by their rows."""

    def __init__(
        self, choose: Callable[[int, list[int]], Any], window: int, *given: Any, **rules: Any
    ) -> None:
        super().__init__(*given, **rules)
        self.choose_scores, self.window = choose, window

    def primary_order(self, now: int) -> list[Any]:
        if not self.some_fit():
            return []
        visible, beyond = self.queue[: self.window], self.queue[self.window :]
        chosen = self.choose_scores(now, [job.number for job in visible]).tolist()
        scores = {job.number: score for job, score in zip(visible, chosen, strict=True)}
        self.note()
        return self.starved_first(sorted(visible, key=lambda j: -scores[j.number]) + beyond, now)


class OwnWeights(Asking):
    """``choose(k)``: six weights whose sizes add up to 1, or are all 0, for the k-th such pass."""

    def __init__(self, choose: Callable[[int], Any], *given: Any, **rules: Any) -> None:
        super().__init__(*given, **rules)
        self.choose_weights = choose

    def primary_order(self, now: int) -> list[Any]:
        if not self.some_fit():
            return []
        weights = self.choose_weights(len(self.seen))
        self.note()
        order = list(self.queue)
        if any(weights):
            score = self.by_policy_time(weighted(weights))
            order = sorted(order, key=lambda job: -score(job, now))
        return self.starved_first(order, now)
