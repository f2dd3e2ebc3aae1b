"""A slurm.conf as a machine, its partitions, and how it schedules."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from hpcgym.cluster.partitions import Partition
from hpcgym.cluster.pool import Cluster
from hpcgym.cluster.slurm.lines import Setting, settings_of, warn_of_later
from hpcgym.cluster.slurm.machine import Nodes, node_sets, nodes_of
from hpcgym.cluster.slurm.partitions import partition
from hpcgym.cluster.slurm.settings import OF_SCHEDULING, OtherSetting, other_settings
from hpcgym.cluster.slurm.typos import warn_of_typos
from hpcgym.errors import HpcgymError, HpcgymWarning, warn_caller

#: What general settings of scheduling are unless somebody sets them, in lower case.
_UNLESS_SAID = {
    "schedulertype": "sched/backfill",
    "prioritytype": "priority/multifactor",
    "preempttype": "preempt/none",
    "preemptmode": "off",
}
_DEFAULT = "default"  # the name of nodes and partitions that others begin with


@dataclass(frozen=True)
class SlurmConf:
    """What a slurm.conf says of a machine and its scheduling.

    Attributes
    ----------
    cluster : the machine: a group for each line of nodes, in order, and the partitions.
    node_names : what each node is called, by its number in the machine.
    scheduling : general settings of scheduling, lower case name -> value.
    where : file and line of each of these.
    parameters : ``SchedulerParameters``, name -> value, "" of those that are only named.
    preempt_modes : ``PreemptMode`` of the partitions that have their own, by name.
    others : settings that are not of the machine; a scheduler may go by them.
    """

    cluster: Cluster
    node_names: tuple[str, ...]
    scheduling: dict[str, str]
    where: dict[str, str]
    parameters: dict[str, str]
    preempt_modes: dict[str, str]
    others: tuple[OtherSetting, ...]

    def said(self, name: str) -> str:
        """Return a general setting in lower case, or what Slurm has unless somebody sets it."""
        return self.scheduling.get(name, _UNLESS_SAID.get(name, "")).casefold()

    def wrong(self, name: str, message: str) -> HpcgymError:
        """Return the error that a general setting has a wrong value; it names file and line."""
        return HpcgymError(f"{self.where[name]}: {message}" if name in self.where else message)


def read_slurm_conf(path: str | os.PathLike[str]) -> SlurmConf:
    """Return what a slurm.conf says, with the files that it includes.

    Nodes whose state is FUTURE are not there. Memory is a resource where ``SelectTypeParameters``
    has it (``CR_Core_Memory``); all ``Gres`` of nodes are, types of one together.

    Raises
    ------
    HpcgymError : a file that cannot be read, a line that is no setting, no nodes, a node or
        partition that stands twice, or a value that cannot be; the message names file and line.

    Warns
    -----
    HpcgymWarning : unknown settings whose names are close to a known one, and settings that stand
        there twice, of which the last counts.
    """
    settings = settings_of(Path(path))
    general = _general(settings)
    groups = _groups(settings, "memory" in general.get("selecttypeparameters", "").casefold())
    if not groups:
        raise HpcgymError(f"{path}: it has no nodes, NodeName=...")
    names = _names(groups)
    cluster = Cluster(
        groups=tuple(nodes.group for nodes in groups),
        name=general.get("clustername") or Path(path).name,
        partitions=_partitions(settings, groups, names),
    )
    others = other_settings(settings)
    parameters = _parameters(settings, general.get("schedulerparameters", ""))
    warn_of_typos(others, parameters)
    return SlurmConf(
        cluster=cluster,
        node_names=tuple(names),
        scheduling={name: value for name, value in general.items() if name in OF_SCHEDULING},
        where={s.name.casefold(): s.where for s in settings if not s.others},
        parameters=parameters,
        preempt_modes=_of_partitions(settings, "preemptmode"),
        others=tuple(others),
    )


def _general(settings: Iterable[Setting]) -> dict[str, str]:
    """Return the general settings, lower case name -> value; Slurm too takes the last of two."""
    found: dict[str, str] = {}
    for setting in settings:
        name = setting.name.casefold()
        if setting.others:
            continue
        if name in OF_SCHEDULING and found.get(name, setting.value) != setting.value:
            warn_of_later(setting.where, setting.name)
        found[name] = setting.value
    return found


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


def _names(groups: Iterable[Nodes]) -> list[str]:
    """Return what each node is called, in order."""
    found: dict[str, None] = {}
    for nodes in groups:
        for name in nodes.names:
            if name in found:
                raise HpcgymError(f"{nodes.where}: node {name!r} stands there twice")
            found[name] = None
    return list(found)


def _of_partitions(settings: Iterable[Setting], key: str) -> dict[str, str]:
    """Return a key of the partitions that have it, also by lines ``PartitionName=DEFAULT``."""
    usual, found = "", {}
    for line in settings:
        if line.name.casefold() == "partitionname":
            value = line.others.get(key, ("", usual))[1]
            if line.value.casefold() == _DEFAULT:
                usual = value
            elif value:
                found[line.value] = value
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


def _parameters(settings: Iterable[Setting], text: str) -> dict[str, str]:
    """Return ``SchedulerParameters`` by name; of two Slurm looks up the first."""
    parts = (part.partition("=") for part in text.split(",") if part.strip())
    found: dict[str, str] = {}
    for name, _, value in ((name.strip(), sign, value.strip()) for name, sign, value in parts):
        if found.setdefault(name, value) != value:
            places = [s.where for s in settings if s.name.casefold() == "schedulerparameters"]
            text = f"{places[-1]}: SchedulerParameters has {name} twice; {found[name]} counts"
            warn_caller(text, HpcgymWarning)
    return found
