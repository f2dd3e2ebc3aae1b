"""Look-ahead against a slow one in plain Python, and what it must not know."""

from __future__ import annotations

import copy
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from drawing import assume, costly, given, settings
from drawing import strategies as st
from few_jobs import few_jobs
from other_futures import altered
from strategies import SLURM, WEIGHTS, cases

from hpcgym import load_workload, simulate
from hpcgym.agents.lookahead import Lookahead
from hpcgym.reference.jobs import Job, jobs_of
from hpcgym.reference.orders import weighted
from hpcgym.reference.pool import Simulation
from hpcgym.reference.predictions import whole_seconds
from hpcgym.workload import Workload

BINS = 40
DECAY = Fraction(9, 10)
BUSY = load_workload("lublin:jobs=300,processors=64,seed=1,load=2")
PORTFOLIOS = st.lists(st.tuples(*[WEIGHTS] * 6).filter(any), min_size=1, max_size=4)
ESTIMATES = st.sampled_from(["learned", "learned", "user-ratio", "requested", "clairvoyant"])


class SlowLookahead(Simulation):
    """The simulation of ``hpcgym.reference`` whose policy is chosen anew at each pass."""

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
        self.now, self.by_clock = 0, False
        self.run_times: dict[int, int] = {}

    def end_and_predict(self, now: int) -> Any:
        found = super().end_and_predict(now)
        self.by_clock = not any(found)  # a pass between events
        return found

    def schedule(self, now: int) -> None:
        self.now = now
        asks = any(self.fits(job, now) for job in self.queue)
        if self.slurm is not None:  # what is chosen holds up to the next event
            asks = bool(self.queue) and not self.by_clock
        if asks:
            self.policy = weighted(self.best())
        super().schedule(now)

    def best(self) -> Any:
        """The first of the vectors under which waiting costs least; costs are whole numbers."""
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

    def drained(self, vector: Any) -> dict[int, int]:
        """Start times of the queued jobs if nothing came, under one vector to the end."""
        copied = Simulation.__new__(Simulation)
        copied.__dict__.update(copy.deepcopy(self.__dict__, {id(self.jobs): self.jobs}))
        copied.coming, copied.outside, copied.policy = [], [], weighted(vector)
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
        """Jobs that have ended, in order."""
        latest = self.now - (self.passes == "per-event")
        ended = [job for job in self.jobs if job.start >= 0 and job.end <= latest]
        return sorted(ended, key=lambda job: (job.end, job.number))

    def belief(self, job: Job) -> dict[int, Fraction]:
        """k -> how probable a run time of 2**(-k / 2) times the requested time is, if at all."""
        known = self.ended()
        belief = {0: Fraction(1)}
        if known:
            belief = {}
            for other in known:
                bin_ = bin_of(other)
                belief[bin_] = belief.get(bin_, Fraction(0)) + Fraction(1, len(known))
        for alike in (
            lambda other: other.user == job.user,
            lambda other: (other.user, other.requested) == (job.user, job.requested),
        ):
            counts = dict(belief)  # the wider class counts as one job
            ended = [other for other in known if alike(other)]
            for age, other in enumerate(reversed(ended)):
                counts[bin_of(other)] = counts.get(bin_of(other), Fraction(0)) + DECAY**age
            total = sum(counts.values())
            belief = {bin_: count / total for bin_, count in counts.items()}
        return belief

    def estimated(self, job: Job) -> int:
        elapsed = max(self.now - job.start, 0) if job.start >= 0 else 0
        mean: float | Fraction = Fraction(job.requested)
        if self.look_at == "clairvoyant":
            return job.actual
        if self.look_at == "user-ratio":
            ended = [other for other in self.ended() if other.user == job.user]
            if ended:
                ratios = sum(Fraction(other.actual, other.requested) for other in ended)
                mean = job.requested * ratios / len(ended)
        if self.look_at == "learned":
            possible = {
                value: b
                for k, b in self.belief(job).items()
                if (value := job.requested * 2.0 ** (-k / 2)) > elapsed
            }
            if possible:
                share = sum(possible.values())
                mean = math.fsum(value * float(b / share) for value, b in possible.items())
        most = min(job.requested, job.predicted) if self.never_short else job.requested
        return min(max(whole_seconds(mean), elapsed + 1), most)

    def importance(self, job: Job) -> Fraction:
        """What a second's wait of a queued job adds to the sum of bounded slowdowns."""
        belief = {0: Fraction(1)}
        run_time = self.run_times[job.number]
        if self.look_at == "learned":
            belief, run_time = self.belief(job), job.requested
        times = {k: Fraction(max(run_time * 2.0 ** (-k / 2), self.tau)) for k in belief}
        return sum((b / times[k] for k, b in belief.items()), Fraction(0))


def bin_of(job: Job) -> int:
    return min(int(2.0 * math.log2(job.requested / job.actual) + 0.5), BINS - 1)


