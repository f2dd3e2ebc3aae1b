"""Copies of simulations, and copies that hide what an online scheduler cannot know."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcgym._engine import FOREVER
from hpcgym.envs.core import arrays
from hpcgym.envs.core.cutting import Episode
from hpcgym.envs.core.simulations import Kept, Simulations
from hpcgym.errors import HpcgymError
from hpcgym.schedule.metrics import bsld
from hpcgym.scheduler.dispatchers import PassView
from hpcgym.scheduler.dispatchers.asking import Facts, on_one_node, present_in, view_at
from hpcgym.simulation.driver import with_jobs
from hpcgym.simulation.nodes import Nodes, facts_of, pool_as_node

# --- What a dispatcher may know of an environment's state -----------------------------------------


def pass_view(simulations: Simulations, e: int, rows: NDArray[np.int64]) -> PassView:
    """Return a view of simulation ``e`` in which these rows of the episode are queued.

    A machine whose jobs ask for single cores is one node with all of them, as a pool is.

    Raises
    ------
    HpcgymError : a machine whose jobs have nodes of their own: there only ``simulate`` asks them.
    """
    if "limited" in simulations.machines.told:
        raise HpcgymError(
            "pass_view: where jobs have nodes of their own, under limits too, dispatchers are asked"
            " by simulate() only"
        )
    shown, native = _shown(simulations, e), simulations.simulation(e)
    told, queued = native.view(), np.sort(rows)
    if "free" not in told:
        told = on_one_node(told, native.free)
    told |= {"queued": queued, "duration": native.schedule()["predicted"][queued]}
    present = present_in(told, native.time, simulations.jobs(e))
    return view_at(present, shown.nodes, told, shown.facts)


class _Shown(NamedTuple):
    """What views of an episode have in common; see :func:`_shown`."""

    episode: Episode
    facts: Facts
    nodes: Nodes


def _shown(simulations: Simulations, e: int) -> _Shown:
    """Return what views of the present episode have in common, made at the first of them."""
    episode = simulations.present(e)
    kept: _Shown | None = simulations.shown.get(e)
    if kept is None or kept.episode != episode:
        cluster, machines = simulations.options.cluster, simulations.machines
        workload = simulations.episodes.workload_of(episode)
        facts = facts_of(workload, cluster, pool=machines.place == "pool")
        if machines.place == "pool":
            nodes = pool_as_node(workload.requested_processors, cluster.processors)
        else:
            start, n = simulations.rows(e)
            nodes = machines.told["nodes"]
            nodes = nodes._replace(needs=nodes.needs[start : start + n])
        kept = simulations.shown[e] = _Shown(episode, facts, nodes)
    return kept


# --- Copies of simulations ------------------------------------------------------------------------


class Snapshot(NamedTuple):
    """The state of one simulation; its arrays are copies."""

    rows: dict[str, NDArray[Any]]  # what steps write of an episode, by name
    name: str  # of the episode
    owner: tuple[int, ...]  # the same for environments with the same jobs and rules
    kept: Kept
    hides: bool = False
    generator: Any = None  # the state of what draws episodes, of a single environment
    limits: Any = ()  # of the episode

    def __repr__(self) -> str:
        return f"Snapshot({self.name!r}, hides={self.hides})"


def save_row(
    simulations: Simulations, e: int, generator: np.random.Generator | None = None
) -> Snapshot:
    """Return a copy of simulation ``e``."""
    return Snapshot(
        rows=simulations.written(e),
        name=simulations.names[e],
        owner=simulations.fingerprint,
        kept=simulations.kept(e),
        hides=simulations.hides(e),
        generator=None if generator is None else generator.bit_generator.state,
        limits=simulations.limits[e],
    )


def check_owner(simulations: Simulations, snapshot: Snapshot) -> None:
    """Raise unless a snapshot is of these simulations, or of others with the same arguments."""
    if not isinstance(snapshot, Snapshot):
        raise HpcgymError(f"snapshot must be what snapshot() returned, not {type(snapshot)}")
    if snapshot.owner != simulations.fingerprint:
        raise HpcgymError("snapshot: it is of an environment with other jobs or arguments")


def restore_row(simulations: Simulations, e: int, snapshot: Snapshot) -> None:
    """Make simulation ``e`` what it was when the snapshot was taken.

    What it shows is to be told then: ``simulations.show``.
    """
    simulations.names[e], simulations.limits[e] = snapshot.name, snapshot.limits
    simulations.put(e, snapshot.kept, snapshot.rows)


_CANNOT_HIDE = (
    "snapshot: the future can be hidden on pools of processors only, without quotas, windows,"
    " dependencies and preemption"
)


def hidden(snapshot: Snapshot, simulations: Simulations) -> Snapshot:
    """Return the snapshot with predictions for what is not known yet.

    Jobs that have not ended run for their predicted run times, and jobs that have not been
    submitted are no more: rewards are scaled as for an episode of the known jobs.
    """
    managed = simulations.told.rules.get("managed", 0)
    try:
        found = snapshot.kept.hidden()
    except ValueError:
        raise HpcgymError(_CANNOT_HIDE) from None
    start = found.schedule()["start"]
    rows = {name: row.copy() for name, row in snapshot.rows.items()}
    episode = rows["episode_state"] = rows["episode_state"].view(arrays.EPISODE)[0]
    first = int(episode["start"])
    jobs = simulations.told.jobs[first : first + len(start)].copy()
    jobs["run"] = found.run_times()
    jobs["run"] = with_jobs(found.schedule(), jobs, simulations.told.rules)["run"]
    _end_with(episode, start < 0)
    _count_anew(SimpleNamespace(**rows), simulations.table, jobs, start, found.time, managed == 1)
    rows["episode_state"] = np.array([episode]).view(np.int64)
    if not managed:
        rows["counted_j"][:] = 0
    rows["begun_j"][:] = 0
    return snapshot._replace(rows=rows, hides=True, kept=Kept(found, True))


def _end_with(episode: Any, waiting: NDArray[np.bool_]) -> None:
    """Let an episode have the jobs alone that are known, of which some wait, (n_jobs,) bool."""
    known = episode["jobs"] = len(waiting)
    episode["hides"] = 1
    # to the last start of what is known to count
    episode["until"] = FOREVER
    counting = episode["counting"] = min(int(episode["counting"]), known)
    # none counts where all that do are still to come
    first = episode["counts_first"] = min(int(episode["counts_first"]), counting)
    episode["open"] = int(np.count_nonzero(waiting[first:counting]))


def _count_anew(
    rows: Any,
    table: arrays.Table,
    known: NDArray[np.void],
    starts: NDArray[np.int64],
    time: int,
    managed: bool,
) -> None:
    """Compute the sums and scales of rewards from what is known: jobs, and their starts [s].

    Jobs that ran when the episode began count for the machine alone, and from then on. ``time``:
    the present [s]; ``managed``: whether idle processors are switched off.
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
    if not managed:
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
