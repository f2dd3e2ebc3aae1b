"""Futures of a state: with what really happened they are the schedule that really was."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from interrupting import stopped
from mistakes import mistakes_of

import hpcgym
from hpcgym._engine import Model, futures
from hpcgym.errors import HpcgymError
from hpcgym.forecasting.arrivals import Block
from hpcgym.forecasting.futures import Futures
from hpcgym.forecasting.state import MachineState, snapshots
from hpcgym.machine import Cluster, NodeGroup
from hpcgym.schedule.result import Result
from hpcgym.scheduler.policies.networks import aged_network
from hpcgym.simulation.restricted import within_quotas
from hpcgym.workload.model import Workload

LOG = hpcgym.load_workload("lublin:jobs=400,processors=64,load=1.1,seed=3")
NETWORK = replace(aged_network(5), output=np.linspace(-1, 1, 5))
QUOTA = "user:processors=40"

#: Rules, and the machine that they are on, by which futures are those of ``simulate``.
RULES: list[tuple[str, dict[str, Any]]] = [
    ("fcfs", {}),
    ("easy", {}),
    ("easy", {"passes": "per-event"}),
    ("saf", {"threshold": 50_000, "hold": 0.1}),
    ("wfp3", {}),
    ("conservative", {}),
    ("easy", {"backfill": "depth:4"}),
    ("easy", {"backfill": "slurm"}),
    ("easy", {"backfill": "until-shadow"}),
    ("easy++", {}),
    ("easy", {"correction": "kill", "estimate": "ave2"}),
    ("fairshare", {}),
    ("fairshare", {"backfill": "conservative"}),
    ("easy", {"policy": "log(wait+60)-log(requested)*free"}),
    # learned
    ("aged", {}),
    ("evolved", {}),
    ("saf-typical", {"policy": NETWORK}),
    ("saf-typical-20h-hold", {}),
    ("easy-e-loss", {}),
    ("easy", {"estimate": "user-ratio", "correction": "incremental", "policy_estimate": "ave3"}),
    ("easy", {"estimate": "e-loss", "correction": "recursive-doubling"}),
    ("saf", {"estimate": "typical-ratio", "correction": "incremental", "backfill": "conservative"}),
    # restricted
    ("easy", {"quota": QUOTA}),
    ("saf", {"quota": QUOTA, "maintenance": "100000/130000"}),
    ("aged", {"quota": QUOTA}),
]
ON_NODES: list[tuple[str, dict[str, Any]]] = [
    ("easy", {}),
    ("saf", {"allocation": "best-fit"}),
    ("conservative", {}),
    ("easy", {"backfill": "slurm"}),
    ("easy", {"quota": QUOTA}),
    ("aged", {"allocation": "balanced"}),
]


def asking_for_nodes(jobs: Workload) -> Workload:
    """The same jobs in units of 4 cores and some memory, one or more a node."""
    units = np.maximum(jobs.requested_processors // 4, 1)
    memory = 1 + jobs.user_id % 3
    columns = {**jobs.columns, "requested_processors": 4 * units}
    return Workload.from_columns(
        columns,
        processors=64,
        name="nodes",
        units=units,
        per_unit={"core": np.full(len(jobs), 4), "mem": 1000 * memory},
    )


def moments(result: Result, number: int = 4) -> list[int]:
    """Times at which jobs wait, rising."""
    waits = np.flatnonzero(result.wait > 0)
    rows = waits[np.linspace(len(waits) // 4, len(waits) - 1, number).astype(int)]
    times = np.unique(result.start[rows] - 1 - np.arange(number) % 2).tolist()
    assert len(times) > 1
    return [time for time in times if time > 0]


def true_starts(state: MachineState, result: Result, scheduler: Any) -> tuple[Any, Any]:
    """When jobs that wait start, with the run times and arrivals that there were; and did."""
    jobs, time = result.workload, state.time
    known = np.flatnonzero(np.isin(jobs.job_number, state.jobs.job_number))
    assert jobs.job_number[known].tolist() == state.jobs.job_number.tolist()
    come = np.flatnonzero(jobs.submit_time >= time)
    futures = Futures(state, scheduler, jobs, [Block(come, jobs.submit_time[come])])
    run = np.minimum(jobs.run_time, jobs.requested_time)[known]
    waiting = np.flatnonzero(~state.running)
    starts = futures.starts(run[np.newaxis], np.zeros(1, np.int64), waiting)[0]
    return starts.tolist(), result.start[known][waiting].tolist()


def check_that_it_is_a_future(result: Result) -> None:
    """What happened is what a future says that has the true run times and arrivals."""
    n = 0
    for state in snapshots(result, moments(result)):
        starts, was = true_starts(state, result, result.scheduler)
        assert starts == was
        n += len(was)
    assert n > 10


@pytest.mark.parametrize(("name", "rules"), RULES, ids=lambda value: str(value))
def test_what_happened_is_a_future_on_a_pool(name: str, rules: dict[str, Any]) -> None:
    jobs = within_quotas(LOG, rules["quota"]) if "quota" in rules else LOG
    result = hpcgym.simulate(jobs, name, **rules)
    check_that_it_is_a_future(result)


@pytest.mark.parametrize(("name", "rules"), ON_NODES, ids=lambda value: str(value))
def test_what_happened_is_a_future_on_nodes(name: str, rules: dict[str, Any]) -> None:
    machine = Cluster(groups=(NodeGroup("n", 16, {"core": 4, "mem": 8000}),))
    jobs = asking_for_nodes(within_quotas(LOG, rules["quota"]) if "quota" in rules else LOG)
    result = hpcgym.simulate(jobs, name, cluster=machine, **rules)
    check_that_it_is_a_future(result)


@pytest.mark.parametrize(
    "rules",
    [
        {"quota": "user:submitted=12"},
        {"quota": "user:processor-minutes=20000"},
        {"quota": "user:jobs=3+submitted=20", "policy": "saf"},
        {"maintenance": "100000/2000000:processors=16"},
        {"preemption": "queue:batch>interactive"},
        {"preemption": "queue:batch>interactive,suspend"},
        {"estimate": "user-ratio", "policy": "4*log(wait+720)-log(max(requested,1))"},
    ],
    ids=str,
)
def test_futures_of_a_log_are_what_its_extract_is_simulated_as(rules: dict[str, Any]) -> None:
    """Also by rules that are not continued; a job that is stopped has its first start."""
    queue = np.arange(len(LOG)) % 2
    log = hpcgym.simulate(LOG.with_columns(queue=queue), "easy").as_workload()
    jobs = within_quotas(log, rules["quota"]) if "quota" in rules else log
    waits, n = np.flatnonzero(jobs.wait_time > 600), 0
    for share in (0.3, 0.6, 0.9):
        row = waits[int(share * len(waits))]
        time = int(jobs.submit_time[row] + jobs.wait_time[row]) - 1
        part, state = jobs.extract(time), hpcgym.snapshot(jobs, time)
        result = hpcgym.simulate(part, "easy", **rules)
        came = result.workload.job_number.tolist()
        come = np.flatnonzero(jobs.submit_time >= time)
        made = Futures(state, result.scheduler, jobs, [Block(come, jobs.submit_time[come])])
        known, waiting = (
            np.isin(jobs.job_number, state.jobs.job_number),
            np.flatnonzero(~state.running),
        )
        run = np.minimum(jobs.run_time, jobs.requested_time)[known]
        starts = made.starts(run[np.newaxis], np.zeros(1, np.int64), waiting)[0].tolist()
        stopped_once = (
            set() if result.lost is None else set(np.flatnonzero(result.restarts).tolist())
        )
        rows = [came.index(number) for number in state.jobs.job_number[waiting].tolist()]
        was = [int(result.start[row]) for row in rows]
        for row, now, start in zip(rows, starts, was, strict=True):
            assert now < start if row in stopped_once else now == start
        n += len(rows)
    assert n > 15


def test_each_future_has_its_own_run_times_and_arrivals() -> None:
    """As ``simulate`` makes the schedule of each: on any number of threads."""
    result = hpcgym.simulate(LOG, "saf")
    state = next(snapshots(result, moments(result)))
    rng = np.random.default_rng(5)
    later = np.flatnonzero(state.time <= LOG.submit_time)
    blocks = [Block(np.sort(rng.choice(later, n)), np.zeros(0, np.int64)) for n in (0, 30, 90)]
    blocks = [
        Block(block.rows, np.sort(state.time + rng.integers(0, 200_000, len(block.rows))))
        for block in blocks
    ]
    known = state.jobs
    least = np.where(state.running, state.time - state.start, 1)
    run = rng.integers(least, known.requested_time + 1, (9, len(known)))
    chosen, waiting = np.arange(9) % 3, np.flatnonzero(~state.running)
    made = Futures(state, result.scheduler, LOG, blocks)
    starts = made.starts(run, chosen, waiting, threads=1)
    for k in range(9):
        alone = one_future(state, run[k], blocks[chosen[k]])
        expected = hpcgym.simulate(alone, result.scheduler, processors=64)
        assert expected.start[: len(known)][waiting].tolist() == starts[k].tolist()
    for threads in (2, 3):
        assert made.starts(run, chosen, waiting, threads=threads).tolist() == starts.tolist()


def one_future(state: MachineState, run: Any, block: Block) -> Workload:
    """The same future as an extract."""
    from dataclasses import replace

    from hpcgym.workload.extracts import stacked
    from hpcgym.workload.model import Initial

    own = replace(state.jobs, initial=None, columns={**state.jobs.columns, "run_time": run})
    come = LOG.take(block.rows)
    come = replace(come, columns={**come.columns, "submit_time": block.submit})
    start = np.concatenate([state.start, np.full(len(come), -1)])
    initial = state.jobs.initial
    assert initial is not None
    assert initial.ongoing is not None
    ongoing = replace(
        initial.ongoing,
        **{
            name: np.concatenate([getattr(initial.ongoing, name), np.full(len(come), -1)])
            for name in ("order", "predicted", "promised")
        },
    )
    return replace(stacked([own, come]), initial=Initial(state.time, start, state.past, ongoing))


def test_a_future_ends_with_the_last_start_in_question() -> None:
    """Jobs that never start do not keep it from telling of others."""
    jobs = Workload.from_columns(
        {
            "submit_time": [0, 1, 2],
            "wait_time": [0, -1, -1],
            "run_time": [-1, -1, -1],
            "requested_time": [100, 100, 100],
            "requested_processors": [4, 4, 4],
            "job_number": [1, 2, 3],
        },
        processors=4,
    )
    state = hpcgym.snapshot(jobs, at=50)
    made = Futures(
        state, hpcgym.Scheduler(), jobs, [Block(np.zeros(0, np.int64), np.zeros(0, np.int64))]
    )
    run = np.array([[70, 20, 20], [100, 5, 5]])
    none = np.zeros(2, np.int64)
    assert made.starts(run, none, np.array([1, 2])).tolist() == [[70, 90], [100, 105]]
    assert made.starts(run, none, np.array([2])).tolist() == [[90], [105]]
    assert made.starts(run, none, np.zeros(0, np.int64)).shape == (2, 0)


def test_long_futures_end_at_a_signal() -> None:
    jobs = hpcgym.load_workload("lublin:jobs=3000,processors=64,load=3")
    n = len(jobs) - 1
    waiting = jobs.with_columns(wait_time=[0] + n * [-1], run_time=[1] + n * [-1])
    state = hpcgym.snapshot(waiting, at=int(jobs.submit_time[-1]) + 1)
    none = np.zeros(0, np.int64)
    made = Futures(state, hpcgym.Scheduler(backfill="conservative"), jobs, [Block(none, none)])
    run = np.tile(np.minimum(jobs.run_time, jobs.requested_time)[1:], (400, 1))
    for threads in (1, 2):
        with stopped():
            made.starts(run, np.zeros(400, np.int64), np.arange(n), threads)


# --- What is refused ------------------------------------------------------------------------------

FEW = np.array([[0, 5, 9, 2, 0], [1, 5, 9, 2, 1], [20, 5, 9, 2, 20]])


def told(
    run: Any = ((5, 5),), first: Any = (0,), number: Any = (3,), targets: Any = (1,),
    threads: int = 1, several: bool = True, **more: Any,
) -> Any:  # fmt: skip
    """Futures of two jobs, of which the first runs, and one to come."""
    model = Model(FEW, 2, {}, predicted=FEW[:, 2].copy(), several=several)
    begins = {
        "time": 4, "due": True, "running": np.array([0]), "start": np.array([0]),
        "predicted": np.array([9, 9]), "promised": np.array([-1, -1]),
    }  # fmt: skip
    arrays = (np.array(each) for each in (run, first, number, targets))
    return futures(model, *arrays, threads, **(begins | more))


def test_the_engine_tells_a_small_future() -> None:
    assert told().tolist() == [[5]]
    assert told(run=[[5, 1], [9, 1]], first=[0, 0], number=[3, 2], targets=[1, 0]).tolist() == [
        [5, 0],
        [9, 0],
    ]


test_mistakes = mistakes_of(globals(), errors=(ValueError, HpcgymError))
