"""Units of jobs on nodes: rules 1 to 3, 10, 12, 13 and 14 of :mod:`hpcgym.reference.nodes`."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from hpcgym.reference.jobs import Amounts, Job, Nodes


def hold(free: Sequence[int], demand: Sequence[int]) -> int:
    """How many units a node has room for."""
    units = None
    for have, need in zip(free, demand, strict=True):
        if need > 0 and (units is None or have // need < units):
            units = have // need
    assert units is not None
    return max(units, 0)


class Barred(list[int]):
    """What is free on a node of a window that does not spare a job (rule 12)."""


def hold_of(job: Any, node: int, free: Amounts) -> int:
    """How many units of a job a node with so much free has room for: rules 10 and 12."""
    barred = job.allowed is not None and node not in job.allowed
    barred |= isinstance(free, Barred)
    return 0 if barred else min(hold(free, job.demand), job.most)


def room(nodes: Nodes, demand: Sequence[int]) -> int:
    """Return how many units all nodes have room for."""
    return sum(hold(free, demand) for free in nodes)


def room_for(job: Job, nodes: Nodes) -> int:
    """Return how many units of a job the nodes have room for (rule 10)."""
    mine = [free for node, free in enumerate(nodes) if job.allowed is None or node in job.allowed]
    alike = Counter(map(tuple, mine))
    return sum(number * min(hold(free, job.demand), job.most) for free, number in alike.items())


def order_of_nodes(
    allocation: str,
    free: Nodes,
    total: Amounts,
    capacity: Sequence[Amounts] = (),
    job: Any = None,
    others: Sequence[Any] = (),
) -> list[int]:
    """Rule 3. ``job`` and the ``others`` that wait have units, demand and requested."""
    numbers = list(range(len(free)))
    if allocation == "first-fit":
        return numbers
    if allocation == "balanced":
        return by_turns(free, capacity)
    if allocation in ("weighted", "hybrid"):
        value = {node: value_left(node, free, total, job, others) for node in numbers}
        holds = [node for node in numbers if value[node] < math.inf]
        if allocation == "weighted":
            return sorted(holds, key=lambda node: value[node])
        return by_turns(free, capacity, holds, value)
    left = []
    for node in free:
        share = 0.0
        for have, all_there_is in zip(node, total, strict=True):
            share += have / all_there_is
        left.append(share)
    if allocation == "best-fit":
        return sorted(numbers, key=lambda node: left[node])
    assert allocation == "worst-fit"
    return sorted(numbers, key=lambda node: -left[node])


def value_left(node: int, free: Nodes, total: Amounts, job: Any, others: Sequence[Any]) -> float:
    """S of rule 3; infinite where no unit has room."""
    units = min(hold_of(job, node, free[node]), job.units)
    if units == 0:
        return math.inf
    left = 0.0
    for r, all_there_is in enumerate(total):
        asked = sum(other.units * other.demand[r] * (other.requested + 1) for other in others)
        used = all_there_is - sum(row[r] for row in free)
        worth = (1.0 + asked) * (1.0 + used) / (float(all_there_is) * all_there_is)
        left += (free[node][r] - units * job.demand[r]) * worth
    return left


def by_turns(
    free: Nodes,
    capacity: Sequence[Amounts],
    numbers: Sequence[int] | None = None,
    value: Mapping[int, float] | None = None,
) -> list[int]:
    """Nodes without scarce resources, then a node of the scarce resource with most nodes left.

    Of each list those come first that have least of its resource; with ``value``, the least of it.
    """
    scarce = [r for r in range(len(capacity[0])) if any(node[r] == 0 for node in capacity)]
    plain: list[tuple[float, int]] = []
    lists: dict[int, list[tuple[float, int]]] = {r: [] for r in scarce}
    for number in range(len(free)) if numbers is None else numbers:
        node = free[number]
        most = max((node[r] for r in scarce), default=0)
        by = float(most) if value is None else value[number]
        if most == 0:
            plain.append((by, number))
        else:
            kind = next(r for r in scarce if node[r] == most)
            lists[kind].append((by, number))
    for nodes in (plain, *lists.values()):
        nodes.sort()
    order = [number for _, number in plain]
    while any(lists.values()):
        longest = max(len(nodes) for nodes in lists.values())
        kind = next(r for r in scarce if len(lists[r]) == longest)
        order.append(lists[kind].pop(0)[1])
    return order


def take(nodes: Nodes, placed: Iterable[tuple[int, int]], demand: Sequence[int]) -> None:
    """Take what units placed on nodes need."""
    for node, units in placed:
        for resource, need in enumerate(demand):
            nodes[node][resource] -= units * need
            assert need == 0 or nodes[node][resource] >= 0, "a node is over-committed"


def take_of(nodes: Nodes, job: Job, there: set[int] | None = None) -> None:
    """Take what a job has of nodes, all or some; of cores there may be less than nothing then."""
    mine = [(node, units) for node, units in job.nodes if there is None or node in there]
    take(nodes, mine, (0, *job.demand[1:]))
    take_cores(nodes, mine, job)


def take_cores(nodes: Nodes, placed: Iterable[tuple[int, int]], job: Job) -> None:
    """Take the cores of units of a job, and nothing else (rule 13)."""
    for node, units in placed:
        nodes[node][0] -= units * job.demand[0]


Closings = Sequence[tuple[int, int, set[int]]]


def closed_in(table: Closings, first: int, last: int) -> set[int]:
    """Return the nodes that a table closes at any time from one to another, both included."""
    return {n for begin, end, nodes in table if end > first and begin <= last for n in nodes}


def next_opening(table: Closings, after: int, until: int, usable: set[int]) -> int | None:
    """Rule 14: s'."""
    times = sorted({time for begin, end, _ in table for time in (begin, end) if time > after})
    period, closed = after, closed_in(table, after, after)
    seen = closed
    for time in times:
        then = closed_in(table, time, time)
        if then == closed:
            continue
        if (seen - then) & usable:
            return time
        if period > until:
            return None
        period, closed = time, then
        seen = seen | then
    return None


def least_of(states: Sequence[Nodes]) -> Nodes:
    """Return the least that each node has of each resource."""
    least: Nodes = []
    for node in zip(*states, strict=True):
        amounts = [min(each) for each in zip(*node, strict=True)]
        barred = any(isinstance(state, Barred) for state in node)
        least.append(Barred(amounts) if barred else amounts)
    return least
