"""What nodes draw, by group, and which jobs have had which of their cores.

G groups, L levels at most; m cells, each what a job has of a node.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcgym.errors import HpcgymError

if TYPE_CHECKING:
    from hpcgym.cluster.pool import Cluster
    from hpcgym.result import Result

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

#: Measured powers of jobs count in these steps [W], so that sums of them are exact.
QUANTUM_W = 2.0**-20


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


class Cells(NamedTuple):
    """What jobs have had of nodes.

    Attributes
    ----------
    job, node, group, cores, level : (m,) int64; the level of a group with fewer is its highest.
    measured : (m,) int64, measured power of the job on each core, in steps of ``QUANTUM_W``; -1
        where it is unknown.
    """

    job: Ints
    node: Ints
    group: Ints
    cores: Ints
    level: Ints
    measured: Ints

    @property
    def some_measured(self) -> bool:
        """Whether the power of any job is known."""
        return self.measured.strides != (0,)

    def take(self, chosen: Mask) -> Cells:
        """Return the cells that are chosen, (m,) bool."""
        if chosen.all():
            return self
        places = np.flatnonzero(chosen)
        return Cells(*(column[places] for column in self))


class Parts(NamedTuple):
    """What each job has had of each group, but for nodes that it shares; p pairs of the two.

    Attributes
    ----------
    job, group, level : (p,) int64.
    cores : (p,) int64, those of jobs that are not measured.
    measured, steps : (p,) int64, cores of measured jobs, and what these draw, in ``QUANTUM_W``.
    """

    job: Ints
    group: Ints
    level: Ints
    cores: Ints
    measured: Ints
    steps: Ints


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


def cells_of(result: Result, powers: Powers) -> Cells:
    """Return what the jobs that have started have had of nodes.

    Raises
    ------
    HpcgymError : a machine with nodes, but nobody tells who has which; a level below 0; measured
        powers of which no sum would be exact.
    """
    n = len(result.start)
    workload, cluster = result.workload, result.cluster
    if not cluster.groups:
        job, node = np.arange(n), np.zeros(n, np.int64)
        cores = np.asarray(workload.requested_processors)
    else:
        if result.allocation is None:
            raise HpcgymError("the schedule does not tell who has which nodes: no power is known")
        first, held, units = result.allocation
        job = np.repeat(np.arange(n), np.diff(first))
        node, cores = np.asarray(held, np.int64), units.astype(np.int64)
        if workload.units is not None:
            cores = cores * workload.per_unit["core"][job]
    if len(cluster.groups) < 2:
        group = np.broadcast_to(np.int64(0), len(job))  # takes no memory
        level = np.broadcast_to(powers.top[0], len(job))
    else:
        group = cluster.group_of[node]
        level = powers.top[group]
    if result.frequency is not None:
        if (result.frequency < 0).any():
            raise HpcgymError("frequency: levels are counted from 0, the lowest")
        level = np.minimum(level, result.frequency[job])
    measured = _measured(result, powers, job, group, level)
    cells = Cells(job, node, group, cores, level, measured)
    return cells.take(result.start[job] >= 0) if (result.start < 0).any() else cells


def parts_of(cells: Cells, counted: Mask, n_jobs: int, n_groups: int) -> Parts:
    """Return the cells that are counted, and those of measured jobs, summed by job and group."""
    key = cells.job if n_groups == 1 else cells.job * n_groups + cells.group
    size = n_jobs * n_groups
    present = np.flatnonzero(np.bincount(key, minlength=size))
    level = np.zeros(size, np.int64)
    level[key] = cells.level

    def summed(values: NDArray[Any]) -> Ints:
        # whole numbers below 2^53: sums in double precision are exact
        return weighed(key, values, size)[present].astype(np.int64)

    cores = summed(cells.cores * counted)
    measured = steps = np.zeros(len(present), np.int64)
    if cells.some_measured:
        known = cells.measured >= 0
        measured = summed(cells.cores * known)
        of_pair = np.zeros(size, np.int64)
        of_pair[key[known]] = cells.measured[known]  # all cells of a pair have the same
        steps = measured * of_pair[present]
    job, group = np.divmod(present, n_groups)
    return Parts(job, group, level[present], cores, measured, steps)


def _measured(result: Result, powers: Powers, job: Ints, group: Ints, level: Ints) -> Ints:
    """Return the measured power of jobs on each core in steps, as much less as their level has."""
    power_w = known_powers(result)
    if power_w is None:
        return np.broadcast_to(np.int64(-1), len(job))
    full = powers.busy[group, powers.top[group]]
    scale = np.divide(powers.busy[group, level], full, out=np.ones_like(full), where=full > 0)
    steps = np.rint(np.where(power_w[job] < 0, 0, power_w[job] * scale) / QUANTUM_W)
    if steps.max(initial=0) * result.cluster.processors >= 2.0**62:
        raise HpcgymError(f"power_w: {power_w.max():g} W a processor is more than can be summed")
    return np.where(power_w[job] < 0, -1, steps.astype(np.int64))


def weighed(places: Ints, weights: NDArray[Any], size: int) -> Floats:
    """Return the sums of weights by place, (size,)."""
    return np.bincount(places, weights, size).astype(np.float64, copy=False)


def known_powers(result: Result) -> Floats | None:
    """Return the measured powers of jobs [W], -1 where unknown; None where none is known."""
    columns = getattr(result.workload, "columns", {})
    power_w = columns.get("power_w")
    if power_w is None or not (power_w >= 0).any():
        return None
    return np.asarray(power_w, dtype=np.float64)


def _padded(rows: list[Any], levels: Ints) -> NDArray[Any]:
    """Return rows of unequal length as a table, their last entries repeated."""
    return np.array([[row[at] for at in places] for row, places in zip(rows, levels, strict=True)])


def _ghz(label: str) -> float:
    """Return the frequency in the name of a state, 0 where there is none."""
    return float(label.removeprefix("busy_").removesuffix("ghz")) if "_" in label else 0.0
