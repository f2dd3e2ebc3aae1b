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
            violations(moved(result, job, start + 1))
        violations(moved(result, job, int(workload.submit_time[job]) - 1))


def first_cells_behind(result: Result) -> Result:
    held = result.allocation
    assert held is not None
    return replace(
        result, allocation=held._replace(first=np.where(np.arange(6) == 2, 0, held.first))
    )


# --- Broken schedules are told: the jobs, their rules, what is changed, and all that is said ------


def changed(column: str, more: list[int]) -> Callable[[Result], Result]:
    """Add to a column of all jobs: of the result, or of its jobs."""

    def change(result: Result) -> Result:
        if column in result.workload.columns:
            values = result.workload.columns[column] + more
            return replace(result, workload=result.workload.with_columns(**{column: values}))
        return replace(result, **{column: getattr(result, column) + more})

    return change


FOUR, FIVE = four(array=[3] * 4), five()
OF_ONE = five(submit=[0, 0, 1, 6, 7], wait_time=[0, 0, 9, 0, 0], user_id=[1] * 5).extract(5)
RAN = [10, 20, 5, 5]
CLOSES = few_jobs(4, [0, 6, 7], [20, 5, 4], [2, 1, 1], wait_time=[0] * 3).extract(5)
CHAIN = chain(think_time=[-1, 3, 4])
HELD = {"share": 0.5, "from_s": 10, "factor": 100, "erode_s": 100}
PAUSED = few_jobs(2, [0, 5], [6, 5], [1, 2], queue=[1, 2])
REQUEUES, SUSPENDS = {"preemption": "queue:2>1"}, {"preemption": "queue:2>1,suspend"}
RESTRICTED: dict[str, tuple[Workload, dict[str, Any], Any, list[str]]] = {
    "a job that waits without need": (
        *(few_jobs(10, [0, 0], [20, 100], [5, 4]), {"backfill": "none", "hold": HELD}),
        *(under(hold={**HELD, "share": 0.1}), ["first in the queue, would fit"]),
    ),
    "a quota": (
        *(FOUR, {"quota": "array:jobs=2"}, under(quota="array:jobs=1")),
        ["quota array:jobs=1: at 0 s 2 jobs run"],
    ),
    "a quota in an extract": (
        four(submit=[0, 0, 6, 7], wait_time=[0] * 4, run=RAN, requested=RAN).extract(5),
        *({"quota": "user:jobs=1"}, changed("start", [0, 0, -1, 0])),
        ["quota user:jobs=1: at 19 s 2 jobs run"],
    ),
    "submitted too early": (
        *(FIVE, {"quota": "user:submitted=2"}, under(quota="user:submitted=1")),
        [
            "quota user:submitted=1: at 1 s 2 jobs run or wait",
            "job 2 is submitted at 1 s, and should be at 10 s",
        ],
    ),
    "submitted too early by an unknown log": (
        *(FIVE, {"quota": "user:submitted=2"}),
        lambda result: replace(under(quota="user:submitted=1")(result), given=None),
        ["quota user:submitted=1: at 1 s 2 jobs run or wait"],
    ),
    "submitted too late": (
        *(FIVE, {"quota": "user:submitted=2"}, under(quota="user:submitted=3")),
        ["job 4 is submitted at 10 s, and should be at 2 s"],
    ),
    "submitted in an extract": (
        *(OF_ONE, {"quota": "user:submitted=2", "processors": 2}),
        *(changed("submit_time", [0, 0, 0, -1, 0]), ["at 19 s 3 jobs run or wait"]),
    ),
    **{
        f"a window {window}": (three(), where, under(maintenance=window), [text])
        for window, where, text in (
            ("9/12", {}, "job 0 runs from 0 s to 10 s, within the window 9/12 (and 2 more)"),
            ("3/4:processors=1", {}, "at 3 s jobs and windows hold 5 of 4 processors"),
            (
                *("9/12:nodes=1", {"cluster": "3x1x2"}),
                "job 1 runs from 1 s to 11 s, within the window",
            ),
        )
    },
    "a window in an extract": (
        *(CLOSES, {"maintenance": "10/30"}, changed("start", [0, -21, -23])),
        ["job 1 runs from 9 s to 14 s, within the window"],
    ),
    "before the other has ended": (
        *(CHAIN, {}, under(dependencies="after")),
        ["job 1 is submitted at 1 s, and may not be before 13 s"],
    ),
    "later than the user thinks": (
        *(CHAIN, {"dependencies": "after"}, under(dependencies="closed-loop")),
        ["job 2 is submitted at 40 s, and should be at 27 s"],
    ),
    "before both others have ended": (
        replace(
            CHAIN.with_columns(preceding_job=[-1, -1, 5], submit_time=[0, 0, 1]),
            more_preceding=pairs_of([[9, 7]], ""),
        ),
        *({"dependencies": "after"}, changed("submit_time", [0, 0, -1])),
        ["job 2 is submitted at 13 s, and may not be before 14 s"],
    ),
    "who is exempt": (
        urgent(requested_processors=[1, 2, 1, 2]),
        *({"preemption": "queue:2>1,exempt=5"}, under(preemption="queue:2>1,exempt=6")),
        ["job 1 is stopped after 5 s; it is exempt for 6 s"],
    ),
    **{
        f"stopped by {rule}": (urgent(), REQUEUES, under(preemption=rule), [text])
        for rule, text in (
            ("queue:1>2", "job 1 is stopped at 2 s, when no job that may stop it"),
            ("queue:2>1,cancel", "was stopped, and not cancelled"),
            ("queue:2>1,grace=2", "job 1 has grace time from 0 s on, when no job that may stop it"),
            ("queue:2>1,grace=3", "job 1 has grace time from -1 s on, before it starts"),
        )
    },
    "a lost run that is longer": (
        *(urgent(), REQUEUES),
        lambda result: replace(result, lost=result.lost._replace(end=result.lost.end + 1)),
        ["processors over-used"],
    ),
    **{
        text: (urgent(), SUSPENDS, change, [text])
        for change, text in (
            (changed("suspended", [0, 1, 0, 0]), "job 1 is still suspended at 7 s, when it fits"),
            (changed("suspended", [0, -1, 0, 0]), "processors over-used"),
            (changed("suspended", [1, 0, 0, 0]), "job 0 was suspended for 1 s"),
            (
                lambda result: replace(
                    result, pieces=result.pieces._replace(start=result.pieces.start - np.arange(2))
                ),
                "job 2 starts at 1 s, its fir",
            ),
            (lambda result: replace(result, pieces=None), "not tell which runs other jobs ended"),
        )
    },
    "suspended for less than no time": (
        *(PAUSED, SUSPENDS, changed("suspended", [-6, 0])),
        ["job 0 was suspended for -1 s"],
    ),
    "suspended when it has run": (
        *(PAUSED, SUSPENDS),
        lambda result: replace(
            changed("start", [0, 1])(result),
            pieces=result.pieces._replace(end=result.pieces.end + 1),
        ),
        ["job 0 has run for 6 s when it goes on for the last time, of 6 s"],
    ),
}
#: One entry of a column is changed: the jobs, their rules, column, job and value, what is told.
ENTRIES: list[tuple[Workload, dict[str, Any], str, int, Any, str]] = [
    (POOL, {}, "run_time", 4, 60, "job 4 has run time 60 s instead of 30 s"),
    (POOL, {}, "end", 4, 160, "job 4 ends at 160 s although it starts at 100 s and runs 30 s"),
    (POOL, {}, "wait", 4, 0,
     "job 4 has wait 0 s although it is submitted at 20 s and starts at 100 s"),
    (POOL, {}, "predicted_run_time", 4, 60, "job 4 is predicted to run 60 s instead of 30 s"),
    (POOL, {"estimate": "clairvoyant"}, "predicted_run_time", 1, 60,
     "job 1 is predicted to run 60 s instead of 50 s"),
    (POOL, {"estimate": "ave2"}, "predicted_run_time", 1, 61,
     "job 1 is predicted to run 61 s although it requests 60 s"),
    (POOL, {}, "reserved_start", 1, 49, "job 1 starts at 50 s although it was promised 49 s"),
    (POOL, {"backfill": "none"}, "reserved_start", 1, 50,
     "job 1 is promised a start without backfilling"),
    (POOL, {"backfill": "none"}, "backfilled", 1, True,
     "job 1 is marked as backfilled without backfilling"),
    (POOL, {"backfill": "conservative"}, "reserved_start", 2, -1,
     "job 2 has no reservation under conservative backfilling"),
    (POOL, {}, "backfilled", 3, False, "job 3 starts ahead of the queue but is not marked"),
    (POOL, {}, "backfilled", 4, True, "job 4 is marked as backfilled but overtakes no job"),
    (NODES, {"estimate": [4, 20, 5, 30, 5], "correction": "kill"}, "killed", 0, False,
     "job 0 was killed at its predicted time but is not marked"),
]  # fmt: skip
BROKEN: dict[str, tuple[Workload, dict[str, Any], Any, list[str]]] = {
    "a column is too short": (
        *(POOL, {}, lambda result: replace(result, backfilled=result.backfilled[:-1])),
        ["backfilled has shape (4,), the workload (5,)"],
    ),
    "a start that is no number": (
        *(
            POOL,
            {},
            lambda result: replace(result, start=np.where([1, 0, 0, 0, 0], np.nan, result.start)),
        ),
        [f"{name} has a value that is no number" for name in ("start", "end", "wait")],
    ),
    "marks of killed jobs": (
        *(POOL, {}, lambda result: entry("killed", slice(None), ~result.killed)(result)),
        [
            "job 0 is marked as killed but ran to its own end (and 3 more)",
            "job 4 was killed at its requested time but is not marked",
        ],
    ),
    "killed when the log was cleaned": (
        *(replace(POOL, killed=np.arange(5) == 1), {}, entry("killed", 1, False)),
        ["job 1 was killed at its requested time but is not marked"],
    ),
    "a promise too early": (
        *(POOL, {"backfill": "conservative"}, entry("reserved_start", 4, 19)),
        [
            "job 4 is promised 19 s, before its submission at 20 s",
            "job 4 starts at 100 s although it was promised 19 s",
        ],
    ),
    "too early, where too much runs": (
        *(POOL, {}, lambda result: moved(result, 3, 0)),
        [
            "job 3 starts at 0 s, before its submission at 10 s",
            "processors over-used: at 0 s running jobs hold 5 of 4 (and 1 more)",
        ],
    ),
    "at no event": (
        *(POOL, {}, lambda result: moved(result, 4, 105)),
        [
            "job 4 starts at 105 s, when no job is submitted or ends",
            "the machine is idle at 100 s although jobs wait (1)",
        ],
    ),
    "cells before they begin": (
        *(NODES, {}, first_cells_behind),
        ["the cells of job 1 end before they begin"],
    ),
    "nobody's nodes": (
        *(NODES, {}, lambda result: replace(result, allocation=None)),
        ["the machine has nodes, but the schedule does not tell which jobs have which"],
    ),
    "a resource that is over-used": (
        *(NODES, {}, lambda result: placed(result, 0, (1, 1))),
        [
            "node 1 over-used: at 1 s running jobs hold 6 of 4 core",
            "node 1 over-used: at 0 s running jobs hold 1 of 0 gpu (and 1 more)",
        ],
    ),
    **{
        f"units {cells}": (NODES, {}, lambda result, cells=cells: placed(result, 3, *cells), [text])
        for cells, text in (
            (((0, 1),), "job 3 has 1 units on nodes instead of 2"),
            (((1, 3),), "job 3 has 3 units on nodes instead of 2"),
            ((), "job 3 has 0 units on nodes instead of 2"),
            (((1, 1), (1, 1)), "job 3 has node 1 twice"),
            (((1, 1), (2, 1)), "job 3 is on node 2, which does not exist"),
            (((1, 1), (-1, 1)), "job 3 is on node -1, which does not exist"),
            (((1, 2), (0, 0)), "job 3 has 0 units on node 0"),
        )
    },
    **{
        f"the first of the queue on {what} under {rules}": (
            *(jobs, {"policy": "spf", **rules}, lambda result: moved(result, 1, 20)),
            [f"at 5 s {what} and job 1, first in the queue, would fit"],
        )
        for jobs, what in (
            (few_jobs(2, [0, 5], [20, 10], [1, 1]), "1 processors are free"),
            (on_nodes((0, 20, 1, 3, 0), (5, 10, 2, 2, 0)), "5 cores are free on nodes"),
        )
        for backfill in ("none", "easy")
        for rules in (
            {"backfill": backfill},
            *([{"backfill": backfill, "passes": "per-event"}] if jobs.units is None else ()),
        )
    },
    **RESTRICTED,
    **{text: (jobs, rules, entry(*where), [text]) for jobs, rules, *where, text in ENTRIES},
    **{
        name: (POOL, {"backfill": "none"}, lambda result, name=name: wrong_metric(result, name), [])
        for name in ("makespan_s", "energy_idle_j", "energy_busy_j", "energy_j")
    },
}


