"""When a job was stopped, for whom or by what, and what that cost it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcgym.naming import duration
from hpcgym.schedule.lost_runs import runs_of
from hpcgym.schedule.result import Result
from hpcgym.scheduler.preemption import Preemption

_NAMED = 5  # stops that are told one by one
#: Mode of a preemption -> what becomes of a job that it stops.
_HOW = {"requeue": "requeued", "cancel": "cancelled", "suspend": "suspended"}


class Stop(NamedTuple):
    """The end of a run of a job that had not ended.

    Attributes
    ----------
    how : "requeued", "cancelled" or "suspended", for other jobs; or "failed", with a node.
    began, stopped : [s] of the run.
    jobs : numbers of the jobs for which it can have been stopped. They started then, may stop it,
        and on nodes have a node that it had. Of several it is not known which needed its place.
    nodes : its nodes that failed then, by name, or by number without one.
    """

    how: str
    began: int
    stopped: int
    jobs: list[int]
    nodes: list[int | str]


class Stopped(NamedTuple):
    """A job that another stopped as it started.

    Attributes
    ----------
    job : its number.
    time : when [s].
    jobs : numbers of the jobs for which it can have been stopped, as of :class:`Stop`.
    """

    job: int
    time: int
    jobs: list[int]


class Victim(NamedTuple):
    """A job that was stopped, when [s], and the rows of those for which it can have been."""

    row: int
    time: int
    by: list[int]


class _Starters(NamedTuple):
    """Who may have stopped others as it started: runs, the row of each one's job, their groups."""

    runs: Result
    of: NDArray[np.int64]
    group: NDArray[np.int64]
    may: NDArray[np.bool_]


def stops_of(result: Result, row: int) -> list[Stop]:
    """Return each time at which a job was stopped, by time; ``row`` is its own."""
    rule, found = result.scheduler.preempts, []
    starters = None if rule is None else _starters(result, rule)
    for began, stopped, held in _stopped_runs(result, row):
        if rule is None or starters is None:
            found.append(Stop("failed", began, stopped, [], _failed(result, stopped, held)))
        else:
            by = _stoppers(starters, row, stopped, held)
            jobs: list[int] = result.workload.job_number[by].tolist()
            found.append(Stop(_HOW[rule.mode], began, stopped, jobs, []))
    return found


def whom_others_stopped(result: Result, spans: Sequence[tuple[int, int]]) -> Iterator[Victim]:
    """Yield the jobs that others stopped within some spans of time, ends included [s]."""
    rule, lost = result.scheduler.preempts, result.interrupted
    if rule is None or lost is None:
        return
    rows = np.concatenate((lost.job, np.flatnonzero(result.cancelled)))
    times = np.concatenate((lost.end, result.end[result.cancelled]))
    within = np.zeros(len(times), np.bool_)
    for begin, end in spans:
        within |= (times >= begin) & (times <= end)
    wanted, starters = set(times[within].tolist()), _starters(result, rule)
    for row in np.unique(rows[within]).tolist():
        for _, stopped, held in _stopped_runs(result, row):
            if stopped in wanted:
                yield Victim(row, stopped, _stoppers(starters, row, stopped, held).tolist())


def stopped_by(result: Result, row: int) -> list[Stopped]:
    """Return whom a job stopped, or may have stopped, as it started, by time and number."""
    runs, of = all_runs(result)
    starts = runs.start[of == row].tolist()
    numbers = result.workload.job_number
    found = [
        Stopped(int(numbers[one.row]), one.time, numbers[one.by].tolist())
        for one in whom_others_stopped(result, [(start, start) for start in starts])
        if row in one.by
    ]
    return sorted(found, key=lambda one: (one.time, one.job))


def all_runs(result: Result) -> tuple[Result, NDArray[np.int64]]:
    """Return the schedule of all runs, and the row of the job of each."""
    if result.interrupted is None:
        return result, np.arange(len(result.start))
    return runs_of(result)


def _stopped_runs(result: Result, row: int) -> Iterator[tuple[int, int, NDArray[np.int32]]]:
    """Yield the begin, the end and the nodes of each run of a job that was stopped."""
    lost, held = result.interrupted, result.allocation
    if lost is None:
        return
    for run in np.flatnonzero(lost.job == row).tolist():
        nodes = lost.node[lost.first[run] : lost.first[run + 1]]
        yield int(lost.start[run]), int(lost.end[run]), nodes
    if result.cancelled[row]:
        nodes = np.zeros(0, np.int32) if held is None else held.rows(np.array([row])).node
        yield int(result.start[row]), int(result.end[row]), nodes


