"""Look-ahead against a slow one in plain Python, and what it must not know."""

from __future__ import annotations

import copy
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from oracle import Job, Simulation, changes_with_time, jobs_of, weighted
from strategies import WEIGHTS, cases

from hpcgym import load_workload, simulate
from hpcgym.agents.lookahead import Lookahead
from hpcgym.workload import Workload

BINS = 40
BUSY = load_workload("lublin:jobs=300,processors=64,seed=1,load=2")
PORTFOLIOS = st.lists(st.tuples(*[WEIGHTS] * 6).filter(any), min_size=1, max_size=4)
ESTIMATES = st.sampled_from(["learned", "learned", "user-ratio", "requested", "clairvoyant"])


class SlowLookahead(Simulation):
    """The simulation of ``oracle.py`` whose policy is chosen anew at each pass."""

    def __init__(
        self, workload: Workload, vectors: Any, look_at: str, tau: float, **rules: Any
    ) -> None:
        super().__init__(jobs_of(workload), workload.processors, policy="lexp", **rules)
        sizes = [sum(map(abs, vector)) for vector in vectors]
        self.vectors = [[w / size for w in v] for v, size in zip(vectors, sizes, strict=True)]
        self.look_at, self.tau = look_at, tau
        given = rules["estimate"]
        self.never_short = given in ("requested", "clairvoyant")
        if isinstance(given, list):
            self.never_short = all(
                max(p, 1) >= job.actual for p, job in zip(given, self.jobs, strict=True)
            )
        self.now = 0

    def schedule(self, now: int) -> None:
        self.now = now
        if any(self.fits(job, now) for job in self.queue):
            self.policy = weighted(self.best())
        super().schedule(now)

    def best(self) -> Any:
        # in the order in which the engine lists the queue
        queue = self.queue if changes_with_time(self.backfill_order) else self.candidates(self.now)
        costs = []
        for vector in self.vectors:
            starts = self.drained(vector)
            cost = 0.0
            for job in queue:
                cost += self.importance(job) * (starts[job.number] - job.submit)
            costs.append(cost)
        return self.vectors[costs.index(min(costs))]

    def drained(self, vector: Any) -> dict[int, int]:
        """Start times of the queued jobs if nothing came, under one vector to the end."""
        run_times = {job.number: self.estimated(job) for job in (*self.queue, *self.running)}
        copied = Simulation.__new__(Simulation)
        copied.__dict__.update(copy.deepcopy(self.__dict__, {id(self.jobs): self.jobs}))
        copied.coming, copied.policy = [], weighted(vector)
        for job in (*copied.queue, *copied.running):
            job.run = run_times[job.number]
        for job in copied.running:
            # where events are handled one by one, one may be about to end as predicted
            job.end = max(job.start + job.run, job.predicted_end * (job.predicted_end <= self.now))
        waiting = list(copied.queue)
        copied.schedule(self.now)
        copied.run()
        return {job.number: job.start for job in waiting}

    def ended(self) -> list[Job]:
        """Jobs that have ended, in order."""
        latest = self.now - (self.passes == "per-event")
        ended = [job for job in self.jobs if job.start >= 0 and job.end <= latest]
        return sorted(ended, key=lambda job: (job.end, job.number))

    def belief(self, job: Job) -> list[float]:
        """Probabilities of run time / requested time = 2**(-k / 2)."""
        known = self.ended()
        belief = [float(k == 0) for k in range(BINS)]
        if known:
            counts = [0] * BINS
            for other in known:
                counts[bin_of(other)] += 1
            belief = [count / len(known) for count in counts]
        for alike in (
            lambda other: other.user == job.user,
            lambda other: (other.user, other.requested) == (job.user, job.requested),
        ):
            shares = [0.0] * BINS
            some = False
            for other in filter(alike, known):
                some = True
                shares = [0.9 * share for share in shares]
                shares[bin_of(other)] += 1.0
            if some:
                total = 1.0
                for share in shares:
                    total += share
                belief = [(b + s) / total for b, s in zip(belief, shares, strict=True)]
        return belief

    def estimated(self, job: Job) -> int:
        elapsed = max(self.now - job.start, 0) if job.start >= 0 else 0
        mean = float(job.requested)
        if self.look_at == "clairvoyant":
            return job.actual
        if self.look_at == "user-ratio":
            ratios = [other.actual / other.requested for other in self.ended() if same(other, job)]
            if ratios:
                total = 0.0
                for ratio in ratios:
                    total += ratio
                mean *= total / len(ratios)
        if self.look_at == "learned":
            share = total = 0.0
            for k, b in enumerate(self.belief(job)):
                value = job.requested * 2.0 ** (-0.5 * k)
                if value > elapsed:
                    share += b
                    total += b * value
            if share > 0:
                mean = total / share
        most = min(job.requested, job.predicted) if self.never_short else job.requested
        return min(max(int(mean), elapsed + 1), most)

    def importance(self, job: Job) -> float:
        if self.look_at != "learned":
            return 1.0 / max(self.estimated(job), self.tau)
        total = 0.0
        for k, b in enumerate(self.belief(job)):
            total += b / max(job.requested * 2.0 ** (-0.5 * k), self.tau)
        return total


