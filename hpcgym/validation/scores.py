"""Orders of the queue, computed again at the passes of a schedule, without the engine.

A *pair* is a pass and a job that waits there or starts: most arrays here have one entry a pair.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcgym.elementary import exp, log, log2, log10, power, tanh
from hpcgym.scheduler.estimates.learning import looks_at_time
from hpcgym.scheduler.policies import operations as op
from hpcgym.scheduler.policies.features import STATE_OF_ALL, JobColumns
from hpcgym.validation.pieces import pieces_of
from hpcgym.validation.schedules import Mask, Timeline, Times, over_time
from hpcgym.workload.extracts import decided
from hpcgym.workload.io.swf_header import clock_of

if TYPE_CHECKING:
    from hpcgym.schedule.result import Result
    from hpcgym.scheduler.policies.expressions import Expression, Layer, ProgramStep
    from hpcgym.scheduler.policies.index import IndexPolicy

Floats = NDArray[np.float64]


class Pairs(NamedTuple):
    """Passes and jobs that wait there or start.

    Attributes
    ----------
    place : (n_pairs,) of the pass, in the times of the schedule.
    job : (n_pairs,).
    wait : (n_pairs,) [s] of the job at the pass.
    """

    place: Times
    job: Times
    wait: Floats


def _power(a: Floats, b: Floats) -> Floats:
    a, b = np.broadcast_arrays(a, b)
    return np.select([b == 2, b == 3], [a * a, a * a * a], power(a, b))


_OF_ONE: dict[int, Callable[[Floats], Any]] = {
    op.NEGATIVE: lambda a: -a,
    op.NOT: lambda a: a == 0,
    op.LOG: log,
    op.LOG2: log2,
    op.LOG10: log10,
    op.EXP: exp,
    op.TANH: tanh,
    op.SQRT: np.sqrt,
    op.ABS: np.abs,
    op.FLOOR: np.floor,
}
_OF_TWO: dict[int, Callable[[Floats, Floats], Any]] = {
    op.ADD: np.add,
    op.SUBTRACT: np.subtract,
    op.MULTIPLY: np.multiply,
    op.DIVIDE: np.divide,
    op.WHOLE_PARTS: np.floor_divide,
    op.REST: np.mod,
    op.POWER: _power,
    op.LEAST: lambda a, b: np.where(b < a, b, a),  # the first if one is no number, as in Python
    op.GREATEST: lambda a, b: np.where(b > a, b, a),
    op.LESS: np.less,
    op.AT_MOST: np.less_equal,
    op.MORE: np.greater,
    op.AT_LEAST: np.greater_equal,
    op.EQUAL: np.equal,
    op.UNEQUAL: np.not_equal,
    op.AND: lambda a, b: (a != 0) & (b != 0),
    op.OR: lambda a, b: (a != 0) | (b != 0),
}


# --- Scores of jobs at passes ---------------------------------------------------------------------


class Part(NamedTuple):
    """A value of an expression: of all jobs and passes alike, by job, by pass, or by pair."""

    values: Floats
    by: str = ""  # "job", "place" or "pair"


@dataclass(frozen=True)
class Jobs:
    """What scores look at: the jobs of a schedule, and their run times as policies see them.

    Attributes
    ----------
    result, line : the schedule and its times.
    times : (n_jobs,) [s] in place of requested times, or a function of pairs where these are
        predictions that change as jobs wait; None: not told.
    """

    result: Result
    line: Timeline
    times: Times | Callable[[Pairs], Floats] | None

    @cached_property
    def columns(self) -> JobColumns:
        """The columns of the jobs."""
        return JobColumns(self.result.workload)

    @cached_property
    def state(self) -> PassState:
        """The state that passes find."""
        return PassState(self.result, self.line)

    def requested(self, pairs: Pairs) -> Part:
        """Return the run times that policies see."""
        if callable(self.times):
            return Part(self.times(pairs), "pair")
        assert self.times is not None
        return Part(self.times.astype(np.float64), "job")

    def feature(self, name: str, pairs: Pairs) -> Part:
        """Return the part of a feature that waiting does not change."""
        if name in ("wait", "unicef"):
            return Part(np.zeros(1))
        if name == "expansion":
            return Part(np.ones(1))
        q = Part(self.columns.processors, "job")
        if name == "processors":
            return q
        p = self.requested(pairs)
        since = Part(np.maximum(self.columns.since_first, 1.0), "job")

        def of(function: Callable[..., Any], *parts: Part) -> Part:
            return combine(function, parts, pairs)

        def log(part: Part) -> Part:
            return of(log10, part)

        if name == "f1":
            return of(lambda p, q, s: p * q + 870.0 * s, log(p), q, log(since))
        return {
            "requested": lambda: p,
            "ratio": lambda: of(np.divide, p, q),
            "area": lambda: of(np.multiply, p, q),
            "f2": lambda: of(lambda p, q, s: np.sqrt(p) * q + 25_600.0 * s, p, q, log(since)),
            "f3": lambda: of(lambda p, q, s: p * q + 6_860_000.0 * s, p, q, log(since)),
            "f4": lambda: of(lambda p, q, s: p * np.sqrt(q) + 530_000.0 * s, p, q, log(since)),
        }[name]()

    def patience(self, name: str, pairs: Pairs) -> Part:
        """Return the seconds of waiting that add 1 to a feature that waiting changes."""
        if name == "wait":
            return Part(np.ones(1))
        p = self.requested(pairs)
        if name == "expansion":
            return p
        q = Part(log2(self.columns.processors), "job")
        return combine(lambda q, p: np.maximum(q * p, 1e-200), (q, p), pairs)


def combine(function: Callable[..., Any], parts: tuple[Part, ...], pairs: Pairs) -> Part:
    """Return a function of values: by job or by pass while it can be, else by pair."""
    kinds = {part.by for part in parts if part.by}
    by = kinds.pop() if len(kinds) == 1 else "pair" if kinds else ""
    values = [lifted(part, pairs) if by == "pair" else part.values for part in parts]
    with np.errstate(all="ignore"):
        return Part(np.asarray(function(*values), np.float64), by)


def lifted(part: Part, pairs: Pairs) -> Floats:
    """Return a value by pair; one that is the same for all is (1,)."""
    if part.by == "job":
        return part.values[pairs.job]
    return part.values[pairs.place] if part.by == "place" else part.values


def scores(order: IndexPolicy, jobs: Jobs, pairs: Pairs) -> Floats:
    """Return the scores of pairs, (n_pairs,): the highest comes first; -inf is no number.

    As docs/semantics.md says: the sum of weighted features in the order of their table, then
    wait / patience; or the value of an expression.
    """
    since = _submission(order)
    if since is not None:
        values = since * jobs.columns.submit[pairs.job]
    elif order.expression is not None:
        values = lifted(_value(order.expression, jobs, pairs), pairs)
    elif order.cubed:
        x = pairs.wait / lifted(jobs.requested(pairs), pairs)
        values = jobs.columns.processors[pairs.job] * (x * x * x)
    else:
        values = _weighed(order.weights, jobs, pairs)
    values = np.broadcast_to(values, pairs.job.shape)
    return np.where(np.isnan(values), -np.inf, values)


def _submission(order: IndexPolicy) -> float | None:
    """Return the factor of submit times in the order of submission, or its reverse; else None."""
    if order.expression is not None:
        last = order.expression.reversed
    else:
        alone = order.is_weighted_sum and set(order.weights) == {"wait"}
        last = order.weights["wait"] < 0 if alone else None
    return None if last is None else 1.0 if last else -1.0


def stays(order: IndexPolicy, jobs: Jobs) -> bool:
    """Return whether the places of jobs in an order never change."""
    if callable(jobs.times) and looks_at_time(order):
        return False
    if _submission(order) is not None:
        return True
    if order.expression is not None:
        return not order.expression.general and not order.expression.usage
    return order.is_weighted_sum and {*_FEATURES} - {*_WAITING} >= order.weights.keys()


_FEATURES = (
    *("processors", "requested", "wait", "ratio", "expansion", "area", "unicef"),
    *("f1", "f2", "f3", "f4"),
)
_WAITING = ("wait", "expansion", "unicef")


def _weighed(weights: Mapping[str, float], jobs: Jobs, pairs: Pairs) -> Floats:
    """Return weighted sums of features."""
    used = [name for name in _FEATURES if name in weights]
    score = Part(np.zeros(1))
    for name in used:
        weight = weights[name]
        score = combine(
            lambda total, part, w=weight: total + w * part,
            (score, jobs.feature(name, pairs)),
            pairs,
        )
    waiting = [name for name in used if name in _WAITING]
    if not waiting:
        return lifted(score, pairs)
    with np.errstate(all="ignore"):
        if waiting == ["wait"]:
            patience: Floats = np.full(1, 1.0 / weights["wait"])
        elif waiting == ["wait", "expansion"]:
            p = lifted(jobs.requested(pairs), pairs)
            patience = p / (weights["wait"] * p + weights["expansion"])
        else:
            each = [lifted(jobs.patience(name, pairs), pairs) / weights[name] for name in waiting]
            gain = np.zeros(pairs.job.shape)
            for part in each:
                gain = gain + 1.0 / part
            patience = each[0] if len(each) == 1 else 1.0 / gain
        return lifted(score, pairs) + pairs.wait / patience


def _value(expression: Expression, jobs: Jobs, pairs: Pairs) -> Part:
    """Return the value of an expression."""
    stack: list[Part] = []
    for step in expression.steps:
        first = len(stack) - op.takes(step.code, step.number)
        taken = tuple(stack[first:])
        if step.code in op.PUSHES:
            value = _pushed(step, jobs, pairs)
        elif step.code in _OF_ONE:
            value = combine(_OF_ONE[step.code], taken, pairs)
        elif step.code in _OF_TWO:
            value = combine(_OF_TWO[step.code], taken, pairs)
        elif step.code == op.LAYER:
            assert expression.layer is not None
            value = _of_network(expression.layer, taken, pairs)
        else:
            value = combine(lambda a, b, c: np.where(a != 0, b, c), taken, pairs)
        stack[first:] = [value]
    return stack[0]


def _of_network(layer: Layer, inputs: Sequence[Part], pairs: Pairs) -> Part:
    """Return the scores of a network, one unit after the other."""

    def add(a: Part, b: Part) -> Part:
        return combine(np.add, (a, b), pairs)

    def total(weights: Floats, bias: float) -> Part:
        """Return a weighted sum: of inputs by job, and by pass, and then of the others."""
        sums = {"job": Part(np.full(1, bias)), "pass": Part(np.zeros(1))}
        for by in ("job", "pass", "pair"):
            value = sums[by] if by in sums else add(sums["job"], sums["pass"])
            for weight, part, given in zip(weights.tolist(), inputs, layer.inputs, strict=True):
                if given.by == by:
                    value = add(value, Part(weight * part.values, part.by))
            sums[by] = value
        return sums["pair"]

    fourths = [Part(np.zeros(1))] * 4
    for k, output in enumerate(layer.output.tolist()):
        unit = total(layer.hidden[k], float(layer.bias[k]))
        fourths[k % 4] = add(fourths[k % 4], Part(output * tanh(unit.values), unit.by))
    last = add(add(fourths[0], fourths[1]), add(fourths[2], fourths[3]))
    return add(total(layer.skip, 0.0), last)


def _pushed(step: ProgramStep, jobs: Jobs, pairs: Pairs) -> Part:
    """Return what a step pushes."""
    if step.code == op.NUMBER:
        return Part(np.full(1, step.number))
    wait = Part(pairs.wait, "pair")
    if step.code == op.WAIT:
        return wait
    if step.code == op.STATE:
        return jobs.state.value(step.name, pairs)
    if step.amount:
        asked = jobs.columns.asked(step.amount)
        if step.code == op.COLUMN:
            return Part(asked, "job")
        return Part(jobs.state.in_use(asked.astype(np.int64)).astype(np.float64), "place")
    if step.code == op.FEATURE:
        value = jobs.feature(step.name, pairs)
        if step.name in ("expansion", "unicef"):
            patience = jobs.patience(step.name, pairs)
            return combine(lambda a, w, d: a + w / d, (value, wait, patience), pairs)
        return value
    column = _COLUMNS.get(step.name, step.name)
    if step.text:
        called = jobs.columns.are_called(column, (step.text,))
        return Part(called.astype(np.float64), "job")
    if step.name == "nice":
        return Part(jobs.columns.nice, "job")
    value = Part(jobs.columns.field(column), "job")
    return combine(np.add, (value, wait), pairs) if step.name == "clock" else value


#: Names of expressions that are not those of columns.
_COLUMNS = {
    **{"submit": "submit_time", "clock": "submit_time", "time_limit": "requested_time"},
    **{"user": "user_id", "group": "group_id", "code": "executable"},
}


# --- The state that passes find -------------------------------------------------------------------

_FEW = 5  # last jobs of a user
_DAY = 86_400  # [s]


class PassState:
    """What passes find before a job starts in them, as expressions name it."""

    def __init__(self, result: Result, line: Timeline) -> None:
        self._result, self._line = result, line
        self._ours = decided(result.workload)
        self._width = result.workload.requested_processors
        self._user = np.unique(result.workload.user_id, return_inverse=True)[1].ravel()

    def value(self, name: str, pairs: Pairs) -> Part:
        """Return what a name of the state is."""
        if name in STATE_OF_ALL:
            return Part(getattr(self, "_" + name)(), "place")
        return Part(getattr(self, "_" + name)(pairs), "pair")

    @cached_property
    def _started(self) -> Times:
        """Processors of jobs that start at each time."""
        processors = np.zeros(self._line.time.size, np.int64)
        np.add.at(processors, self._line.start[self._ours], self._width[self._ours])
        return processors

    @cached_property
    def _units(self) -> Times:
        """Free processors at each time."""
        free: Times = self._result.cluster.processors - self._line.used + self._started
        return free

    def _free(self) -> Floats:
        return self._units / self._result.cluster.processors

    def _free_1h(self) -> Floats:
        held = self.in_use(self._width, 3600)
        processors = self._result.cluster.processors
        return (processors - held) / processors

    def in_use(self, asked: Times, ahead: int = 0) -> Times:
        """Return what running jobs have together, of what each asks for, (n_jobs,).

        ``ahead`` [s]: without jobs that are to end by then.
        """
        line, (job, begin, stop, end) = self._line, pieces_of(self._result, self._line)
        begin = begin + (self._ours[job] & (begin == line.start[job]))  # from the next pass on
        if ahead:
            stop = np.minimum(stop, np.searchsorted(line.time, end - ahead, "left"))
        kept = begin < stop
        return over_time(line.time.size, begin[kept], stop[kept], asked[job[kept]])

    def _queued(self) -> Floats:
        starts = np.bincount(self._line.start[self._ours], minlength=self._line.time.size)
        return (self._line.waiting + starts).astype(np.float64)

    def _behind(self) -> Floats:
        line, ours = self._line, self._ours
        work = self._result.workload.requested_time * self._width
        waiting = over_time(line.time.size, line.submit[ours], line.start[ours] + 1, work[ours])
        return waiting / self._result.cluster.processors

    def _seconds(self) -> Times:
        """Return the time of the week [s]."""
        week: Times = (self._line.time + clock_of(self._result.workload)) % (7 * _DAY)
        return week

    def _hour(self) -> Floats:
        return (self._seconds() % _DAY) / 3600.0

    def _weekday(self) -> Floats:
        return (self._seconds() // _DAY).astype(np.float64)

    def _machine_size(self) -> Floats:
        return np.full(self._line.time.size, float(self._result.cluster.processors))

    def _fits(self, pairs: Pairs) -> Floats:
        return (self._width[pairs.job] <= self._units[pairs.place]).astype(np.float64)

    def _leaves(self, pairs: Pairs) -> Floats:
        left = np.maximum(self._units[pairs.place] - self._width[pairs.job], 0)
        share: Floats = left / self._result.cluster.processors
        return share

    def _before(self, place: Times, of: Mask, pairs: Pairs, *, then: bool) -> Times:
        """Return how many jobs of a pair's user have a place before the pass, or there too."""
        size = self._line.time.size + 1
        key = np.sort(self._user[of] * size + place[of])
        user = self._user[pairs.job] * size
        until = np.searchsorted(key, user + pairs.place + int(then), "left")
        counts: Times = until - np.searchsorted(key, user, "left")
        return counts

    def _user_running(self, pairs: Pairs) -> Floats:
        line, ours = self._line, self._ours
        began = self._before(line.start, ours, pairs, then=False)
        began += self._before(line.start, ~ours, pairs, then=True)
        ended = self._before(line.end, np.ones_like(ours), pairs, then=True)
        return (began - ended).astype(np.float64)

    def _user_waiting(self, pairs: Pairs) -> Floats:
        line, ours = self._line, self._ours
        came = self._before(line.submit, ours, pairs, then=True)
        began = self._before(line.start, ours, pairs, then=False)
        return (came - began).astype(np.float64)

    @cached_property
    def _runs(self) -> tuple[Times, Times]:
        """Run times by user, in the order of ends; and their users and ends in one number."""
        line = self._line
        order = np.lexsort((self._result.start, line.end, self._user))
        key = self._user[order] * (line.time.size + 1) + line.end[order]
        return self._result.run_time[order], key

    def _last_runs(self, pairs: Pairs) -> tuple[Floats, Times]:
        """Return the last run times, (_FEW, n_pairs), the last first; how many there are."""
        run, key = self._runs
        user = self._user[pairs.job] * (self._line.time.size + 1)
        stop = np.searchsorted(key, user + pairs.place, "right")
        known = np.minimum(stop - np.searchsorted(key, user, "left"), _FEW)
        back = np.arange(1, _FEW + 1)[:, np.newaxis]
        return run[np.maximum(stop - back, 0)].astype(np.float64), known

    def _or_requested(self, values: Floats, known: Times, pairs: Pairs) -> Floats:
        requested = self._result.workload.requested_time[pairs.job]
        return np.where(known > 0, values, requested)

    def _last_run(self, pairs: Pairs) -> Floats:
        runs, known = self._last_runs(pairs)
        return self._or_requested(runs[0], known, pairs)

    def _mean(self, runs: Floats, known: Times) -> Floats:
        there = np.arange(_FEW)[:, np.newaxis] < known
        mean: Floats = np.where(there, runs, 0.0).sum(axis=0) / np.maximum(known, 1)
        return mean

    def _mean_run(self, pairs: Pairs) -> Floats:
        runs, known = self._last_runs(pairs)
        return self._or_requested(self._mean(runs, known), known, pairs)

    def _spread_run(self, pairs: Pairs) -> Floats:
        runs, known = self._last_runs(pairs)
        mean, total = self._mean(runs, known), np.zeros(pairs.job.shape)
        for back in reversed(range(_FEW)):  # in the order of their ends, as rounding goes by it
            off = runs[back] - mean
            total = total + np.where(back < known, off * off, 0.0)
        return np.sqrt(total / np.maximum(known, 1))

    def _known_runs(self, pairs: Pairs) -> Floats:
        return self._last_runs(pairs)[1].astype(np.float64)


