"""The machine: a pool of identical processors or groups of nodes, its queues and its power."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcgym.errors import HpcgymError, check_whole, real, watts
from hpcgym.machine.constraints import constraint_of, is_feature
from hpcgym.machine.partitions import MOST_NODES, Partition, all_checked, named_once, names_of_nodes
from hpcgym.machine.power import Level, NodePower
from hpcgym.names import (
    CORE,
    FEATURES,
    MEMORY,
    MOST_AMOUNT,
    MOST_OF_LIST,
    PARTITION,
    alike,
    name_problem,
    resource_problem,
)
from hpcgym.units import whole_seconds

# --- Groups of equal nodes, and what a node has of each resource ----------------------------------

#: An amount of a resource that the jobs on a node can never use up. Nodes have it of resources that
#: are not consumed, and of their partitions.
ANY_NUMBER = 2**40


@dataclass(frozen=True)
class NodeGroup:
    """Nodes that are all alike.

    Attributes
    ----------
    name : name of the group.
    nodes : number of nodes, at least 1.
    resources : resource -> whole amount on each node. ``core`` is at least 1 and comes first;
        ``mem`` is in MB; others, such as ``gpu``, have the names that jobs use, and
        :data:`ANY_NUMBER` of one limits no job.
    power : of each node; None: the flat powers of the machine's processors.
    sockets : processors in the sense of chips on each node, at least 1, that share its cores
        equally. Only jobs that share nodes go by them (ELiSE).
    features : names by which jobs may choose nodes, ``--constraint`` of Slurm.

    Raises
    ------
    HpcgymError : no nodes, no cores, an amount that is no whole number from 0 to 2^31, the name of
        an invalid resource (see :func:`hpcgym.names.resource_problem`), a power that is no
        :class:`~hpcgym.machine.power.NodePower`, sockets that do not divide the cores, or a feature
        that no constraint could name.
    """

    name: str
    nodes: int
    resources: Mapping[str, int] = field(hash=False)  # a dict has no hash
    power: NodePower | None = None
    sockets: int = 1
    features: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if problem := name_problem(self.name, MOST_NODES):  # it may be a list of nodes
            raise HpcgymError(f"the name of a group of nodes must be {problem}")
        where = f"group {self.name!r}"
        if not isinstance(self.resources, Mapping):
            raise HpcgymError(f"{where}: resources must be a mapping such as {{'core': 16}}")
        if self.power is not None and not isinstance(self.power, NodePower):
            raise HpcgymError(f"{where}: power must be a NodePower, not {self.power!r}")
        for name in self.resources:
            if problem := resource_problem(name):
                raise HpcgymError(f"{where}: {problem}")
        amounts = {name: _amount(where, name, each) for name, each in self.resources.items()}
        cores, settle = amounts.pop(CORE, 0), object.__setattr__
        if not cores:
            raise HpcgymError(f"{where}: a node needs at least 1 core")
        settle(self, "nodes", check_whole(f"{where}: nodes", self.nodes, 1, MOST_NODES))
        settle(self, "sockets", check_whole(f"{where}: sockets", self.sockets, 1, MOST_AMOUNT))
        if cores % self.sockets:
            raise HpcgymError(
                f"{where}: sockets must divide the {cores} cores of a node, which {self.sockets}"
                " does not"
            )
        settle(self, "resources", {CORE: cores, **amounts})
        if isinstance(self.features, str) or not isinstance(self.features, Iterable):
            raise HpcgymError(f"{where}: features must be a list of names, not {self.features!r}")
        settle(self, "features", tuple(self.features))
        for feature in self.features:
            if not is_feature(feature):
                raise HpcgymError(f"{where}: {feature!r} is no name of a feature")


def _amount(where: str, name: Any, amount: Any) -> int:
    """Return the amount of a resource on a node, checked."""
    if amount == ANY_NUMBER and name not in (CORE, MEMORY):
        return ANY_NUMBER
    what = "a whole number of MB" if name == MEMORY else "a whole number"
    return check_whole(f"{where}: {name}", amount, 0, MOST_AMOUNT, what)


# --- The machine ----------------------------------------------------------------------------------

MOST_PROCESSORS = 2**31  # so that no sum of processors overflows


class Usual(float):
    """A default power, not a given one. It counts like any other; copies of a machine keep it."""


@dataclass(frozen=True)
class Cluster:
    """A machine: a pool of identical processors, or nodes with several resources.

    Attributes
    ----------
    processors : number of processors, at least 1. With ``groups`` it is the sum of their cores, and
        need not be given.
    idle_power_w : power of a processor without a job [W]. The default, like that of
        ``busy_power_w``, is a node of the Curie machine (Glesser 2016, table 4.2): tables and files
        have no energies if no power was given, see ``watts_given``.
    busy_power_w : power of a processor that runs a job [W].
    shutdown_after_s : whole seconds of idleness after which a processor is switched off; None:
        never. A job that takes processors which are off, or being switched off, starts when they
        have been switched on; the scheduler plans as if they were ready at once. The same holds for
        nodes with a power of their own; jobs have whole nodes then.
    off_power_w : power of a processor that is off [W], by default as in the same table.
    shutdown_time_s, boot_time_s : whole seconds that it takes to switch off, and on.
    shutdown_power_w, boot_power_w : power meanwhile [W]; by default idle power, and busy power.
    groups : the nodes, :class:`~hpcgym.machine.pool.NodeGroup` after group; none: a pool. Nodes
        are numbered from 0 in this order. Where a group has a power of its own, that of processors
        does not count.
    queues : name of a queue -> time that its jobs are expected to wait [s], above 0.
    name : name of the machine.
    levels : components above nodes, :class:`~hpcgym.machine.power.Level` above level, such as
        chassis and racks.
    io_bandwidth_gb_s : bandwidth of the file system that all jobs share [GB/s, 10^9 bytes], counted
        to the byte; None: files slow no job down. It only affects jobs with speedups, whose codes
        have a demand of it.
    partitions : sets of nodes, :class:`~hpcgym.machine.partitions.Partition` after partition, which
        may overlap. A job gets nodes of the partition that its log names, one without a partition
        any.
    constraints : of jobs, by features of nodes: those of a workload are added to it where both
        meet (:func:`hpcgym.workload.constraints.machine_for`). It is the same machine as without.

    Raises
    ------
    HpcgymError : a number of processors that is not from 1 to 2^31 or not that of the groups, a
        power that is negative or no number, a time that is negative or no whole number of seconds,
        groups of the same name, resources of almost the same name, more than 2^20 nodes, nodes
        without a power of their own that are to be switched off, an expected wait that is no number
        above 0, levels or partitions without nodes or of the same name, a partition with nodes that
        the machine does not have, or a bandwidth that is no number above 0.
    """

    processors: int = None  # type: ignore[assignment]  # None: what the groups have
    idle_power_w: float = Usual(117.0)
    busy_power_w: float = Usual(358.0)
    shutdown_after_s: int | None = None
    off_power_w: float = Usual(14.0)
    shutdown_time_s: int = 0
    boot_time_s: int = 0
    shutdown_power_w: float | None = None
    boot_power_w: float | None = None
    groups: tuple[NodeGroup, ...] = ()
    queues: Mapping[str, float] = field(default_factory=dict, hash=False)  # a dict has no hash
    name: str = ""
    levels: tuple[Level, ...] = ()
    io_bandwidth_gb_s: float | None = None
    partitions: tuple[Partition, ...] = ()
    constraints: tuple[str, ...] = field(default=(), compare=False)

    def __post_init__(self) -> None:
        settle = object.__setattr__
        settle(self, "groups", _groups(self.groups))
        settle(self, "processors", _processors(self.processors, self.groups))
        settle(self, "queues", _queues(self.queues))
        settle(self, "levels", named_once(self.levels, Level, "levels", "Level above Level"))
        settle(self, "partitions", all_checked(self.partitions, self.nodes))
        for what, given in (
            ("levels stand above", self.levels),
            ("partitions are of", self.partitions),
        ):
            if given and not self.groups:
                raise HpcgymError(f"{what} nodes, of which a pool of processors has none")
        if self.name != "" and (problem := name_problem(self.name, MOST_OF_LIST)):
            raise HpcgymError(f"the name of a machine must be {problem}")
        unknown = [group.name for group in self.groups if group.power is None]
        if self.shutdown_after_s is not None and unknown:
            raise HpcgymError(
                f"shutdown_after_s: only nodes with a power can be switched off, and group"
                f" {unknown[0]!r} has none; give it one: power=NodePower(...), or [group.power] in"
                " its file"
            )
        for name in ("shutdown_after_s", "shutdown_time_s", "boot_time_s"):
            if name != "shutdown_after_s" or self.shutdown_after_s is not None:
                settle(self, name, whole_seconds(name, getattr(self, name)))
        if self.io_bandwidth_gb_s is not None:
            gb_s, number = self.io_bandwidth_gb_s, real(self.io_bandwidth_gb_s)
            if not 0 < number < math.inf:
                raise HpcgymError(f"io_bandwidth_gb_s must be a number above 0 GB/s, not {gb_s!r}")
            settle(self, "io_bandwidth_gb_s", number)
        for name in _POWERS:
            if self._gives(name):
                settle(self, name, watts(name, getattr(self, name)))

    def _gives(self, name: str) -> bool:
        """Whether a power of processors was given."""
        power = getattr(self, name)
        derived = name in _DERIVED_POWERS and power is None
        return not (derived or isinstance(power, Usual))

    @property
    def watts_given(self) -> bool:
        """Whether powers were given, of processors, nodes or components above nodes.

        If not, energies are those of as many nodes of the Curie machine as there are processors.
        """
        own = bool(self.levels) or any(group.power is not None for group in self.groups)
        return own or any(map(self._gives, _POWERS))

    @property
    def shutdown_w(self) -> float:
        """Power of a processor that is being switched off [W]."""
        return self.idle_power_w if self.shutdown_power_w is None else self.shutdown_power_w

    @property
    def boot_w(self) -> float:
        """Power of a processor that is being switched on [W]."""
        return self.busy_power_w if self.boot_power_w is None else self.boot_power_w

    @property
    def resources(self) -> tuple[str, ...]:
        """The types of resources: ``core``, as the groups name them, features, then partitions.

        To be in a partition, unless all nodes are, is a resource such as ``partition batch``: its
        nodes have :data:`ANY_NUMBER` of it, or as many as its jobs may have cores there, and each
        unit of its jobs takes one for each of its cores. To meet a constraint of jobs is one, too,
        such as ``features avx512&ib``.
        """
        of_features = (FEATURES + text for text in self.constraints)
        parts = (PARTITION + partition.name for partition in self._parts)
        return (*self.node_resources, *of_features, *parts)

    @property
    def node_resources(self) -> tuple[str, ...]:
        """The types of resources that groups name, ``core`` first."""
        return tuple(dict.fromkeys([CORE, *(r for g in self.groups for r in g.resources)]))

    @property
    def _parts(self) -> list[Partition]:
        """The partitions that have not all nodes, or not all cores of them."""
        return [
            partition
            for partition in self.partitions
            if len(partition.nodes) < self.nodes or partition.max_cores_per_node is not None
        ]

    @property
    def nodes(self) -> int:
        """Number of nodes; a pool is one node."""
        return sum(group.nodes for group in self.groups) or 1

    @property
    def io_bytes_s(self) -> float | None:
        """Bandwidth of the shared file system in whole bytes a second, at least one; or None."""
        if self.io_bandwidth_gb_s is None:
            return None
        return max(1.0, float(np.rint(self.io_bandwidth_gb_s * 1e9)))

    @property
    def capacity(self) -> NDArray[np.int64]:
        """What each node has of each resource, shape (nodes, resources), int64, read-only."""
        resources = self.resources
        rows = [[group.resources.get(r, 0) for r in resources] for group in self.groups]
        table = np.array(rows or [[self.processors]], dtype=np.int64)[self.group_of]
        for column, text in enumerate(self.constraints, len(self.node_resources)):
            constraint = constraint_of(text)
            met = [constraint.met_by({*group.features}) for group in self.groups]
            table[np.array(met, np.bool_)[self.group_of], column] = ANY_NUMBER
        for column, partition in enumerate(self._parts, len(resources) - len(self._parts)):
            most = partition.max_cores_per_node
            table[list(partition.nodes), column] = ANY_NUMBER if most is None else most
        table.flags.writeable = False
        return table

    @property
    def node_names(self) -> list[int | str]:
        """The name of each node, as in the groups of a slurm.conf, or its number without one."""
        return names_of_nodes([(group.name, group.nodes) for group in self.groups])

    @property
    def group_of(self) -> NDArray[np.int64]:
        """Place of each node's group in ``groups``, shape (nodes,), int64, read-only."""
        sizes = [group.nodes for group in self.groups] or [1]
        groups = np.repeat(np.arange(len(sizes), dtype=np.int64), sizes)
        groups.flags.writeable = False
        return groups


