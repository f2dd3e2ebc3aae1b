"""Nodes of many simulations, a row for each; what they share stands once."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcgym.compilation import jit, jit_entry, jit_inline, jit_part
from hpcgym.engine.answers.told import BY_CLOCK
from hpcgym.engine.machines.nodes import easy as node_easy
from hpcgym.engine.machines.nodes import planned as node_planned
from hpcgym.engine.machines.nodes.filling import weigh_all
from hpcgym.engine.machines.nodes.placement import (
    Nodes,
    copy_room,
    fits,
    make_nodes,
    note_open,
)
from hpcgym.engine.passes.preempting import PREEMPTING
from hpcgym.engine.passes.preempting_rows import preempting_of
from hpcgym.engine.passes.restricted import RESTRICTED
from hpcgym.engine.passes.restricted_rows import jobs_of, own_keys_of, restricted_of
from hpcgym.engine.rows import Rows, Shared, empty_rows, keys_of, loop_on_rows, names_of
from hpcgym.engine.state import ALL_PASSES


class Rooms(NamedTuple):
    """Rows of :class:`~hpcgym.engine.machines.nodes.placement.Nodes`, with the same names there.

    ``begin`` is ``scalars`` before the first job.
    """

    needs: Shared  # (n_rows, 1 + R)
    kind: Shared  # (n_rows,)
    capacity: Shared
    total: Shared
    asks: Shared  # (n_rows, R) or (0, R)
    begin: Shared  # (1,)
    free: Rows
    open: Rows
    later: Rows
    cells: Rows
    held: Rows
    order: Rows
    left: Rows
    stale: Rows
    known: Rows
    asked: Rows
    worth: Rows
    plan: Rows
    ahead: Rows
    periods: Rows
    sets: Rows
    scalars: Rows


def make_rooms(
    needs: NDArray[np.int64],
    capacity: NDArray[np.int64],
    allocation: int,
    seed: int,
    number: int,
    longest: int,
    asks: NDArray[np.int64] | None = None,
    plans: bool = False,
    holders: int = 0,
    looks: bool = False,
) -> Rooms:
    """Return the nodes of that many simulations of up to ``longest`` jobs of a table.

    ``needs``, ``capacity``, ``allocation``, ``seed``, ``asks`` and ``plans`` as :func:`make_nodes`
    takes them. So many as ``holders`` at the end of the table hold nodes in windows, in all
    simulations. ``looks``: Slurm's looks reserve whole nodes.
    """
    most = np.minimum(needs[:, 0], len(capacity))
    jobs = len(most) - holders
    total = np.concatenate([[0], np.cumsum(most[:jobs])])
    ahead = np.minimum(np.arange(jobs) + longest, jobs)
    n_cells = int((total[ahead] - total[:-1]).max(initial=0) + most[jobs:].sum())
    longest += holders
    takers = longest if looks else 0  # those who hold nodes in windows are among them
    one = make_nodes(needs, capacity, allocation, seed, plans, asks, takers)
    rows = empty_rows(one, number, names_of(Rows, Rooms))
    rows["cells"] = np.zeros((number, n_cells), one.cells.dtype)
    rows["held"] = np.zeros((number, longest), one.held.dtype)
    rows["plan"] = np.zeros((number, min(2 * longest, len(one.plan))), one.plan.dtype)
    # of the last rows, which jobs give back, as many as may run at a time
    n_sets = len(one.sets) - len(needs) + longest if looks else 0
    rows["sets"] = np.zeros((number, n_sets, one.sets.shape[1]), one.sets.dtype)
    shared = one.needs, one.kind, one.capacity, one.total, one.asks
    return Rooms(*shared, one.scalars.copy(), **rows)


def row_of(rooms: Rooms, e: int, start: int, stop: int) -> Nodes:
    """Return the nodes of simulation ``e``, for the jobs in these rows of the table."""
    changing = {name: getattr(rooms, name)[e] for name in names_of(Rows, Rooms)}
    needs, kind = rooms.needs[start:stop], rooms.kind[start:stop]
    changing["held"] = changing["held"][: stop - start]
    asks = rooms.asks[start:stop]
    return Nodes(needs, kind, rooms.capacity, rooms.total, asks, **changing)


@jit_part
def nodes_of(rooms, e, start, stop):
    """Return the same in compiled code."""
    return Nodes(
        rooms.needs[start:stop], rooms.kind[start:stop], rooms.capacity, rooms.total,
        rooms.asks[start:stop],
        rooms.free[e], rooms.open[e], rooms.later[e], rooms.cells[e], rooms.held[e], rooms.order[e],
        rooms.left[e], rooms.stale[e], rooms.known[e], rooms.asked[e], rooms.worth[e],
        rooms.plan[e], rooms.ahead[e], rooms.periods[e], rooms.sets[e], rooms.scalars[e],
    )  # fmt: skip


@jit_entry
def empty_nodes(rooms, e, start, stop):
    """Let the nodes of simulation ``e`` be empty, before the jobs in these rows of the table."""
    nodes = nodes_of(rooms, e, start, stop)
    rooms.scalars[e, 0] = rooms.begin[0]
    nodes.scalars[0].n_stale = 0
    for r in range(len(nodes.asked)):
        nodes.asked[r] = 0
    copy_room(nodes.free, nodes.capacity)
    for node in range(len(nodes.free)):
        nodes.order[node] = node
        nodes.stale[1, node] = 0
    for kind in range(len(nodes.known)):
        nodes.known[kind].version = nodes.known[kind].guarded_version = nodes.scalars[0].version - 1
    first = 0
    for job in range(stop - start):
        nodes.held[job].first = first
        nodes.held[job].count = 0
        first += min(nodes.needs[job, 0], len(nodes.free))
    note_open(nodes)
    weigh_all(nodes, nodes.free)


@jit
def copy_nodes(rooms, source, e, start, stop, number):
    """Let the nodes of simulation ``e`` be as those of ``source``, of which ``number`` jobs count.

    They are of the same jobs, and nobody has looked yet for what fits.
    """
    empty_nodes(rooms, e, start, stop)
    nodes, others = nodes_of(rooms, e, start, stop), nodes_of(rooms, source, start, stop)
    copy_room(nodes.free, others.free)
    nodes.scalars[0] = others.scalars[0]
    for r in range(len(nodes.asked)):
        nodes.asked[r] = others.asked[r]
    for node in range(len(nodes.free)):
        nodes.order[node], nodes.left[node] = others.order[node], others.left[node]
        nodes.stale[0, node], nodes.stale[1, node] = others.stale[0, node], others.stale[1, node]
    for kind in range(len(nodes.known)):
        nodes.known[kind].version = nodes.known[kind].guarded_version = nodes.scalars[0].version - 1
    for job in range(number):
        first, count = others.held[job].first, others.held[job].count
        nodes.held[job].count = count
        for cell in range(first, first + count):
            nodes.cells[cell] = others.cells[cell]
    note_open(nodes)


_run_row = loop_on_rows(node_easy.run, BY_CLOCK)
_run_restricted = loop_on_rows(node_planned.run_restricted, RESTRICTED)
_run_preempting = loop_on_rows(node_planned.run_preempting, PREEMPTING)


@jit_inline
def run_on_nodes(table, start, n, rows, rooms, e, learns, fair, stop_time):
    """Simulate ``n`` jobs of a table in row ``e``.

    As :func:`hpcgym.engine.machines.pool.rows.run_on_pool` does on a pool.
    """
    nodes = nodes_of(rooms, e, start, start + n)
    jobs, keys, most = table.jobs[start : start + n], keys_of(table, start, n), np.int64(ALL_PASSES)
    return _run_row(jobs, keys, table, start, rows, e, nodes, learns, fair, stop_time, most)


@jit
def close_nodes(rooms, kept, e, s, first, n):
    """Let those hold the nodes of windows who do, beside the ``n`` jobs from row ``first`` on."""
    closings = kept.closed_first.shape[1] - 1
    nodes = nodes_of(rooms, e, first, first + n)
    cell = nodes.held[n - 1].first + min(nodes.needs[n - 1, 0], len(nodes.free))
    for k in range(closings):
        holder = kept.taken[s, k]
        nodes.held[holder].first = cell
        for i in range(kept.closed_first[s, k], kept.closed_first[s, k + 1]):
            nodes.cells[cell].node = kept.closed[s, i]
            nodes.cells[cell].units = 1
            cell += 1
        nodes.held[holder].count = cell - nodes.held[holder].first


@jit_inline
def run_restricted_on_nodes(
    table, start, n, rows, rooms, first, stop, kept, stops, s, e, learns, fair, stop_time
):  # fmt: skip
    """Simulate ``n`` jobs of a table, of slice ``s``, in row ``e`` with what restricts them.

    ``first``, ``stop``: where the jobs begin in ``rooms``, and the row behind those who hold nodes
    in windows. Else as :func:`hpcgym.engine.machines.pool.rows.run_restricted_on_pool` does.
    """
    jobs, keys = jobs_of(kept, e, table, start, n), own_keys_of(kept, e, table, start, n)
    nodes = nodes_of(rooms, e, first, stop)
    machine, most = restricted_of(kept, nodes, e, s, start, n), np.int64(ALL_PASSES)
    if stops is None:
        _run_restricted(jobs, keys, table, start, rows, e, machine, learns, fair, stop_time, most)
    if stops is not None:
        _run_preempting(
            jobs, keys, table, start, rows, e, preempting_of(stops, machine, e, start, n), None,
            fair, stop_time, most,
        )  # fmt: skip


@jit
def fits_now(nodes, job, processors, free):
    """Return whether a job fits: on a pool, where ``nodes`` is None, if so many are free."""
    if nodes is None:
        return processors <= free
    return processors <= free and fits(nodes, job)
