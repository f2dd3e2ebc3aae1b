"""Nodes with several resources: what fits, where it goes, and what is given back.

A job asks for units, each of the same demand; a unit lies on one node, and a node holds as many
units as its scarcest resource allows. Resource 0 is cores: each unit needs one, and the event loop
counts them as processors, so that ``sim.free`` is all free cores, wherever they are.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcgym.cluster.pool import ANY_NUMBER
from hpcgym.compilation import jit, jit_entry, jit_part
from hpcgym.engine.machines.nodes.filling import (
    arrange,
    goes_by_demand,
    held_by,
    is_by_room,
    note_waiting,
    weigh,
    weigh_all,
)
from hpcgym.engine.passes.node_bits import add, next_open
from hpcgym.engine.state import FOREVER
from hpcgym.schedule.records import records, whole_numbers
from hpcgym.scheduler.allocations import BY_DEMAND, FIRST_FIT, random_state

# The scalars of a machine, in one record.
SCALARS = whole_numbers(
    "allocation",  # the order in which nodes are looked at
    "random_state",
    "version",  # goes up whenever something is taken or given back
    "guarded",  # the head: the job for which `later` is kept, see hpcgym.engine.machines.nodes.easy
    "slack",  # units that `later` holds beyond those of the head
    "shadows",  # goes up whenever `later` is made anew
    "placed",  # units of the job that was last tried
    "n_stale",  # nodes whose place in `order` may be wrong; 1 where BALANCED has to order all
    "started_before_head",  # 1 if one has since the queue was last looked through
    "released",  # how many of the jobs that have ended have given their nodes back
    "overdrawn",  # 1 once a node may have less than nothing free, now or in the plan
    "gained_until",  # [s] see hpcgym.engine.machines.nodes.conservative
    "left_until",
    "n_events",  # in the plan, see hpcgym.engine.machines.nodes.conservative
    "n_periods",  # in the table, see hpcgym.engine.machines.nodes.table
    "lists_leaving",  # 1 if what jobs give back is written in `sets` as it is in the plan
    "first_kind",  # rows of `sets`
    "first_leaving",
)

ANY_UNITS = 2**40  # more than are asked for of any node: it is to say how many it holds

CELLS = records(("node", np.int32), ("units", np.int32))  # units of a job on a node
HELD = records(("first", np.int64), ("count", np.int64))  # where the cells of a job stand
# how many units of a kind fitted when, and how many beside the head
KNOWN = records(
    ("version", np.int64),
    ("units", np.int64),
    ("guarded_version", np.int64),
    ("guarded_units", np.int64),
    ("listed", np.int64),  # 1 once its row of `sets` is written
)
# what a job will take (sign -1) at the start of its reservation, and give back (1) at the end; only
# what running jobs give back where Slurm's looks reserve
PLAN = records(("time", np.int64), ("job", np.int64), ("sign", np.int64))
# when a period of the table begins [s], and its first row of `sets`
PERIODS = records(("begin", np.int64), ("row", np.int64))
LAYERS = RESERVATIONS, WINDOWS = 0, 1  # of the table: who shuts nodes
# sets of nodes: open while a job would run; open in the period behind that, too; those of the open
# ones that hold a unit of the job when empty; where `later` is written; reserved, and no job is
# there; of no lasting use
SETS = OPEN, SEEN, FOR_JOB, WRITTEN, IDLE, SCRATCH = tuple(range(6))


class Nodes(NamedTuple):
    """The nodes of a machine, and what the jobs of a workload ask of them and have.

    The first five do not change. N nodes, R resources.
    """

    needs: NDArray[np.int64]  # (n_jobs, 1 + R) units, and what each of them takes
    kind: NDArray[np.int64]  # (n_jobs,) jobs of one kind have units of the same demand
    capacity: NDArray[np.int64]  # (N, R)
    total: NDArray[np.float64]  # (R,) of the machine; 0 of what nodes have any number of
    # (n_jobs, R) what all units of a job ask for times its requested time and a second; (0, R)
    # unless the allocation goes by that
    asks: NDArray[np.int64]
    free: NDArray[np.int64]  # (N, R)
    open: NDArray[np.uint64]  # a bit for each node: 1 where a core is free
    later: NDArray[np.int64]  # (N, R) free at the shadow time, or throughout a window of the plan
    cells: NDArray[np.void]  # CELLS; each job has its place
    held: NDArray[np.void]  # (n_jobs,) HELD
    order: NDArray[np.int64]  # (N,) nodes in the order in which they are filled
    left: NDArray[np.float64]  # (N,) what is free on a node: the sum of its shares of all there is
    stale: NDArray[np.int64]  # (2, N) nodes that have changed since they were ordered; 1 if one has
    known: NDArray[np.void]  # (n_kinds,) KNOWN
    asked: NDArray[np.int64]  # (R,) the sum of `asks` over the jobs that wait
    worth: NDArray[np.float64]  # (R,) of a resource, to the job that was last tried
    # unless several queued jobs may have reservations these three are empty
    plan: NDArray[np.void]  # PLAN by time
    ahead: NDArray[np.int64]  # (4, N, R) free at times to come
    # what Slurm's looks reserve, else empty; see hpcgym.engine.machines.nodes.table
    periods: NDArray[np.void]  # (P,) PERIODS by time
    # with a bit for each node in W words: SETS; for each period of the table which nodes LAYERS
    # leave open; for each kind of jobs which nodes hold a unit when empty; for each that runs, in
    # the order of the plan, which it gives back
    sets: NDArray[np.uint64]  # (len(SETS) + len(LAYERS) * P + n_kinds + n_jobs, W)
    scalars: NDArray[np.void]  # (1,) SCALARS

    def set_free(self, free: NDArray[np.int64]) -> None:
        """Let so much be free, (N, R)."""
        self.free[:] = free
        note_open(self)
        self.scalars[0].version += 1
        weigh_all(self, self.free)


def make_nodes(
    needs: NDArray[np.int64],
    capacity: NDArray[np.int64],
    allocation: int,
    seed: int = 0,
    plans: bool = False,
    asks: NDArray[np.int64] | None = None,
    takers: int = 0,
) -> Nodes:
    """Return empty nodes.

    Parameters
    ----------
    needs : (n_jobs, 1 + R) units of each job, and what each unit takes; at least one core.
    capacity : (N, R) what each node has.
    allocation : one of :mod:`hpcgym.scheduler.allocations`.
    seed : of RANDOM.
    plans : whether several queued jobs may have reservations.
    asks : (n_jobs, R) of :func:`hpcgym.scheduler.allocations.asks_of`; None where the allocation
        does not go by that.
    takers : how many reservations of whole nodes, and windows, there may be at a time; 0 unless
        Slurm's looks make them.
    """
    n_nodes, n_jobs = len(capacity), len(needs)
    if allocation not in BY_DEMAND or asks is None:
        asks = np.empty((0, capacity.shape[1]), np.int64)
    kind = kinds_of(needs)
    held = np.zeros(n_jobs, HELD)
    most = np.minimum(needs[:, 0], n_nodes)
    held["first"] = np.cumsum(most) - most
    known = np.zeros(int(kind.max(initial=-1)) + 1, KNOWN)
    scalars = np.zeros(1, SCALARS)
    own: Any = scalars[0]
    own.allocation, own.version, own.guarded = allocation, 1, -1
    own.gained_until = FOREVER  # no reservation has been tried
    own.random_state = random_state(seed)
    total = np.maximum(capacity.sum(axis=0), 1).astype(np.float64)
    total[capacity.max(axis=0, initial=0) >= ANY_NUMBER] = 0.0
    words, periods = n_nodes // 64 + 1, 2 * takers + 1 if takers else 0
    own.first_kind = len(SETS) + len(LAYERS) * periods
    own.first_leaving = own.first_kind + len(known)
    nodes = Nodes(
        np.ascontiguousarray(needs, np.int64),
        kind,
        np.ascontiguousarray(capacity, np.int64),
        total,
        np.ascontiguousarray(asks, np.int64),
        np.array(capacity, np.int64, order="C"),
        np.zeros(words, np.uint64),
        np.empty(capacity.shape, np.int64),
        np.empty(int(most.sum()), CELLS),
        held,
        np.arange(n_nodes),
        np.zeros(n_nodes),
        np.zeros((2, n_nodes), np.int64),
        known,
        np.zeros(len(total), np.int64),
        np.zeros(len(total)),
        np.empty(2 * n_jobs if plans else 0, PLAN),
        np.empty((4 if plans else 0, *capacity.shape), np.int64),
        np.empty(periods, PERIODS),
        np.zeros((own.first_leaving + n_jobs if takers else 0, words), np.uint64),
        scalars,
    )
    note_open(nodes)
    weigh_all(nodes, nodes.free)
    return nodes


def kinds_of(needs: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return a number for each job, the same where the demand of a unit is, (n_jobs,) int64."""
    kind = np.zeros(len(needs), np.int64)
    for column in needs[:, 1:].T:
        if len(column) and (column != column[0]).any():
            values = np.unique(column)
            kind = kind * len(values) + np.searchsorted(values, column)
            _, kind = np.unique(kind, return_inverse=True)
    return kind.astype(np.int64).reshape(-1)


