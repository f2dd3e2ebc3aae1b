"""Machines under limits of many simulations, a row for each, for environments.

Each has a control (:mod:`hpcgym.engine.machines.limited.controls`) as its last cap, which says
nothing where nobody may set it. Limits of the episode that comes next are set beforehand, and taken
over when it begins.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcgym.compilation import jit, jit_inline, jit_part
from hpcgym.engine.answers.told import Told
from hpcgym.engine.machines.limited import easy
from hpcgym.engine.machines.limited.nodes import set_bit
from hpcgym.engine.machines.limited.state import (
    BUDGET,
    CAP,
    MORE,
    NEVER,
    ON,
    PLENTY,
    TASK,
    LimitedNodes,
    make_limited,
)
from hpcgym.engine.rows import Rows, Shared, empty_rows, keys_of, loop_on_rows, names_of
from hpcgym.engine.state import FOREVER, JOBS
from hpcgym.schedule.records import records

COUNTS = records(  # how many limits an episode has
    ("caps", np.int64),
    ("budgets", np.int64),
    ("next_caps", np.int64),
    ("next_budgets", np.int64),
)


class LimitedRows(NamedTuple):
    """Rows of ``LimitedNodes`` (:mod:`hpcgym.engine.machines.limited.state`), with its names.

    ``begin`` and ``all_awake`` are ``scalars`` and ``awake`` before the first job.
    """

    busy_mw: Shared
    drawn_mw: Shared
    slowdown: Shared
    kind: Shared  # (n_rows,)
    measured_mw: Shared  # (n_rows, L), or empty
    size: Shared
    component_mw: Shared
    place: Shared
    total: Shared  # (n_rows + 1,) nodes of all jobs before
    begin: Shared  # (1,)
    all_awake: Shared
    jobs: Rows  # (n, longest) JOBS of the episode, as long as they are at their level
    first: Rows  # (n, longest + 1)
    cells: Rows
    nodes: Rows
    free: Rows
    on: Rows
    later: Rows
    awake: Rows
    switching: Rows
    waiting: Rows
    tasks: Rows
    caps: Rows
    budgets: Rows
    next_caps: Rows
    next_budgets: Rows
    with_mw: Rows
    reserving: Rows
    counts: Rows  # (n, 1) COUNTS
    log: Rows
    scalars: Rows


def make_rows(
    constants: dict[str, int],
    busy_mw: NDArray[np.int64],
    drawn_mw: NDArray[np.int64],
    slowdown: NDArray[np.int64],
    kind: NDArray[np.int64],
    measured_mw: NDArray[np.int64],
    levels: list[tuple[int, int]],
    widths: NDArray[np.int64],
    n_nodes: int,
    number: int,
    longest: int,
    limited: bool,
) -> LimitedRows:
    """Return the machines of that many simulations of up to ``longest`` jobs of a table.

    Parameters
    ----------
    limited : whether there may be limits, and the control is set.
    constants to n_nodes : as :func:`hpcgym.engine.machines.limited.state.make_limited` takes them.
    """
    one = make_limited(
        constants, busy_mw, drawn_mw, slowdown, kind, measured_mw, levels, widths[:0], n_nodes,
        np.zeros(1, CAP), np.zeros(1, BUDGET), 0,
    )  # fmt: skip
    begin = one.scalars.copy()
    begin["controlled"] = begin["limited"] = int(limited)
    total = np.concatenate([[0], np.cumsum(widths)]).astype(np.int64)
    ahead = np.minimum(np.arange(len(widths)) + longest, len(widths))
    n_cells = int((total[ahead] - total[:-1]).max(initial=0))
    rows = empty_rows(one, number, names_of(Rows, LimitedRows, LimitedNodes))
    for name, size, dtype in (
        ("jobs", longest, JOBS),
        ("first", longest + 1, np.int64),
        ("cells", n_cells, np.int32),
        ("tasks", longest, TASK),
        ("counts", 1, COUNTS),
        ("next_caps", 1, CAP),
        ("next_budgets", 1, BUDGET),
    ):
        rows[name] = np.zeros((number, size), dtype)
    rows["with_mw"] = np.zeros((number, 1, longest), np.int64)
    alike = {name: getattr(one, name) for name in names_of(Shared, LimitedRows, LimitedNodes)}
    return LimitedRows(**alike, total=total, begin=begin, all_awake=one.awake, **rows)


def set_next_limits(
    rows: LimitedRows, e: int, caps: NDArray[np.void], budgets: NDArray[np.void]
) -> LimitedRows:
    """Set the limits of the next episode of simulation ``e``; return rows with room for them."""
    room, places = (len(caps) + 1,), len(budgets)
    rows = grown(
        rows,
        caps=room, next_caps=room, budgets=(places,), next_budgets=(places,),
        with_mw=(places, 0), reserving=(places, 0),
    )  # fmt: skip
    rows.next_caps[e, : len(caps)] = caps
    rows.next_budgets[e, : len(budgets)] = budgets
    rows.counts["next_caps"][e] = len(caps)
    rows.counts["next_budgets"][e] = len(budgets)
    return rows


def with_longer_log(rows: LimitedRows) -> LimitedRows:
    """Return rows whose logs have twice the room, so that those that are full can go on."""
    rows.scalars["full"] = 0
    return grown(rows, log=(2 * rows.log.shape[1],))


def grown(rows: LimitedRows, **shapes: tuple[int, ...]) -> LimitedRows:
    """Return rows with at least so much room in the arrays named, for each simulation."""
    wider = {}
    for name, shape in shapes.items():
        old = getattr(rows, name)
        new = tuple(map(max, old.shape[1:], shape))
        if new != old.shape[1:]:
            wider[name] = np.zeros((len(old), *new), old.dtype)
            wider[name][tuple(map(slice, old.shape))] = old
    return rows._replace(**wider) if wider else rows


def row_of(rows: LimitedRows, e: int, start: int, stop: int) -> LimitedNodes:
    """Return the machine of simulation ``e``, for the jobs in these rows of the table."""
    n, counts = stop - start, rows.counts[e, 0]
    first = rows.first[e, : n + 1]
    kind, measured = rows.kind[start:stop], rows.measured_mw
    caps, budgets = rows.caps[e, : counts["caps"]], rows.budgets[e, : counts["budgets"]]
    return LimitedNodes(
        rows.busy_mw, rows.drawn_mw, rows.slowdown, kind,
        measured[start:stop] if len(measured) else measured,
        rows.size, rows.component_mw, rows.place, first, rows.cells[e, : first[-1]],
        rows.nodes[e], rows.free[e], rows.on[e], rows.later[e], rows.awake[e], rows.switching[e],
        rows.waiting[e], rows.tasks[e, :n], caps, budgets, rows.with_mw[e], rows.reserving[e],
        rows.log[e], rows.scalars[e],
    )  # fmt: skip


@jit_part
def machine_of(rows, e, start, stop):
    """Return the same in compiled code."""
    n, counts, measured = stop - start, rows.counts[e, 0], rows.measured_mw
    if len(measured) > 0:
        measured = measured[start:stop]
    return LimitedNodes(
        rows.busy_mw, rows.drawn_mw, rows.slowdown, rows.kind[start:stop], measured,
        rows.size, rows.component_mw, rows.place, rows.first[e, : n + 1], rows.cells[e],
        rows.nodes[e], rows.free[e], rows.on[e], rows.later[e], rows.awake[e], rows.switching[e],
        rows.waiting[e], rows.tasks[e, :n], rows.caps[e, : counts.caps],
        rows.budgets[e, : counts.budgets], rows.with_mw[e], rows.reserving[e], rows.log[e],
        rows.scalars[e], None,
    )  # fmt: skip


@jit
def begin_machine(rows, e, start, stop, table_jobs):
    """Let the machine of simulation ``e`` be empty, before the jobs in these rows of the table."""
    for j in range(stop - start):
        rows.jobs[e, j].submit = table_jobs[start + j].submit
        rows.jobs[e, j].run = table_jobs[start + j].run
        rows.jobs[e, j].requested = table_jobs[start + j].requested
        rows.jobs[e, j].processors = table_jobs[start + j].processors
        rows.jobs[e, j].since_first = table_jobs[start + j].since_first
        rows.tasks[e, j].level = rows.begin[0].highest
    for j in range(stop - start + 1):
        rows.first[e, j] = rows.total[start + j] - rows.total[start]
    rows.scalars[e, 0] = rows.begin[0]
    rows.scalars[e, 0].begin = table_jobs[start].submit
    for k in range(len(rows.all_awake)):
        rows.awake[e, k] = rows.all_awake[k]
    begin_nodes(rows, e, table_jobs[start].submit)
    begin_limits(rows, e)


@jit
def begin_nodes(rows, e, time):
    """Let all nodes be on and idle from ``time`` [s] on."""
    nodes, free, on = rows.nodes[e], rows.free[e], rows.on[e]
    for word in range(len(free)):
        free[word] = on[word] = 0
    for node in range(len(nodes)):
        nodes[node].state = ON
        nodes[node].since = time
        nodes[node].until = NEVER
        nodes[node].job = -1
        nodes[node].boots = 0
        set_bit(free, node, MORE)
        set_bit(on, node, MORE)


@jit
def begin_limits(rows, e):
    """Take over the limits of the episode, and a control that has not been set yet."""
    counts = rows.counts[e, 0]
    counts.caps, counts.budgets = counts.next_caps + 1, counts.next_budgets
    for c in range(counts.next_caps):
        rows.caps[e, c] = rows.next_caps[e, c]
    for b in range(counts.next_budgets):
        rows.budgets[e, b] = rows.next_budgets[e, b]
    control = rows.caps[e, counts.next_caps]
    control.start = control.end = control.announced = NEVER
    control.known = control.kills = control.off = 0
    control.mw = PLENTY
    control.work_mw = control.outside = control.inside = 0


_run_row = loop_on_rows(easy.run, Told(easy.usage_at_level))


@jit_inline
def run_under_limits(table, start, n, states, rows, e, learns, fair, stop_time):
    """Simulate ``n`` jobs of a table in row ``e``.

    As :func:`hpcgym.engine.machines.pool.rows.run_on_pool` does on a pool.
    """
    machine = machine_of(rows, e, start, start + n)
    return _run_row(
        rows.jobs[e, :n], keys_of(table, start, n), table, start, states, e, machine, learns, fair,
        stop_time, np.int64(FOREVER),
    )  # fmt: skip
