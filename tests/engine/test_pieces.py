"""Simulations that stop anywhere, and go on as copies: to the last bit what the reference makes."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
from drawing import assume, given, settings
from drawing import strategies as st
from extract_strategies import parts_of, recorded, usable
from failure_strategies import failing_cases, table_of
from limit_strategies import extracted, limited
from node_strategies import node_cases, partitioned_cases
from pieces import native_of, same_in_pieces
from preemption_strategies import CLOSE, crowded, preemptions
from quota_strategies import fitted, quotas
from restrictions import DRAWN, around_windows, bounds, windows_for, with_numbers
from same_results import assert_same_results
from strategies import SLURM, cases, clusters
from submission_strategies import chains
from submission_strategies import fitted as as_moved
from test_nodes_against_oracle import crowd
from test_rules_under_limits import Whim
from test_rules_under_limits import restricted as restricted_under_limits

import hpcgym
from hpcgym.errors import HpcgymError, WorkloadError
from hpcgym.workload.model import Workload

pytestmark = [
    *DRAWN,
    pytest.mark.filterwarnings("ignore:.*its jobs are in none of the machine's partitions"),
    pytest.mark.filterwarnings("ignore:failures. none of"),
]
SEEDS = st.integers(0, 10**6)
QUEUES = st.lists(st.integers(1, 4), min_size=1, max_size=6)
ESTIMATES = st.sampled_from(["requested", "requested", "user-ratio", "typical-ratio"])
#: What restricts who may start when.
RESTRICTIONS = st.sampled_from(
    [
        *[(), (), (), ("quota",), ("windows",), ("quota", "windows")],
        *[("follow",), ("follow", "quota"), ("follow", "windows")],
        *[
            ("places",),
            ("follow", "places"),
            ("places", "windows"),
            ("follow", "places", "windows"),
        ],
        *[("stop",), ("stop", "quota"), ("stop", "windows"), ("stop", "follow")],
    ]
)


def drawn(data: st.DataObject) -> tuple[Workload, dict[str, Any]]:
    """Jobs, and a machine and rules that the reference has."""
    kind = data.draw(st.sampled_from(["pool", "pool", "nodes", "partitions", "failing"]))
    if kind == "failing":
        cluster, workload, rules, failures = data.draw(failing_cases())
    elif kind == "pool":
        workload, rules = data.draw(cases())
        cluster = hpcgym.Cluster(workload.processors)
    else:
        cases_on_nodes = node_cases() if kind == "nodes" else partitioned_cases()
        cluster, workload, rules = data.draw(cases_on_nodes)
    rules = usable(rules)
    if rules["backfill"].startswith("slurm"):
        rules["backfill"] = data.draw(SLURM)
    which = data.draw(RESTRICTIONS)
    if which:
        workload, rules = restricted(data, which, workload, rules, cluster)
    elif kind in ("pool", "failing"):
        rules["policy_estimate"] = data.draw(ESTIMATES)
        rules["correction"] = data.draw(st.sampled_from([rules["correction"]] * 3 + ["kill"]))
    if kind == "failing":
        rules["failures"] = table_of(failures)
        if "preemption" in rules:
            rules["preemption"] = rules["preemption"].replace(",suspend", "")
    return workload, rules | {"cluster": cluster}


def restricted(
    data: st.DataObject,
    which: tuple[str, ...],
    workload: Workload,
    rules: dict[str, Any],
    cluster: hpcgym.Cluster,
) -> tuple[Workload, dict[str, Any]]:
    """The jobs and rules that go with restrictions, and these."""
    workload, rules = with_numbers(workload, data.draw(QUEUES)), fitted(rules)
    how = ""
    if "stop" in which:
        workload = crowded(workload, data.draw(CLOSE))
        rules["preemption"], (_, _, how, _) = data.draw(preemptions(workload))
    if ("follow" in which and how != "cancel") or "places" in which:
        rules = as_moved(rules)
    if "follow" in which and how != "cancel":
        workload, rules["dependencies"], _ = data.draw(chains(workload))
    if "quota" in which:
        rules["quota"] = data.draw(quotas(workload))[0]
    if "places" in which:
        rules["quota"] = data.draw(bounds(workload))[0]
    if "windows" in which and how != "suspend":
        rules = around_windows(rules, workload)
        rules["maintenance"] = "; ".join(windows_for(data, cluster, workload)[1])
    return workload, rules


@settings(max_examples=400)
@given(st.data(), SEEDS)
def test_pieces_make_the_schedule_of_the_reference(data: st.DataObject, seed: int) -> None:
    workload, rules = drawn(data)
    simulate = partial(hpcgym.simulate, workload, **rules)
    assert_same_results(simulate(engine="reference"), same_in_pieces(seed, simulate))


@settings(max_examples=100)
@given(st.data(), cases())
def test_a_run_to_some_time_starts_what_starts_by_then(
    data: st.DataObject, case: tuple[Workload, dict[str, Any]]
) -> None:
    simulate = partial(hpcgym.simulate, case[0], **usable(case[1]))
    start, simulation = simulate().start, native_of(simulate)
    moments = st.one_of(st.sampled_from(start.tolist()), st.integers(-1, int(start.max()) + 1))
    for moment in sorted(data.draw(st.lists(moments, max_size=12))):
        simulation.run(until=moment)
        np.testing.assert_array_equal(
            simulation.schedule()["start"], np.where(start <= moment, start, -1)
        )


# --- What the reference does not have -------------------------------------------------------------


@settings(max_examples=100)
@given(st.data(), cases(), SEEDS)
def test_where_processors_are_switched_off(
    data: st.DataObject, case: tuple[Workload, dict[str, Any]], seed: int
) -> None:
    workload, rules = case[0], usable(case[1]) | {"threshold": None, "hold": None}
    assume(rules["backfill"] in ("none", "easy", "until-shadow"))
    rules |= {"passes": "per-timestamp", "cluster": data.draw(clusters(workload.processors))}
    same_in_pieces(seed, partial(hpcgym.simulate, workload, **rules))


@settings(max_examples=100)
@given(st.data(), st.one_of(node_cases(), partitioned_cases()), SEEDS)
def test_where_nodes_are_chosen_at_random(
    data: st.DataObject, case: tuple[hpcgym.Cluster, Workload, dict[str, Any]], seed: int
) -> None:
    cluster, workload, rules = case
    rules |= {"cluster": cluster, "allocation": "random:7"}
    which = data.draw(RESTRICTIONS)
    if which:
        workload, rules = restricted(data, which, workload, rules, cluster)
    same_in_pieces(seed, partial(hpcgym.simulate, workload, **rules))


@settings(max_examples=200)
@given(st.data(), st.sampled_from(["pool", "nodes", "failing"]), SEEDS)
def test_extracts(data: st.DataObject, kind: str, seed: int) -> None:
    """They begin with jobs that run and wait: of a log, or of a simulation that goes on."""
    if kind == "pool":
        workload, rules = data.draw(cases())
    elif kind == "failing":
        cluster, workload, rules, failures = data.draw(failing_cases())
        rules |= {"cluster": cluster, "failures": table_of(failures)}
    else:
        cluster, workload, rules = data.draw(node_cases())
        rules["cluster"] = cluster
    rules = usable(rules)
    part: Workload | None
    if kind == "failing" or data.draw(st.booleans()):
        part, rules, _, _ = parts_of(data, recorded(data, workload), rules)
        if data.draw(st.booleans()):
            rules["policy_estimate"] = data.draw(st.sampled_from(["user-ratio", "e-loss"]))
    else:
        if not isinstance(rules["estimate"], str):
            rules["estimate"] = "clairvoyant"
        long = hpcgym.simulate(workload, **rules)
        near = {time + more for time in (*long.start, *long.end) for more in (0, 1)}
        begin = int(data.draw(st.sampled_from(sorted(near))))
        part = hpcgym.continued(long, begin) if (long.end >= begin).any() else None
    if part is None:
        return
    try:
        same_in_pieces(seed, partial(hpcgym.simulate, part, **rules))
    except WorkloadError as error:
        reasons = {"finds no room on the nodes"} if kind == "nodes" else set()
        if rules["correction"] == "kill":  # others would have run then
            reasons.add("cannot run still")
        assert any(reason in str(error) for reason in reasons)  # noqa: PT017


@pytest.mark.parametrize("kinds", ["none", "caps", "switching", "budgets", "both"])
@settings(max_examples=60)
@given(st.data(), SEEDS)
def test_under_limits(kinds: str, data: st.DataObject, seed: int) -> None:
    case = data.draw(limited(kinds))
    what = data.draw(st.sampled_from(["", "restricted", "extract"]))
    if what == "restricted":
        case, _ = restricted_under_limits(data, case)
    elif what == "extract":
        _, case, _ = extracted(data, case) or (None, case, None)
    if data.draw(st.sampled_from([False, False, True])):
        case.rules["policy"] = Whim()
    limits = {"cluster": case.cluster, "limits": case.limits}
    try:
        same_in_pieces(seed, partial(hpcgym.simulate, case.workload, **limits, **case.rules))
    except HpcgymError as error:
        assume("can never start" not in str(error) and "all nodes off" not in str(error))
        raise


@pytest.mark.parametrize("policy", ["fcfs", "saf", "lexp"])
@pytest.mark.parametrize("passes", ["per-timestamp", "per-event"])
def test_queues_of_many_blocks_with_a_reservation_for_each(policy: str, passes: str) -> None:
    """Only in long queues it is noted who may find an earlier place."""
    rules = {"policy": policy, "passes": passes, "backfill": "conservative"}
    for seed in range(2):
        workload = hpcgym.load_workload(f"lublin:jobs=400,processors=64,load=200,seed={seed}")
        for more in ({}, {"estimate": "ave2", "correction": "incremental"}):
            same_in_pieces(seed, partial(hpcgym.simulate, workload, **rules, **more))


@settings(max_examples=20)
@given(st.data(), SEEDS)
def test_long_queues_on_nodes(data: st.DataObject, seed: int) -> None:
    """Lists of several blocks."""
    cluster, workload = crowd(seed, jobs=data.draw(st.sampled_from([80, 400])))
    backfill = data.draw(st.sampled_from(["easy", "conservative", "depth:5"]))
    rules = {"cluster": cluster, "backfill": backfill, "policy": "saf"}
    same_in_pieces(seed, partial(hpcgym.simulate, workload, **rules))


@pytest.mark.parametrize("backfill", ["none", "easy", "conservative"])
def test_no_pass_allowed_is_no_pass_done(backfill: str) -> None:
    workload = hpcgym.load_workload("lublin:jobs=50,processors=16")
    simulation = native_of(partial(hpcgym.simulate, workload, backfill=backfill))
    assert simulation.run(passes=0) == simulation.run(until=-1) == 0
    assert (simulation.schedule()["start"] == -1).all()
