"""Nodes of a slurm.conf as groups of a machine."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from hpcgym.cluster.nodes import NodeGroup
from hpcgym.cluster.slurm.amounts import count, gres
from hpcgym.cluster.slurm.hostlists import hosts
from hpcgym.cluster.slurm.lines import Setting
from hpcgym.errors import HpcgymError
from hpcgym.naming import CORE, MEMORY

#: Keys of a node that are read, in lower case.
READ = (
    "cpus", "procs", "boards", "sockets", "socketsperboard", "corespersocket", "threadspercore",
    "realmemory", "memspeclimit", "gres", "feature", "features",
)  # fmt: skip


class Nodes(NamedTuple):
    """Nodes of one line: where it stands, a group of equal ones, their names in order, features."""

    where: str
    group: NodeGroup
    names: list[str]
    features: set[str]


def nodes_of(
    line: Setting, defaults: Mapping[str, tuple[str, str]], counts_memory: bool
) -> Nodes | None:
    """Return the nodes of a line ``NodeName=...``; None of those that are not there yet.

    Processors are CPUs, as Slurm counts them: ``CPUs``, or boards x sockets x cores x threads.
    Memory is ``RealMemory`` less ``MemSpecLimit`` [MB], where jobs are given memory at all.

    Parameters
    ----------
    defaults : keys of the lines ``NodeName=DEFAULT`` before it.
    counts_memory : whether memory is a resource that jobs take.

    Raises
    ------
    HpcgymError : a value that cannot be; the message names file, line and nodes.
    """
    where = f"{line.where}, nodes {line.value!r}"
    told = {**defaults, **line.others}
    given = {key: value for key, (_, value) in told.items()}

    def number(key: str, usual: int) -> int:
        written, value = told.get(key, (key, ""))
        found = count(value, f"{where}: {written}")
        return usual if found is None else found

    if given.get("state", "").casefold() == "future":
        return None
    names = hosts(line.value, where)
    boards = number("boards", 1)
    sockets = number("sockets", boards * number("socketsperboard", 1))
    made = sockets * number("corespersocket", 1) * number("threadspercore", 1)
    cpus = number("cpus", number("procs", made))
    amounts = {CORE: cpus}
    if counts_memory:
        memory = number("realmemory", 1)
        amounts[MEMORY] = max(memory - number("memspeclimit", 0), 0)
    if given.get("gres"):
        generic = gres(given["gres"], f"{where}: {told['gres'][0]}")
        if generic.keys() & {CORE, MEMORY}:
            raise HpcgymError(f"{where}: Gres: {CORE} and {MEMORY} are no generic resources")
        amounts |= generic
    # only jobs that share nodes go by sockets, and these must divide the cores
    shared = sockets if sockets and cpus % sockets == 0 else 1
    try:
        group = NodeGroup(line.value, len(names), amounts, sockets=shared)
    except HpcgymError as error:
        raise HpcgymError(f"{where}: {error}") from None
    features = f"{given.get('feature', '')},{given.get('features', '')}"
    named = {feature for feature in features.split(",") if feature}
    return Nodes(line.where, group, names, named)


def node_sets(settings: Iterable[Setting], groups: Iterable[Nodes]) -> dict[str, list[str]]:
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
