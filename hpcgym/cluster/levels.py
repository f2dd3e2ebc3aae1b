"""Chassis, racks and whatever else stands above nodes: when all below one of them is off."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcgym.cluster.powers import Floats, Ints, weighed

if TYPE_CHECKING:
    from hpcgym.cluster.pool import Cluster


class Above(NamedTuple):
    """The components of one level; k periods in which one of them is off.

    Attributes
    ----------
    name, power_w : of a component [W].
    of_node : (nodes,) int64, the component that each node is below.
    size : (components,) int64, nodes below each.
    component, begin, end : (k,) int64; it is off from and up to which place in the list of times.
    """

    name: str
    power_w: float
    of_node: Ints
    size: Ints
    component: Ints
    begin: Ints
    end: Ints

    def off(self, times: NDArray[Any]) -> Floats:
        """Return how long each component has been off, (components,) [s]."""
        length = (times[self.end] - times[self.begin]).astype(np.float64)
        return weighed(self.component, length, len(self.size))

    def nodes_of(self, chosen: Ints) -> Ints:
        """Return how many of the chosen nodes are below each component, (components,)."""
        return np.bincount(self.of_node[chosen], minlength=len(self.size))


def levels_above(cluster: Cluster, node: Ints, begin: Ints, end: Ints, n_times: int) -> list[Above]:
    """Return what stands above the nodes, from the lowest level on.

    Parameters
    ----------
    node, begin, end : (k,) nodes that are off from and up to which of the ``n_times`` times.
    """
    below, found = 1, []
    for level in cluster.levels:
        below *= level.of
        of_node = np.arange(cluster.nodes) // below
        size = np.bincount(of_node)
        periods = _all_off(of_node[node], begin, end, size, n_times)
        found.append(Above(level.name, level.power_w, of_node, size, *periods))
    return found


def _all_off(
    component: Ints, begin: Ints, end: Ints, size: Ints, n_times: int
) -> tuple[Ints, Ints, Ints]:
    """Return the periods in which as many nodes are off as there are below a component."""
    keys = np.concatenate([component * n_times + begin, component * n_times + end])
    order = np.argsort(keys, kind="stable")
    changes = np.repeat([1, -1], len(component))[order]
    keys = keys[order]
    last = np.append(keys[1:] != keys[:-1], True) if keys.size else np.zeros(0, np.bool_)
    # no component begins with a node off: what is off in the end is on again
    off = np.cumsum(changes)[last]
    where, time = np.divmod(keys[last], n_times)
    full = np.flatnonzero(off == size[where])
    return where[full], time[full], time[full + 1] if full.size else full
