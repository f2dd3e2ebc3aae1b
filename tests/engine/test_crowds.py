"""What small random cases do not reach: long queues, many reservations, ties in crowds."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from drawing import given, settings
from drawing import strategies as st
from extract_strategies import usable
from failure_strategies import failures_for, table_of
from few_jobs import few_jobs
from node_strategies import node_cases, node_schedulers
from same_results import agreed, cells_of
from strategies import schedulers, workloads

import hpcgym
from hpcgym import load_workload
from hpcgym.machine import Cluster, NodeGroup
from hpcgym.workload.model import Workload

SEEDS = st.integers(0, 10**6)
PASSES = ("per-timestamp", "per-event")
LEARNED = {"estimate": "ave2", "correction": "incremental"}


# --- On a pool ------------------------------------------------------------------------------------


def crowd_on_a_pool(seed: int, jobs: int, processors: int) -> Workload:
    """A burst of submissions that makes long queues and many running jobs."""
    random = np.random.default_rng(seed)
    run = np.ceil(random.lognormal(5, 1.5, jobs)).astype(np.int64)
    return few_jobs(
        processors,
        np.sort(random.integers(0, 20 * jobs // processors, jobs)),
        run,
        np.minimum(random.geometric(0.3, jobs), processors),
        np.ceil(run * random.choice([0.5, 1, 1, 2, 10], jobs)).astype(np.int64),
        user_id=random.integers(1, 5, jobs),
    )


@pytest.mark.slow
@settings(max_examples=8)
@given(st.data(), SEEDS)
def test_queues_of_many_blocks(data: st.DataObject, seed: int) -> None:
    """Hundreds of queued and of running jobs: the ordered lists split and join their blocks."""
    workload = crowd_on_a_pool(seed, jobs=400, processors=data.draw(st.sampled_from([60, 400])))
    rules = data.draw(schedulers(workload))
    if rules["backfill"].startswith("slurm"):  # the slow simulator plans for each job anew
        rules["backfill"] = "slurm:bf_interval=100+bf_max_job_test=10"
    agreed(workload, **usable(rules))


@pytest.mark.parametrize("passes", PASSES)
def test_queues_of_many_blocks_by_expressions(passes: str) -> None:
    rules = {"policy": "min(wait, 600) / requested - (wait % 7)", "threshold": 2000}
    rules |= {"backfill_order": "wait // 60 - ratio", "passes": passes}
    agreed(crowd_on_a_pool(3, jobs=400, processors=60), **rules)


@pytest.mark.parametrize(
    ("seed", "passes", "more"),
    [
        *((seed, passes, {}) for seed in range(3) for passes in PASSES),
        *((seed, "per-event", LEARNED) for seed in (0, 6)),
    ],
)
def test_many_reservations_move_earlier(seed: int, passes: str, more: dict[str, Any]) -> None:
    """Dozens of jobs wait, of all widths, and running jobs leave holes as they end early.

    Where predictions expire while passes follow single events a job that is due may be passed over.
    Its reservation is then made anew for now, and it starts in the same pass.
    """
    workload = load_workload(f"lublin:jobs=150,processors=64,load=200,seed={seed}")
    result = agreed(workload, backfill="conservative", passes=passes, **more)
    assert result.metrics["max_queue_length"] > 50


@pytest.mark.parametrize("backfill", ["none", "easy", "conservative"])
def test_more_jobs_than_processors_run_while_some_end(backfill: str) -> None:
    """With per-event passes jobs start beside those that are to end in the same second.

    Serial jobs fill the machine again and again, and all end at the same seconds.
    """
    submit = np.repeat(np.arange(1, 8) * 100, 200)
    workload = few_jobs(200, submit, np.full(1400, 100), np.ones(1400))
    agreed(workload, backfill=backfill, passes="per-event")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("order", "mode"),
    [("fcfs", "requeue"), ("sqf", "suspend"), ("spf", "requeue"), ("wfp3", "suspend")],
)
def test_many_stop_others(order: str, mode: str) -> None:
    """Many run and wait: the lists have several blocks, and the log is made longer."""
    rows = [(0, 150 + row, 1 + row % 3, 11) for row in range(300)]
    # every 40 s some wide jobs come; in between the others start again
    rows += [(40 * (row // 12), 5 + row % 11, 9, 12 + row % 2) for row in range(12, 240)]
    submit, run, wide, queue = zip(*sorted(rows, key=lambda row: row[0]), strict=True)
    jobs = few_jobs(150, submit, run, wide, [2 * seconds_run for seconds_run in run], queue=queue)
    rules = {"policy": order, "backfill_order": "sjbf", "preemption": f"queue:13>12>11,{mode}"}
    result = agreed(jobs, **rules)
    assert result.interrupted is not None
    assert len(result.interrupted.job) > 300


@pytest.mark.slow
@pytest.mark.parametrize(
    ("seed", "backfill"),
    [
        (0, "slurm:bf_interval=30+bf_max_job_test=70"),
        (1, "slurm:bf_interval=11+bf_job_part_count_reserve=3"),
    ],
)
def test_long_queues_of_slurm(seed: int, backfill: str) -> None:
    """More jobs wait than a block of the queue holds: those behind count too."""
    rng, n = np.random.default_rng(seed), 150
    submit, run = np.sort(rng.integers(0, 600, n)), rng.integers(1, 400, n)
    wide = np.where(rng.random(n) < 0.4, 1, rng.integers(1, 33, n))
    workload = few_jobs(32, submit, run, wide, run * rng.integers(1, 6, n))
    agreed(workload, backfill=backfill)
    agreed(workload, backfill=backfill, cluster="8x1x4")


# --- On nodes -------------------------------------------------------------------------------------


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
    workload = few_jobs(
        128,
        np.sort(random.integers(0, 3 * jobs, jobs)),
        run,
        units * core,
        np.ceil(run * random.choice([0.5, 1, 1, 2, 10], jobs)).astype(np.int64),
        user_id=random.integers(1, 5, jobs),
        units=units,
        per_unit={
            "core": core,
            "mem": random.integers(0, 17, jobs),
            "gpu": np.where(kind == 0, random.integers(1, 3, jobs), 0),
            "mic": np.where(kind == 1, random.integers(1, 3, jobs), 0),
        },
    )
    return Cluster(groups=groups), workload


@settings(max_examples=6)
@given(st.data(), SEEDS)
def test_long_queues_on_nodes(data: st.DataObject, seed: int) -> None:
    """Many queued and running jobs: the ordered lists split and join their blocks."""
    cluster, workload = crowd(seed, jobs=80)
    agreed(workload, cluster=cluster, **data.draw(node_schedulers(workload)))


@pytest.mark.slow
@settings(max_examples=2)
@given(st.data(), SEEDS)
def test_long_queues_on_nodes_that_fail(data: st.DataObject, seed: int) -> None:
    """Jobs go back into the middle of lists of several blocks."""
    random = np.random.default_rng(seed)
    n, nodes = 200, 30
    submit, run = np.sort(random.integers(0, n, n)), random.integers(1, 150, n)
    wide, users = random.integers(1, 5, n), random.integers(1, 5, n)
    requested = run * random.choice([1, 1, 2, 5], n)
    workload = few_jobs(4 * nodes, submit, run, wide, requested, user_id=users)
    failures = [
        (node, time, time + int(random.integers(1, 100)))
        for node in range(nodes)
        for time in range(int(random.integers(1, 200)), 500, 200)
    ]
    rules = data.draw(node_schedulers(workload))
    agreed(workload, cluster=f"{nodes}x1x4", failures=table_of(failures), **rules)


@pytest.mark.parametrize("backfill", ["easy", "until-shadow"])
def test_reservations_on_nodes_are_of_room(backfill: str) -> None:
    """On crowded nodes with memory, where one of nodes by name would let others start in some."""
    for seed in range(40):
        rng = np.random.default_rng(seed)
        units, core, memory = rng.integers(1, 4, 20), rng.integers(1, 3, 20), rng.integers(0, 3, 20)
        sizes = zip("ab", rng.integers(4, 9, (2, 2)).tolist(), strict=True)
        groups = [NodeGroup(name, 2, {"core": cores, "mem": has}) for name, (cores, has) in sizes]
        cluster, run = Cluster(groups=tuple(groups)), rng.integers(1, 40, 20)
        jobs = few_jobs(
            cluster.processors,
            np.sort(rng.integers(0, 60, 20)),
            run,
            units * core,
            run + rng.integers(0, 30, 20),
            user_id=rng.integers(1, 4, 20),
            units=units,
            per_unit={"core": core, "mem": memory},
        )
        quota = f"user:jobs={rng.integers(1, 4)}"
        agreed(jobs, cluster=cluster, quota=quota, backfill=backfill, backfill_order="sjbf")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*no window is between")
@pytest.mark.parametrize("seed", range(6))
def test_more_nodes_than_bits_in_a_word(seed: int) -> None:
    """Slurm's reservations and windows, on nodes on both sides of the 64th and the 128th."""
    rng, n = np.random.default_rng(seed), 60
    submit, run = np.sort(rng.integers(0, 500, n)), rng.integers(1, 400, n)
    wide = np.where(rng.random(n) < 0.3, 2, rng.integers(1, 200, n))
    jobs = few_jobs(260, submit, run, wide, run * rng.integers(1, 6, n))
    windows = "200/700:nodes=60-69; 900/1500:nodes=0,63,64,127,128,129"
    rules = {"cluster": "130x1x2", "maintenance": windows, "backfill": "slurm:bf_interval=30"}
    assert agreed(jobs, **rules).backfilled.sum() > 5


