"""Proofs of what a pass leaves waiting, from the order of the queue at that pass, or of any order.

The *head* is the first job in the primary order that a pass leaves waiting. All is worked out for
many passes at a time: a *pair* is a pass and a job that waits after it or starts in it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from hpcgym.scheduler.estimates.learning import looks_at_time
from hpcgym.scheduler.policies.features import STATE_OF_MACHINE
from hpcgym.validation import passes
from hpcgym.validation.pieces import Pieces, ends_are_told, pieces_of
from hpcgym.validation.schedules import Case, Mask, Timeline, Times, cases, over_time
from hpcgym.validation.scores import Jobs, Pairs, TypicalRatios, scores, stays
from hpcgym.workload.extracts import decided

if TYPE_CHECKING:
    from hpcgym.schedule.result import Result
    from hpcgym.scheduler.policies.index import IndexPolicy

_MOST_PAIRS = 2**19  # that are worked out at a time
_NONE = -1  # no job


# --- Passes and jobs that wait there --------------------------------------------------------------


def met(places: Times, begin: Times, stop: Times) -> tuple[Times, Times]:
    """Return which ranges begin:stop lie over which of ascending places.

    Returns
    -------
    place, index : (n,) each, indices of places, ascending, and of ranges, ascending for a place.
    """
    low, high = (np.searchsorted(places, bound, "left") for bound in (begin, stop))
    count = np.maximum(high - low, 0)
    index = np.repeat(np.arange(len(begin)), count)
    place = np.arange(len(index)) - np.repeat(np.cumsum(count) - count - low, count)
    kind = np.uint16 if len(places) < 2**16 else np.int64  # few bits are sorted faster
    order = np.argsort(place.astype(kind), kind="stable")
    return place[order], index[order]


class Passes:
    """The passes of a schedule, and the jobs that wait after them or start in them.

    Attributes
    ----------
    line, result : the times and the schedule.
    passed : (n_times,) when the queue is served to the end with what is free then.
    free : (n_times,) processors that no job has once all has happened.
    starts : (n_jobs,) whether the schedule starts the job.
    """

    def __init__(self, case: Case) -> None:
        self.result, self.line = case.result, case.line
        self.passed = passes.served(case.result, case.line, changes=True)
        self.free: Times = case.result.cluster.processors - case.line.used
        self.starts = decided(case.result.workload)
        self._stop = np.where(self.starts, self.line.start + 1, self.line.submit)

    def least(self, value: Times, nothing: int) -> Times:
        """Return the least value of the jobs that are left waiting at each time."""
        line = self.line
        return passes.least_over(line.time.size, line.submit, line.start, value, nothing)

    def pairs(self, some: Mask) -> Iterator[tuple[Times, Times, Pairs]]:
        """Yield places in parts: those, an index into them for each pair, and the pairs.

        ``some`` : (n_times,) which places. Pairs are in their order, and for each in that of jobs.
        """
        submit, size = self.line.submit, self.line.time.size
        number = over_time(size, submit, np.maximum(self._stop, submit))
        places = np.flatnonzero(some)
        total = np.cumsum(number[places]) // _MOST_PAIRS
        for part in np.split(places, np.flatnonzero(np.diff(total)) + 1):
            if not part.size:
                continue
            index, job = met(part, submit, self._stop)
            wait = self.line.time[part[index]] - self.result.workload.submit_time[job]
            yield part, index, Pairs(part[index], job, wait.astype(np.float64))


# --- Orders of the queue --------------------------------------------------------------------------


def jobs_of(case: Case) -> Jobs:
    """Return what the orders of a schedule look at."""
    return Jobs(case.result, case.line, _times_of(case, case.result.scheduler.policy_estimate))


def _times_of(case: Case, estimate: Any) -> Any:
    """Return the run times that an estimate says of waiting jobs, as :class:`Jobs` has them."""
    result, rules, workload = case.result, case.result.scheduler, case.result.workload
    times = passes.known_beforehand(estimate, workload.requested_time, case.actual)
    named = isinstance(estimate, str) and estimate == "typical-ratio"
    anew = workload.initial is None and case.lost is None and not rules.moves_submissions
    if named and anew and rules.passes == "per-timestamp" and _learned_nothing_else(result):
        return TypicalRatios(result, case.line, case.length)
    return times


def _learned_nothing_else(result: Result) -> bool:
    """Return whether ratios have been learned of the jobs of the schedule, and of no others."""
    ratios = {} if result.learned is None else result.learned.ratios
    return () in ratios and int(ratios[()][0]) == len(result.workload)


def is_told(order: IndexPolicy, case: Case, jobs: Jobs) -> bool:
    """Return whether it follows from the schedule how an order changes with time."""
    if order.function is not None or order.looks_at_usage or order.looks_at_pass:
        return False
    if jobs.times is None and looks_at_time(order):
        return False
    rules = case.result.scheduler
    # then ties are by other numbers than those of submission, and a job may wait more than once
    if rules.moves_submissions or case.lost is not None or rules.reserve.slurm is not None:
        return False
    if order.expression is None or not order.expression.state:
        return True
    state = order.expression.state
    if rules.passes == "per-event" or case.result.workload.initial is not None:
        return False
    return state.isdisjoint(STATE_OF_MACHINE) or (case.needs is None and rules.hold is None)


class Heads(NamedTuple):
    """What is left waiting first, and who overtakes it.

    Attributes
    ----------
    job : (n_times,) the first job that is left waiting, -1 for none, or where it is not looked for.
    told : (n_times,) whether the order is known there.
    overtook : (n_jobs,) whether a job starts while the first one left waiting comes before it.
    changes : whether time may change who comes first.
    """

    job: Times
    told: Mask
    overtook: Mask
    changes: bool

    def ahead(self, case: Case) -> Times:
        """Return how many processors were given past the head at each pass, (n_times,)."""
        given = np.zeros(case.line.time.size, np.int64)
        width = case.runs.workload.requested_processors
        np.add.at(given, case.line.start[self.overtook], width[self.overtook])
        return given


def static_rank(order: IndexPolicy, jobs: Jobs) -> Times | None:
    """Return each job's place in an order that never changes, (n_jobs,); None if it may change."""
    if not stays(order, jobs) or (jobs.times is None and looks_at_time(order)):
        return None
    every = np.arange(len(jobs.result.workload))
    at_submission = Pairs(jobs.line.submit, every, np.zeros(len(every)))
    rank = np.empty_like(every)
    rank[np.argsort(-scores(order, jobs, at_submission), kind="stable")] = every
    return rank


