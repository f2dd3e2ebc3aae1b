"""Cases of predictions that are learned, and what compares them with the slow ones."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from drawing import strategies as st
from predictors import CompiledRegression, Crooked
from strategies import POLICY, workloads

from hpcgym import load_workload
from hpcgym.reference.jobs import jobs_of
from hpcgym.reference.pool import Simulation
from hpcgym.scheduler.estimates import Regression, by_name
from hpcgym.scheduler.estimates.by_name import KNOWN
from hpcgym.workload.model import Workload

EASY = load_workload("lublin:jobs=250,processors=32,seed=2,load=1.3")
BUSY = load_workload("lublin:jobs=400,processors=64,seed=1,load=2")
ELOSS = Regression.parse("e-loss")


FORMULAS = ("ave1", "ave3", *by_name.FORMULAS)
WORDS = (*KNOWN, *FORMULAS)


# eager ones, which are often wrong within a few jobs
REGRESSIONS = (
    ELOSS,
    Regression("absolute", "squared", weight="small", eta=0.5, l2=0.0, threshold=3),
    Regression("exponential", "absolute", 0.01, 2, weight="wide", eta=1, l2=1, degree=1),
    Regression(features=("last", "requested", "occupied"), weight="long", eta=2, l2=0.0),
)


@st.composite
def estimates(draw: st.DrawFn, workload: Workload) -> tuple[Any, Any]:
    """An estimate, as the simulator and as the oracle takes it."""
    kind = draw(st.sampled_from(["word", "predictor", "regression", "array"]))
    if kind == "word":
        name = draw(st.sampled_from(WORDS))
        return name, name
    if kind == "predictor":
        return Crooked(), Crooked()
    if kind == "regression":
        rules = draw(st.sampled_from(REGRESSIONS))
        return rules, CompiledRegression(rules)
    times = draw(st.lists(st.integers(0, 300), min_size=len(workload), max_size=len(workload)))
    return times, times


@st.composite
def cases(draw: st.DrawFn) -> tuple[Workload, dict[str, Any], dict[str, Any]]:
    """A workload, and the rules of a scheduler as the simulator and as the oracle takes them."""
    workload = named(draw(workloads(max_jobs=30)))
    orders = POLICY.filter(lambda policy: isinstance(policy, str) or any(policy))
    corrections = ["requested", "incremental", "recursive-doubling"]
    pairs = {rule: draw(estimates(workload)) for rule in ("estimate", "policy_estimate")}
    known = (*KNOWN, None)
    estimate = pairs["estimate"][0]
    if not isinstance(estimate, list) and estimate not in known:
        corrections += ["predicted-again"] * 2
    common = {
        "policy": draw(orders),
        "backfill": draw(st.sampled_from(["none", "easy", "easy", "conservative"])),
        "backfill_order": draw(st.one_of(st.sampled_from(["fcfs", "sjbf"]), orders)),
        "correction": draw(st.sampled_from(corrections)),
        "threshold": draw(st.sampled_from([None, None, 5, 2000])),
        "passes": draw(st.sampled_from(["per-timestamp", "per-event"])),
    }
    fast, slow = ({**common, **{rule: pair[k] for rule, pair in pairs.items()}} for k in (0, 1))
    return workload, fast, slow


def settled(log: list[Any]) -> list[Any]:
    """Return a log where corrections that follow one another are in the order of the jobs."""
    groups = itertools.groupby(log, lambda event: event[0] == "predict" and event[1]["elapsed"] > 0)
    return [
        event
        for corrections, events in groups
        for event in (sorted(events, key=lambda e: e[1]["job"]) if corrections else events)
    ]


def assert_same_log(fast: list[Any], slow: list[Any]) -> None:
    """Compare what two predictors were asked and taught, in order, but for corrections in a row."""
    fast, slow = settled(fast), settled(slow)
    assert [event[0] for event in fast] == [event[0] for event in slow]
    for (_, x, *y), (_, expected, *run) in zip(fast, slow, strict=True):
        assert {name: x[name] for name in expected} == expected
        assert y == run


def named(workload: Workload) -> Workload:
    """Return the jobs with numbers, from 1, by which predictors know them."""
    users = workload.user_id * (10**9 if len(workload) % 2 else 1)
    return workload.with_columns(job_number=np.arange(1, len(workload) + 1), user_id=users)


def assert_same(result: Any, slow: Simulation) -> None:
    """Compare all that the oracle records of a schedule."""
    assert result.predicted_run_time.tolist() == [job.predicted for job in slow.jobs]
    if result.policy_run_time is not None:
        assert result.policy_run_time.tolist() == [job.policy_time for job in slow.jobs]
    assert result.start.tolist() == [job.start for job in slow.jobs]
    assert result.end.tolist() == [job.end for job in slow.jobs]
    assert result.backfilled.tolist() == [job.backfilled for job in slow.jobs]
    assert result.reserved_start.tolist() == [job.reserved_start for job in slow.jobs]


def oracle(workload: Workload, rules: dict[str, Any], before: Any = None) -> Simulation:
    simulation = Simulation(jobs_of(workload), workload.processors, **rules)
    if before is not None:
        simulation.go_on(before)
    simulation.run()
    return simulation
