"""Dispatchers that take time to answer, and start lists of jobs.

The rules of :mod:`hpcgym.reference.nodes` hold for events, estimates and nodes. In place of an
order of the queue:

 1. The dispatcher is asked at a pass at which some queued job fits, unless it thinks.
 2. It goes through the queue in its order, once: each job that fits beside those chosen already is
    chosen to start, on the nodes that the allocation picks at that moment.
 3. It takes d seconds, which may depend on what it sees. It thinks from t up to t + d.
 4. Passes that come while it thinks start nothing, and it is not asked.
 5. At t + d, after all events of that time, the chosen jobs start on their nodes. If there was a
    pass after t up to t + d, and some queued job fits now, it is asked again.
 6. With d = 0 all of this is at t.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from hpcgym.reference.jobs import Job, Placed
from hpcgym.reference.nodes import NodeSimulation
from hpcgym.reference.units import take

#: The order of the lists: the least comes first, ties by submission.
LISTS: dict[str, Callable[[Job], int]] = {
    "fcfs-list": lambda job: job.number,
    "sjf-list": lambda job: job.predicted,
    "ljf-list": lambda job: -job.predicted,
}


class DispatchedNodes(NodeSimulation):
    """A machine of nodes, and a dispatcher that chooses at each pass the jobs that start."""

    def __init__(
        self,
        jobs: Iterable[Job],
        capacity: Sequence[Sequence[int]],
        order: Callable[[Job], int],
        takes: Callable[[int], int],
        **rules: Any,
    ):
        super().__init__(
            jobs,
            capacity,
            passes="per-timestamp",
            policy="fcfs",
            backfill="none",
            backfill_order="fcfs",
            threshold=None,
            **rules,
        )
        self.order, self.takes = order, takes
        self.answer_at: int | None = None
        self.answer: list[tuple[Job, Placed]] = []
        self.missed = False  # whether a pass came while it thinks
        self.calls: list[tuple[int, int, list[int]]] = []  # time, seconds, jobs that start

    def run(self) -> list[Job]:
        """Simulate to the end; return the jobs in the order of their numbers."""
        while self.coming or self.running or self.answer_at is not None:
            now = self.next_time()
            self.expire(now)
            ended, submitted = self.end_and_predict(now)
            self.queue += submitted
            self.happen(now, bool(ended or submitted))
        return self.jobs

    def next_time(self) -> int:
        """Return when something happens next."""
        times = [min(job.end, job.predicted_end) for job in self.running]
        times += [self.coming[-1].submit] if self.coming else []
        times += [] if self.answer_at is None else [self.answer_at]
        return min(times)

    def happen(self, now: int, passed: bool) -> None:
        """Rules 1, 4 and 5."""
        if self.answer_at is not None:
            self.missed |= passed
            if now < self.answer_at:
                return
            for job, nodes in self.answer:
                self.start(job, now, backfilled=False, nodes=nodes)
            passed, self.missed, self.answer_at = self.missed, False, None
        if passed and any(self.fits(job, now) for job in self.queue):
            self.ask(now)

    def ask(self, now: int) -> None:
        """Rules 2, 3 and 6."""
        free, answer = self.free_now(), []
        for job in sorted(self.queue, key=lambda job: (self.order(job), job.number)):
            nodes = self.allocated(job, free)
            if nodes is not None:
                take(free, nodes, job.demand)
                answer.append((job, nodes))
        seconds = self.takes(len(self.queue))
        self.calls.append((now, seconds, [job.number for job, _ in answer]))
        if seconds > 0:
            self.answer_at, self.answer = now + seconds, answer
            return
        for job, nodes in answer:
            self.start(job, now, backfilled=False, nodes=nodes)

    def free_now(self) -> list[list[int]]:
        """Return what each node has free."""
        free = [list(node) for node in self.capacity]
        for job in self.running:
            take(free, job.nodes, job.demand)
        return free
