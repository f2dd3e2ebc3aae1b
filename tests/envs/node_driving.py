"""Environments on nodes that tests drive."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from drawing import strategies as st
from driving import (
    NAMES,
    SINGLE,
)
from node_strategies import ALLOCATIONS, machines, workloads_for
from strategies import holds, workloads

from hpcgym import Cluster
from hpcgym.cluster import NodeGroup
from hpcgym.reference.jobs import jobs_of, node_jobs_of
from hpcgym.reference.nodes import simulate_nodes
from hpcgym.reference.pool import simulate_pool
from hpcgym.workload import Workload, load_workload

ids = pytest.mark.parametrize("name", NAMES)

#: Jobs with GPUs and MICs wait in it, most of them on too few free nodes of their kind.
EURORA = load_workload("eurora:jobs=300,seed=1,load=3")

#: The rules that environments have on nodes.
RULES = st.fixed_dictionaries(
    {
        "backfill": st.sampled_from(["easy", "easy", "until-shadow", "none"]),
        "backfill_order": st.sampled_from(["fcfs", "sjbf", "saf", "lexp"]),
        "estimate": st.sampled_from(["requested", "clairvoyant", "ave2", "ave2"]),
        "correction": st.sampled_from(["requested", "incremental", "recursive-doubling"]),
        "allocation": st.sampled_from(ALLOCATIONS),
        "hold": holds(),
    }
)


@st.composite
def places(draw: st.DrawFn) -> tuple[Cluster, Workload]:
    """A small machine of nodes, and jobs that fit it."""
    cluster = draw(machines())
    return cluster, draw(workloads_for(cluster))


@st.composite
def anywhere(draw: st.DrawFn) -> tuple[Cluster | None, Workload]:
    """A pool, or a small machine of nodes, and jobs that fit it."""
    return draw(st.one_of(st.tuples(st.none(), workloads()), places()))


def by_reference(cluster: Cluster | None, workload: Workload, **rules: Any) -> list[Any]:
    """Return the jobs as the slow simulator of a pool or of nodes schedules them."""
    if cluster is None:
        return simulate_pool(jobs_of(workload), workload.processors, **rules)
    jobs = node_jobs_of(workload, cluster.resources)
    return simulate_nodes(jobs, cluster.capacity.tolist(), **rules)


def make(name: str, workload: Any = EURORA, **options: Any) -> Any:
    arguments = {"jobs": 40, "window": 9, "cluster": "eurora", **options}
    if name == "MixedPolicy":
        arguments.setdefault("interval", 4)
    return SINGLE[name](workload, **arguments)


def units_on_nodes(result: Any) -> list[dict[int, int]]:
    """Return of each job node -> units on it."""
    first, node, units = (part.tolist() for part in result.allocation)
    return [dict(zip(node[a:b], units[a:b], strict=True)) for a, b in pairwise(first)]


def _interval(name: str) -> dict[str, Any]:
    return {"interval": "pass"} if name == "MixedPolicy" else {}


SERIAL = load_workload("lublin:jobs=300,processors=64,seed=1,load=2")
FOUR = Cluster(groups=(NodeGroup("thin", 12, {"core": 4}), NodeGroup("fat", 2, {"core": 8})))
