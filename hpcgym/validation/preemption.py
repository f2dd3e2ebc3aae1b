"""What can be proved where jobs stop others, for :mod:`hpcgym.validation.validate`.

Most of it is proved of all runs as if each was a job, also of those that were stopped. What is
proved of suspended jobs alone is in :mod:`hpcgym.validation.suspension`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hpcgym.schedule.lost_runs import LostRuns, ran_before, runs_of
from hpcgym.validation.all_runs import (
    NO_DELAYS,
    check_shapes,
    check_successive,
    energies_of_runs,
    last_runs,
)
from hpcgym.validation.books import check_books, check_states
from hpcgym.validation.failures import (
    changes_of,
    check_down,
    first_failures,
    of_restrictions,
    some_down,
)
from hpcgym.validation.idle_power import check_energy
from hpcgym.validation.nodes import check_nodes, check_units
from hpcgym.validation.promises import check_predictions, check_promises
from hpcgym.validation.quotas import COLUMNS
from hpcgym.validation.schedules import (
    Mask,
    Timeline,
    Times,
    cases,
    check_capacity,
    check_events,
    check_lengths,
    check_progress,
    check_submission,
    timeline_of,
)
from hpcgym.validation.suspension import check_going_on, check_kept, check_pieces
from hpcgym.validation.windows import window_ends
from hpcgym.workload.names import names_of
from hpcgym.workload.needs import needs_of

if TYPE_CHECKING:
    from hpcgym.schedule.result import Result
    from hpcgym.scheduler.preemption import Preemption


def prove_preemption(
    result: Result, actual: Times, length: Times
) -> Iterator[tuple[str, list[str]]]:
    """Look at a schedule in which jobs stop others.

    Parameters
    ----------
    actual, length : (n_jobs,) [s] run times cut at the requested time, and as the last run has to
        be unless it was cancelled.
    """
    lost, rule = result.interrupted, result.scheduler.preempts
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
    sound["runs"] = _check_runs(result, lost, actual, cancels & (failed != lost.end))
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


def _check_runs(result: Result, lost: LostRuns, actual: Times, cancels: Mask) -> list[str]:
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
    rule = result.scheduler.preempts
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
    rule = result.scheduler.preempts
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
