"""What jobs have of nodes: rules 1 to 4, 8, 10, 12 and 13 of :mod:`hpcgym.reference.nodes`."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from hpcgym.reference.jobs import Job, Nodes, Placed
from hpcgym.reference.placing import hold_of, order_of_nodes, room_for, take, take_cores
from hpcgym.reference.pool import Simulation


class NoRoomError(Exception):
    """A job that a trace says is running finds no nodes."""


class NodeRooms(Simulation):
    """Nodes with several resources, and the units of jobs that lie on them."""

    def __init__(
        self,
        jobs: Iterable[Job],
        capacity: Sequence[Sequence[int]],
        *,
        allocation: str = "first-fit",
        **rules: Any,
    ):
        self.capacity = [list(node) for node in capacity]
        self.total = [sum(node[r] for node in self.capacity) for r in range(len(capacity[0]))]
        self.allocation = allocation
        super().__init__(jobs, self.total[0], **rules)
        assert self.passes == "per-timestamp"
        self.arrived: list[Job] = []  # submitted now, in the queue or not yet
        self.looks_back = False  # at who ran before an extract
        self.idle_planned = False  # rule 14: whether the last look reserved nodes without a job
        self.put_off = False  # whether a job's time was before that from which it was tried
        single = all(job.demand[0] == 1 and sum(job.demand) == 1 for job in self.jobs)
        bound = any(job.allowed is not None for job in self.jobs)
        whole = all(len(nodes) == len(self.capacity) for _, _, nodes in self.windows)
        anywhere = self.slurm is None and self.preemption is None
        self.alike = single and anywhere and not bound and whole
        self.closed = self.windows
        self.windows = [(begin, end, self.total[0]) for begin, end, _ in self.closed]

    def has_room(self, job: Job) -> bool:
        """Rule 18 of `the pool`; then it gets nodes by the allocation, beside the others."""
        if not super().has_room(job):
            return False
        free = [list(node) for node in self.capacity]
        for other in self.running:
            take(free, other.nodes, other.demand)
        nodes = self.allocated(job, free)
        if nodes is None:
            raise NoRoomError
        job.nodes = tuple(nodes)
        return True

    def begin(self, begin: int, end: float) -> None:
        """Rules 18 to 20 of the pool."""
        self.looks_back = True
        super().begin(begin, end)
        self.looks_back = False

    def take_submitted(self, now: int, most: float = math.inf) -> list[Job]:
        """Return the jobs that are submitted now; the allocation may look at them."""
        self.arrived = super().take_submitted(now, most)
        return self.arrived

    # Rooms

    def free_nodes(self, time: int) -> Nodes:
        """Return what each node has free now, or at a later time if nothing more started."""
        nodes = [list(node) for node in self.capacity]
        for job in self.running:
            if job.predicted_end > time:
                take(nodes, job.nodes, job.demand)
        for job in self.suspended:
            take(nodes, job.nodes, (0, *job.demand[1:]))
        for job in self.kept:
            take_cores(nodes, job)
        return nodes

    def fits_again(self, job: Job, now: int) -> bool:
        """Rule 13."""
        free = self.free_nodes(now)
        return all(free[node][0] >= units * job.demand[0] for node, units in job.nodes)

    def meet(self, job: Job, other: Job) -> bool:
        """Return whether two jobs have a node in common (rule 13)."""
        return bool({node for node, _ in job.nodes} & {node for node, _ in other.nodes})

    def fits(self, job: Job, now: int) -> bool:
        """Return whether a job could start now."""
        if self.alike and self.closed:
            return super().fits(job, now)
        if self.has_closings(now):
            return self.allocated(job, self.free_throughout(job, now)) is not None
        enough = self.hold is None or self.need(job, now) <= self.free(now)
        return enough and room_for(job, self.free_nodes(now)) >= job.units

    def has_closings(self, now: int) -> bool:
        """Return whether a window lasts or is to come."""
        return any(end > now for _, end, _ in self.closed)

    def free_throughout(self, job: Job, now: int) -> Nodes:
        """Return what each node has free beside running jobs and windows, as long as predicted."""
        free, until = self.free_nodes(now), now + job.predicted + (self.slurm is not None)
        for begin, end, nodes in self.closed:
            if begin < until and now < end:
                for node in nodes:
                    free[node] = [0] * len(free[node])
        return free

    def allocated(self, job: Job, free: Nodes) -> Placed | None:
        """Rule 3; None if the units do not fit."""
        placed, missing = [], job.units
        for node in self.order_for(job, free):
            units = min(missing, hold_of(job, node, free[node]))
            if units > 0:
                placed.append((node, units))
                missing -= units
        return placed if missing == 0 else None

    def order_for(self, job: Job, free: Nodes) -> list[int]:
        """In which order the job fills nodes where so much is free; others wait or come now."""
        coming = [other for other in self.arrived if other.start == -1 and other not in self.queue]
        waiting = [] if self.looks_back else self.queue + coming
        others = [other for other in waiting if other is not job]
        return order_of_nodes(self.allocation, free, self.total, self.capacity, job, others)

    def start(self, job: Job, now: int, *, backfilled: bool, nodes: Placed | None = None) -> None:
        """Start a job on nodes: those given, those reserved for it, or those of the allocation."""
        if nodes is None and job.reservation != -1 and not self.alike:
            nodes = list(job.nodes)
        if nodes is None and self.has_closings(now) and not self.alike:
            nodes = self.allocated(job, self.free_throughout(job, now))
        if nodes is None:
            nodes = self.allocated(job, self.free_nodes(now))
        assert nodes is not None
        take(self.free_nodes(now), nodes, job.demand)  # is it there?
        assert sum(units for _, units in nodes) == job.units
        job.nodes = tuple(nodes)
        super().start(job, now, backfilled=backfilled)
