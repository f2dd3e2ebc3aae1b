"""Partitions of a slurm.conf."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hpcgym.cluster.partitions import STATES, Partition
from hpcgym.cluster.slurm.amounts import count, minutes_text, several
from hpcgym.cluster.slurm.hostlists import hosts
from hpcgym.cluster.slurm.lines import Setting
from hpcgym.errors import HpcgymError, HpcgymWarning, unknown, warn_caller


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

    Warns
    -----
    HpcgymWarning : a DenyQos or DenyAccounts of ALL, which is nobody's name.
    """
    where = f"{line.where}, partition {line.value!r}"
    told = {**defaults, **line.others}
    given = {key: value for key, (_, value) in told.items()}

    def number(key: str, usual: int | None) -> Any:
        written, value = told.get(key, (key, ""))
        found = count(value, f"{where}: {written}")
        return usual if found is None else found

    def time(key: str) -> int | None:
        written, value = told.get(key, (key, ""))
        return minutes_text(value, f"{where}: {written}")

    share = given.get("oversubscribe", given.get("shared", "no")).casefold()
    for key in ("denyaccounts", "denyqos"):
        written, value = told.get(key, (key, ""))
        if value.casefold() == "all":
            warn_caller(f"{where}: {written}={value} denies nobody: ALL is no name", HpcgymWarning)
    return _made(
        line.where,
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
        deny_qos=several(given.get("denyqos", "")),
        qos=given.get("qos") or None,
        exclusive=share == "exclusive",
        state=_state(told, where),
    )


def _made(where: str, **settings: Any) -> Partition:
    """Return a partition; what it cannot be is said with file and line."""
    try:
        return Partition(**settings)
    except HpcgymError as error:
        raise HpcgymError(f"{where}, {error}") from None


def _state(told: Mapping[str, tuple[str, str]], where: str) -> str:
    """Return the state of a partition, up unless somebody says otherwise."""
    written, value = told.get("state", ("State", "UP"))
    if value.casefold() not in STATES:
        raise HpcgymError(f"{where}: {written}: {unknown('state', value, STATES)}")
    return value.casefold()


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
