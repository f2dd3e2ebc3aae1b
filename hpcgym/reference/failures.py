"""Machines whose nodes fail: the rules as a program to read.

The rules of :mod:`hpcgym.reference.nodes` hold, but for suspension; here stands what failures add.

Rules
-----
 1. A failure is of a node, at a time; the node is down from then until it is repaired, that second
    excluded. A node that is down has nothing free, whatever is asked for. It is not down twice at
    a time; it may fail again in the second of its repair.
 2. At each time: repairs, expiries, terminations, submissions, then failures, then one pass if
    any of these but an expiry happened. So a job that ends in the second of a failure has ended.
    Jobs that are submitted then are predicted before the failure; policies and dispatchers are
    asked after it.
 3. When a node fails, each job that has units on it loses its run: it gives all its nodes back and
    waits again, from now on, for its whole request. Its submission stays when it was, and so its
    place in any order (among jobs that came at one time, too: rule 28), its wait and the
    threshold. Its prediction is again that of its submission,
    without corrections; what policies look at is predicted anew now. It has not terminated:
    nothing learns of it, no job follows it, and it counts as submitted under quotas.
 4. A failure is not known before. From then on the time of repair is known, and right: for what is
    free, now and later, it is as if a job held all of the node until then. The numbers of such jobs
    come after all others, in the order of the nodes; no quota counts them, and no job stops them.
    slurm: its end joins those of others, and its node counts as one with a job. Failures and
    repairs are events for rule 23.
 5. Where each job has a reservation, all are dropped at a failure, and made anew in primary order,
    as after an expired prediction; jobs that are submitted then come after.
 6. A node may be down within a window; it is open once both are over.
 7. Start, end, nodes and `backfilled` are those of the last run; the first promise stays.
 8. An extract, rule 18 of the pool: a job that runs at its beginning has nodes that have been up
    since its start. One for which there is no room on these is queued.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any

from hpcgym.reference.jobs import NEVER, Job
from hpcgym.reference.nodes import NodeSimulation, NoRoomError
from hpcgym.reference.pool import PoolSimulation

Failure = tuple[int, int, int]  # node, when it fails, when it is repaired
Lost = tuple[int, int, int, dict[int, int]]  # job, start and end of a run, node -> units

NOBODY = -(2**62)  # is no user


class FailingSimulation(NodeSimulation):
    """All rules on nodes, and those above."""

    def __init__(
        self,
        jobs: Iterable[Job],
        capacity: Sequence[Sequence[int]],
        failures: Iterable[Failure],
        **rules: Any,
    ):
        super().__init__(jobs, capacity, **rules)
        self.alike = False
        self.extracted = True  # windows may find less than a whole node, rule 6
        self.failures = sorted(failures, key=lambda failure: failure[1])
        self.repaired = False  # whether a node is, now
        self.before: list[Failure] = []  # an extract
        self.without_nodes: list[Job] = []  # jobs that are queued then, rule 8
        self.failed: list[Lost] = []  # runs that were lost so, which usage counts
        nobody = [None] * len(self.capacity)  # rule 4: the holders of nodes that are down
        nothing = [0] * len(self.capacity)
        self.quotas = [([*k, *nobody], [*asks, *nothing], *of) for k, asks, *of in self.quotas]
        self.places = [([*keys, *nobody], most) for keys, most in self.places]
        if self.preemption is not None:
            groups, *others = self.preemption
            self.preemption = ([*groups, *nobody], *others)

    def begin(self, begin: int, end: float) -> None:
        """Rule 8."""
        self.before = [failure for failure in self.failures if failure[1] < begin]
        self.failures = self.failures[len(self.before) :]
        super().begin(begin, end)
        self.running += [self.holder(*failure) for failure in self.before if failure[2] > begin]

    def has_room(self, job: Job) -> bool:
        """Rule 8, of those for whom rule 18 finds processors, were all nodes up."""
        running, fits = self.running, False
        self.running = running + self.without_nodes
        if PoolSimulation.has_room(self, job):
            down = {node: (node, time, end) for node, time, end in self.before if end > job.start}
            self.running = running + [self.holder(*failure) for failure in down.values()]
            with suppress(NoRoomError):
                fits = super().has_room(job)
            if not fits:
                self.without_nodes.append(job)
        self.running = running
        return fits

    def next_time(self) -> int:
        """Return when something happens next."""
        moments = [time for _, time, _ in self.failures[:1]]
        due = {self.due, self.plan_due, self.look_due, self.opening} != {None}
        if self.coming or self.running or due or self.reopenings():
            moments.append(super().next_time())
        return min(moments, default=NEVER)

    def expire(self, now: int) -> None:
        """Rule 2: repairs come before all else."""
        down = [job for job in self.running if job.number >= len(self.jobs)]
        over = [job for job in down if job.predicted_end == now]
        self.repaired = bool(over)
        self.running = [job for job in self.running if job not in over]
        super().expire(now)

    def nodes_change(self, now: int) -> bool:
        """Rule 3."""
        failing = [failure for failure in self.failures if failure[1] == now]
        self.failures = self.failures[len(failing) :]
        for node, time, until in failing:
            for job in list(self.running):
                if any(node == own for own, _ in job.nodes):
                    self.lose(job, now)
            self.running.append(self.holder(node, time, until))
        self.expired_since_pass |= bool(failing)
        return bool(failing) or self.repaired

    def lose(self, job: Job, now: int) -> None:
        """Let a running job wait again."""
        self.running.remove(job)
        self.lost.append((job.number, job.start, now, dict(job.nodes)))
        self.failed.append(self.lost[-1])
        job.start = job.end = job.reservation = job.knows = -1
        job.prediction, job.corrections, job.backfilled = job.predicted, 0, False
        job.nodes, job.limit, job.leaves = (), None, None
        self.queue.append(job)
        self.queue.sort(key=lambda job: (job.submit, job.came, job.number))

    def holder(self, node: int, time: int, until: int) -> Job:
        """Rule 4."""
        cores, *others = self.capacity[node]
        holder = Job(time, cores, NEVER, NEVER, user=NOBODY, demand=(cores, *others))
        holder.number, holder.nodes = len(self.jobs) + node, ((node, 1),)
        holder.start = holder.since = time
        holder.prediction, holder.end = until - time, NEVER
        return holder


def simulate_failures(
    jobs: Iterable[Job],
    capacity: Sequence[Sequence[int]],
    failures: Iterable[Failure],
    begin: int | None = None,
    end: float = math.inf,
    **rules: Any,
) -> tuple[list[Job], list[Lost]]:
    """Schedule the jobs by the rules above; return them in submission order, and the lost runs.

    With ``begin`` it is the extract from there to ``end``; jobs that are not in it do not start.

    Lost runs are in the order in which they were lost; of one failure in that of their starts.
    The words are those of :func:`hpcgym.reference.nodes.simulate_nodes`.
    """
    simulation = FailingSimulation(jobs, capacity, failures, passes="per-timestamp", **rules)
    if begin is not None:
        simulation.begin(begin, end)
    return simulation.run(), simulation.lost
