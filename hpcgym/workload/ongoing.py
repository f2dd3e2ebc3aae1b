"""The state from which the jobs of an extract are simulated.

Glesser 2016, section 3.2.1, lists the state to set up before an extract of a trace is replayed:
running and queued jobs, the nodes of the running ones, and counters such as those of fair share.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcgym.workload.columns import Ints, read_only

if TYPE_CHECKING:
    from hpcgym.machine.pool import Cluster


class Cells(NamedTuple):
    """Which nodes jobs have: cells, each so many units of a job on a node.

    Attributes
    ----------
    first : (n_jobs + 1,) int64; job j has the cells ``first[j]`` up to ``first[j + 1]``, exclusive.
    node, units : (n_cells,) int64.
    """

    first: Ints
    node: Ints
    units: Ints

    def take(self, rows: Any) -> Cells:
        """Return the cells of the jobs at ``rows``."""
        places = np.arange(len(self.first) - 1)[rows]
        counts = np.diff(self.first)[places]
        first = np.concatenate([[0], np.cumsum(counts)])
        cells = np.arange(first[-1]) + np.repeat(self.first[places] - first[:-1], counts)
        return Cells(first, self.node[cells], self.units[cells])


@dataclass(frozen=True, eq=False)
class Predictions:
    """What a simulation has learned of run times, and what it says of each job.

    Attributes
    ----------
    learned : of the jobs that have ended, as :func:`hpcgym.simulate` takes it.
    ordered_by : (n_jobs,) int64 [s], at which the order of the queue looks.
    expected : (n_jobs,) int64 [s], the predicted ends of jobs that run; -1 of others.
    corrections : (n_jobs,) int64, how often these were corrected.
    seen : (n_jobs, n_features) float64, the features of jobs at their submission; (n_jobs, 0) where
        nothing looks at them.
    """

    learned: Any
    ordered_by: Ints
    expected: Ints
    corrections: Ints
    seen: NDArray[np.float64]

    def __post_init__(self) -> None:
        for name in ("ordered_by", "expected", "corrections", "seen"):
            object.__setattr__(self, name, read_only(getattr(self, name)))

    def take(self, rows: Any) -> Predictions:
        """Return what is said of the jobs at ``rows``."""
        names = ("ordered_by", "expected", "corrections", "seen")
        return replace(self, **{name: getattr(self, name)[rows] for name in names})


@dataclass(frozen=True, eq=False)
class Ongoing:
    """The state of a simulation just before ``begin`` that no trace tells.

    Attributes
    ----------
    rules : of its scheduler, as :meth:`hpcgym.Scheduler.describe` returns them.
    cluster : its machine.
    order : (n_jobs,) int64; running jobs started in the order of these numbers.
    predicted : (n_jobs,) int64 [s] run times predicted at submission; -1 for jobs to come.
    promised : (n_jobs,) int64 [s] first start times promised by a reservation, -1 if none.
    reserved : (n_jobs,) int64 [s] start times that conservative backfilling has reserved for
        waiting jobs; None without any, or if they are to be made anew at the next pass.
    cells : nodes of running jobs, and reserved nodes; None on a pool.
    looks : if passes come by the clock, as in Slurm: when the next pass has something to do, when
        the next pass is at all [s], and whether others follow, as ``Simulation.begin`` of the
        native engine takes it; else None.
    predictions : where run times are learned, else None.
    watched : of a scheduler that was watched from outside: any rules whose passes come by the clock
        go on with ``looks``.
    """

    rules: Mapping[str, Any]
    cluster: Cluster
    order: Ints
    predicted: Ints
    promised: Ints
    reserved: Ints | None = None
    cells: Cells | None = None
    looks: tuple[int, ...] | None = None
    predictions: Predictions | None = None
    watched: bool = False

    def __post_init__(self) -> None:
        for name in ("order", "predicted", "promised", "reserved"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, read_only(getattr(self, name)))
        if self.cells is not None:
            object.__setattr__(self, "cells", Cells(*map(read_only, self.cells)))

    def take(self, rows: Any) -> Ongoing:
        """Return the state of the jobs at ``rows``."""
        return replace(
            self,
            order=self.order[rows],
            predicted=self.predicted[rows],
            promised=self.promised[rows],
            reserved=None if self.reserved is None else self.reserved[rows],
            cells=None if self.cells is None else self.cells.take(rows),
            predictions=None if self.predictions is None else self.predictions.take(rows),
        )
