"""Look-ahead: at each pass the policy that drains the queue best, as a program to read.

The rules of :mod:`hpcgym.reference.pool` hold; in place of one policy there are some vectors of six
weights, each divided by the sum of its sizes.

Rules
-----
 1. At each pass at which a queued job fits, one of the vectors is chosen, and followed up to the
    next such pass. Under slurm it is chosen at each pass that an event brings, if jobs are queued.
 2. Under each vector the queue is drained: nothing else comes, all jobs have the run times of rule
    4, and all other rules hold; conservative makes all reservations anew at first. It costs the sum
    of importance times wait. The first of the least costs is chosen. Importance is rounded to 2^-40
    of the greatest, so that costs are whole.
 3. The importance of a job is what a second's wait of it adds to the bounded slowdowns: the mean of
    1 / max(run time, tau), over what is believed of its run time.
 4. clairvoyant: the run time. requested: the requested time. user-ratio: that times the mean ratio
    of the run and the requested times of the user's ended jobs. learned: the mean of what is
    believed, of run times above that which has passed. At least a second more than has passed; at
    most the requested time, or the prediction if none is ever too short.
 5. learned: run times are 2^(-k / 2) of the requested time, k from 0 to 39. Believed is, at first,
    what the ended jobs had; with the user's jobs, then with those of the same request, each adds
    itself, the last one 1, one before it 9/10 of that, and what was believed before counts as 1.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any

from hpcgym.elementary import log2
from hpcgym.reference.jobs import Job
from hpcgym.reference.orders import weighted
from hpcgym.reference.pool import PoolSimulation
from hpcgym.reference.predictions import whole_seconds

BINS = 40
DECAY = Fraction(9, 10)


class LookaheadSimulation(PoolSimulation):
    """All rules of a pool; ``look_at``: what is taken for run times, ``tau``: in seconds."""

    def __init__(
        self,
        jobs: Iterable[Job],
        processors: int,
        vectors: Sequence[Sequence[float]],
        look_at: str,
        tau: float,
        **rules: Any,
    ) -> None:
        super().__init__(jobs, processors, policy="lexp", **rules)
        sizes = [sum(map(abs, vector)) for vector in vectors]
        self.vectors = [[w / size for w in v] for v, size in zip(vectors, sizes, strict=True)]
        self.look_at, self.tau = look_at, tau
        given = rules["estimate"]
        self.never_short = given in ("requested", "clairvoyant")
        if isinstance(given, list):
            pairs = zip(given, self.jobs, strict=True)
            self.never_short = all(max(p, 1) >= job.actual for p, job in pairs)
        self.now, self.by_clock = 0, False
        self.run_times: dict[int, int] = {}

    def end_and_predict(self, now: int) -> Any:
        """Let jobs end and come, and note whether any does."""
        happened = super().end_and_predict(now)
        self.by_clock = not any(happened)  # a pass between events
        return happened

    def schedule(self, now: int) -> None:
        """Rule 1."""
        self.now = now
        asks = any(self.fits(job, now) for job in self.queue)
        if self.slurm is not None:
            asks = bool(self.queue) and not self.by_clock
        if asks:
            self.policy = weighted(self.best())
        super().schedule(now)

    def best(self) -> Sequence[float]:
        """Rule 2."""
        self.run_times = {job.number: self.estimated(job) for job in (*self.queue, *self.running)}
        importance = {job.number: self.importance(job) for job in self.queue}
        greatest = max(importance.values())
        costs = []
        for vector in self.vectors:
            cost = 0
            for job, start in self.drained(vector).items():
                units = math.floor(2**40 * importance[job] / greatest + Fraction(1, 2))
                cost += units * (start - self.jobs[job].submit)
            costs.append(cost)
        return self.vectors[costs.index(min(costs))]

    def drained(self, vector: Sequence[float]) -> dict[int, int]:
        """Return the starts of the queued jobs if nothing came, under one vector to the end."""
        copied = PoolSimulation.__new__(PoolSimulation)
        copied.__dict__.update(copy.deepcopy(self.__dict__, {id(self.jobs): self.jobs}))
        copied.coming, copied.outside, copied.follows = [], [], {}
        copied.expired_since_pass = True
        copied.policy = weighted(vector)
        for job in (*copied.queue, *copied.running):
            job.run = self.run_times[job.number]
        for job in copied.running:
            # where events are handled one by one, one whose prediction has not expired in its last
            # second is about to end
            leaves = job.predicted_end <= self.now
            job.end = job.predicted_end if leaves else job.start + job.run
        waiting = list(copied.queue)
        copied.schedule(self.now)
        copied.run()
        return {job.number: job.start for job in waiting}

    def ended(self) -> list[Job]:
        """Return the jobs that have ended, in order."""
        latest = self.now - (self.passes == "per-event")
        ended = [job for job in self.jobs if job.start >= 0 and job.end <= latest]
        return sorted(ended, key=lambda job: (job.end, job.number))

    def belief(self, job: Job) -> dict[int, Fraction]:
        """Rule 5: k -> how probable it is."""
        known = self.ended()
        belief = {} if known else {0: Fraction(1)}
        for other in known:
            belief[bin_of(other)] = belief.get(bin_of(other), 0) + Fraction(1, len(known))
        of_user = [other for other in known if other.user == job.user]
        for alike in (of_user, [other for other in of_user if other.requested == job.requested]):
            counts = dict(belief)  # the wider class counts as one job
            for age, other in enumerate(reversed(alike)):
                counts[bin_of(other)] = counts.get(bin_of(other), 0) + DECAY**age
            total = sum(counts.values())
            belief = {k: count / total for k, count in counts.items()}
        return belief

    def estimated(self, job: Job) -> int:
        """Rule 4."""
        if self.look_at == "clairvoyant":
            return job.actual
        elapsed = max(self.now - job.start, 0) if job.start >= 0 else 0
        mean: float | Fraction = Fraction(job.requested)
        if self.look_at == "user-ratio":
            ratios = [Fraction(o.actual, o.requested) for o in self.ended() if o.user == job.user]
            mean = job.requested * sum(ratios) / len(ratios) if ratios else mean
        if self.look_at == "learned":
            values = {k: job.requested * 2.0 ** (-k / 2) for k in range(BINS)}
            possible = {k: b for k, b in self.belief(job).items() if values[k] > elapsed}
            if possible:
                share = sum(possible.values())
                mean = math.fsum(values[k] * float(b / share) for k, b in possible.items())
        most = min(job.requested, job.predicted) if self.never_short else job.requested
        return min(max(whole_seconds(mean), elapsed + 1), most)

    def importance(self, job: Job) -> Fraction:
        """Rule 3."""
        belief, run_time = {0: Fraction(1)}, self.run_times[job.number]
        if self.look_at == "learned":
            belief, run_time = self.belief(job), job.requested
        times = {k: Fraction(max(run_time * 2.0 ** (-k / 2), self.tau)) for k in belief}
        return sum((b / times[k] for k, b in belief.items()), Fraction(0))


def bin_of(job: Job) -> int:
    """Return the k that is nearest to a job's run time."""
    return min(int(2.0 * log2(job.requested / job.actual) + 0.5), BINS - 1)