def wrong_metric(result: Result, name: str) -> Result:
    changed = replace(result)
    vars(changed)["metrics"] = result.metrics | {name: result.metrics[name] + 1}
    return changed


@pytest.mark.parametrize("name", BROKEN)
def test_what_is_broken_is_told(name: str) -> None:
    jobs, words, change, texts = BROKEN[name]
    result = scheduled(jobs, **words)
    validate_schedule(result)
    broken = violations(change(result))
    assert all(any(text in line for line in broken) for text in texts)
    assert texts or [line.split()[0] for line in broken] == [name]


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


def test_a_node_is_called_by_its_name() -> None:
    groups = (replace(MACHINE.groups[0], name="n[7]"), MACHINE.groups[1])
    result = replace(scheduled(NODES), cluster=Cluster(groups=groups))
    assert "node plain over-used" in violations(placed(result, 0, (1, 1)))[0]


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
KILLS = PowerCap.of(SIXTEEN, 0.55, BEGIN, end=END, announced=BEGIN, kills=True)
BUDGET = EnergyBudget.of(SIXTEEN, 0.65, BEGIN, END)
LOWER = EnergyBudget.of(SIXTEEN, 0.51, BEGIN, END)


@pytest.mark.parametrize(
    ("limit", "power", "change", "text"),
    [
        (CAP, None, under_a_lower_cap, "above the cap of"),
        (CAP, "dvfs", lambda result: replace(result, frequency=None), "instead of"),
        (
            *(CAP, "dvfs"),
            lambda result: replace(result, scheduler=replace(result.scheduler, power="shut")),
            "runs at level 0, which 'shut' does not use",
        ),
        (CAP, None, beside_another, "runs on a node of job"),
        (
            *(CAP, None),
            lambda result: moved(result, int(result.start.argmax()), int(result.start.max()) + 7),
            "when nothing happens",
        ),
        (BUDGET, "energy-bud", lambda result: replace(result, limits=(LOWER,)), "of a budget of"),
        (KILLS, None, killed_too_early, "run time"),
        (CAP, "shut", on_a_node_that_is_off, "while it is not on"),
    ],
)
def test_what_is_broken_under_limits_is_told(
    limit: Any, power: str | None, change: Any, text: str
) -> None:
    rules = {} if power is None else {"power": power}
    result = hpcgym.simulate(JOBS, cluster=SIXTEEN, limits=[limit], **rules)
    validate_schedule(result)
    assert text in "; ".join(violations(change(result)))