def same(one: Job, other: Job) -> bool:
    return one.user == other.user


def bin_of(job: Job) -> int:
    return min(int(2.0 * math.log2(job.requested / job.actual) + 0.5), BINS - 1)


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(cases(max_jobs=16), PORTFOLIOS, ESTIMATES, st.sampled_from([10.0, 2.5, 60.0]))
def test_it_is_the_slow_one(
    case: tuple[Workload, dict[str, Any]], portfolio: Any, estimate: str, tau: float
) -> None:
    workload, rules = case
    del rules["policy"]
    assume(rules["backfill"] != "conservative")
    slow = SlowLookahead(workload, portfolio, estimate, tau, **rules).run()
    result = Lookahead(portfolio, estimate=estimate, tau=tau).run(workload, **rules)
    assert result.start.tolist() == [job.start for job in slow]


def other_future(workload: Workload, start: Any, time: int, seed: int) -> Workload:
    """Other run times of jobs that have not ended by ``time``, and other jobs to come."""
    rng = np.random.default_rng(seed)
    n = int(np.searchsorted(workload.submit_time, time, "right"))
    requested = workload.requested_time.copy()
    run_time = np.minimum(workload.run_time, requested)
    processors = workload.requested_processors.copy()
    open_jobs = (start > time) | (start + run_time > time)
    least = np.where(start > time, 1, time - start + 1)
    other = rng.integers(np.minimum(least, requested), requested + 1)
    run_time = np.where(open_jobs, other, run_time)
    processors[n:] = rng.integers(1, workload.processors + 1, len(processors) - n)
    requested[n:] = run_time[n:] = rng.integers(1, 20_000, len(requested) - n)
    return workload.with_columns(
        run_time=run_time, requested_time=requested, requested_processors=processors
    )


@pytest.mark.parametrize("passes", ["per-timestamp", "per-event"])
@pytest.mark.parametrize("estimate", ["learned", "user-ratio", "requested", "clairvoyant"])
def test_nothing_is_known_of_the_future(estimate: str, passes: str) -> None:
    agent = Lookahead(estimate=estimate)
    before = agent.run(BUSY, passes=passes)
    same_past = []
    for seed, share in enumerate((0.2, 0.4, 0.6, 0.8)):
        time = int(np.quantile(before.start, share))
        after = agent.run(other_future(BUSY, before.start, time, seed), passes=passes)
        past = before.start <= time
        assert (after.start != before.start).any()  # there is another future
        same_past.append((after.start[past] == before.start[past]).all())
    assert all(same_past) == (estimate != "clairvoyant")


def test_it_looks_at_run_times_of_the_past() -> None:
    """Or else nothing would be learned."""
    one = Lookahead().run(BUSY)
    other = Lookahead(estimate="requested").run(BUSY)
    assert (one.start != other.start).any()


def test_long_queues_and_many_running_jobs() -> None:
    """Lists of several blocks are copied; with one vector, look-ahead is that policy."""
    workload = load_workload("lublin:jobs=1500,processors=512,seed=3,load=3")
    result = Lookahead(["lexp", "lexp"]).run(workload)
    expected = simulate(workload, "lexp")
    assert expected.metrics["max_queue_length"] > 200
    assert result.start.tolist() == expected.start.tolist()
    assert (Lookahead(["lexp", "saf"]).run(workload).start != expected.start).any()
