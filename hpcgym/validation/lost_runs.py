"""Proofs of schedules in which runs are lost or suspended: failures of nodes, and preemption.

Most of it is proved of all runs as if each was a job, also of those that were stopped. What is
proved of suspended jobs alone is in :mod:`hpcgym.validation.lost_runs`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hpcgym.schedule.runs import OFF, LostRuns, last_starts, queued_at, ran_before, runs_of
from hpcgym.scheduler.restrictions import bound_submissions
from hpcgym.validation.books import check_books, check_states
from hpcgym.validation.passes import (
    Down,
    check_backfilled,
    check_nodes,
    check_order,
    check_predictions,
    check_promises,
    check_reservations,
    check_units,
    first_waiting,
    known_beforehand,
    reservations_are_guaranteed,
    static_rank,
)
from hpcgym.validation.restrictions import (
    COLUMNS,
    check_dependencies,
    check_quotas,
    check_submitted,
    check_windows,
    window_ends,
)
from hpcgym.validation.schedules import (
    Mask,
    Timeline,
    Times,
    cases,
    check_beginning,
    check_capacity,
    check_energy,
    check_events,
    check_lengths,
    check_progress,
    check_submission,
    timeline_of,
)
from hpcgym.workload.io.swf_header import names_of
from hpcgym.workload.needs import needs_of

if TYPE_CHECKING:
    from hpcgym.schedule.result import Result
    from hpcgym.scheduler.restrictions import Preemption


# --- What can be proved of all runs of jobs -------------------------------------------------------

#: Nothing waits for nodes that are switched on.
NO_DELAYS = (0, 0)
_RELATIVE_ERROR = 1e-12


def check_shapes(result: Result, lost: LostRuns, on_nodes: bool = True) -> list[str]:
    """Find a schedule that does not tell which runs were lost, and who had which nodes."""
    k, m = len(lost.job), len(lost.node)
    shapes = [np.shape(column) for column in lost[1:]]
    told = not on_nodes or result.allocation is not None
    if not told or shapes != [(k,), (k,), (k,), (k + 1,), (m,), (m,)]:
        return ["the schedule does not tell which nodes lost runs and jobs had"]
    ordered = np.lexsort((lost.end, lost.job))
    if (ordered != np.arange(k)).any() or (np.diff(lost.first) < 0).any():
        return ["lost runs are not in the order of jobs and times"]
    return cases((lost.job < 0) | (lost.job >= len(result.start)), "lost run {} is of no job")


def last_runs(runs: Result, job: Times) -> Mask:
    """Return which of all runs is the last of its job, (n_runs,); ``job`` is of each run."""
    order = np.lexsort((runs.start, job))
    last = np.zeros(len(job), np.bool_)
    last[order] = np.append(np.diff(job[order]) != 0, True)[: len(job)]
    return last


def check_successive(result: Result, lost: LostRuns, length: Times) -> list[str]:
    """Find lost runs that were over when they were lost, or that overlap another of their job.

    ``length`` (n_jobs,) is how long a whole run lasts [s].
    """
    job, start, end = lost.job, lost.start, lost.end
    since, last = queued_at(result)
    return [
        *cases(end - start >= length[job], "lost run {} of job {} was over at {} s", job, end),
        *cases(start < since, "lost run {} of job {} starts at {} s, before the last", job, start),
        *cases(last_starts(result) < last, "job {} starts at {} s, while another run of it lasts",
               last_starts(result)),
    ]  # fmt: skip


def energies_of_runs(result: Result, runs: Result) -> list[str]:
    """Compare energies of the schedule with those of its runs."""
    mine, theirs = result.metrics, runs.metrics
    charged = math.fsum(result.books.by_job().tolist())
    pairs = [(name, mine[name], theirs[name]) for name in theirs if name.startswith("energy_")]
    pairs.append(("what jobs are charged", charged, theirs["energy_busy_j"]))
    return [
        f"{name}: {value} J instead of {expected} J"
        for name, value, expected in pairs
        if not math.isclose(value, expected, rel_tol=_RELATIVE_ERROR)
    ]


# --- What can be proved where nodes fail ----------------------------------------------------------
#
# Most of it is proved of all runs as if each was a job, lost ones too.


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
    if not result.scheduler.quota:  # for which a job may wait
        yield from _of_passes(result, runs, job, last, line, down, needs, length, actual)


def changes_of(lost: LostRuns) -> Times:
    """Return when nodes fail or are repaired [s]."""
    changes: Times = np.concatenate([lost.failures.time, lost.failures.repaired])
    return changes


def of_restrictions(result: Result, runs: Result, has_units: bool) -> dict[str, list[str]]:
    """Look at what restricts who may start when, of all ``runs``."""
    rules, found = result.scheduler, {}
    if rules.maintenance and has_units:
        found["windows"] = check_windows(runs)
    if rules.quota:
        found["quotas"] = check_quotas(runs)
    if rules.dependencies != "none":
        found["dependencies"] = check_dependencies(result)
    if bound_submissions(rules.quota):
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
    if not rules.reserve.conservative and not rules.maintenance:
        yield "order", check_order(runs, line, of_run, waiting, needs, number, down)
    yield "backfilled", check_backfilled(runs, line, of_run, waiting, submit, number, last)


# --- What can be proved of jobs that are suspended ------------------------------------------------


def check_pieces(result: Result, pieces: LostRuns, length: Times) -> list[str]:
    """Find jobs whose pieces do not add up to their run time, from their start to their end.

    ``length`` (n_jobs,) is how long a whole run lasts [s].
    """
    assert result.suspended is not None
    ran, paused = ran_before(result), result.suspended
    first = result.start.copy()
    first[pieces.job[::-1]] = pieces.start[::-1]
    stopped = np.zeros(len(result.start), np.bool_)
    stopped[pieces.job] = True
    text = "job {} has run for {} s when it goes on for the last time, of {} s"
    return [
        *cases(first != result.start, "job {} starts at {} s, its first piece at {} s",
               result.start, first),
        *cases((paused < 0) | ((paused > 0) & ~stopped), "job {} was suspended for {} s", paused),
        *cases(ran >= length, text, ran, length),
    ]  # fmt: skip


def check_kept(result: Result, pieces: LostRuns) -> list[str]:
    """Find jobs that go on on other nodes, and memory that others use while they are suspended.

    All but cores stays taken from the first start of a job to its end.
    """
    held = result.allocation
    assert held is not None
    for piece, job in enumerate(pieces.job.tolist()):
        own = slice(*held.first[job : job + 2].tolist())
        had = slice(*pieces.first[piece : piece + 2].tolist())
        mine = sorted(zip(held.node[own].tolist(), held.units[own].tolist(), strict=True))
        theirs = sorted(zip(pieces.node[had].tolist(), pieces.units[had].tolist(), strict=True))
        if mine != theirs:
            return [f"job {job} goes on on other nodes than those on which it was suspended"]
    needs = needs_of(result.workload, result.cluster.resources).copy()
    needs[:, 1] = 0
    return check_nodes(result, needs, held)


def check_going_on(
    result: Result, pieces: LostRuns, line: Timeline, called: Sequence[str]
) -> list[str]:
    """Find jobs of a pool that are still suspended when they could go on.

    One can if it fits beside all that run, and the suspended jobs that may stop it, at a time at
    which nobody is stopped.

    Parameters
    ----------
    line : of all runs.
    called : of each job, the name by which others may stop it.
    """
    rule = result.scheduler.preemption
    assert rule is not None
    last = np.append(pieces.job[1:] != pieces.job[:-1], True)[: len(pieces.job)]
    until = np.where(
        last, last_starts(result)[pieces.job], np.append(pieces.start[1:], 0)[: len(last)]
    )
    begin, end = np.searchsorted(line.time, pieces.end), np.searchsorted(line.time, until)
    width = result.workload.requested_processors[pieces.job]
    held = {name: np.zeros(len(line.time) + 1, np.int64) for name in rule.levels}
    for piece, job in enumerate(pieces.job.tolist()):
        held[called[job]][begin[piece]] += width[piece]
        held[called[job]][end[piece]] -= width[piece]
    held = {name: np.cumsum(changes)[:-1] for name, changes in held.items()}
    # who stops others may free more than it takes, after those of its level have been tried
    settled = ~np.isin(line.time, pieces.end)
    for piece, job in enumerate(pieces.job.tolist()):
        span = slice(begin[piece], end[piece])
        taken = line.used[span] + width[piece]
        for one, other in rule.pairs:
            if other == called[job]:
                taken = taken + held[one][span]
        found = cases(
            (taken <= result.cluster.processors) & settled[span],
            f"job {job} is still suspended at {{1}} s, when it fits",
            line.time[span],
        )
        if found:
            return found
    return []


# --- What can be proved where jobs stop others ----------------------------------------------------


def prove_preemption(
    result: Result, actual: Times, length: Times
) -> Iterator[tuple[str, list[str]]]:
    """Look at a schedule in which jobs stop others.

    Parameters
    ----------
    actual, length : (n_jobs,) [s] run times cut at the requested time, and as the last run has to
        be unless it was cancelled.
    """
    lost, rule = result.interrupted, result.scheduler.preemption
    assert rule is not None
    if lost is None or (result.suspended is None) == (rule.mode == "suspend"):
        yield "units", ["the schedule does not tell which runs other jobs ended"]
        return
    found = check_shapes(result, lost, bool(result.cluster.groups))
    yield "units", found
    if found:
        return
    cancels = rule.mode == "cancel"
    stopped = (result.run_time < length) & (result.run_time >= 1) & cancels
    length = np.where(stopped, result.run_time, length)
    yield "lengths", check_lengths(result, length, length)
    runs, job = runs_of(result)
    last = last_runs(runs, job)
    left = length - ran_before(result)
    length_of = np.where(last, left[job], runs.run_time)
    exempt = _exempt_until(runs, rule, np.array(called(result))[job])
    windows = window_ends(result)
    line = timeline_of(runs, length_of, np.concatenate([exempt, windows, changes_of(lost)]))
    sound = {
        "submission": check_submission(result) + check_submission(runs),
        "capacity": check_capacity(runs, line),
    }
    if runs.allocation is not None:
        needs = needs_of(result.workload, result.cluster.resources)[job]
        sound["units"] = check_units(runs.allocation, needs, result.cluster.nodes)
        if not sound["units"]:
            sound["nodes"] = check_nodes(runs, needs, runs.allocation)
            if rule.mode == "suspend":
                sound["nodes"] += check_kept(result, lost)
    sound |= of_restrictions(result, runs, not sound.get("units"))
    failed = first_failures(lost)
    if len(lost.failures):
        sound["states"] = check_down(result, lost) + check_states(runs)
    sound["runs"] = _check_stopped_runs(result, lost, actual, cancels & (failed != lost.end))
    sound["runs"] += cases(failed < lost.end, "lost run {} goes on when a node of it has failed")
    if rule.mode == "suspend":
        sound["runs"] += check_pieces(result, lost, length)
    if not sound["runs"] and not sound.get("units"):
        ended = lost.job[failed == lost.end].tolist(), lost.end[failed == lost.end].tolist()
        failing = {*zip(*ended, strict=True)}
        sound["preemption"] = _check_stops(result, runs, job, last, stopped, failing)
        if rule.mode == "suspend" and runs.allocation is None:
            sound["preemption"] += check_going_on(result, lost, line, called(result))
    if rule.mode == "suspend":
        line = replace(line, waiting=line.waiting - _suspended(line, job))
    sound["events"] = check_events(runs, line, NO_DELAYS)
    yield from sound.items()
    yield "predictions", check_predictions(result, actual)
    yield "promises", check_promises(result)
    if any(sound.values()):
        return
    if result.keeps_books:
        yield "energy", check_books(runs) + energies_of_runs(result, runs)
    else:
        yield "energy", check_energy(result, line.time, line.used)
    # up to the end of the last window a job may wait for it, whatever is idle
    excused = some_down(line, lost) | (line.time < windows.max(initial=-1))
    yield "progress", check_progress(line, NO_DELAYS, excused)


def _exempt_until(runs: Result, rule: Preemption, group: NDArray[np.str_]) -> Times:
    """Return when runs are no longer exempt that a waiting job may stop, (n_times,) [s].

    ``group``: what each run is called by which jobs may stop others, (n_runs,).
    """
    found = [np.zeros(0, np.int64)]
    least = int(runs.scheduler.passes == "per-event")
    exempt = dict.fromkeys(rule.stopped, least) if least else {}
    for name, seconds in {**exempt, **dict(rule.exempt)}.items():
        mine = group == name
        may = np.isin(group, [one for one, other in rule.pairs if other == name])
        until = runs.start[mine] + seconds
        until = until[(until < runs.end[mine]) & (until >= runs.begin)]
        came, gone = np.sort(runs.workload.submit_time[may]), np.sort(runs.start[may])
        waits = np.searchsorted(came, until) > np.searchsorted(gone, until)
        found.append(until[waits])
    return np.concatenate(found)


def _suspended(line: Timeline, job: Times) -> Times:
    """Return how many jobs are suspended at each time, (n_times,): these are not in the queue.

    ``job`` (n_runs,) is of each run, in the order in which they were submitted or suspended.
    """
    resumed = np.ones(len(job), np.bool_)
    resumed[np.unique(job, return_index=True)[1]] = False
    changes = np.zeros(line.time.size, np.int64)
    np.add.at(changes, line.submit[resumed], 1)
    np.add.at(changes, line.start[resumed], -1)
    return np.cumsum(changes)


def _check_stopped_runs(result: Result, lost: LostRuns, actual: Times, cancels: Mask) -> list[str]:
    """Find runs of a job that do not follow each other, or were over when they were stopped.

    ``cancels``: which of them should have been cancelled, (k,).
    """
    job, start, end = lost.job, lost.start, lost.end
    return [
        *cases(cancels, "run {} was stopped, and not cancelled"),
        *cases(end <= start, "lost run {} of job {} ends at {} s, when it starts", job, end),
        *check_successive(result, lost, actual),
    ]


def _check_stops(
    result: Result,
    runs: Result,
    job: Times,
    last: Mask,
    cancelled: Mask,
    failing: set[tuple[int, int]],
) -> list[str]:
    """Find runs that ended though no job that may stop them took what they had.

    Parameters
    ----------
    job, last : of each run.
    cancelled : (n_jobs,) whose last run was cut.
    failing : job and end of the runs that ended with a node.
    """
    rule = result.scheduler.preemption
    assert rule is not None
    group = called(result)
    starters: dict[int, list[int]] = {}
    for run, start in enumerate(runs.start.tolist()):
        if result.suspended is None or start == result.start[job[run]]:  # it does not go on
            starters.setdefault(start, []).append(run)
    end, of, exempt = runs.end.tolist(), job.tolist(), dict(rule.exempt)
    for run in np.flatnonzero(~last | cancelled[job]).tolist():
        if (of[run], end[run]) in failing:
            continue
        mine = group[of[run]]
        ran = end[run] - int(runs.start[run])
        if ran < exempt.get(mine, 0):
            return [f"job {of[run]} is stopped after {ran} s; for {exempt[mine]} s nobody may"]
        after = [one for one in starters.get(end[run], ()) if (group[of[one]], mine) in rule.pairs]
        if not any(_share(runs, run, one) for one in after):
            return [
                f"job {of[run]} is stopped at {end[run]} s, when no job that may stop it starts"
                " where it ran"
            ]
    return []


def called(result: Result) -> list[str]:
    """Return what each job is called in the column by which jobs may stop others."""
    rule = result.scheduler.preemption
    assert rule is not None
    column = COLUMNS.get(rule.column, rule.column)
    names = names_of(result.workload, column)
    return [names.get(one, str(one)) for one in result.workload.columns[column].tolist()]


def _share(runs: Result, run: int, other: int) -> bool:
    """Return whether two runs had a node in common, as all have on a pool."""
    held = runs.allocation
    if held is None:
        return True
    mine, theirs = (held.node[held.first[one] : held.first[one + 1]] for one in (run, other))
    return bool(np.isin(mine, theirs).any())