def with_counts(cluster: Cluster, counts: Sequence[int]) -> Cluster:
    """Return a machine with other numbers of nodes in its groups.

    Of a group that becomes smaller, the last nodes go. Those that a group gains are in the
    partitions that have its last node, of those that are in any.

    Parameters
    ----------
    counts : of each group, from 0; the number of nodes that it has then.

    Raises
    ------
    HpcgymError : no node is left.
    """
    groups, place, new = [], {}, []  # new: numbers of the nodes that a last one brings along
    begin = number = 0
    used = {node for partition in cluster.partitions for node in partition.nodes}
    for group, count in zip(cluster.groups, counts, strict=True):
        for node in range(min(group.nodes, count)):
            place[begin + node] = number + node
        last = max(used.intersection(range(begin, begin + group.nodes)), default=-1)
        new.append((last, range(number + group.nodes, number + count)))
        begin, number = begin + group.nodes, number + count
        groups += [replace(group, nodes=count)] if count else []
    if not groups:
        raise HpcgymError(f"no node is left of {cluster.name or 'the machine'}")
    partitions = []
    for partition in cluster.partitions:
        nodes = [place[node] for node in partition.nodes if node in place]
        nodes += [node for last, more in new if last in partition.nodes for node in more]
        partitions.append(replace(partition, nodes=tuple(nodes)))
    made = {"groups": tuple(groups), "partitions": tuple(partitions), "processors": None}
    return replace(cluster, **made)  # type: ignore[arg-type]


