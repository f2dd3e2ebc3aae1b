"""A pool of processors that are all alike: the reference of :func:`hpcgym.simulate` there."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from hpcgym.reference.events import EASY
from hpcgym.reference.jobs import Job
from hpcgym.reference.preemption import Preemption


class Simulation(Preemption):
    """All rules on a pool of processors."""

    def schedule(self, now: int) -> None:
        """Make a pass: jobs that stop others first, then the queue as the rule says."""
        self.queued_before = bool(self.queue)
        if self.preemption is not None:
            self.preempt(now)
        if self.backfill == "conservative":
            self.schedule_conservative(now)
            return
        if self.slurm is not None:
            self.schedule_like_slurm(now)
            return
        if self.backfill.startswith("depth:"):
            self.schedule_to_depth(now, int(self.backfill.split(":")[1]))
            return
        suspends = self.preemption is not None and self.preemption[2] == "suspend"
        if self.backfill in EASY and (self.windows or suspends):
            self.schedule_to_depth(now, 1)
            return
        head = self.start_in_order(now)
        if self.backfill in EASY and isinstance(head, Job):
            self.backfill_around(head, now)


def simulate_pool(
    jobs: Iterable[Job],
    processors: int,
    *,
    lost: list[Any] | None = None,
    begin: int | None = None,
    end: float = math.inf,
    **rules: Any,
) -> list[Job]:
    """Schedule the jobs by the rules above; return them in submission order, the given untouched.

    With ``begin`` it is the extract from there to ``end``; jobs that are not in it do not start.

    ``rules``, each by its name: ``policy``: a name of POLICIES, six weights, or
    ``score(job, now) -> float``, whose ``begin``, if it has one, is called with the simulation
    before; ``backfill``: "none", "easy", "until-shadow", "depth:K", "slurm" with settings or
    "conservative"; ``backfill_order``: "fcfs", "sjbf", a policy or None, the usual one;
    ``estimate``, ``policy_estimate``: "requested", "double-requested", "clairvoyant", "ave2",
    "ave3" and so on, "user-ratio", one prediction for each job, or anything with predict_one and
    learn_one; ``correction``: "requested",
    "incremental", "recursive-doubling" or "predicted-again"; ``threshold``: seconds; ``passes``:
    "per-timestamp" or "per-event";
    ``hold``: None or as in rule 21; ``quotas``: of rule 24, keys of the jobs in their order;
    ``windows``: of rule 25; ``follows``: of rule 26, by number of a job those of the others, the
    time to think and the earliest time; ``places``: of rule 28, keys of the jobs in their order;
    ``preemption``: of rule 27, the groups of the jobs in their order, None: none, pairs of groups
    of which the first may stop the second, and "requeue", "cancel" or "suspend", and perhaps for
    how long groups are exempt [s]; ``lost``: a list
    that job, start, end and nodes of runs are put into that ended so, or up to a suspension.
    """
    simulation = Simulation(jobs, processors, **rules)
    if lost is not None:
        simulation.lost = lost
    if begin is not None:
        simulation.begin(begin, end)
    return simulation.run()
