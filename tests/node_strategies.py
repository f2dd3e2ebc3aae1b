"""Random small machines with nodes, workloads for them and schedulers that look for trouble."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from drawing import strategies as st
from strategies import (
    BACKFILL,
    GAPS,
    POLICY,
    REQUESTS,
    holds,
    holds_back,
    predictions,
    with_few_looks,
)

from hpcgym.machine import Cluster, NodeGroup, Partition
from hpcgym.machine.pool import ANY_NUMBER
from hpcgym.names import UNITS_PER_NODE
from hpcgym.reference.jobs import Job, Nodes, node_jobs_of
from hpcgym.workload.io.swf_header import called_in
from hpcgym.workload.model import Workload
from hpcgym.workload.needs import needs_of

OTHERS = ("mem", "gpu")  # resources beside the cores
ALLOCATIONS = ("first-fit", "best-fit", "worst-fit", "balanced", "weighted", "hybrid")


@st.composite
def machines(draw: st.DrawFn) -> Cluster:
    """1 to 5 nodes in 1 to 3 groups; groups differ in which resources they have, and how much."""
    count = draw(st.integers(1, 3))
    sizes = [draw(st.integers(1, 5 - (count - 1 - i) if i == 0 else 2)) for i in range(count)]
    while sum(sizes) > 5:
        sizes[sizes.index(max(sizes))] -= 1
    some = draw(st.lists(st.sampled_from(OTHERS), unique=True, max_size=2))
    groups = []
    for i, nodes in enumerate(sizes):
        resources = {"core": draw(st.sampled_from([1, 1, 2, 3, 4, 7]))}
        for name in some:
            amount = draw(st.sampled_from([0, 1, 2, 3, 5, 8]))
            if amount:
                resources[name] = amount
        groups.append(NodeGroup(f"g{i}", nodes, resources))
    return Cluster(groups=tuple(groups))


def most_units(nodes: list[list[int]], demand: list[int], on_one: int) -> int:
    """Return how many units the empty nodes hold, no node more than ``on_one``."""
    return sum(
        min(on_one, *(have // need for have, need in zip(node, demand, strict=True) if need))
        for node in nodes
    )


@st.composite
def workloads_for(
    draw: st.DrawFn, cluster: Cluster, max_jobs: int = 25, brief: bool = False
) -> Workload:
    """1 to 25 jobs that each fit the empty machine; times are multiples of one unit.

    Where it is ``brief`` that is a second, and gaps are short.
    """
    resources, capacity = cluster.resources, cluster.capacity
    unit = 1 if brief else draw(st.sampled_from([1, 1, 20, 600]))
    gaps = draw(st.sampled_from(GAPS[:2] if brief else GAPS))
    plain = draw(st.sampled_from([False, False, False, True]))  # one core each, nothing else
    apart = draw(st.sampled_from([[-1], [-1], [-1, 1, 1, 2, 3]]))  # units that a node may have
    lengths = st.one_of(st.integers(1, 12), st.sampled_from([1, 2, 4, 8, 30, 100]))
    fewest = draw(st.sampled_from([1, 5, 12]))
    count = draw(st.integers(min(fewest, max_jobs), max_jobs))
    submit = draw(st.sampled_from([0, 1, 1000]))
    names = ("submit_time", "run_time", "requested_time", "user_id")
    columns: dict[str, list[int]] = {name: [] for name in (*names, UNITS_PER_NODE)}
    units: list[int] = []
    per_unit: dict[str, list[int]] = {name: [] for name in resources}
    for _ in range(count):
        submit += draw(gaps) * unit
        length = draw(lengths) * unit
        request, user = draw(REQUESTS)(length), draw(st.sampled_from([0, 0, 1, -1]))
        for name, value in zip(names, (submit, length, request, user), strict=True):
            columns[name].append(value)
        # the demand of a unit fits a node that is drawn, hence some units fit the machine
        node = capacity[draw(st.integers(0, len(capacity) - 1))].tolist()
        demand = [1] + [0] * (len(resources) - 1)
        if not plain:
            demand = [draw(st.integers(1, node[0]))]
            demand += [draw(st.sampled_from([0, 0, 1, 1, have])) for have in node[1:]]
            demand = [min(need, have) for need, have in zip(demand, node, strict=True)]
        on_one = draw(st.sampled_from(apart))
        columns[UNITS_PER_NODE].append(on_one)
        most = most_units(capacity.tolist(), demand, on_one if on_one > 0 else ANY_NUMBER)
        units.append(draw(st.one_of(st.integers(1, most), st.just(most), st.just(1))))
        for name, need in zip(resources, demand, strict=True):
            per_unit[name].append(need)
    columns["requested_processors"] = [
        number * cores for number, cores in zip(units, per_unit["core"], strict=True)
    ]
    return Workload.from_columns(
        columns, processors=cluster.processors, name="random", units=units, per_unit=per_unit
    )


@st.composite
def node_schedulers(draw: st.DrawFn, workload: Workload) -> dict[str, Any]:
    """The words that describe a scheduler, as ``simulate_nodes`` takes them."""
    named = st.sampled_from(["requested", "clairvoyant", "ave2"])
    backfill = with_few_looks(draw(st.sampled_from((*BACKFILL, "conservative"))), workload)
    corrections = ["requested", "incremental", "recursive-doubling", "kill"]
    orders = POLICY.filter(lambda order: isinstance(order, str) or any(order))
    return {
        "allocation": draw(st.sampled_from(ALLOCATIONS)),
        "policy": draw(st.one_of(st.just("fcfs"), orders)),
        "backfill": backfill,
        "backfill_order": draw(st.one_of(st.sampled_from(["fcfs", "sjbf"]), orders)),
        "estimate": draw(st.one_of(named, predictions(workload))),
        "correction": draw(st.sampled_from(corrections)),
        "threshold": draw(st.sampled_from([None, None, 0, 5, 100, 2000])),
        "hold": draw(holds()) if holds_back(backfill) else None,
    }


@st.composite
def node_cases(draw: st.DrawFn, max_jobs: int = 25) -> tuple[Cluster, Workload, dict[str, Any]]:
    """A machine, a workload for it and a scheduler."""
    cluster = draw(machines())
    workload = draw(workloads_for(cluster, max_jobs))
    return cluster, workload, draw(node_schedulers(workload))


#: Constraints -> which features a node must have for each: one of these sets at least.
CONSTRAINTS = {
    "a": ["a"],
    "b&a": ["ab"],
    "a|b": ["a", "b"],
    "a|b&c": ["ac", "bc"],
    "c|(a&b)": ["c", "ab"],
}


def nodes_with(cluster: Cluster, constraint: str) -> frozenset[int]:
    """Return the nodes of a machine that meet one of these constraints."""
    groups = [{*cluster.groups[place].features} for place in cluster.group_of.tolist()]
    sets = map(set, CONSTRAINTS[constraint])
    return frozenset(n for one in sets for n, own in enumerate(groups) if one <= own)


@st.composite
def partitioned_cases(draw: st.DrawFn) -> tuple[Cluster, Workload, dict[str, Any]]:
    """The same on a machine with partitions, which may overlap, and with features of its nodes.

    Each job fits into its own partition, on nodes that meet its constraint.
    """
    plain, workload, rules = draw(node_cases())
    features = st.lists(st.sampled_from("abc"), max_size=3, unique=True)
    groups = [replace(group, features=tuple(draw(features))) for group in plain.groups]
    plain = replace(plain, groups=tuple(groups))
    numbers = st.lists(st.integers(0, plain.nodes - 1), min_size=1, unique=True)
    sets = draw(st.lists(numbers, min_size=1, max_size=3))
    parts = tuple(Partition(f"p{i}", tuple(nodes)) for i, nodes in enumerate(sets, 1))
    needs = needs_of(workload, plain.resources)
    every = frozenset(range(plain.nodes))
    places = [(number, part.nodes) for number, part in enumerate(parts, 1)]
    met = [(number, nodes_with(plain, text)) for number, text in enumerate(CONSTRAINTS, 1)]
    chosen = []
    for units, *demand, most in needs.tolist():
        fits = [
            (number, constraint)
            for number, nodes in [(-1, every), *places]
            for constraint, others in [(-1, every), *met]
            if most_units(plain.capacity[[*others.intersection(nodes)]].tolist(), demand, most)
            >= units
        ]
        chosen.append(draw(st.sampled_from(fits)))
    header = {
        "Partition": [f"{number} p{number}" for number in range(1, len(parts) + 1)],
        "Constraint": [f"{number} {text}" for number, text in enumerate(CONSTRAINTS, 1)],
    }
    columns = dict(zip(("partition", "constraint"), zip(*chosen, strict=True), strict=True))
    named = replace(workload.with_columns(**columns), header=header)
    return replace(plain, partitions=parts), named, rules


def slow_jobs_and_nodes(cluster: Cluster, workload: Workload) -> tuple[list[Job], Nodes]:
    """The jobs and the nodes of such a case as the oracle has them; partition k is the k-th."""
    every = frozenset(range(cluster.nodes))
    nodes = {number: frozenset(part.nodes) for number, part in enumerate(cluster.partitions, 1)}
    bound = {number: some for number, some in nodes.items() if some != every}
    parts = [bound.get(number) for number in workload.partition.tolist()]
    texts = [""] * len(parts)
    if any(group.features for group in cluster.groups):
        texts = called_in(workload, "constraint").tolist()
    met = [nodes_with(cluster, text) if text else None for text in texts]
    allowed = [
        some if own is None else own & (every if some is None else some)
        for some, own in zip(parts, met, strict=True)
    ]
    jobs = node_jobs_of(workload, cluster.node_resources, allowed, parts)
    return jobs, cluster.capacity[:, : len(cluster.node_resources)].tolist()
