"""A slurm.conf as a machine, its partitions, and how it schedules."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

from hpcgym.errors import HpcgymError, unknown
from hpcgym.files import toml_of
from hpcgym.machine.partitions import STATES, Partition, hosts
from hpcgym.machine.pool import Cluster, NodeGroup
from hpcgym.machine.slurm import lines as slurm_lines
from hpcgym.machine.slurm.lines import Setting, Thing
from hpcgym.naming import CORE, MEMORY

# --- Which settings there are ---------------------------------------------------------------------


@cache
def known() -> dict[str, Any]:
    """Return what ``settings.toml`` says of all settings."""
    text = files("hpcgym.machine").joinpath("slurm", "settings.toml").read_text("utf-8")
    return toml_of(text, "settings.toml")


@cache
def _folded(*path: str) -> tuple[str, ...]:
    """Return a list of names there, in lower case."""
    found: Any = known()
    for key in path:
        found = found[key]
    return tuple(map(str.casefold, found))


def _scheduling() -> tuple[str, ...]:
    """Return the general settings that say how jobs are scheduled, in lower case."""
    return _folded("general", "scheduling")


@cache
def _usual(table: str) -> dict[str, list[str]]:
    """Return the values with which settings change nothing, by lower case name."""
    return {name.casefold(): values for name, values in known()[table]["usual"].items()}


# --- Nodes of a slurm.conf as groups of a machine -------------------------------------------------


class Nodes(NamedTuple):
    """Nodes of one line: where it stands, a group of equal ones, their names in order, features."""

    where: str
    group: NodeGroup
    names: list[str]
    features: set[str]


def _groups(settings: Iterable[Setting], counts_memory: bool) -> list[Nodes]:
    """Return the nodes of each line ``NodeName=...`` but of those that are not there yet.

    Processors are CPUs, as Slurm counts them: ``CPUs``, or boards x sockets x cores x threads.
    Memory is ``RealMemory`` less ``MemSpecLimit`` [MB], where jobs are given memory at all.

    Raises
    ------
    HpcgymError : a value that cannot be; the message names file, line and nodes.
    """
    lines = slurm_lines.things(settings, "nodename", "nodes")
    return [_nodes(one, counts_memory) for one in lines if one.text("state") != "future"]


def _nodes(line: Thing, counts_memory: bool) -> Nodes:
    """Return the nodes of a line."""
    number, where = line.number, line.called
    names = hosts(line.name, where)
    sockets = number("sockets", number("boards", 1) * number("socketsperboard", 1))
    made = sockets * number("corespersocket", 1) * number("threadspercore", 1)
    cpus = number("cpus", number("procs", made))
    amounts = {CORE: cpus}
    if counts_memory:
        amounts[MEMORY] = max(number("realmemory", 1) - number("memspeclimit", 0), 0)
    written, value = line.told.get("gres", ("", ""))
    generic = slurm_lines.gres(value, f"{where}: {written}") if value else {}
    if generic.keys() & {CORE, MEMORY}:
        raise HpcgymError(f"{where}: Gres: {CORE} and {MEMORY} are no generic resources")
    # only jobs that share nodes go by sockets, and these must divide the cores
    shared = sockets if sockets and cpus % sockets == 0 else 1
    try:
        group = NodeGroup(line.name, len(names), amounts | generic, sockets=shared)
    except HpcgymError as error:
        raise HpcgymError(f"{where}: {error}") from None
    features = [line.told.get(key, ("", ""))[1].split(",") for key in ("feature", "features")]
    return Nodes(line.where, group, names, {one for some in features for one in some if one})


def _names(groups: Iterable[Nodes]) -> list[str]:
    """Return what each node is called, in order."""
    found: dict[str, None] = {}
    for nodes in groups:
        for name in nodes.names:
            if name in found:
                raise HpcgymError(f"{nodes.where}: node {name!r} stands there twice")
            found[name] = None
    return list(found)


def _sets(settings: Iterable[Setting], groups: Iterable[Nodes]) -> dict[str, list[str]]:
    """Return the nodes of each line ``NodeSet=...``: those it names, and those with its feature."""
    found: dict[str, list[str]] = {}
    for line in settings:
        if line.name.casefold() != "nodeset":
            continue
        given = {key: value for key, (_, value) in line.others.items()}
        where = f"{line.where}, set {line.value!r}"
        names = hosts(given["nodes"], where) if "nodes" in given else []
        feature = given.get("feature")
        names += [name for one in groups if feature in one.features for name in one.names]
        found[line.value] = names
    return found


# --- Partitions of a slurm.conf -------------------------------------------------------------------


def _partition(
    line: Thing, nodes: Mapping[str, int], sets: Mapping[str, Sequence[str]]
) -> Partition:
    """Return the partition of a line ``PartitionName=...``.

    Parameters
    ----------
    nodes : name -> number of each node of the machine.
    sets : name -> nodes of each ``NodeSet``.

    Raises
    ------
    HpcgymError : a partition without nodes, nodes that the machine does not have, or a value that
        cannot be; the message names file, line and partition.
    """
    written, state = line.told.get("state", ("State", "up"))
    if state.casefold() not in STATES:
        raise HpcgymError(f"{line.called}: {written}: {unknown('state', state, STATES)}")
    values = {key: value for key, (_, value) in line.told.items()}
    names = ("allow_accounts", "deny_accounts", "allow_qos", "deny_qos")
    allowed = {name: slurm_lines.several(values.get(name.replace("_", ""), "")) for name in names}
    where, members = line.where, _members(values.get("nodes", ""), nodes, sets, line.called)
    try:
        return Partition(
            name=line.name,
            nodes=members,
            default=line.text("default") in ("yes", "true", "1"),
            max_time_s=line.time("maxtime"),
            default_time_s=line.time("defaulttime"),
            min_nodes=line.number("minnodes", 0),
            max_nodes=line.number("maxnodes", None),
            priority_tier=line.number("prioritytier", 1),
            priority_factor=line.number("priorityjobfactor", 1),
            qos=values.get("qos") or None,
            exclusive=line.text("oversubscribe", line.text("shared")) == "exclusive",
            state=state.casefold(),
            **allowed,
        )
    except HpcgymError as error:
        raise HpcgymError(f"{where}, {error}") from None


def _members(
    text: str, nodes: Mapping[str, int], sets: Mapping[str, Sequence[str]], where: str
) -> tuple[int, ...]:
    """Return the numbers of the nodes that a partition names."""
    if "=" in text:  # Slurm, too, takes what comes behind the blanks for the value
        raise HpcgymError(f"{where}: Nodes is blank, before {text[:40]}")
    names: list[str] = list(nodes) if text.casefold() == "all" else []
    if text and not names:
        names = [node for name in hosts(text, where) for node in sets.get(name, [name])]
    if not names:
        raise HpcgymError(f"{where}: it has no nodes")
    missing = [name for name in names if name not in nodes]
    if missing:
        raise HpcgymError(f"{where}: there is no node {missing[0]!r}")
    return tuple(sorted({nodes[name] for name in names}))


# --- Settings that are not of the machine ---------------------------------------------------------


class OtherSetting(NamedTuple):
    """A setting that is not of the machine; the scheduler of the file may go by it.

    Attributes
    ----------
    where : file and line.
    of : the node or partition that it is of, "" of a general setting.
    key, value : as they are written.
    """

    where: str
    of: str
    key: str
    value: str

    @property
    def name(self) -> str:
        """What messages call it: ``debug: LLN``."""
        return f"{self.of}: {self.key}" if self.of else self.key

    def is_called(self, *keys: str) -> bool:
        """Tell whether its key is one of some in lower case."""
        return self.key.casefold() in keys


def other_settings(settings: Iterable[Setting]) -> list[OtherSetting]:
    """Return the settings that say, or may say, how jobs are scheduled, beside the machine's own.

    Settings that say nothing of schedules, such as ports and log files, are left out.
    """
    silent = re.compile(known()["general"]["silent"], re.VERBOSE)
    found: list[OtherSetting] = []
    for setting in settings:
        name = setting.name.casefold()
        if name in ("nodename", "partitionname"):
            found += _of_keys(setting)
        elif name in _scheduling():
            if setting.value.casefold() not in _usual("general").get(name, ()):
                found.append(OtherSetting(setting.where, "", setting.name, setting.value))
        elif name not in _folded("general", "machine") and not silent.fullmatch(name):
            found.append(OtherSetting(setting.where, "", setting.name, setting.value))
    return found


def _of_keys(line: Setting) -> list[OtherSetting]:
    """Return what the line of a node or partition says that is not followed."""
    kind = "NodeName" if line.name.casefold() == "nodename" else "PartitionName"
    passed = (*_folded("keys", "read", kind), *_folded("keys", "silent"))
    return [
        OtherSetting(line.where, line.value, name, value)
        for key, (name, value) in line.others.items()
        if key not in passed and value.casefold() not in _usual("keys").get(key, ())
    ]


# --- A slurm.conf as a machine, its partitions, and how it schedules ------------------------------

#: What general settings of scheduling are unless somebody sets them, in lower case.
_UNLESS_SAID = {
    "schedulertype": "sched/backfill",
    "prioritytype": "priority/multifactor",
    "preempttype": "preempt/none",
    "preemptmode": "off",
}


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
    """
    settings = slurm_lines.settings_of(Path(path))
    general = {one.name.casefold(): one.value for one in settings if not one.others}
    groups = _groups(settings, "memory" in general.get("selecttypeparameters", "").casefold())
    if not groups:
        raise HpcgymError(f"{path}: it has no nodes, NodeName=...")
    names, sets = _names(groups), _sets(settings, groups)
    numbers = {name: number for number, name in enumerate(names)}
    lines = list(slurm_lines.things(settings, "partitionname", "partition"))
    seen: set[str] = set()
    for line in lines:
        if line.name in seen:
            raise HpcgymError(f"{line.where}: partition {line.name!r} stands there twice")
        seen.add(line.name)
    cluster = Cluster(
        groups=tuple(nodes.group for nodes in groups),
        name=general.get("clustername") or Path(path).name,
        partitions=tuple(_partition(line, numbers, sets) for line in lines),
    )
    return SlurmConf(
        cluster=cluster,
        node_names=tuple(names),
        scheduling={name: value for name, value in general.items() if name in _scheduling()},
        where={s.name.casefold(): s.where for s in settings if not s.others},
        parameters=_parameters(general.get("schedulerparameters", "")),
        preempt_modes={
            line.name: line.told["preemptmode"][1] for line in lines if line.text("preemptmode")
        },
        others=tuple(other_settings(settings)),
    )


def _parameters(text: str) -> dict[str, str]:
    """Return ``SchedulerParameters`` by name; of two Slurm looks up the first."""
    found: dict[str, str] = {}
    for name, _, value in (part.partition("=") for part in text.split(",") if part.strip()):
        found.setdefault(name.strip(), value.strip())
    return found