def assert_the_slow_one(
    workload: Workload, rules: dict[str, Any], portfolio: Any, estimate: str, tau: float
) -> None:
    slow = SlowLookahead(workload, portfolio, estimate, tau, **rules).run()
    looks = Lookahead(portfolio, estimate=estimate, tau=tau)
    assert looks.run(workload, **rules).start.tolist() == [job.start for job in slow]


@costly
@pytest.mark.parametrize("slurm", [False, True])
@settings(max_examples=200)
@given(cases(max_jobs=16), SLURM, PORTFOLIOS, ESTIMATES, st.sampled_from([10.0, 2.5, 60.0]))
def test_it_is_the_slow_one(
    slurm: bool,
    case: tuple[Workload, dict[str, Any]],
    backfill: str,
    portfolio: Any,
    estimate: str,
    tau: float,
) -> None:
    """Vectors that start the same jobs now may not do so at the looks between events of Slurm."""
    workload, rules = case
    del rules["policy"]
    if slurm:
        rules |= {"backfill": backfill, "passes": "per-timestamp", "hold": None}
    assume(not rules["backfill"].startswith("conservative"))
    assert_the_slow_one(workload, rules, portfolio, estimate, tau)


PLAIN: dict[str, Any] = {"backfill": "none", "backfill_order": "fcfs", "passes": "per-timestamp"}


def test_costs_that_are_equal_are_equal_to_the_last_bit() -> None:
    """Two vectors that exchange the starts of two jobs: the first is followed, as of all equals.

    All jobs are shorter than ``tau``, so that a second's wait of each costs the same, whatever is
    believed of its run time. Sums of floats in two orders differed in their last bits.
    """
    workload = few_jobs(
        13,
        [1000, *[1002] * 6, *[1003] * 6, 1004, 1006],
        [1, 2, 8, 11, 1, 2, 1, 1, 1, 1, 2, 2, 2, 2, 2],
        [13, 13, 13, 13, 1, 13, 13, 1, 13, 13, 13, 7, 7, 7, 7],
        [7, 19, 8, 11, 10, 20, 1, 1, 1, 1, 2, 2, 4, 1, 1],
        user_id=[0, 0, 1, -1, 0, 0, 0, 0, 0, 0, 0, 0, -1, 0, 0],
    )
    portfolio = [(-1.0,) * 6, (-1.0, 0.1, 0.0, -0.5, -1.0, -1.0)]
    rules = PLAIN | {"backfill_order": "f3", "estimate": "requested", "correction": "requested"}
    assert_the_slow_one(workload, rules, portfolio, "learned", 60.0)
    starts = Lookahead(portfolio, tau=60.0).run(workload, **rules).start
    assert (starts[6], starts[4]) == (1002, 1009)  # at 1002 the first vector is followed


def test_a_job_that_is_about_to_end_as_a_corrected_prediction_says() -> None:
    """At 8 s the one submission comes before the other job's end, which its prediction foretells.

    Nobody takes it to run for the hour that it requested.
    """
    workload = few_jobs(
        2,
        [0, 0, 0, 1, 2, *[5] * 8, *[8] * 3],
        [30, 8, 1, 1, 5, *[1] * 11],
        [1, 1, 2, 1, 1, 2, 2, 2, 2, 2, 2, 2, 1, 1, 2, 2],
        [30, 3600, 1, 10, 10, *[1] * 11],
        user_id=[0] * 16,
    )
    rules = PLAIN | {
        "estimate": [0] * 16,
        "correction": "recursive-doubling",
        "passes": "per-event",
    }
    portfolio = [(-1.0,) * 6, (*[-1.0] * 5, 20.0)]
    assert_the_slow_one(workload, rules, portfolio, "learned", 10.0)


@pytest.mark.parametrize("passes", ["per-timestamp", "per-event"])
@pytest.mark.parametrize("estimate", ["learned", "user-ratio", "requested", "clairvoyant"])
def test_nothing_is_known_of_the_future(estimate: str, passes: str) -> None:
    agent = Lookahead(estimate=estimate)
    before = agent.run(BUSY, passes=passes)
    same_past, others = [], []
    for seed, share in enumerate((0.2, 0.4, 0.6, 0.8)):
        time = int(np.quantile(before.start, share))
        n = int((BUSY.submit_time <= time).sum())
        after, start = agent.run(altered(BUSY, before, time, seed), passes=passes), before.start[:n]
        past = start <= time
        others.append((after.start[:n] != start).any())
        same_past.append((after.start[:n][past] == start[past]).all())
    assert all(same_past) == (estimate != "clairvoyant")
    assert sum(others) >= 3  # there is another future


def test_long_queues_and_many_running_jobs() -> None:
    """Lists of several blocks are copied; with one vector, look-ahead is that policy."""
    workload = load_workload("lublin:jobs=1500,processors=512,seed=3,load=3")
    result = Lookahead(["lexp", "lexp"]).run(workload)
    expected = simulate(workload, "lexp")
    assert expected.metrics["max_queue_length"] > 200
    assert result.start.tolist() == expected.start.tolist()
    assert (Lookahead(["lexp", "saf"]).run(workload).start != expected.start).any()
