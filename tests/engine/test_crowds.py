"""What small random cases do not reach: long queues, many reservations, ties in crowds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from drawing import given, settings
from drawing import strategies as st
from extract_strategies import usable
from failure_strategies import failures_for, table_of
from few_jobs import few_jobs
from node_strategies import (
    ALLOCATIONS,
    node_cases,
    node_schedulers,
)
from same_results import beside_reference, cells_of
from strategies import cases, schedulers, workloads

import hpcgym
from hpcgym import Scheduler, load_workload, simulate
from hpcgym.cluster import Cluster, NodeGroup
from hpcgym.reference.orders import POLICIES
from hpcgym.simulation.driver import new_simulation
from hpcgym.simulation.nodes import needs_on, place_on_nodes
from hpcgym.workload.model import Workload


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
        beside_reference(workload, rules)


def crowd_on_a_pool(seed: int, jobs: int, processors: int) -> Workload:
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
    workload = crowd_on_a_pool(seed, jobs=400, processors=data.draw(st.sampled_from([60, 400])))
    rules = data.draw(schedulers(workload))
    if rules["backfill"].startswith("slurm"):  # the slow simulator plans for each job anew
        rules["backfill"] = "slurm:bf_interval=100+bf_max_job_test=10"
    beside_reference(workload, usable(rules))


@pytest.mark.parametrize("passes", ["per-timestamp", "per-event"])
@pytest.mark.parametrize("seed", range(3))
def test_many_reservations_move_earlier(seed: int, passes: str) -> None:
    """Dozens of jobs wait, of all widths, and running jobs leave holes as they end early."""
    workload = hpcgym.load_workload(f"lublin:jobs=150,processors=64,load=200,seed={seed}")
    beside_reference(workload, {"policy": "fcfs", "backfill": "conservative", "passes": passes})
    assert hpcgym.simulate(workload, "conservative").metrics["max_queue_length"] > 50


@pytest.mark.parametrize("seed", [0, 6])
def test_jobs_that_missed_their_reservation_start_once(seed: int) -> None:
    """Predictions expire while passes follow single events: a job that is due may be passed over.

    Its reservation is then made anew for now, and it starts in the same pass.
    """
    workload = hpcgym.load_workload(f"lublin:jobs=150,processors=64,load=200,seed={seed}")
    learned = {"estimate": "ave2", "correction": "incremental"}
    rules = {"policy": "fcfs", "backfill": "conservative", "passes": "per-event"}
    beside_reference(workload, rules | learned)


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
        beside_reference(workload, {"policy": "fcfs", "backfill": backfill, "passes": "per-event"})


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


@pytest.mark.parametrize("backfill", ["none", "easy", "until-shadow", "conservative"])
@settings(max_examples=80)
@given(case=cases())
def test_one_core_a_node_is_the_pool(backfill: str, case: tuple[Workload, dict[str, Any]]) -> None:
    """A workload without units, on as many nodes of one core: the pool's schedule exactly."""
    workload, rules = case
    rules = usable(rules)
    rules |= {"backfill": backfill, "passes": "per-timestamp"}
    if backfill == "conservative":
        rules["hold"] = None
    nodes = Cluster(groups=(NodeGroup("all", workload.processors, {"core": 1}),))
    pool = hpcgym.simulate(workload, **rules)
    for allocation in ALLOCATIONS:
        result = hpcgym.simulate(workload, cluster=nodes, allocation=allocation, **rules)
        assert result.start.tolist() == pool.start.tolist()
        assert result.reserved_start.tolist() == pool.reserved_start.tolist()
        assert result.backfilled.tolist() == pool.backfilled.tolist()
    del rules["passes"]
    beside_reference(workload, {**rules, "allocation": "best-fit"}, nodes)


def crowd(seed: int, jobs: int) -> tuple[Cluster, Workload]:
    """A burst of submissions on an Eurora in small, which makes long queues."""
    groups = (
        NodeGroup("gpu", 4, {"core": 16, "mem": 16, "gpu": 2}),
        NodeGroup("mic", 4, {"core": 16, "mem": 16, "mic": 2}),
    )
    random = np.random.default_rng(seed)
    run = np.ceil(random.lognormal(5, 1.5, jobs)).astype(np.int64)
    units = np.minimum(random.geometric(0.5, jobs), 4)
    core = random.choice([1, 2, 4, 8, 16], jobs)
    kind = random.integers(0, 4, jobs)
    columns = {
        "submit_time": np.sort(random.integers(0, 3 * jobs, jobs)),
        "run_time": run,
        "requested_time": np.ceil(run * random.choice([0.5, 1, 1, 2, 10], jobs)).astype(np.int64),
        "requested_processors": units * core,
        "user_id": random.integers(1, 5, jobs),
    }
    per_unit = {
        "core": core,
        "mem": random.integers(0, 17, jobs),
        "gpu": np.where(kind == 0, random.integers(1, 3, jobs), 0),
        "mic": np.where(kind == 1, random.integers(1, 3, jobs), 0),
    }
    cluster = Cluster(groups=groups)
    workload = Workload.from_columns(
        columns, processors=128, name=f"crowd {seed}", units=units, per_unit=per_unit
    )
    return cluster, workload


