"""A slurm.conf as a machine, its partitions, and how it schedules."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from hpcgym.errors import HpcgymError, HpcgymWarning, Remarks, unknown, warn_of_file
from hpcgym.machine.partitions import STATES, Partition
from hpcgym.machine.pool import Cluster
from hpcgym.machine.slurm import keys, lines, nodes
from hpcgym.machine.slurm.keys import OtherSetting
from hpcgym.machine.slurm.lines import (
    NOT_READ,
    SlurmSetting,
    Thing,
    hosts_of,
    not_read,
    several,
    things,
)
from hpcgym.names import of_type
from hpcgym.units import NO_LIMIT_S

# --- Partitions of a slurm.conf -------------------------------------------------------------------

#: How a boolean is written that holds; any other text does not.
YES = ("yes", "true", "up", "1")
#: The flag of PriorityFlags by which the greatest of weighted amounts is billed, in lower case.
MAX_TRES = "max_tres"


def _partitions(
    parts: Iterable[Thing],
    numbers: Mapping[str, int],
    sets: Mapping[str, Sequence[str]],
    general: Mapping[str, str],
    remarks: Remarks,
) -> list[Partition]:
    """Return the partitions of ``PartitionName=...``; those that cannot be are left out.

    Parameters
    ----------
    numbers : name -> number of each node of the machine, -1 of those that are left out.
    sets : name -> nodes of each ``NodeSet``.
    general : settings of the whole machine, in lower case.
    """
    greatest = MAX_TRES in several(general.get("priorityflags", "").casefold())
    partitions: dict[str, Partition] = {}
    for line in parts:
        try:
            if line.name in partitions:
                raise HpcgymError(f"{line.where}: partition {line.name!r} stands there twice")
            members = _members(line, numbers, sets, remarks)
            partitions[line.name] = _partition(line, members, general)
        except HpcgymError as error:
            not_read(line, error, remarks)
    defaults = [partition.name for partition in partitions.values() if partition.default]
    return [
        replace(
            partition,
            default=defaults[-1:] == [partition.name],
            bills_greatest=greatest and partition.billing != "",
        )
        for partition in partitions.values()
    ]


#: Setting of the memory of jobs that ask for none -> the amount of which each has so many MB.
_DEFAULT_MEMORY = {"defmempercpu": "processors", "defmempernode": "nodes", "defmempergpu": "gpu"}


def _default_memory(line: Thing, of_all: Thing) -> str:
    """Return what jobs have that ask for no memory: of a partition, else of the whole machine."""
    for settings in (line, of_all):
        for key, amount in _DEFAULT_MEMORY.items():
            if memory := settings.number(key, 0):
                return f"{amount}={memory}"
    return ""


def _partition(line: Thing, members: Sequence[int], general: Mapping[str, str]) -> Partition:
    """Return the partition of a line ``PartitionName=...`` with these nodes.

    With ``select/linear`` jobs have whole nodes unless it lets nodes be shared.

    Raises
    ------
    HpcgymError : a value that cannot be; the message names the partition, or file and line, too.
    """
    state = line.value("state", "up")
    known = next((name for name in STATES if state.casefold().startswith(name)), "")
    if not known:
        raise HpcgymError(f"{line.place('state')}: {unknown('state', state, STATES)}")
    names = ("allow_accounts", "deny_accounts", "allow_qos", "deny_qos")
    lists: Any = {name: several(line.value(name.replace("_", "")).lower()) for name in names}
    both = line.number("priority", None)
    settings = {key: (key, value) for key, value in general.items()}
    of_all = Thing(line.where, line.where, "", settings)
    memory = line.number("maxmempernode", 0) or of_all.number("maxmempernode", 0)
    whole = general.get("selecttype", "").casefold() == "select/linear"
    max_time_s, default_time_s = line.time("maxtime"), line.time("defaulttime")
    if default_time_s is None and max_time_s is None:
        default_time_s = NO_LIMIT_S  # MaxTime is UNLIMITED unless somebody sets it
    return Partition(
        name=line.name,
        nodes=tuple(members),
        default=line.text("default") in YES,
        max_time_s=max_time_s,
        default_time_s=default_time_s,
        min_nodes=line.number("minnodes", 0),
        max_nodes=line.number("maxnodes", None),
        max_cores_per_node=line.number("maxcpuspernode", None),
        max_memory_per_node_mb=memory or None,
        default_memory=_default_memory(line, of_all),
        priority_tier=line.number("prioritytier", 1) if both is None else both,
        priority_factor=line.number("priorityjobfactor", 1) if both is None else both,
        qos=line.value("qos") or None,
        billing=line.value("tresbillingweights"),
        exclusive=line.text("oversubscribe", line.text("shared", "no"))
        in ("exclusive", *(["no"] if whole else [])),
        state=known,
        **lists,
    )


def _members(
    line: Thing,
    numbers: Mapping[str, int],
    sets: Mapping[str, Sequence[str]],
    remarks: Remarks,
) -> list[int]:
    """Return the numbers of the nodes that a partition names; it may have none."""
    text = line.value("nodes")
    if text.casefold() == "all":
        return [number for number in numbers.values() if number >= 0]
    listed = hosts_of(line, text, remarks)
    names = [node for name in listed for node in sets.get(name, [name])]
    if missing := [name for name in names if name not in numbers]:
        more = f", nor {len(missing) - 1:,} more" if len(missing) > 1 else ""
        remarks[NOT_READ].append(f"{line.called}: there is no node {missing[0]!r}{more}")
    return [numbers[name] for name in names if numbers.get(name, -1) >= 0]


# --- A slurm.conf as a machine, its partitions, and how it schedules ------------------------------

#: What general settings of scheduling are unless somebody sets them, in lower case.
_UNLESS_SAID = {
    "schedulertype": "sched/backfill",
    "prioritytype": "priority/multifactor",
    "preempttype": "preempt/none",
    "preemptmode": "off",
}


#: Attributes of a SlurmConf that have a setting of each partition -> its key.
_OF_PARTITIONS = {"preempt_modes": "preemptmode", "grace_times": "gracetime"}


class WrongSettingError(HpcgymError):
    """A value of scheduling that cannot be.

    Attributes
    ----------
    stands : the attribute of :class:`SlurmConf` that has it, and its name there.
    """

    def __init__(self, message: str, stands: tuple[str, str]) -> None:
        super().__init__(message)
        self.stands = stands

    def is_of(self, setting: OtherSetting) -> bool:
        """Tell whether a setting has the value."""
        kind, name = self.stands
        if kind in _OF_PARTITIONS:
            return setting.of == name and setting.is_called(_OF_PARTITIONS[kind])
        key = f"{keys.PARAMETERS} {name}" if kind == "parameters" else name
        return not setting.of and setting.is_called(key)


@dataclass(frozen=True)
class SlurmConf:
    """What a slurm.conf says of a machine and its scheduling.

    Attributes
    ----------
    cluster : the machine: groups of nodes, by their weights and in order, and the partitions.
    node_names : what each node is called, by its number in the machine.
    scheduling : general settings of scheduling, lower case name -> value.
    where : file and line of each of these.
    parameters : ``SchedulerParameters``, lower case name -> value, "" of those that are only named.
    preempt_modes, grace_times : ``PreemptMode`` and ``GraceTime`` of the partitions that have
        their own, by name.
    sole_types : type -> its resource, where nodes have no other type of it: ``gpu-a100`` ->
        ``gpu``. Such a type is no resource by itself.
    tracked : the resources of ``AccountingStorageTRES`` that accounting tracks beside those that it
        always does; None: the file does not say which.
    others : settings that are not of the machine; a scheduler may go by them.
    """

    cluster: Cluster
    node_names: tuple[str, ...]
    scheduling: dict[str, str]
    where: dict[str, str]
    parameters: dict[str, str]
    preempt_modes: dict[str, str]
    grace_times: dict[str, str]
    sole_types: dict[str, str]
    tracked: tuple[str, ...] | None
    others: tuple[OtherSetting, ...]

    def said(self, name: str) -> str:
        """Return a general setting in lower case, or what Slurm has unless somebody sets it."""
        return self.scheduling.get(name, _UNLESS_SAID.get(name, "")).casefold()

    def wrong(
        self, name: str, message: str, stands: tuple[str, str] | None = None
    ) -> WrongSettingError:
        """Return the error that a general setting has a wrong value; it names file and line.

        ``stands`` is where the value does if it is but a part of the setting, or no general one.
        """
        text = f"{self.where[name]}: {message}" if name in self.where else message
        return WrongSettingError(text, stands or ("scheduling", name))

    def without(self, stands: tuple[str, str]) -> SlurmConf:
        """Return the same without a value, as if nobody had set it."""
        kept: Any = {name: v for name, v in getattr(self, stands[0]).items() if name != stands[1]}
        return replace(self, **{stands[0]: kept})


#: Kinds of remarks, those first that matter most.
_KINDS = (
    nodes.DOWN,
    nodes.NO_MEMORY,
    NOT_READ,
    lines.MISSING,
    nodes.OF_NONE,
    keys.UNKNOWN,
    nodes.OTHER_RESOURCES,
    lines.ELSEWHERE,
    nodes.UNLIMITED,
    nodes.RESET,
)


def _counts_memory(settings: Sequence[SlurmSetting], general: Mapping[str, str]) -> bool:
    """Return whether jobs are given memory.

    ``select/cons_tres`` has CR_Core_Memory by default (man page slurm.conf, SelectTypeParameters,
    and ``read_config.c`` of Slurm 24.05). A node that does not tell its memory would have 1 MB, so
    that no node of such a file could run a job: where none tells it, none counts.
    """
    parameters = general.get("selecttypeparameters", "").casefold()
    if parameters or "cons_tres" not in general.get("selecttype", "").casefold():
        return "memory" in parameters
    return any("realmemory" in line.told for line in things(settings, "nodename", "nodes"))


_TRACKED = "accountingstoragetres"
#: A generic resource of a type among weights of trackable resources.
_TYPED = re.compile(r"gres/(?P<of>[^:=,]+):(?P<kind>[^=,]+)", re.IGNORECASE)


def _of_sole_types(weights: str, sole_types: Mapping[str, str]) -> str:
    """Return weights of trackable resources, without types of which nodes have no other.

    >>> _of_sole_types("CPU=1,GRES/gpu:a100=16", {"gpu-a100": "gpu"})
    'CPU=1,gres/gpu=16'
    """

    def without_type(match: re.Match[str]) -> str:
        typed = of_type(match["of"], match["kind"])
        resource = nodes.of_sole_type(typed, sole_types)
        return match[0] if resource == typed else f"gres/{resource}"

    return _TYPED.sub(without_type, weights)


def read_slurm_conf(path: str | os.PathLike[str]) -> SlurmConf:
    """Return what a slurm.conf says, with the files that it includes.

    Nodes that are FUTURE, down, drained or failing are not there, those of the least ``Weight``
    come first, and lines of nodes that are alike are one group. Memory is a resource where
    ``SelectTypeParameters`` has it (``CR_Core_Memory``), or says nothing beside
    ``select/cons_tres``, if any node tells its memory; all ``Gres`` of nodes are, types of one
    together, and ``no_consume`` limits nobody. With ``select/linear`` jobs have whole nodes. What
    cannot be followed costs its line or partition.

    Raises
    ------
    HpcgymError : a file that cannot be read or is binary, files that include one another more than
        8 deep, or no nodes at all; the message names the file, and the line.

    Warns
    -----
    HpcgymWarning : lines that are not read, keys that Slurm does not have, files that are not where
        they should be, nodes on which no job may start or without memory, and resources that cannot
        be counted: a line for each kind.
    """
    remarks = Remarks(list, {kind: [] for kind in _KINDS})
    settings = lines.settings_of(Path(path), remarks)
    general = {setting.name.casefold(): setting.value for setting in settings if not setting.told}
    node_lines = nodes.nodes_of(settings, _counts_memory(settings, general), remarks)
    kept = nodes.kept_of(node_lines, settings, remarks)
    if not kept:
        why = next((f": {texts[0]}" for texts in remarks.values() if texts), ", NodeName=...")
        raise HpcgymError(f"{path}: it has no nodes for jobs{why}")
    groups = nodes.groups_of(kept, remarks)
    sole_types = nodes.sole_types(kept)
    node_names = [name for _, names in kept for name in names]
    numbers = {name: -1 for line in node_lines for name in line.names}
    numbers |= {name: number for number, name in enumerate(node_names)}
    parts = list(things(settings, "partitionname", "partition"))
    sets = nodes.sets_of(settings, node_lines, remarks)
    partitions = _partitions(parts, numbers, sets, general, remarks)
    if partitions:
        used = {node for partition in partitions for node in partition.nodes}
        remarks[nodes.OF_NONE] += [
            f"{path}: {name}" for number, name in enumerate(node_names) if number not in used
        ]
    cluster = Cluster(
        groups=tuple(groups),
        name=general.get("clustername") or Path(path).name,
        partitions=tuple(
            replace(partition, billing=_of_sole_types(partition.billing, sole_types))
            for partition in partitions
        ),
    )
    others = keys.other_settings(settings, remarks)
    warn_of_file(path, remarks, HpcgymWarning)
    of_scheduling = (keys.SCHEDULER, keys.NAMED)
    named = [name for name, what in keys.known(keys.GENERAL).items() if what in of_scheduling]
    return SlurmConf(
        cluster=cluster,
        node_names=tuple(node_names),
        scheduling={name: value for name, value in general.items() if name in named},
        where={s.name.casefold(): s.where for s in settings if not s.told},
        parameters=keys.parameters(general.get(keys.PARAMETERS, "")),
        preempt_modes={line.name: mode for line in parts if (mode := line.value("preemptmode"))},
        grace_times={line.name: time for line in parts if (time := line.value("gracetime"))},
        sole_types=sole_types,
        tracked=several(general[_TRACKED]) if _TRACKED in general else None,
        others=tuple(others),
    )
