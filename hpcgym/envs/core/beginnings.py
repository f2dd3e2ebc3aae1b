"""Episodes of an extract, which begin with jobs that run and jobs that wait."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hpcgym.engine import state
from hpcgym.engine.answers import online
from hpcgym.engine.machines.nodes.rows import Rooms
from hpcgym.engine.many.beginnings import Before
from hpcgym.envs.core import arrays
from hpcgym.envs.core.episodes import Episodes
from hpcgym.envs.core.options import Options
from hpcgym.simulation.beginnings import fill_rooms, states_before

#: What tells one beginning from another: the rest follows from it, or is of no account.
_TELLING = ("time", "number", "progress", "history", "memory", "ratios", "model", "model_sums")


def state_before(
    options: Options,
    episodes: Episodes,
    table: arrays.Table,
    first: state.State,
    learner: online.Learner,
    rooms: Rooms | None,
) -> Before | None:
    """Return the state with which an extract begins; None where the machine is empty.

    ``first`` and ``learner`` are the arrays of a simulation before the first submission. The nodes
    are set up in the last row of ``rooms``.
    """
    workload = episodes.workload
    if workload.initial is None:
        return None
    # all episodes have the jobs that were submitted before the beginning, and then some
    part = workload.take(slice(0, episodes.longest), name=workload.name)
    rules, cluster = options.scheduler, options.cluster
    slices = np.array([[0, len(part)]])
    before = states_before([part], rules, cluster, table, slices, first, learner)
    assert before is not None
    if before.number[0] == 0:  # nothing runs or waits: the first submission is what happens first
        before.time[0] = -1
        before.sim["time"] = part.submit_time[0]
    if rooms is not None:
        fill_rooms([part], rules, cluster, slices, rooms, len(rooms.scalars) - 1)
    return before


def telling(before: Before | None, rooms: Rooms | None) -> tuple[NDArray[np.generic], ...]:
    """Return arrays that differ where beginnings do."""
    if before is None:
        return ()
    nodes = () if rooms is None else (rooms.held[-1], rooms.cells[-1])
    return (*(getattr(before, name) for name in _TELLING), *nodes)
