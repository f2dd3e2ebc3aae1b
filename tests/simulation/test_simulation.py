"""Simulations in general, and by the reference as well."""

from __future__ import annotations

import ast
import dataclasses
import math
import re
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from drawing import assume, given, settings
from drawing import strategies as st
from expression_strategies import trees
from few_jobs import few_jobs, tiny
from mistakes import mistakes_of
from plain_envs import JobSelection
from restrictions import DRAWN
from same_results import assert_same_results
from strategies import workloads

import hpcgym
import hpcgym.reference
from hpcgym.agents.lookahead import Lookahead
from hpcgym.baselines import find_scheduler
from hpcgym.reference.jobs import jobs_of
from hpcgym.reference.pool import simulate_pool
from hpcgym.schedule.result import Result
from hpcgym.scheduler.policies import FairShare
from hpcgym.scheduler.rules import RULES
from hpcgym.study import evaluate
from hpcgym.workload.model import Workload

pytestmark = DRAWN

JOBS = "lublin:jobs=30,processors=16,seed=1"
SOURCE = "lublin:jobs=400,processors=64,seed=7,load=1.3"
SCHEDULES = ("start", "end", "predicted_run_time", "reserved_start", "backfilled", "killed")


def usable(rules: dict[str, Any]) -> bool:
    """Whether the policies are: six weights of 0 are no order."""
    return all(isinstance(rules[r], str) or any(rules[r]) for r in ("policy", "backfill_order"))


def schedule_of(result: Result) -> dict[str, list[Any]]:
    return {name: getattr(result, name).tolist() for name in SCHEDULES}


# --- Arguments ---------------------------------------------------------------------------------


def test_the_machine_is_the_workloads_or_the_one_given() -> None:
    workload = tiny()
    assert hpcgym.simulate(workload).cluster == hpcgym.Cluster(4)
    assert hpcgym.simulate(workload, processors=6).cluster == hpcgym.Cluster(6)
    cluster = hpcgym.Cluster(5, idle_power_w=1.0)
    assert hpcgym.simulate(workload, cluster=cluster).cluster is cluster
    assert hpcgym.simulate(workload, processors=7).start.tolist() == [0, 0, 5]
    assert hpcgym.simulate(workload, processors=4).start.tolist() == [0, 0, 60]