def heads_of(case: Case, jobs: Jobs) -> Heads:
    """Return the heads of passes in an order that changes with time.

    They are looked for where a job starts, or where one that is left waiting would fit.
    """
    every = Passes(case)
    line, rules = case.line, case.result.scheduler
    n, size = len(line.start), line.time.size
    columns = np.full(size, _NONE), np.ones(size, np.bool_), np.zeros(n, np.bool_)
    head, known, overtook = columns
    kept = np.zeros(size, np.bool_)
    kept[line.start[every.starts]] = True
    width = case.result.workload.requested_processors
    kept |= every.passed & (every.least(width, 2**62) <= every.free)
    for places, index, pairs in every.pairs(kept & (line.waiting > 0)):
        score = scores(rules.order, jobs, pairs)
        late = pairs.wait > (np.inf if rules.threshold is None else rules.threshold)
        score[late] = 0.0  # among themselves they are in order of submission
        # the first of each pass that waits, ahead of all that starts
        waits = line.start[pairs.job] > pairs.place
        line_up = np.lexsort((pairs.job, -score, ~late, ~waits, index))
        first = line_up[np.searchsorted(index, np.arange(len(places)))]
        head[places] = pairs.job[first]
        ahead = first[index]  # by pair
        behind = late[ahead] & ~late
        alike = late[ahead] == late
        behind |= alike & (score[ahead] > score)
        behind |= alike & (score[ahead] == score) & (pairs.job[ahead] < pairs.job)
        overtook[pairs.job[behind & ~waits]] = True
        if isinstance(jobs.times, TypicalRatios):
            known[pairs.place[jobs.times.doubtful(pairs)]] = False
    return Heads(*columns, changes=True)