@settings(max_examples=6)
@given(st.data(), st.integers(0, 10**6))
def test_long_queues_on_nodes(data: st.DataObject, seed: int) -> None:
    """Many queued and running jobs: the ordered lists split and join their blocks."""
    cluster, workload = crowd(seed, jobs=80)
    beside_reference(workload, data.draw(node_schedulers(workload)), cluster)


@pytest.mark.parametrize("fails", [False, True])
@settings(max_examples=100)
@given(data=st.data(), case=node_cases())
def test_random_nodes_are_valid_and_the_same_again(
    fails: bool, data: st.DataObject, case: tuple[Cluster, Workload, dict[str, Any]]
) -> None:
    cluster, workload, rules = case
    if fails:
        rules["failures"] = table_of(data.draw(failures_for(cluster, workload)))
    first, second, other = (
        hpcgym.simulate(workload, cluster=cluster, **{**rules, "allocation": allocation})
        for allocation in ("random:7", "random:7", "random")
    )
    assert first.start.tolist() == second.start.tolist()
    assert cells_of(first.allocation) == cells_of(second.allocation)
    for result in (first, other):
        hpcgym.validate_schedule(result)


def test_random_nodes_differ_by_seed() -> None:
    cluster, workload = crowd(3, jobs=80)
    drawn = [
        cells_of(hpcgym.simulate(workload, cluster=cluster, allocation=f"random:{seed}").allocation)
        for seed in range(4)
    ]
    assert all(drawn[0] != other for other in drawn[1:])


def test_a_job_that_failed_may_fit_after_another_has_started() -> None:
    """As in `test_reference_nodes.py`: a start may make room for a job that waited before."""
    columns = {
        "submit_time": [0, 0, 1, 1, 2, 3],
        "run_time": [9, 9, 5, 99, 3, 1],
        "requested_time": [9, 9, 5, 99, 3, 1],
    }
    units, core = [1, 1, 2, 2, 1, 1], [1, 2, 2, 1, 1, 4]
    columns["requested_processors"] = [a * b for a, b in zip(units, core, strict=True)]
    workload = Workload.from_columns(columns, processors=6, units=units, per_unit={"core": core})
    groups = (NodeGroup("small", 1, {"core": 2}), NodeGroup("large", 1, {"core": 4}))
    for order, start in (("fcfs", [0, 0, 9, 3, 2, 102]), ("sjbf", [0, 0, 9, 2, 2, 101])):
        rules = {"backfill": "easy", "backfill_order": order}
        result = hpcgym.simulate(workload, cluster=Cluster(groups=groups), **rules)
        assert result.start.tolist() == start
        beside_reference(workload, rules, Cluster(groups=groups))


