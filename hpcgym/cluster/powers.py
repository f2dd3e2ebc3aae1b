"""What nodes draw, by group: arrays made of a machine.

G groups, L levels of power at most.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from hpcgym.cluster.pool import Cluster

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]


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
