"""Look-ahead is that of the reference; and what it must not know."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from drawing import assume, costly, given, settings
from drawing import strategies as st
from few_jobs import few_jobs
from other_futures import altered
from strategies import SLURM, WEIGHTS, cases, with_few_looks
from submission_strategies import chains, fitted

from hpcgym import load_workload, simulate
from hpcgym.agents.lookahead import Lookahead
from hpcgym.reference.jobs import jobs_of
from hpcgym.reference.lookahead import LookaheadSimulation
from hpcgym.workload import Workload

BUSY = load_workload("lublin:jobs=300,processors=64,seed=1,load=2")
PORTFOLIOS = st.lists(st.tuples(*[WEIGHTS] * 6).filter(any), min_size=1, max_size=4)
ESTIMATES = st.sampled_from(["learned", "learned", "user-ratio", "requested", "clairvoyant"])


def assert_as_the_reference(
    workload: Workload, rules: dict[str, Any], portfolio: Any, estimate: str, tau: float
) -> None:
    jobs = jobs_of(workload)
    slow = LookaheadSimulation(jobs, workload.processors, portfolio, estimate, tau, **rules).run()
    looks = Lookahead(portfolio, estimate=estimate, tau=tau)
    assert looks.run(workload, **rules).start.tolist() == [job.start for job in slow]


@costly
@pytest.mark.parametrize("slurm", [False, True])
@settings(max_examples=200)
@given(cases(max_jobs=16), SLURM, PORTFOLIOS, ESTIMATES, st.sampled_from([10.0, 2.5, 60.0]))
def test_it_is_that_of_the_reference(
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
        settings_of_slurm = with_few_looks(backfill, workload)
        rules |= {"backfill": settings_of_slurm, "passes": "per-timestamp", "hold": None}
    assert_as_the_reference(workload, rules, portfolio, estimate, tau)


@costly
@settings(max_examples=100)
@given(st.data(), cases(max_jobs=16), PORTFOLIOS, ESTIMATES, st.sampled_from([10.0, 60.0]))
def test_with_jobs_that_follow_others(
    data: Any, case: tuple[Workload, dict[str, Any]], portfolio: Any, estimate: str, tau: float
) -> None:
    """Jobs that tie, starve or come first are those submitted first, also in a drained queue."""
    workload, rules = case
    rules = fitted(rules)
    del rules["policy"]
    workload, dependencies, follows = data.draw(chains(workload))
    jobs, most = jobs_of(workload), workload.processors
    slow = LookaheadSimulation(jobs, most, portfolio, estimate, tau, follows=follows, **rules).run()
    looks = Lookahead(portfolio, estimate=estimate, tau=tau)
    result = looks.run(workload, dependencies=dependencies, **rules)
    of_job = result.start[np.argsort(result.workload.job_number)]
    assert of_job.tolist() == [job.start for job in slow]


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
    assert_as_the_reference(workload, rules, portfolio, "learned", 60.0)
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
    assert_as_the_reference(workload, rules, portfolio, "learned", 10.0)


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
