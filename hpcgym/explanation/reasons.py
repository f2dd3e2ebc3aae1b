"""What a job waited for, from pass to pass, and by what right others started before it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hpcgym.explanation.watching import Pass
from hpcgym.schedule.result import Result
from hpcgym.simulation.nodes import needs_on, single_cores

#: What a job may have waited for: name -> the words that follow "it waited for 2 h".
REASONS = {
    "processors": "because fewer processors were free than it asks for",
    "nodes": "because enough cores were free, but no nodes had room for all of it",
    "order": "because a job before it could not start, and nothing starts out of order",
    "reservation": "because it would have delayed the first job of the queue",
    "plan": "because all earlier times were reserved for others",
    "hold": "because processors were to stay free behind it",
}
#: By what right a job may have started before another.
RIGHTS = {
    "ran": "ran when it came",
    "order": "started in their turn, as the first of the queue",
    "shadow": "were to end before the first job of the queue could start",
    "extra": "fitted on processors that the first job of the queue leaves free",
    "gap": "fitted in before what was reserved",
    "chosen": "were chosen",
}


def reason(result: Result, job: int, at: Pass) -> str:
    """Return what a job waits for after a pass at which it did not start: a name of REASONS."""
    scheduler = result.scheduler
    width = int(result.workload.requested_processors[job])
    if width > at.free:
        return "processors"
    if not has_room(result, job, at.time):
        return "nodes"
    if scheduler.backfill == "conservative":
        return "plan"
    if at.head in (job, -1):
        return "hold"
    if scheduler.backfill == "none":
        return "order"
    if result.allocation is not None:  # what is left beside the head is counted by nodes
        return "reservation"
    ends = at.time + int(result.predicted_run_time[job])
    return "hold" if width <= at.extra or ends <= at.shadow else "reservation"


def has_room(result: Result, job: int, time: int) -> bool:
    """Return whether the nodes hold a job beside those that run after a pass; True on a pool."""
    if result.allocation is None or result.lost is not None:
        return True
    cluster, start = result.cluster, result.start
    needs = needs_on(result.workload, cluster)
    if single_cores(needs):
        return True
    running = np.flatnonzero((start <= time) & (start + result.run_time > time))
    cells = result.allocation.rows(running)
    owner = np.repeat(running, np.diff(cells.first))
    free = cluster.capacity.astype(np.int64).copy()
    np.subtract.at(free, cells.node, cells.units[:, None] * needs[owner, 1:])
    demand = needs[job, 1:]
    held = np.min(free[:, demand > 0] // demand[demand > 0], axis=1)
    return int(np.maximum(held, 0).sum()) >= int(needs[job, 0])


def waited_for(result: Result, job: int, passes: Sequence[Pass]) -> dict[str, int]:
    """Return how long a job waited for what, reason -> [s]; the sum is its wait."""
    if not passes:
        return {}
    submit, start = int(result.workload.submit_time[job]), int(result.start[job])
    # passes at single events: there is none for a job that does not fit as it comes
    seconds = {"processors": min(passes[0].time, start) - submit}
    times = [one.time for one in passes] + [start]
    for one, until in zip(passes, times[1:], strict=True):
        if one.time < start:
            name = reason(result, job, one)
            seconds[name] = seconds.get(name, 0) + min(until, start) - one.time
    return {name: spent for name, spent in seconds.items() if spent > 0}


def rights(result: Result, job: int, rows: NDArray[np.int64], passes: Sequence[Pass]) -> list[str]:
    """Return by what right each of some jobs started before another: names of RIGHTS."""
    shadows = {one.time: one.shadow for one in passes}
    submit = int(result.workload.submit_time[job])
    found = []
    for row in rows.tolist():
        start = int(result.start[row])
        if start < submit:
            found.append("ran")
        elif result.outside or result.dispatcher is not None:
            found.append("chosen")
        elif not result.backfilled[row]:
            found.append("order")
        elif result.scheduler.backfill == "conservative" or start not in shadows:
            found.append("gap")
        else:
            ends = start + int(result.predicted_run_time[row])
            found.append("shadow" if ends <= shadows[start] else "extra")
    return found