def test_nodes_without_room_for_a_job_count_for_the_value_of_others() -> None:
    """Found at random: a core that no unit of job 2 fits has been taken by nobody at 1 s."""
    groups = (
        NodeGroup("gpu", 2, {"core": 2, "gpu": 1}),
        NodeGroup("large", 1, {"core": 7}),
        NodeGroup("small", 1, {"core": 1}),
    )
    units, cores = np.array([2, 12, 1, 1, 2, 12]), np.array([1, 1, 2, 1, 3, 1])
    each = {"core": cores, "gpu": np.array([1, 0, 0, 0, 0, 0])}
    asked = [10, 1, 1, 1, 1, 1]
    jobs = few_jobs(12, [0] * 6, [1] * 6, units * cores, asked, units=units, per_unit=each)
    rules = {"allocation": "weighted", "policy": "f1", "backfill": "slurm"}
    agreed(jobs, cluster=Cluster(groups=groups), maintenance="100/101", **rules)


@settings(max_examples=40)
@given(st.data(), workloads(max_jobs=20))
def test_memory_of_a_log_in_kilobytes(data: st.DataObject, workload: Workload) -> None:
    """A workload without units: a core for each processor, with the memory of the log."""
    n, rules = len(workload), data.draw(node_schedulers(workload))
    memory = st.sampled_from([-1, 0, 1, 1_000, 1_001, 1_999, 4_000])
    kilobytes = data.draw(st.lists(memory, min_size=n, max_size=n))
    cores = max(workload.processors // 2, 1)
    nodes = NodeGroup("all", -(-workload.processors // cores), {"core": cores, "mem": 4 * cores})
    jobs = workload.with_columns(requested_memory=kilobytes)
    agreed(jobs, cluster=Cluster(groups=(nodes,)), **rules)


@pytest.mark.parametrize("order", ["sqf", "spf", "sjbf", "fcfs"])
def test_a_job_comes_back_before_equal_ones_that_were_submitted_later(order: str) -> None:
    """Of a crowd, in lists of several blocks; and one that was backfilled before the head."""
    crowd, few = few_jobs(4, [0] * 150, [5] * 150, [2] * 150), ([0, 1, 1, 2], [100, 5, 9, 9])
    fails = table_of([(0, 2, 3), (1, 8, 20), (0, 8, 10)]), table_of([(1, 3, 4)])
    rules = {"policy": "fcfs" if order == "sjbf" else order, "backfill_order": order}
    result = agreed(crowd, cluster="2x1x2", failures=fails[0], **rules)
    assert result.start.tolist()[:3] == [3, 0, 10]
    rules = {"cluster": "2x1x2", "failures": fails[1], "backfill_order": order}
    assert agreed(few_jobs(4, *few, [2, 4, 2, 2]), **rules).start.tolist() == [0, 100, 4, 13]


@pytest.mark.parametrize("fails", [False, True])
@settings(max_examples=100)
@given(data=st.data(), case=node_cases())
def test_random_nodes_are_valid_and_the_same_again(
    fails: bool, data: st.DataObject, case: tuple[Cluster, Workload, dict[str, Any]]
) -> None:
    cluster, workload, rules = case
    if fails:
        rules["failures"] = table_of(data.draw(failures_for(cluster, workload)))
    first, second, _ = (
        agreed(workload, slow=False, cluster=cluster, **{**rules, "allocation": allocation})
        for allocation in ("random:7", "random:7", "random")
    )
    assert first.start.tolist() == second.start.tolist()
    assert cells_of(first.allocation) == cells_of(second.allocation)


def test_random_nodes_differ_by_seed() -> None:
    cluster, workload = crowd(3, jobs=80)
    simulate = partial(hpcgym.simulate, workload, cluster=cluster)
    drawn = [cells_of(simulate(allocation=f"random:{seed}").allocation) for seed in range(4)]
    assert all(drawn[0] != other for other in drawn[1:])


# --- Many of a kind in one second -----------------------------------------------------------------


def takes_at_most(times: float, work: Callable[[], Any], other: Callable[[], Any]) -> bool:
    """Whether work takes at most so many times the processor time of other work.

    Least times of up to nine calls each are compared, after two that do not count: beside other
    work one may be cut short.
    """
    least = [math.inf, math.inf]
    for turn in range(10):
        for place, each in enumerate((work, other)):
            began = time.process_time()
            each()
            if turn:
                least[place] = min(least[place], time.process_time() - began)
        if turn and least[0] < times * least[1]:
            return True
    return False


N = 40_000
ONCE, ONE = np.zeros(N, np.int64), np.ones(N, np.int64)
#: Longer than the others, so that no two are alike.
APART = np.arange(1, N + 1)


@pytest.mark.parametrize(
    "name", ["saf", "easy-sjbf", "saf:backfill=none", "saf:backfill_order=saf"]
)
def test_equal_jobs_take_no_longer_than_others(name: str) -> None:
    """A search through all of one key took fifty times as long."""
    equal, apart = (few_jobs(1000, ONCE, ONE, ONE, requested) for requested in (ONE, APART))
    run = partial(hpcgym.simulate, scheduler=name)
    assert takes_at_most(5, partial(run, equal), partial(run, apart))


@pytest.mark.parametrize(
    "rules", [{"quota": "all:jobs=1000000"}, {"estimate": "ave2"}, {"dependencies": "after"}]
)
def test_ends_in_one_second_take_no_longer_than_others(rules: dict[str, Any]) -> None:
    """A search for each of the jobs that end took a hundred times as long."""
    follows = np.full(N, -1)
    follows[1:] = 1  # all follow the first
    columns = {"job_number": APART, "preceding_job": follows, "think_time": ONCE}
    equal = few_jobs(N, ONCE, ONE, ONE, **columns)
    apart = few_jobs(N, APART, ONE, ONE, **columns)
    simulate = partial(hpcgym.simulate, **rules)
    assert takes_at_most(5, partial(simulate, equal), partial(simulate, apart))


def test_predictions_that_expire_in_one_second_take_no_longer_than_others() -> None:
    """Half of the jobs end then, and stand before those whose predictions expire."""
    run = np.where(APART % 2 == 0, 10, 100)
    predicted = np.full(N, 10)
    equal = few_jobs(N, ONCE, run, ONE, np.full(N, 1000))
    apart = few_jobs(N, APART, run, ONE, np.full(N, 1000))
    simulate = partial(hpcgym.simulate, estimate=predicted, correction="incremental")
    assert takes_at_most(5, partial(simulate, equal), partial(simulate, apart))


@pytest.mark.parametrize("backfill", ["easy", "conservative"])
def test_time_is_linear_in_the_number_of_windows(backfill: str) -> None:
    """Four times as many took 28 times as long, as each pass planned around all of them."""
    workload = load_workload("lublin:jobs=200,processors=64,seed=1")

    def with_windows(n: int) -> Callable[[], Any]:
        windows = ";".join(f"{2000 * k + 1}/{2000 * k + 2}" for k in range(n))
        rules = hpcgym.Scheduler(backfill=backfill, maintenance=windows)
        return partial(hpcgym.simulate, workload, rules)

    assert takes_at_most(8, with_windows(4000), with_windows(1000))
