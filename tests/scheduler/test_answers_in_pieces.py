"""Simulations that are answered and run in pieces: estimates, usage, expressions, functions."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
import share_strategies
from drawing import given, settings
from drawing import strategies as st
from node_strategies import node_cases, partitioned_cases
from online import ELOSS, FORMULAS, REGRESSIONS
from online import cases as learning_cases
from pieces import same_in_pieces
from predictors import Crooked
from restrictions import DRAWN
from strategies import DEPTHS, cases, clusters, holds

from hpcgym import load_workload, simulate
from hpcgym.cluster.pool import Cluster
from hpcgym.scheduler.dispatchers import PassView
from hpcgym.scheduler.estimates.by_name import KNOWN
from hpcgym.workload.model import Workload

ORDERS = ("policy", "backfill_order")
pytestmark = DRAWN
SEEDS = st.integers(0, 10**6)
POLICIES = ("fcfs", "saf", "lexp", "wfp3", "unicef", "f1", "f2", "f3", "f4")


def assert_same(workload: Workload, rules: dict[str, Any], seed: int) -> None:
    """Simulate in pieces, on a pool."""
    for order in ORDERS:
        if isinstance(rules[order], tuple) and not any(rules[order]):
            rules = rules | {order: "saf"}
    cluster = Cluster(workload.processors, busy_power_w=share_strategies.BUSY_W)
    same_in_pieces(seed, partial(simulate, workload, cluster=cluster, **rules))


@st.composite
def estimates(draw: st.DrawFn) -> dict[str, Any]:
    """Rules of estimates, most of which learn."""
    every = st.one_of(
        st.sampled_from([*KNOWN, *FORMULAS, "data-driven"]),
        st.sampled_from(REGRESSIONS),
        st.builds(Crooked),
    )
    rules = {"estimate": draw(every), "policy_estimate": draw(every)}
    corrections = ["requested", "incremental", "recursive-doubling", "kill"]
    if rules["estimate"] not in (*KNOWN, "ave1"):
        corrections += ["predicted-again"] * 3
    return rules | {"correction": draw(st.sampled_from(corrections))}


@settings(max_examples=300)
@given(st.data(), learning_cases())
def test_estimates(data: st.DataObject, case: tuple[Workload, dict[str, Any], Any]) -> None:
    workload, rules, _ = case
    rules |= data.draw(st.sampled_from([{}, {"policy": data.draw(st.sampled_from(POLICIES))}]))
    if rules["passes"] == "per-timestamp" and data.draw(st.booleans()):
        rules["backfill"] = data.draw(st.sampled_from(DEPTHS))
    elif rules["backfill"] != "conservative":
        rules["hold"] = data.draw(holds())
    assert_same(workload, rules | data.draw(estimates()), data.draw(SEEDS))


@pytest.mark.parametrize("estimate", [*FORMULAS, ELOSS])
def test_queues_of_many_blocks(estimate: Any) -> None:
    workload = load_workload("lublin:jobs=400,processors=64,load=2,seed=1")
    rules = {"estimate": estimate, "policy_estimate": estimate, "backfill_order": "sjbf"}
    rules |= {"correction": "predicted-again", "policy": "saf", "backfill": "easy"}
    assert_same(workload, rules, 7)


def scattering(seed: int) -> Any:
    """Return a dispatcher that starts some jobs, on nodes of its own choice or on others."""

    def scatter(view: PassView) -> Any:
        random = np.random.default_rng([seed, view.time, len(view.job)])
        some = random.permutation(len(view.job))
        if len(view.running_job):  # it may wait for an end
            some = some[: random.integers(len(some) + 1)]
        if random.integers(2):
            return view.in_order(some)
        starts, free = [], view.free.copy()
        for place in some:
            left, nodes = free.copy(), list[int]()
            for node in random.permutation(len(free)):
                while len(nodes) < view.units[place] and (left[node] >= view.per_unit[place]).all():
                    left[node] -= view.per_unit[place]
                    nodes.append(node)
            if len(nodes) == view.units[place]:
                starts.append((place, nodes))
                free = left
        return starts

    return scatter


@settings(max_examples=300)
@given(st.data(), st.one_of(node_cases(), partitioned_cases()), st.integers(0, 10**6))
@pytest.mark.filterwarnings("ignore:.*its jobs are in none of the machine's partitions")
def test_a_dispatcher_that_starts_jobs(
    data: st.DataObject, case: tuple[Cluster, Workload, dict[str, Any]], seed: int
) -> None:
    """On nodes, and on pools, which may switch off idle processors; run times may be learned."""
    cluster, workload, rules = case
    if data.draw(st.booleans()):
        workload, pool_rules = data.draw(cases())
        rules = rules | pool_rules | {"allocation": "first-fit"}
        cluster = data.draw(
            st.one_of(
                st.builds(Cluster, st.just(workload.processors)), clusters(workload.processors)
            )
        )
    elif data.draw(st.integers(0, 4)) == 0:
        rules["allocation"] = "random:7"
    rules = {name: rules[name] for name in ("estimate", "correction", "allocation")}
    if data.draw(st.booleans()):
        rules["estimate"] = data.draw(st.sampled_from(["ave2", "ave3", *REGRESSIONS]))
    names = st.sampled_from(["fcfs-list", "prb", "sdprb"])
    dispatcher = data.draw(st.one_of(st.just(scattering(seed)), names))
    same_in_pieces(
        data.draw(SEEDS), partial(simulate, workload, dispatcher, cluster=cluster, **rules)
    )
