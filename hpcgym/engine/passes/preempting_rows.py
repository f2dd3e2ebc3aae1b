"""Jobs that stop others in many simulations, a row for each; what is shared stands once.

Here a metric only needs to know how long processors were busy with lost runs. So a log that is full
is added up, and begins anew.
"""

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
    victims: Rows  # (n, longest) VICTIMS
    suspended: Rows  # (n, longest) SUSPENDED
    lost: Rows  # (n, L) LOST
    cells: Rows  # (n, M) CELLS
    scalars: Rows  # (n, 1) SCALARS
    jobs: Rows  # (n, longest) JOBS; those that are cancelled have run for less
    wasted: Rows  # (n, 1) [processor seconds] of lost runs, but for those in the log


@jit
def begin_preempting(stops, e, table, sim, line, start, n):
    """Let nobody have been stopped in simulation ``e``, with ``n`` jobs from row ``start`` on.

    What was planned in a simulation before says nothing.
    """
    sim.changed = 1
    stops.scalars[e, 0] = stops.begin[0]
    stops.wasted[e, 0] = 0
    for job in range(n):
        stops.jobs[e, job] = table.jobs[start + job]
        line[job].reserved_at = line[job].reserved = 0


@jit
def forget_lost(stops, e):
    """Let the log of simulation ``e`` have room again; return whether it was full."""
    own = stops.scalars[e, 0]
    full = own.full == 1
    if own.mode == REQUEUE:
        for i in range(own.lost):
            run = stops.lost[e, i]
            stops.wasted[e, 0] += (run.end - run.start) * stops.jobs[e, run.job].processors
    own.lost = own.cells = own.full = 0
    return full


@jit_part
def preempting_of(stops, machine, e, start, n):
    """Return a machine of simulation ``e`` on which its ``n`` jobs from a row on stop others."""
    return Preempting(
        machine, stops.group[start : start + n], stops.level, stops.may, stops.exempt,
        stops.blocked[e], stops.victims[e], stops.suspended[e], stops.lost[e], stops.cells[e],
        stops.scalars[e],
    )  # fmt: skip