# --- What is left waiting beside a reservation ----------------------------------------------------


class Shadows:
    """When there is room for waiting jobs at passes, by the expected ends of running jobs.

    Parameters
    ----------
    places : of passes, ascending.
    free : (n_passes,) processors that are free at each.
    pieces : of runs, by expected end.
    width : (n_pieces,) processors that each gives back.
    apart : (n_pieces,) the place of a pass at which a piece is left out, -1: none.
    """

    def __init__(
        self, places: Times, free: Times, pieces: Pieces, width: Times, apart: Times
    ) -> None:
        index, piece = met(places, pieces.begin, pieces.stop)
        self._free, self._end = free, pieces.end[piece]
        back = np.where(apart[piece] == places[index], 0, width[piece])
        self._total = np.append(0, np.cumsum(back))
        self._begin = np.searchsorted(index, np.arange(len(places)))
        rank = np.unique(pieces.end, return_inverse=True)[1].ravel()
        self._key = index * (len(rank) + 1) + rank[piece]

    def of(self, index: Times, need: Times) -> tuple[Times, Times]:
        """Return when jobs that do not fit will, and what is free beside them then; both (n,).

        Parameters
        ----------
        index, need : (n,) of which pass, and processors.
        """
        begin, free = self._begin[index], self._free[index]
        at = np.searchsorted(self._total, need - free + self._total[begin], "left") - 1
        stop = np.searchsorted(self._key, self._key[at], "right")
        return self._end[at], free + self._total[stop] - self._total[begin] - need


class Around(NamedTuple):
    """What proofs of jobs around a reservation look at.

    Attributes
    ----------
    pieces : of runs, by expected end.
    predicted, width : (n_jobs,) [s], processors.
    until : whether jobs must end before the reservation, and no others fit beside it.
    """

    pieces: Pieces
    predicted: Times
    width: Times
    until: bool


def around(result: Result, line: Timeline) -> Around:
    """Return what these proofs look at."""
    pieces = pieces_of(result, line)
    order = np.argsort(pieces.end, kind="stable")
    sorted_pieces = Pieces(*(column[order] for column in pieces))
    until = result.scheduler.reserve.kind == "until-shadow"
    width = result.workload.requested_processors
    return Around(sorted_pieces, result.predicted_run_time, width, until)


class Relaxed:
    """How long jobs are that are tried before a head that has not waited for long.

    Attributes
    ----------
    limit : up to which wait of the head others may break its promise [s].
    """

    def __init__(self, case: Case, predicted: Times) -> None:
        rules = case.result.scheduler
        self.limit = 0.0 if rules.relax is None else rules.relax
        self._predicted, self._told = predicted, case.result.candidate_run_time
        self._times = _times_of(case, rules.candidate_estimate) if self.limit else None

    def lengths(self, pairs: Pairs, wait_of_head: Times, starts: Mask) -> tuple[Times, Mask]:
        """Return how long the jobs of pairs count as, and whether that is not sure, (n_pairs,).

        Of jobs that start the schedule tells it in any case.
        """
        lengths, unsure = self._predicted[pairs.job], np.zeros(len(pairs.job), np.bool_)
        relaxed = wait_of_head < self.limit
        if not relaxed.any():
            return lengths, unsure
        likely: Any = lengths
        if isinstance(self._times, TypicalRatios):
            likely, unsure = self._times(pairs), relaxed & self._times.doubtful(pairs)
        elif self._times is not None:
            likely = self._times[pairs.job]
        else:
            unsure = relaxed
        if self._told is not None:
            likely = np.where(starts & unsure, self._told[pairs.job], likely)
        likely = likely.astype(np.int64)
        return np.where(relaxed, np.minimum(lengths, likely), lengths), unsure & ~starts


