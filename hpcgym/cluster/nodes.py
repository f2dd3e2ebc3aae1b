"""Groups of equal nodes, and what a node has of each resource."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hpcgym.errors import HpcgymError
from hpcgym.naming import CORE, MEMORY, MOST_AMOUNT, resource_problem

MOST_NODES = 2**20  # of a machine: capacities are an array with a row for each


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
        of a resource that is none; see :func:`hpcgym.naming.resource_problem`.
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
    if problem := resource_problem(name):
        raise HpcgymError(f"{where}: {problem}")
    return str(name)


def _whole(where: str, name: str, amount: Any, least: int, most: int) -> int:
    """Return a whole number as an int, or say that it cannot be one."""
    try:
        number = operator.index(amount)
    except TypeError:
        number = least - 1
    if isinstance(amount, bool) or not least <= number <= most:
        what = "a whole number of MB" if name == MEMORY else "a whole number"
        raise HpcgymError(f"{where}: {name} must be {what} from {least} to {most}, not {amount!r}")
    return number
