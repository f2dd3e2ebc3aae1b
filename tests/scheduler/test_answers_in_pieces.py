"""Dispatchers that answer simulations which run in pieces."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
from drawing import given, settings
from drawing import strategies as st
from node_strategies import node_cases, partitioned_cases
from pieces import same_in_pieces
from predictors import REGRESSIONS
from strategies import cases, clusters

from hpcgym import simulate
from hpcgym.machine.pool import Cluster
from hpcgym.scheduler.dispatchers import PassView
from hpcgym.workload.model import Workload

SEEDS = st.integers(0, 10**6)


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
                for _ in range(min(view.units[place] - len(nodes), view.units_per_node[place])):
                    if (left[node] < view.per_unit[place]).any():
                        break
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
