"""Proofs of restrictions: quotas, windows, jobs that follow others, submissions."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcgym.errors import HpcgymError
from hpcgym.machine.partitions import nodes_of_text
from hpcgym.names import RESERVATION
from hpcgym.schedule.schedule import last_starts, runs_of
from hpcgym.scheduler.restrictions import bound_submissions, tells_reservations
from hpcgym.validation.passes import owner_of
from hpcgym.validation.schedules import Mask, Times, cases, held_together
from hpcgym.workload.amounts import IN_ALL, amount_called, asked_of, minutes_of
from hpcgym.workload.extracts import joined, recorded_run_time
from hpcgym.workload.io.swf_header import names_of

if TYPE_CHECKING:
    from hpcgym.schedule.result import Result
    from hpcgym.scheduler.restrictions import Quota, Window
    from hpcgym.workload.model import Workload


Ints = NDArray[np.int64]

# --- Proofs that no quota was exceeded ------------------------------------------------------------

#: Words of rules -> columns of jobs, not taken from where rules are read.
COLUMNS = {"qos": "queue", "user": "user_id", "group": "group_id", "code": "executable"}


def check_quotas(result: Result) -> list[str]:
    """Find quotas that were exceeded, and when first, in O(n log n) for each."""
    violations, times, ticks = [], (result.start, result.end), 1
    if (shared := result.coschedule) is not None:  # whose times are no whole seconds
        times, ticks = (shared.start_ticks, shared.end_ticks), shared.ticks
    for quota in result.scheduler.quota:
        violations += _exceeded(result, quota, quota.running, times, ticks)
        violations += _beyond(result, quota) if "job" in quota.each else []
    return violations


def _beyond(result: Result, quota: Quota) -> list[str]:
    """Return the first job that is beyond a bound of one job and ran, of each bound."""
    jobs, spared = result.workload, _called(result.workload, "queue", quota.spares)
    within = (groups_of(jobs, quota) >= 0) & ~spared & (result.start >= result.begin)
    violations = []
    signs = [1] * len(quota.bounds) + [-1] * len(quota.least)
    for sign, (name, bound) in zip(signs, (*quota.bounds, *quota.least), strict=True):
        try:
            asked = asked_of(jobs, [name])[:, 0]
        except HpcgymError:  # what the log does not tell binds nobody
            continue
        over = within & (sign * asked > sign * bound * amount_called(name).unit)
        if over.any():
            job = int(over.argmax())
            violations.append(f"quota {quota}: {jobs.called(job)} asks for {asked[job]} {name}")
    return violations


def _exceeded(
    result: Result,
    quota: Quota,
    bounds: Mapping[str, int],
    times: tuple[Ints, Ints],
    ticks: int = 1,
) -> list[str]:
    """Return when bounds of a quota were exceeded first, and by how much; no line if never.

    Parameters
    ----------
    bounds : amount -> most.
    times : from and up to when jobs count, (n_jobs,) each.
    ticks : of these times in a second.
    """
    violations = []
    for name, most in bounds.items():
        amount = amount_called(name)
        if amount.budget:
            violations += _overspent(result, quota, name, most)
            continue
        held = _held(result, quota, name, times)
        # jobs that run at the beginning of an extract may exceed it; then no further job may come
        comes = (np.diff(held.holders, prepend=0) > 0) & (held.stage == _COMES)
        used = held.at_its_time()
        over = (used > most * amount.unit) & comes & (held.time >= result.begin)
        if over.any():
            at = int(over.argmax())
            when = held.time[at] if ticks == 1 else held.time[at] / ticks
            having = -(-int(used[at]) // amount.unit)
            violations.append(f"quota {quota}: at {when} s {having} {amount.in_use}")
    return violations


def _overspent(result: Result, quota: Quota, name: str, most: int) -> list[str]:
    """Return when a job started first though a budget did not suffice; no line if never.

    What jobs had used by then is worked out multiple by multiple, group by group. Of a second what
    ended in it is left out: it may have been looked at before. Not where processors are switched
    on, since jobs are given these before they start.
    """
    if _longest_delay(result):
        return []
    amount, whole = amount_called(name), result.suspended is not None
    runs, row = runs_of(result) if whole else (result, np.arange(len(result.start)))
    initial, first = result.workload.initial, np.zeros(0, np.int64)
    group, begin, end = groups_of(runs.workload, quota), runs.start, runs.end
    asked, rate = asked_of(runs.workload, [name, amount.of]).T
    comes = (group >= 0) & (asked > 0) & (begin >= result.begin)
    comes &= ~_called(runs.workload, "queue", quota.spares)
    comes &= begin == result.start[row] if whole else True
    if initial is not None and len(initial.past):
        past = initial.past
        first = past.submit_time + past.wait_time
        group = groups_of(joined(past, runs.workload), quota)
        rate = np.concatenate([asked_of(past, [amount.of])[:, 0], rate])
        begin = np.concatenate([first, begin])
        end = np.concatenate([first + recorded_run_time(past), end])
        none = np.zeros(len(first), np.int64)
        comes, asked = np.concatenate([none > 0, comes]), np.concatenate([none, asked])
    ahead = np.zeros(len(begin), np.int64)
    period = result.scheduler.reserve.counts_use_s
    if amount.budget == IN_ALL and not whole:
        held = _held(result, quota, minutes_of(amount.of), (result.start, result.end), period)
        with_own = held.when_started(groups_of(runs.workload, quota), begin[len(first) :])
        ahead[len(first) :] = with_own - asked[len(first) :]
    left = 1.0 if quota.half_life_s is None else 1 - 0.693 / quota.half_life_s
    over: dict[int, int] = {}  # the job of each time at which none of those that start may
    for own in np.unique(group[comes]).tolist():
        rows = np.flatnonzero((group == own) & (rate > 0))
        mine = np.flatnonzero(comes & (group == own))
        used = _used(begin[rows], end[rows], rate[rows], begin[mine], period, left)
        least = used if left == 1 else np.maximum(used - _ROUNDING_S, 0)
        minutes = least // 60 + np.maximum(ahead[mine], 0) // 60
        fits = 60 * minutes + asked[mine] <= 60 * most
        may = {*begin[mine[fits]].tolist()}  # who started last is one of these
        over.update((int(begin[job]), int(job)) for job in mine if int(begin[job]) not in may)
    if not over:
        return []
    at = min(over)
    job = runs.workload.called(over[at] - len(first))
    return [f"quota {quota}: at {at} s {job} starts, though too many {amount.in_use}"]


#: By how much a sum of what is being forgotten may be too great [s].
_ROUNDING_S = 1e-7


def _used(
    begin: Ints, end: Ints, rate: Ints, times: Ints, period: int, left: float
) -> NDArray[np.float64]:
    """Return what runs had used at some times, (n_times,) [s], without what ended in that second.

    ``left``: of use after a second.
    """

    def weighed(seconds: Ints) -> NDArray[np.float64]:
        return np.asarray(seconds * left**seconds, np.float64)

    known = begin < times.max()
    begin, end, rate = begin[known], end[known], rate[known]
    if not len(begin):
        return np.zeros(len(times))
    lowest, n = int(begin.min()) // period, int(times.max() - 1) // period
    n -= lowest - 1
    after, last = begin // period + 1 - lowest, (end - 1) // period - lowest
    charged, slope, late = np.zeros(n + 1), np.zeros(n + 2), np.zeros(n + 1)
    some = (after <= last) & (after < n)
    np.add.at(charged, after[some], (rate * weighed((after + lowest) * period - begin))[some])
    np.add.at(slope, np.minimum(after[some] + 1, n + 1), rate[some])
    np.add.at(slope, np.minimum(last[some] + 1, n + 1), -rate[some])
    charged += np.cumsum(slope[: n + 1]) * weighed(np.array(period))
    rest = rate * weighed(end - np.maximum(begin, (last + lowest) * period))
    ends = np.flatnonzero(last < n)
    np.add.at(late, last[ends], rest[ends])
    used, of_period = np.zeros(n + 1), left**period
    for k in range(n):
        used[k] = (used[k - 1] + late[k - 1]) * of_period * (k > 0) + charged[k]
    ends = ends[np.argsort(end[ends], kind="stable")]
    so_far = np.concatenate([[0.0], np.cumsum(rest[ends])])
    multiple = (times - 1) // period
    before = np.searchsorted(end[ends], multiple * period, "right")
    until = np.maximum(np.searchsorted(end[ends], times, "left"), before)
    place = multiple - lowest
    by_then: NDArray[np.float64] = np.where(place >= 0, used[place], 0)
    by_then += so_far[until] - so_far[before]
    return by_then


#: What happens in a second, in this order: ends, suspensions and their ends, starts, those of
#: spared jobs.
_GOES_ON, _COMES, _SPARED, _STAGES = 1, 2, 3, 4


class _Held(NamedTuple):
    """What groups have of an amount from each event on, (n_events,), by group, time and stage.

    That is ``level - slope * counted``: of an amount weighed by time, running jobs have less with
    each second that has counted.
    """

    group: Times
    time: Times  # [s]
    stage: Times
    level: Times
    slope: Times
    holders: Times
    period: int  # [s] at multiples of it time counts; 0: never

    def at_its_time(self) -> Ints:
        """Return what the group of each event has then, (n_events,)."""
        return self.level - self.slope * self.counted(self.time)

    def when_started(self, group: Ints, time: Ints) -> Ints:
        """Return what groups have with what starts in a second, but for spared jobs, (k,)."""
        if not len(self.time):
            return np.zeros_like(time)
        last = int(max(self.time.max(), time.max(initial=0))) + 2
        keys = (self.group * last + self.time) * _STAGES + self.stage
        place = np.searchsorted(keys, (group * last + time) * _STAGES + _COMES, "right") - 1
        place = np.maximum(place, 0)
        known = (self.group[place] == group) & (self.time[place] <= time)
        held: Ints = self.level[place] - self.slope[place] * self.counted(time)
        return np.where(known, held, 0)

    def counted(self, time: Ints) -> Ints:
        """Return up to when time has counted."""
        return time // max(self.period, 1) * max(self.period, 1)

    def at(self, group: Ints, time: int) -> Ints:
        """Return what each of some groups has at the end of a second, (k,)."""
        last = int(self.time.max(initial=0)) + 2
        place = np.searchsorted(self.group * last + self.time, group * last + time, "right") - 1
        known = (place >= 0) & (self.group[place] == group)
        counted = self.counted(np.array(time))
        held: Ints = np.where(known, self.level[place] - self.slope[place] * counted, 0)
        return held


def _held(
    result: Result, quota: Quota, name: str, times: tuple[Ints, Ints], period: int | None = None
) -> _Held:
    """Return what the jobs that a quota counts have of an amount; ``times`` as above.

    ``period``: at multiples of which time counts [s], if not that of the scheduler.
    """
    group, asked = groups_of(result.workload, quota), asked_of(result.workload, [name])[:, 0]
    spared = _called(result.workload, "queue", quota.spares)
    period = result.scheduler.reserve.counts_time_s if period is None else period
    row, (begin, end), paused = np.arange(len(group)), times, np.zeros((0, 3), np.int64)
    rate = np.zeros_like(asked)
    if (of := amount_called(name).of) and period:
        rate = asked_of(result.workload, [of])[:, 0]
    first, base = np.ones(len(row), np.bool_), begin
    if of and result.suspended is not None:  # spells in which jobs run, and those between
        runs, row = runs_of(result)
        order = np.lexsort((runs.start, row))
        row, begin, end = row[order], runs.start[order], runs.end[order]
        first = np.diff(row, prepend=-1) != 0
        ran = np.cumsum(end - begin) - (end - begin)
        ran -= np.maximum.accumulate(np.where(first, ran, 0))
        base = begin - ran
        again = np.flatnonzero(~first)
        paused = np.stack([again, end[again - 1], begin[again]], 1)
    # while a run has not counted, a job has all that it asked for; then less each second
    counts = np.clip(-(-base // max(period, 1)) * max(period, 1), begin, end)
    counts = np.where((rate[row] == 0) | (period == 0), end, counts)
    early = counts > begin
    late = (counts < end) | ~early
    stage = np.where(first, np.where(spared[row], _SPARED, _COMES), _GOES_ON)
    goes_on = np.full(len(row), _GOES_ON)
    own, less = asked[row], rate[row]
    of_row = [row[early], row[late], row[paused[:, 0]]]
    begins = [begin[early], np.where(early, counts, begin)[late], paused[:, 1]]
    ends = [counts[early], end[late], paused[:, 2]]
    stages = [stage[early], np.where(early, goes_on, stage)[late], goes_on[paused[:, 0]]]
    level = own - less * (begin - base)
    levels = [own[early], (own + less * base)[late], level[paused[:, 0]]]
    slopes = [0 * own[early], less[late], 0 * own[paused[:, 0]]]
    row, begin, end, stage, level, slope = map(
        np.concatenate, (of_row, begins, ends, stages, levels, slopes)
    )
    holds = (group[row] >= 0) & (asked[row] > 0)
    # spared jobs come after those, too, that were given processors before and wait until these
    # are on
    begin = _STAGES * (begin + (stage == _SPARED) * _longest_delay(result)) + stage
    held = np.stack([level, slope, np.ones_like(level)], 1)[holds]
    end = np.maximum(begin, _STAGES * end)
    of_group, at, totals = held_together(group[row][holds], begin[holds], end[holds], held)
    level, slope, holders = totals.T
    return _Held(of_group, at // _STAGES, at % _STAGES, level, slope, holders, period)


def openings(result: Result) -> Times:
    """Return when jobs start as time alone lets quotas bar a job no more, (k,) [s].

    That is when nothing is submitted and nothing ends, and a job that waits would have exceeded
    one the second before, of an amount weighed by time.
    """
    submit, start = result.workload.submit_time, result.start
    alone = np.setdiff1d(start[start >= result.begin], np.concatenate([submit, result.end]))
    opened: set[int] = set()
    for quota in result.scheduler.quota:
        for name, most in quota.running.items():
            if not (amount := amount_called(name)).of or not len(alone):
                continue
            if amount.budget:  # they count what was used
                every = result.scheduler.reserve.counts_use_s
                opened.update(alone[(alone - 1) % every == 0].tolist())
                continue
            group = groups_of(result.workload, quota)
            asked = asked_of(result.workload, [name])[:, 0]
            held = _held(result, quota, name, (start, result.end))
            for time in alone.tolist() if len(held.time) else ():
                waits = np.flatnonzero((submit < time) & (start >= time) & (group >= 0))
                exceeds = held.at(group[waits], time - 1) + asked[waits] > most * amount.unit
                opened.update([time] * bool(exceeds.any()))
    return np.array(sorted(opened), np.int64)


def countings(result: Result) -> Times:
    """Return when jobs start as usage counts anew, the second after a multiple, (k,) [s]."""
    period = 0 if result.scheduler.fair_share is None else result.scheduler.fair_share.period_s
    start = result.start[result.start >= result.begin]
    return start[(start - 1) % period == 0] if period else np.zeros(0, np.int64)


def _longest_delay(result: Result) -> int:
    """Return how long a job may wait for its processors to be switched off and on [s]."""
    powers = (result.cluster, *(group.power for group in result.cluster.groups))
    return max(power.shutdown_time_s + power.boot_time_s for power in powers if power is not None)


def groups_of(workload: Workload, quota: Quota) -> Ints:
    """Return a number for the jobs that count together, -1 of those that do not count, (n_jobs,).

    Worked out job by job, unlike where quotas are kept.
    """
    columns = {
        word: [*range(len(workload))]
        if word == "job"
        else workload.columns[COLUMNS.get(word, word)].tolist()
        for word in quota.each
    }
    allowed = [_called(workload, word, names.split("|")) for word, names in quota.where]
    numbers: dict[tuple[int, ...], int] = {}
    group = np.full(len(workload), -1, np.int64)
    for row in range(len(workload)):
        key = tuple(columns[word][row] for word in quota.each)
        in_none = "array" in quota.each and columns["array"][row] < 0  # is no array of its own
        if not in_none and all(mask[row] for mask in allowed):
            group[row] = numbers.setdefault(key, len(numbers))
    return group


def _called(workload: Workload, word: str, alternatives: Iterable[str]) -> Mask:
    """Return which jobs have one of some names in a column, or in its own of ``word=name``."""
    mask = np.zeros(len(workload), np.bool_)
    for text in alternatives:
        own, equals, name = text.partition("=")
        column = COLUMNS.get(own, own) if equals else COLUMNS.get(word, word)
        names, wanted = names_of(workload, column), name if equals else own
        numbers = workload.columns[column].tolist()
        mask |= np.array([names.get(n, str(n)) == wanted for n in numbers], np.bool_)
    return mask


# --- Proofs that no job runs within a window ------------------------------------------------------


def check_windows(result: Result) -> list[str]:
    """Find jobs that run within a window on what it closes, in O(n log n) for each.

    Jobs that ran at the beginning of an extract may: they were not planned.
    """
    violations = []
    initial = result.workload.initial
    planned = np.ones(len(result.start), np.bool_) if initial is None else ~initial.running
    held: list[tuple[int, int, int]] = []  # from when to when a window has how many processors
    for window in result.scheduler.maintenance:
        begin, end = window.seconds(result.workload.header)
        inside = planned & (result.start < end) & (result.end > begin)
        if window.processors is None:
            on = _on(result, window) & ~_who_may(result.workload, window)
            text = f"job {{}} runs from {{}} s to {{}} s, within the window {window}"
            violations += cases(inside & on, text, result.start, result.end)
        else:
            held.append((begin, end, window.processors))
    if held:
        violations += _check_room(result, np.array(held, np.int64), planned)
    return violations


def _who_may(workload: Workload, window: Window) -> Mask:
    """Return which jobs a window is open to, (n_jobs,): by account, user or reservation."""
    wanted_of = {"group_id": window.accounts, "user_id": window.users}
    if window.reservations and tells_reservations(workload):
        wanted_of = {RESERVATION: window.reservations}
    wanted_of = {column: wanted for column, wanted in wanted_of.items() if wanted}
    named = np.full(len(workload), bool(wanted_of))
    for column, wanted in wanted_of.items():
        names = names_of(workload, column)
        numbers = workload.columns[column].tolist()
        named &= np.array([n >= 0 and names.get(n, str(n)) in wanted for n in numbers], np.bool_)
    return named


def window_ends(result: Result) -> Times:
    """Return the ends of windows at which jobs wait, (n_ends,) [s], in the time of the schedule.

    A pass follows these.
    """
    windows = [
        window
        for window in result.scheduler.maintenance
        if not window.nodes or _closed(result, window).any()
    ]
    if not len(result.start):
        return np.zeros(0, np.int64)
    ends = np.array([window.seconds(result.workload.header)[1] for window in windows], np.int64)
    inside: Times = ends[(ends >= result.begin) & (ends <= result.end.max())]
    submit, last = result.workload.submit_time, last_starts(result)
    waits = [bool(((submit < end) & (last >= end)).any()) for end in inside.tolist()]
    return inside[waits]


def _on(result: Result, window: Window) -> Mask:
    """Return which jobs have a node that a window closes, (n_jobs,)."""
    on = np.ones(len(result.start), np.bool_)
    if not window.nodes:
        return on
    held = result.allocation
    assert held is not None  # as units are proved
    on[:] = False
    on[owner_of(held.first)[_closed(result, window)[held.node]]] = True
    return on


def _closed(result: Result, window: Window) -> Mask:
    """Return which nodes a window closes that names some, (n_nodes,)."""
    sizes = [(group.name, group.nodes) for group in result.cluster.groups]
    closed = np.zeros(result.cluster.nodes, np.bool_)
    unknown: list[str] | None = [] if window.printed else None
    closed[nodes_of_text(window.nodes, sizes, str(window), unknown)] = True
    return closed


def _check_room(result: Result, held: NDArray[np.int64], planned: Mask) -> list[str]:
    """Find times at which jobs and windows hold more processors than there are.

    And a job that was planned is among them, (n_jobs,) bool.
    """
    width = result.workload.requested_processors
    begin, end = np.append(result.start, held[:, 0]), np.append(result.end, held[:, 1])
    taken = np.stack((np.append(width, held[:, 2]), np.append(width * planned, 0 * held[:, 2])), 1)
    _, time, both = held_together(np.zeros_like(begin), begin, end, taken)
    used, running = both.T
    text = f"at {{1}} s jobs and windows hold {{2}} of {result.cluster.processors} processors"
    wrong = (used > result.cluster.processors) & (running > 0)
    return cases(wrong, text, time, used)


# --- Proofs that jobs come after those that they follow -------------------------------------------

_AT_ANY_TIME = -(2**62)  # [s] in place of when a job is due, where that is not known


def check_dependencies(result: Result) -> list[str]:
    """Find jobs that are submitted before those have ended that they follow, or too late.

    Worked out job by job. When each is due is known from the jobs as they were given, if no two
    have the same number. Where a number stands twice, as of a job that was requeued, the schedule
    does not say which row was followed: then its first end counts, and it is only proved that no
    job comes too early. Where the given jobs are not known, it is proved of think times that the
    log tells, in closed loop, that no job comes too late. Quotas of submitted jobs may let jobs
    come later than they are due.
    """
    due, exact, _ = _due(result)
    submit = result.workload.submit_time
    if bound_submissions(result.scheduler.quota):
        exact = np.zeros_like(exact)
    return [
        *cases(
            submit < due, "job {} is submitted at {} s, and may not be before {} s", submit, due
        ),
        *cases(
            exact & (submit > due),
            "job {} is submitted at {} s, and should be at {} s",
            submit,
            due,
        ),
    ]


def ended_by(result: Result) -> Ints:
    """Return the first whole second at which each job has ended, (n_jobs,)."""
    shared = result.coschedule
    return result.end if shared is None else -(-shared.end_ticks // shared.ticks)


def due_times(result: Result) -> tuple[Ints, Ints]:
    """Return when each job is to be submitted [s], and its place in the log, both (n_jobs,).

    The place is -1 where either is not known.
    """
    due, exact, rows = _due(result)
    numbers = result.workload.job_number.tolist()
    place = np.array([rows.get(number, -1) for number in numbers], np.int64)
    return due, np.where(exact, place, -1)


def _due(result: Result) -> tuple[Ints, NDArray[np.bool_], dict[int, int]]:
    """Return when each job is due, whether just then; and places in the log by number, if known."""
    workload, given = result.workload, result.given
    ends: dict[int, list[int]] = {}
    over = ended_by(result)
    for row, number in enumerate(workload.job_number.tolist()):
        ends.setdefault(number, []).append(int(over[row]))
    once = all(number > 0 and len(times) == 1 for number, times in ends.items())
    rows: dict[int, int] = {}
    if given is not None and once:
        rows = {number: row for row, number in enumerate(given.job_number.tolist())}
    closed = result.scheduler.dependencies == "closed-loop"
    n = len(workload)
    follows = result.scheduler.dependencies != "none"
    due, exact = np.full(n, _AT_ANY_TIME), np.zeros(n, np.bool_)
    for row, named in enumerate(_named(workload)):
        others = [number for number in named if number in ends and follows]
        number, think = int(workload.job_number[row]), int(workload.think_time[row])
        if not others:
            due[row] = (
                given.submit_time[rows[number]] if given is not None and rows else _AT_ANY_TIME
            )
            exact[row] = bool(rows)
            continue
        last = max(min(ends[other]) for other in others)
        if given is not None and rows:
            own = rows[number]
            if closed and think < 0:
                think = _between(given, own, [rows[other] for other in others])
            earliest = -1 if closed else int(given.submit_time[own])
            due[row], exact[row] = max(last + max(think, 0), earliest), True
        else:
            due[row] = last + max(think, 0)
            exact[row] = closed and think >= 0 and all(len(ends[other]) == 1 for other in others)
    return due, exact, rows


def _named(workload: Workload) -> list[list[int]]:
    """Return the numbers of the jobs that each job follows, whether they are there or not."""
    more: dict[int, list[int]] = {}
    if workload.more_preceding is not None:
        for number, other in workload.more_preceding.tolist():
            more.setdefault(number, []).append(other)
    columns = zip(workload.job_number.tolist(), workload.preceding_job.tolist(), strict=True)
    return [
        [other for other in (first, *more.get(number, ())) if other > 0]
        for number, first in columns
    ]


def _between(given: Workload, own: int, others: list[int]) -> int:
    """Return how long the user of a job thought in the log, as far as it tells [s]."""
    ended = []
    for other in others:
        if given.wait_time[other] < 0:
            return 0
        columns = (given.submit_time, given.wait_time, given.run_time)
        ended.append(sum(int(column[other]) for column in columns))
    return max(int(given.submit_time[own]) - max(ended), 0)


# --- Proofs that jobs come into the queue as soon as quotas of submitted jobs let them ------------

Key = tuple[int, int]  # a quota, and a number of those that count together


def check_submitted(result: Result) -> list[str]:
    """Find quotas of submitted jobs that were exceeded, and jobs that came too early or too late.

    Submit times follow from due times and ends of jobs. They are computed again if all due times
    are known (:func:`hpcgym.validation.restrictions.due_times`), and all ends of a second come
    first; else it is only proved that no quota was exceeded. Jobs that run or wait at the beginning
    of an extract may exceed a quota, but then no further job may come.
    """
    quotas = [quota for quota in result.scheduler.quota if quota.submitted]
    most = [min(quota.submitted.values()) for quota in quotas]
    groups = [groups_of(result.workload, quota) for quota in quotas]
    submit = result.workload.submit_time
    end = ended_by(result) + result.cancelled  # a cancelled job counts up to the next second
    violations = []
    for quota in quotas:
        violations += _exceeded(result, quota, quota.submitted, (submit, end))
    due, place = due_times(result)
    if (place < 0).any() or result.scheduler.passes == "per-event":
        return violations
    columns = zip(*(group.tolist() for group in groups), strict=True)
    keys = [[(k, number) for k, number in enumerate(numbers) if number >= 0] for numbers in columns]
    spared = [_called(result.workload, "queue", quota.spares) for quota in quotas]
    bound = [[key for key in own if not spared[key[0]][row]] for row, own in enumerate(keys)]
    came = _came(due, place, end, keys, bound, most, result.begin)
    text = "job {} is submitted at {} s, and should be at {} s"
    return [*violations, *cases(submit != came, text, submit, came)]


def _came(
    due: Ints,
    place: Ints,
    end: Ints,
    keys: list[list[Key]],
    bound: list[list[Key]],
    most: list[int],
    begin: int,
) -> Ints:
    """Return when each job comes into the queue, (n_jobs,) [s]; -1: never.

    A job that waits outside is kept under one key that has no place left; when a key gets places,
    its jobs are looked at in the order in which they were due.

    Parameters
    ----------
    due, place, end : (n_jobs,) [s] when each is due, its place in the log, [s] when it ends.
    keys, bound : of each job, those that count it, and of these those that bound it.
    most : of each quota.
    begin : [s] of the schedule; jobs that were due before have come, whatever the quotas.
    """
    came = np.full(len(due), -1, np.int64)
    taken: dict[Key, int] = {}
    outside: dict[Key, list[tuple[int, int, int]]] = {}
    ending = np.argsort(end, kind="stable").tolist()
    coming = np.lexsort((place, due)).tolist()
    ending.reverse()
    coming.reverse()

    def try_to_come(row: int, time: int) -> None:
        for key in bound[row]:
            if time >= begin and taken.get(key, 0) >= most[key[0]]:
                line = outside.setdefault(key, [])
                heapq.heappush(line, (int(due[row]), int(place[row]), row))
                return
        came[row] = time
        for key in keys[row]:
            taken[key] = taken.get(key, 0) + 1

    for time in np.union1d(due, end).tolist():
        freed = set()
        while ending and end[ending[-1]] == time:
            row = ending.pop()
            for key in keys[row] if came[row] >= 0 else ():
                taken[key] -= 1
                freed.add(key)
        while lines := [
            (outside[key][0], key)
            for key in freed
            if outside.get(key) and taken[key] < most[key[0]]
        ]:
            heapq.heappop(outside[min(lines)[1]])
            try_to_come(min(lines)[0][2], time)
        while coming and due[coming[-1]] == time:
            try_to_come(coming.pop(), time)
    return came