# --- The typical ratios of users, where policies look at them -------------------------------------

_DECAY = 0.95  # factor of older jobs for each new one


class TypicalRatios:
    """Predictions by the requested time and the user's typical ratio, at any pass.

    As docs/prediction.md says: a job is predicted when it is submitted, and again at a pass if a
    job of its user has ended since. Passes are those after all events of a second. Which of two
    jobs ended first that both started and ended together is not known: a prediction is *doubtful*
    if it depends on that.
    """

    def __init__(self, result: Result, line: Timeline, length: Times) -> None:
        workload = result.workload
        self._line, self._size = line, line.time.size + 1
        self._requested = workload.requested_time
        self._user = np.unique(workload.user_id, return_inverse=True)[1].ravel()
        width = np.unique(workload.requested_processors, return_inverse=True)[1].ravel()
        alike = self._user * (int(width.max(initial=0)) + 1) + width
        self._class = np.unique(alike, return_inverse=True)[1].ravel()
        by_end = np.lexsort((result.start, line.end))
        self._ends, starts = line.end[by_end], line.start[by_end]
        ratio = log(length[by_end] / self._requested[by_end])
        self._total = np.append(0.0, [*accumulate(ratio.tolist())])
        together = np.unique(self._ends * self._size + starts, return_inverse=True)[1].ravel()
        self._of_user = self._decayed(self._user[by_end], ratio, together)
        self._of_class = self._decayed(self._class[by_end], ratio, together)
        self._last: tuple[Pairs | None, Floats, Mask] = (None, np.zeros(0), np.zeros(0, np.bool_))

    def _decayed(self, group: Times, ratio: Floats, together: Times) -> _Rows:
        """Return what is known of groups after each end, by group and end.

        ``together`` : (n_ends,) a number that is the same for jobs that started and ended together.
        """
        rows: dict[int, tuple[float, float, float]] = {}
        same: dict[int, tuple[int, int, float, float]] = {}
        after = np.empty((3, len(group)))
        columns = (column.tolist() for column in (group, ratio, together))
        for k, (key, logarithm, moment) in enumerate(zip(*columns, strict=True)):
            before, number, low, high = same.get(key, (-1, 0, 0.0, 0.0))
            if before != moment:
                number, low, high = 0, logarithm, logarithm
            low, high = min(low, logarithm), max(high, logarithm)
            same[key] = (moment, number + 1, low, high)
            count, total, error = rows.get(key, (0.0, 0.0, 0.0))
            # at least what another order of so many jobs changes
            error = _DECAY * error + 2 * (1 - _DECAY) * number * (high - low)
            rows[key] = after[:, k] = (_DECAY * count + 1.0, _DECAY * total + logarithm, error)
        order = np.argsort(group, kind="stable")
        return _Rows(group[order] * self._size + self._ends[order], *after[:, order])

    def __call__(self, pairs: Pairs) -> Floats:
        """Return the predictions of pairs, (n_pairs,) whole seconds."""
        return self._both(pairs)[0]

    def doubtful(self, pairs: Pairs) -> Mask:
        """Return which predictions of pairs are doubtful, (n_pairs,)."""
        return self._both(pairs)[1]

    def _both(self, pairs: Pairs) -> tuple[Floats, Mask]:
        if self._last[0] is pairs:
            return self._last[1:]
        job, key = pairs.job, self._of_user.key
        begin = self._user[job] * self._size
        last = np.searchsorted(key, begin + pairs.place, "right") - 1
        ended = np.where((last >= 0) & (key[last] >= begin), key[last] - begin, 0)
        when = np.maximum(ended, self._line.submit[job])
        known = np.searchsorted(self._ends, when, "right")
        everyone = self._total[known] / np.maximum(known, 1)
        of_user = self._of_user.shrunk(begin, when, everyone, np.zeros(1))
        of_class = self._of_class.shrunk(self._class[job] * self._size, when, *of_user)
        requested = self._requested[job].astype(np.float64)
        seconds = requested * exp((of_user[0] + of_class[0]) / 2.0)
        predicted, error = _cut(seconds, requested), (of_user[1] + of_class[1]) / 2.0
        doubtful, rows = np.zeros(job.shape, np.bool_), np.flatnonzero(error)
        low, high = (
            _cut(seconds[rows] * exp(sign * error[rows]), requested[rows]) for sign in (-1, 1)
        )
        doubtful[rows] = low != high
        self._last = (pairs, predicted, doubtful)
        return predicted, doubtful


def _cut(seconds: Floats, requested: Floats) -> Floats:
    """Return predictions as whole seconds, from 1 to what is requested."""
    whole = np.maximum(np.floor(seconds + 1e-6), 1.0)
    return np.where(seconds < requested, whole, requested)


class _Rows(NamedTuple):
    """What is known of groups of jobs after each end, each (n_ends,), by group and end.

    Attributes
    ----------
    key : the group and the place of the end in one number.
    jobs, total : their number, and the sum of the logarithms of their ratios, decayed.
    error : by how much the total may differ in another order of ends.
    """

    key: Times
    jobs: Floats
    total: Floats
    error: Floats

    def shrunk(
        self, begin: Times, when: Times, wider: Floats, error: Floats
    ) -> tuple[Floats, Floats]:
        """Return mean logarithms of groups as of some places, and their errors.

        The mean of the wider group, ``wider``, with its error, is one job.
        """
        last = np.searchsorted(self.key, begin + when, "right") - 1
        there = (last >= 0) & (self.key[last] >= begin)
        count, total, own = (
            np.where(there, column[last], 0.0) for column in (self.jobs, self.total, self.error)
        )
        return (total + wider) / (count + 1.0), (own + error) / (count + 1.0)
