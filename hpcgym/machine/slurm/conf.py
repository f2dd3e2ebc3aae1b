"""A slurm.conf as a machine, its partitions, and how it schedules."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import cache
from importlib.resources import files
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

from hpcgym.errors import HpcgymError, HpcgymWarning, Remarks, unknown, warn_of_file
from hpcgym.files import toml_of
from hpcgym.machine.partitions import STATES, Partition, hosts, text_of_hosts
from hpcgym.machine.pool import Cluster, NodeGroup
from hpcgym.machine.slurm import lines as slurm_lines
from hpcgym.machine.slurm.lines import Setting, Thing
from hpcgym.naming import CORE, MEMORY, alike

# --- Which settings there are ---------------------------------------------------------------------


#: What is done with a key: lists of ``settings.toml``.
MACHINE, SCHEDULER, NAMED, IRRELEVANT = "machine", "scheduler", "named", "irrelevant"
GENERAL = "general"
_USUAL = "usual"


@cache
def _tables() -> dict[str, dict[str, Any]]:
    """Return ``settings.toml``: kind of line in lower case -> its lists."""
    text = files("hpcgym.machine").joinpath("slurm", "settings.toml").read_text("utf-8")
    return {kind.casefold(): lists for kind, lists in toml_of(text, "settings.toml").items()}


@cache
def known(kind: str) -> dict[str, str]:
    """Return what is done with each key of a kind of line, all in lower case: one of the lists."""
    lists = {what: keys for what, keys in _tables().get(kind, {}).items() if what != _USUAL}
    return {key.casefold(): what for what, keys in lists.items() for key in keys}


@cache
def _usual(kind: str) -> dict[str, list[str]]:
    """Return the values with which keys change nothing, or are followed, by lower case key."""
    given = _tables().get(kind, {}).get(_USUAL, {})
    return {key.casefold(): values for key, values in given.items()}


# --- Nodes of a slurm.conf as groups of a machine -------------------------------------------------

#: Kinds of remarks about nodes.
_DOWN = "nodes left out, since the file says that no job may start on them"
_NO_MEMORY = "nodes without RealMemory, which have 1 MB then"
_RESET = "lines of nodes with numbers that do not go together, which Slurm sets otherwise"


class Nodes(NamedTuple):
    """Nodes of one line, all alike.

    Attributes
    ----------
    where : file and line.
    called : the list of their names.
    names : of those that are not FUTURE, in order.
    amounts : what each has of each resource, cores first.
    sockets : that share the cores equally.
    weight : nodes of the least are taken first.
    state : FUTURE, DOWN, ...; "" where jobs may start.
    features : for sets of nodes.
    """

    where: str
    called: str
    names: list[str]
    amounts: dict[str, int]
    sockets: int
    weight: int
    state: str
    features: set[str]


def _nodes(settings: Iterable[Setting], counts_memory: bool, remarks: Remarks) -> list[Nodes]:
    """Return the nodes of each line ``NodeName=...``; lines that cannot be are left out.

    Memory counts only where jobs are given memory at all.
    """
    found: list[Nodes] = []
    seen: set[str] = set()
    for line in slurm_lines.things(settings, "nodename", "nodes"):
        try:
            nodes = _of_line(line, counts_memory, remarks)
            if twice := next((name for name in nodes.names if name in seen), None):
                raise HpcgymError(f"{line.where}: node {twice!r} stands there twice")
            NodeGroup(line.name, len(nodes.names), nodes.amounts, sockets=nodes.sockets)
        except HpcgymError as error:
            _not_read(line, error, remarks)
            continue
        seen.update(nodes.names)
        found.append(nodes)
    return found


def _not_read(line: Thing, error: HpcgymError, remarks: Remarks) -> None:
    """Tell that a line is left out, and why."""
    told = str(error)
    where = "" if told.startswith(line.where) else f"{line.called}: "
    remarks[slurm_lines.NOT_READ].append(where + told)


def _of_line(line: Thing, counts_memory: bool, remarks: Remarks) -> Nodes:
    """Return the nodes of a line.

    Processors are CPUs, as Slurm counts them: ``CPUs``, or sockets x cores x threads, less those of
    ``CoreSpecCount`` or ``CpuSpecList``. Memory is ``RealMemory`` less ``MemSpecLimit`` [MB]. Zeros
    and numbers that do not go together are set as Slurm sets them.

    Raises
    ------
    HpcgymError : a value that cannot be; the message names file, line and nodes.
    """
    number = line.number

    def positive(key: str, usual: int | None) -> Any:
        given = number(key, usual)
        return given if given is None else max(given, 1)

    names = hosts(slurm_lines.node_list(line.name), line.called)
    state = _unusable(line.text("state"))
    cores, threads = positive("corespersocket", 1), positive("threadspercore", 1)
    boards, on_board = positive("boards", 1), positive("socketsperboard", None)
    cpus = positive("cpus", positive("procs", None))
    given = positive("sockets", None) if on_board is None else boards * on_board
    told = sockets = boards if given is None else given
    if cpus and given is None and cpus % (cores * threads) == 0:
        sockets = cpus // (cores * threads)
    made = sockets * cores * threads
    if cpus not in (None, sockets, sockets * cores, made):
        remarks[_RESET].append(f"{line.called}: CPUs={cpus} counts as {made}")
    cpus = cpus if cpus in (sockets, sockets * cores) else made
    each = 1 if sockets * cores >= cpus else threads  # CPUs of a core
    amounts = {CORE: cpus - each * _reserved(line, sockets * cores, each)}
    if counts_memory:
        memory, less = number("realmemory", 1), number("memspeclimit", 0)
        amounts[MEMORY] = memory - (less if less < memory else 0)
        if "realmemory" not in line.told and not state:
            remarks[_NO_MEMORY] += [f"{line.where}: {name}" for name in names]
    written, value = line.told.get("gres", ("", ""))
    amounts |= slurm_lines.gres(value, f"{line.called}: {written}", remarks)
    _, features = line.told.get("feature", line.told.get("features", ("", "")))
    return Nodes(
        where=line.where,
        called=line.name,
        names=names,
        amounts=amounts,
        # only jobs that share nodes go by sockets, and these must divide the cores
        sockets=told if amounts[CORE] % told == 0 else 1,
        weight=number("weight", 1),
        state=state,
        features={one.strip() for one in features.split(",")},
    )


#: How states of nodes begin in which no job starts there; those that are FUTURE are not there yet.
_UNUSABLE = ("DOWN", "DRAIN", "ERROR", "FAIL", "FUTURE")


def _unusable(state: str) -> str:
    """Return a state in which no job starts on nodes, in capitals; "" for others."""
    return state.upper() if state.upper().startswith(_UNUSABLE) else ""


def _reserved(line: Thing, cores: int, each: int) -> int:
    """Return how many of the cores of a node are kept from jobs; each has so many CPUs."""
    text = line.told.get("cpuspeclist", ("", ""))[1]
    if not text:
        reserved: int = line.number("corespeccount", 0)
        return reserved if reserved < cores else 1  # as Slurm has it
    cpus = map(int, hosts(f"[{text}]", f"{line.called}: CpuSpecList"))
    return len({cpu // each for cpu in cpus} & {*range(cores)})


def _kept(
    lines: Sequence[Nodes], settings: Iterable[Setting], remarks: Remarks
) -> list[tuple[Nodes, list[str]]]:
    """Return the lines, each with those of its nodes on which jobs may start, by their weights.

    ``DownNodes`` counts for more than the lines. Slurm takes the nodes of the least weight first,
    and simulations those that come first.
    """
    states = {name: nodes.state for nodes in lines for name in nodes.names}
    places = {name: nodes.where for nodes in lines for name in nodes.names}
    for line in slurm_lines.things(settings, "downnodes", "nodes"):
        state = line.text("state", "down").upper()
        for name in _hosts_of(line, line.name, remarks):
            if name not in states:
                told = f"{line.where}: DownNodes: there is no node {name!r}"
                remarks[slurm_lines.NOT_READ].append(told)
            elif state != "UNKNOWN":
                states[name] = _unusable(state)
                places[name] = line.where
    for name, state in states.items():
        if state and state != "FUTURE":
            remarks[_DOWN].append(f"{places[name]}: {name} is {state}")
    kept = [(nodes, [name for name in nodes.names if not states[name]]) for nodes in lines]
    return sorted((one for one in kept if one[1]), key=lambda one: one[0].weight)


def _hosts_of(line: Thing, text: str, remarks: Remarks) -> list[str]:
    """Return the names of a list of nodes; none of one that cannot be read, which is told."""
    try:
        listed = slurm_lines.node_list(text)
        return hosts(listed, line.called) if listed else []
    except HpcgymError as error:
        _not_read(line, error, remarks)
        return []


def _groups(kept: Sequence[tuple[Nodes, list[str]]], remarks: Remarks) -> list[NodeGroup]:
    """Return nodes as groups of a machine: lines that come after one another and are alike as one.

    Of two resources of almost the same name one is left out.
    """
    names = dict.fromkeys(name for nodes, _ in kept for name in nodes.amounts)
    while near := alike(names):
        told = f"{near[1]!r} is almost the name of another, {near[0]!r}"
        remarks[slurm_lines.OTHER_RESOURCES].append(told)
        del names[near[1]]
    found: list[NodeGroup] = []
    for (amounts, sockets), alikes in groupby(kept, lambda one: (one[0].amounts, one[0].sockets)):
        lines = list(alikes)
        hosts_of = [name for _, some in lines for name in some]
        whole = len(lines) == 1 and len(hosts_of) == len(lines[0][0].names)
        called = slurm_lines.node_list(lines[0][0].called) if whole else text_of_hosts(hosts_of)
        has = {name: amount for name, amount in amounts.items() if name in names}
        found.append(NodeGroup(called, len(hosts_of), has, sockets=sockets))
    return found


def _sets(
    settings: Iterable[Setting], lines: Sequence[Nodes], remarks: Remarks
) -> dict[str, list[str]]:
    """Return the nodes of each line ``NodeSet=...``: those it names, and those with its feature."""
    found: dict[str, list[str]] = {}
    for line in slurm_lines.things(settings, "nodeset", "set"):
        given = {key: value for key, (_, value) in line.told.items()}
        names = _hosts_of(line, given.get("nodes", ""), remarks)
        feature = given.get("feature")
        names += [name for one in lines if feature in one.features for name in one.names]
        found[line.name] = names
    return found


# --- Partitions of a slurm.conf -------------------------------------------------------------------

_YES = ("yes", "true", "up", "1")


def _partitions(
    lines: Iterable[Thing],
    nodes: Mapping[str, int],
    sets: Mapping[str, Sequence[str]],
    whole: bool,
    remarks: Remarks,
) -> list[Partition]:
    """Return the partitions of lines ``PartitionName=...``; those that cannot be are left out.

    Parameters
    ----------
    nodes : name -> number of each node of the machine, -1 of those that are left out.
    sets : name -> nodes of each ``NodeSet``.
    whole : whether jobs have whole nodes unless their partition lets nodes be shared.
    """
    found: dict[str, Partition] = {}
    for line in lines:
        try:
            if line.name in found:
                raise HpcgymError(f"{line.where}: partition {line.name!r} stands there twice")
            found[line.name] = _partition(line, _members(line, nodes, sets, remarks), whole)
        except HpcgymError as error:
            _not_read(line, error, remarks)
    defaults = [one.name for one in found.values() if one.default]
    return [replace(one, default=defaults[-1:] == [one.name]) for one in found.values()]


def _partition(line: Thing, members: Sequence[int], whole: bool) -> Partition:
    """Return the partition of a line ``PartitionName=...`` with these nodes, perhaps ``whole``.

    Raises
    ------
    HpcgymError : a value that cannot be; the message names the partition, or file and line, too.
    """
    written, state = line.told.get("state", ("State", "up"))
    known = next((one for one in STATES if state.casefold().startswith(one)), "")
    if not known:
        raise HpcgymError(f"{line.called}: {written}: {unknown('state', state, STATES)}")
    values = {key: value for key, (_, value) in line.told.items()}
    names = ("allow_accounts", "deny_accounts", "allow_qos", "deny_qos")
    lists = {name: values.get(name.replace("_", ""), "").lower() for name in names}
    both = line.number("priority", 1)
    return Partition(
        name=line.name,
        nodes=tuple(members),
        default=line.text("default") in _YES,
        max_time_s=line.time("maxtime"),
        default_time_s=line.time("defaulttime"),
        min_nodes=line.number("minnodes", 0),
        max_nodes=line.number("maxnodes", None),
        priority_tier=both if "priority" in values else line.number("prioritytier", 1),
        priority_factor=both if "priority" in values else line.number("priorityjobfactor", 1),
        qos=values.get("qos") or None,
        exclusive=line.text("oversubscribe", line.text("shared", "no"))
        in ("exclusive", *(["no"] if whole else [])),
        state=known,
        **{name: slurm_lines.several(text) for name, text in lists.items()},
    )


def _members(
    line: Thing,
    nodes: Mapping[str, int],
    sets: Mapping[str, Sequence[str]],
    remarks: Remarks,
) -> list[int]:
    """Return the numbers of the nodes that a partition names; it may have none."""
    text = line.told.get("nodes", ("", ""))[1]
    if text.casefold() == "all":
        return [number for number in nodes.values() if number >= 0]
    listed = _hosts_of(line, text, remarks)
    names = [node for name in listed for node in sets.get(name, [name])]
    if missing := [name for name in names if name not in nodes]:
        more = f", nor {len(missing) - 1:,} more" if len(missing) > 1 else ""
        told = f"{line.called}: there is no node {missing[0]!r}{more}"
        remarks[slurm_lines.NOT_READ].append(told)
    return [nodes[name] for name in names if nodes.get(name, -1) >= 0]


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


def other_settings(settings: Iterable[Setting], remarks: Remarks) -> list[OtherSetting]:
    """Return the settings that say, or may say, how jobs are scheduled, beside the machine's own.

    Settings that say nothing of schedules, such as ports and log files, are left out; ``remarks``
    is told of those that Slurm does not have.
    """
    found: list[OtherSetting] = []
    for line in settings:
        kind = line.name.casefold()
        here = [(GENERAL, "", line.name, line.value)]
        if known(kind):
            here += [(kind, line.value, key, value) for key, value in line.others.values()]
        for of_kind, of, key, value in here:
            one = OtherSetting(line.where, of, key, value)
            what = known(of_kind).get(key.casefold())
            if what is None:
                near = get_close_matches(key.casefold(), known(of_kind), n=1, cutoff=0.8)
                hint = f"; did you mean {near[0]!r}?" if near else ""
                remarks[_UNKNOWN].append(f"{line.where}: {one.name}{hint}")
            usual = _usual(of_kind).get(key.casefold(), ())
            followed = what == IRRELEVANT or (what == MACHINE and not usual)
            if not followed and value.casefold() not in usual:
                found.append(one)
    return found


#: A kind of remark.
_UNKNOWN = "keys that Slurm 22.05 to 25.05 does not have"


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
    cluster : the machine: groups of nodes, by their weights and in order, and the partitions.
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


#: Kinds of remarks, those first that matter most.
_KINDS = (
    _DOWN,
    _NO_MEMORY,
    slurm_lines.NOT_READ,
    _UNKNOWN,
    slurm_lines.OTHER_RESOURCES,
    slurm_lines.ELSEWHERE,
    slurm_lines.UNLIMITED,
    _RESET,
)


def read_slurm_conf(path: str | os.PathLike[str]) -> SlurmConf:
    """Return what a slurm.conf says, with the files that it includes.

    Nodes that are FUTURE, down, drained or failing are not there, those of the least ``Weight``
    come first, and lines of nodes that are alike are one group. Memory is a resource where
    ``SelectTypeParameters`` has it (``CR_Core_Memory``); all ``Gres`` of nodes are, types of one
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
    settings = slurm_lines.settings_of(Path(path), remarks)
    general = {one.name.casefold(): one.value for one in settings if not one.others}
    whole = general.get("selecttype", "").casefold() == "select/linear"
    counts_memory = "memory" in general.get("selecttypeparameters", "").casefold()
    lines = _nodes(settings, counts_memory, remarks)
    kept = _kept(lines, settings, remarks)
    if not kept:
        why = next((f": {found[0]}" for found in remarks.values() if found), ", NodeName=...")
        raise HpcgymError(f"{path}: it has no nodes for jobs{why}")
    groups = _groups(kept, remarks)
    node_names = [name for _, names in kept for name in names]
    numbers = {name: -1 for nodes in lines for name in nodes.names}
    numbers |= {name: number for number, name in enumerate(node_names)}
    parts = list(slurm_lines.things(settings, "partitionname", "partition"))
    sets = _sets(settings, lines, remarks)
    cluster = Cluster(
        groups=tuple(groups),
        name=general.get("clustername") or Path(path).name,
        partitions=tuple(_partitions(parts, numbers, sets, whole, remarks)),
    )
    others = other_settings(settings, remarks)
    warn_of_file(path, remarks, HpcgymWarning)
    said = [name for name, what in known(GENERAL).items() if what in (SCHEDULER, NAMED)]
    return SlurmConf(
        cluster=cluster,
        node_names=tuple(node_names),
        scheduling={name: value for name, value in general.items() if name in said},
        where={s.name.casefold(): s.where for s in settings if not s.others},
        parameters=_parameters(general.get("schedulerparameters", "")),
        preempt_modes={
            line.name: line.told["preemptmode"][1] for line in parts if line.text("preemptmode")
        },
        others=tuple(others),
    )


def _parameters(text: str) -> dict[str, str]:
    """Return ``SchedulerParameters`` by name; of two Slurm looks up the first."""
    found: dict[str, str] = {}
    for name, _, value in (part.partition("=") for part in text.split(",") if part.strip()):
        found.setdefault(name.strip(), value.strip())
    return found
