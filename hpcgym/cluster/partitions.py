"""Partitions: sets of nodes, which may overlap; a job has nodes of its own partition only."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hpcgym.errors import HpcgymError, unknown
from hpcgym.naming import name_problem

_PART = re.compile(r"(\d{1,9})(?:-(\d{1,9}))?")
_COMMA = re.compile(r",(?![^\[\]]*\])")  # outside brackets

#: States of a partition: jobs come and start; they come and none starts; none comes, and those that
#: wait start; none comes, and none starts.
STATES = ("up", "down", "drain", "inactive")


@dataclass(frozen=True)
class Partition:
    """A set of nodes with a name, which jobs ask for; partitions may overlap.

    A job gets nodes of its partition alone, and must be one that it lets run, by time, nodes,
    account, QOS and state (:mod:`hpcgym.workload.partition_limits`). ``priority_tier`` and
    ``priority_factor`` count where a slurm.conf is the scheduler
    (:mod:`hpcgym.scheduler.slurm_conf`). ``qos`` is read from it (its man page,
    "PARTITION CONFIGURATION"), and no simulation goes by it yet.

    Attributes
    ----------
    name : what jobs call it.
    nodes : numbers of its nodes in the machine, ascending.
    default : whether jobs that name no partition are in it.
    max_time_s, default_time_s : the longest that a job may ask for, and what one asks for that does
        not say [s]; None: no limit, or the longest.
    min_nodes, max_nodes : of a job: on the most, and the fewest, that hold it; no most if None.
    priority_tier : jobs of a higher one are served first.
    priority_factor : ``PriorityJobFactor``, what counts as the partition's part of priorities.
    allow_accounts, deny_accounts, allow_qos, deny_qos : names, or numbers that have none; empty:
        all, nobody, all, none. With ``allow_accounts``, ``deny_accounts`` does not count, nor does
        ``deny_qos`` with ``allow_qos``.
    qos : the QOS whose limits hold for the whole partition, if there is one.
    exclusive : whether each job has whole nodes, if these are all alike
        (:func:`hpcgym.workload.with_whole_nodes`).
    state : a name of :data:`STATES`.

    Raises
    ------
    HpcgymError : no name, no nodes, an unknown state, or a MinNodes above MaxNodes.
    """

    name: str
    nodes: tuple[int, ...]
    default: bool = False
    max_time_s: int | None = None
    default_time_s: int | None = None
    min_nodes: int = 0
    max_nodes: int | None = None
    priority_tier: int = 1
    priority_factor: int = 1
    allow_accounts: tuple[str, ...] = ()
    deny_accounts: tuple[str, ...] = ()
    allow_qos: tuple[str, ...] = ()
    deny_qos: tuple[str, ...] = ()
    qos: str | None = None
    exclusive: bool = False
    state: str = "up"

    def __post_init__(self) -> None:
        if problem := name_problem(self.name):
            raise HpcgymError(f"the name of a partition must be {problem}")
        where = f"partition {self.name!r}"
        numbers = sorted({*self.nodes}) if _whole_numbers(self.nodes) else []
        if not numbers or numbers[0] < 0:
            raise HpcgymError(f"{where}: nodes must be numbers of nodes from 0, at least one")
        object.__setattr__(self, "nodes", tuple(numbers))
        if self.state not in STATES:
            raise HpcgymError(f"{where}: {unknown('state', self.state, STATES)}")
        if self.max_nodes is not None and self.min_nodes > self.max_nodes:
            raise HpcgymError(
                f"{where}: its MinNodes, {self.min_nodes}, is more than its MaxNodes,"
                f" {self.max_nodes}: no job could run"
            )


def listed(partitions: Any, n_nodes: int) -> tuple[Partition, ...]:
    """Return partitions of a machine as a tuple, or say what is wrong with them."""
    found = [partitions] if isinstance(partitions, Partition) else partitions
    if not isinstance(found, list | tuple) or not all(isinstance(p, Partition) for p in found):
        raise HpcgymError(f"partitions must be Partition after Partition, not {partitions!r}")
    names = [one.name for one in found]
    for one in found:
        if names.count(one.name) > 1:
            raise HpcgymError(f"two partitions have the name {one.name!r}")
        if one.nodes[-1] >= n_nodes:
            raise HpcgymError(
                f"partition {one.name!r}: node {one.nodes[-1]} is none of the machine, which has"
                f" {n_nodes:,} nodes, counted from 0"
            )
    return tuple(found)


def nodes_of_text(text: str, groups: Sequence[tuple[str, int]], where: str) -> list[int]:
    """Return the numbers of the nodes that a text such as ``gpu,0-3,7`` or ``n[01-04],n9`` names.

    Parameters
    ----------
    text : names of groups, numbers of nodes, first and last of several, and, where the name of a
        group is a list of names of Slurm such as ``n[01-64]``, names of nodes; between commas.
    groups : name and number of nodes of each group, in order.
    where : what messages call the partition.

    Raises
    ------
    HpcgymError : a part that is neither a group nor nodes of the machine; the message begins with
        ``where``.
    """
    first, ranges = 0, {}
    for name, number in groups:
        ranges[name] = range(first, first + number)
        first += number
    nodes: list[int] = []
    for part in filter(None, (part.strip() for part in _COMMA.split(text))):
        numbers = _PART.fullmatch(part)
        if numbers is None and part not in ranges:
            nodes += _by_name(part, ranges, where)
            continue
        if numbers is not None:
            last = int(numbers[2] or numbers[1])
            if last >= first:
                raise HpcgymError(
                    f"{where}: node {last} is none of the machine, which has {first:,} nodes,"
                    " counted from 0"
                )
            if last < int(numbers[1]):
                raise HpcgymError(f"{where}: nodes: {part} is no range of nodes")
            nodes += range(int(numbers[1]), last + 1)
        else:
            nodes += ranges[part]
    return nodes


def _by_name(part: str, ranges: Mapping[str, range], where: str) -> list[int]:
    """Return the numbers of nodes that are named as in Slurm, ``n[01-04]``, by groups' names."""
    from hpcgym.cluster.slurm.lines import hosts  # whose package needs this module

    names = names_of_nodes([(name, len(numbers)) for name, numbers in ranges.items()])
    known = {name: number for number, name in enumerate(names)}
    wanted = hosts(part, where)
    if missing := [one for one in wanted if one not in known]:
        raise HpcgymError(
            f"{where}: nodes: {missing[0]!r} is neither a group nor a number of nodes such as 0-3,"
            f" nor the name of a node; groups are {', '.join(ranges)}"
        )
    return [known[one] for one in wanted]


