"""Slow simulators of environments on machines of nodes; none shares code with them.

Machines are those of `hpcgym.reference.nodes`, and those of `slow_limits.py`, without limits, where
jobs have nodes of their own. Who decides, and when, is told in `slow_environments.py`. Here a job
*fits* if it would start as the first of the queue.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from slow_limits import LimitedSimulation
from slow_machines import ON

from hpcgym.reference.nodes import NodeSimulation
from hpcgym.reference.orders import weighted
from hpcgym.reference.pool import Simulation


class Asking(Simulation):
    """Notes at each decision in `seen` what of the machine is free, and how much of that is on."""

    def __init__(self, *given: Any, **rules: Any) -> None:
        super().__init__(*given, **rules)
        self.seen: list[tuple[int, int]] = []

    def note(self, now: int) -> None:
        self.seen.append(self.free_and_on(now))

    def some_fit(self, now: int) -> bool:
        return any(self.fits(job, now) for job in self.queue)

    def starved_first(self, order: list[Any], now: int) -> list[Any]:
        if self.threshold is None:
            return order
        starved = [job for job in self.queue if now - job.submit > self.threshold]
        return starved + [job for job in order if job not in starved]

    # what machines do differently

    def start_first(self, job: Any, now: int) -> None:
        raise NotImplementedError

    def free_and_on(self, now: int) -> tuple[int, int]:
        raise NotImplementedError


# --- Who decides --------------------------------------------------------------------------------


class Selecting(Asking):
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
        self.choose_job, self.keeps, self.window = choose, kept, window
        self.selected: Any = None

    def start_in_order(self, now: int) -> Any:
        while self.queue:
            if not self.keeps and not self.some_fit(now):
                return None
            if self.selected is None:
                visible = self.queue[: self.window]
                self.note(now)
                self.selected = visible[self.choose_job(now, [job.number for job in visible])]
            head = self.selected
            if not self.fits(head, now):
                if not self.keeps:
                    self.selected = None
                return head
            self.start_first(head, now)
            self.selected = None
        return None


class Ordering(Asking):
    """``choose(now, rows)``: a score for each of the visible jobs, given by their rows."""

    def __init__(
        self, choose: Callable[[int, list[int]], Any], window: int, *given: Any, **rules: Any
    ) -> None:
        super().__init__(*given, **rules)
        self.choose_scores, self.window = choose, window

    def primary_order(self, now: int) -> list[Any]:
        if not self.some_fit(now):
            return []
        visible, beyond = self.queue[: self.window], self.queue[self.window :]
        self.note(now)
        chosen = self.choose_scores(now, [job.number for job in visible]).tolist()
        scores = {job.number: score for job, score in zip(visible, chosen, strict=True)}
        return self.starved_first(sorted(visible, key=lambda j: -scores[j.number]) + beyond, now)


class Weighing(Asking):
    """``choose(k)``: six weights whose sizes add up to 1, or are all 0, for the k-th such pass."""

    def __init__(self, choose: Callable[[int], Any], *given: Any, **rules: Any) -> None:
        super().__init__(*given, **rules)
        self.choose_weights = choose

    def primary_order(self, now: int) -> list[Any]:
        if not self.some_fit(now):
            return []
        weights = self.choose_weights(len(self.seen))
        self.note(now)
        order = list(self.queue)
        if any(weights):
            score = self.by_policy_time(weighted(weights))
            order = sorted(order, key=lambda job: -score(job, now))
        return self.starved_first(order, now)


# --- On which machine ---------------------------------------------------------------------------


class OnNodes(Asking, NodeSimulation):
    """What is free are cores, all of which are on."""

    def start_first(self, job: Any, now: int) -> None:
        self.start(job, now, backfilled=False)

    def free_and_on(self, now: int) -> tuple[int, int]:
        cores = sum(free[0] for free in self.free_nodes(now))
        return cores, cores


class OnOwnNodes(Asking, LimitedSimulation):
    """What is free are nodes."""

    def fits(self, job: Any, now: int) -> bool:
        return self.best(job, backfills=False) is not None

    def start_first(self, job: Any, now: int) -> None:
        self.begin(self.best(job, backfills=False), backfills=False)

    def free_and_on(self, now: int) -> tuple[int, int]:
        free = [node for node in self.nodes if node.job is None]
        return len(free), sum(node.state == ON for node in free)


class NodeSelection(Selecting, OnNodes):
    pass


class NodeOrdering(Ordering, OnNodes):
    pass


class NodeWeights(Weighing, OnNodes):
    pass


class OwnSelection(Selecting, OnOwnNodes):
    pass


class OwnOrdering(Ordering, OnOwnNodes):
    pass


class OwnWeights(Weighing, OnOwnNodes):
    pass
