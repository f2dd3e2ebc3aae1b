"""The engine's schedules equal those of the oracle, which shares no code with it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from drawing import given, settings
from drawing import strategies as st
from strategies import schedulers, workloads

import hpcgym
from hpcgym.reference.jobs import jobs_of
from hpcgym.reference.orders import POLICIES
from hpcgym.reference.pool import simulate_pool
from hpcgym.workload.model import Workload


def assert_same(workload: Workload, rules: dict[str, Any]) -> None:
    """Simulate with both and compare all that the oracle records."""
    result = hpcgym.simulate(workload, **rules)
    expected = simulate_pool(jobs_of(workload), workload.processors, **rules)
    assert result.start.tolist() == [job.start for job in expected]
    assert result.end.tolist() == [job.end for job in expected]
    assert result.killed.tolist() == [job.killed for job in expected]
    assert result.predicted_run_time.tolist() == [job.predicted for job in expected]
    assert result.backfilled.tolist() == [job.backfilled for job in expected]
    assert result.reserved_start.tolist() == [job.reserved_start for job in expected]


@pytest.mark.parametrize("backfill", ["none", "easy", "conservative"])
@pytest.mark.parametrize("policy", sorted(POLICIES))
def test_each_policy_with_each_backfilling(policy: str, backfill: str) -> None:
    workload = hpcgym.load_workload("lublin:jobs=300,processors=64,seed=3,load=1.5")
    for passes in ("per-timestamp", "per-event"):
        rules = {
            "policy": policy,
            "backfill": backfill,
            "backfill_order": policy,
            "estimate": "requested",
            "correction": "requested",
            "threshold": None,
            "passes": passes,
        }
        assert_same(workload, rules)


def crowd(seed: int, jobs: int, processors: int) -> Workload:
    """A burst of submissions that makes long queues and many running jobs."""
    random = np.random.default_rng(seed)
    run = np.ceil(random.lognormal(5, 1.5, jobs)).astype(np.int64)
    columns = {
        "submit_time": np.sort(random.integers(0, 20 * jobs // processors, jobs)),
        "run_time": run,
        "requested_time": np.ceil(run * random.choice([0.5, 1, 1, 2, 10], jobs)).astype(np.int64),
        "requested_processors": np.minimum(random.geometric(0.3, jobs), processors),
        "user_id": random.integers(1, 5, jobs),
    }
    return Workload.from_columns(columns, processors=processors, name=f"crowd {seed}")


@pytest.mark.slow
@settings(max_examples=10)
@given(st.data(), st.integers(0, 10**6))
def test_queues_of_many_blocks(data: st.DataObject, seed: int) -> None:
    """Hundreds of queued and of running jobs: the ordered lists split and join their blocks."""
    workload = crowd(seed, jobs=400, processors=data.draw(st.sampled_from([60, 400])))
    rules = data.draw(schedulers(workload))
    if rules["backfill"].startswith("slurm"):  # the slow simulator plans for each job anew
        rules["backfill"] = "slurm:bf_interval=100+bf_max_job_test=10"
    for order in ("policy", "backfill_order"):
        if not isinstance(rules[order], str) and not any(rules[order]):
            rules[order] = "saf"
    assert_same(workload, rules)


@pytest.mark.parametrize("passes", ["per-timestamp", "per-event"])
@pytest.mark.parametrize("seed", range(3))
def test_many_reservations_move_earlier(seed: int, passes: str) -> None:
    """Dozens of jobs wait, of all widths, and running jobs leave holes as they end early."""
    workload = hpcgym.load_workload(f"lublin:jobs=150,processors=64,load=200,seed={seed}")
    assert_same(workload, {"policy": "fcfs", "backfill": "conservative", "passes": passes})
    assert hpcgym.simulate(workload, "conservative").metrics["max_queue_length"] > 50


@pytest.mark.parametrize("seed", [0, 6])
def test_jobs_that_missed_their_reservation_start_once(seed: int) -> None:
    """Predictions expire while passes follow single events: a job that is due may be passed over.

    Its reservation is then made anew for now, and it starts in the same pass.
    """
    workload = hpcgym.load_workload(f"lublin:jobs=150,processors=64,load=200,seed={seed}")
    learned = {"estimate": "ave2", "correction": "incremental"}
    rules = {"policy": "fcfs", "backfill": "conservative", "passes": "per-event"}
    assert_same(workload, rules | learned)


def test_more_jobs_than_processors_run_while_some_end() -> None:
    """With per-event passes jobs start beside those that are to end in the same second."""
    processors = 200
    rng = np.random.default_rng(0)
    # serial jobs fill the machine again and again, and all end at the same seconds
    submit = np.repeat(np.arange(1, 8) * 100, processors)
    run = np.full(submit.size, 100)
    columns = {
        "submit_time": submit,
        "run_time": run,
        "requested_time": run,
        "requested_processors": np.ones(submit.size),
        "user_id": rng.integers(1, 4, submit.size),
    }
    workload = Workload.from_columns(columns, processors=processors)
    for backfill in ("none", "easy", "conservative"):
        assert_same(workload, {"policy": "fcfs", "backfill": backfill, "passes": "per-event"})


@settings(max_examples=100)
@given(st.data())
def test_given_predictions_rule_over_the_words(data: st.DataObject) -> None:
    """An array of predictions that repeats a named estimate gives the same schedule."""
    workload = data.draw(workloads())
    run = np.minimum(workload.run_time, workload.requested_time)
    for name, values in (("requested", workload.requested_time), ("clairvoyant", run)):
        named = hpcgym.simulate(workload, "easy", estimate=name)
        given_values = hpcgym.simulate(workload, "easy", estimate=values)
        assert named.start.tolist() == given_values.start.tolist()