_DERIVED_POWERS = ("shutdown_power_w", "boot_power_w")  # None: as another one
_POWERS = ("idle_power_w", "busy_power_w", "off_power_w", *_DERIVED_POWERS)


def _groups(groups: Any) -> tuple[NodeGroup, ...]:
    """Return groups of nodes as a tuple, or say what is wrong with them."""
    listed = named_once(groups, NodeGroup, "groups", "NodeGroup after NodeGroup", "groups of nodes")
    if near := alike(name for group in listed for name in group.resources):
        raise HpcgymError(f"{near[0]!r} and {near[1]!r} are two resources of almost the same name")
    if sum(group.nodes for group in listed) > MOST_NODES:
        raise HpcgymError(f"a machine has at most {MOST_NODES} nodes")
    return listed


def _processors(processors: Any, groups: tuple[NodeGroup, ...]) -> int:
    """Return the number of processors, which groups of nodes tell too."""
    if not groups:
        if processors is None:
            raise HpcgymError("a machine needs processors, or groups of nodes")
        return _whole_number(processors)
    cores = _whole_number(sum(group.nodes * group.resources[CORE] for group in groups))
    if processors is not None and _whole_number(processors) != cores:
        raise HpcgymError(f"processors is {processors}, but the groups of nodes have {cores} cores")
    return cores


def _queues(queues: Any) -> dict[str, float]:
    """Return the expected waits of queues [s], or say what is wrong with them."""
    if not isinstance(queues, Mapping):
        raise HpcgymError(f"queues must be a mapping of expected waits [s], not {queues!r}")
    waits = {}
    for name, wait in queues.items():
        if problem := name_problem(name):
            raise HpcgymError(f"the name of a queue must be {problem}")
        waits[name] = real(wait)
        if not 0 < waits[name] < math.inf:
            raise HpcgymError(f"queue {name!r}: the expected wait must be above 0 s, not {wait!r}")
    folded = [name.casefold() for name in waits]
    if len({*folded}) < len(folded):
        raise HpcgymError(f"two queues have the same name: {', '.join(waits)}")
    return waits


def _whole_number(processors: Any) -> int:
    """Return a number of processors as an int, or say that it cannot be one."""
    return check_whole("processors", processors, 1, MOST_PROCESSORS)
