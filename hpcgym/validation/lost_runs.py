"""Proofs of runs that ended before their job: by failures of nodes, or as other jobs stopped them.

All that is proved of jobs is proved of runs, too, by :mod:`hpcgym.validation.validate`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hpcgym.schedule.runs import OFF, LostRuns
from hpcgym.schedule.schedule import last_starts, queued_at, ran_before
from hpcgym.validation.books import check_states
from hpcgym.validation.passes import check_nodes
from hpcgym.validation.restrictions import COLUMNS
from hpcgym.validation.schedules import Case, Mask, Timeline, Times, cases, over_time
from hpcgym.workload.io.swf_header import names_of
from hpcgym.workload.needs import needs_of

if TYPE_CHECKING:
    from hpcgym.schedule.result import Result
    from hpcgym.scheduler.restrictions import Preemption


# --- What can be proved of all runs of jobs -------------------------------------------------------

_RELATIVE_ERROR = 1e-12


def check_shapes(result: Result, lost: LostRuns, on_nodes: bool = True) -> list[str]:
    """Find a schedule that does not tell which runs were lost, and which nodes jobs had."""
    k, m = len(lost.job), len(lost.node)
    shapes = [np.shape(column) for column in lost[1:]]
    known = not on_nodes or result.allocation is not None
    if not known or shapes != [(k,), (k,), (k,), (k + 1,), (m,), (m,)]:
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


def check_runs(result: Result, lost: LostRuns, length: Times) -> list[str]:
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


def check_going_on(case: Case, called: Sequence[str]) -> list[str]:
    """Find jobs of a pool that are still suspended when they could go on.

    One can if it fits beside all that run, and the suspended jobs that may stop it, at a time at
    which no job is stopped. ``called``: of each job, the name by which others may stop it.
    """
    result, line, pieces, rule = case.result, case.line, case.lost, case.stops
    assert pieces is not None
    assert rule is not None
    last = np.append(pieces.job[1:] != pieces.job[:-1], True)[: len(pieces.job)]
    until = np.where(
        last, last_starts(result)[pieces.job], np.append(pieces.start[1:], 0)[: len(last)]
    )
    begin, end = np.searchsorted(line.time, pieces.end), np.searchsorted(line.time, until)
    width = result.workload.requested_processors[pieces.job]
    group = np.array(called)[pieces.job]
    held = {
        name: over_time(line.time.size, begin, end, width * (group == name)) for name in rule.levels
    }
    # a job that stops others may free more than it takes, after its level has been tried
    settled = ~np.isin(line.time, pieces.end)
    for piece, job in enumerate(pieces.job.tolist()):
        span = slice(begin[piece], end[piece])
        taken = line.used[span] + width[piece]
        for stopper, other in rule.pairs:
            if other == called[job]:
                taken = taken + held[stopper][span]
        violations = cases(
            (taken <= result.cluster.processors) & settled[span],
            f"job {job} is still suspended at {{1}} s, when it fits",
            line.time[span],
        )
        if violations:
            return violations
    return []


# --- What can be proved where jobs stop others ----------------------------------------------------


def prove_stops(case: Case) -> dict[str, list[str]]:
    """Look at runs that other jobs have stopped, of a schedule in which they may."""
    result, lost, rule, proofs = case.result, case.lost, case.stops, dict[str, list[str]]()
    assert lost is not None
    assert rule is not None
    suspends = rule.mode == "suspend"
    failed = first_failures(lost)
    if len(lost.failures):
        proofs["states"] = check_down(result, lost) + check_states(case.runs)
    by_job = failed != lost.end
    proofs["runs"] = [
        *cases(by_job & (rule.mode == "cancel"), "run {} was stopped, and not cancelled"),
        *cases(lost.end <= lost.start, "lost run {} of job {} ends at {} s, when it starts",
               lost.job, lost.end),
        *check_successive(result, lost, case.actual),
        *cases(failed < lost.end, "lost run {} goes on when a node of it has failed"),
        *(check_pieces(result, lost, case.length) if suspends else ()),
    ]  # fmt: skip
    if not proofs["runs"]:
        failing = {*zip(lost.job[~by_job].tolist(), lost.end[~by_job].tolist(), strict=True)}
        names = called(result)
        proofs["preemption"] = _check_stops(case, names, failing)
        if suspends and case.runs.allocation is None:
            proofs["preemption"] += check_going_on(case, names)
    return proofs


def exempt_until(runs: Result, rule: Preemption, group: NDArray[np.str_]) -> Times:
    """Return when runs are no longer exempt that a waiting job may stop, (n_times,) [s].

    ``group``: what each run is called by which jobs may stop others, (n_runs,).
    """
    times = [np.zeros(0, np.int64)]
    least = int(runs.scheduler.passes == "per-event")
    exempt = dict.fromkeys(rule.stopped, least) if least else {}
    for name, seconds in {**exempt, **dict(rule.exempt)}.items():
        mine = group == name
        until = runs.start[mine] + seconds
        until = until[(until < runs.end[mine]) & (until >= runs.begin)]
        came, gone = _waiting_for(runs, rule, group, name)
        waits = np.searchsorted(came, until) > np.searchsorted(gone, until)
        times.append(until[waits])
    return np.concatenate(times)


def suspended(line: Timeline, job: Times) -> Times:
    """Return how many jobs are suspended at each time, (n_times,): these are not in the queue.

    ``job`` (n_runs,) is of each run, in the order in which they were submitted or suspended.
    """
    resumed = np.ones(len(job), np.bool_)
    resumed[np.unique(job, return_index=True)[1]] = False
    return over_time(line.time.size, line.submit[resumed], line.start[resumed])


def _check_stops(case: Case, group: Sequence[str], failing: set[tuple[int, int]]) -> list[str]:
    """Find stopped runs whose processors no job that may stop them took, or waited for.

    Parameters
    ----------
    group : of each job, the name by which others may stop it.
    failing : job and end of the runs that ended with a node.
    """
    result, runs, job, rule = case.result, case.runs, case.job, case.stops
    assert rule is not None
    starters: dict[int, list[int]] = {}
    for run, start in enumerate(runs.start.tolist()):
        if result.suspended is None or start == result.start[job[run]]:  # it does not go on
            starters.setdefault(start, []).append(run)
    end, of, exempt, grace = runs.end.tolist(), job.tolist(), dict(rule.exempt), dict(rule.grace)
    names = np.array(group)[job]
    waiting = {name: _waiting_for(runs, rule, names, name) for name in grace}
    # one that waits may start later in the same second, when another has ended
    starts_later = result.scheduler.passes == "per-event"
    for run in np.flatnonzero(~case.last | case.cancelled[job]).tolist():
        if (of[run], end[run]) in failing:
            continue
        mine = group[of[run]]
        warned = end[run] - grace.get(mine, 0)
        ran = warned - int(runs.start[run])
        if ran < 0:
            return [f"job {of[run]} has grace time from {warned} s on, before it starts"]
        if ran < exempt.get(mine, 0):
            return [f"job {of[run]} is stopped after {ran} s; it is exempt for {exempt[mine]} s"]
        if mine in grace:
            came, gone = waiting[mine]
            if np.searchsorted(came, warned, "right") == np.searchsorted(
                gone, warned - starts_later, "right"
            ):
                return [
                    f"job {of[run]} has grace time from {warned} s on, when no job that may stop it"
                    " waits"
                ]
            continue
        after = [new for new in starters.get(end[run], ()) if (group[of[new]], mine) in rule.pairs]
        if not any(_share(runs, run, new) for new in after):
            return [
                f"job {of[run]} is stopped at {end[run]} s, when no job that may stop it starts"
                " where it ran"
            ]
    return []


def _waiting_for(
    runs: Result, rule: Preemption, group: NDArray[np.str_], name: str
) -> tuple[Times, Times]:
    """Return when jobs came, and started, that may stop those of a name, each (n,) [s] by time."""
    may = np.isin(group, [stopper for stopper, other in rule.pairs if other == name])
    return np.sort(runs.workload.submit_time[may]), np.sort(runs.start[may])


def called(result: Result) -> list[str]:
    """Return what each job is called in the column by which jobs may stop others."""
    rule = result.scheduler.preemption
    assert rule is not None
    column = COLUMNS.get(rule.column, rule.column)
    names = names_of(result.workload, column)
    return [names.get(number, str(number)) for number in result.workload.columns[column].tolist()]


def _share(runs: Result, run: int, other: int) -> bool:
    """Return whether two runs had a node in common, as all have on a pool."""
    held = runs.allocation
    if held is None:
        return True
    mine, theirs = (held.node[held.first[row] : held.first[row + 1]] for row in (run, other))
    return bool(np.isin(mine, theirs).any())
