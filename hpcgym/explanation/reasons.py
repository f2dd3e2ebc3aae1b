"""What a job waited for, from pass to pass, and by what right others started before it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcgym.explanation.meanwhile import SURELY, Meanwhile
from hpcgym.explanation.watching import Moment, Pass
from hpcgym.naming import PARTITION
from hpcgym.schedule.result import Result
from hpcgym.simulation.nodes import as_on_pool, needs_on

Needs = NDArray[np.int64]  # (n_jobs, 1 + R), units and what each asks for

#: What a job may have waited for: name -> what held as it waited.
REASONS = {
    "quota": "it would have exceeded a quota",
    "processors": "fewer processors were free than it asks for",
    "nodes": "enough cores were free, but no nodes had room for all of it",
    "partition": "too few of the nodes with room for it were in its partition",
    "order": "nothing starts out of order",
    "reservation": "it would have delayed the first job of the queue",
    "plan": "all earlier times were reserved for others",
    "clock": "the next pass that back-fills was to come",
    "unseen": "passes that back-fill do not look at so many jobs",
    "hold": "processors were to stay free behind it",
}
#: What they are called in tables and pictures.
CALLED = {
    "quota": "quota",
    "processors": "too few processors free",
    "nodes": "no room on nodes",
    "partition": "no room in partition",
    "order": "order",
    "reservation": "first job's reservation",
    "plan": "others' reservations",
    "clock": "next pass that back-fills",
    "unseen": "not looked at",
    "hold": "held-back processors",
}
#: By what right a job may have run while another waited.
RIGHTS = {
    "ran": "ran already",
    "stopped": "stopped others to start",
    "may have stopped": "may have stopped others to start",
    "order": "started in turn, first of the queue",
    "shadow": "were to end before the first job of the queue could start",
    "extra": "fitted on processors that the first job of the queue leaves free",
    "gap": "fitted in before what was reserved",
    "chosen": "were chosen",
    "resumed": "went on after they had been suspended",
    "unknown": "started, and were stopped later",
}


def reasons_at(
    result: Result,
    rows: NDArray[np.int64],
    at: Moment,
    unseen: NDArray[np.bool_],
    barred: NDArray[np.bool_],
    needs: Needs | None,
) -> NDArray[np.int8]:
    """Return what each of some jobs waits for after a pass at which it did not start.

    Parameters
    ----------
    rows : of the jobs, (k,).
    unseen : whether a pass that back-fills does not look at each, (k,) bool; for Slurm alone.
    barred : whether each would exceed a quota, (k,) bool.
    needs : what jobs ask of nodes, None on a pool.

    Returns
    -------
    Places in :data:`REASONS`, (k,) int8.
    """
    scheduler = result.scheduler
    width = result.workload.requested_processors[rows]
    tests = [("quota", barred), ("processors", width > at.free)]
    if needs is not None:
        anywhere = needs.copy()
        anywhere[:, 1:][:, _of_partitions(result)] = 0
        tests.append(("nodes", ~have_room(result, rows, at.time, anywhere)))
        tests.append(("partition", ~have_room(result, rows, at.time, needs)))
    if scheduler.slurm is not None:
        tests.append(("clock", np.full(len(rows), not at.looked)))
        tests.append(("unseen", unseen))
    if scheduler.backfill == "conservative" or scheduler.plans_anew:
        return _first(tests, "plan")
    tests.append(("hold", (rows == at.head) | (at.head == -1)))
    if scheduler.backfill == "none":
        return _first(tests, "order")
    # on nodes what is left beside the head is counted by nodes, under quotas it is not counted
    if result.allocation is None and scheduler.quota is None:
        ends = at.time + result.predicted_run_time[rows]
        until = at.shadow - (scheduler.backfill == "until-shadow")  # ends before it
        tests.append(("hold", (width <= at.extra) | (ends <= until)))
    return _first(tests, "reservation")


def _first(tests: Sequence[tuple[str, NDArray[np.bool_]]], otherwise: str) -> NDArray[np.int8]:
    """Return the place in REASONS of the first test that holds, of each job."""
    names = list(REASONS)
    codes = np.full(len(tests[0][1]), names.index(otherwise), np.int8)
    for name, holds in reversed(tests):
        codes[holds] = names.index(name)
    return codes


def _of_partitions(result: Result) -> list[bool]:
    """Return which resources of the machine stand for partitions, (R,)."""
    return [name.startswith(PARTITION) for name in result.cluster.resources]


def needs_of_nodes(result: Result) -> Needs | None:
    """Return what jobs ask of the nodes that a schedule gave them; None where cores are alike."""
    if result.allocation is None:
        return None
    needs = needs_on(result.workload, result.cluster)
    return None if as_on_pool(needs, result.scheduler) else needs


def have_room(
    result: Result, rows: NDArray[np.int64], time: int, needs: Needs
) -> NDArray[np.bool_]:
    """Return whether the nodes hold each of some jobs beside those that run after a pass, (k,)."""
    assert result.allocation is not None
    start = result.start
    running = np.flatnonzero((start <= time) & (start + result.run_time > time))
    cells = result.allocation.rows(running)
    owner = np.repeat(running, np.diff(cells.first))
    free = result.cluster.capacity.astype(np.int64).copy()
    np.subtract.at(free, cells.node, cells.units[:, None] * needs[owner, 1:])
    demands, kind = np.unique(needs[rows, 1:], axis=0, return_inverse=True)
    held = [np.min(free[:, one > 0] // one[one > 0], axis=1) for one in demands]
    room = np.array([int(np.maximum(units, 0).sum()) for units in held], np.int64)
    found: NDArray[np.bool_] = room[kind.ravel()] >= needs[rows, 0]
    return found


class Spell(NamedTuple):
    """A part of a wait.

    Attributes
    ----------
    reason : what the job waited for, a name of :data:`REASONS`.
    behind : whether other jobs stood before it in the queue; not told of quotas, which keep a job
        wherever it stands.
    seconds : how long [s].
    """

    reason: str
    behind: bool
    seconds: int


def spells_of(
    result: Result, job: int, passes: Sequence[Pass], going_on: Callable[[], None] = lambda: None
) -> list[Spell]:
    """Return the parts of a job's wait, of each reason at most two, the longest first.

    If there are no passes, the list is empty; otherwise the parts add up to the wait. ``going_on``
    is called after each pass; what it raises ends this.
    """
    if not passes:
        return []
    submit, start = int(result.workload.submit_time[job]), int(result.start[job])
    # passes at single events: there is none for a job that does not fit as it comes
    seconds = {("processors", passes[0].ahead > 0): min(passes[0].at.time, start) - submit}
    needs, names = needs_of_nodes(result), list(REASONS)
    row = np.array([job])
    for one, spent in _with_times(passes, start):
        told = np.array([one.unseen]), np.array([bool(one.quotas)])
        name = names[int(reasons_at(result, row, one.at, *told, needs)[0])]
        part = name, one.ahead > 0 and name != "quota"
        seconds[part] = seconds.get(part, 0) + spent
        going_on()
    found = [Spell(name, behind, spent) for (name, behind), spent in seconds.items() if spent > 0]
    return sorted(found, key=lambda spell: -spell.seconds)


def summed(spells: Sequence[Spell]) -> dict[str, int]:
    """Return how long a job waited for what, reason -> [s]."""
    seconds: dict[str, int] = {}
    for spell in spells:
        seconds[spell.reason] = seconds.get(spell.reason, 0) + spell.seconds
    return seconds


def kept_by_quotas(passes: Sequence[Pass], start: int) -> dict[str, int]:
    """Return for how long a job would have exceeded each quota, quota -> [s]; at once, several."""
    seconds: dict[str, int] = {}
    for one, spent in _with_times(passes, start):
        for quota in map(str, one.quotas):
            seconds[quota] = seconds.get(quota, 0) + spent
    return seconds


def _with_times(passes: Sequence[Pass], start: int) -> Iterator[tuple[Pass, int]]:
    """Yield the passes at which a job did not start, with the time from each to the next [s]."""
    times = [one.at.time for one in passes] + [start]
    for one, until in zip(passes, times[1:], strict=True):
        if one.at.time < start:
            yield one, min(until, start) - one.at.time


def rights(result: Result, others: Meanwhile, passes: Sequence[Pass]) -> list[str]:
    """Return by what right each of some jobs ran while another waited: names of RIGHTS."""
    shadows = {one.at.time: one.at.shadow for one in passes}
    chosen = result.outside or result.dispatcher is not None
    plans = result.scheduler.backfill == "conservative" or result.scheduler.plans_anew
    found = []
    for place, row in enumerate(others.row.tolist()):
        start = int(others.start[place])
        if others.before[place]:
            found.append("ran")
        elif others.stopped[place]:
            found.append("stopped" if others.stopped[place] == SURELY else "may have stopped")
        elif others.resumed[place]:
            found.append("resumed")
        elif chosen:
            found.append("chosen")
        elif not others.marked[place]:
            found.append("unknown")
        elif not result.backfilled[row]:
            found.append("order")
        elif plans or start not in shadows:
            found.append("gap")
        else:
            ends = start + int(result.predicted_run_time[row])
            found.append("shadow" if ends <= shadows[start] else "extra")
    return found
