"""The states with which many simulations begin, in environments, of extracts."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcgym.cluster.pool import Cluster
from hpcgym.engine import state
from hpcgym.engine.machines.nodes.rows import Rooms, empty_nodes, row_of
from hpcgym.engine.many.beginnings import Before
from hpcgym.engine.rows import empty_rows
from hpcgym.scheduler.estimates.learned import Estimators, Learner
from hpcgym.scheduler.estimates.learning import asks_for_predictions, learner_rows
from hpcgym.scheduler.rules import Scheduler
from hpcgym.simulation.predictions import Learning
from hpcgym.simulation.warm_start import (
    Beginning,
    begin_running,
    beginning_of,
    in_order,
    learned_before,
    place_running,
    taken_over,
)
from hpcgym.workload.model import Workload

_NONE = np.zeros(0, np.int64)


def states_before(
    parts: list[Workload],
    rules: Scheduler,
    machine: Cluster,
    table: Any,
    slices: NDArray[np.int64],
    empty: state.State,
    learner: Learner,
) -> Before | None:
    """Return the states with which slices begin; None if all do with an empty machine.

    Parameters
    ----------
    parts : the slices, with their initial states.
    rules, machine : under which they are simulated.
    table : the jobs of all, their users, predictions and Estimators, as environments
        have them.
    slices : (n_slices, 2) the first row of each in the table, and the row behind its last.
    empty, learner : the arrays of a simulation before the first submission.

    Raises
    ------
    HpcgymError, WorkloadError : as :func:`hpcgym.simulation.warm_start.begin_with` does.
    """
    n = len(parts)
    if all(part.initial is None for part in parts):
        return None
    rows = empty_rows(empty, n, empty._fields) | learner_rows(learner, n)
    rows = {name: rows[name] for name in Before._fields if name in rows}
    before = Before(np.full(n, -1), np.zeros(n, np.int64), np.zeros(n, np.int64), **rows)
    for s, part in enumerate(parts):
        start, stop = slices[s]
        jobs, users = table.jobs[start:stop], table.users[start:stop]
        own = state.State._make([array.copy() for array in empty])
        own.sim.time = jobs[0].submit
        own.progress["predicted"][: len(part)] = table.predicted[start:stop]
        mine = Learner._make([array.copy() for array in learner])
        if part.initial is not None:
            scores = np.zeros(2 * len(part), state.SCORES)
            arrays = state.Prepared(jobs, _NONE, scores, users, *own)
            learning = None
            if asks_for_predictions(rules):
                fields = [getattr(table, name) for name in Estimators._fields]
                known = Estimators._make(fields)
                known = known._replace(classes=known.classes[start:stop])
                learned = learned_before(part, rules)
                learning = Learning(part, rules, arrays, learned, (known, mine))
            part = taken_over(part)
            begins = beginning_of(part, rules, machine, arrays)
            assert begins is not None
            before.time[s], before.number[s], before.due[s] = begins.time, begins.number, begins.due
            begin_running(arrays, begins, learning)
        for name in rows:
            kept = own if name in own._fields else mine
            getattr(before, name)[s] = getattr(kept, name)
    return before


def fill_rooms(
    parts: list[Workload],
    rules: Scheduler,
    machine: Cluster,
    slices: NDArray[np.int64],
    rooms: Rooms,
    first: int,
) -> None:
    """Set up the nodes with which slices begin, in the rows from ``first`` on.

    ``slices``: the first row of each in ``rooms``, and the row behind its jobs, (n_slices, 2).
    """
    for e, (part, (start, stop)) in enumerate(zip(parts, slices.tolist(), strict=True), first):
        empty_nodes(rooms, e, start, stop)
        if part.initial is not None:
            found = part, rules, machine, part.initial.begin, 0, False, in_order(part), None
            place_running(Beginning(*found), row_of(rooms, e, start, stop))
