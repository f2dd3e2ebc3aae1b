"""Partitions: sets of nodes, which may overlap; a job has nodes of its own partition only."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, TypeVar

from hpcgym.errors import HpcgymError, unknown
from hpcgym.names import name_problem

T = TypeVar("T")

_RANGE = re.compile(r"(\d+)(?:-(\d+))?")
_COMMA = re.compile(r",(?![^\[\]]*\])")  # outside brackets

#: States of a partition: jobs come and start; they come and none starts; none comes, and those that
#: wait start; none comes, and none starts.
STATES = ("up", "down", "drain", "inactive")

MOST_NODES = 2**20  # of a machine: capacities are an array with a row for each


@dataclass(frozen=True)
class Partition:
    """A set of nodes with a name, which jobs ask for; partitions may overlap.

    A job gets nodes of its partition only, and the partition must let it run, by time, nodes,
    account, QOS and state (:mod:`hpcgym.workload.partitions`). ``priority_tier`` and
    ``priority_factor`` count where a slurm.conf is the scheduler
    (:mod:`hpcgym.scheduler.slurm_conf`), and ``qos`` where a file of QOS is given with it.

    Attributes
    ----------
    name : its name in jobs.
    nodes : numbers of its nodes in the machine, ascending; without any no job can run in it.
    default : whether jobs that name no partition are in it, if they are loaded with the machine
        (:func:`hpcgym.workload.partitions.in_default_partition`).
    max_time_s, default_time_s : the longest requested time, and that of jobs that request none [s];
        None: no limit, or the longest.
    min_nodes, max_nodes : of a job: on the most, and the fewest, that hold it; no most if None.
    max_cores_per_node : that all jobs of the partition together have of a node; None: all.
    max_memory_per_node_mb : of a job, where it is known on how many nodes it is; None: no limit.
    default_memory : MB for each of an amount, ``processors=2000``, of jobs that tell none, if they
        are loaded with the machine (:func:`hpcgym.workload.partitions.with_default_memory`).
    priority_tier : jobs of a higher one are served first.
    priority_factor : ``PriorityJobFactor``, the partition's part of priorities.
    allow_accounts, deny_accounts, allow_qos, deny_qos : names, or numbers without a name; an empty
        allow-list allows all, an empty deny-list denies none. With ``allow_accounts``,
        ``deny_accounts`` does not count, nor does ``deny_qos`` with ``allow_qos``.
    qos : the QOS whose limits hold for the whole partition, if there is one.
    exclusive : whether each job has whole nodes, if these have all as many cores
        (:func:`hpcgym.workload.with_whole_nodes`).
    state : a name of :data:`STATES`.
    billing : weights of amounts by which its jobs are billed, ``cpu=1,gres/gpu=16``, where the log
        does not tell it; "": their processors.
    bills_greatest : whether the greatest of these counts, and not the sum.

    Raises
    ------
    HpcgymError : no name, nodes that are no numbers, an unknown state, a MinNodes above MaxNodes.
    """

    name: str
    nodes: tuple[int, ...]
    default: bool = False
    max_time_s: int | None = None
    default_time_s: int | None = None
    min_nodes: int = 0
    max_nodes: int | None = None
    max_cores_per_node: int | None = None
    max_memory_per_node_mb: int | None = None
    default_memory: str = ""
    priority_tier: int = 1
    priority_factor: int = 1
    allow_accounts: tuple[str, ...] = ()
    deny_accounts: tuple[str, ...] = ()
    allow_qos: tuple[str, ...] = ()
    deny_qos: tuple[str, ...] = ()
    qos: str | None = None
    exclusive: bool = False
    state: str = "up"
    billing: str = ""
    bills_greatest: bool = False

    def __post_init__(self) -> None:
        if problem := name_problem(self.name):
            raise HpcgymError(f"the name of a partition must be {problem}")
        where = f"partition {self.name!r}"
        if not _whole_numbers(self.nodes) or min(self.nodes, default=0) < 0:
            raise HpcgymError(f"{where}: nodes must be numbers of nodes from 0")
        object.__setattr__(self, "nodes", tuple(sorted({*self.nodes})))
        if self.state not in STATES:
            raise HpcgymError(f"{where}: {unknown('state', self.state, STATES)}")
        if self.max_nodes is not None and self.min_nodes > self.max_nodes:
            raise HpcgymError(
                f"{where}: its MinNodes, {self.min_nodes}, is more than its MaxNodes,"
                f" {self.max_nodes}: no job could run"
            )


def all_checked(partitions: Any, n_nodes: int) -> tuple[Partition, ...]:
    """Return partitions of a machine as a tuple, or say what is wrong with them."""
    checked = named_once(partitions, Partition, "partitions", "Partition after Partition")
    for partition in checked:
        check_node(f"partition {partition.name!r}", max(partition.nodes, default=0), n_nodes)
    return checked


def check_node(where: str, node: int, n_nodes: int) -> None:
    """Raise an HpcgymError of a node that a machine does not have; ``where`` begins the message."""
    if node >= n_nodes:
        raise HpcgymError(
            f"{where}: the machine has no node {node}: it has {n_nodes:,}, counted from 0"
        )


def named_once(given: Any, kind: type[T], what: str, must: str, many: str = "") -> tuple[T, ...]:
    """Return things of one kind as a tuple; raise an HpcgymError for others, or for equal names.

    Parameters
    ----------
    given : things, or one.
    what, must, many : what messages call the argument, what it must be, and the things.
    """
    things = [given] if isinstance(given, kind) else given
    if not isinstance(things, list | tuple) or not all(isinstance(thing, kind) for thing in things):
        raise HpcgymError(f"{what} must be {must}, not {given!r}")
    names = [str(vars(thing)["name"]) for thing in things]
    for name in names:
        if names.count(name) > 1:
            raise HpcgymError(f"two {many or what} have the name {name!r}")
    return tuple(things)


def nodes_of_text(
    text: str, groups: Sequence[tuple[str, int]], where: str, left_out: list[str] | None = None
) -> list[int]:
    """Return the numbers of the nodes that a text such as ``gpu,0-3,7`` or ``n[01-04],n9`` names.

    Parameters
    ----------
    text : names of groups, numbers of nodes, first and last of several, and, where the name of a
        group is a list of names of Slurm such as ``n[01-64]``, names of nodes; between commas.
    groups : name and number of nodes of each group, in order.
    where : what messages call the partition.
    left_out : to which names of nodes are added that the machine does not have; None: an error.

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
        if _RANGE.fullmatch(part):
            numbers = [int(number) for number in _several(part, where, text)]
            check_node(where, numbers[-1], first)
            nodes += numbers
        else:
            nodes += ranges[part] if part in ranges else _by_name(part, ranges, where, left_out)
    return nodes


