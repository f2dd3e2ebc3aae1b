"""A slurm.conf as a machine, its partitions, and how it schedules."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from hpcgym.cluster.partitions import Partition
from hpcgym.cluster.pool import Cluster
from hpcgym.cluster.slurm.lines import Setting, settings_of
from hpcgym.cluster.slurm.machine import Nodes, node_sets, nodes_of
from hpcgym.cluster.slurm.partitions import partition
from hpcgym.cluster.slurm.settings import OF_SCHEDULING, Unfollowed, unfollowed
from hpcgym.errors import HpcgymError

_DEFAULT = "default"  # the name of nodes and partitions that others begin with


@dataclass(frozen=True)
class SlurmConf:
    """What a slurm.conf says of a machine and its scheduling.

    Attributes
    ----------
    cluster : the machine: a group for each line of nodes, in order, and the partitions.
    node_names : what each node is called, by its number in the machine.
    scheduling : general settings of scheduling, lower case name -> value.
    parameters : ``SchedulerParameters``, name -> value, "" of those that are only named.
    unfollowed : settings that are not of the machine.
    """

    cluster: Cluster
    node_names: tuple[str, ...]
    scheduling: dict[str, str]
    parameters: dict[str, str]
    unfollowed: tuple[Unfollowed, ...]


def read_slurm_conf(path: str | os.PathLike[str]) -> SlurmConf:
    """Return what a slurm.conf says, with the files that it includes.

    Nodes whose state is FUTURE are not there. Memory is a resource where ``SelectTypeParameters``
    has it (``CR_Core_Memory``); all ``Gres`` of nodes are, types of one together.

    Raises
    ------
    HpcgymError : a file that cannot be read, a line that is no setting, no nodes, a node or
        partition that stands twice, or a value that cannot be; the message names file and line.
    """
    settings = settings_of(Path(path))
    general = {s.name.casefold(): s.value for s in settings if not s.others}
    groups = _groups(settings, "memory" in general.get("selecttypeparameters", "").casefold())
    if not groups:
        raise HpcgymError(f"{path}: it has no nodes, NodeName=...")
    names = [name for nodes in groups for name in nodes.names]
    twice = [name for name, times in Counter(names).items() if times > 1]
    if twice:
        raise HpcgymError(f"{path}: node {twice[0]!r} stands there twice")
    cluster = Cluster(
        groups=tuple(nodes.group for nodes in groups),
        name=general.get("clustername") or Path(path).name,
        partitions=_partitions(settings, groups, names),
    )
    return SlurmConf(
        cluster=cluster,
        node_names=tuple(names),
        scheduling={name: value for name, value in general.items() if name in OF_SCHEDULING},
        parameters=_parameters(general.get("schedulerparameters", "")),
        unfollowed=tuple(unfollowed(settings)),
    )


def _groups(settings: list[Setting], counts_memory: bool) -> list[Nodes]:
    """Return the nodes of each line; lines ``NodeName=DEFAULT`` say what those after them have."""
    defaults: dict[str, tuple[str, str]] = {}
    found = []
    for line in settings:
        if line.name.casefold() != "nodename":
            continue
        if line.value.casefold() == _DEFAULT:
            defaults |= line.others
        elif nodes := nodes_of(line, defaults, counts_memory):
            found.append(nodes)
    return found


def _partitions(
    settings: list[Setting], groups: list[Nodes], names: list[str]
) -> tuple[Partition, ...]:
    """Return all partitions."""
    nodes = {name: number for number, name in enumerate(names)}
    sets = node_sets(settings, groups)
    defaults: dict[str, tuple[str, str]] = {}
    found: dict[str, Partition] = {}
    for line in settings:
        if line.name.casefold() != "partitionname":
            continue
        if line.value.casefold() == _DEFAULT:
            defaults |= line.others
        elif line.value in found:
            raise HpcgymError(f"{line.where}: partition {line.value!r} stands there twice")
        else:
            found[line.value] = partition(line, defaults, nodes, sets)
    return tuple(found.values())


def _parameters(text: str) -> dict[str, str]:
    """Return ``SchedulerParameters`` by name."""
    parts = (part.partition("=") for part in text.split(",") if part.strip())
    return {name.strip(): value.strip() for name, _, value in parts}
