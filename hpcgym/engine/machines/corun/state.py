"""What the kernel that lets jobs share nodes works on, beside the arrays of every simulation.

All nodes are alike and have so many parts. A job of placement PART has one part of each of its
nodes, others are alone on theirs. ``processors`` and ``sim.free`` count parts; times are in ticks,
much shorter than a second, for jobs that speed each other up end at no whole second.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcgym.engine.machines.corun.files.shared import SharedFiles
from hpcgym.schedule.records import records, whole_numbers

COMPACT, SPREAD, PART = range(3)  # placement of a job
BEST, FILL, FIRST = range(3)  # PARTNERS: the order in which nodes are taken
# what a start must leave alone: nothing; neighbours that are to end by the shadow time; and then
# the head's nodes too
FREELY, BRIEFLY, BESIDE_HEAD = np.arange(3)  # numbers of numpy: see `engine.state.RUNNING`

NOBODY_THERE = -1  # instead of a job

# The scalars of a machine, in one record.
SCALARS = whole_numbers(
    "partners",
    "weighed",  # 1 if the queue is served by weights over what the machine is like at a pass
    "fills",  # 1 if whatever fits behind the head starts, without a reservation
    "selective",  # 1 if a job starts beside good partners only
    "logs_spells",  # 1 if it is noted who ran how fast beside whom
    "n_idle",  # nodes without a job
    "n_open",  # nodes with a job that have a part free
    "version",  # goes up whenever something is taken or given back, or the plan is another
    "stamp",  # goes up for each set of jobs that is marked
    "released",  # how many of the jobs that have ended have given their nodes back
    "slack",  # nodes that count for the head beyond those that it needs
    "n_spells",  # in `spells`
    "n_candidates",  # in `order`
    "delays",  # 1 if a node was left out, since the plan was made, for who would end later beside
    "rest_beside_head",  # parts that jobs may take at most without ending by then
    "beside",  # a running job whose nodes are to be taken first, NOBODY_THERE if there is none
)

# -- what the weights of an order are for ----------------------------------------------------------
FIT, POPULARITY, SHORTNESS = range(3)

TASK = records(
    # of a running job
    ("left", np.float64),  # [ticks] of work at `since`
    ("rate", np.float64),
    ("since", np.int64),
    ("end", np.int64),
    ("predicted_end", np.int64),  # no departure of others makes it later
    ("least", np.float64),  # the rate that it was predicted with
    ("neighbours", np.int64),  # of each of its nodes, added up
    ("stamp", np.int64),
    # of each job
    ("nodes", np.int64),  # how many it needs
    ("placement", np.int64),  # COMPACT, SPREAD or PART; a field `shape` would hide that of arrays
    ("code", np.int64),
    ("first", np.int64),  # of its cells
    ("limit", np.int64),  # the code beside it that limits its rate, -1 if none does
    ("begun", np.int64),  # when it began to do so
)
SPELL = records(
    ("job", np.int64),
    ("beside", np.int64),  # the code that limited its rate; -1: none
    ("begin", np.int64),
    ("end", np.int64),
    ("rate", np.float64),
)


class CorunNodes(NamedTuple):
    """Nodes that jobs share, and how fast the jobs run there. C codes, N nodes, K parts."""

    speedup: NDArray[np.float64]  # (C, C) of a code beside another
    alone: NDArray[np.float64]  # (C,) of a code on parts of its nodes, with nobody beside
    believed: NDArray[np.float64]  # (C, C) what the scheduler takes `speedup` for
    believed_alone: NDArray[np.float64]  # (C,)
    rank: NDArray[np.int64]  # (C, C + 1) place of each code beside a code, C: of an idle node
    good: NDArray[np.int64]  # (C, C) 1 if two codes gain together: what makes a job popular
    partner: NDArray[np.int64]  # (C, C) 1 if a job may start beside another
    weights: NDArray[np.float64]  # (3,) of FIT, POPULARITY, SHORTNESS
    friends: NDArray[np.int64]  # (C,) waiting jobs that a code gains with
    tasks: NDArray[np.void]  # (n_jobs,) TASK
    cells: NDArray[np.int32]  # nodes of jobs
    who: NDArray[np.int64]  # (N, K) jobs on a node, the first of its parts first
    free: NDArray[np.int64]  # (N,) parts
    idle: NDArray[np.uint64]  # a bit for each node: 1 where there is no job
    open: NDArray[np.uint64]  # 1 where there is a job and a part is free
    later: NDArray[np.int64]  # (N,) parts free at the shadow time
    counts: NDArray[np.int64]  # (N,) 1 if the node counts for the head then
    refused: NDArray[np.int64]  # (3, C + 1, 2) least nodes that were refused; at which version
    level: NDArray[np.int64]  # (N,) of nodes that may be taken: less is better
    order: NDArray[np.int64]  # (2, N) these nodes by number, and by level
    bounds: NDArray[np.int64]  # (C + 3,) how many are of each level
    spells: NDArray[np.void]  # SPELL
    greatest: NDArray[np.float64]  # (1,) the highest rate that a job is predicted to keep
    scalars: NDArray[np.void]  # (1,) SCALARS
    io: SharedFiles | None = None  # None: jobs share no file system


def make_corun(
    speedup: NDArray[np.float64],
    alone: NDArray[np.float64],
    tasks: NDArray[np.void],
    n_nodes: int,
    parts: int,
    partners: int,
    pairs_above: float | None,
    weights: NDArray[np.float64],
    fills: bool,
    logs_spells: bool = False,
    io: SharedFiles | None = None,
) -> CorunNodes:
    """Return idle nodes; the scheduler believes in the true speedups.

    Parameters
    ----------
    speedup, alone, weights : as in :class:`CorunNodes`.
    tasks : (n_jobs,) TASK with nodes, placement and code.
    n_nodes, parts : N and K.
    partners : BEST, FILL or FIRST.
    pairs_above : what the mean speedup of good partners is above; None: all are good.
    fills : whether all that fits starts.
    logs_spells : whether spells are kept.
    io : the file system that they share, nobody using it; None: none.
    """
    n_codes = len(speedup)
    tasks["first"] = np.cumsum(tasks["nodes"]) - tasks["nodes"]
    n_cells = int(tasks["nodes"].sum())
    scalars = np.zeros(1, SCALARS)
    own: Any = scalars[0]
    own.partners = partners
    own.weighed = weights.any()
    own.fills = fills
    own.selective = pairs_above is not None
    own.logs_spells, own.n_idle, own.version = logs_spells, n_nodes, 1
    own.beside = NOBODY_THERE
    is_node = np.arange(64 * (n_nodes // 64 + 1)) < n_nodes
    idle = np.packbits(is_node, bitorder="little").view("<u8").astype(np.uint64)
    # a rate changes when a job comes or goes, at most once for each part of a node that is shared
    n_spells = 2 * n_cells * (parts - 1) + len(tasks) if logs_spells else 0
    machine = CorunNodes(
        np.ascontiguousarray(speedup, np.float64),
        np.ascontiguousarray(alone, np.float64),
        np.empty((n_codes, n_codes)),
        np.empty(n_codes),
        np.zeros((n_codes, n_codes + 1), np.int64),
        np.zeros((n_codes, n_codes), np.int64),
        np.ones((n_codes, n_codes), np.int64),
        weights,
        np.zeros(n_codes, np.int64),
        tasks,
        np.empty(n_cells, np.int32),
        np.full((n_nodes, parts), NOBODY_THERE, np.int64),
        np.full(n_nodes, parts, np.int64),
        idle,
        np.zeros_like(idle),
        np.zeros(n_nodes, np.int64),
        np.zeros(n_nodes, np.int64),
        np.zeros((3, n_codes + 1, 2), np.int64),
        np.zeros(n_nodes, np.int64),
        np.empty((2, n_nodes), np.int64),
        np.zeros(n_codes + 3, np.int64),
        np.empty(n_spells, SPELL),
        np.ones(1),
        scalars,
        io,
    )
    believe(machine, speedup, alone, pairs_above, np.zeros(n_codes, np.int64))
    return machine


def believe(
    machine: CorunNodes,
    believed: NDArray[np.float64],
    alone: NDArray[np.float64],
    pairs_above: float | None,
    waiting: NDArray[np.int64],
) -> None:
    """Let the scheduler take these for the speedups, (C, C) and (C,), of jobs that are to start.

    ``waiting`` (C,) are the jobs of each code that wait now.
    """
    machine.believed[:] = believed
    machine.believed_alone[:] = alone
    machine.greatest[0] = alone.max(initial=1.0)
    both = np.column_stack([believed, alone])
    for code, row in enumerate(both):
        # equal speedups have the same place
        machine.rank[code] = len(row) - np.searchsorted(np.sort(row), row, "right")
    mean = (machine.believed + machine.believed.T) / 2
    machine.good[:] = mean > 1
    machine.friends[:] = machine.good @ waiting
    machine.partner[:] = 1 if pairs_above is None else mean > pairs_above
    machine.scalars[0].version += 1
