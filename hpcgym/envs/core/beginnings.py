"""Episodes that begin with jobs that run and jobs that wait."""

from __future__ import annotations

from typing import Any

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
    """Return the states with which episodes begin; None where the machine is empty.

    ``first`` and ``learner`` are the arrays of a simulation before the first submission. The nodes
    are set up in the last rows of ``rooms``, one for each beginning.
    """
    if not episodes.beginnings:
        return None
    # all episodes of an extract have the jobs that were submitted before it, and then some
    parts = [part.take(slice(0, episodes.longest), name=part.name) for part in episodes.beginnings]
    rules, cluster = options.scheduler, options.cluster
    stops = np.cumsum([len(part) for part in episodes.beginnings])
    starts = stops - [len(part) for part in episodes.beginnings]
    slices = np.stack([starts, starts + [len(part) for part in parts]], axis=1)
    before = states_before(parts, rules, cluster, table, slices, first, learner)
    assert before is not None
    for s, part in enumerate(parts):
        if before.number[s] == 0:  # nothing runs or waits: a submission is what happens first
            before.time[s] = -1
            before.sim["time"][s] = part.submit_time[0]
    if rooms is not None:
        fill_rooms(parts, rules, cluster, slices, rooms, len(rooms.scalars) - len(parts))
    return before


def telling(
    before: Before | None, rooms: Rooms | None, begins: list[dict[str, NDArray[Any]]]
) -> tuple[NDArray[Any], ...]:
    """Return arrays that differ where beginnings do, of the kernels or the native engine."""
    if before is None:
        return tuple(array for one in begins for array in one.values())
    n = len(before.time)
    nodes = () if rooms is None else (rooms.held[-n:], rooms.cells[-n:])
    return (*(getattr(before, name) for name in _TELLING), *nodes)
