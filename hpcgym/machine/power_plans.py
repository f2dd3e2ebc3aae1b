"""What machines draw, and how many nodes are switched off so that they keep under a cap.

The latter is section 4.2 of Glesser 2016. Nodes are switched off by number, so that whole racks and
chassis are off, and what stands above nodes is saved with them.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcgym.errors import HpcgymError, check_whole, real
from hpcgym.machine.pool import Cluster
from hpcgym.machine.power import Floats, Ints, Mask, NodePower

# --- What nodes draw, by group: arrays made of a machine ------------------------------------------
#
# G groups, L levels of power at most.


class Powers(NamedTuple):
    """What a node of each group draws [W].

    Attributes
    ----------
    cores : (G,) int64 of a node; a pool is one node.
    whole : (G,) bool; whether a node with a job is busy as a whole, and not core by core.
    idle, off, switching_off, switching_on : (G,) float64 [W].
    busy : (G, L) float64 [W]; groups with fewer levels repeat their highest.
    top : (G,) int64, the highest level.
    label : (G, L) int64, places in ``labels``; each level of a group has a place of its own.
    labels : what busy nodes are called, by frequency.
    """

    cores: Ints
    whole: Mask
    idle: Floats
    off: Floats
    switching_off: Floats
    switching_on: Floats
    busy: Floats
    top: Ints
    label: Ints
    labels: tuple[str, ...]


def powers_of(cluster: Cluster) -> Powers:
    """Return what the nodes of a machine draw.

    Where a group has no power of its own, a node draws the flat powers of its processors.
    """
    rows: list[tuple[Any, ...]] = []
    busy: list[tuple[float, ...]] = []
    names: list[list[str]] = []
    for group in cluster.groups or (None,):
        cores = cluster.processors if group is None else group.resources["core"]
        power = None if group is None else group.power
        if power is None:
            flat = (cluster.idle_power_w, cluster.off_power_w, cluster.shutdown_w, cluster.boot_w)
            rows.append((cores, False, *(cores * watts for watts in flat)))
            busy.append((cores * cluster.busy_power_w,))
            names.append(["busy"])
        else:
            rows.append((cores, True, power.idle_w, power.off_w, power.shutdown_w, power.boot_w))
            busy.append(power.busy_levels_w)
            names.append([f"busy_{ghz:g}ghz" for ghz in power.frequency_ghz] or ["busy"])
    top = np.array([len(levels) - 1 for levels in busy], np.int64)
    levels = np.minimum(np.arange(top.max() + 1), top[:, np.newaxis])
    # by frequency; "busy" itself first
    labels = sorted({name for row in names for name in row}, key=lambda name: _ghz(name))
    places = [[labels.index(name) for name in row] for row in names]
    columns = [np.array(column, np.float64) for column in zip(*rows, strict=True)]
    return Powers(
        cores=columns[0].astype(np.int64),
        whole=columns[1] > 0,
        idle=columns[2],
        off=columns[3],
        switching_off=columns[4],
        switching_on=columns[5],
        busy=_padded(busy, levels).astype(np.float64),
        top=top,
        label=_padded(places, levels).astype(np.int64),
        labels=tuple(labels),
    )


def weighed(places: Ints, weights: NDArray[Any], size: int) -> Floats:
    """Return the sums of weights by place, (size,)."""
    return np.bincount(places, weights, size).astype(np.float64, copy=False)


def _padded(rows: list[Any], levels: Ints) -> NDArray[Any]:
    """Return rows of unequal length as a table, their last entries repeated."""
    return np.array([[row[at] for at in places] for row, places in zip(rows, levels, strict=True)])


def _ghz(label: str) -> float:
    """Return the frequency in the name of a state, 0 without one."""
    return float(label.removeprefix("busy_").removesuffix("ghz")) if "_" in label else 0.0


# --- Chassis, racks and whatever else stands above nodes ------------------------------------------


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
    """Return the components above the nodes, from the lowest level on.

    Parameters
    ----------
    node, begin, end : (k,) a node, and from and up to which of the ``n_times`` times it is off.
    """
    below, levels = 1, []
    for level in cluster.levels:
        below *= level.of
        of_node = np.arange(cluster.nodes) // below
        size = np.bincount(of_node)
        periods = _all_off(of_node[node], begin, end, size, n_times)
        levels.append(Above(level.name, level.power_w, of_node, size, *periods))
    return levels


def _all_off(
    component: Ints, begin: Ints, end: Ints, size: Ints, n_times: int
) -> tuple[Ints, Ints, Ints]:
    """Return the periods in which as many nodes are off as there are below a component."""
    keys = np.concatenate([component * n_times + begin, component * n_times + end])
    order = np.argsort(keys, kind="stable")
    changes = np.repeat([1, -1], len(component))[order]
    keys = keys[order]
    last = np.append(keys[1:] != keys[:-1], True) if keys.size else np.zeros(0, np.bool_)
    # no component begins with a node off, and each one is on again at the end
    off = np.cumsum(changes)[last]
    where, time = np.divmod(keys[last], n_times)
    full = np.flatnonzero(off == size[where])
    return where[full], time[full], time[full + 1] if full.size else full


# --- Which nodes are off --------------------------------------------------------------------------


def rho(power: NodePower, degradation: float | None = None, lowest: int = 0) -> float:
    """Return 1 - 1/deg - (Pmax - Pdvfs) / (Pmax - Poff), as Glesser 2016 defines it.

    To save a watt, switching off costs 1 / (Pmax - Poff) of the work of a node, and slowing down
    (1 - 1/deg) / (Pmax - Pdvfs). So by C1 and C3 slowing down computes more if rho is below 0, and
    switching off if it is above. The document says the opposite; see
    :func:`hpcgym.benchmarks.energy.plans.plans_under`.

    Parameters
    ----------
    power : of a node.
    degradation : deg, completion time at the level ``lowest`` over that at the highest, at least 1;
        by default the node's slowdown there.
    lowest : the lowest level that may be used.

    Raises
    ------
    HpcgymError : a node with one level, or that draws no more busy than off, or a degradation below
        1.
    """
    slow, fast, deg = slow_and_fast(power, degradation, lowest)
    return 1 - 1 / deg - (fast - slow) / (fast - power.off_w)


def greatest_w(cluster: Cluster, level: int | None = None) -> float:
    """Return what a machine draws if all its nodes are busy at a level, by default the highest."""
    busy = powers_of(cluster).busy[:, -1 if level is None else level][cluster.group_of]
    above = [len(level.size) * level.power_w for level in _all_above(cluster)]
    return math.fsum([*busy.tolist(), *above])


def idle_w(cluster: Cluster) -> float:
    """Return what a machine draws if all its nodes are on and idle [W]."""
    powers = powers_of(cluster)
    busy_more = powers.busy[:, -1] - powers.idle
    return greatest_w(cluster) - float(busy_more[cluster.group_of].sum())


def fewest_off(cluster: Cluster, watts: float, level: int | None = None) -> int:
    """Return how many nodes, from node 0 on, must be off so that a machine stays under a cap.

    All others are busy. If nodes are equal, and components of equal size, fewer do not suffice.

    Parameters
    ----------
    watts : the cap, of the whole machine with the components above its nodes.
    level : frequency level of the others, by default the highest.

    Raises
    ------
    HpcgymError : a cap below what the machine draws with all nodes off.
    """
    savings, most = _savings_w(cluster, level), greatest_w(cluster, level)
    number = int(np.searchsorted(savings, round(most - cap_w(watts), 9)))
    if number > cluster.nodes:
        left = most - savings[-1]
        raise HpcgymError(f"a cap of {watts:g} W: with all nodes off the machine draws {left:g} W")
    return number


def _savings_w(cluster: Cluster, level: int | None) -> Floats:
    """Return the power saved by switching off the first k nodes, (nodes + 1,) [W].

    The power of components with no other node below is saved too (table 4.1).
    """
    powers, groups = powers_of(cluster), cluster.group_of
    off = powers.off[groups]
    saved = powers.busy[:, -1 if level is None else level][groups] - off
    for number, above in enumerate(_all_above(cluster)):
        saved[np.cumsum(above.size) - 1] += above.power_w
        if number == 0:  # if all nodes of a component are off, they draw nothing
            saved[np.cumsum(above.size) - 1] += np.bincount(above.of_node, off)
    return np.concatenate([[0.0], np.cumsum(saved)])


def slow_and_fast(
    power: NodePower, degradation: float | None = None, lowest: int = 0
) -> tuple[float, float, float]:
    """Return the watts of a busy node, slow and fast, and the degradation: see :func:`rho`."""
    if power.levels < 2:
        raise HpcgymError("nodes with one level of frequency cannot be slowed down")
    level = check_whole("lowest", lowest, 0, power.levels - 2)
    deg = real(power.slowdowns[level] if degradation is None else degradation)
    if not 1 <= deg < math.inf:
        raise HpcgymError(f"degradation must be a factor of at least 1, not {degradation!r}")
    slow, fast = power.busy_levels_w[level], power.busy_levels_w[-1]
    if not power.off_w < slow < fast:
        raise HpcgymError(
            f"a node must draw more with its frequency, and more than off: not {power.off_w:g} W"
            f" off, {slow:g} W slow and {fast:g} W fast"
        )
    return slow, fast, deg


def cap_w(watts: Any) -> float:
    """Return a cap as a float, checked."""
    cap = real(watts)
    if not 0 <= cap < math.inf:
        raise HpcgymError(f"a cap must be a power of at least 0 W, not {watts!r}")
    return cap


def _all_above(cluster: Cluster) -> list[Any]:
    """Return the components above the nodes, without periods in which they are off."""
    none = np.zeros(0, np.int64)
    return levels_above(cluster, none, none, none, 1)
