"""The nodes of a slurm.conf as groups of a machine."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from hpcgym.errors import HpcgymError, Remarks
from hpcgym.machine.constraints import is_feature
from hpcgym.machine.partitions import hosts, text_of_hosts
from hpcgym.machine.pool import ANY_NUMBER, NodeGroup
from hpcgym.machine.slurm.lines import (
    NOT_READ,
    SlurmSetting,
    Thing,
    hosts_of,
    node_list,
    not_read,
    things,
)
from hpcgym.names import CORE, MEMORY, MOST_AMOUNT, alike, of_type, resource_problem
from hpcgym.units import GENERIC_OF_SLURM, amount_of

#: Kinds of remarks about nodes.
DOWN = "nodes left out, since the file says that no job may start on them"
NO_MEMORY = "nodes without RealMemory, which have 1 MB then"
OTHER_RESOURCES, UNLIMITED = "resources of nodes left out", "resources of nodes that limit nobody"
OF_NONE = "nodes in no partition, on which no job of the file runs"
RESET = "lines of nodes with numbers that do not go together, which Slurm sets otherwise"


class NodeLine(NamedTuple):
    """Nodes of one line, all alike.

    Attributes
    ----------
    where : file and line.
    called : the list of their names.
    names : of each, in order.
    amounts : what each has of each resource, cores first.
    types : resources of one type, ``gpu-a100`` -> that of all of them, ``gpu``.
    sockets : that share the cores equally.
    weight : nodes of the least are taken first.
    state : FUTURE, DOWN, ...; "" where jobs may start.
    features : for sets of nodes, and constraints of jobs.
    """

    where: str
    called: str
    names: list[str]
    amounts: dict[str, int]
    types: dict[str, str]
    sockets: int
    weight: int
    state: str
    features: tuple[str, ...]


def nodes_of(
    settings: Iterable[SlurmSetting], counts_memory: bool, remarks: Remarks
) -> list[NodeLine]:
    """Return the nodes of each line ``NodeName=...``; lines that cannot be are left out.

    Memory counts only where jobs are given memory at all.
    """
    lines: list[NodeLine] = []
    seen: set[str] = set()
    for line in things(settings, "nodename", "nodes"):
        try:
            nodes = _of_line(line, counts_memory, remarks)
            counts = Counter(nodes.names)
            if twice := next((name for name in counts if counts[name] > 1 or name in seen), None):
                raise HpcgymError(f"{line.where}: node {twice!r} stands there twice")
            NodeGroup(line.name, len(nodes.names), nodes.amounts, sockets=nodes.sockets)
        except HpcgymError as error:
            not_read(line, error, remarks)
            continue
        seen.update(nodes.names)
        lines.append(nodes)
    return lines


def _of_line(line: Thing, counts_memory: bool, remarks: Remarks) -> NodeLine:
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

    names = hosts(node_list(line.name), line.called)
    state = _unusable(line.text("state"))
    cores, threads = positive("corespersocket", 1), positive("threadspercore", 1)
    boards, on_board = positive("boards", 1), positive("socketsperboard", None)
    cpus = positive("cpus", positive("procs", None))
    given = positive("sockets", None) if on_board is None else boards * on_board
    stated = sockets = boards if given is None else given
    if cpus and given is None and cpus % (cores * threads) == 0:
        sockets = cpus // (cores * threads)
    made = sockets * cores * threads
    if cpus not in (None, sockets, sockets * cores, made):
        remarks[RESET].append(f"{line.called}: CPUs={cpus} counts as {made}")
    cpus = cpus if cpus in (sockets, sockets * cores) else made
    each = 1 if sockets * cores >= cpus else threads  # CPUs of a core
    amounts = {CORE: cpus - each * _reserved(line, cpus, sockets * cores, each)}
    if counts_memory:
        memory, less = number("realmemory", 1), number("memspeclimit", 0)
        amounts[MEMORY] = memory - (less if less < memory else 0)
        if "realmemory" not in line.told and not state:
            remarks[NO_MEMORY] += [f"{line.where}: {name}" for name in names]
    generic, types = gres(line.value("gres"), line.place("gres"), remarks)
    amounts |= generic
    features = map(str.strip, line.value("feature", line.value("features")).split(","))
    return NodeLine(
        where=line.where,
        called=line.name,
        names=names,
        amounts=amounts,
        types=types,
        # only jobs that share nodes go by sockets, and these must divide the cores
        sockets=stated if amounts[CORE] % stated == 0 else 1,
        weight=number("weight", 1),
        state=state,
        features=tuple(sorted({*filter(is_feature, features)})),
    )


#: How states of nodes begin in which no job starts there; those that are FUTURE are not there yet.
_UNUSABLE = ("DOWN", "DRAIN", "ERROR", "FAIL", "FUTURE")


def _unusable(state: str) -> str:
    """Return a state in which no job starts on nodes, in capitals; "" for others."""
    return state.upper() if state.upper().startswith(_UNUSABLE) else ""


def _reserved(line: Thing, cpus: int, cores: int, each: int) -> int:
    """Return how many of the cores of a node are kept from jobs; each has so many CPUs."""
    text = line.value("cpuspeclist")
    listed = [int(cpu) for cpu in hosts(f"[{text}]", f"{line.called}: CpuSpecList")] if text else []
    if not listed or max(listed) >= cpus:  # Slurm does not go by such a list
        reserved: int = line.number("corespeccount", 0)
        return reserved if reserved < cores else 1
    return len({cpu // each for cpu in listed})


def kept_of(
    lines: Sequence[NodeLine], settings: Iterable[SlurmSetting], remarks: Remarks
) -> list[tuple[NodeLine, list[str]]]:
    """Return the lines, each with those of its nodes on which jobs may start, by their weights.

    ``DownNodes`` counts for more than the lines. Slurm takes the nodes of the least weight first,
    and simulations those that come first.
    """
    states = {name: nodes.state for nodes in lines for name in nodes.names}
    places = {name: nodes.where for nodes in lines for name in nodes.names}
    for line in things(settings, "downnodes", "nodes"):
        state = line.text("state", "down").upper()
        for name in hosts_of(line, line.name, remarks):
            if name not in states:
                remarks[NOT_READ].append(f"{line.where}: DownNodes: there is no node {name!r}")
            elif state != "UNKNOWN":
                states[name] = _unusable(state)
                places[name] = line.where
    for name, state in states.items():
        if state and state != "FUTURE":
            remarks[DOWN].append(f"{places[name]}: {name} is {state}")
    kept = [(nodes, [name for name in nodes.names if not states[name]]) for nodes in lines]
    return sorted((pair for pair in kept if pair[1]), key=lambda pair: pair[0].weight)


def groups_of(kept: Sequence[tuple[NodeLine, list[str]]], remarks: Remarks) -> list[NodeGroup]:
    """Return nodes as groups of a machine: lines that come after one another and are alike as one.

    Of two resources of almost the same name one is left out, and so are types of a resource that do
    not tell nodes apart.
    """
    names = dict.fromkeys(name for nodes, _ in kept for name in nodes.amounts)
    for name in sole_types(kept):
        del names[name]
    while near := alike(names):
        remarks[OTHER_RESOURCES].append(f"{near[1]!r} is almost the name of another, {near[0]!r}")
        del names[near[1]]
    groups: list[NodeGroup] = []

    def looks(pair: tuple[NodeLine, list[str]]) -> tuple[dict[str, int], int, tuple[str, ...]]:
        has = {name: amount for name, amount in pair[0].amounts.items() if name in names}
        return has, pair[0].sockets, pair[0].features

    for (has, sockets, features), alikes in groupby(kept, looks):
        lines = list(alikes)
        called_so = [name for _, own in lines for name in own]
        whole = len(lines) == 1 and len(called_so) == len(lines[0][0].names)
        called = node_list(lines[0][0].called) if whole else text_of_hosts(called_so)
        groups.append(NodeGroup(called, len(called_so), has, sockets=sockets, features=features))
    return groups


def sole_types(kept: Sequence[tuple[NodeLine, list[str]]]) -> dict[str, str]:
    """Return the types of resources that no node has beside another, ``gpu-a100`` -> ``gpu``."""
    types = {typed: of for nodes, _ in kept for typed, of in nodes.types.items()}
    return {
        name: of
        for name, of in types.items()
        if all(nodes.amounts.get(name, 0) == nodes.amounts.get(of, 0) for nodes, _ in kept)
    }


def of_sole_type(name: str, sole_types: Mapping[str, str]) -> str:
    """Return the resource of which a type, in any case, is the only one; else the name itself.

    >>> of_sole_type("gpu-A100", {"gpu-a100": "gpu"}), of_sole_type("gpu", {"gpu-a100": "gpu"})
    ('gpu', 'gpu')
    """
    sole = {typed.casefold(): resource for typed, resource in sole_types.items()}
    return sole.get(name.casefold(), name)


def sets_of(
    settings: Iterable[SlurmSetting], lines: Sequence[NodeLine], remarks: Remarks
) -> dict[str, list[str]]:
    """Return the nodes of each line ``NodeSet=...``: those it names, and those with its feature."""
    sets: dict[str, list[str]] = {}
    for line in things(settings, "nodeset", "set"):
        feature = line.value("feature")
        with_it = [name for nodes in lines if feature in nodes.features for name in nodes.names]
        sets[line.name] = hosts_of(line, line.value("nodes"), remarks) + with_it
    return sets


# --- Generic resources ----------------------------------------------------------------------------

_GRES = re.compile(r"([A-Za-z][\w-]*)((?::[^:()\s]+)*)(?:\([^)]*\))?")


def gres(text: str, where: str, remarks: Remarks) -> tuple[dict[str, int], dict[str, str]]:
    """Return generic resources of ``gpu:a100:4,ssd``: name -> how many.

    That is ``gpu``, all types together, and each of them, ``gpu-a100``; of these also which
    resource they are of. Those that nobody uses up (``no_consume``) are :data:`ANY_NUMBER`, and so
    are more than the 2^31 that jobs can ask for. What cannot be followed is left out. ``remarks``
    is told of both.
    """
    amounts: dict[str, int] = {}
    types: dict[str, str] = {}
    for part in filter(None, (piece.strip() for piece in re.split(r",(?![^(]*\))", text))):
        match = _GRES.fullmatch(part)
        words = match[2].split(":")[1:] if match else []
        number = amount_of(words.pop(), GENERIC_OF_SLURM) if words and words[-1][0].isdigit() else 1
        if match is None or number is None:
            remark = f"{part[:40]!r} is no resource such as gpu:a100:4"
            remarks[OTHER_RESOURCES].append(f"{where}: {remark}")
        elif problem := _generic_problem(match[1]):
            remarks[OTHER_RESOURCES].append(f"{where}: {problem}")
        elif "no_consume" in map(str.casefold, words):
            amounts[match[1]] = ANY_NUMBER
        else:
            amounts[match[1]] = amounts.get(match[1], 0) + int(number)
            typed = of_type(match[1], words[0]) if words else ""
            if typed and not _generic_problem(typed):
                amounts[typed] = amounts.get(typed, 0) + int(number)
                types[typed] = match[1]
    for name, number in amounts.items():
        if number > MOST_AMOUNT:
            amounts[name] = ANY_NUMBER
            if number != ANY_NUMBER:
                remark = f"{name}: {number:,} are more than a job can ask for, {MOST_AMOUNT:,}"
                remarks[UNLIMITED].append(f"{where}: {remark}")
    return amounts, types


def _generic_problem(name: str) -> str:
    """Return why no generic resource can have this name; nothing if one can."""
    if name in (CORE, MEMORY):
        return f"{CORE} and {MEMORY} are no generic resources"
    return resource_problem(name)
