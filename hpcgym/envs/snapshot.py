"""Copies of simulations, and copies that hide what an online scheduler cannot know."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcgym.engine import state
from hpcgym.engine.ordered import BLOCK
from hpcgym.envs import kernel
from hpcgym.envs.simulations import Simulations


class Snapshot(NamedTuple):
    """The state of one simulation; its arrays are copies."""

    table: kernel.Table
    rows: tuple[NDArray[Any], ...]  # a row of each array of kernel.Batch
    observation: NDArray[np.float32]
    mask: NDArray[np.int8]
    ended: bool
    name: str
    generator: Any = None  # the state of what draws episodes, of a single environment


def save_row(
    simulations: Simulations, e: int, generator: np.random.Generator | None = None
) -> Snapshot:
    """Return a copy of simulation ``e``."""
    rows = tuple(array[e].copy() for array in simulations.batch)
    out = simulations.out
    seen = out.observations[e].copy(), out.masks[e].copy()
    ended, name = bool(out.ended[e]), simulations.names[e]
    state_of = None if generator is None else generator.bit_generator.state
    return Snapshot(simulations.table, rows, *seen, ended, name, state_of)


def restore_row(simulations: Simulations, e: int, snapshot: Snapshot) -> None:
    """Make simulation ``e`` what it was when the snapshot was taken; its table is to be set."""
    for array, row in zip(simulations.batch, snapshot.rows, strict=True):
        array[e] = row
    simulations.out.observations[e] = snapshot.observation
    simulations.out.masks[e] = snapshot.mask
    simulations.out.ended[e] = snapshot.ended
    simulations.names[e] = snapshot.name


def joined(whole: kernel.Table, snapshots: list[Snapshot]) -> tuple[kernel.Table, list[Snapshot]]:
    """Return one table that serves all snapshots: the whole, and behind it what some have alone.

    Snapshots with a table of their own are returned with their place in the new one.
    """
    tables, moved, rows = [whole], [], len(whole.jobs)
    for snapshot in snapshots:
        if snapshot.table is not whole:
            place = snapshot.rows[_PLACE].copy()
            place[kernel.START] += rows
            parts = (*snapshot.rows[:_PLACE], place, *snapshot.rows[_PLACE + 1 :])
            snapshot = snapshot._replace(rows=parts)
            tables.append(snapshot.table)
            rows += len(snapshot.table.jobs)
        moved.append(snapshot)
    if len(tables) == 1:
        return whole, moved
    columns = {name: np.concatenate([getattr(table, name) for table in tables]) for name in _BY_ROW}
    gap = len(whole.keys) - len(whole.jobs)
    if len(whole.keys):
        columns["keys"] = np.concatenate([whole.keys, *(table.keys[gap:] for table in tables[1:])])
    return whole._replace(**columns), moved


_PLACE = kernel.Batch._fields.index("place")
#: Fields of a table that have an entry for each row of jobs, or none at all.
_BY_ROW = ("jobs", "users", "second_scores", "weighed", "serial", "columns", "predicted")


def hidden(snapshot: Snapshot) -> Snapshot:
    """Return the snapshot with predictions for what is not known yet.

    Jobs that have not ended run for their predicted run times, and jobs that have not been
    submitted never will be.
    """
    rows = kernel.Batch(*snapshot.rows)
    first, n = int(rows.place[kernel.START]), int(rows.place[kernel.JOBS])
    known = int(rows.sim[state.NEXT])
    table = _table_of(snapshot.table, first, n)
    progress = rows.progress[:known]
    start, run = progress["start"], table.jobs["run"][:known]
    waiting = start < 0
    run[waiting] = np.maximum(progress["predicted"][waiting], 1)
    blocks, entries = rows.blocks.copy(), rows.entries.copy()
    used = blocks[state.RUNNING]
    for position in range(used["in_use"]):
        block = blocks["order"][used["first"] + position]
        here = entries[block * BLOCK : block * BLOCK + blocks["count"][block]]
        here["span"] = here["key"]
        run[here["job"]] = here["span"] - start[here["job"]]
        if len(here):
            blocks["least_span"][block] = here["span"].min()
    place = rows.place.copy()
    place[kernel.START], place[kernel.JOBS] = 0, known
    sim = rows.sim.copy()
    sim[state.CHANGED] = 1
    rows = rows._replace(blocks=blocks, entries=entries, place=place, sim=sim)
    if rows.scores.size:
        # the second half is for the secondary order, and begins behind the jobs
        scores = rows.scores.copy()
        scores[known : 2 * known] = rows.scores[n : n + known]
        rows = rows._replace(scores=scores)
    return snapshot._replace(table=table, rows=tuple(rows))


def _table_of(table: kernel.Table, first: int, n: int) -> kernel.Table:
    """Return the part of a table that an episode needs, as copies."""

    def part(array: NDArray[Any]) -> NDArray[Any]:
        return array[first : first + n].copy() if len(array) else array

    gap = len(table.keys) - len(table.jobs)
    keys = table.keys
    if len(keys):
        # as many keys of padding in front as episodes can have jobs
        keys = np.concatenate([keys[:gap], keys[gap + first : gap + first + n]])
    return table._replace(keys=keys, **{name: part(getattr(table, name)) for name in _BY_ROW})