@jit_part
def fits(nodes, job):
    """Return whether all units of a job find room now."""
    kind, units = nodes.kind[job], nodes.needs[job, 0]
    if nodes.known[kind].version == nodes.scalars[0].version:
        return nodes.known[kind].units >= units
    found = 0
    node = next_open(nodes.open, 0)
    while node < len(nodes.free) and found < units:
        found += held_by(nodes.free, node, nodes.needs, job, units - found)
        node = next_open(nodes.open, node + 1)
    if found < units:  # all nodes have been counted
        nodes.known[kind].version = nodes.scalars[0].version
        nodes.known[kind].units = found
    return found >= units


@jit_entry
def note_open(nodes):
    """Note which nodes have a free core."""
    for place in range(len(nodes.open)):
        nodes.open[place] = 0
    for node in range(len(nodes.free)):
        if nodes.free[node, 0] > 0:
            add(nodes.open, node)


@jit
def count_held(room, needs, job):
    """Return how many units of a job there is ``room`` (N, R) for."""
    most = needs[job, 0] + ANY_UNITS
    found = 0
    for node in range(len(room)):
        if room[node, 0] > 0:
            found += held_by(room, node, needs, job, most)
    return found


@jit
def find_nodes(nodes, job, guarded):
    """Choose free nodes for a job, and write its cells; return whether all its units have one.

    ``guarded``: beside the head, which is to fit into ``nodes.later``. Nothing is taken yet.
    """
    known, version = (
        nodes.known[nodes.kind[job]],
        nodes.scalars[0].version + nodes.scalars[0].shadows,
    )
    if not guarded or goes_by_demand(nodes):
        return place(nodes, nodes.free, job, True, guarded)
    # for all jobs of a kind the same nodes would be filled, up to the last of their units; in a
    # random order others might be: there a job is refused as the one before it was, without a draw
    if known.guarded_version == version and known.guarded_units < nodes.needs[job, 0]:
        return False
    placed = place(nodes, nodes.free, job, True, guarded)
    if not placed:
        known.guarded_version = version
        known.guarded_units = nodes.scalars[0].placed
    return placed