def has_one_reservation(case: Case) -> bool:
    """Return whether jobs are backfilled around one, at a time that follows from the schedule."""
    return (
        case.result.scheduler.reserve.one
        and not case.result.scheduler.maintenance
        and case.result.scheduler.hold is None
        and case.needs is None
        and ends_are_told(case.result, case.length)
    )


def check_backfilling(case: Case, heads: Heads, jobs: Jobs) -> list[str]:
    """Find jobs that are backfilled and delay the head, and others that could have been.

    Where it is not told in which order jobs are tried, or there are passes per event, only jobs are
    found that could still start after all that do.
    """
    every, rules = Passes(case), case.result.scheduler
    if rules.passes == "per-event":  # several in a second, in which others may be first
        heads = heads._replace(overtook=np.zeros_like(heads.overtook))
    turns, submit = _turns_of(case, jobs), case.result.workload.submit_time
    line, free = every.line, every.free
    pieces, predicted, width, until = around(every.result, line)
    n, relaxed = len(width), Relaxed(case, predicted)
    kept = every.passed & heads.told & (heads.job != _NONE)
    ahead = heads.ahead(case)
    kept &= width[heads.job] > free + ahead if n else False  # else the order is wrong, and told so
    kept &= (ahead > 0) | (every.least(width, 2**62) <= free)
    apart = np.where(heads.overtook[pieces.job], line.start[pieces.job], _NONE)
    late, left = np.zeros(n, np.bool_), np.full(n, _NONE)
    for places, index, pairs in every.pairs(kept):
        head, room = heads.job[places], free[places] + ahead[places]
        shadows = Shadows(places, room, pieces, width[pieces.job], apart)
        shadow, extra = shadows.of(np.arange(len(places)), width[head])
        extra = np.zeros_like(extra) if until else extra
        waits = line.start[pairs.job] > pairs.place
        starts = ~waits & heads.overtook[pairs.job]
        time = line.time[pairs.place]
        length, unsure = relaxed.lengths(pairs, time - submit[head][index], ~waits)
        q, in_time = width[pairs.job], time + length + until <= shadow[index]
        taken = np.where(starts & ~in_time, q, 0)
        over = np.bincount(index, taken, len(places)) > extra
        late[pairs.job[starts & ~in_time & over[index]]] = True
        could = waits & (pairs.job != head[index]) & (q <= room[index])
        could &= ~unsure & (in_time | (q <= extra[index]))
        # only where some job could start if it were the first that is tried
        rows = np.flatnonzero((could | starts) & np.isin(index, index[could]))
        tried = Pairs(pairs.place[rows], pairs.job[rows], pairs.wait[rows])
        # where it is not told, those come last that wait on
        key = ~starts[rows] if turns is None else turns(tried)
        rows = rows[np.lexsort((tried.job, key, tried.place))]
        k, begun = index[rows], np.where(starts[rows], q[rows], 0)
        fits = q[rows] <= free[places][k] + _within(k, begun, later=True)
        fits &= in_time[rows] | (q[rows] <= extra[k] - _within(k, taken[rows], later=False))
        if isinstance(jobs.times, TypicalRatios):
            fits &= ~np.isin(places[k], tried.place[jobs.times.doubtful(tried)])
        fits &= could[rows]
        left[pairs.job[rows[fits]]] = pairs.place[rows[fits]]
    return [
        *cases(
            late,
            "job {} starts at {} s ahead of the queue, and delays the first job that waits",
            line.time[line.start],
        ),
        *cases(
            left != _NONE,
            "job {} waits at {} s, although it fits and delays no reservation",
            line.time[left],
        ),
    ]


def _turns_of(case: Case, jobs: Jobs) -> Callable[[Pairs], Any] | None:
    """Return a function of pairs by which jobs are tried, the least first; None: it is not told."""
    rules, predicted = case.result.scheduler, case.result.predicted_run_time
    order = rules.sweep_order
    if rules.passes == "per-event":
        return None
    if order is None:
        return lambda pairs: predicted[pairs.job]
    if static_rank(order, jobs) is None and not is_told(order, case, jobs):
        return None
    return lambda pairs: -scores(order, jobs, pairs)


