"""A pool of processors that are all alike: the reference of :func:`hpcgym.simulate` there."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable
from typing import Any

from hpcgym.reference.events import EASY
from hpcgym.reference.jobs import Job
from hpcgym.reference.reservations import SlurmPasses

# --- Jobs that stop others, or suspend them: rules 27 and 29 --------------------------------------


class PreemptingPasses(SlurmPasses):
    """What comes before each pass, where jobs may stop others."""

    def preempt(self, now: int) -> None:
        """Rule 27."""
        self.preempts = True
        self.held = set()
        self.drop_reservations()
        groups, may, *_ = self.preemption
        names = {name for pair in may for name in pair}
        level = {name: longest_way(name, may) for name in names}
        for height in sorted({*level.values()}, reverse=True):
            self.go_on_with([j for j in self.suspended if level[groups[j.number]] == height], now)
            if height == 0:
                break
            shut = set()
            for job in self.primary_order(now):
                group = groups[job.number]
                if level.get(group) != height or group in shut or self.barred(job):
                    continue
                self.kept = [j for j in self.suspended if (group, groups[j.number]) not in may]
                if not self.fits(job, now):
                    theirs = [j for j in self.running if (group, groups[j.number]) in may]
                    theirs = [j for j in theirs if self.end_of_exemption(j) <= now < j.end]
                    theirs.sort(key=lambda j: (-level[groups[j.number]], -j.ran(now), j.number))
                    stopped = self.to_stop(job, theirs, now)
                    if stopped is None:
                        shut.add(group)
                        continue
                    slow = [other for other in stopped if self.grace_of(other) > 0]
                    here = [other for other in theirs if other.leaves is not None]
                    for other in slow:
                        other.leaves = now + self.grace_of(other)
                        other.end = min(other.end, other.leaves)
                    if slow or (here and not self.would_fit(job, stopped, now)):
                        shut.add(group)
                        self.held |= {other for other in names if level[other] < height}
                        continue
                    for other in stopped:
                        self.stop(other, now)
                self.start(job, now, backfilled=False)
        self.kept = list(self.suspended)
        self.preempts = False

    def go_on_with(self, suspended: list[Job], now: int) -> None:
        """Rule 29: let jobs of one level go on."""
        groups, may, *_ = self.preemption
        for job in sorted(suspended, key=lambda j: (-j.ran(now), j.number)):
            of = groups[job.number]
            self.kept = [j for j in self.suspended if (groups[j.number], of) in may]
            if self.fits_again(job, now):
                self.suspended.remove(job)
                self.running.append(job)
                job.paused += now - job.stopped
                job.end = job.start + job.paused + job.actual
                job.since, job.stopped = now, -1

    def fits_again(self, job: Job, now: int) -> bool:
        """Return whether a suspended job could go on now."""
        return self.fits(job, now)

    def expected_ends(self, jobs: Iterable[Job], now: int) -> list[int]:
        """Rule 29: worked out once for each job, while the same jobs run and are suspended."""
        both = (self.running, self.suspended)
        state = now, *([(job.number, job.since) for job in group] for group in both)
        if state != self.expected[0]:
            self.expected = state, {}
        known = self.expected[1]
        for job in jobs:
            if job.number not in known:
                known[job.number] = self.expected_end(job, now)
        return [known[job.number] for job in jobs]

    def expected_end(self, job: Job, now: int) -> int:
        """Rule 29: of a job that runs or is suspended."""
        if job.stopped == -1:
            return job.predicted_end
        groups, may, *_ = self.preemption
        others = [
            self.expected_end(other, now)
            for other in self.running + self.suspended
            if (groups[other.number], groups[job.number]) in may and self.meet(job, other)
        ]
        return max([now, *others]) + job.prediction - job.ran(now)

    def meet(self, job: Job, other: Job) -> bool:
        """Whether two jobs could be in each other's way."""
        return True

    def to_stop(self, job: Job, theirs: list[Job], now: int) -> list[Job] | None:
        """Return which of some running jobs must stop so that a job fits; None: it cannot fit."""
        before = self.running, self.suspended
        self.running = [other for other in before[0] if other not in theirs]
        if self.preemption[2] == "suspend":
            self.suspended = self.suspended + theirs
        stopped = None
        if self.fits(job, now):
            stopped = []
            for other in theirs:
                if other.leaves is not None:
                    continue
                self.running.append(other)
                if other in self.suspended:
                    self.suspended.remove(other)
                if not self.fits(job, now):
                    self.running.remove(other)
                    if self.preemption[2] == "suspend":
                        self.suspended.append(other)
                    stopped.append(other)
        self.running, self.suspended = before
        return stopped

    def grace_of(self, job: Job) -> int:
        """Return for how long a job runs on once it is to stop (rule 27)."""
        groups, _, _, *times = self.preemption
        return int(times[1].get(groups[job.number], 0)) if len(times) > 1 else 0

    def would_fit(self, job: Job, gone: list[Job], now: int) -> bool:
        """Return whether a job could start now without some that run."""
        before = self.running
        self.running = [other for other in before if other not in gone]
        fits = self.fits(job, now)
        self.running = before
        return fits

    def stop(self, job: Job, now: int) -> None:
        """Stop a running job: it is queued again, has ended, or is suspended."""
        self.running.remove(job)
        job.leaves = None
        if self.preemption[2] == "cancel":
            job.end = now
            self.cancelled.append((job.number, job.since, now, {}))
            self.leaving = [other for other in self.leaving if other.end == now] + [job]
            return
        self.lost.append((job.number, job.since, now, dict(getattr(job, "nodes", ()))))
        if self.preemption[2] == "suspend":
            job.end, job.stopped = -1, now
            self.suspended.append(job)
            return
        job.start = job.end = -1
        job.prediction, job.corrections, job.backfilled = job.predicted, 0, False
        job.reservation = -1
        self.queue.append(job)
        self.queue.sort(key=lambda job: (job.submit, job.came, job.number))


def longest_way(group: Any, may: Collection[tuple[Any, Any]]) -> int:
    """Return the level of a group, rule 27."""
    return max((1 + longest_way(other, may) for upper, other in may if upper == group), default=0)


# --- A pool of processors that are all alike ------------------------------------------------------


class PoolSimulation(PreemptingPasses):
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
    ``hold``: None or as in rule 21; ``quotas``: of rule 24, keys of the jobs in their order, what
    these ask for, and how much may be had of one key;
    ``windows``: of rule 25; ``follows``: of rule 26, by number of a job those of the others, the
    time to think and the earliest time; ``places``: of rule 28, keys of the jobs in their order;
    ``preemption``: of rule 27, the groups of the jobs in their order, None: none, pairs of groups
    of which the first may stop the second, and "requeue", "cancel" or "suspend", and perhaps for
    how long groups are exempt, and their grace times [s]; ``lost``: a list
    that job, start, end and nodes of runs are put into that ended so, or up to a suspension.
    """
    simulation = PoolSimulation(jobs, processors, **rules)
    if lost is not None:
        simulation.lost = lost
    if begin is not None:
        simulation.begin(begin, end)
    return simulation.run()
