"""Groups of equal nodes, and what a node has of each resource."""

from __future__ import annotations

import operator
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hpcgym.errors import HpcgymError

#: The resource that every node has and every unit of a job takes: what processors are counted by.
CORE = "core"
#: The one resource with a unit: whole megabytes (1 GB = 1,000 MB).
MEMORY = "mem"

MOST_NODES = 2**20  # of a machine: capacities are an array with a row for each
MOST_AMOUNT = 2**31  # of a resource on a node, so that no sum overflows

_NAME = re.compile(r"[A-Za-z][\w-]*")
#: What stands beside resources in machine files and tables of jobs, and so can be none.
_TAKEN = ("name", "nodes", "units")


@dataclass(frozen=True)
class NodeGroup:
    """Nodes that are all alike.

    Attributes
    ----------
    name : what the group is called.
    nodes : number of nodes, at least 1.
    resources : resource -> whole amount on each node. ``core`` is at least 1 and comes first;
        ``mem`` is in MB; others, such as ``gpu``, are whatever the jobs call them.

    Raises
    ------
    HpcgymError : no nodes, no cores, an amount that is no whole number from 0 to 2^31, or the name
        of a resource that is none.
    """

    name: str
    nodes: int
    resources: Mapping[str, int] = field(hash=False)  # a dict has no hash

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise HpcgymError(f"the name of a group of nodes must be a text, not {self.name!r}")
        where = f"group {self.name!r}"
        if not isinstance(self.resources, Mapping):
            raise HpcgymError(f"{where}: resources must be a mapping such as {{'core': 16}}")
        amounts = {
            _resource(where, name): _whole(where, str(name), amount, 0, MOST_AMOUNT)
            for name, amount in self.resources.items()
        }
        if not amounts.get(CORE):
            raise HpcgymError(f"{where}: a node needs at least 1 core")
        object.__setattr__(self, "nodes", _whole(where, "nodes", self.nodes, 1, MOST_NODES))
        object.__setattr__(self, "resources", {CORE: amounts.pop(CORE), **amounts})


def _resource(where: str, name: Any) -> str:
    """Return the name of a resource, or say that it cannot be one."""
    if not isinstance(name, str) or not _NAME.fullmatch(name) or name in _TAKEN:
        raise HpcgymError(f"{where}: {name!r} cannot be the name of a resource")
    return name


def _whole(where: str, name: str, amount: Any, least: int, most: int) -> int:
    """Return a whole number as an int, or say that it cannot be one."""
    try:
        number = operator.index(amount)
    except TypeError:
        number = least - 1
    if isinstance(amount, bool) or not least <= number <= most:
        raise HpcgymError(
            f"{where}: {name} must be a whole number from {least} to {most}, not {amount!r}"
        )
    return number
