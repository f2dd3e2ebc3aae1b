"""Schedules under limits are proved valid; broken ones are told."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from drawing import assume, given, settings
from limit_strategies import Case, limited

import hpcgym
from hpcgym import simulate, validate_schedule
from hpcgym.cluster import Cluster, NodeGroup, NodePower
from hpcgym.errors import HpcgymError
from hpcgym.schedule.result import Result
from hpcgym.schedule.runs import NodeStates
from hpcgym.scheduler.limits import EnergyBudget, PowerCap
from hpcgym.validation.validate import ScheduleError

POWER = NodePower(100, [150, 200], 10, [1, 2], 1.5, shutdown_time_s=5, boot_time_s=20)
MACHINE = Cluster(groups=(NodeGroup("node", 16, {"core": 4}, POWER),))
JOBS = hpcgym.load_workload("lublin:jobs=300,processors=64,seed=2,load=1.2")
BEGIN, END = 20_000, 60_000


def test_nodes_of_a_second_cap_begin_to_switch_off_while_the_first_lasts() -> None:
    """A pass comes then, at 31,625 s, though no node does: those are off already."""
    power = NodePower(96.7, 399.3, 10, shutdown_time_s=4, boot_time_s=69)
    machine = Cluster(groups=(NodeGroup("a", 10, {"core": 7}, power),))
    workload = hpcgym.load_workload("lublin:jobs=150,processors=70,seed=683968,load=0.96")
    caps = PowerCap(1440.9, 21266, 35825), PowerCap(1329.6, 31629, 62266)
    rules = {"power": "shut", "threshold": 29818}
    result = simulate(workload, "saf", cluster=machine, limits=caps, **rules)
    assert (result.start == 31625).any()
    validate_schedule(result)


@settings(max_examples=150)
@given(limited("caps switching budgets both"))
def test_random_schedules_are_valid(case: Case) -> None:
    """Kills, switching, frequencies, caps and budgets mixed."""
    try:
        result = simulate(case.workload, cluster=case.cluster, limits=case.limits, **case.rules)
    except HpcgymError as error:
        assume("can never start" not in str(error) and "all nodes off" not in str(error))
        raise
    proved = validate_schedule(result)
    assert {"alone", "levels", "caps", "budgets"} <= set(proved)


def test_a_node_that_draws_more_once_it_is_off_is_no_start() -> None:
    """The second job ends at 290 s: its nodes switch off at 0 W, and are off at 10 W a node."""
    power = NodePower(10, [50], 10, shutdown_time_s=1, boot_time_s=0, shutdown_w=0)
    group = NodeGroup("node", 4, {"core": 1}, power)
    cluster = Cluster(groups=(group,), shutdown_after_s=0)
    columns = {"submit_time": [0, 0], "run_time": [400, 290], "requested_processors": [3, 1]}
    jobs = hpcgym.Workload.from_columns(
        {**columns, "requested_time": columns["run_time"]}, processors=4, name="by hand"
    )
    cap = PowerCap(155, 281, 292, announced=281)
    result = simulate(jobs, cluster=cluster, limits=[cap], power="none")
    watts = result.power.set_index("time").watts
    assert (watts[0], watts[290], watts[291]) == (200, 150, 160)
    assert result.metrics["cap_exceeded_s"] == 10
    assert "caps" in validate_schedule(result)


# --- Broken schedules are told ------------------------------------------------------------------


def capped(**rules: Any) -> Result:
    cap = PowerCap.of(MACHINE, 0.65, BEGIN, end=END)
    result = simulate(JOBS, cluster=MACHINE, limits=[cap], **rules)
    validate_schedule(result)
    return result


def told(result: Result, **changes: Any) -> str:
    with pytest.raises(ScheduleError) as error:
        validate_schedule(replace(result, **changes))
    return str(error.value)


def test_a_cap_that_is_exceeded() -> None:
    result = capped()
    assert "above the cap of 1 W" in told(result, limits=(PowerCap(1, BEGIN, END),))
    least = result.power[result.power.time.between(BEGIN, END - 1)].watts
    lower = PowerCap(least.max() - 1, BEGIN, END)
    assert "above the cap of" in told(result, limits=(lower,))
    fast = replace(capped(power="dvfs"), frequency=None)
    assert "instead of" in told(fast)  # run times are those at lower levels


def test_a_level_that_the_rule_does_not_use() -> None:
    result = capped(power="dvfs")
    rules = replace(result.scheduler, power="shut")
    assert "runs at level 0, which 'shut' does not use" in told(result, scheduler=rules)


def test_jobs_that_share_a_node() -> None:
    result = capped()
    assert result.allocation is not None
    first, node, units = result.allocation
    long = int(result.run_time.argmax())
    beside = (result.start > result.start[long]) & (result.start < result.end[long])
    moved = node.copy()
    moved[first[int(beside.argmax())]] = moved[first[long]]
    assert "runs on a node of job" in told(
        result, allocation=type(result.allocation)(first, moved, units)
    )


def test_a_start_for_no_reason() -> None:
    result = capped()
    last = result.start.argmax()
    start = result.start.copy()
    start[last] += 7
    assert "when nothing happens" in told(result, start=start)


def test_a_budget_that_is_exceeded() -> None:
    budget = EnergyBudget.of(MACHINE, 0.65, BEGIN, END)
    result = simulate(JOBS, cluster=MACHINE, limits=budget, power="energy-bud")
    validate_schedule(result)
    least = EnergyBudget.of(MACHINE, 0.51, BEGIN, END)
    assert "of a budget of" in told(result, limits=(least,))


def test_a_killed_job_ends_when_a_cap_kills() -> None:
    cap = PowerCap.of(MACHINE, 0.55, BEGIN, end=END, announced=BEGIN, kills=True)
    result = simulate(JOBS, cluster=MACHINE, limits=[cap])
    validate_schedule(result)
    killed = np.flatnonzero(result.killed & ~JOBS.killed & (result.end == BEGIN))
    assert killed.size
    run = result.run_time.copy()
    run[killed[0]] -= 1
    assert "run time" in told(result, run_time=run)


def test_a_job_on_a_node_that_is_off() -> None:
    result = capped(power="shut")
    assert result.node_states is not None
    assert result.allocation is not None
    job = int(np.flatnonzero(result.start > END)[0])
    node = int(result.allocation.node[result.allocation.first[job]])
    begin, end = int(result.start[job]), int(result.end[job])
    states = result.node_states
    other = NodeStates(
        np.append(states.node, node),
        np.append(states.state, 0),
        np.append(states.begin, begin),
        np.append(states.end, end),
    )
    assert "while it is not on" in told(result, node_states=other)
