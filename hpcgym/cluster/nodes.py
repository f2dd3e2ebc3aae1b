"""Groups of equal nodes, and what a node has of each resource."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hpcgym.cluster.numbers import whole
from hpcgym.cluster.power import NodePower
from hpcgym.errors import HpcgymError
from hpcgym.naming import CORE, MEMORY, MOST_AMOUNT, name_problem, resource_problem

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
    power : of each node; None: the flat powers of the machine's processors.
    sockets : processors in the sense of chips on each node, at least 1, that share its cores
        equally. Only jobs that share nodes go by them (ELiSE).

    Raises
    ------
    HpcgymError : no nodes, no cores, an amount that is no whole number from 0 to 2^31, the name of
        a resource that is none (see :func:`hpcgym.naming.resource_problem`), a power that is no
        :class:`~hpcgym.cluster.power.NodePower`, or sockets that do not divide the cores.
    """

    name: str
    nodes: int
    resources: Mapping[str, int] = field(hash=False)  # a dict has no hash
    power: NodePower | None = None
    sockets: int = 1

    def __post_init__(self) -> None:
        if problem := name_problem(self.name, MOST_NODES):  # it may be a list of nodes
            raise HpcgymError(f"the name of a group of nodes must be {problem}")
        where = f"group {self.name!r}"
        if not isinstance(self.resources, Mapping):
            raise HpcgymError(f"{where}: resources must be a mapping such as {{'core': 16}}")
        if self.power is not None and not isinstance(self.power, NodePower):
            raise HpcgymError(f"{where}: power must be a NodePower, not {self.power!r}")
        amounts = {
            _resource(where, name): _amount(where, name, amount)
            for name, amount in self.resources.items()
        }
        if not amounts.get(CORE):
            raise HpcgymError(f"{where}: a node needs at least 1 core")
        object.__setattr__(self, "nodes", whole(f"{where}: nodes", self.nodes, 1, MOST_NODES))
        object.__setattr__(self, "sockets", _sockets(where, self.sockets, amounts[CORE]))
        object.__setattr__(self, "resources", {CORE: amounts.pop(CORE), **amounts})


def _amount(where: str, name: Any, amount: Any) -> int:
    """Return how much of a resource a node has, or say that it cannot be so much."""
    what = "a whole number of MB" if name == MEMORY else "a whole number"
    return whole(f"{where}: {name}", amount, 0, MOST_AMOUNT, what)


def _sockets(where: str, sockets: Any, cores: int) -> int:
    """Return the sockets of a node, or say that its cores cannot be shared by so many."""
    number = whole(f"{where}: sockets", sockets, 1, MOST_AMOUNT)
    if cores % number:
        raise HpcgymError(
            f"{where}: sockets must divide the {cores} cores of a node, which {number} does not"
        )
    return number


def _resource(where: str, name: Any) -> str:
    """Return the name of a resource, or say that it cannot be one."""
    if problem := resource_problem(name):
        raise HpcgymError(f"{where}: {problem}")
    return str(name)
