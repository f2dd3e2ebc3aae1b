"""Jobs that stop others in many simulations, a row for each; what is shared stands once."""

from __future__ import annotations

from typing import NamedTuple

from hpcgym.compilation import jit, jit_part
from hpcgym.engine.passes.preempting import REQUEUE, Preempting
from hpcgym.engine.rows import Rows, Shared


class PreemptingRows(NamedTuple):
    """Rows of the :class:`~hpcgym.engine.passes.preempting.Preempting` of simulations.

    Jobs are those of a table. G groups; see there.
    """

    group: Shared  # (n_rows,)
    level: Shared  # (G,)
    may: Shared  # (G, G)
    exempt: Shared  # (G,)
    begin: Shared  # (1,) SCALARS before the first job
    blocked: Rows  # (n, G)
    noted: Rows  # (n, G)
    victims: Rows  # (n, longest) VICTIMS
    suspended: Rows  # (n, longest) SUSPENDED
    lost: Rows  # (n, L) LOST
    cells: Rows  # (n, M) CELLS
    scalars: Rows  # (n, 1) SCALARS
    wasted: Rows  # (n, 2) [processor seconds] of lost runs, and how many in the log these are


@jit
def begin_preempting(stops, e):
    """Let nobody have been stopped in simulation ``e``; ``stops`` may be None."""
    if stops is not None:
        stops.scalars[e, 0] = stops.begin[0]
        stops.wasted[e, 0] = stops.wasted[e, 1] = 0


@jit
def log_is_full(stops, e):
    """Return whether simulation ``e`` waits for a longer log; ``stops`` may be None."""
    full = False
    if stops is not None:
        full = stops.scalars[e, 0].full == 1
    return full


@jit
def add_up_lost(stops, e, jobs):
    """Add up the lost runs of simulation ``e`` that have been put on record since it was called."""
    own, wasted = stops.scalars[e, 0], stops.wasted[e]
    if own.mode == REQUEUE:
        for i in range(wasted[1], own.lost):
            run = stops.lost[e, i]
            wasted[0] += (run.end - run.start) * jobs[run.job].processors
    wasted[1] = own.lost


@jit_part
def preempting_of(stops, machine, e, start, n):
    """Return a machine of simulation ``e`` on which its ``n`` jobs from a row on stop others."""
    return Preempting(
        machine, stops.group[start : start + n], stops.level, stops.may, stops.exempt,
        stops.blocked[e], stops.noted[e], stops.victims[e], stops.suspended[e], stops.lost[e],
        stops.cells[e], stops.scalars[e],
    )  # fmt: skip
