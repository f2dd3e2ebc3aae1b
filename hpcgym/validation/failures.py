"""What can be proved where nodes fail, for :mod:`hpcgym.validation.validate`.

Most of it is proved of all runs as if each was a job, lost ones too.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from hpcgym.schedule.lost_runs import LostRuns, runs_of
from hpcgym.schedule.node_states import OFF
from hpcgym.scheduler.quotas import bound_submissions
from hpcgym.validation.all_runs import (
    NO_DELAYS,
    check_shapes,
    check_successive,
    energies_of_runs,
    last_runs,
)
from hpcgym.validation.books import check_books, check_states
from hpcgym.validation.dependencies import check_dependencies
from hpcgym.validation.nodes import Down, check_nodes, check_units
from hpcgym.validation.orders import first_waiting, static_rank
from hpcgym.validation.passes import check_backfilled, check_order
from hpcgym.validation.promises import (
    check_predictions,
    check_promises,
    check_reservations,
    known_beforehand,
    reservations_are_guaranteed,
)
from hpcgym.validation.quotas import check_quotas
from hpcgym.validation.schedules import (
    Mask,
    Timeline,
    Times,
    cases,
    check_beginning,
    check_capacity,
    check_events,
    check_lengths,
    check_progress,
    check_submission,
    timeline_of,
)
from hpcgym.validation.submitted import check_submitted
from hpcgym.validation.windows import check_windows, window_ends
from hpcgym.workload.needs import needs_of

if TYPE_CHECKING:
    from hpcgym.schedule.result import Result


def prove_failures(result: Result, actual: Times, length: Times) -> Iterator[tuple[str, list[str]]]:
    """Look at a schedule on nodes that fail.

    Parameters
    ----------
    actual, length : (n_jobs,) [s] run times cut at the requested time, and as the last run has to
        be.
    """
    lost = result.lost
    assert lost is not None
    found = check_shapes(result, lost)
    yield "units", found
    if found:
        return
    yield "lengths", check_lengths(result, length, length)
    runs, job = runs_of(result)
    last = last_runs(runs, job)
    lasts = np.where(last, length[job], runs.run_time)
    windows = window_ends(result)
    line = timeline_of(runs, lasts, np.concatenate([changes_of(lost), windows]))
    needs = needs_of(result.workload, result.cluster.resources)[job]
    sound = {
        "submission": check_submission(result) + check_submission(runs),
        "capacity": check_capacity(runs, line),
        "units": check_units(runs.allocation, needs, result.cluster.nodes),
    }
    if result.workload.initial is not None:
        sound["beginning"] = check_beginning(replace(result, start=_first_starts(result, lost)))
    if not sound["units"] and runs.allocation is not None:
        sound["nodes"] = check_nodes(runs, needs, runs.allocation)
        sound["runs"] = _check_runs(result, lost, length)
        sound["states"] = check_down(result, lost) + check_states(runs)
    sound |= of_restrictions(result, runs, not sound["units"])
    if result.dispatching is None:
        sound["events"] = check_events(runs, line, NO_DELAYS)
    yield from sound.items()
    yield "predictions", check_predictions(result, actual)
    asks = result.scheduler.dispatcher is not None
    if not asks:
        yield "promises", check_promises(result)
    if any(sound.values()):
        return
    yield "energy", check_books(runs.from_begin) + energies_of_runs(result, runs)
    if asks:
        return
    down = _places(line, lost)
    excused = some_down(line, lost) | (line.time < windows.max(initial=-1))
    yield "progress", check_progress(line, NO_DELAYS, excused)
    if not result.scheduler.quotas:  # for which a job may wait
        yield from _of_passes(result, runs, job, last, line, down, needs, length, actual)


def changes_of(lost: LostRuns) -> Times:
    """Return when nodes fail or are repaired [s]."""
    changes: Times = np.concatenate([lost.failures.time, lost.failures.repaired])
    return changes


def of_restrictions(result: Result, runs: Result, has_units: bool) -> dict[str, list[str]]:
    """Look at what restricts who may start when, of all ``runs``."""
    rules, found = result.scheduler, {}
    if rules.windows and has_units:
        found["windows"] = check_windows(runs)
    if rules.quotas:
        found["quotas"] = check_quotas(runs)
    if rules.dependencies != "none":
        found["dependencies"] = check_dependencies(result)
    if bound_submissions(rules.quotas):
        found["submitted"] = check_submitted(result)
    return found


def _first_starts(result: Result, lost: LostRuns) -> Times:
    """Return when the first run of each job began, (n_jobs,) [s]."""
    first: Times = result.start.copy()
    np.minimum.at(first, lost.job, lost.start)
    return first


def _check_runs(result: Result, lost: LostRuns, length: Times) -> list[str]:
    """Find lost runs that do not end with the first failure of a node that they have."""
    job, end = lost.job, lost.end
    return [
        *cases(first_failures(lost) != end, "lost run {} of job {} ends at {} s, when none of its"
               " nodes fails, or after the first did", job, end),
        *check_successive(result, lost, length),
    ]  # fmt: skip


def first_failures(lost: LostRuns) -> Times:
    """Return when the first node fails that each run has, after its start, (k,) [s]; or never."""
    job, start = lost.job, lost.start
    owner = np.repeat(np.arange(len(job)), np.diff(lost.first))
    failures = lost.failures
    by_node = np.lexsort((failures.time, failures.node))
    moments = np.unique(np.concatenate([failures.time, start]))

    def key(node: Times, time: Times) -> Times:
        place: Times = node * (len(moments) + 1) + np.searchsorted(moments, time)
        return place

    keys = key(failures.node, failures.time)[by_node]
    # the first failure of each node of a run after its start
    at = np.searchsorted(keys, key(lost.node.astype(np.int64), start[owner]), "right")
    first = np.full(len(job), 2**62)
    if len(keys):
        there = np.minimum(at, len(keys) - 1)
        hit = (at < len(keys)) & (failures.node[by_node][there] == lost.node)
        np.minimum.at(first, owner[hit], failures.time[by_node][there[hit]])
    return first


def check_down(result: Result, lost: LostRuns) -> list[str]:
    """Compare what the schedule says of states of nodes with the failures."""
    states, failures = result.node_states, lost.failures
    if states is None:
        return ["the schedule does not say when nodes are down"] if len(failures) else []
    order = np.lexsort((failures.time, failures.node))
    table = (failures.node[order], failures.time[order], failures.repaired[order])
    same = all(map(np.array_equal, table, (states.node, states.begin, states.end)))
    same = same and bool((states.state == OFF).all())
    return [] if same else ["states of nodes: they are not off exactly while they are down"]


def _places(line: Timeline, lost: LostRuns) -> Down:
    """Return nodes, and from and up to which place in the line they are down."""
    failures = lost.failures
    begin, end = (np.searchsorted(line.time, at) for at in (failures.time, failures.repaired))
    return failures.node, begin, end


def some_down(line: Timeline, lost: LostRuns) -> Mask:
    """Return at which times of the line a node is down."""
    down = _places(line, lost)
    change = np.zeros(line.time.size + 1, np.int64)
    np.add.at(change, down[1], 1)
    np.subtract.at(change, down[2], 1)
    some: Mask = np.cumsum(change)[:-1] > 0
    return some


def _of_passes(
    result: Result,
    runs: Result,
    job: Times,
    last: Mask,
    line: Timeline,
    down: Down,
    needs: Times,
    length: Times,
    actual: Times,
) -> Iterator[tuple[str, list[str]]]:
    """Look at what some schedulers guarantee; ``job`` and ``last`` are of each run."""
    rules, lost, workload = result.scheduler, result.lost, result.workload
    assert lost is not None
    if reservations_are_guaranteed(result, length):
        # what is promised for later times a failure may break
        kept = result.reserved_start < lost.failures.time.min(initial=2**62)
        first = _first_starts(result, lost)
        promised = np.where(kept, result.reserved_start, -1)
        yield (
            "reservations",
            check_reservations(replace(result, start=first, reserved_start=promised)),
        )
    times = known_beforehand(rules.policy_estimate, workload.requested_time, actual)
    rank = None if times is None else static_rank(workload, rules.policy, times)
    if rank is None:
        return
    # runs of a job never wait together: any order of them will do
    n = len(job)
    number, of_run = np.empty(n, np.int64), np.empty(n, np.int64)
    number[np.argsort(job, kind="stable")] = np.arange(n)
    of_run[np.argsort(rank[job], kind="stable")] = np.arange(n)
    submit, threshold = workload.submit_time[job], rules.threshold
    waiting = first_waiting(submit, threshold, of_run, line.time, line.submit, line.start, number)
    if rules.backfill != "conservative" and not rules.windows:
        yield "order", check_order(runs, line, of_run, waiting, needs, number, down)
    yield "backfilled", check_backfilled(runs, line, of_run, waiting, submit, number, last)
