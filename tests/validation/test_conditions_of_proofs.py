"""What validate_schedule proves of a schedule, and what its rules do not guarantee.

That it accepts whatever the rules make, ``tests/engine/test_rules_in_places.py`` asks.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from drawing import assume, given, settings
from few_jobs import few_jobs, four
from limit_strategies import Case, limited
from proofs import NODES, POOL, entry, moved, on_nodes, scheduled, under, violations

import hpcgym
from hpcgym.errors import HpcgymError
from hpcgym.machine import Cluster, NodeGroup, NodePower
from hpcgym.scheduler.limits import PowerCap
from hpcgym.scheduler.restrictions import COLUMNS as WORDS
from hpcgym.validation.validate import validate_schedule
from hpcgym.workload.model import Workload

ALWAYS = "lengths submission capacity {}events predictions promises energy progress {}"
MORE = {
    ("none", ""): "order backfilled",
    ("none", "units nodes "): "order backfilled",
    ("easy", ""): "reservations order backfilled backfilling",
    ("easy", "units nodes "): "reservations order backfilled",
    ("conservative", ""): "reservations backfilled",
    ("conservative", "units nodes "): "reservations backfilled",
}


@pytest.mark.parametrize(("backfill", "on"), MORE)
def test_everything_that_applies_is_proved(backfill: str, on: str) -> None:
    proved = validate_schedule(scheduled(NODES if on else POOL, backfill))
    assert " ".join(proved) == ALWAYS.format(on, MORE[backfill, on])


def test_of_a_dispatcher_nothing_is_proved_that_follows_from_rules() -> None:
    result = scheduled(on_nodes((0, 10, 1, 1, 0), (2, 5, 1, 1, 0)), "none")
    assert result.start.tolist() == [0, 2]
    chosen = moved(result, 1, 10)
    assert any("first in the queue, would fit" in line for line in violations(chosen))
    rules = hpcgym.Scheduler(dispatcher="mine", backfill="none")
    of_rules = {"promises", "progress", "order", "backfilled"}
    proved = validate_schedule(replace(chosen, scheduler=rules))
    assert {*validate_schedule(result)} - {*proved} == of_rules


def test_a_pass_over_all_jobs_needs_no_event() -> None:
    """Job 0 ends at 59 s; under Slurm's rules all that wait are looked at at 60 s, too.

    There the order of jobs whose places change is not proved, so that job 2 may be late.
    """
    jobs = few_jobs(3, [0, 0, 10], [59, 100, 5], [2, 1, 2])
    result = hpcgym.simulate(jobs, policy="wfp3", backfill="slurm:bf_interval=700")
    assert result.start.tolist() == [0, 0, 59]
    validate_schedule(moved(result, 2, 60))
    assert any("no job is submitted or ends" in line for line in violations(moved(result, 2, 61)))


def test_an_empty_workload() -> None:
    empty = Workload.from_columns({"submit_time": [], "run_time": []}, processors=2)
    assert "capacity" in validate_schedule(scheduled(empty))


def test_a_spared_job_may_start_while_one_before_it_waits_for_its_processors() -> None:
    cluster = Cluster(processors=2, shutdown_after_s=30, boot_time_s=7, boot_power_w=10.0)
    jobs = few_jobs(2, [0, 40, 42], [42, 30, 10], [1] * 3, group_id=[1, 2, 2], queue=[1, 1, 2])
    result = hpcgym.simulate(jobs, quota="group/spares=2:jobs=1", cluster=cluster)
    assert result.start.tolist() == [0, 47, 42]
    validate_schedule(result)


@pytest.mark.parametrize("word", WORDS)
def test_each_column_of_quotas_is_proved(word: str) -> None:
    columns = ("queue", "partition", "group_id", "executable", "array")
    jobs = four().with_columns(**{column: [1] * 4 for column in columns})
    for quota in (f"{word}:jobs=2", f"{word}=1:jobs=2", f"{word}:submitted=2"):
        result = hpcgym.simulate(jobs, quota=quota)
        assert result.start.tolist() == [0, 0, 10, 10]
        validate_schedule(result)
        broken = violations(under(quota=quota.replace("=2", "=1"))(result))
        assert any(line.startswith(f"quota {word}") for line in broken)


NOT_PROVED: dict[str, tuple[dict[str, Any], Any, str]] = {
    "a reservation broken by an over-run": (
        *({"estimate": [20, 60, 20, 30, 30]}, replace, "reservations"),
    ),
    "a reservation of one overtaken by policy": (
        *({"policy": "lcfs"}, entry("reserved_start", 1, 0), "reservations"),
    ),
    "an order by what users have used": ({"policy": "fairshare"}, replace, "order"),
    "an order of a function": ({"policy": lambda view: -view.wait}, replace, "order"),
    "an order by run times that are learned by regression": (
        *({"policy": "saf", "policy_estimate": "regression"}, replace, "order"),
    ),
    "jobs behind one that is held back": ({"hold": 0.5}, replace, "backfilling"),
}


@pytest.mark.parametrize("name", NOT_PROVED)
def test_what_rules_do_not_guarantee_is_not_proved(name: str) -> None:
    words, change, proof = NOT_PROVED[name]
    assert proof not in validate_schedule(change(scheduled(POOL, **words)))


def test_orders_that_are_proved() -> None:
    """Weights of one feature, starved jobs first, and free cores on the wrong nodes."""
    assert "order" in validate_schedule(scheduled(POOL, policy=(0, 0, 0.5, 0, 0, 0)))
    # shortest first on one processor; job 0 is long and waits 40 s > 30 s when job 2 ends
    unstarved = few_jobs(1, [0, 0, 0, 30], [100, 10, 30, 5], [1] * 4)
    starved = scheduled(unstarved, "none", policy="spf", threshold=30)
    assert starved.start.tolist() == [40, 0, 10, 140]
    assert "order" in validate_schedule(starved)
    # 1 core on each node: 2 are free, but no node holds a unit of 2; and GPUs are all in use
    for jobs in (((0, 20, 2, 3, 0), (1, 5, 1, 2, 0)), ((0, 20, 1, 1, 2), (1, 5, 1, 2, 1))):
        assert "order" in validate_schedule(scheduled(on_nodes(*jobs), "none"))


# --- Under limits ---------------------------------------------------------------------------------


def test_nodes_of_a_second_cap_begin_to_switch_off_while_the_first_lasts() -> None:
    """A pass comes then, at 31,625 s, though no node does: those are off already."""
    power = NodePower(96.7, 399.3, 10, shutdown_time_s=4, boot_time_s=69)
    machine = Cluster(groups=(NodeGroup("a", 10, {"core": 7}, power),))
    workload = hpcgym.load_workload("lublin:jobs=150,processors=70,seed=683968,load=0.96")
    caps = PowerCap(1440.9, 21266, 35825), PowerCap(1329.6, 31629, 62266)
    rules = {"power": "shut", "threshold": 29818}
    result = hpcgym.simulate(workload, "saf", cluster=machine, limits=caps, **rules)
    assert (result.start == 31625).any()
    validate_schedule(result)


@settings(max_examples=150)
@given(limited("caps switching budgets both"))
def test_random_schedules_are_valid(case: Case) -> None:
    """Kills, switching, frequencies, caps and budgets mixed."""
    where = {"cluster": case.cluster, "limits": case.limits}
    try:
        result = hpcgym.simulate(case.workload, **where, **case.rules)
    except HpcgymError as error:
        assume("can never start" not in str(error) and "all nodes off" not in str(error))
        raise
    assert {"alone", "levels", "caps", "budgets"} <= {*validate_schedule(result)}


def test_a_node_that_draws_more_once_it_is_off_is_no_start() -> None:
    """The second job ends at 290 s: its nodes switch off at 0 W, and are off at 10 W a node."""
    power = NodePower(10, [50], 10, shutdown_time_s=1, boot_time_s=0, shutdown_w=0)
    cluster = Cluster(groups=(NodeGroup("node", 4, {"core": 1}, power),), shutdown_after_s=0)
    jobs = few_jobs(4, [0, 0], [400, 290], [3, 1])
    cap = PowerCap(155, 281, 292, announced=281)
    result = hpcgym.simulate(jobs, cluster=cluster, limits=[cap], power="none")
    watts = result.power.set_index("time").watts
    assert (watts[0], watts[290], watts[291]) == (200, 150, 160)
    assert result.metrics["cap_exceeded_s"] == 10
    assert "caps" in validate_schedule(result)