@pytest.mark.parametrize("backfill", ["none", "easy", "conservative"])
@pytest.mark.parametrize("estimate", ["requested", "clairvoyant", "ave2", []])
def test_no_jobs(backfill: str, estimate: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        empty = tiny().take(slice(0))
        for policy in ("fcfs", "saf", "wfp3", "fairshare", "fs+efs", (1, 1, 1, 1, 1, 1)):
            result = hpcgym.simulate(
                empty, "easy", backfill=backfill, estimate=estimate, policy=policy
            )
            assert result.metrics["jobs"] == 0
            assert schedule_of(result) == {key: [] for key in SCHEDULES}
            assert len(result.jobs) == 0
            hpcgym.validate_schedule(result)


def test_times_as_long_as_they_may_be() -> None:
    longest = 2**53
    workload = tiny(
        submit_time=[0, longest, longest],
        run_time=[longest] * 3,
        requested_time=[longest] * 3,
        requested_processors=[4, 4, 4],
    )
    for backfill in ("none", "easy", "conservative"):
        result = hpcgym.simulate(workload, "easy", backfill=backfill)
        assert result.start.tolist() == [0, longest, 2 * longest]
    doubled = hpcgym.simulate(workload, "easy", estimate="double-requested")
    assert doubled.predicted_run_time.tolist() == [longest] * 3


# --- Properties ----------------------------------------------------------------------------------


@pytest.mark.parametrize("backfill", ["none", "easy", "conservative"])
def test_what_is_given_is_not_touched(backfill: str) -> None:
    workload = hpcgym.load_workload(SOURCE)
    before = {name: values.copy() for name, values in workload.columns.items()}
    predictions = np.maximum(workload.run_time // 2, 1)
    given_before = predictions.copy()
    weights = np.array([0.1, -0.2, 0.3, 0.0, 0.5, -0.001])
    hpcgym.simulate(
        workload,
        "easy",
        backfill=backfill,
        policy=weights,
        estimate=predictions,
        correction="incremental",
    )
    for name, values in workload.columns.items():
        np.testing.assert_array_equal(values, before[name])
    np.testing.assert_array_equal(predictions, given_before)
    assert predictions.flags.writeable
    assert weights.tolist() == [0.1, -0.2, 0.3, 0.0, 0.5, -0.001]


@settings(max_examples=100)
@given(workloads(), st.sampled_from([-1.0, 2.0]), st.sampled_from(["none", "easy", "conservative"]))
def test_unicef_with_other_weights(workload: Workload, weight: float, backfill: str) -> None:
    """Scores of serial jobs are out of all proportion, of either sign, once they have waited."""
    rules: dict[str, Any] = {
        "backfill": backfill,
        "estimate": "requested",
        "correction": "requested",
        "threshold": None,
        "passes": "per-timestamp",
    }

    def slow(job: Any, now: int) -> float:
        patience = max(math.log2(job.processors) * job.requested, 1e-200)
        return (now - job.submit) / (patience / weight)

    expected = simulate_pool(
        jobs_of(workload), workload.processors, policy=slow, backfill_order=slow, **rules
    )
    fast = {"unicef": weight}
    result = hpcgym.simulate(workload, policy=fast, backfill_order=fast, **rules)
    assert result.start.tolist() == [job.start for job in expected]


def assert_same(workload: Workload, rules: dict[str, Any]) -> None:
    """All that a result tells is the same, whoever made it."""
    fast = hpcgym.simulate(workload, **rules)
    slow = hpcgym.simulate(workload, **rules, engine="reference")
    assert_same_results(slow, fast)
    hpcgym.validate_schedule(slow)


@pytest.mark.parametrize(
    "rules",
    [
        {"quota": "user:submitted=2;all:jobs=9"},
        {"maintenance": "20000/30000", "backfill": "conservative", "policy": "saf"},
        {"dependencies": "after", "policy": "spf"},
        {"preemption": "queue:1>2,suspend", "cluster": "8x1x8"},
        {"policy": (0, 0.001, 1e-6, -1, 0.2, 0), "hold": 0.1},
    ],
    ids=str,
)
def test_the_reference_makes_the_same_result(rules: dict[str, Any]) -> None:
    workload = hpcgym.load_workload(SOURCE).take(slice(0, 120))
    rows = np.arange(len(workload))
    workload = workload.with_columns(
        job_number=rows + 1, preceding_job=np.where(rows % 3 == 2, rows - 1, -1), queue=1 + rows % 2
    )
    assert_same(workload, rules)


@pytest.mark.parametrize("backfill", ["easy", "depth:3", "conservative", "slurm"])
@pytest.mark.parametrize(
    "order",
    [
        "processors",  # what waiting does not change
        "nice - area / requested_time",
        "submit_time * -1",
        "2 * wait - 3",  # the order of submission, and backwards
        "-wait",
        "queue != '2' and requested",  # names in the log
        "wait ** 2 if queue == 'batch' else 0",
        "1, 0, 0.1, 0, 0, 0",
        {"area": -1.0, "wait": 20.0},
    ],
    ids=str,
)
def test_the_reference_has_all_expressions_and_weights(order: Any, backfill: str) -> None:
    workload = hpcgym.load_workload(SOURCE).take(slice(0, 80))
    workload = workload.with_columns(nice=np.arange(80) % 5 * 10 - 1, queue=np.arange(80) % 3)
    rules = {"policy": order, "backfill_order": order, "backfill": backfill}
    assert_same(workload, rules)
    assert_same(workload, rules | {"policy_estimate": "ave2"})
    if backfill in ("easy", "conservative"):
        assert_same(workload, rules | {"passes": "per-event"})


@settings(max_examples=60)
@given(workloads(), trees(6), st.sampled_from(["easy", "depth:2", "conservative", "slurm"]))
def test_the_reference_has_any_expression(workload: Workload, text: str, backfill: str) -> None:
    """Also those that waiting does not change, and those of waiting alone."""
    rules = {"policy": text, "backfill_order": text, "backfill": backfill}
    try:
        fast = hpcgym.simulate(workload, **rules)
    except hpcgym.HpcgymError:  # the same for all jobs, or beyond double precision
        assume(False)
    assert_same_results(hpcgym.simulate(workload, **rules, engine="reference"), fast)


SLURM_CONF = """\
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
PriorityType=priority/multifactor
PriorityWeightAge=1000
PriorityMaxAge=0-2
PriorityWeightJobSize=500
PriorityWeightPartition=300
NodeName=n[1-16] CPUs=4
PartitionName=long Nodes=n[1-16] Default=YES PriorityJobFactor=1
PartitionName=short Nodes=n[1-4] PriorityTier=2 PriorityJobFactor=3
"""


def test_the_reference_has_the_policy_of_a_slurm_conf(tmp_path: Path) -> None:
    file = tmp_path / "slurm.conf"
    file.write_text(SLURM_CONF)
    workload = hpcgym.load_workload(SOURCE).take(slice(0, 120))
    rows = np.arange(120)
    short = (rows % 3 == 2) & (workload.requested_processors <= 16)
    workload = workload.with_columns(partition=1 + short, nice=rows % 5 * 100)
    header = {**workload.header, "Partition": ["1 long", "2 short"]}
    workload = dataclasses.replace(workload, header=header)
    assert "partition == 'short'" in str(find_scheduler(str(file)).policy)
    slow, fast = (
        hpcgym.simulate(workload, str(file), cluster=str(file), engine=engine)
        for engine in ("reference", None)
    )
    assert_same_results(slow, fast)
    assert (fast.start > workload.submit_time).any()


def test_jobs_that_run_as_an_extract_begins_are_counted() -> None:
    """One runs from 0 to 40; two wait, and of the user two may run at once."""
    log = tiny(
        submit_time=[0, 5, 6],
        run_time=[40, 50, 50],
        requested_time=[40, 50, 50],
        requested_processors=[1, 1, 1],
        user_id=[1, 1, 1],
        wait_time=[0, 9, 9],
    )
    assert hpcgym.simulate(log.extract(10), quota="user:jobs=2").start.tolist() == [0, 10, 40]


@pytest.mark.parametrize(
    ("policy", "starts"), [("fairshare", [0, 10, 20, 30]), ("energy-fairshare", [0, 10, 30, 20])]
)
def test_usage_is_of_processors_or_of_energy(policy: str, starts: list[int]) -> None:
    """At 20 both users have had the machine for 10 s; the first has drawn more."""
    columns = {"submit_time": [0, 0, 1, 2], "run_time": [10] * 4, "requested_time": [10] * 4}
    columns |= {"requested_processors": [4] * 4, "user_id": [1, 2, 1, 2]}
    log = Workload.from_columns(columns, processors=4)
    log = log.with_columns(power_w=[100, 10, 10, 10])
    shares = FairShare(half_life_s=math.inf)
    assert hpcgym.simulate(log, policy, fair_share=shares).start.tolist() == starts


def test_the_reference_shares_nothing_with_the_engine() -> None:
    """Its modules import each other, what comes with Python, and elementary functions."""
    imported: set[str] = set()
    for file in Path(hpcgym.reference.__path__[0]).glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.ImportFrom):
                imported |= {f"{node.module}.{name.name}" for name in node.names}
            elif isinstance(node, ast.Import):
                imported |= {name.name for name in node.names}
    # logarithms and the like have the bits of the engine
    own = "hpcgym.reference", "hpcgym.elementary."
    others = {name for name in imported if not name.startswith(own)}
    assert {name.partition(".")[0] for name in others} <= {*sys.stdlib_module_names}


def test_the_docstring_names_all_rules() -> None:
    told = str(hpcgym.simulate.__doc__).partition("    rules : ")[2].partition("Returns")[0]
    assert re.findall(r"``(\w+)``", told) == [*RULES]


test_mistakes = mistakes_of(globals(), JobSelection, Lookahead, evaluate, few_jobs)