def _failed(result: Result, time: int, held: NDArray[np.int32]) -> list[int | str]:
    """Return which of the nodes of a run failed at a time."""
    assert result.lost is not None
    failures = result.lost.failures
    names = result.cluster.node_names
    return [names[node] for node in np.intersect1d(failures.node[failures.time == time], held)]


def _starters(result: Result, rule: Preemption) -> _Starters:
    """Return who may have stopped others."""
    # who began anew may have stopped others, who goes on may not
    anew = rule.mode == "requeue"
    runs, of = all_runs(result) if anew else (result, np.arange(len(result.start)))
    return _Starters(runs, of, rule.groups(result.workload), rule.may)


def _stoppers(
    starters: _Starters, row: int, time: int, held: NDArray[np.int32]
) -> NDArray[np.int64]:
    """Return the rows of the jobs for which a job can have been stopped."""
    runs, of, group, may = starters
    rows = np.flatnonzero(runs.start == time)
    groups = group[of[rows]]
    rows = rows[(groups >= 0) & may[groups, group[row]]]
    if (cells := runs.allocation) is not None:
        beside = [np.isin(cells.rows(np.array([one])).node, held).any() for one in rows.tolist()]
        rows = rows[np.array(beside, np.bool_)]
    found: NDArray[np.int64] = of[rows]
    return found


def who_was_stopped(stopped: Sequence[Stopped], job: int) -> list[str]:
    """Return sentences on whom a job stopped as it started; ``job`` is its number."""
    by_others: dict[tuple[int, ...], set[int]] = {}
    for one in stopped:
        others = tuple(number for number in one.jobs if number != job)
        by_others.setdefault(others, set()).add(one.job)
    lines = []
    if surely := by_others.pop((), None):
        lines.append(f"To start, it stopped {_numbers(surely)}.")
    for others, jobs in by_others.items():
        were = "was" if len(jobs) == 1 else "were"
        beside = f"for it or for {_numbers(set(others), 'or')}"
        lines.append(f"As it started, {_numbers(jobs)} {were} stopped, {beside}.")
    return lines


def _numbers(jobs: set[int], joined: str = "and") -> str:
    """Return jobs by their numbers, of many the first."""
    named = [str(job) for job in sorted(jobs)[:_NAMED]]
    if (more := len(jobs) - len(named)) > 0:
        named.append(f"{more:,} {'other' if more == 1 else 'others'}")
    each = f" {joined} ".join(filter(None, [", ".join(named[:-1]), named[-1]]))
    return f"job{'s' if len(jobs) > 1 and joined == 'and' else ''} {each}"


def in_words(stops: Sequence[Stop], submit: int) -> list[str]:
    """Return sentences on the stops of a job that came at ``submit`` [s]."""
    if not stops:
        return []
    how = stops[-1].how
    verb = how if how in ("suspended", "cancelled") else "stopped"
    lines = _one_by_one(f"It was {verb}", [_told(one, submit) for one in stops])
    ran = duration(sum(one.stopped - one.began for one in stops))
    if how == "suspended":
        return [*lines, "It lost nothing, and went on later."]
    if how == "cancelled":
        return [*lines, f"What it had done is lost: {ran}."]
    return [
        *lines,
        f"{'It' if len(stops) == 1 else 'Each time it'} began again from the start.",
        f"What it had run before, {ran}, is lost and counts as waiting.",
    ]


def _one_by_one(begin: str, each: Sequence[str]) -> list[str]:
    """Return a sentence for each of some events, and for how many more there are."""
    if len(each) == 1:
        return [f"{begin} {each[0]}."]
    lines = [f"{begin} {times(len(each))}.", f"First {each[0]}."]
    lines += [f"Then {one}." for one in each[1:_NAMED]]
    more = len(each) - _NAMED
    return [*lines, f"And {times(more)} more."] if more > 0 else lines


def _told(stop: Stop, submit: int) -> str:
    """Return when a job was stopped and why."""
    why = f", for job {' or '.join(map(str, stop.jobs))}" if stop.jobs else ""
    if stop.nodes:
        named = " and ".join(map(str, stop.nodes))
        why = f", as node{'s' if len(stop.nodes) > 1 else ''} {named} failed"
    ran = duration(stop.stopped - stop.began)
    return f"{duration(stop.stopped - submit)} after it came{why}, when it had run for {ran}"


def times(number: int) -> str:
    """Return how often."""
    return {1: "once", 2: "twice"}.get(number, f"{number:,} times")
