"""Slow, obvious books: every node in every second. Shares no code with hpcgym.

It takes attributes of results, clusters and workloads, and nothing else. All is exact: fractions.

- A node of a group with a power of its own is, in a second, off, being switched, idle, or runs
  jobs. It draws the busy watts of the highest level of its jobs, and they divide these by their
  cores times the watts of their own levels.
- A job with measured power draws it on each core (at a lower level as much less as the node does),
  and is charged it. The other cores of the node are a smaller node of the same kind.
- Nodes without a power of their own are cores, each busy, idle, off or switched for itself.
- A component above nodes draws its watts unless all nodes below are off; nodes that are off draw
  nothing while all of their component of the first level are.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

STATES = ("off", "switching_off", "switching_on")
STEP = Fraction(1, 2**20)  # of measured power [W]


@dataclass
class SlowBooks:
    """What was drawn [J]."""

    by_state: dict[str, Fraction] = field(default_factory=lambda: defaultdict(Fraction))
    by_node: dict[int, Fraction] = field(default_factory=lambda: defaultdict(Fraction))
    by_group: dict[int, Fraction] = field(default_factory=lambda: defaultdict(Fraction))
    by_job: dict[int, Fraction] = field(default_factory=lambda: defaultdict(Fraction))
    power: dict[int, Fraction] = field(default_factory=lambda: defaultdict(Fraction))
    of_group: dict[tuple[int, int], Fraction] = field(default_factory=lambda: defaultdict(Fraction))


@dataclass
class Node:
    """A node, with what of its group matters."""

    number: int
    group: int
    cores: int
    power: Any
    cluster: Any

    def watts(self, state: str) -> Fraction:
        """Power of the node, or all its cores, where it has no job."""
        if self.power is not None:
            names = {"idle": "idle_w", "off": "off_w"}
            names |= {"switching_off": "shutdown_w", "switching_on": "boot_w"}
            return Fraction(getattr(self.power, names[state]))
        names = {"idle": "idle_power_w", "off": "off_power_w"}
        names |= {"switching_off": "shutdown_w", "switching_on": "boot_w"}
        return self.cores * Fraction(getattr(self.cluster, names[state]))

    def level(self, given: int | None) -> int:
        top = 0 if self.power is None else len(self.power.busy_w) - 1
        return top if given is None else min(given, top)

    def busy(self, level: int) -> Fraction:
        """Power of the node, or all its cores, where it runs jobs."""
        if self.power is None:
            return self.cores * Fraction(self.cluster.busy_power_w)
        return Fraction(self.power.busy_w[level])

    def called(self, level: int) -> str:
        if self.power is None or not self.power.frequency_ghz:
            return "busy"
        return f"busy_{self.power.frequency_ghz[level]:g}ghz"


def keep_slowly(result: Any) -> SlowBooks:
    """Return the books of a schedule, second by second."""
    books = SlowBooks()
    nodes = _nodes(result.cluster)
    started = [job for job, start in enumerate(result.start.tolist()) if start >= 0]
    if not started:
        return books
    first = min(result.workload.submit_time.tolist())
    last = max(int(result.start[job] + result.run_time[job]) for job in started)
    for now in range(first, last):
        running = _running(result, started, now)
        states = _states(result, now)
        units = [node.number for node in nodes if states.get(node.number) == "off"]
        dark = _dark(result.cluster, units, len(nodes))
        for node in nodes:
            _of_node(
                books, node, running[node.number], states.get(node.number), node.number in dark, now
            )
        _of_components(books, result.cluster, nodes, set(units), now)
    return books


def _nodes(cluster: Any) -> list[Node]:
    found: list[Node] = []
    if not cluster.groups:
        return [Node(0, 0, cluster.processors, None, cluster)]
    for place, group in enumerate(cluster.groups):
        for _ in range(group.nodes):
            found.append(Node(len(found), place, group.resources["core"], group.power, cluster))
    return found


Running = list[tuple[int, int, int | None, Fraction | None]]  # job, cores, level, measured watts


def _running(result: Any, started: list[int], now: int) -> dict[int, Running]:
    """The jobs on each node."""
    found: dict[int, Running] = defaultdict(list)
    workload = result.workload
    for job in started:
        if not result.start[job] <= now < result.start[job] + result.run_time[job]:
            continue
        level = None if result.frequency is None else int(result.frequency[job])
        watts = workload.columns.get("power_w")
        own = None if watts is None or watts[job] < 0 else Fraction(float(watts[job]))
        if not result.cluster.groups:
            found[0].append((job, int(workload.requested_processors[job]), level, own))
            continue
        each = 1 if workload.units is None else int(workload.per_unit["core"][job])
        for cell in range(result.allocation.first[job], result.allocation.first[job + 1]):
            cores = each * int(result.allocation.units[cell])
            found[int(result.allocation.node[cell])].append((job, cores, level, own))
    return found


def _states(result: Any, now: int) -> dict[int, str]:
    states = result.node_states
    if states is None:
        return {}
    rows = zip(*(column.tolist() for column in vars(states).values()), strict=True)
    return {node: STATES[code] for node, code, begin, end in rows if begin <= now < end}


def _below(cluster: Any, level: int, nodes: int) -> list[list[int]]:
    """The nodes below each component of a level."""
    size = 1
    for one in cluster.levels[: level + 1]:
        size *= one.of
    return [list(range(at, min(at + size, nodes))) for at in range(0, nodes, size)]


def _dark(cluster: Any, off: list[int], nodes: int) -> set[int]:
    if not cluster.levels:
        return set()
    parts = _below(cluster, 0, nodes)
    return {node for part in parts if set(part) <= set(off) for node in part}


def _add(books: SlowBooks, node: Node, state: str, watts: Fraction, now: int) -> None:
    books.by_state[state] += watts
    books.by_node[node.number] += watts
    books.by_group[node.group] += watts
    books.power[now] += watts
    books.of_group[node.group, now] += watts


def _of_node(
    books: SlowBooks, node: Node, jobs: Running, state: str | None, dark: bool, now: int
) -> None:
    if state is not None:
        assert not jobs
        _add(books, node, state, Fraction(0) if dark else node.watts(state), now)
        return
    left = node.cores
    others = []
    for job, cores, given, own in jobs:
        level = node.level(given)
        if own is None:
            others.append((job, cores, level))
            continue
        top = node.busy(node.level(None))
        # the products are rounded to double precision, then to steps
        scale = float(node.busy(level)) / float(top) if top else 1.0
        watts = round(Fraction(float(own) * scale) / STEP) * STEP * cores
        _add(books, node, node.called(level), watts, now)
        books.by_job[job] += watts
        left -= cores
    part = Fraction(left, node.cores)
    if node.power is None:
        for job, cores, _ in others:
            watts = node.busy(0) * Fraction(cores, node.cores)
            _add(books, node, "busy", watts, now)
            books.by_job[job] += watts
            left -= cores
        _add(books, node, "idle", node.watts("idle") * Fraction(left, node.cores), now)
    elif others:
        highest = max(level for _, _, level in others)
        watts = part * node.busy(highest)
        _add(books, node, node.called(highest), watts, now)
        weights = {job: cores * node.busy(level) for job, cores, level in others}
        for job, weight in weights.items():
            if weight:
                books.by_job[job] += watts * weight / sum(weights.values())
    else:
        _add(books, node, "idle", part * node.watts("idle"), now)


def _of_components(
    books: SlowBooks, cluster: Any, nodes: list[Node], off: set[int], now: int
) -> None:
    for place, level in enumerate(cluster.levels):
        for below in _below(cluster, place, len(nodes)):
            if not set(below) <= off:
                for number in below:
                    watts = Fraction(level.power_w) / len(below)
                    _add(books, nodes[number], "components", watts, now)
