"""An order of the queue is added in one statement, a row of one table, and works everywhere.

Its formula in ``hpcgym.reference`` is the other one: what says whether it is right.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from drawing import given, settings
from drawing import strategies as st
from extract_strategies import usable
from plain_envs import JobSelection
from strategies import cases
from test_simulation import assert_same

from hpcgym.reference.orders import POLICIES as FORMULAS
from hpcgym.scheduler.policies.index import POLICIES, IndexPolicy
from hpcgym.workload.model import Workload

pytestmark = pytest.mark.filterwarnings("ignore:.*EASY's reservation is of named nodes")
RULES = st.sampled_from(["policy", "backfill_order", "both"])


@pytest.fixture(scope="module", autouse=True)
def _added() -> Iterator[None]:
    """The jobs with most processors for their length first."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(
            POLICIES,
            "stout",
            IndexPolicy("stout", {"processors": 4.0, "requested": -1.0}, given="stout"),
        )
        patch.setitem(FORMULAS, "stout", lambda job, now: 4.0 * job.processors - job.requested)
        yield


def with_it(rules: dict[str, Any], where: str) -> dict[str, Any]:
    both = ("policy", "backfill_order")
    return usable(rules) | {rule: "stout" for rule in both if where in (rule, "both")}


@settings(max_examples=100)
@given(cases(), RULES)
def test_on_pools(case: tuple[Workload, dict[str, Any]], where: str) -> None:
    assert_same(case[0], with_it(case[1], where))


def test_in_environments() -> None:
    """It says who fills in behind the jobs that an agent selects."""
    orders: tuple[Any, Any] = ("stout", {"processors": 4.0, "requested": -1.0})
    env, same = (
        JobSelection("lublin:jobs=80,seed=1", jobs=40, backfill="easy", backfill_order=order)
        for order in orders
    )
    ends = False
    for each in (env, same):
        each.reset(seed=3)
    while not ends:
        stepped, expected = env.step(0), same.step(0)
        assert stepped[1:4] == expected[1:4]
        ends = stepped[2]
