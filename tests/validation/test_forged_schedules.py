"""validate_schedule finds what breaks schedules on pools, on nodes and under limits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from drawing import given, settings
from drawing import strategies as st
from few_jobs import chain, few_jobs, five, four, three
from mistakes import mistakes_of
from node_strategies import node_cases
from preemption_strategies import urgent
from proofs import MACHINE, NODES, POOL, entry, moved, on_nodes, scheduled, under, violations
from restrictions import bounds, with_numbers
from strategies import cases
from submission_strategies import chains

import hpcgym
from hpcgym.machine import Cluster, NodeGroup, NodePower
from hpcgym.schedule.result import Result
from hpcgym.schedule.runs import Allocation, NodeStates
from hpcgym.scheduler.limits import EnergyBudget, PowerCap
from hpcgym.validation.passes import check_nodes
from hpcgym.validation.restrictions import check_dependencies, check_submitted
from hpcgym.validation.validate import validate_schedule
from hpcgym.workload.model import Workload, pairs_of
from hpcgym.workload.needs import needs_of


def nodes_of(result: Result) -> list[list[tuple[int, int]]]:
    held = result.allocation
    assert held is not None
    cells = list(zip(held.node.tolist(), held.units.tolist(), strict=True))
    return [cells[a:b] for a, b in zip(held.first[:-1], held.first[1:], strict=True)]


def placed(result: Result, job: int, *cells: tuple[int, int]) -> Result:
    """The same result with one job on other nodes."""
    nodes = nodes_of(result)
    nodes[job] = list(cells)
    node, units = np.array([cell for held in nodes for cell in held], np.int32).reshape(-1, 2).T
    first = np.cumsum([0, *map(len, nodes)])
    return replace(result, allocation=Allocation(first, node, units))


@settings(max_examples=160)
@given(st.one_of(cases().map(lambda case: (None, *case)), node_cases(max_jobs=12)))
def test_a_job_started_too_early_or_at_no_event_is_always_found(case: Any) -> None:
    cluster, workload, words = case
    result = hpcgym.simulate(workload, cluster=cluster, **words)
    proved = validate_schedule(result)
    if words["correction"] == "kill" or words["estimate"] in ("requested", "clairvoyant"):
        kept = words["backfill"] == "conservative"
        kept |= cluster is not None and (words["backfill"], words["policy"]) == ("easy", "fcfs")
        assert "reservations" in proved or not kept
    events = {*workload.submit_time.tolist(), *result.end.tolist()}
    slurm = result.scheduler.reserve.slurm
    for job, start in enumerate(result.start.tolist()):
        by_clock = slurm is not None and (
            cluster is not None
            or (start + 1) % slurm.bf_interval == 0
            or (start + 1) % slurm.sched_interval == 0
        )
        if start + 1 not in events and not by_clock:
            assert violations(moved(result, job, start + 1))
        assert violations(moved(result, job, int(workload.submit_time[job]) - 1))


def first_cells_behind(result: Result) -> Result:
    held = result.allocation
    assert held is not None
    return replace(
        result, allocation=held._replace(first=np.where(np.arange(6) == 2, 0, held.first))
    )


# --- What mistakes.txt says of broken schedules ---------------------------------------------------


def forged(jobs: Workload, change: Callable[[Result], Result], *args: Any, **rules: Any) -> Any:
    """Prove what the simulator has made of jobs, and then a change of it, which is to fail."""
    result = scheduled(jobs, *args, **rules)
    validate_schedule(result)
    return validate_schedule(change(result))


def more(column: str, values: list[int]) -> Callable[[Result], Result]:
    """Add to a column of all jobs: of the result, or of its jobs."""

    def change(result: Result) -> Result:
        if column in result.workload.columns:
            moved = {column: result.workload.columns[column] + values}
            return replace(result, workload=result.workload.with_columns(**moved))
        return replace(result, **{column: getattr(result, column) + values})

    return change


def starting(job: int, start: int) -> Callable[[Result], Result]:
    return lambda result: moved(result, job, start)


def later_by_one(result: Result) -> Result:
    """Let the second job start a second later, and what was suspended run for one more."""
    pieces = result.pieces
    assert pieces is not None
    return replace(more("start", [0, 1])(result), pieces=pieces._replace(end=pieces.end + 1))


def wrong_metric(name: str) -> Callable[[Result], Result]:
    def change(result: Result) -> Result:
        changed = replace(result)
        vars(changed)["metrics"] = result.metrics | {name: result.metrics[name] + 1}
        return changed

    return change


CALLED = Cluster(groups=(replace(MACHINE.groups[0], name="n[7]"), MACHINE.groups[1]))
FIRST = few_jobs(2, [0, 5], [20, 10], [1, 1])
FOUR, FIVE = four(array=[3] * 4), five()
OF_ONE = five(submit=[0, 0, 1, 6, 7], wait_time=[0, 0, 9, 0, 0], user_id=[1] * 5).extract(5)
RAN = [10, 20, 5, 5]
CHAIN = chain(think_time=[-1, 3, 4])
AFTER_TWO = replace(
    CHAIN.with_columns(preceding_job=[-1, -1, 5], submit_time=[0, 0, 1]),
    more_preceding=pairs_of([[9, 7]], ""),
)
HELD = {"share": 0.5, "from_s": 10, "factor": 100, "erode_s": 100}
PAUSED = few_jobs(2, [0, 5], [6, 5], [1, 2], queue=[1, 2])


def submitted_at_another_time(result: Result, job: int, by: int) -> tuple[Result, int]:
    """Return the schedule with a job that comes so much later, and when."""
    submit = result.workload.submit_time.copy()
    submit[job] += by
    moved = {**result.workload.columns, "submit_time": submit}
    return replace(result, workload=replace(result.workload, columns=moved)), int(submit[job])


@given(st.data(), cases(), st.integers(-3, 3).filter(bool), st.booleans())
@pytest.mark.filterwarnings("ignore:.*no job f")
def test_any_job_that_comes_at_another_time_is_found(
    data: st.DataObject, case: tuple[Workload, Any], by: int, known: bool
) -> None:
    jobs = with_numbers(case[0], data.draw(st.lists(st.integers(1, 2), min_size=1, max_size=5)))
    result = hpcgym.simulate(jobs, quota=data.draw(bounds(jobs))[0])
    job = data.draw(st.integers(0, len(jobs) - 1))
    assert check_submitted(result) == []
    wrong, at = submitted_at_another_time(result, job, by)
    text = f"job {job} is submitted at {at} s, and should be at {at - by} s"
    assert any(text in violation for violation in check_submitted(wrong))

    jobs, dependencies, follows = data.draw(chains(case[0]))
    result = hpcgym.simulate(jobs, "easy", dependencies=dependencies)
    if not known:  # then those that follow none, or come late with "after", prove nothing
        result = replace(result, given=None)
    assert check_dependencies(result) == []
    wrong, at = submitted_at_another_time(result, job, by)
    broken = check_dependencies(wrong)
    if known:
        assert len(broken) == 1
        assert f"job {job} is submitted at {at} s" in broken[0]
    elif by < 0 and dependencies == "closed-loop":
        row = int(result.workload.job_number[job]) - 1
        think = follows[row][1] if row in follows else 0
        # think times that the log does not tell prove only that no job comes before others end
        is_known = jobs.think_time[row] >= 0 or think + by < 0
        assert bool(broken) == (row in follows and is_known)


@settings(max_examples=150)
@given(node_cases(max_jobs=10), st.data())
def test_a_node_that_is_over_used_is_found_as_if_each_second_were_looked_at(
    case: Any, data: st.DataObject
) -> None:
    cluster, workload, words = case
    result = hpcgym.simulate(workload, cluster=cluster, **words)
    job = data.draw(st.integers(0, len(workload) - 1))
    node = data.draw(st.integers(0, cluster.nodes - 1))
    needs = needs_of(workload, cluster.resources)
    result = placed(result, job, (node, int(needs[job, 0])))  # all on one node
    over = []
    for second in np.unique(result.start).tolist():  # only then does use grow
        for place in range(cluster.nodes):
            used = np.zeros(len(cluster.resources), np.int64)
            for other, cells in enumerate(nodes_of(result)):
                if result.start[other] <= second < result.end[other]:
                    used += sum(count * needs[other, 1:-1] for on, count in cells if on == place)
            has = zip(cluster.resources, used, cluster.capacity[place], strict=True)
            over += [(place, name) for name, amount, most in has if amount > most]
    assert result.allocation is not None
    broken = check_nodes(result, needs, result.allocation)
    nodes_over = {(line.rpartition(" (and")[0] or line).split()[-1] for line in broken}
    assert {name for _, name in over} == nodes_over
    assert bool(over) == bool(broken)


def test_suspended_jobs_go_on_where_they_ran() -> None:
    jobs = few_jobs(2, [0, 0, 5, 5], [20, 20, 5, 5], [1] * 4, queue=[1, 1, 2, 2])
    result = hpcgym.simulate(jobs, cluster="2x1x1", preemption="queue:2>1,suspend")
    assert {"runs", "preemption"} <= {*validate_schedule(result)}
    pieces = result.pieces
    assert pieces is not None
    swapped = replace(result, pieces=pieces._replace(node=1 - pieces.node))
    text = "job 0 goes on on other nodes than those on which it was suspended"
    assert text in violations(swapped)


# --- Under limits ---------------------------------------------------------------------------------

POWER = NodePower(100, [150, 200], 10, [1, 2], 1.5, shutdown_time_s=5, boot_time_s=20)
SIXTEEN = Cluster(groups=(NodeGroup("node", 16, {"core": 4}, POWER),))
JOBS = hpcgym.load_workload("lublin:jobs=300,processors=64,seed=2,load=1.2")
BEGIN, END = 20_000, 60_000


def beside_another(result: Result) -> Result:
    """Put a job on a node of one that runs."""
    held = result.allocation
    assert held is not None
    long = int(result.run_time.argmax())
    beside = (result.start > result.start[long]) & (result.start < result.end[long])
    node = held.node.copy()
    node[held.first[int(beside.argmax())]] = node[held.first[long]]
    return replace(result, allocation=held._replace(node=node))


def killed_too_early(result: Result) -> Result:
    killed = np.flatnonzero(result.killed & ~JOBS.killed & (result.end == BEGIN))
    assert killed.size
    run = result.run_time.copy()
    run[killed[0]] -= 1
    return replace(result, run_time=run)


def on_a_node_that_is_off(result: Result) -> Result:
    states, held = result.node_states, result.allocation
    assert states is not None
    assert held is not None
    job = int(np.flatnonzero(result.start > END)[0])
    row = (int(held.node[held.first[job]]), 0, int(result.start[job]), int(result.end[job]))
    columns = (states.node, states.state, states.begin, states.end)
    return replace(result, node_states=NodeStates(*map(np.append, columns, row)))


def under_a_lower_cap(result: Result) -> Result:
    least = result.power[result.power.time.between(BEGIN, END - 1)].watts
    return replace(result, limits=(PowerCap(least.max() - 1, BEGIN, END),))


CAP = PowerCap.of(SIXTEEN, 0.65, BEGIN, end=END)


def forged_under(limit: Any, change: Callable[[Result], Result], **rules: Any) -> Any:
    """Prove a schedule under a limit, and then a change of it, which is to fail."""
    return forged(JOBS, change, cluster=SIXTEEN, limits=[limit], **rules)


test_mistakes = mistakes_of(
    globals(), EnergyBudget, NODES, POOL, entry, on_nodes, three, under, urgent
)
