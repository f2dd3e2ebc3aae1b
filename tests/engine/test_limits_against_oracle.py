"""Schedules under limits are those of the slow simulator, to the second and the node."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from drawing import assume, given, settings
from drawing import strategies as st
from limit_strategies import Case, extracted, limited, simulate_pool
from slow_limits import LimitedSimulation
from strategies import predictions

from hpcgym import simulate, validate_schedule
from hpcgym.errors import HpcgymError
from hpcgym.schedule.result import Result
from hpcgym.schedule.runs import STATE_NAMES

CODES = {"off": "off", "shutting": "switching_off", "booting": "switching_on"}


@pytest.mark.parametrize("kinds", ["none", "caps", "switching", "budgets", "both"])
@settings(max_examples=60)
@given(st.data())
def test_schedules_are_the_slow_simulators(kinds: str, data: st.DataObject) -> None:
    agree(data.draw(limited(kinds)))


@pytest.mark.parametrize("kinds", ["none", "caps", "switching", "budgets", "both"])
@settings(max_examples=40)
@given(st.data())
def test_predictions_that_kill(kinds: str, data: st.DataObject) -> None:
    case = data.draw(limited(kinds))
    known = st.one_of(st.sampled_from(["ave1", "ave2"]), predictions(case.workload))
    case.rules |= {"correction": "kill", "estimate": data.draw(known)}
    agree(case)


@pytest.mark.parametrize("kinds", ["none", "caps", "switching", "budgets", "both"])
@settings(max_examples=60)
@given(st.data())
def test_extracts(kinds: str, data: st.DataObject) -> None:
    """Jobs that run at the beginning have the lowest nodes, all of which are on."""
    cases = extracted(data, data.draw(limited(kinds)))
    if cases is None:
        return
    whole, part, extract = cases
    result = simulated(part)
    try:
        slow = simulate_pool(whole, extract=extract)
    except HpcgymError as error:  # of a job that had ended before
        assume("can never start" not in str(error))
        raise
    check_same(result, slow)
    validate_schedule(result)


def agree(case: Case) -> None:
    check_same(simulated(case), simulate_pool(case))


def simulated(case: Case) -> Result:
    try:
        return simulate(case.workload, cluster=case.cluster, limits=case.limits, **case.rules)
    except HpcgymError as error:
        assume("can never start" not in str(error) and "all nodes off" not in str(error))
        raise


def check_same(result: Result, slow: LimitedSimulation) -> None:
    jobs = sorted(slow.jobs, key=lambda job: (job.submit, job.number))  # as they came
    levels = [job.level for job in jobs]
    highest = len(slow.m.busy) - 1
    assert (result.frequency is None) == (min(levels) == highest)
    if result.frequency is not None:
        assert result.frequency.tolist() == levels
    assert result.workload.submit_time.tolist() == [job.submit for job in jobs]
    assert result.start.tolist() == [job.start for job in jobs]
    assert result.end.tolist() == [job.end for job in jobs]
    assert result.predicted_run_time.tolist() == [job.predicted for job in jobs]
    assert result.reserved_start.tolist() == [job.reserved_start for job in jobs]
    assert result.backfilled.tolist() == [job.backfilled for job in jobs]
    assert result.allocation is not None
    first, node, _ = result.allocation
    for job, (begin, end) in enumerate(pairwise(first)):
        assert node[begin:end].tolist() == list(jobs[job].cells)
    intervals = sorted((n, CODES[state], begin, end) for n, state, begin, end in slow.intervals)
    states = result.node_states
    if states is None:
        assert intervals == []
    else:
        rows = zip(*(np.asarray(c).tolist() for c in vars(states).values()), strict=True)
        assert sorted((n, STATE_NAMES[code], b, e) for n, code, b, e in rows) == intervals