@jit
def place(nodes, room, job, now, guarded):
    """Choose nodes with ``room`` (N, R) for a job: what is free ``now``, or at another time."""
    arrange(nodes, room, job)
    by_number = nodes.scalars[0].allocation == FIRST_FIT
    missing, slack = nodes.needs[job, 0], nodes.scalars[0].slack
    cell = nodes.held[job].first
    i = next_open(nodes.open, 0) if now and by_number else 0
    while i < len(room):
        node = i if by_number else nodes.order[i]
        i = next_open(nodes.open, i + 1) if now and by_number else i + 1
        if room[node, 0] <= 0:
            continue
        units = held_by(room, node, nodes.needs, job, missing)
        if guarded and units > 0:
            units, slack = spared(nodes, node, job, units, slack)
        if units > 0:
            nodes.cells[cell].node = node
            nodes.cells[cell].units = units
            cell += 1
            missing -= units
            if missing == 0:
                break
    nodes.held[job].count = cell - nodes.held[job].first
    nodes.scalars[0].placed = nodes.needs[job, 0] - missing
    if missing > 0:
        nodes.held[job].count = 0
        return False
    if guarded:
        nodes.scalars[0].slack = slack
    return True


@jit
def spared(nodes, node, job, units, slack):
    """Return how many of the units of a job the head can spare a node for; the slack then left."""
    head, needs, later = nodes.scalars[0].guarded, nodes.needs, nodes.later
    most = needs[head, 0] + ANY_UNITS
    before = held_by(later, node, needs, head, most)
    while units > 0:
        after = before
        for r in range(later.shape[1]):
            need, left = needs[head, r + 1], later[node, r] - units * needs[job, r + 1]
            if need > 0:
                after = min(after, max(left, 0) // need)
        if before - after <= slack:
            return units, slack - (before - after)
        units -= 1
    return 0, slack


@jit
def copy_room(target, source):
    """Copy what is free on each node."""
    for node in range(len(source)):
        for r in range(source.shape[1]):
            target[node, r] = source[node, r]


@jit
def change(nodes, room, job, sign):
    """Give the cells of a job back to ``room``, or take them where ``sign`` is -1."""
    first = nodes.held[job].first
    for i in range(first, first + nodes.held[job].count):
        node = np.int64(nodes.cells[i].node)
        units = sign * np.int64(nodes.cells[i].units)
        for r in range(room.shape[1]):
            room[node, r] += units * nodes.needs[job, r + 1]


@jit
def take(nodes, job):
    """Let a job have its cells; it waits no longer."""
    move(nodes, job, -1)
    note_waiting(nodes, job, np.int64(-1))


@jit
def give_back(nodes, job):
    """Free the cells of a job; they remain on record."""
    move(nodes, job, 1)


@jit_part
def move(nodes, job, sign):
    """Add the cells of a job to what is free, or take them from it where ``sign`` is -1."""
    nodes.scalars[0].version += 1
    needs, free, cells, bits = nodes.needs, nodes.free, nodes.cells, nodes.open
    orders = is_by_room(nodes)
    first = np.uint64(nodes.held[job].first)
    end = first + np.uint64(nodes.held[job].count)
    for i in range(first, end):
        node = np.uint64(cells[i].node)
        units = sign * np.int64(cells[i].units)
        for r in range(free.shape[1]):
            free[node, r] += units * needs[job, r + 1]
        word, bit = node >> np.uint64(6), np.uint64(1) << (node & np.uint64(63))
        bits[word] = bits[word] | bit if free[node, 0] > 0 else bits[word] & ~bit
        if orders:
            weigh(nodes, free, np.int64(node))


@jit_entry
def assign(nodes, jobs, progress, by_start, by_end, placed, since):
    """Give nodes to jobs whose times are known: ends first, starts in their order.

    For jobs whose units all fit wherever enough cores are free. ``by_start`` and ``by_end``
    (n_jobs,) are the jobs in the order of their starts and of their ends. The cells of the first
    that start, so many as ``placed``, are written already. Nobody waits before ``since`` [s].
    """
    ended = come = 0
    for i in range(len(by_start)):
        job = by_start[i]
        while ended < i:
            gone = by_end[ended]
            if progress[gone].start + jobs[gone].run > progress[job].start:
                break
            give_back(nodes, gone)
            ended += 1
        while come < len(jobs) and max(jobs[come].submit, since) <= progress[job].start:
            note_waiting(nodes, come, np.int64(1))
            come += 1
        if i >= placed:
            find_nodes(nodes, job, False)
        take(nodes, job)
