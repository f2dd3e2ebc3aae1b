"""Machines whose nodes fail: the rules as a program to read.

The rules of :mod:`hpcgym.reference.nodes` hold; here stands what failures add, for backfilling by
"none", "easy" and "until-shadow".

Rules
-----
 1. A failure is of a node, at a time; the node is down from then until it is repaired, that second
    excluded. A node that is down has nothing free, whatever is asked for. It is not down twice at
    a time; it may fail again in the second of its repair.
 2. At each time: expiries, terminations, submissions and repairs, then failures, then one pass if
    any of these but an expiry happened. So a job that ends in the second of a failure has ended.
 3. When a node fails, each job that has units on it loses its run: it gives all its nodes back and
    waits again, from now on, for its whole request. Its submission stays when it was, and so its
    place in any order, its wait and the threshold. Its prediction is again that of its submission,
    without corrections. It has not terminated: nothing learns of it.
 4. Nobody knows of a failure before. From then on all know when the node will be repaired, rightly:
    for the head's shadow time it is as if a job held all of it until then.
 5. Start, end, nodes and `backfilled` are those of the last run; the first promise stays.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from hpcgym.reference.jobs import Job, Nodes
from hpcgym.reference.nodes import NodeSimulation
from hpcgym.reference.placing import room_for

Failure = tuple[int, int, int]  # node, when it fails, when it is repaired
Lost = tuple[int, int, int, dict[int, int]]  # job, start and end of a run, node -> units


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
        self.failures = sorted(failures, key=lambda failure: failure[1])
        self.failed: list[Failure] = []  # those that have happened
        self.lost: list[Lost] = []

    def run(self) -> list[Job]:
        """Simulate to the end; return the jobs in the order of their numbers."""
        moments = {time for _, begin, end in self.failures for time in (begin, end)}
        while self.coming or self.running or self.queue:
            times = [min(job.end, job.predicted_end) for job in self.running]
            times += [job.submit for job in self.coming]
            now = min([*times, *moments])
            self.expire(now)
            ended, submitted = self.end_and_predict(now)
            self.renew(now)
            for job in submitted:
                self.submit(job, now)
            for failure in self.failures:
                if failure[1] == now:
                    self.fail(failure, now)
            if ended or submitted or now in moments:
                self.schedule(now)
            moments.discard(now)
        return self.jobs

    def fail(self, failure: Failure, now: int) -> None:
        """Rule 3."""
        self.failed.append(failure)
        for job in list(self.running):
            if any(node == failure[0] for node, _ in job.nodes):
                self.running.remove(job)
                self.lost.append((job.number, job.start, now, dict(job.nodes)))
                job.start = job.end = -1
                job.prediction, job.corrections, job.backfilled = job.predicted, 0, False
                job.nodes = ()
                self.queue.append(job)
        self.queue.sort(key=lambda job: job.number)

    def free_nodes(self, time: int) -> Nodes:
        """Return what each node has free now, or later if nothing more started or failed."""
        nodes = super().free_nodes(time)
        for node, _, repaired in self.failed:
            if time < repaired:
                nodes[node] = [0] * len(nodes[node])
        return nodes

    def time_for(self, head: Job, now: int) -> int:
        """Rule 4."""
        times = {job.predicted_end for job in self.running}
        times |= {repaired for _, _, repaired in self.failed if repaired > self.now}
        for time in sorted(times):
            if room_for(head, self.free_nodes(time)) >= head.units:
                return time
        raise AssertionError("the head is larger than the machine")

    def schedule(self, now: int) -> None:
        """Make a pass."""
        self.now = now
        super().schedule(now)


def simulate_failures(
    jobs: Iterable[Job],
    capacity: Sequence[Sequence[int]],
    failures: Iterable[Failure],
    *,
    allocation: str = "first-fit",
    policy: Any = "fcfs",
    backfill: str = "none",
    backfill_order: Any = None,
    estimate: Any = "requested",
    correction: str = "requested",
    threshold: int | None = None,
) -> tuple[list[Job], list[Lost]]:
    """Schedule the jobs by the rules above; return them in submission order, and the lost runs.

    Lost runs are in the order in which they were lost; of one failure in that of their starts.
    The words are those of :func:`hpcgym.reference.nodes.simulate_nodes`.
    """
    assert backfill in ("none", "easy", "until-shadow")
    simulation = FailingSimulation(
        jobs,
        capacity,
        failures,
        allocation=allocation,
        policy=policy,
        backfill=backfill,
        backfill_order=backfill_order,
        estimate=estimate,
        correction=correction,
        threshold=threshold,
        passes="per-timestamp",
        policy_estimate="requested",
    )
    return simulation.run(), simulation.lost
