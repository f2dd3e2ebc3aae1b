"""Where and when jobs ran: nodes, states of nodes, and runs that were lost or in pieces.

Pieces of jobs that were suspended are runs, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcgym._engine import fields_of
from hpcgym.errors import HpcgymError, whole_column
from hpcgym.machine.failures import Failures
from hpcgym.workload.ongoing import Cells

if TYPE_CHECKING:
    from hpcgym.machine.speedups.heatmap import Heatmap


# --- The table of jobs as a simulation takes them -------------------------------------------------

# Read-only, but for `run` of jobs that are killed or cancelled or run at another level, and for
# `submit` where the schedule says when jobs come.
JOBS = np.dtype((np.record, fields_of("Job")))


# --- Where jobs have run: the nodes that they had, and how they shared them -----------------------


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


# --- When nodes are off or being switched ---------------------------------------------------------

#: What a node does in an interval of :class:`NodeStates`; the codes are places in it.
OFF, SWITCHING_OFF, SWITCHING_ON = 0, 1, 2
STATE_NAMES = ("off", "switching_off", "switching_on")

_DTYPES = {"node": np.int64, "state": np.int8, "begin": np.int64, "end": np.int64}


@dataclass(frozen=True, eq=False)
class NodeStates:
    """Intervals in which nodes are off or being switched; at other times they are on. Read-only.

    Attributes
    ----------
    node : (n_intervals,) int64, from 0.
    state : (n_intervals,) int8, places in :data:`STATE_NAMES`.
    begin, end : (n_intervals,) int64 [s]; an interval goes from ``begin`` up to ``end``, exclusive.

    The intervals are kept by node and time, whatever the order in which they are given.

    Raises
    ------
    HpcgymError : arrays of other shapes, or of no whole numbers; a node below 0, a state that is
        none, an interval that ends before it begins, or one that begins within another of its node.
    """

    node: NDArray[np.int64]
    state: NDArray[np.int8]
    begin: NDArray[np.int64]
    end: NDArray[np.int64]

    def __post_init__(self) -> None:
        columns = {
            name: whole_column(f"node states: {name}", getattr(self, name)) for name in _DTYPES
        }
        shapes = {column.shape for column in columns.values()}
        if len(shapes) > 1 or len(shapes.pop()) != 1:
            raise HpcgymError(
                "node states are four arrays of one length, not of "
                + ", ".join(f"{name} {column.shape}" for name, column in columns.items())
            )
        node, state, begin, end = columns.values()
        _check(node < 0, "node {} does not exist", node)
        _check((state < 0) | (state >= len(STATE_NAMES)), "state {} does not exist", state)
        _check(end <= begin, "an interval of node {} from {} s to {} s", node, begin, end)
        order = np.lexsort((begin, node))
        for name, column in columns.items():
            kept = column[order].astype(_DTYPES[name])
            kept.flags.writeable = False
            object.__setattr__(self, name, kept)
        overlaps = (np.diff(self.node) == 0) & (self.begin[1:] < self.end[:-1])
        text = "two intervals of node {} at {} s"
        _check(overlaps, text, self.node[1:], self.begin[1:])

    def __len__(self) -> int:
        return len(self.node)


def _check(wrong: NDArray[np.bool_], text: str, *values: NDArray[Any]) -> None:
    """Raise an HpcgymError about the first case that is wrong."""
    if wrong.any():
        first = int(wrong.argmax())
        raise HpcgymError("node states: " + text.format(*(value[first] for value in values)))


# --- Runs of jobs that a failure of a node, or another job, ended ---------------------------------

Ints = NDArray[np.int64]


class LostRuns(NamedTuple):
    """What failures of nodes, or preemption, have done to a schedule; k runs, by job and time.

    Attributes
    ----------
    failures : of which the schedule was told; none under preemption.
    job : (k,) int64.
    start, end : (k,) int64 [s]; the run was lost, or suspended, at ``end``.
    first : (k + 1,) int64; run i had the cells ``first[i]`` up to ``first[i + 1]``, exclusive; it
        had none on a pool.
    node, units : (m,) int32, of each cell.
    """

    failures: Failures
    job: Ints
    start: Ints
    end: Ints
    first: Ints
    node: NDArray[np.int32]
    units: NDArray[np.int32]

    def rows(self, places: Ints) -> LostRuns:
        """Return the runs at these places, in their order."""
        held = Allocation(self.first, self.node, self.units).rows(places)
        return LostRuns(
            self.failures, self.job[places], self.start[places], self.end[places], *held
        )


def lost_runs(failures: Failures, schedule: Mapping[str, Ints]) -> LostRuns:
    """Return the runs that a ``schedule`` of the engine has lost, by job and time."""
    job, start, end = (schedule[f"lost_{name}"] for name in ("job", "start", "end"))
    none = np.zeros(0, np.int32)  # a pool has no nodes
    node, units = (
        schedule.get(f"lost_{name}", none).astype(np.int32) for name in ("node", "units")
    )
    first = schedule.get("lost_first", np.zeros(len(job) + 1, np.int64))
    return LostRuns(failures, job, start, end, first, node, units).rows(np.lexsort((end, job)))


def pieces_of(lost: LostRuns) -> LostRuns:
    """Return pieces of runs as they were, of what the engine logs.

    It moves the start of a job that goes on by the time for which it was suspended: up to the end
    of each piece, the job has run since that start.
    """
    ran = lost.end - lost.start
    return lost._replace(start=lost.end - (ran - of_the_run_before(lost, ran, 0)))


def of_the_run_before(lost: LostRuns, values: Ints, first: Ints | int) -> Ints:
    """Return the value of the run before each of the same job, (k,); ``first`` of first runs."""
    again = np.append(False, lost.job[1:] == lost.job[:-1])[: len(lost.job)]
    return np.where(again, np.roll(values, 1), first)


def of_jobs(lost: LostRuns | None, order: Ints) -> LostRuns | None:
    """Return the runs of jobs that stand in another order now, (n_jobs,) their rows before."""
    if lost is None:
        return None
    rows = np.empty_like(order)
    rows[order] = np.arange(len(order))
    moved = lost._replace(job=rows[lost.job])
    return moved.rows(np.argsort(moved.job, kind="stable"))


def of_some(lost: LostRuns | None, kept: NDArray[np.bool_]) -> LostRuns | None:
    """Return the runs of the jobs that are kept, (n_jobs,), by their rows among these."""
    if lost is None:
        return None
    left = of_those(lost, kept[lost.job])
    return left._replace(job=(np.cumsum(kept) - 1)[left.job])


def of_those(lost: LostRuns, kept: NDArray[np.bool_]) -> LostRuns:
    """Return the runs that are kept, (k,)."""
    return lost.rows(np.flatnonzero(kept))


def down(failures: Failures) -> NodeStates | None:
    """Return when nodes are down, as the books know it: then they are off. None if never."""
    if not len(failures):
        return None
    state = np.full(len(failures), OFF)
    return NodeStates(failures.node, state, failures.time, failures.repaired)


def cells_held(cells: Allocation, held: NDArray[np.bool_]) -> Cells:
    """Return the nodes of the jobs that hold some, (n_jobs,) bool."""
    first, node, units = (np.asarray(column, np.int64) for column in cells)
    counts = np.diff(first)
    chosen = np.repeat(held, counts)
    first = np.concatenate([[0], np.cumsum(np.where(held, counts, 0))])
    return Cells(first, node[chosen], units[chosen])
