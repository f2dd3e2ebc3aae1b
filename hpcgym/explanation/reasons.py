"""What a job waited for, from pass to pass, and by what right others started before it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hpcgym.explanation.watching import Pass
from hpcgym.schedule.result import Result
from hpcgym.simulation.nodes import as_on_pool, needs_on

Needs = NDArray[np.int64]  # (n_jobs, 1 + R), units and what each asks for

#: What a job may have waited for: name -> the words that follow "it waited for 2 h".
REASONS = {
    "processors": "because fewer processors were free than it asks for",
    "nodes": "because enough cores were free, but no nodes had room for all of it",
    "order": "because a job before it could not start, and nothing starts out of order",
    "reservation": "because it would have delayed the first job of the queue",
    "plan": "because all earlier times were reserved for others",
    "clock": "for the next pass that back-fills",
    "unseen": "because passes that back-fill do not look at so many jobs",
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


def reason(result: Result, job: int, at: Pass, needs: Needs | None) -> str:
    """Return what a job waits for after a pass at which it did not start: a name of REASONS.

    ``needs``: what jobs ask of nodes, None on a pool.
    """
    scheduler = result.scheduler
    width = int(result.workload.requested_processors[job])
    if width > at.free:
        return "processors"
    if needs is not None and not has_room(result, job, at.time, needs):
        return "nodes"
    if scheduler.slurm is not None and at.time % scheduler.slurm.bf_interval != 0:
        return "clock"
    if scheduler.slurm is not None and at.before >= scheduler.slurm.bf_max_job_test:
        return "unseen"
    if scheduler.backfill == "conservative" or scheduler.plans_anew:
        return "plan"
    if at.head in (job, -1):
        return "hold"
    if scheduler.backfill == "none":
        return "order"
    if result.allocation is not None:  # what is left beside the head is counted by nodes
        return "reservation"
    ends = at.time + int(result.predicted_run_time[job])
    return "hold" if width <= at.extra or ends <= at.shadow else "reservation"


def needs_of_nodes(result: Result) -> Needs | None:
    """Return what jobs ask of the nodes that a schedule gave them; None where cores are alike."""
    if result.allocation is None:
        return None
    needs = needs_on(result.workload, result.cluster)
    return None if as_on_pool(needs, result.scheduler) else needs


def has_room(result: Result, job: int, time: int, needs: Needs) -> bool:
    """Return whether the nodes hold a job beside those that run after a pass."""
    assert result.allocation is not None
    start = result.start
    running = np.flatnonzero((start <= time) & (start + result.run_time > time))
    cells = result.allocation.rows(running)
    owner = np.repeat(running, np.diff(cells.first))
    free = result.cluster.capacity.astype(np.int64).copy()
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
    needs = needs_of_nodes(result)
    times = [one.time for one in passes] + [start]
    for one, until in zip(passes, times[1:], strict=True):
        if one.time < start:
            name = reason(result, job, one, needs)
            seconds[name] = seconds.get(name, 0) + min(until, start) - one.time
    return {name: spent for name, spent in seconds.items() if spent > 0}


def rights(result: Result, job: int, rows: NDArray[np.int64], passes: Sequence[Pass]) -> list[str]:
    """Return by what right each of some jobs started before another: names of RIGHTS."""
    shadows = {one.time: one.shadow for one in passes}
    submit = int(result.workload.submit_time[job])
    plans_anew = result.scheduler.plans_anew
    found = []
    for row in rows.tolist():
        start = int(result.start[row])
        if start < submit:
            found.append("ran")
        elif result.outside or result.dispatcher is not None:
            found.append("chosen")
        elif not result.backfilled[row]:
            found.append("order")
        elif result.scheduler.backfill == "conservative" or plans_anew or start not in shadows:
            found.append("gap")
        else:
            ends = start + int(result.predicted_run_time[row])
            found.append("shadow" if ends <= shadows[start] else "extra")
    return found
