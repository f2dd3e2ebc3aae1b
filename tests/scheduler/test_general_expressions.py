"""Expressions that are worked out anew at each pass, against Python's own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from drawing import given, settings
from drawing import strategies as st
from online import assert_same as assert_same_as
from online import cases as learning_cases
from online import oracle
from slow_expressions import general

import hpcgym
from hpcgym.cluster import Cluster, NodeGroup, NodePower
from hpcgym.reference.jobs import jobs_of
from hpcgym.reference.orders import POLICIES, ByExpression
from hpcgym.reference.pool import simulate_pool
from hpcgym.scheduler.limits import PowerCap
from hpcgym.workload.model import Workload

WFP3 = "(wait / requested) ** 3 * processors"
RULES = ("policy", "backfill_order")


@st.composite
def with_expressions(
    draw: st.DrawFn, rules: dict[str, Any], texts: st.SearchStrategy[str]
) -> dict[str, Any]:
    """The rules, with an expression as one of the orders or as both."""
    which = draw(st.sampled_from([RULES, RULES[:1], RULES[1:]]))
    found = {rule: draw(texts) for rule in which}
    for rule in set(RULES) - found.keys():
        if not isinstance(rules[rule], str) and not any(rules[rule]):
            found[rule] = "fcfs"
    return {**rules, **found}


def slowly(workload: Workload, rules: dict[str, Any]) -> dict[str, Any]:
    """The same rules as the oracles take them."""
    texts = {rule: rules[rule] for rule in RULES if is_text(rules[rule])}
    return {**rules, **{rule: ByExpression(text, workload) for rule, text in texts.items()}}


def is_text(order: Any) -> bool:
    """Whether an order is an expression, and no name or weights."""
    return isinstance(order, str) and order not in (*POLICIES, "sjbf")


def assert_same(workload: Workload, rules: dict[str, Any]) -> None:
    """Simulate with both and compare all that the oracle records."""
    result = hpcgym.simulate(workload, **rules)
    expected = simulate_pool(jobs_of(workload), workload.processors, **slowly(workload, rules))
    assert result.start.tolist() == [job.start for job in expected]
    assert result.backfilled.tolist() == [job.backfilled for job in expected]
    assert result.reserved_start.tolist() == [job.reserved_start for job in expected]
    hpcgym.validate_schedule(result)


@pytest.mark.slow
@settings(max_examples=150)
@given(st.data(), learning_cases())
def test_run_times_that_are_learned(
    data: st.DataObject, case: tuple[Workload, dict[str, Any], dict[str, Any]]
) -> None:
    """Also of forms that are worked out once where run times are known."""
    workload, fast, slow = case
    linear = ["-requested", "-(requested * processors)", "16 * wait - area", "expansion"]
    texts = st.one_of(general(), st.sampled_from(linear))
    chosen = data.draw(with_expressions(fast, texts))
    fast = {**fast, **{rule: chosen[rule] for rule in RULES}}
    result = hpcgym.simulate(workload, **fast)
    slow = slowly(workload, {**slow, **{rule: chosen[rule] for rule in RULES}})
    expected = oracle(workload, slow)
    same = {rule: known_to_change(fast, rule) for rule in RULES}
    if same["policy"]:
        assert_same_as(result, expected)
    assert result.start.tolist() == [job.start for job in expected.jobs]


def known_to_change(rules: dict[str, Any], rule: str) -> bool:
    """Whether the oracle knows as the simulator does that the order of the queue may change."""
    order = rules[rule]
    return not is_text(order) or hpcgym.Scheduler(**rules).anew[RULES.index(rule)] is not None


@pytest.mark.parametrize("passes", ["per-timestamp", "per-event"])
def test_queues_of_many_blocks(passes: str) -> None:
    random = np.random.default_rng(3)
    run = np.ceil(random.lognormal(5, 1.5, 400)).astype(np.int64)
    columns = {
        "submit_time": np.sort(random.integers(0, 100, 400)),
        "run_time": run,
        "requested_time": run * random.choice([1, 2, 10], 400),
        "requested_processors": np.minimum(random.geometric(0.3, 400), 60),
    }
    workload = Workload.from_columns(columns, processors=60, name="crowd")
    rules = {
        "policy": "min(wait, 600) / requested - (wait % 7)",
        "backfill_order": "wait // 60 - ratio",
        "backfill": "easy",
        "passes": passes,
        "threshold": 2000,
    }
    assert_same(workload, rules)


# --- Other machines, and where simulations begin --------------------------------------------------


def fair(policy: Any) -> dict[str, Any]:
    return {"policy": policy, "backfill_order": policy}


@pytest.mark.slow
@pytest.mark.parametrize("backfill", ["none", "easy"])
@pytest.mark.parametrize("estimate", ["requested", "ave2"])
def test_passes_without_an_event_have_scores_of_their_own(backfill: str, estimate: str) -> None:
    """Where caps begin and end, and at controls of power, too."""
    power = NodePower(20.0, 100.0)
    cluster = Cluster(groups=(NodeGroup("a", 16, {"core": 4}, power),))
    workload = hpcgym.load_workload("lublin:jobs=300,processors=64,load=1.2,seed=8")
    span = int(workload.submit_time[-1])
    caps = [PowerCap(600 + k % 3 * 300, k * span // 40, (k + 1) * span // 40) for k in range(40)]
    rules: dict[str, Any] = {"backfill": backfill, "policy_estimate": estimate}
    rules |= {"cluster": cluster, "limits": caps}
    named = hpcgym.simulate(workload, policy="wfp3", backfill_order="wfp3", **rules)
    result = hpcgym.simulate(workload, policy=WFP3, backfill_order=WFP3, **rules)
    assert result.start.tolist() == named.start.tolist()
    moments = {*workload.submit_time.tolist(), *result.end.tolist()}
    assert not moments.issuperset(result.start.tolist())


@pytest.mark.slow
@pytest.mark.parametrize("backfill", ["easy", "fill"])
def test_on_nodes_that_jobs_share(backfill: str) -> None:
    jobs = hpcgym.load_workload(
        "codes:jobs=80,processes=8,processors=64,seed=1,arrivals=poisson,interval=9"
    )
    rules: dict[str, Any] = {"cluster": "8x2x4", "speedups": "generated:codes=16"}
    text = "(wait ** 2 < 4e4) * processors - requested"
    named = hpcgym.simulate(jobs, "easy-co", backfill=backfill, **fair("-requested"), **rules)
    result = hpcgym.simulate(
        jobs, "easy-co", backfill=backfill, **fair("-requested + 0 * wait ** 2"), **rules
    )
    assert result.start.tolist() == named.start.tolist()
    other = hpcgym.simulate(jobs, "easy-co", backfill=backfill, **fair(text), **rules)
    assert other.start.tolist() != named.start.tolist()
    hpcgym.validate_schedule(other)
