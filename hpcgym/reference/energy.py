"""The power of a machine and the energy charged to each job: the rules as a program to read.

Sums are exact: powers and times are whole numbers of tiny units. It takes the attributes of a
schedule, its machine and its jobs; :mod:`hpcgym.schedule.books` works out the same fast, by other
code.

Rules
-----
 1. Everything counts from the first submission to the last end.
 2. A node of a group with a power of its own is off, being switched, idle, or runs jobs: then it
    draws the busy power of the highest level of its jobs. They divide this by their cores times
    the busy power of their own levels.
 3. A job with measured power draws it on each of its cores, at a lower level as much less as the
    node does, in whole steps, and is charged it. The other cores are a smaller node of this kind.
 4. Nodes without a power of their own are cores, as a pool is: each is busy, idle, off or switched
    for itself, and a job is charged its cores.
 5. A component above nodes draws its power, which is divided among the nodes below it, unless all
    of these are off. Nodes that are off draw nothing while all of their component of the first
    level are.
 6. No job is charged what is idle, off or switched, or stands above nodes.
 7. A pool whose processors are switched off tells for how many seconds they were in each state,
    not when: its energy is known, and its power over time is not.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise
from typing import Any, NamedTuple

STATES = ("off", "switching_off", "switching_on")
STEP = Fraction(1, 2**20)  # of measured power [W]
_WATT, _SECOND = 2**60, 2**40  # in the units that are summed
Period = tuple[Any, Any]  # from when to when [s]


class NodePart(NamedTuple):
    """The part of a node that a job has; ``own`` : measured power on each core [W], or None."""

    job: int
    cores: int
    level: int
    own: float | None


class Draw(NamedTuple):
    """What is drawn in a state, in units of power; by which job, -1 if none is charged for it."""

    state: str
    job: int
    power: int


@dataclass(frozen=True, eq=False)
class NodeKind:
    """Cores of a kind of nodes, and the power of a node by level and by state [W].

    ``whole`` : such nodes are busy as a whole (rule 2), and not core by core (rule 4).
    """

    cores: int
    busy: list[Fraction]
    names: list[str]  # of being busy, by level
    watts: dict[str, Fraction]
    whole: bool
    known: dict[Any, tuple[str, tuple[int, ...]]] = field(default_factory=dict)


class Energies:
    """What a machine has drawn: by state, by node, and by job, as it is added."""

    def __init__(self) -> None:
        self._state, self._node, self._job = (defaultdict[Any, int](int) for _ in range(3))
        # group of nodes -> time [s] -> by how much its power changes then
        self._changes: dict[int, dict[Any, int]] = defaultdict(_counts)

    def add(self, node: int, group: int, draw: Draw, period: Period) -> None:
        """Add what a node draws from when to when."""
        begin, end = period
        energy = draw.power * int((end - begin) * _SECOND)
        self._state[draw.state] += energy
        self._node[node] += energy
        if draw.job >= 0:
            self._job[draw.job] += energy
        changes = self._changes[group]
        changes[begin] += draw.power
        changes[end] -= draw.power

    def add_core_seconds(self, kind: NodeKind, state: str, core_seconds: Any) -> None:
        """Add what processors of a pool draw in a state: rule 7."""
        energy = _units(kind.watts[state] / kind.cores) * int(core_seconds * _SECOND)
        self._state[state] += energy
        self._node[0] += energy

    def by_state(self) -> dict[str, Fraction]:
        """Return the energy of the whole machine in each state [J]."""
        return {state: Fraction(energy, _WATT * _SECOND) for state, energy in self._state.items()}

    def by_node(self, nodes: int) -> list[Fraction]:
        """Return the energy of each node, (nodes,) [J]."""
        return [Fraction(self._node[node], _WATT * _SECOND) for node in range(nodes)]

    def by_job(self, jobs: int) -> list[Fraction]:
        """Return what each job is charged, (jobs,) [J]."""
        return [Fraction(self._job[job], _WATT * _SECOND) for job in range(jobs)]

    def watts(self, group: int | None = None) -> dict[Any, Fraction]:
        """Return the power from each of its changes on, of a group or of the machine [W]."""
        changes: dict[Any, int] = defaultdict(int)
        for number in self._changes if group is None else (group,):
            for time, power in self._changes[number].items():
                changes[time] += power
        watts, now = {}, 0
        for time in sorted(changes):
            now += changes[time]
            watts[time] = Fraction(now, _WATT)
        return watts


def _counts() -> dict[Any, int]:
    return defaultdict(int)


def _units(watts: Fraction) -> int:
    """Return watts in the units that are summed."""
    return round(watts * _WATT)


def energies_of(result: Any) -> Energies:
    """Return the energy of a schedule, of jobs that have started."""
    energies, cluster = Energies(), result.cluster
    ends = [end for start, end in zip(*_times(result), strict=True) if start >= 0]
    if not ends:
        return energies
    span = min(result.workload.submit_time.tolist()), max(ends)
    kinds = [_kind(cluster, group) for group in cluster.groups or (None,)]
    groups = [number for number, group in enumerate(cluster.groups) for _ in range(group.nodes)]
    groups = groups or [0]
    switched = _switched(result, span)
    _add_components(energies, cluster, kinds, groups, switched, span)
    parts = _parts(result, groups, kinds)
    for node, group in enumerate(groups):
        for draw, period in _of_node(kinds[group], parts[node], switched[node], span):
            if draw.state != "idle" or result.idle_seconds is None:
                energies.add(node, group, draw, period)
    for state, core_seconds in (result.idle_seconds or {}).items():  # rule 7
        energies.add_core_seconds(kinds[0], state, core_seconds)
    return energies


def _times(result: Any) -> tuple[list[Any], list[Any]]:
    return result.start.tolist(), result.end.tolist()


def _kind(cluster: Any, group: Any) -> NodeKind:
    """Return the kind of nodes of a group, None: of a pool."""
    cores = cluster.processors if group is None else group.resources["core"]
    power = None if group is None else group.power
    whole = power is not None
    source, times = (power, 1) if whole else (cluster, cores)
    idle, off = ("idle_w", "off_w") if whole else ("idle_power_w", "off_power_w")
    names = {"idle": idle, "off": off, "switching_off": "shutdown_w", "switching_on": "boot_w"}
    watts = {state: times * Fraction(getattr(source, name)) for state, name in names.items()}
    busy: Any = (cluster.busy_power_w,)
    ghz: Any = ()
    if power is not None:
        busy, ghz = power.busy_levels_w, power.frequency_ghz
    labels = [f"busy_{each:g}ghz" for each in ghz] or ["busy"]
    return NodeKind(cores, [times * Fraction(each) for each in busy], labels, watts, whole)


NodeParts = list[tuple[NodePart, Period]]


def _parts(result: Any, groups: list[int], kinds: list[NodeKind]) -> dict[int, NodeParts]:
    """Return the parts of each node that jobs have had, and when."""
    parts: dict[int, NodeParts] = defaultdict(list)
    workload, allocation = result.workload, result.allocation
    measured = workload.columns.get("power_w")
    for job, period in enumerate(zip(*_times(result), strict=True)):
        if period[0] < 0 or period[0] == period[1]:
            continue
        own = None if measured is None or measured[job] < 0 else float(measured[job])
        held = Counter({0: int(workload.requested_processors[job])})
        if result.cluster.groups:
            each = 1 if workload.units is None else int(workload.per_unit["core"][job])
            cells = slice(allocation.first[job], allocation.first[job + 1])
            nodes, units = allocation.node[cells].tolist(), allocation.units[cells].tolist()
            held = Counter()
            for node, number in zip(nodes, units, strict=True):
                held[node] += each * number
        for node, cores in held.items():
            level = len(kinds[groups[node]].busy) - 1
            if result.frequency is not None:
                level = min(level, int(result.frequency[job]))
            parts[node].append((NodePart(job, cores, level, own), period))
    return parts


def _of_node(
    kind: NodeKind, parts: NodeParts, switched: list[tuple[str, Period]], span: Period
) -> Iterator[tuple[Draw, Period]]:
    """Yield what a node draws, and from when to when: rules 2 to 4."""
    changes: dict[Any, list[tuple[NodePart, bool]]] = {time: [] for time in span}
    for part, period in parts:
        if part.own is not None:
            # the products are rounded to double precision, then to steps
            scale = float(kind.busy[part.level]) / float(kind.busy[-1]) if kind.busy[-1] else 1.0
            watts = round(Fraction(part.own * scale) / STEP) * STEP * part.cores
            yield Draw(kind.names[part.level], part.job, _units(watts)), period
        elif not kind.whole:
            watts = kind.busy[0] * part.cores / kind.cores
            yield Draw(kind.names[0], part.job, _units(watts)), period
        for time, begins in zip(period, (True, False), strict=True):
            changes.setdefault(time, []).append((part, begins))
    on = NodePart(-1, kind.cores, 0, 0.0)  # what is switched is not idle: as a job on all cores
    for state, period in switched:
        yield Draw(state, -1, _units(kind.watts[state])), period
        for time, begins in zip(period, (True, False), strict=True):
            changes.setdefault(time, []).append((on, begins))
    idle, sharing = kind.cores, dict[int, NodePart]()
    for begin, end in pairwise(sorted(changes)):
        for part, begins in changes[begin]:
            if part.own is not None or not kind.whole:
                idle += -part.cores if begins else part.cores
            elif begins:
                sharing[part.job] = part
            else:
                del sharing[part.job]
        jobs = tuple((part.cores, part.level) for part in sharing.values())
        state, powers = _together(kind, idle, jobs)
        for job, power in zip(sharing or (-1,), powers, strict=True):
            yield Draw(state, job, power), (begin, end)


def _together(
    kind: NodeKind, cores: int, jobs: tuple[tuple[int, int], ...]
) -> tuple[str, tuple[int, ...]]:
    """Return the state of so many cores of a node, and what each of their jobs draws.

    ``jobs`` : cores and level of each, which are busy as a whole; without any they are idle. What
    has been worked out is kept with the kind: most nodes are used alike.
    """
    if (cores, jobs) in kind.known:
        return kind.known[cores, jobs]
    share = Fraction(cores, kind.cores)
    state, powers = "idle", [share * kind.watts["idle"]]
    if jobs:
        highest = max(level for _, level in jobs)
        weights = [number * kind.busy[level] for number, level in jobs]
        each = share * kind.busy[highest] / (sum(weights) or 1)
        state, powers = kind.names[highest], [each * weight for weight in weights]
    drawn = kind.known[cores, jobs] = state, tuple(_units(power) for power in powers)
    return drawn


def _switched(result: Any, span: Period) -> dict[int, list[tuple[str, Period]]]:
    """Return when each node was off or being switched, in order."""
    switched: dict[int, list[tuple[str, Period]]] = defaultdict(list)
    states, (first, last) = result.node_states, span
    if states is not None:
        rows = zip(*(column.tolist() for column in vars(states).values()), strict=True)
        for node, code, begin, end in rows:
            if max(begin, first) < min(end, last):
                switched[node].append((STATES[code], (max(begin, first), min(end, last))))
    return switched


def _add_components(
    energies: Energies,
    cluster: Any,
    kinds: list[NodeKind],
    groups: list[int],
    switched: dict[int, list[tuple[str, Period]]],
    span: Period,
) -> None:
    """Add what stands above nodes: rule 5."""
    size = 1
    for place, level in enumerate(cluster.levels):
        size *= level.of
        for at in range(0, len(groups), size):
            below = range(at, min(at + size, len(groups)))
            power = _units(Fraction(level.power_w) / len(below))
            dark = _all_off([switched[node] for node in below])
            for node in below:
                energies.add(node, groups[node], Draw("components", -1, power), span)
                for period in dark:
                    energies.add(node, groups[node], Draw("components", -1, -power), period)
                    if place == 0:
                        off = _units(kinds[groups[node]].watts["off"])
                        energies.add(node, groups[node], Draw("off", -1, -off), period)


def _all_off(nodes: list[list[tuple[str, Period]]]) -> list[Period]:
    """Return when all of these nodes were off."""
    changes: dict[Any, int] = defaultdict(int)
    for periods in nodes:
        for state, (begin, end) in periods:
            if state == "off":
                changes[begin] += 1
                changes[end] -= 1
    dark, number = [], 0
    for begin, end in pairwise(sorted(changes)):
        number += changes[begin]
        if number == len(nodes):
            dark.append((begin, end))
    return dark
