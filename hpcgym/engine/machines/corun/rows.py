"""Nodes that jobs share of many simulations, a row for each, for environments.

What simulations have in common stands once. How much is drawn is counted from pass to pass, for
between two of them no job comes or goes.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcgym.compilation import jit, jit_inline, jit_part
from hpcgym.engine.answers.told import Told
from hpcgym.engine.machines.corun import easy
from hpcgym.engine.machines.corun.files.rows import begin_files, files_of_row
from hpcgym.engine.machines.corun.nodes import nodes_with_room
from hpcgym.engine.machines.corun.state import NOBODY_THERE, PART, TASK, CorunNodes
from hpcgym.engine.ordered import BLOCK, block_at
from hpcgym.engine.rows import Rows, Shared, empty_rows, keys_of, loop_on_rows, names_of
from hpcgym.engine.state import FOREVER, RUNNING, STARTED_AS

# -- slots of `books` ------------------------------------------------------------------------------
(
    BUSY_PROCESSORS,  # of the jobs that run
    N_ENDED,  # jobs whose processors have been given back
    N_COUNTED,  # jobs whose slowdowns have been counted
    N_BESIDE,  # running jobs that have a part free beside them, listed or not
) = range(4)
N_BOOKS = 4


class CorunRows(NamedTuple):
    """Rows of :class:`~hpcgym.engine.machines.corun.state.CorunNodes`, with the same names there.

    ``usual``, ``all_idle`` and ``begin`` are ``tasks``, ``idle`` and ``scalars`` before the first
    job.
    """

    speedup: Shared
    alone: Shared
    believed: Shared
    believed_alone: Shared
    rank: Shared
    good: Shared
    partner: Shared
    weights: Shared
    greatest: Shared
    mean: Shared  # (C,) believed speedup of a code, over all neighbours
    usual: Shared  # (n_rows,) TASK
    wanted: Shared  # (n_rows,) processors
    cores: Shared  # (3,) that a job of each placement has of a node at most
    all_idle: Shared
    begin: Shared  # (1,)
    friends: Rows
    tasks: Rows
    cells: Rows
    who: Rows
    free: Rows
    idle: Rows
    open: Rows
    later: Rows
    counts: Rows
    refused: Rows
    level: Rows
    order: Rows
    bounds: Rows
    spells: Rows
    scalars: Rows
    neighbours: Rows  # (n, M) running jobs to be started beside, in order of start
    books: Rows  # (n, N_BOOKS)
    joules: Rows  # (n, 1) drawn by what runs, and not taken account of yet
    io: Any = None  # the FileRows of a file system that jobs share, None without one


def make_rows(
    one: CorunNodes,
    tasks: NDArray[np.void],
    wanted: NDArray[np.int64],
    cores: NDArray[np.int64],
    number: int,
    longest: int,
    neighbours: int,
    io: Any = None,
) -> CorunRows:
    """Return the nodes of that many simulations of up to ``longest`` jobs of a table.

    Parameters
    ----------
    one : the nodes of one simulation without jobs.
    tasks : (n_rows,) TASK of all jobs of the table: nodes, placement and code.
    wanted : (n_rows,) processors that they ask for.
    cores : as in :class:`CorunRows`.
    neighbours : M, how many running jobs are listed.
    io : as in :class:`CorunRows`.
    """
    n = len(tasks)
    total = np.concatenate([[0], np.cumsum(tasks["nodes"])])
    n_cells = int((total[np.minimum(np.arange(n) + longest, n)] - total[:-1]).max(initial=0))
    rows = empty_rows(one, number, names_of(Rows, CorunRows, CorunNodes))
    rows["tasks"] = np.zeros((number, longest), TASK)
    rows["cells"] = np.zeros((number, n_cells), np.int32)
    return CorunRows(
        **{name: getattr(one, name) for name in names_of(Shared, CorunRows, CorunNodes)},
        mean=one.believed.mean(axis=1),
        usual=tasks,
        wanted=np.array(wanted, np.int64),
        cores=cores,
        all_idle=one.idle.copy(),
        begin=one.scalars.copy(),
        neighbours=np.zeros((number, neighbours), np.int64),
        books=np.zeros((number, N_BOOKS), np.int64),
        joules=np.zeros((number, 1)),
        io=io,
        **rows,
    )


def row_of(rows: CorunRows, e: int, n: int) -> CorunNodes:
    """Return the nodes of simulation ``e``, whose episode has ``n`` jobs; not its file system."""
    names = names_of(Rows, CorunRows, CorunNodes)
    changing = {name: getattr(rows, name)[e] for name in names}
    changing["tasks"] = changing["tasks"][:n]
    changing["cells"] = changing["cells"][: int(changing["tasks"]["nodes"].sum())]
    alike = {name: getattr(rows, name) for name in names_of(Shared, CorunRows, CorunNodes)}
    return CorunNodes(**alike, **changing)


@jit_inline
def corun_of(rows, e, n):
    """Return the same in compiled code."""
    return CorunNodes(
        rows.speedup, rows.alone, rows.believed, rows.believed_alone, rows.rank, rows.good,
        rows.partner, rows.weights, rows.friends[e], rows.tasks[e, :n], rows.cells[e], rows.who[e],
        rows.free[e], rows.idle[e], rows.open[e], rows.later[e], rows.counts[e], rows.refused[e],
        rows.level[e], rows.order[e], rows.bounds[e], rows.spells[e], rows.greatest,
        rows.scalars[e], files_of_row(rows.io, e, n),
    )  # fmt: skip


@jit
def begin_corun(rows, e, start, n):
    """Let the nodes of simulation ``e`` be idle, before ``n`` jobs from this row of the table."""
    machine, first = corun_of(rows, e, n), 0
    for job in range(n):
        task = machine.tasks[job]
        task.nodes = rows.usual[start + job].nodes
        task.placement = rows.usual[start + job].placement
        task.code = rows.usual[start + job].code
        task.first = first
        task.neighbours = task.stamp = task.end = task.predicted_end = 0
        task.left = task.rate = 0.0
        first += task.nodes
    for code in range(len(machine.friends)):
        machine.friends[code] = 0
    for node in range(len(machine.free)):
        machine.free[node] = machine.who.shape[1]
        for k in range(machine.who.shape[1]):
            machine.who[node, k] = NOBODY_THERE
    for word in range(len(machine.idle)):
        machine.idle[word] = rows.all_idle[word]
        machine.open[word] = 0
    for guard in range(machine.refused.shape[0]):
        for row in range(machine.refused.shape[1]):
            machine.refused[guard, row, 0] = machine.refused[guard, row, 1] = 0
    rows.scalars[e, 0] = rows.begin[0]
    for k in range(rows.books.shape[1]):
        rows.books[e, k] = 0
    rows.joules[e, 0] = 0.0
    begin_files(rows.io, e, start, n)


_run_row = loop_on_rows(easy.run, Told(easy.usage_beside))


@jit
def run_on_shared_nodes(table, start, n, batch, rows, e, watts, ticks, job, beside):
    """Start a job, none if it is below 0, and go on to the next question or to the end.

    Parameters
    ----------
    start, n : the jobs of the episode are those from this row of the table.
    watts : (2,) or more, of a busy processor and of an idle one [W].
    ticks : in a second.
    beside : a running job whose nodes are to be taken first, or NOBODY_THERE.
    """
    machine, sim = corun_of(rows, e, n), batch.sim[e]
    jobs, ended = table.jobs[start : start + n], batch.ended[e]
    sim.selected = job
    machine.scalars[0].beside = beside
    passes = 1
    while passes > 0:
        before = sim.time
        more = drawn_more(table, rows, e, start, machine, watts)
        passes = _run_row(
            jobs, keys_of(table, start, n), table, start, batch, e, machine, None, None,
            np.int64(FOREVER), np.int64(1),
        )  # fmt: skip
        rows.joules[e, 0] += (sim.time - before) / ticks * more
        machine.scalars[0].beside = NOBODY_THERE
        if job >= 0:
            # the pass that had asked has started it
            rows.books[e, BUSY_PROCESSORS] += rows.wanted[start + job]
            job = -1
        while rows.books[e, N_ENDED] < sim.ended:
            gone = ended[rows.books[e, N_ENDED]]
            rows.books[e, BUSY_PROCESSORS] -= rows.wanted[start + gone]
            rows.books[e, N_ENDED] += 1


@jit
def drawn_more(table, rows, e, start, machine, watts):
    """Return what the machine draws now beyond what it draws idle [W]."""
    if len(table.node_watts) == 0:
        return rows.books[e, BUSY_PROCESSORS] * (watts[0] - watts[1])
    total = 0.0
    for node in range(len(machine.free)):
        for k in range(machine.who.shape[1]):
            job = machine.who[node, k]
            if job == NOBODY_THERE:
                break
            if table.node_watts[node, 1] == 0:
                total += cores_on(rows, start, machine, job, node) * table.node_watts[node, 0]
            elif k == 0:
                total += table.node_watts[node, 0]
    return total


@jit_part
def cores_on(rows, start, machine, job, node):
    """Return how many cores a job has of one of its nodes: the last has what is left over."""
    task, each = machine.tasks[job], rows.cores[machine.tasks[job].placement]
    if machine.cells[task.first + task.nodes - 1] != node:
        return each
    return rows.wanted[start + job] - (task.nodes - 1) * each


# --- Who may be started, and beside whom ----------------------------------------------------------


@jit_part
def finds_room(machine, job):
    """Return whether a waiting job finds enough nodes."""
    return nodes_with_room(machine, job) >= machine.tasks[job].nodes


@jit
def room_beside(machine, job):
    """Return how many nodes of a running job have a part free."""
    task, found = machine.tasks[job], 0
    if task.placement == PART:
        for i in range(task.first, task.first + task.nodes):
            if machine.free[machine.cells[i]] > 0:
                found += 1
    return found


@jit
def list_neighbours(machine, progress, blocks, entries, listed):
    """List the running jobs that have a part free beside them, in order of start.

    Return how many there are, also those for which the list is too short.
    """
    total = found = 0
    for k in range(blocks[RUNNING].in_use):
        block = block_at(blocks, RUNNING, k)
        for i in range(block * BLOCK, block * BLOCK + blocks[block].count):
            job = entries[i].job
            if room_beside(machine, job) == 0:
                continue
            total += 1
            place, began = found, progress[job].marks // STARTED_AS
            while place > 0 and progress[listed[place - 1]].marks // STARTED_AS > began:
                place -= 1
            for later in range(min(found, len(listed) - 1), place, -1):
                listed[later] = listed[later - 1]
            if place < len(listed):
                listed[place] = job
                found = min(found + 1, len(listed))
    return total