def names_of_nodes(groups: Sequence[tuple[str, int]]) -> list[int | str]:
    """Return the name of each node, or its number if it has none.

    Nodes have names where a group is called by a list of Slurm such as ``n[01-64]``, as the groups
    of a slurm.conf are; groups of one node beside it are called by its name.

    Parameters
    ----------
    groups : name and number of nodes of each group, in order.
    """
    from hpcgym.cluster.slurm.lines import hosts  # whose package needs this module

    listed = any("[" in name for name, _ in groups)
    found: list[int | str] = []
    for name, number in groups:
        try:
            names = hosts(name, name) if listed else []
        except HpcgymError:  # a name that is no list
            names = []
        numbers = range(len(found), len(found) + number)
        found += names if len(names) == number else numbers
    return found


def text_of_nodes(nodes: Iterable[int]) -> str:
    """Return ascending numbers of nodes as such a text: ``0-3,7``.

    >>> text_of_nodes([0, 1, 2, 7])
    '0-2,7'
    """
    runs: list[list[int]] = []
    for node in nodes:
        if runs and node == runs[-1][1] + 1:
            runs[-1][1] = node
        else:
            runs.append([node, node])
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in runs)


def _whole_numbers(numbers: Any) -> bool:
    """Return whether these are whole numbers in a list."""
    return isinstance(numbers, Iterable) and all(
        hasattr(number, "__index__") and not isinstance(number, bool) for number in numbers
    )
