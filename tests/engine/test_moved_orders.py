"""Orders by usage, and by waiting in any way, of jobs whose submissions the schedule makes."""

from __future__ import annotations

import re
from typing import Any

import pytest
from drawing import assume, costly, given, settings
from drawing import strategies as st
from node_strategies import node_cases, partitioned_cases, slow_jobs_and_nodes
from share_strategies import BUSY_W, accounts
from share_strategies import cases as cases_by_usage
from slow_expressions import general
from slow_shares import SlowOrder
from strategies import cases
from submission_strategies import chains, fitted, same

import hpcgym
from hpcgym.cluster import Cluster
from hpcgym.reference.jobs import jobs_of
from hpcgym.reference.nodes import simulate_nodes
from hpcgym.reference.orders import ByExpression
from hpcgym.reference.pool import simulate_pool
from hpcgym.workload.model import Workload

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:.*no job follows another"),
    pytest.mark.filterwarnings("ignore:.*no job falls under these quotas"),
    pytest.mark.filterwarnings("ignore:.*fair share"),
    pytest.mark.filterwarnings("ignore:.*EASY's reservation is of nodes by name"),
]
RULES = ("policy", "backfill_order")


def moved(
    data: st.DataObject, workload: Workload
) -> tuple[Workload, dict[str, Any], dict[str, Any]]:
    """Jobs that follow others, or are kept outside the queue, or both, as the oracle has it too."""
    workload, dependencies, follows = data.draw(chains(workload))
    most = data.draw(st.sampled_from([None, None, 1, 2, 4]))
    if most is None:
        return workload, {"dependencies": dependencies}, {"follows": follows}
    ours: dict[str, Any] = {"quota": f"user:submitted={most}"}
    theirs: dict[str, Any] = {"places": [(workload.user_id.tolist(), most)]}
    if data.draw(st.booleans()):
        ours, theirs = ours | {"dependencies": dependencies}, theirs | {"follows": follows}
    return workload, ours, theirs


@costly
@settings(max_examples=200)
@given(st.data(), cases_by_usage())
def test_by_usage(data: st.DataObject, case: Any) -> None:
    ours, theirs = case[1], case[2]
    # an order by waiting alone is refused
    assume(all(ours[rule] != {"wait": -0.0101} for rule in RULES))
    plain = fitted({**theirs, **dict.fromkeys(RULES, "fcfs")})
    workload, rules, slow = moved(data, case[0])
    rules |= {rule: ours[rule] for rule in (*RULES, "fair_share")}
    cluster = Cluster(workload.processors, busy_power_w=BUSY_W)
    result = hpcgym.simulate(workload, cluster=cluster, **{**plain, **rules})
    slow |= {rule: theirs[rule] for rule in RULES}
    expected = simulate_pool(jobs_of(workload), workload.processors, **{**plain, **slow})
    same(result, expected)


@costly
@settings(max_examples=200)
@given(st.data(), cases(), general(), general())
def test_expressions(data: st.DataObject, case: Any, one: str, two: str) -> None:
    assume(not re.search("submit|clock|f1|f4", one + two))
    workload, rules, slow = moved(data, case[0])
    plain = fitted(case[1])
    texts = dict(zip(RULES, (one, two), strict=True))
    orders = {rule: ByExpression(text, workload) for rule, text in texts.items()}
    result = hpcgym.simulate(workload, **{**plain, **texts}, **rules)
    expected = simulate_pool(jobs_of(workload), workload.processors, **{**plain, **orders}, **slow)
    same(result, expected)


@costly
@settings(max_examples=150)
@given(st.data(), st.one_of(node_cases(), partitioned_cases()))
@pytest.mark.filterwarnings("ignore:.*its jobs are in none of the machine's partitions")
def test_by_usage_on_nodes(data: st.DataObject, case: tuple[Cluster, Workload, Any]) -> None:
    workload, rules, slow = moved(data, case[1])
    fair, theirs = data.draw(accounts(workload))
    plain = fitted(case[2])
    ours = dict.fromkeys(RULES, "fairshare")
    result = hpcgym.simulate(
        workload, cluster=case[0], fair_share=fair, **{**plain, **ours}, **rules
    )
    jobs, capacity = slow_jobs_and_nodes(case[0], workload)
    orders = dict.fromkeys(RULES, SlowOrder("cpu", theirs, [], 1.0))
    same(result, simulate_nodes(jobs, capacity, **{**plain, **orders}, **slow))
