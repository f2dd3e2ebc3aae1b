"""Partitions of a slurm.conf: sets of nodes, which may overlap, with limits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcgym.cluster.slurm.amounts import count, minutes_text, several
from hpcgym.cluster.slurm.hostlists import hosts
from hpcgym.cluster.slurm.lines import Setting
from hpcgym.errors import HpcgymError


@dataclass(frozen=True)
class Partition:
    """A partition, as the man page of slurm.conf has it, "PARTITION CONFIGURATION".

    Attributes
    ----------
    name : what jobs call it.
    nodes : (n,) int64, numbers of its nodes in the machine, ascending.
    default : whether jobs that name no partition are in it.
    max_time_s, default_time_s : the longest that a job may ask for, and what one asks for that does
        not say [s]; None: no limit, or the longest.
    min_nodes, max_nodes : of a job; no most if None.
    priority_tier : jobs of a higher one are served first.
    priority_factor : ``PriorityJobFactor``, what counts as the partition's part of priorities.
    allow_accounts, deny_accounts, allow_qos : names; empty: all, nobody, all.
    qos : the QOS whose limits hold for the whole partition, if there is one.
    exclusive : whether each job has whole nodes.
    up : whether jobs may start.
    """

    name: str
    nodes: NDArray[np.int64]
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
    qos: str | None = None
    exclusive: bool = False
    up: bool = True


def partition(
    line: Setting,
    defaults: Mapping[str, tuple[str, str]],
    nodes: Mapping[str, int],
    sets: Mapping[str, Sequence[str]],
) -> Partition:
    """Return the partition of a line.

    Parameters
    ----------
    line : ``PartitionName=...``.
    defaults : keys of the lines ``PartitionName=DEFAULT`` before it.
    nodes : name -> number of each node of the machine.
    sets : name -> nodes of each ``NodeSet``.

    Raises
    ------
    HpcgymError : a partition without nodes, nodes that the machine does not have, or a value that
        cannot be; the message names file, line and partition.
    """
    where = f"{line.where}, partition {line.value!r}"
    given = {key: value for key, (_, value) in {**defaults, **line.others}.items()}

    def number(key: str, usual: int | None) -> Any:
        found = count(given.get(key, ""), f"{where}: {key}")
        return usual if found is None else found

    def time(key: str) -> int | None:
        return minutes_text(given.get(key, ""), f"{where}: {key}")

    share = given.get("oversubscribe", given.get("shared", "no")).casefold()
    return Partition(
        name=line.value,
        nodes=_members(given.get("nodes", ""), nodes, sets, where),
        default=given.get("default", "no").casefold() in ("yes", "true", "1"),
        max_time_s=time("maxtime"),
        default_time_s=time("defaulttime"),
        min_nodes=number("minnodes", 0),
        max_nodes=number("maxnodes", None),
        priority_tier=number("prioritytier", 1),
        priority_factor=number("priorityjobfactor", 1),
        allow_accounts=several(given.get("allowaccounts", "")),
        deny_accounts=several(given.get("denyaccounts", "")),
        allow_qos=several(given.get("allowqos", "")),
        qos=given.get("qos") or None,
        exclusive=share == "exclusive",
        up=given.get("state", "up").casefold() == "up",
    )


def _members(
    text: str, nodes: Mapping[str, int], sets: Mapping[str, Sequence[str]], where: str
) -> NDArray[np.int64]:
    """Return the numbers of the nodes that a partition names."""
    names: list[str] = list(nodes) if text.casefold() == "all" else []
    if text and not names:
        names = [node for name in hosts(text, where) for node in sets.get(name, [name])]
    if not names:
        raise HpcgymError(f"{where}: it has no nodes")
    missing = [name for name in names if name not in nodes]
    if missing:
        raise HpcgymError(f"{where}: there is no node {missing[0]!r}")
    return np.unique(np.array([nodes[name] for name in names], np.int64))