def _within(index: Times, amount: Times, *, later: bool) -> Times:
    """Return the sum of the amounts before each entry with the same index, or behind it."""
    if later:
        return _within(-index[::-1], amount[::-1], later=False)[::-1]
    total = np.cumsum(amount) - amount
    first = np.searchsorted(index, index, "left")
    sums: Times = total - total[first]
    return sums


# --- What holds of any order ----------------------------------------------------------------------


def has_some_order(case: Case) -> bool:
    """Return whether the jobs that wait tell that they were served in some order."""
    rules = case.result.scheduler
    return (
        not (rules.reserve.conservative or rules.maintenance)
        and rules.reserve.slurm is None
        and rules.hold is None
        and case.lost is None
    )


def check_any_order(case: Case, asked: Mask) -> list[str]:
    """Find passes of some that are asked for that leave jobs waiting as in no order of the queue.

    In whatever order jobs are served, the first that is left waiting does not fit. So one that does
    not fit waits; around one reservation, one whose reservation all jobs that fit would break.
    """
    every = Passes(case)
    line, free, width = every.line, every.free, case.result.workload.requested_processors
    kept = asked & every.passed & (line.waiting > 0)
    wrong = kept & (-every.least(-width, 2**62) <= free)
    if case.needs is not None:
        wrong = _all_fit_nodes(case, every, wrong)
    if has_one_reservation(case) and case.result.scheduler.relax is None:
        kept &= ~wrong & (every.least(width, 2**62) <= free)
        wrong |= _none_is_in_the_way(case, every, kept)
    text = "at {1} s {2} processors are free and {3} jobs wait, as in no order of the queue"
    return cases(wrong, text, line.time, free, line.waiting)


def _none_is_in_the_way(case: Case, every: Passes, some: Mask) -> Mask:
    """Return at which of some passes each reservation leaves room for a job that waits on."""
    line, free = every.line, every.free
    pieces, predicted, width, until = around(every.result, line)
    apart, wrong = np.full(len(pieces.job), _NONE), np.zeros_like(some)
    for places, index, pairs in every.pairs(some):
        shadows = Shadows(places, free[places], pieces, width[pieces.job], apart)
        q, waits = width[pairs.job], line.start[pairs.job] > pairs.place
        fits = waits & (q <= free[pairs.place])
        shortest, narrowest = (np.full(len(places), 2**62) for _ in range(2))
        np.minimum.at(shortest, index[fits], predicted[pairs.job[fits]])
        np.minimum.at(narrowest, index[fits], q[fits])
        rows = np.flatnonzero(waits & ~fits)
        k = index[rows]
        shadow, extra = shadows.of(k, q[rows])
        breaks = line.time[places[k]] + shortest[k] + until > shadow
        breaks &= until | (narrowest[k] > extra)
        wrong[places] = True
        wrong[places[k[breaks]]] = False
    return wrong


def _all_fit_nodes(case: Case, every: Passes, asked: Mask) -> Mask:
    """Return at which of the passes that are asked for all jobs left waiting fit the nodes."""
    result, line, needs = case.result, case.line, case.needs
    held = result.allocation
    assert needs is not None
    assert held is not None  # as units are proved
    fits = asked.copy()
    # the widest first, as it is the least likely to fit
    order = np.argsort(-result.workload.requested_processors, kind="stable")
    place, rank = met(np.flatnonzero(asked), line.submit[order], line.start[order])
    at, job = np.flatnonzero(asked)[place], order[rank]
    turn = np.arange(len(at)) - np.searchsorted(at, at, "left")
    for number in range(int(turn.max(initial=-1)) + 1):
        rows = (turn == number) & fits[at]
        if not rows.any():
            break
        tried, now = np.zeros(line.time.size, np.int64), np.zeros_like(asked)
        tried[at[rows]], now[at[rows]] = job[rows], True
        on_nodes = passes.fits_nodes(result, needs, held, line, tried, now)
        fits[now] = on_nodes[now]
    return fits
