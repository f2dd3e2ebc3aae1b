"""A slow, obvious simulator of machines with nodes: their rules as a program to read.

The pool's rules hold for events, passes per timestamp, orders of the queue, estimates and
corrections; the rules here are those that differ for nodes with several resources. No code is
shared with the engine, and everything is computed again at every pass.

Rules
-----
 1. A machine is a list of nodes, each with so much of each resource. A job needs a number of
    units, and each unit its demand of each resource, all on one node. Units are alike, and a node
    may have several, of one job or of many.
 2. A node with free resources f holds as many units of demand d as the least of f_r // d_r over
    the resources asked for, and of a job no more than it lets lie on one node; a job fits if all
    nodes together hold its units.
 3. Allocation goes through the nodes in the allocator's order, and each takes as many units as it
    holds until all are placed. first-fit: by number; best-fit: ascending L = the sum, in the order
    of the resources, of free / total (of the machine), ties by number; worst-fit: descending L,
    ties by number. L is that before the job.
    weighted: nodes with room for a unit, ascending S, ties by number. S is the sum, in the order of
    the resources, of (f_r - h d_r) w_r, where h of the job's units would lie on the node, with
    w_r = ((1 + A_r) (1 + U_r)) / (T_r T_r) in double precision: T of the machine, U of T not free
    in the state that is looked at, A the sum over the other jobs that wait, submitted now too, of
    units times d_r times (request + 1 s). For jobs that run as an extract begins no job waits.
    balanced and hybrid: `by_turns`; hybrid has nodes with room for a unit alone, and in each list
    S stands for what is free of the scarce resource.
 4. A running job holds its nodes' resources until it ends; as planned, until its predicted end.
 5. none: as in the pool, with "fits" as above.
 6. EASY: the head is the first that does not fit. T = the earliest predicted end at which it would
    fit beside those that still run then as predicted; `later` = what each node has free then; the
    slack is how many units of the head the nodes hold then, beyond those it needs. The others, in
    backfill order, once through: one that fits now and ends by T as predicted starts. One that
    fits but ends later goes through the nodes in the allocator's order; each takes the most units
    it holds for which the units of the head that it holds at T become fewer by no more than the
    slack that is left, which is then less by this loss. If all units are placed so, the job
    starts, and has these nodes at T as well; else it waits, and nothing has changed. until-shadow:
    as EASY, but those that fit and end at T or later wait. hold: what a job needs, of cores, must
    be free now, and at T for the head; what is left of them then is extra, and a job that ends
    after T must fit the extra cores as well, and uses them up.
 7. conservative: each queued job has a reserved start and reserved nodes: the earliest time at
    which its units fit what each node has free throughout its predicted length, beside running
    jobs and all other reservations, allocated on that. Made at submission. At a pass each is
    lifted, in primary order, and made again if that is earlier, or if its time has passed; else it
    is put back as it was. A job whose time is now starts on its reserved nodes. After an expired
    prediction all are dropped and made again as in the pool. depth:K: rule 22 there, of nodes;
    a job that starts does so on what it was given so. hold: what a job, or a reservation, needs
    beyond its own cores must be free of the cores of all nodes together. slurm: rule 14.
 8. Where every unit of the workload is one core and nothing else, and may lie anywhere, a core is
    as good as any other: the schedule is that of the pool on as many processors, and a job gets its
    nodes when it starts. But not under slurm, whose reservations are of nodes by name there too.
    Nor where a job may not have all nodes.
 9. The correction "kill": a job that reaches its predicted run time ends there.
10. A job may be bound to a set of nodes, those of its partition that have the features which it
    asks for. All others hold no unit of it, ever.
11. Under quotas (rule 24 of the pool) the head is the first that no quota bars and that does not
    fit; all else of rule 6 holds. Under preemption, rule 27, EASY is depth:1, rule 7, and rule 8
    never holds.
12. A window (rule 25 there) closes whole nodes; rule 8 does not hold where it is not all of them.
    Nothing of a closed node is free. In rule 5 a job fits if its units fit what each node has free
    throughout its predicted length, and is allocated on that, while a window is to come or lasts.
    A window may spare some jobs: it does not concern them. Then its nodes hold no unit of the
    others, and what is free there counts as free, but under rule 14.
13. Suspension, rule 29 there, frees cores, the first resource; all else, as memory, stays taken.
    Where cores of suspended jobs count as taken, they do so beside those of the jobs that run
    there: less than nothing may be free then. One goes on where it ran, if the cores that it had on
    each node are free there; only jobs that share a node with it can be in its way. In rule 14 it
    ends as if it ran.
14. slurm: rule 23 of the pool, but how a place is found, and what stands in profiles. A table
    has the reservations made so far, from begin to end as rounded there, and windows: they close
    whole nodes. A job is tried after now, and perhaps again after later times s. It may have the
    nodes that hold a unit of it when empty, and that nothing in the table closes in
    [s, s + predicted], both ends included.
    In a pass at an event a job that does not fit, and has a partition of not all nodes, does not
    end the pass while other nodes are left: no later job of this pass may have nodes of that
    partition, and a job that starts behind it is backfilled.
    It fits on these now, or when some running jobs have ended. These are gone through by their
    predicted ends, ties by number. Let F be as in rule 23, of the first that has any of them;
    the span is 30 at first. The next that has any of them goes, and as long as the one behind it,
    on any nodes, ends by F + span, the next that has any of them goes too. Then the job is
    tried. It fits: its time is the end of the last that went. If not, the span is made wider, as in
    rule 23, until the next ends by F + span, and it goes on. No running job is left: no time.
    Let s' be the end of the first period of the table, which ends after s, behind which a node is
    open that is closed then, or was in a period between s and it. A period is as long as the same
    nodes are closed. Of those that begin after s + predicted only the first is looked at.
    No time: after s', if there is such; else it has no reservation. A time before s is s. If it is
    now, the job starts. If it is after s', it is tried after s'. If it is too late, as rule 23
    says, there is no reservation. Else it is allocated on what of its nodes is free then; and if
    the table closes one of these, as the job would stand in it (windows: while it would run), it is
    tried after that time.
    That a job waited at the last pass of the second kind is no reason for the next. These are: it
    left two jobs waiting that rule 24 does not pass over, or one that it passes over for want of a
    licence of which all jobs together may have some; a job started in it; all that waited had
    started in what it follows; it left a node reserved on which no job runs; so did the one before
    it; a time was before s.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from hpcgym.reference.events import EASY
from hpcgym.reference.jobs import ANY, Job, Nodes, Placed
from hpcgym.reference.pool import PoolSimulation
from hpcgym.reference.units import (
    Barred,
    closed_in,
    hold_of,
    least_of,
    next_opening,
    order_of_nodes,
    room_for,
    take,
    take_cores,
    take_of,
)

# --- What jobs have of nodes ----------------------------------------------------------------------


class NoRoomError(Exception):
    """A job that a trace says is running finds no nodes."""


class NodeRooms(PoolSimulation):
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
        self.looks_back = False  # at jobs that ran before an extract
        self.idle_planned = False  # rule 14: whether the last look reserved nodes without a job
        self.shut: frozenset[int] = frozenset()  # rule 14: nodes of partitions that are stopped
        self.put_off = False  # whether a job's time was before that from which it was tried
        single = all(sum(job.demand) == job.demand[0] == 1 for job in self.jobs)
        single = single and all(job.most == ANY for job in self.jobs)
        bound = any(job.allowed is not None for job in self.jobs)
        whole = all(len(nodes) == len(self.capacity) for _, _, nodes in self.windows)
        anywhere = self.slurm is None and self.preemption is None
        spares = any(jobs is not None for jobs in self.spared)
        self.alike = single and anywhere and not bound and whole and not spares
        self.closed = self.windows
        self.windows = [
            (begin, end, self.total[0] if jobs is None else 0)
            for (begin, end, _), jobs in zip(self.closed, self.spared, strict=True)
        ]

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
            take_cores(nodes, job.nodes, job)
        for node in self.shut:
            nodes[node] = [0] * len(nodes[node])
        return nodes

    def stops_partition(self, job: Job) -> bool:
        """Rule 14."""
        if self.slurm is None or job.partition is None:
            return False
        self.shut |= job.partition
        return len(self.shut) < len(self.capacity)

    def open_partitions(self) -> None:
        """Rule 14."""
        self.shut = frozenset()

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
        enough = self.hold is None or self.need(job, now) <= self.free(now)
        if self.has_closings(now):
            return enough and self.allocated(job, self.free_throughout(job, now)) is not None
        return enough and room_for(job, self.free_nodes(now)) >= job.units

    def has_place(self, job: Job, now: int) -> bool:
        """Rule 30 of the pool: all units find room."""
        return super().has_place(job, now) and room_for(job, self.free_nodes(now)) >= job.units

    def has_closings(self, now: int) -> bool:
        """Return whether a window lasts or is to come."""
        return any(end > now for _, end, _ in self.closed)

    def closed_to(self, job: Job) -> list[tuple[int, int, Any, bool]]:
        """Return the windows that do not spare a job (rule 12), and whether they spare others."""
        both = zip(self.closed, self.spared, strict=True)
        return [
            (*window, spared is not None and self.slurm is None)
            for window, spared in both
            if spared is None or job.number not in spared
        ]

    def free_throughout(self, job: Job, now: int) -> Nodes:
        """Return what each node has free beside running jobs and windows, as long as predicted."""
        free, until = self.free_nodes(now), now + job.predicted + (self.slurm is not None)
        for begin, end, nodes, spares in self.closed_to(job):
            if begin < until and now < end:
                for node in nodes:
                    free[node] = Barred(free[node]) if spares else [0] * len(free[node])
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


def kept_beside(reserved: Sequence[Job], time: int) -> int:
    """Return how many cores reservations keep free beside those of their jobs (rule 7)."""
    return sum(
        job.beside for job in reserved if job.reservation <= time < job.reservation + job.predicted
    )


# --- A slow, obvious simulator of machines with nodes ---------------------------------------------

NEVER = 2**62  # [s] later than anything


class NodeSimulation(NodeRooms):
    """All rules on a machine of nodes."""

    # EASY

    def schedule(self, now: int) -> None:
        """Make a pass (rules 5 to 7, 11)."""
        if self.preemption is not None and self.backfill in EASY:
            self.preempt(now)
            self.schedule_to_depth(now, 1)
        else:
            super().schedule(now)

    def backfill_around(self, head: Job, now: int) -> None:
        """Rule 6."""
        moment = self.time_for(head, now)
        extra = self.free(moment) - self.need(head, now)
        later = self.free_nodes(moment)
        slack = room_for(head, later) - head.units
        self.promise_head(head, moment)
        for job in self.candidates(now):
            if job is head or self.barred(job) or not self.fits(job, now):
                continue
            if self.in_time(job, head, now, moment):
                self.start(job, now, backfilled=True)
                continue
            if self.backfill == "until-shadow":
                continue
            if self.hold is not None and job.processors > extra:
                continue
            guarded = self.guarded(job, head, self.free_nodes(now), later, slack)
            if guarded is not None:
                nodes, slack = guarded
                extra -= job.processors
                take(later, nodes, job.demand)
                self.start(job, now, backfilled=True, nodes=nodes)

    def time_for(self, head: Job, now: int) -> int:
        """Return when the head would fit as the running jobs end."""
        for time in sorted({job.predicted_end for job in self.running}):
            enough = self.hold is None or self.need(head, now) <= self.free(time)
            if enough and room_for(head, self.free_nodes(time)) >= head.units:
                return time
        raise AssertionError("the head is larger than the machine")

    def guarded(
        self, job: Job, head: Job, free: Nodes, later: Nodes, slack: int
    ) -> tuple[Placed, int] | None:
        """Nodes that leave the head its room, and the slack then left; None without such."""
        placed, missing = [], job.units
        for node in self.order_for(job, free):
            for units in range(min(missing, hold_of(job, node, free[node])), 0, -1):
                rest = [
                    have - units * need for have, need in zip(later[node], job.demand, strict=True)
                ]
                loss = hold_of(head, node, later[node]) - hold_of(head, node, rest)
                if loss <= slack:
                    placed.append((node, units))
                    missing -= units
                    slack -= loss
                    break
        return (placed, slack) if missing == 0 else None

    # Conservative

    def schedule_conservative(self, now: int) -> None:
        """As in the pool: made anew in the order of the queue, and only then does one start."""
        if self.expired_since_pass:
            self.drop_reservations()
            for job in self.primary_order(now):
                self.promise(job, now)
        super().schedule_conservative(now)

    def reserve(self, job: Job, now: int) -> None:
        """Reserve the earliest time at which a job fits, and nodes (rules 7, 8 and 14)."""
        if self.alike:
            super().reserve(job, now)
            return
        if self.slurm is not None:
            job.reservation = -1
            job.reservation = self.place_like_slurm(job, now)
            return
        before, job.reservation, job.beside = job.reservation, -1, 0
        start, nodes = self.first_place(job, now)
        if self.waits_for_more(job, start, now):
            start, nodes = self.first_place(job, now)
        if start != before:
            job.nodes = tuple(nodes)
        job.reservation = start

    def first_place(self, job: Job, now: int) -> tuple[int, Placed]:
        """Return when a job first fits for its whole predicted length, and on which nodes."""
        steps, needs = self.planned(now, job), job.processors + job.beside
        reserved = [other for other in self.queue if other.reservation != -1]
        for first, (start, _) in enumerate(steps):
            during = [(at, free) for at, free in steps[first:] if at < start + job.predicted]
            nodes = self.allocated(job, least_of([free for _, free in during]))
            enough = self.hold is None or all(
                sum(node[0] for node in free) - kept_beside(reserved, at) >= needs
                for at, free in during
            )
            if nodes is not None and enough:
                return start, nodes
        raise AssertionError("the job is larger than the machine")

    def goes_on(self, waited: bool, started: bool, order: Sequence[Job]) -> bool:
        """Rule 14: whether the plan makes Slurm look again."""
        reserved = [job for job in self.queue if job.reservation != -1]
        planned = {node for job in reserved for node, _ in job.nodes}
        taken = {node for job in self.running + self.kept for node, _ in job.nodes}
        before, self.idle_planned = self.idle_planned, bool(planned - taken)
        put_off, self.put_off = self.put_off, False
        left = [job for job in order if job.start == -1]
        behind = any(not self.over_quota(job) for job in left[:-1])
        lacks = any(self.lacks_licence(job) for job in self.queue)
        return started or before or self.idle_planned or put_off or behind or lacks

    def place_like_slurm(self, job: Job, now: int) -> int:
        """When a job may start, rule 14, and its nodes then."""
        reserved = [other for other in self.queue if other.reservation != -1]
        table = [(*self.reserved_in(peer), {node for node, _ in peer.nodes}) for peer in reserved]
        closed = [(begin, end, set(nodes)) for begin, end, nodes, _ in self.closed_to(job)]
        usable = {n for n, node in enumerate(self.capacity) if hold_of(job, n, node) > 0}
        after = now
        while True:
            until = after + job.predicted
            mine = usable - closed_in(table + closed, after, until)
            later = next_opening(table + closed, after, until, usable)
            start, free = self.first_fit_after_ends(job, mine, now)
            self.put_off |= free is not None and start < after
            if free is None and later is None:
                return NEVER
            if free is None or (later is not None and max(start, after) > later):
                assert later is not None
                assert later > after
                after = later
                continue
            start = max(start, after)
            if start > now + 60 * self.slurm["bf_window"]:
                return start
            nodes = self.allocated(job, free)
            assert nodes is not None
            job.nodes, job.reservation = tuple(nodes), start
            begin, end = self.reserved_in(job)
            job.reservation = -1
            taken = closed_in(table, begin, end - 1)
            taken |= closed_in(closed, start, start + job.predicted - 1)
            if start == now or not taken & {node for node, _ in nodes}:
                return start
            after = start

    def first_fit_after_ends(self, job: Job, mine: set[int], now: int) -> tuple[int, Any]:
        """When a job fits on some nodes as running jobs end, and what of them is free then."""
        there = [
            list(node) if n in mine else [0] * len(node) for n, node in enumerate(self.capacity)
        ]
        there_are = self.running + self.kept
        ends = self.expected_ends(there_are, now)
        left = sorted(
            (end, peer.number, peer) for peer, end in zip(there_are, ends, strict=True) if end > now
        )
        time: int | None = now
        raised: int | None = None
        span = 30
        while True:
            free = [list(node) for node in there]
            for _, _, other in left:
                take_of(free, other, mine)
            if room_for(job, free) >= job.units:
                assert time is not None
                return time, free
            time = None
            while left:
                end, _, gone = left.pop(0)
                if not mine & {node for node, _ in gone.nodes}:
                    continue
                time = end
                if raised is None:
                    raised = (time // 30 + 1) * 30
                if left and left[0][0] > raised + span:
                    break
            if time is None or raised is None:
                return 0, None
            if left and left[0][0] > raised + span:
                span = self.wider(span, left[0][0] - raised)

    def planned(self, now: int, job: Job) -> list[tuple[int, Nodes]]:
        """Return (time, what each node has free from then on until the next), from now on.

        ``job``: for which it is.
        """
        held = [(job.start, job.predicted_end, job) for job in self.running]
        ends = self.expected_ends(self.kept, now)
        held += [(now, end, job) for job, end in zip(self.kept, ends, strict=True)]
        for other in self.queue:
            if other.reservation != -1:
                held.append((other.reservation, other.reservation + other.predicted, other))
        times = {time for begin, end, _ in [*held, *self.closed] for time in (begin, end)}
        steps = []
        for time in sorted({now} | {time for time in times if time > now}):
            free = [list(node) for node in self.capacity]
            for begin, end, other in held:
                if begin <= time < end:
                    take_of(free, other)
            for begin, end, nodes, spares in self.closed_to(job):
                if begin <= time < end:
                    for node in nodes:
                        clear = free[node] == self.capacity[node] or self.extracted or spares
                        assert clear, "a job runs into a window"
                        free[node] = Barred(free[node]) if spares else [0] * len(free[node])
            steps.append((time, free))
        return steps


def simulate_nodes(
    jobs: Iterable[Job],
    capacity: Sequence[Sequence[int]],
    *,
    lost: list[Any] | None = None,
    begin: int | None = None,
    **rules: Any,
) -> list[Job]:
    """Schedule the jobs by the rules above; return them in submission order, the given untouched.

    With ``begin`` it is the extract from there on; jobs that are not in it do not start.

    ``capacity``: of each node, how much it has of each resource, cores first; ``allocation``:
    a name of rule 3; ``correction``: also "kill"; ``windows``: begin, end and
    nodes of each; all else as in :func:`hpcgym.reference.pool.simulate_pool`.
    """
    simulation = NodeSimulation(jobs, capacity, passes="per-timestamp", **rules)
    if lost is not None:
        simulation.lost = lost
    if begin is not None:
        simulation.begin(begin, math.inf)
    return simulation.run()
