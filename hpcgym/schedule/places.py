"""Where jobs have run: the nodes that they had, and how they shared them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from hpcgym.speedups.heatmap import Heatmap


class Allocation(NamedTuple):
    """Which nodes jobs have had: cells, each so many units of a job on a node; read-only.

    Attributes
    ----------
    first : (n_jobs + 1,) int64; job j has the cells ``first[j]`` up to ``first[j + 1]``, exclusive.
    node, units : (n_cells,) int32.
    """

    first: NDArray[np.int64]
    node: NDArray[np.int32]
    units: NDArray[np.int32]

    @classmethod
    def of(cls, schedule: Mapping[str, NDArray[np.int64]]) -> Allocation:
        """Return the nodes of jobs by the columns of a schedule of the simulator."""
        node, units = (schedule[f"cell_{name}"].astype(np.int32) for name in ("node", "units"))
        return cls(schedule["cell_first"], node, units)

    def take(self, chosen: NDArray[np.bool_]) -> Allocation:
        """Return the cells of the jobs that are chosen, (n_jobs,) bool."""
        return self.rows(np.flatnonzero(chosen))

    def rows(self, places: NDArray[np.int64]) -> Allocation:
        """Return the cells of the jobs at these places, (k,) int64, which may repeat."""
        counts = np.diff(self.first)[places]
        first = np.concatenate([[0], np.cumsum(counts)])
        cells = np.arange(first[-1]) + np.repeat(self.first[places] - first[:-1], counts)
        return Allocation(first, self.node[cells], self.units[cells])


#: How jobs are placed: alone on filled nodes, alone on half of them, on one part of each node.
SHAPES = ("compact", "spread", "part")


class Coschedule(NamedTuple):
    """What is to be said of a schedule in which jobs share nodes; n jobs.

    Attributes
    ----------
    ticks : in a second: the clock is finer, because ends are at no whole second.
    start_ticks, end_ticks : (n,) int64; ``start`` and ``end`` of the schedule are these in seconds.
    promised_ticks : (n,) int64; ``reserved_start`` is this in seconds, -1 if none.
    compact_s : (n,) int64 [s] run times on filled nodes of their own, cut at the requested times.
    shape : (n,) int8, place in :data:`SHAPES`; 2: others may share the job's nodes.
    code : (n,) int64 place of the job's code in ``speedups.codes``.
    parts : how many parts a node has, of which a job that shares it takes one.
    speedups : the true ones.
    pairs : what the scheduler took for them, with all it has learned; None: the true ones.
    """

    ticks: int
    start_ticks: NDArray[np.int64]
    end_ticks: NDArray[np.int64]
    promised_ticks: NDArray[np.int64]
    compact_s: NDArray[np.int64]
    shape: NDArray[np.int8]
    code: NDArray[np.int64]
    parts: int
    speedups: Heatmap
    pairs: Any = None

    def take(self, chosen: NDArray[Any]) -> Coschedule:
        """Return the same of the jobs that are chosen: (n_jobs,) bool, or their places."""
        names = ("start_ticks", "end_ticks", "promised_ticks", "compact_s", "shape", "code")
        return self._replace(**{name: getattr(self, name)[chosen] for name in names})

    @property
    def shares(self) -> NDArray[np.bool_]:
        """Which jobs take one part of their nodes, (n,); others may have the other parts."""
        shares: NDArray[np.bool_] = self.shape == len(SHAPES) - 1
        return shares

    @property
    def names(self) -> tuple[NDArray[np.object_], NDArray[np.object_]]:
        """The shape of each job, of :data:`SHAPES`, and the name of its code; both (n,)."""
        shapes = np.array(SHAPES, dtype=object)[self.shape]
        return shapes, np.array(self.speedups.codes, dtype=object)[self.code]
