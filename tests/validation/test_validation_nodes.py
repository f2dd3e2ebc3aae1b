"""validate_schedule accepts the schedules of the oracle on nodes, and finds how they are broken."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from drawing import HealthCheck, given, settings
from drawing import strategies as st
from node_strategies import node_cases
from plain_results import PLAIN

from hpcgym.cluster import Cluster, NodeGroup
from hpcgym.reference.jobs import node_jobs_of
from hpcgym.reference.nodes import simulate_nodes
from hpcgym.scheduler.rules import Scheduler
from hpcgym.validation.passes import check_nodes
from hpcgym.validation.validate import ScheduleError, validate_schedule
from hpcgym.workload.model import Workload

SLOW = settings(deadline=None, suppress_health_check=list(HealthCheck))
RULES: dict[str, Any] = {
    "policy": "fcfs",
    "backfill": "none",
    "backfill_order": "fcfs",
    "estimate": "requested",
    "correction": "requested",
    "threshold": None,
}
ALWAYS = ("lengths", "submission", "capacity", "units", "nodes", "events", "predictions")
ALWAYS_OF_RULES = (*ALWAYS, "promises", "energy", "progress")

#: Two nodes of 4 cores, one of them with 2 GPUs.
MACHINE = Cluster(
    groups=(NodeGroup("gpu", 1, {"core": 4, "gpu": 2}), NodeGroup("plain", 1, {"core": 4}))
)


def workload_of(*jobs: tuple[int, int, int, int, int], requested: Any = None) -> Workload:
    """A workload of rows (submit, run, units, cores a unit, GPUs a unit)."""
    submit, run, units, core, gpu = (np.array(column) for column in zip(*jobs, strict=True))
    columns = {
        "submit_time": submit,
        "run_time": run,
        "requested_time": run if requested is None else requested,
        "requested_processors": units * core,
    }
    return Workload.from_columns(
        columns, processors=8, units=units, per_unit={"core": core, "gpu": gpu}
    )


def scheduled(cluster: Cluster, workload: Workload, **words: Any) -> Any:
    """A stand-in for a Result, from the oracle."""
    jobs = simulate_nodes(
        node_jobs_of(workload, cluster.resources),
        cluster.capacity.tolist(),
        **{**RULES, **words},
    )

    def column(value: Any) -> Any:
        return np.array([value(job) for job in jobs], dtype=np.int64)

    return consistent(
        SimpleNamespace(
            workload=workload,
            cluster=cluster,
            scheduler=Scheduler(**{**RULES, **words}),
            start=column(lambda job: job.start),
            run_time=column(lambda job: job.actual),
            predicted_run_time=column(lambda job: job.predicted),
            backfilled=column(lambda job: job.backfilled).astype(bool),
            killed=column(lambda job: job.killed).astype(bool),
            reserved_start=column(lambda job: job.reserved_start),
            **PLAIN | {"allocation": allocation_of([job.nodes for job in jobs])},
            begin=int(workload.submit_time[0]),
        )
    )


def allocation_of(nodes: Any) -> Any:
    """An allocation of (node, units) for each job."""
    cells = [cell for job in nodes for cell in job]
    return SimpleNamespace(
        first=np.cumsum([0, *(len(job) for job in nodes)]),
        node=np.array([node for node, _ in cells], np.int32),
        units=np.array([units for _, units in cells], np.int64),
    )


def consistent(result: Any) -> Any:
    """The same with ends, waits and metrics that follow from the starts."""
    workload, power = result.workload, result.cluster
    end = result.start + result.run_time
    span = int(end.max() - workload.submit_time.min())
    busy_s = int((workload.requested_processors * result.run_time).sum())
    idle_j = (power.processors * span - busy_s) * power.idle_power_w
    busy_j = busy_s * power.busy_power_w
    energies = {"energy_idle_j": idle_j, "energy_busy_j": busy_j, "energy_j": idle_j + busy_j}
    metrics = {"makespan_s": span, **energies}
    return changed(result, end=end, wait=result.start - workload.submit_time, metrics=metrics)


def changed(result: Any, **attributes: Any) -> Any:
    return SimpleNamespace(**{**vars(result), **attributes})


def moved(result: Any, job: int, start: int) -> Any:
    """The same result with one job started at another time, consistent in itself otherwise."""
    starts = result.start.copy()
    starts[job] = start
    return consistent(changed(result, start=starts))


def placed(result: Any, job: int, *cells: tuple[int, int]) -> Any:
    """The same result with one job on other nodes."""
    nodes = nodes_of(result)
    nodes[job] = list(cells)
    return changed(result, allocation=allocation_of(nodes))


def nodes_of(result: Any) -> list[list[tuple[int, int]]]:
    first, node, units = vars(result.allocation).values()
    cells = list(zip(node.tolist(), units.tolist(), strict=True))
    return [cells[a:b] for a, b in zip(first[:-1].tolist(), first[1:].tolist(), strict=True)]


def violations(result: Any) -> tuple[str, ...]:
    with pytest.raises(ScheduleError) as caught:
        validate_schedule(result)
    return caught.value.violations


@pytest.fixture
def workload() -> Workload:
    """Job 0 has a GPU until 10 and job 1 waits for both; jobs 2, 3 and 4 can be backfilled.

    EASY:  core 3 of gpu    |2 .|1 1
           core 2 of gpu    |2 4|1 1
           core 1 of gpu    |0 0|. .
           core 0 of gpu    |0 0|. .
           cores of plain   |3 3|3 3 3 3 ...   (one column: 5 s; job 3 begins at 1)
    """
    return workload_of(
        (0, 10, 1, 2, 1), (0, 10, 1, 2, 2), (0, 5, 1, 2, 0), (1, 30, 2, 2, 0), (2, 5, 1, 1, 0)
    )


@pytest.mark.parametrize("backfill", ["none", "easy", "conservative"])
def test_everything_that_applies_is_proved(workload: Workload, backfill: str) -> None:
    more = {
        "none": ("order", "backfilled"),
        "easy": ("reservations", "order", "backfilled"),
        "conservative": ("reservations", "backfilled"),
    }
    result = scheduled(MACHINE, workload, backfill=backfill)
    assert validate_schedule(result) == ALWAYS_OF_RULES + more[backfill]


def test_of_a_dispatcher_nothing_is_proved_that_follows_from_rules() -> None:
    jobs = workload_of((0, 10, 1, 1, 0), (2, 5, 1, 1, 0))
    result = scheduled(MACHINE, jobs)
    assert result.start.tolist() == [0, 2]
    chosen = moved(result, 1, 10)
    assert any("first in the queue, would fit" in line for line in violations(chosen))
    rules = Scheduler(dispatcher="mine", backfill="none")
    assert validate_schedule(changed(chosen, scheduler=rules)) == (*ALWAYS, "energy")


@settings(SLOW, max_examples=200)
@given(node_cases())
def test_every_schedule_of_the_oracle_is_valid(case: Any) -> None:
    cluster, workload, words = case
    proved = validate_schedule(scheduled(cluster, workload, **words))
    assert proved[:5] == ALWAYS[:5]
    never_late = words["correction"] == "kill" or words["estimate"] in ("requested", "clairvoyant")
    if never_late and (words["backfill"], words["policy"]) == ("easy", "fcfs"):
        assert "reservations" in proved
    if never_late and words["backfill"] == "conservative":
        assert "reservations" in proved


@settings(SLOW, max_examples=60)
@given(node_cases(max_jobs=12))
def test_a_job_started_too_early_or_at_no_event_is_always_found(case: Any) -> None:
    cluster, workload, words = case
    result = scheduled(cluster, workload, **words)
    events = {*workload.submit_time.tolist(), *result.end.tolist()}
    looks = words["backfill"].startswith("slurm")  # there passes come by the clock, too
    for job, start in enumerate(result.start.tolist()):
        if start + 1 not in events and not looks:
            violations(moved(result, job, start + 1))
        violations(moved(result, job, int(workload.submit_time[job]) - 1))


@settings(SLOW, max_examples=150)
@given(node_cases(max_jobs=10), st.data())
def test_a_node_that_is_over_used_is_found_as_if_each_second_were_looked_at(
    case: Any, data: st.DataObject
) -> None:
    cluster, workload, words = case
    result = scheduled(cluster, workload, **words)
    job = data.draw(st.integers(0, len(workload) - 1))
    node = data.draw(st.integers(0, cluster.nodes - 1))
    units = int(workload.units[job])  # all on one node
    result = placed(result, job, (node, units))
    needs = np.column_stack(
        [workload.units, *(workload.per_unit[name] for name in cluster.resources)]
    )
    over = []
    for second in np.unique(result.start).tolist():  # only then does use grow
        for place in range(cluster.nodes):
            used = np.zeros(len(cluster.resources), np.int64)
            for other, cells in enumerate(nodes_of(result)):
                if result.start[other] <= second < result.end[other]:
                    used += sum(count * needs[other, 1:] for on, count in cells if on == place)
            over += [
                (place, name)
                for name, amount, has in zip(
                    cluster.resources, used, cluster.capacity[place], strict=True
                )
                if amount > has
            ]
    found = check_nodes(result, needs, result.allocation)
    assert {name for _, name in over} == {
        (line.rpartition(" (and")[0] or line).split()[-1] for line in found
    }
    assert bool(over) == bool(found)


def test_a_resource_that_is_over_used(workload: Workload) -> None:
    result = scheduled(MACHINE, workload, backfill="easy")
    assert nodes_of(result)[0] == [(0, 1)]
    assert violations(placed(result, 0, (1, 1))) == (
        "node 1 over-used: at 1 s running jobs hold 6 of 4 core",
        "node 1 over-used: at 0 s running jobs hold 1 of 0 gpu (and 1 more)",
    )
    result.cluster = Cluster(groups=(replace(MACHINE.groups[0], name="n[7]"), MACHINE.groups[1]))
    assert "node plain over-used" in violations(placed(result, 0, (1, 1)))[0]
    result.cluster = MACHINE
    found = violations(moved(result, 1, 0))
    assert "node 0 over-used: at 0 s running jobs hold 6 of 4 core (and 1 more)" in found
    assert "node 0 over-used: at 0 s running jobs hold 3 of 2 gpu (and 1 more)" in found


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        ([(0, 1)], "job 3 has 1 units on nodes instead of 2"),
        ([(1, 3)], "job 3 has 3 units on nodes instead of 2"),
        ([], "job 3 has 0 units on nodes instead of 2"),
        ([(1, 1), (1, 1)], "job 3 has node 1 twice"),
        ([(1, 1), (2, 1)], "job 3 is on node 2, which is none"),
        ([(1, 1), (-1, 1)], "job 3 is on node -1, which is none"),
        ([(1, 2), (0, 0)], "job 3 has 0 units on node 0"),
    ],
)
def test_wrong_units(workload: Workload, cells: Any, message: str) -> None:
    assert violations(placed(scheduled(MACHINE, workload), 3, *cells)) == (message,)


def test_an_allocation_that_is_none(workload: Workload) -> None:
    result = scheduled(MACHINE, workload)
    assert violations(changed(result, allocation=None)) == (
        "the machine has nodes, but the schedule does not tell who has which",
    )
    short = changed(result, allocation=allocation_of(nodes_of(result)[:-1]))
    (text,) = violations(short)
    assert text.startswith("the allocation of 5 jobs")
    backwards = allocation_of(nodes_of(result))
    backwards.first[2] = 0
    assert violations(changed(result, allocation=backwards))


@pytest.mark.parametrize("backfill", ["none", "easy"])
def test_first_of_the_queue_left_waiting_although_its_units_fit(backfill: str) -> None:
    jobs = workload_of((0, 20, 1, 3, 0), (5, 10, 2, 2, 0))
    result = scheduled(MACHINE, jobs, backfill=backfill, policy="spf")
    assert result.start.tolist() == [0, 5]
    assert violations(moved(result, 1, 20)) == (
        "at 5 s 5 cores are free on nodes and job 1, first in the queue, would fit",
    )


def test_free_cores_on_the_wrong_nodes_are_no_room() -> None:
    # 1 core on each node: 2 are free, but no node holds a unit of 2; and GPUs are all in use
    jobs = workload_of((0, 20, 2, 3, 0), (1, 5, 1, 2, 0))
    assert "order" in validate_schedule(scheduled(MACHINE, jobs))
    jobs = workload_of((0, 20, 1, 1, 2), (1, 5, 1, 2, 1))
    assert "order" in validate_schedule(scheduled(MACHINE, jobs))


@pytest.mark.parametrize("backfill", ["easy", "conservative"])
def test_broken_reservation(workload: Workload, backfill: str) -> None:
    result = scheduled(MACHINE, workload, backfill=backfill)
    reserved = result.reserved_start.copy()
    assert reserved[1] == 10
    reserved[1] = 9
    assert violations(changed(result, reserved_start=reserved)) == (
        "job 1 starts at 10 s although it was promised 9 s",
    )


def test_killed_at_the_prediction(workload: Workload) -> None:
    words = {"estimate": [4, 20, 5, 30, 5], "correction": "kill", "backfill": "easy"}
    result = scheduled(MACHINE, workload, **words)
    assert result.run_time.tolist() == [4, 10, 5, 30, 5]
    assert "reservations" in validate_schedule(result)
    unmarked = changed(result, killed=np.zeros(5, np.bool_))
    assert violations(unmarked) == ("job 0 was killed at its predicted time but is not marked",)
    longer = result.run_time.copy()
    longer[0] = 10
    assert "job 0 has run time 10 s instead of 4 s" in violations(changed(result, run_time=longer))


def test_wrongly_marked_backfilling(workload: Workload) -> None:
    result = scheduled(MACHINE, workload, backfill="easy")
    marks = result.backfilled.copy()
    assert marks.tolist() == [False, False, True, True, True]
    for job in range(5):
        wrong = marks.copy()
        wrong[job] ^= True
        (text,) = violations(changed(result, backfilled=wrong))
        assert f"job {job} " in text