def _by_name(
    part: str, ranges: Mapping[str, range], where: str, left_out: list[str] | None
) -> list[int]:
    """Return the numbers of nodes that are named as in Slurm, ``n[01-04]``, by groups' names."""
    names = names_of_nodes([(name, len(numbers)) for name, numbers in ranges.items()])
    known = {name: number for number, name in enumerate(names)}
    wanted = hosts(part, where)
    missing = [name for name in wanted if name not in known]
    if missing and left_out is None:
        raise HpcgymError(
            f"{where}: nodes: {missing[0]!r} is neither a group nor a number of nodes such as 0-3,"
            f" nor the name of a node; groups are {', '.join(ranges)}"
        )
    if left_out is not None:
        left_out += missing
    return [known[name] for name in wanted if name in known]


def names_of_nodes(groups: Sequence[tuple[str, int]]) -> list[int | str]:
    """Return the name of each node, or its number if it has none.

    Nodes have names where a group is called by a list of Slurm such as ``n[01-64]`` or ``a,b``, as
    the groups of a slurm.conf are; groups of one node beside it are called by its name.

    Parameters
    ----------
    groups : name and number of nodes of each group, in order.
    """
    listed = any({"[", ","} & {*name} for name, _ in groups)
    nodes: list[int | str] = []
    for name, number in groups:
        try:
            names = hosts(name, name) if listed else []
        except HpcgymError:  # a name that is no list
            names = []
        numbers = range(len(nodes), len(nodes) + number)
        nodes += names if len(names) == number else numbers
    return nodes


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


