"""Levels that change while jobs run: schedules are those of the slow simulator."""

from __future__ import annotations

from dataclasses import replace
from itertools import groupby
from typing import Any

import pytest
from drawing import assume, given, settings
from drawing import strategies as st
from limit_strategies import Case, limited, simulate_pool
from slow_levels import ChangingSimulation
from test_limits_against_oracle import check_but_levels

from hpcgym import simulate, validate_schedule
from hpcgym.errors import HpcgymError
from hpcgym.schedule.result import Result
from hpcgym.scheduler.limits import PowerCap

pytestmark = pytest.mark.slow


@st.composite
def changing(draw: st.DrawFn, kinds: str) -> Case:
    case = draw(limited(kinds))
    power = draw(st.sampled_from(["dvfs", "mix"]))
    rules = case.rules | {"power": power, "dvfs_when": "running"}
    if kinds == "none" or draw(st.booleans()):
        return replace(case, rules=rules)
    return replace(case, rules=rules, **draw(tight(case)))


@st.composite
def tight(draw: st.DrawFn, case: Case) -> dict[str, Any]:
    """A machine of three levels that are far apart, and one long cap, so that others go slower."""
    group = case.cluster.groups[0]
    ghz = draw(st.sampled_from([(1.0, 1.6, 2.0), (1.5, 1.6, 2.0)]))
    slowdown = draw(st.sampled_from([1.63, 2.5]))
    power = replace(
        group.power, busy_w=(25.0, 40.0, 90.0), idle_w=20.0, off_w=0.0, frequency_ghz=ghz,
        slowdown=slowdown,
    )  # fmt: skip
    machine = replace(case.cluster, groups=(replace(group, power=power),), levels=())
    first = int(case.workload.submit_time[0])
    last = int(case.workload.submit_time[-1] + 2 * case.workload.run_time.sum())
    begin, end = (draw(st.integers(first, last)) for _ in range(2))
    begin = draw(st.sampled_from([0, min(begin, end)]))
    watts = draw(st.sampled_from([22.0, 25.0, 30.0, 35.0, 45.0, 60.0])) * machine.nodes
    long = PowerCap(watts, begin, max(begin, end) + 1, draw(st.sampled_from([None, begin])))
    limits = draw(st.sampled_from([[], [], case.limits]))
    return {"cluster": machine, "limits": [*limits, long]}


@pytest.mark.parametrize("kinds", ["caps", "switching", "none"])
@settings(max_examples=60)
@given(st.data())
def test_schedules_are_the_slow_simulators(kinds: str, data: st.DataObject) -> None:
    agree(data.draw(changing(kinds)))


def agree(case: Case) -> Result:
    try:
        result = simulate(case.workload, cluster=case.cluster, limits=case.limits, **case.rules)
    except HpcgymError as error:
        assume("can never start" not in str(error) and "all nodes off" not in str(error))
        raise
    slow = simulate_pool(case, ChangingSimulation)
    check_but_levels(result, slow)
    found = [levels_of(job, slow.levels_log) for job in slow.jobs]
    highest = len(slow.m.busy) - 1
    assert result.level_changes is not None
    assert (result.frequency is None) == all(levels == [(0, highest)] for levels in found)
    if result.frequency is not None:
        assert result.frequency.tolist() == [levels[0][1] for levels in found]
    changes = zip(*(column.tolist() for column in result.level_changes), strict=True)
    later = [(j, *change) for j, levels in enumerate(found) for change in levels[1:]]
    assert list(changes) == later
    validate_schedule(result)
    return result


def levels_of(job: Any, log: list[tuple[int, int, int]]) -> list[tuple[int, int]]:
    """The level at which a job begins, with a 0 for the time, and its changes (time, level)."""
    own = [(time, level) for number, time, level in log if number == job.number]
    begin = [level for time, level in own if time <= job.start][-1]
    levels = [(0, begin), *((time, level) for time, level in own if time > job.start)]
    return [next(same) for _, same in groupby(levels, key=lambda one: one[1])]
