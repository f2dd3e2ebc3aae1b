"""Which jobs have had which cores of nodes, at which level of power.

m cells, each what a job has of a node.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcgym.cluster.powers import Floats, Ints, Mask, Powers, weighed
from hpcgym.errors import HpcgymError

if TYPE_CHECKING:
    from hpcgym.schedule.result import Result

#: Measured powers of jobs count in these steps [W], so that sums of them are exact.
QUANTUM_W = 2.0**-20


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


def known_powers(result: Result) -> Floats | None:
    """Return the measured powers of jobs [W], -1 where unknown; None where none is known."""
    columns = getattr(result.workload, "columns", {})
    power_w = columns.get("power_w")
    if power_w is None or not (power_w >= 0).any():
        return None
    return np.asarray(power_w, dtype=np.float64)
