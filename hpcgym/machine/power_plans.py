"""What machines draw, and what to switch off or slow down so that they keep under a cap.

The latter is chapter 4 of Glesser 2016. First the model of section 4.2.1, of equal nodes: N of
them, some switched off, some at a low frequency, the others at the highest, all computing. Then
which nodes of a machine are switched off (section 4.2.2): whole racks and chassis, so that what
stands above nodes is saved with them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcgym.errors import HpcgymError, real, whole
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
    """Return the frequency in the name of a state, 0 where there is none."""
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


# --- Which nodes are off, and which are slow ------------------------------------------------------


@dataclass(frozen=True)
class Plan:
    """How many of equal nodes are off and how many slow; the others are as fast as they can.

    Attributes
    ----------
    nodes, off, slow : numbers of nodes, ``off`` + ``slow`` at most ``nodes`` (C2).
    work : what they compute, 1 for a node at the highest frequency: the right side of C1.
    watts : what they draw if all compute: the left side of C3.
    """

    nodes: int
    off: int
    slow: int
    work: float
    watts: float


def rho(power: NodePower, degradation: float | None = None, lowest: int = 0) -> float:
    """Return 1 - 1/deg - (Pmax - Pdvfs) / (Pmax - Poff), as Glesser 2016 defines it.

    To save a watt, switching off costs 1 / (Pmax - Poff) of the work of a node, and slowing down
    (1 - 1/deg) / (Pmax - Pdvfs). So by C1 and C3 slowing down computes more if rho is below 0, and
    switching off if it is above. The document says the opposite; see :func:`algorithm_2`.

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
    slow, fast, deg = _levels(power, degradation, lowest)
    return 1 - 1 / deg - (fast - slow) / (fast - power.off_w)


def best_plan(
    nodes: int,
    watts: float,
    power: NodePower,
    degradation: float | None = None,
    lowest: int = 0,
) -> Plan:
    """Return the plan that computes most under a cap, by C1, C2 and C3.

    Nodes are switched off where rho is at least 0, else slowed down; and where not even all nodes
    at the lowest frequency keep under the cap, some are switched off and all others are slow.
    Numbers of nodes are whole, rounded so that the cap is kept.

    Parameters
    ----------
    nodes : N.
    watts : P, the cap, of the nodes alone.
    power, degradation, lowest : as in :func:`rho`.

    Raises
    ------
    HpcgymError : a cap that not even nodes that are off keep, or what :func:`rho` raises.
    """
    model = _Model(nodes, watts, power, degradation, lowest)
    if model.rho >= 0:
        return model.only_off()
    return model.both() if model.too_low else model.only_slow()


def algorithm_2(
    nodes: int,
    watts: float,
    power: NodePower,
    degradation: float | None = None,
    lowest: int = 0,
) -> Plan:
    """Return the plan of algorithm 2 of Glesser 2016, as it is printed.

    It mixes where not even all nodes at the lowest frequency keep under the cap, whatever rho is;
    else it switches off where rho is at most 0, which is where slowing down computes more. So
    :func:`best_plan` never computes less. Parameters and errors are its own.
    """
    model = _Model(nodes, watts, power, degradation, lowest)
    if model.too_low:
        return model.both()
    return model.only_off() if model.rho <= 0 else model.only_slow()


def shutdown_order(cluster: Cluster) -> Ints:
    """Return all nodes in the order in which they are switched off, (nodes,) int64.

    Whole components of the highest level one after the other, within them those of the level below,
    and so on: as many components as possible are off, however many nodes are. Those come first
    that save most for each node (a group that draws more, the last chassis with fewer nodes), then
    the last ones: allocations fill machines from node 0 on. The order is the same for all caps, so
    that of two caps the lower one has the nodes of the higher, and more.
    """
    saved = _saved(cluster)
    keys: list[Any] = [-np.arange(cluster.nodes), -saved]
    total = saved.astype(np.float64)
    for number, above in enumerate(_all_above(cluster)):
        bonus = np.full(len(above.size), above.power_w)
        if number == 0:  # where all is off, not even what is off draws anything
            bonus += np.bincount(above.of_node, _off_w(cluster))
        total += (bonus / above.size)[above.of_node]
        of_each = np.bincount(above.of_node, total) / above.size
        keys += [-above.of_node, -np.round(of_each, 9)[above.of_node]]
    return np.lexsort(keys).astype(np.int64)


def savings_w(cluster: Cluster, order: Ints, level: int | None = None) -> Floats:
    """Return what switching off the first nodes of an order saves, (nodes + 1,) float64 [W].

    Against nodes that are all busy at ``level``, by default the highest; entry k is of k nodes.
    Components that are below no other node are saved too (table 4.1).
    """
    saved = _saved(cluster, level)[order]
    rank = np.empty(cluster.nodes, np.int64)
    rank[order] = np.arange(1, cluster.nodes + 1)
    for number, above in enumerate(_all_above(cluster)):
        complete = np.zeros(len(above.size), np.int64)
        np.maximum.at(complete, above.of_node, rank)
        bonus = np.full(len(above.size), above.power_w)
        if number == 0:
            bonus += np.bincount(above.of_node, _off_w(cluster))
        saved += np.bincount(complete - 1, bonus, cluster.nodes)
    return np.concatenate([[0.0], np.cumsum(saved)])


