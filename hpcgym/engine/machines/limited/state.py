"""What the kernel under limits of power and energy works on, beside the arrays of every simulation.

Whole nodes are given to jobs; ``processors`` and ``sim.free`` count nodes. Power is in whole
milliwatts and energy in millijoules, int64: what limits look at is rounded up, limits are rounded
down. So sums are exact, and nothing depends on their order.

Two powers are kept. The *true* one is what nodes draw. The *charged* one, which is never below it,
is what limits look at: a node that is on and free may begin to switch off in the next second, and
counts as the larger of both powers; one whose job waits for other nodes counts as being switched on
or busy, whichever is more.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcgym.engine.state import FOREVER
from hpcgym.schedule.records import records, whole_numbers

# numba compiles a function anew for each plain number that it is called with, but not for these
ZERO, NEVER, LESS, MORE = np.array([0, FOREVER, -1, 1])

# -- states of a node: the first three are places in STATE_NAMES of schedule.node_states ----------
OFF, SWITCHING_OFF, SWITCHING_ON, ON = np.arange(4)

# The scalars of a machine, in one record.
SCALARS = whole_numbers(
    # the machine; powers of a node [mW]
    "idle_mw",
    "rest_mw",  # charged for a node that is on and free
    "off_mw",
    "shutdown_mw",
    "boot_mw",
    "rise_mw",  # charged for a free node that is being switched on
    "off_time",  # [s] that it takes to switch off, and on
    "on_time",
    "timeout",  # [s] of idleness, after which nodes are switched off; FOREVER: never
    "components_mw",  # of all components above nodes
    # the rules
    "lowest",  # the lowest and the highest level at which jobs run
    "highest",
    "ceiling",  # the highest for the present: below HIGHEST only if somebody says so from outside
    "rule",  # what back-filled jobs must leave of a budget, see below
    "contiguous",  # 1 if the nodes of a job stand in a row
    "limited",  # 1 if there is any limit: then a pass follows whatever changes power
    "switches",  # 1 if nodes may be switched off at all
    "controlled",  # 1 if the last cap is set anew from outside, see controls.py
    "begin",  # [s] from when on USED counts
    # the present state
    "charged",  # [mW]
    "drawn",  # [mW] the true power
    "saved_mw",  # by components that are off, with all that is below them
    "counted_to",  # [s] up to which everything has been counted
    "free_on",  # free nodes that are on
    "free_off",  # free nodes that are off
    "free_rising",  # free nodes that are being switched on
    "n_switching",  # nodes in `switching`
    "next_switched",  # [s] when the first of them is done, FOREVER if there is none
    "n_waiting",  # jobs in `waiting`
    "next_ready",  # [s] when the first of them begins
    "released",  # how many of the jobs that have ended have given their nodes back
    "logged",  # intervals in `log`
    "full",  # 1 if the log must be made longer before the kernel goes on
    "kills",  # jobs that were killed for a cap
    "used",  # [mJ] true energy from BEGIN on, as far as counted, until somebody takes it away
    "was_off",  # nodes that the last cap had off before it was set anew
    "to_wake",  # 1 if free nodes were to be switched on as soon as they are off, which they are now
    # of the job that was tried last, see hpcgym.engine.machines.limited.starts
    "backfills",  # 1 if it would start before the head, which has a reservation
    "ready",  # [s] when the last of its nodes is on
    "all_on",  # 1 if they all are
    "picked_mw",  # charged for its nodes as they are
    "picked_off",  # how many of them are off, or on the way there
    "picked_dark",  # how many of them are off
    "woken_mw",  # of components that are switched on with them
    # of the head's reservation, see reservations.py; what it leaves at the shadow time:
    "spare_nodes",
    "spare_mw",  # below caps
    "spare_limit_mw",  # below the mean power of a budget
    "left_mw",  # charged there for a node that a job has left
    "level",  # at which the job may start that was looked at last
    "block_from",  # its nodes, if they stand in a row
    "block_to",
)

# -- values of the rules ---------------------------------------------------------------------------
# RULE; SUFFICES: only what the budget is sure to suffice for
SUFFICES, POWERCAP, REDUCE_PC, ENERGY_BUD = range(4)

BEFORE = -1  # [s] before all events: when caps are announced that are known from the beginning
PLENTY = 2**61  # [mW] more than there can be

NODE = records(
    ("state", np.int64),
    ("since", np.int64),  # [s] from when on it is in this state; of a free one that is on: idle
    ("until", np.int64),  # [s] when switching is done
    ("job", np.int64),  # that has the node, -1 if it is free
    ("boots", np.int64),  # 1 if it is to be switched on as soon as it is off
    ("place", np.int64),  # in `switching`
)
TASK = records(  # what is known of a job from its start on
    ("level", np.int64),
    ("passed", np.int64),  # [s] the pass that gave it its nodes
    ("ready", np.int64),  # [s] its start
    ("until", np.int64),  # [s] the end of its requested time
    ("expected", np.int64),  # [s] its predicted end, as of the last plan
    ("work_mw", np.int64),  # charged while it runs, and while it waits for its nodes
    ("wait_mw", np.int64),
    ("drawn_mw", np.int64),  # true power while it runs
    ("predicted", np.int64),  # [s] at the highest level, before any correction
)
CAP = records(
    ("start", np.int64),  # [s]
    ("end", np.int64),
    ("announced", np.int64),
    ("mw", np.int64),
    ("kills", np.int64),
    ("off", np.int64),  # nodes 0 up to this one, exclusive, are off throughout
    ("idle_mw", np.int64),  # charged then without jobs
    ("known", np.int64),  # 1 once it has been announced
    # forecast for its start, by requested ends; of jobs that run on then:
    ("floor_mw", np.int64),  # without them
    ("work_mw", np.int64),
    ("outside", np.int64),  # their nodes, and those of them that are to be off
    ("inside", np.int64),
    # the same in the plan, by predicted ends: at its start, and at the time looked at
    ("plan_work_mw", np.int64),
    ("plan_held", np.int64),
    ("plan_inside", np.int64),
    ("inside_now", np.int64),
)
BUDGET = records(
    ("start", np.int64),  # [s]
    ("end", np.int64),
    ("mj", np.int64),
    ("mean_mw", np.int64),
    ("period", np.int64),  # [s] between two looks at the meter
    ("shuts", np.int64),  # 1 if idle nodes are switched off meanwhile
    ("as_idle", np.int64),  # 1 if nodes that are off are reckoned as free ones that are on
    ("binds", np.int64),  # 0 if no load can exceed it
    ("spent", np.int64),  # [mJ] true energy up to COUNTED_TO
    ("saved", np.int64),  # [mJ] as of the last look
    ("looked", np.int64),  # [s] when that was
    ("reserved", np.int64),  # [mJ] for jobs that run above the mean power
    ("n_reserving", np.int64),
    # at this pass
    ("in_use", np.int64),  # 1 if it has begun, or a job that has its nodes may run into its period
    ("ahead", np.int64),  # [mJ] charged up to its end if nothing else starts
    ("at_start_mw", np.int64),  # charged at its start, if that is to come
    ("head_mj", np.int64),  # reserved for the head
    ("left_mj", np.int64),  # that back-filled jobs may take
    # in the plan
    ("rest_mw", np.int64),  # of a node that a job has left
    ("base_mw", np.int64),  # of the machine without jobs
    ("plan_start_mw", np.int64),
    ("plan_mj", np.int64),  # spent at the end, without the head
    ("plan_spent", np.int64),  # at the time looked at
)
LOG = records(("node", np.int64), ("state", np.int64), ("begin", np.int64), ("end", np.int64))


class LimitedNodes(NamedTuple):
    """A machine under limits: N nodes, L levels, C kinds of slowdowns.

    The first nine do not change.
    """

    busy_mw: NDArray[np.int64]  # (L,) charged for a node of a job
    drawn_mw: NDArray[np.int64]  # (L,) its true power
    slowdown: NDArray[np.int64]  # (C, L) [millionths]
    kind: NDArray[np.int64]  # (n_jobs,) of slowdown
    measured_mw: NDArray[np.int64]  # (n_jobs, L) measured power of whole jobs, -1; empty if unknown
    size: NDArray[np.int64]  # (levels above nodes,) nodes below a component
    component_mw: NDArray[np.int64]  # (levels above nodes,)
    place: NDArray[np.int64]  # (levels above nodes,) where the components of a level begin
    first: NDArray[np.int64]  # (n_jobs + 1,) where the nodes of each job stand
    cells: NDArray[np.int32]  # nodes of jobs, ascending
    nodes: NDArray[np.void]  # (N,) NODE
    free: NDArray[np.uint64]  # a bit for each node: 1 where it has no job
    on: NDArray[np.uint64]  # 1 where it has no job and is on
    later: NDArray[np.uint64]  # free at the time that the plan looks at
    awake: NDArray[np.int64]  # for each component, how much just below is not off
    switching: NDArray[np.int64]  # (N,) nodes that are being switched
    waiting: NDArray[np.int64]  # (N,) jobs that wait for their nodes
    tasks: NDArray[np.void]  # (n_jobs,) TASK
    caps: NDArray[np.void]  # CAP
    budgets: NDArray[np.void]  # BUDGET
    with_mw: NDArray[np.int64]  # (n_budgets, n_jobs) power with a job that is above the mean
    reserving: NDArray[np.int64]  # (n_budgets, N) these jobs, while they run
    log: NDArray[np.void]  # LOG: when nodes were off or switched
    scalars: NDArray[np.void]  # (1,) SCALARS


def make_limited(
    constants: dict[str, int],
    busy_mw: NDArray[np.int64],
    drawn_mw: NDArray[np.int64],
    slowdown: NDArray[np.int64],
    kind: NDArray[np.int64],
    measured_mw: NDArray[np.int64],
    levels: list[tuple[int, int]],
    widths: NDArray[np.int64],
    n_nodes: int,
    caps: NDArray[np.void],
    budgets: NDArray[np.void],
    begin: int,
) -> LimitedNodes:
    """Return a machine all of whose nodes are on and idle from ``begin`` [s] on.

    Parameters
    ----------
    constants : scalars by name, up to ``switches``, but for ``components_mw`` and ``ceiling``.
    busy_mw, drawn_mw, slowdown, kind, measured_mw, caps, budgets : as in :class:`LimitedNodes`.
    levels : (nodes below a component, its power [mW]) of each level above nodes.
    widths : (n_jobs,) nodes of each job.
    n_nodes : N.
    """
    scalars = np.zeros(1, SCALARS)
    own: Any = scalars[0]
    for name, value in constants.items():
        own[name] = value
    nodes = np.zeros(n_nodes, NODE)
    nodes["state"], nodes["since"], nodes["until"], nodes["job"] = ON, begin, FOREVER, -1
    counts = [-(-n_nodes // size) for size, _ in levels]
    awake = np.zeros(sum(counts), np.int64)
    place = np.cumsum([0, *counts])[:-1].astype(np.int64)
    below = n_nodes
    for number, count in enumerate(counts):
        step = levels[number][0] // (levels[number - 1][0] if number else 1)
        for component in range(count):
            awake[place[number] + component] = min(step, below - component * step)
        below = count
    own.components_mw = sum(count * power for count, (_, power) in zip(counts, levels, strict=True))
    own.charged = n_nodes * own.rest_mw + own.components_mw
    own.drawn = n_nodes * own.idle_mw + own.components_mw
    own.ceiling = own.highest
    own.free_on = n_nodes
    own.begin = begin
    own.counted_to = BEFORE - 1
    own.next_switched = own.next_ready = FOREVER
    words = n_nodes // 64 + 1
    free = np.zeros(words, np.uint64)
    for node in range(n_nodes):
        free[node >> 6] |= np.uint64(1) << np.uint64(node & 63)
    n_jobs = len(widths)
    first = np.concatenate([[0], np.cumsum(widths)]).astype(np.int64)
    return LimitedNodes(
        busy_mw,
        drawn_mw,
        slowdown,
        kind,
        measured_mw,
        np.array([size for size, _ in levels], np.int64),
        np.array([power for _, power in levels], np.int64),
        place,
        first,
        np.empty(int(first[-1]), np.int32),
        nodes,
        free,
        free.copy(),
        np.zeros(words, np.uint64),
        awake,
        np.empty(n_nodes, np.int64),
        np.empty(n_nodes, np.int64),
        np.zeros(n_jobs, TASK),
        caps,
        budgets,
        np.zeros((len(budgets), n_jobs), np.int64),
        np.empty((len(budgets), n_nodes), np.int64),
        np.empty(16 * n_nodes if own.switches else 0, LOG),
        scalars,
    )
