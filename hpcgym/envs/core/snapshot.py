"""Copies of simulations, and copies that hide what an online scheduler cannot know."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcgym.engine import state
from hpcgym.engine.answers.shares import Shares
from hpcgym.engine.ordered import BLOCK
from hpcgym.envs.core import arrays
from hpcgym.envs.core.native import Kept
from hpcgym.envs.core.simulations import Simulations
from hpcgym.errors import HpcgymError
from hpcgym.schedule.bounded_slowdown import bsld


class Snapshot(NamedTuple):
    """The state of one simulation; its arrays are copies."""

    # a row of each array of arrays.Batch, then of Shares where usage is counted, of the machine;
    # on the native engine of what steps write of an episode, by name
    rows: Any
    name: str
    owner: tuple[int, ...]  # the same for environments with the same jobs and rules
    # the jobs of the episode alone where it hides, else those of all; None on the native engine
    table: arrays.Table | None
    hides: bool = False
    generator: Any = None  # the state of what draws episodes, of a single environment
    limits: Any = ()  # of the episode
    counts: bool = False  # whether usage is counted
    kept: Kept | None = None  # on the native engine

    @property
    def n_rows_before_machine(self) -> int:
        """How many of the rows are not of the machine."""
        return len(arrays.Batch._fields) + (len(Shares._fields) if self.counts else 0)

    def __repr__(self) -> str:
        return f"Snapshot({self.name!r}, hides={self.hides})"


def save_row(
    simulations: Simulations, e: int, generator: np.random.Generator | None = None
) -> Snapshot:
    """Return a copy of simulation ``e``."""
    drawn = None if generator is None else generator.bit_generator.state
    if simulations.native is not None:
        return Snapshot(
            rows=simulations.native.rows(e),
            name=simulations.names[e],
            owner=simulations.fingerprint,
            table=None,
            hides=simulations.hides(e),
            generator=drawn,
            limits=simulations.machines.limits_now(e),
            kept=simulations.native.kept(e),
        )
    rows = [array[e].copy() for array in simulations.changing]
    hides, table = simulations.hides(e), simulations.whole
    if hides:
        episode = rows[_PLACE]
        first, n = int(episode.start), int(episode.jobs)
        table = _part_of(simulations.table, first, n)
        episode.start = 0
    return Snapshot(
        rows=tuple(rows),
        name=simulations.names[e],
        owner=simulations.fingerprint,
        table=table,
        hides=hides,
        generator=drawn,
        limits=simulations.machines.limits_now(e),
        counts=simulations.usage is not None,
    )


def check_owner(simulations: Simulations, snapshot: Snapshot) -> None:
    """Raise unless a snapshot is of these simulations, or of others with the same arguments."""
    if not isinstance(snapshot, Snapshot):
        raise HpcgymError(f"snapshot must be what snapshot() returned, not {type(snapshot)}")
    if snapshot.owner != simulations.fingerprint:
        raise HpcgymError("snapshot: it is of an environment with other jobs or arguments")


def restore_row(simulations: Simulations, e: int, snapshot: Snapshot) -> None:
    """Make simulation ``e`` what it was when the snapshot was taken.

    Its table is to be set, and then what it shows: ``simulations.show``.
    """
    simulations.names[e] = snapshot.name
    if simulations.native is not None:
        assert snapshot.kept is not None
        simulations.machines.take_limits(e, snapshot.limits)
        simulations.native.put(e, snapshot.kept, snapshot.rows)
        return
    of_machine = snapshot.rows[snapshot.n_rows_before_machine :]
    simulations.machines.make_room(e, of_machine, snapshot.limits)
    for array, row in zip(simulations.changing, snapshot.rows, strict=True):
        array[_within(e, row)] = row


def table_for(simulations: Simulations, snapshot: Snapshot) -> arrays.Table:
    """Return the table that serves a restored snapshot."""
    own = snapshot.table if snapshot.hides else None
    return simulations.whole if own is None else own


def _within(e: int, row: NDArray[Any]) -> tuple[Any, ...]:
    """Return where a saved row lies in an array: its first places in row ``e``."""
    return (e, *map(slice, row.shape))


def joined(whole: arrays.Table, snapshots: list[Snapshot]) -> tuple[arrays.Table, list[Snapshot]]:
    """Return one table that serves all snapshots: the whole, and behind it what some have alone.

    Snapshots with a table of their own are returned with their place in the new one.
    """
    tables, moved, rows = [whole], [], len(whole.jobs)
    for snapshot in snapshots:
        if snapshot.hides and snapshot.table is not None:
            episode = snapshot.rows[_PLACE].copy()
            episode["start"] += rows
            parts = (*snapshot.rows[:_PLACE], episode, *snapshot.rows[_PLACE + 1 :])
            tables.append(snapshot.table)
            rows += len(snapshot.table.jobs)
            moved.append(snapshot._replace(rows=parts))
        else:
            moved.append(snapshot)
    if len(tables) == 1:
        return whole, moved
    columns: dict[str, Any] = {
        name: np.concatenate([getattr(table, name) for table in tables]) for name in _BY_ROW
    }
    gap = len(whole.keys) - len(whole.jobs)
    if len(whole.keys):
        columns["keys"] = np.concatenate([whole.keys, *(table.keys[gap:] for table in tables[1:])])
    return whole._replace(**columns), moved


_CANNOT_HIDE = (
    "snapshot: the future can be hidden on pools of processors only, without quotas, windows,"
    " dependencies and preemption"
)
_PLACE = arrays.Batch._fields.index("episode_state")
#: Fields of a table that have an entry for each row of jobs, or none at all.
_BY_ROW = (
    "jobs",
    "users",
    "second_scores",
    "weighed",
    "serial",
    "columns",
    "predicted",
    "ordered_by",
    "classes",
    "asked",
)


def hidden(snapshot: Snapshot, simulations: Simulations) -> Snapshot:
    """Return the snapshot with predictions for what is not known yet.

    Jobs that have not ended run for their predicted run times, and jobs that have not been
    submitted are no more: rewards are scaled as for an episode of the known jobs.
    """
    if snapshot.kept is not None:
        return _hidden_natively(snapshot, simulations)
    if len(snapshot.rows) > snapshot.n_rows_before_machine:
        raise HpcgymError(_CANNOT_HIDE)
    assert snapshot.table is not None
    copies, kinds = [row.copy() for row in snapshot.rows], len(arrays.Batch._fields)
    rows, accounts = arrays.Batch(*copies[:kinds]), copies[kinds:]
    first, n = int(rows.episode_state["start"]), int(rows.episode_state["jobs"])
    known = int(rows.sim["next"])
    table = _part_of(snapshot.table, first, known)
    progress, run = rows.progress[:known], table.jobs["run"]
    start = progress["start"]
    waiting = start < 0
    run[waiting] = np.maximum(progress["predicted"][waiting], 1)
    used = rows.blocks[state.RUNNING]
    for position in range(used["in_use"]):
        block = rows.blocks["order"][used["first"] + position]
        here = rows.entries[block * BLOCK : block * BLOCK + rows.blocks["count"][block]]
        here["span"] = here["key"]
        run[here["job"]] = here["span"] - start[here["job"]]
        if len(here):
            rows.blocks["least_span"][block] = here["span"].min()
    rows.episode_state["start"] = 0
    _end_with(rows.episode_state, waiting)
    rows.sim["changed"] = 1
    for scores in (rows.scores, Shares(*accounts).base) if accounts else (rows.scores,):
        if scores.size:
            # the second half is for the secondary order, and begins behind the jobs
            scores[known : 2 * known] = scores[n : n + known].copy()
    _count_anew(rows, table, table.jobs, start, int(rows.sim["time"]))
    if table.sim[0].managed == 0:
        rows = rows._replace(counted_j=np.zeros_like(rows.counted_j))
    # what an extract has used before its first step is in the sums
    rows = rows._replace(begun_j=np.zeros_like(rows.begun_j))
    return snapshot._replace(table=table, rows=(*rows, *accounts), hides=True)


def _hidden_natively(snapshot: Snapshot, simulations: Simulations) -> Snapshot:
    """Return the same on the native engine."""
    table, kept = simulations.table, snapshot.kept
    assert kept is not None
    try:
        found = kept.hidden()
    except ValueError:
        raise HpcgymError(_CANNOT_HIDE) from None
    start = found.schedule()["start"]
    rows = {name: row.copy() for name, row in snapshot.rows.items()}
    episode = rows["episode_state"] = rows["episode_state"].view(arrays.EPISODE)[0]
    first = int(episode["start"])
    jobs = table.jobs[first : first + len(start)].copy()
    jobs["run"] = found.run_times()
    _end_with(episode, start < 0)
    _count_anew(SimpleNamespace(**rows), table, jobs, start, found.time)
    rows["episode_state"] = np.array([episode]).view(np.int64)
    if table.sim[0].managed == 0:
        rows["counted_j"][:] = 0
    rows["begun_j"][:] = 0
    return snapshot._replace(rows=rows, hides=True, kept=Kept(found, True))


def _end_with(episode: Any, waiting: NDArray[np.bool_]) -> None:
    """Let an episode have the jobs alone that are known, of which some wait, (n_jobs,) bool."""
    known = episode["jobs"] = len(waiting)
    episode["hides"] = 1
    # to the last start of what is known to count
    episode["until"] = state.FOREVER
    counting = episode["counting"] = min(int(episode["counting"]), known)
    # none counts where all that do are still to come
    first = episode["counts_first"] = min(int(episode["counts_first"]), counting)
    episode["open"] = int(np.count_nonzero(waiting[first:counting]))


def _count_anew(
    rows: Any, table: arrays.Table, known: NDArray[np.void], starts: NDArray[np.int64], time: int
) -> None:
    """Compute the sums and scales of rewards from what is known: jobs, and their starts [s].

    Jobs that ran when the episode began count for the machine alone, and from then on. ``time``:
    the present [s].
    """
    begun = starts >= 0
    jobs, start = known[begun], starts[begun]
    begin, episode = int(rows.episode_state["begin"]), rows.episode_state
    counts = (start >= begin) & (np.flatnonzero(begun) >= int(episode["counts_first"]))
    counts &= np.flatnonzero(begun) < int(episode["counting"])
    paid = int(table.settings[0].paid)
    if paid == arrays.PAID_AT_END:  # those that run will be paid yet
        counts &= ~np.isin(np.flatnonzero(begun), rows.unpaid[: int(episode["unpaid"])])
    decided, run = start >= begin, jobs["run"] - np.maximum(begin - start, 0)
    wait = (start - jobs["submit"])[counts]
    seconds = float((jobs["processors"] * run.astype(np.float64)).sum())
    watts, machine = table.watts, int(table.settings[0].processors)
    rows.totals[arrays.BSLD] = bsld(wait, jobs["run"][counts]).sum()
    rows.totals[arrays.WAIT] = wait.sum()
    if paid == arrays.PAID_WHILE_WAITING:
        owed = _owed(episode, known, ~begun, time)
        rows.owed[[arrays.BSLD, arrays.WAIT]] = owed
        rows.totals[[arrays.BSLD, arrays.WAIT]] += owed
    joules = rows.counted_j.item()
    n = int(episode["of_slice"]) or max(len(known) - int((~decided).sum()), 1)
    if table.sim[0].managed == 0:
        elapsed = float(rows.episode_state["last_time"] - begin)
        joules = (elapsed * machine - seconds) * watts[arrays.IDLING]
    rows.totals[arrays.ENERGY] = joules + seconds * watts[arrays.BUSY]
    last = int(known["submit"][-1]) if len(known) else begin
    span = float(max(last - begin, 0) + 1)
    rows.norms[arrays.BSLD], rows.norms[arrays.WAIT] = -1.0 / n, -1.0 / (3600.0 * n)
    rows.norms[arrays.ENERGY] = -1.0 / max(watts[arrays.BUSY] * machine * span, 1.0)


def _owed(
    episode: Any, known: NDArray[np.void], waiting: NDArray[np.bool_], time: int
) -> tuple[float, float]:
    """Return the slowdowns and waits so far of jobs that wait and may count, (n_jobs,) bool."""
    some = slice(int(episode["counts_first"]), int(episode["counting"]))
    jobs = known[some][waiting[some]]
    wait = time - jobs["submit"]
    return float(bsld(wait, jobs["run"]).sum()), float(wait.sum())


def _part_of(table: arrays.Table, first: int, n: int) -> arrays.Table:
    """Return the part of a table that some jobs of an episode need, as copies."""

    def part(array: NDArray[Any]) -> NDArray[Any]:
        return array[first : first + n].copy() if len(array) else array

    gap = len(table.keys) - len(table.jobs)
    keys = table.keys
    if len(keys):
        # as many keys of padding in front as episodes can have jobs
        keys = np.concatenate([keys[:gap], keys[gap + first : gap + first + n]])
    parts: dict[str, Any] = {name: part(getattr(table, name)) for name in _BY_ROW}
    return table._replace(keys=keys, **parts)