def greatest_w(cluster: Cluster, level: int | None = None) -> float:
    """Return what a machine draws if all its nodes are busy at a level, by default the highest."""
    powers = powers_of(cluster)
    busy = powers.busy[:, -1 if level is None else level][cluster.group_of]
    above = [len(level.size) * level.power_w for level in _all_above(cluster)]
    return math.fsum([*busy.tolist(), *above])


def idle_w(cluster: Cluster) -> float:
    """Return what a machine draws if all its nodes are on and idle [W]."""
    powers = powers_of(cluster)
    busy_more = powers.busy[:, -1] - powers.idle
    return greatest_w(cluster) - float(busy_more[cluster.group_of].sum())


def nodes_to_switch_off(cluster: Cluster, watts: float, level: int | None = None) -> Ints:
    """Return the nodes that are switched off so that the machine keeps under a cap.

    They are the first of :func:`shutdown_order`, as few as reach it with all others busy. Of equal
    nodes in components of equal size no fewer nodes would do.

    Parameters
    ----------
    watts : the cap, of the whole machine with what stands above its nodes.
    level : at which the others compute, by default the highest.

    Returns
    -------
    nodes : (k,) int64, in the order in which they are switched off.

    Raises
    ------
    HpcgymError : a cap below what the machine draws with all nodes off.
    """
    order = shutdown_order(cluster)
    return order[: fewest_off(cluster, watts, order, level)]


def fewest_off(cluster: Cluster, watts: float, order: Ints, level: int | None = None) -> int:
    """Return how many of the first nodes of an order are off so that a machine keeps under a cap.

    Parameters and errors are those of :func:`nodes_to_switch_off`.
    """
    savings, most = savings_w(cluster, order, level), greatest_w(cluster, level)
    number = int(np.searchsorted(savings, _clean(most - _cap(watts))))
    if number > cluster.nodes:
        left = most - savings[-1]
        raise HpcgymError(f"a cap of {watts:g} W: with all nodes off the machine draws {left:g} W")
    return number


class _Model:
    """The model of section 4.2.1 under one cap."""

    def __init__(
        self, nodes: int, watts: float, power: NodePower, degradation: float | None, lowest: int
    ):
        self.slow_w, self.fast_w, self.deg = _levels(power, degradation, lowest)
        self.off_w = power.off_w
        self.rho = rho(power, degradation, lowest)
        self.nodes, self.cap = whole("nodes", nodes, 1, 2**31), _cap(watts)
        least = self.nodes * self.off_w
        if self.cap < least:
            raise HpcgymError(
                f"a cap of {self.cap:g} W: {nodes} nodes that are off draw {least:g} W"
            )
        self.too_low = self.cap < self.nodes * self.slow_w
        self._excess = max(self.nodes * self.fast_w - self.cap, 0)

    def only_off(self) -> Plan:
        return self._plan(_up(self._excess / (self.fast_w - self.off_w)), 0)

    def only_slow(self) -> Plan:
        return self._plan(0, _up(self._excess / (self.fast_w - self.slow_w)))

    def both(self) -> Plan:
        spare = self.cap - self.nodes * self.off_w
        slow = -_up(-spare / (self.slow_w - self.off_w))
        return self._plan(self.nodes - slow, slow)

    def _plan(self, off: int, slow: int) -> Plan:
        fast = self.nodes - off - slow
        watts = off * self.off_w + slow * self.slow_w + fast * self.fast_w
        return Plan(self.nodes, off, slow, fast + slow / self.deg, watts)


def _levels(power: NodePower, degradation: float | None, lowest: int) -> tuple[float, float, float]:
    """Return the watts at the lowest level and the highest, and the degradation, checked."""
    if power.levels < 2:
        raise HpcgymError("nodes with one level of frequency cannot be slowed down")
    level = whole("lowest", lowest, 0, power.levels - 2)
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


def _cap(watts: Any) -> float:
    """Return a cap as a float, checked."""
    cap = real(watts)
    if not 0 <= cap < math.inf:
        raise HpcgymError(f"a cap must be a power of at least 0 W, not {watts!r}")
    return cap


def _up(number: float) -> int:
    """Return the next whole number."""
    return math.ceil(_clean(number))


def _clean(number: float) -> float:
    """Return a number without what is left of rounding, so that no node depends on it."""
    return round(number, 9)


def _saved(cluster: Cluster, level: int | None = None) -> Floats:
    """Return what switching off each node saves by itself, (nodes,) [W]."""
    powers = powers_of(cluster)
    saved = powers.busy[:, -1 if level is None else level] - powers.off
    return saved[cluster.group_of]


def _off_w(cluster: Cluster) -> Floats:
    """Return what each node draws that is off, (nodes,) [W]."""
    return powers_of(cluster).off[cluster.group_of]


def _all_above(cluster: Cluster) -> list[Any]:
    """Return what stands above the nodes, with nothing of when it is off."""
    none = np.zeros(0, np.int64)
    return levels_above(cluster, none, none, none, 1)