@settings(max_examples=40)
@given(st.data(), workloads(max_jobs=20))
def test_memory_of_a_log_in_kilobytes(data: st.DataObject, workload: Workload) -> None:
    """A workload without units: a core for each processor, with the memory of the log."""
    n, rules = len(workload), data.draw(node_schedulers(workload))
    memory = st.sampled_from([-1, 0, 1, 1_000, 1_001, 1_999, 4_000])
    kilobytes = data.draw(st.lists(memory, min_size=n, max_size=n))
    cores = max(workload.processors // 2, 1)
    nodes = NodeGroup("all", -(-workload.processors // cores), {"core": cores, "mem": 4 * cores})
    beside_reference(
        workload.with_columns(requested_memory=kilobytes), rules, Cluster(groups=(nodes,))
    )


@pytest.mark.slow
@settings(max_examples=2)
@given(st.data(), st.integers(0, 10**6))
def test_long_queues_on_nodes_that_fail(data: st.DataObject, seed: int) -> None:
    """Many queued and running jobs: jobs go back into the middle of lists of several blocks."""
    random = np.random.default_rng(seed)
    n, nodes = 200, 30
    columns = {
        "submit_time": np.sort(random.integers(0, n, n)),
        "run_time": random.integers(1, 150, n),
        "requested_processors": random.integers(1, 5, n),
        "user_id": random.integers(1, 5, n),
    }
    columns["requested_time"] = columns["run_time"] * random.choice([1, 1, 2, 5], n)
    cluster = Cluster(groups=(NodeGroup("a", nodes, {"core": 4}),))
    workload = Workload.from_columns(columns, processors=4 * nodes, name=f"crowd {seed}")
    rules = data.draw(node_schedulers(workload))
    failures = [
        (node, time, time + int(random.integers(1, 100)))
        for node in range(nodes)
        for time in range(int(random.integers(1, 200)), 500, 200)
    ]
    beside_reference(workload, rules, cluster, failures)


@pytest.mark.parametrize("order", ["sqf", "spf", "sjbf"])
def test_a_job_comes_back_before_equal_ones_that_were_submitted_later(order: str) -> None:
    """One node of a hundred: the jobs on it are equal to many in the queue, of several blocks."""
    n = 150
    workload = few_jobs(4, [0] * n, [5] * n, [2] * n)
    cluster = Cluster(groups=(NodeGroup("a", 2, {"core": 2}),))
    rules = {"policy": "fcfs" if order == "sjbf" else order, "backfill": "easy"}
    rules["backfill_order"] = order
    result = beside_reference(workload, rules, cluster, [(0, 2, 3), (1, 8, 20), (0, 8, 10)])
    assert result.start.tolist()[:3] == [3, 0, 10]


@pytest.mark.parametrize("order", ["sqf", "spf", "sjbf", "fcfs"])
def test_a_job_is_backfilled_again_before_equal_ones_that_came_later(order: str) -> None:
    """It ran before the head, job 1, and was submitted before job 3, which waits."""
    workload = few_jobs(4, [0, 1, 1, 2], [100, 5, 9, 9], [2, 4, 2, 2])
    cluster = Cluster(groups=(NodeGroup("a", 2, {"core": 2}),))
    rules = {"backfill": "easy", "backfill_order": order}
    result = beside_reference(workload, rules, cluster, [(1, 3, 4)])
    assert result.start.tolist() == [0, 100, 4, 13]


def test_priorities_by_usage_are_those_of_a_repair() -> None:
    """By hand: by 1000 s what user 1 has used is forgotten, and job 1 has waited for longer."""
    jobs = few_jobs(1, [0, 5, 9], [10, 100, 100], [1, 1, 1], user_id=[1, 1, 2])
    node = Cluster(groups=(NodeGroup("a", 1, {"core": 1}),))
    rules = {"policy": {"fairshare": 1, "wait": 0.01}, "fair_share": {"half_life_s": 20}}
    down = table_of([(0, 10, 1000)])
    result = hpcgym.simulate(jobs, cluster=node, failures=down, **rules)
    assert result.start.tolist() == [0, 1000, 1100]


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize(
    "backfill",
    ["slurm:bf_interval=30+bf_max_job_test=70", "slurm:bf_interval=11+bf_job_part_count_reserve=3"],
)
def test_long_queues_of_slurm(seed: int, backfill: str) -> None:
    """More jobs wait than a block of the queue holds: those behind count too."""
    rng, n = np.random.default_rng(seed), 150
    run = rng.integers(1, 400, n)
    columns = {
        "submit_time": np.sort(rng.integers(0, 600, n)),
        "run_time": run,
        "requested_time": run * rng.integers(1, 6, n),
        "requested_processors": np.where(rng.random(n) < 0.4, 1, rng.integers(1, 33, n)),
    }
    workload = Workload.from_columns(columns, processors=32)
    rules = {"policy": "fcfs", "backfill": backfill, "backfill_order": "fcfs"}
    rules |= {"estimate": "requested", "correction": "requested", "threshold": None}
    beside_reference(workload, {**rules, "passes": "per-timestamp", "hold": None})
    cluster = Cluster(groups=(NodeGroup("n", 8, {"core": 4}),))
    beside_reference(workload, {**rules, "allocation": "first-fit", "hold": None}, cluster)


JOBS = load_workload("lublin:jobs=1500,processors=32,seed=3,load=1.1")


@pytest.mark.parametrize("allocation", ["first-fit", "best-fit", "random:4"])
@pytest.mark.parametrize(
    "rules",
    [
        {},
        {"backfill": "none"},
        {"backfill_order": "sjbf", "estimate": "ave2", "correction": "incremental"},
        {"policy": "saf"},
        {"policy": "lexp", "backfill_order": "lexp"},
        {"policy": "saf", "threshold": 3600.0},
    ],
    ids=str,
)
def test_the_general_way_is_the_pools(rules: dict[str, object], allocation: str) -> None:
    scheduler = Scheduler(allocation=allocation, **rules)  # type: ignore[arg-type]
    cluster = Cluster(groups=(NodeGroup("thin", 32, {"core": 1}),))
    simulation = new_simulation(
        JOBS, scheduler, place_on_nodes(JOBS, needs_on(JOBS, cluster), cluster, scheduler)
    )
    simulation.drive()
    schedule = simulation.schedule()
    expected = simulate(JOBS, Scheduler(**rules), processors=32)  # type: ignore[arg-type]
    assert np.array_equal(schedule["start"], expected.start)
    assert np.array_equal(schedule["promised"], expected.reserved_start)