# --- Lists of nodes as Slurm writes them ----------------------------------------------------------

_BRACKETS = re.compile(r"\[[^][]*\]")
_PIECE = re.compile(r"\[([^][]*)\]|([^][]+)")


def hosts(text: str, where: str) -> list[str]:
    """Return the names of a list, in its order.

    ``n[1-3,5]`` is n1, n2, n3 and n5; zeros before a first number are kept, as in ``n[008-011]``. A
    name may have several brackets: ``r[1-2]n[1-2]`` is r1n1, r1n2, r2n1, r2n2.

    Raises
    ------
    HpcgymError : brackets that are not closed or hold no numbers, a range that goes down, or more
        than 2^20 names; ``where`` begins the message.
    """
    names: list[str] = []
    for part in _apart(text, where):
        pieces = _PIECE.finditer(part)
        parts = [_several(m[1], where, text) if m[2] is None else [m[2]] for m in pieces]
        if len(names) + math.prod(map(len, parts)) > MOST_NODES:
            raise HpcgymError(f"{where}: {text[:40]!r} names more than {MOST_NODES:,} nodes")
        names += map("".join, product(*parts))
    return names


_LAST_NUMBER = re.compile(r"(.*?)(\d{1,9})(\D*)")


def text_of_hosts(names: Iterable[str]) -> str:
    """Return names as such a list, in their order; those that differ in their last number as one.

    >>> text_of_hosts(["n08", "n09", "n10", "n12", "login"])
    'n[08-10,12],login'
    """
    lists: list[tuple[tuple[str, str], list[str]]] = []  # what stands around brackets, and in them
    first, last, width = 0, 0, 0
    for name in names:
        parts = _LAST_NUMBER.fullmatch(name)
        if parts is None:
            lists.append(((name, ""), []))
            continue
        around, text = (parts[1], parts[3]), parts[2]
        if not lists or not lists[-1][1] or lists[-1][0] != around:
            lists.append((around, []))
        ranges = lists[-1][1]
        if ranges and text == str(last + 1).zfill(width):
            ranges[-1] = f"{str(first).zfill(width)}-{text}"
        else:
            first, width = int(text), len(text)
            ranges.append(text)
        last = int(text)
    shown = [
        f"{before}[{inside}]{after}" if set("-,") & {*inside} else f"{before}{inside}{after}"
        for (before, after), inside in ((around, ",".join(ranges)) for around, ranges in lists)
    ]
    return ",".join(shown)


def _apart(text: str, where: str) -> list[str]:
    """Return what stands between commas outside brackets."""
    if {"[", "]"} & set(_BRACKETS.sub("", text)):
        raise HpcgymError(f"{where}: {text[:40]!r} has brackets that are not closed")
    parts = _COMMA.split(text)
    if not all(parts):
        raise HpcgymError(f"{where}: {text[:40]!r} is no list of nodes such as n[1-4,7]")
    return parts


def _several(inside: str, where: str, text: str) -> list[str]:
    """Return the numbers of one pair of brackets, as texts."""
    numbers: list[str] = []
    for piece in inside.split(","):
        match = _RANGE.fullmatch(piece.strip())
        first, last = (match[1], match[2] or match[1]) if match else ("1", "0")
        if not match or int(last) < int(first):
            raise HpcgymError(f"{where}: [{inside[:40]}] is no range of nodes such as [1-4,7]")
        if int(last) - int(first) >= MOST_NODES:
            raise HpcgymError(f"{where}: {text[:40]!r} names more than {MOST_NODES:,} nodes")
        numbers += (str(n).zfill(len(first)) for n in range(int(first), int(last) + 1))
    return numbers
