"""What happened while a job waited: passes, stops, and who ran meanwhile."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcgym.errors import HpcgymError, HpcgymWarning, is_number
from hpcgym.schedule.result import Result
from hpcgym.schedule.schedule import runs_of
from hpcgym.scheduler.allocations import UNLIMITED
from hpcgym.scheduler.restrictions import MOST_BOUND, Preemption, Quota
from hpcgym.simulation.continued import again
from hpcgym.simulation.restricted import columns_of
from hpcgym.units import duration, in_seconds

# --- How long an explanation may take -------------------------------------------------------------

#: [s] that an explanation takes at most, unless somebody says how long.
SECONDS = 20.0


def time_of(seconds: Any) -> float:
    """Return how long an explanation may take [s], or say that this is no time; None: for ever.

    Raises
    ------
    HpcgymError : no number, or one below 0.
    """
    if seconds is None:
        return float("inf")
    seconds = in_seconds(seconds, "seconds")
    if not is_number(seconds) or not seconds >= 0:
        raise HpcgymError(f"seconds must be a number of at least 0, or None, not {seconds!r}")
    return float(seconds)


def over_after(seconds: float) -> Callable[[], bool]:
    """Return what tells whether so many seconds have passed since now."""
    end = time.monotonic() + seconds
    return lambda: time.monotonic() >= end


# --- What a scheduler knew of jobs at each pass of their wait -------------------------------------
#
# The simulation itself keeps nothing of this, so that it costs nothing if unused. It is
# run again, one pass at a time from where it matters.

Rows = NDArray[np.int64]  # rows of jobs, (k,)


class Moment(NamedTuple):
    """What stood at the end of a pass, whoever asks.

    Attributes
    ----------
    time : [s] of the workload's clock.
    head : row of the job that could not start and stood first, -1 if there was none.
    shadow : [s] when it can start by predicted ends; -1 if it had no reservation.
    extra : processors that it leaves free then; 0 under quotas, which do not count them.
    free : processors.
    looked : whether the pass looked at all that it looks at, and not only from the first job to
        one that did not fit, as most of Slurm's do.
    """

    time: int
    head: int
    shadow: int
    extra: int
    free: int
    looked: bool


class Pass(NamedTuple):
    """What stood at the end of a pass, for one job.

    Attributes
    ----------
    at : what stood then, whoever asks.
    ahead : queued jobs that were to be served before the job.
    before : as ``ahead``, with those that were backfilled in the pass.
    unseen : whether a pass that backfills does not look at the job, as Slurm's may not.
    quotas : those that the job would have exceeded, had it started, each with the one bound; in
        their order.
    """

    at: Moment
    ahead: int
    before: int
    unseen: bool
    quotas: tuple[Quota, ...]


_NO_PREEMPTION = (
    "without preemption, --scheduler easy:preemption=none or slurm.conf:qos=FILE+preemption=none,"
    " in Python .but(preemption=None)"
)


def why_not_watched(result: Result) -> str:
    """Return why the passes of a schedule cannot be made again, in words; nothing if they can.

    They can on pools and on nodes of their own under an order of the queue; not under limits, where
    jobs share nodes, where nodes fail, around windows, where jobs follow or stop others, or where a
    dispatcher or a function says what starts. Behind the reason stands what can be explained.

    Where quotas say when jobs are submitted, :func:`watch` and :meth:`Watched.same` find out.
    """
    rules = result.scheduler
    stopped = result.interrupted is not None
    by_name = "under an order of the queue by its name"
    stops, follows = stopped and rules.preemption is not None, rules.dependencies != "none"
    reasons = [
        (result.limits is not None, "under limits of power or energy", "without limits"),
        (result.coschedule is not None, "where jobs share nodes", "where they do not"),
        (stops, "where jobs may stop others (preemption)", _NO_PREEMPTION),
        (stopped, "where nodes fail", "without failures"),
        (result.dispatcher is not None, "where a dispatcher says what starts", by_name),
        (result.outside, "where the order of the queue came from outside", by_name),
        (rules.order.function is not None, "where a function orders the queue", by_name),
        (bool(rules.maintenance), "with maintenance windows", "without them"),
        (follows, "where jobs follow others (dependencies)", "without dependencies"),
    ]
    return next((_with_advice(*reason) for holds, *reason in reasons if holds), "")


def _with_advice(why: str, otherwise: str) -> str:
    """Return why something is not explained, and what can be done instead."""
    return f"{why}; explain it {otherwise}, or look at the runs with hpcgym explore"


#: Why a schedule is not explained that :func:`as_submitted` does not give again.
OTHER = _with_advice(
    "where quotas submit jobs between two passes of one second", "without quotas of submitted jobs"
)


def as_submitted(result: Result) -> Result:
    """Return a schedule without quotas of submitted jobs: its jobs come when they came under them.

    All else stays, so it is the same schedule, unless such a quota submits a job between two passes
    of one second.
    """
    rules = result.scheduler
    if not rules.moves_submissions:
        return result
    # one that bounds nothing else stays, and bars nobody: with a quota passes are of another kind
    kept = [quota.with_bounds(quota.running or {"jobs": MOST_BOUND}) for quota in rules.quota]
    return replace(result, scheduler=rules.but(quota=kept), given=None)


def running_bounds(quotas: Iterable[Quota]) -> list[Quota]:
    """Return each bound on what running jobs have, as a quota of its own."""
    return [
        quota.with_bounds({name: most}) for quota in quotas for name, most in quota.running.items()
    ]


@contextmanager
def said_before() -> Iterator[None]:
    """Leave out warnings of simulations that are made again: the first has said them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HpcgymWarning)
        yield


class Watched:
    """The simulation of a schedule, made again, and what stands at the end of each pass.

    Parameters
    ----------
    result : of :func:`hpcgym.simulate`, for which :func:`why_not_watched` says nothing.
    """

    def __init__(self, result: Result) -> None:
        self.result = as_submitted(result)
        self._driven = again(self.result)
        self._native = self._driven.native
        self.come = 0  #: jobs that have been submitted

    def go_on(self, until: int) -> None:
        """Simulate up to a time [s], and look at no pass."""
        self._driven.drive(until)

    def each_pass(self, until: int) -> Iterator[Moment]:
        """Yield what stands at the end of each pass up to a time [s]."""
        while self._driven.drive(until, 1):
            yield self._moment()

    def queued(self, rows: Rows, *, with_filled: bool = False) -> Rows:
        """Return those of some rows that are in the queue.

        ``with_filled``: those that have just been backfilled count as well.
        """
        rows = rows[rows < self.come]
        known = self._native.progress(rows)
        waits = known["start"] < 0
        if with_filled:
            waits |= (known["start"] == self._native.time) & (known["backfilled"] > 0)
        return rows[waits]

    def before(self, job: int, rows: Rows) -> int:
        """Return how many queued jobs come before one; 0 if it is not in the queue."""
        mine = np.flatnonzero(self._native.in_order(rows) == job)
        return int(mine[0]) if len(mine) else 0

    def exceeding(self, rows: Rows) -> NDArray[np.bool_]:
        """Return which bounds each of some jobs would exceed if it started now, (k, K) bool.

        They are those of :func:`running_bounds`, in their order.
        """
        columns, own = self._columns
        exceeded = self._native.exceeded(rows).reshape(len(rows), max(columns, default=-1) + 1)
        return own[rows] & (exceeded[:, columns] > 0)

    @cached_property
    def _columns(self) -> tuple[list[int], NDArray[np.bool_]]:
        """The column of each bound in the engine, and which jobs count in it, (n_jobs, K)."""
        jobs, bounds = self.result.workload, running_bounds(self.result.scheduler.quota)
        own = np.zeros((len(jobs), len(bounds)), np.bool_)
        for place, quota in enumerate(bounds):
            own[:, place] = quota.counted(jobs) >= 0
        return columns_of(jobs, [(quota, *dict(quota.bounds)) for quota in bounds]), own

    def unseen(self, rows: Rows) -> Rows:
        """Return which queued jobs a pass of Slurm's that backfills does not look at.

        ``rows``: of all jobs that were queued as the pass began, and perhaps of others.
        """
        slurm = self.result.scheduler.reserve.slurm
        if slurm is None:
            return np.zeros(0, np.int64)
        rows = self._native.in_order(self.queued(rows, with_filled=True))
        if slurm.bf_max_job_user == 0:
            return rows[slurm.bf_max_job_test :]
        barred = self.exceeding(rows).any(axis=1) & (self._native.progress(rows)["start"] < 0)
        users = self.result.workload.user_id[rows].tolist()
        of_user, seen = dict.fromkeys(users, 0), list[int]()
        for place, user in enumerate(users):
            if of_user[user] < slurm.bf_max_job_user and len(seen) < slurm.bf_max_job_test:
                seen.append(place)
                of_user[user] += not barred[place]
        return np.delete(rows, seen)

    def same(self) -> bool:
        """Return whether all jobs that have been submitted started as in the schedule so far."""
        rows, time = np.arange(self.come), self._native.time
        start = self.result.start[rows]
        started = self._native.progress(rows)["start"]
        return bool(np.array_equal(started, np.where(start <= time, start, -1)))

    def _moment(self) -> Moment:
        """Return what stands now, at the end of a pass."""
        known, rules = self._native.moment(), self._driven.told.rules
        depth, every = rules["depth"], rules.get("every", 0)
        names = ("time", "submitted", "free", "head", "shadow", "extra")
        time, self.come, free, head, shadow, extra = (known[name].item() for name in names)
        # under quotas there is one reservation, or none, and yet a plan; Slurm's have no first
        several = depth > 1 or (every > 0 and depth > 0)
        if depth == UNLIMITED or (rules.get("tested", 0) > 0 and several):
            head = -1
        # a head that has started since is not cleared
        stands = head >= 0 and self._native.start(head) < 0
        promised = stands and depth > 0
        looked = every == 0 or depth == 0 or known["next_look"] == time + every
        return Moment(
            time,
            head if stands else -1,
            shadow if promised else -1,
            extra if promised else 0,
            max(free, 0),
            bool(looked),
        )


def watch(result: Result, job: int) -> tuple[list[Pass], str]:
    """Return what stood at the end of each pass from the job's submission up to its start.

    Of an extract they begin with it. The last pass is the one at which the job starts. If the
    passes cannot be made again, the list is empty, and the text says why; else the text is blank.

    Parameters
    ----------
    job : its row.
    """
    if why := why_not_watched(result):
        return [], why
    watched = Watched(result)
    submit, start = seen_from(result, job), int(result.start[job])
    if submit > _begin(result):  # the engine makes the first pass whatever it is told
        watched.go_on(submit - 1)
    waited = np.flatnonzero((result.workload.submit_time <= start) & (result.start >= submit))
    passes: list[Pass] = []
    known = running_bounds(watched.result.scheduler.quota)
    for at in watched.each_pass(start):
        ahead, before = (
            watched.before(job, watched.queued(waited, with_filled=filled))
            for filled in (False, True)
        )
        exceeded = watched.exceeding(watched.queued(np.array([job])))
        quotas = tuple(known[place] for place in np.flatnonzero(exceeded.any(axis=0)))
        passes.append(Pass(at, ahead, before, job in watched.unseen(waited), quotas))
    return (passes, "") if watched.same() else ([], OTHER)


# --- When a job was stopped, for whom or by what, and what that cost it ---------------------------

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
        and on nodes have a node that it had; or, if it had grace time, they waited as that began,
        and may stop it. Of several it is not known which needed its place.
    nodes : its nodes that failed then, by name, or by number without one.
    """

    how: str
    began: int
    stopped: int
    jobs: list[int]
    nodes: list[int | str]


class Victim(NamedTuple):
    """A job that was stopped, when [s], and the rows of those for which it can have been."""

    row: int
    time: int
    by: list[int]


def stops_of(result: Result, row: int) -> list[Stop]:
    """Return each time at which a job was stopped, by time; ``row`` is its own."""
    rule, stops = result.scheduler.preemption, []
    stoppers = None if rule is None else _stoppers(result, rule)
    numbers = result.workload.job_number
    for of_run, began, stopped, held in _stopped_runs(result):
        if of_run != row:
            continue
        if rule is None or stoppers is None:
            stops.append(Stop("failed", began, stopped, [], _failed(result, stopped, held)))
        else:
            jobs: list[int] = numbers[stoppers(row, stopped, held)].tolist()
            stops.append(Stop(_HOW[rule.mode], began, stopped, jobs, []))
    return stops


def whom_others_stopped(result: Result, spans: Sequence[tuple[int, int]]) -> Iterator[Victim]:
    """Yield the jobs that others stopped within some spans of time, ends included [s]."""
    rule = result.scheduler.preemption
    if rule is None:
        return
    stoppers = _stoppers(result, rule)
    for row, _, stopped, held in _stopped_runs(result):
        if any(begin <= stopped <= end for begin, end in spans):
            yield Victim(row, stopped, stoppers(row, stopped, held).tolist())


def all_runs(result: Result) -> tuple[Result, NDArray[np.int64]]:
    """Return the schedule of all runs, and the row of the job of each."""
    if result.interrupted is None:
        return result, np.arange(len(result.start))
    return runs_of(result)


def _stopped_runs(result: Result) -> Iterator[tuple[int, int, int, NDArray[np.int32]]]:
    """Yield the job's row, the begin, the end and the nodes of each run that was stopped."""
    lost, held = result.interrupted, result.allocation
    if lost is None:
        return
    of_runs = (column.tolist() for column in (lost.job, lost.start, lost.end))
    yield from zip(*of_runs, np.split(lost.node, lost.first[1:-1]), strict=False)
    for row in np.flatnonzero(result.cancelled).tolist():
        nodes = np.zeros(0, np.int32) if held is None else held.rows(np.array([row])).node
        yield row, int(result.start[row]), int(result.end[row]), nodes


def _failed(result: Result, time: int, held: NDArray[np.int32]) -> list[int | str]:
    """Return which of the nodes of a run failed at a time."""
    assert result.lost is not None
    failures = result.lost.failures
    names = result.cluster.node_names
    return [names[node] for node in np.intersect1d(failures.node[failures.time == time], held)]


def _stoppers(
    result: Result, rule: Preemption
) -> Callable[[int, int, NDArray[np.int32]], NDArray[np.int64]]:
    """Return what tells the rows of the jobs for which a job can have been stopped.

    It takes the row of that job, when it was stopped [s], and the nodes that it had.
    """
    # who began anew may have stopped others, who goes on may not
    anew = rule.mode == "requeue"
    runs, of = all_runs(result) if anew else (result, np.arange(len(result.start)))
    group, may, cells = rule.groups(result.workload), rule.may, runs.allocation
    grace, came = rule.of_groups(rule.grace), runs.workload.submit_time

    def stoppers(row: int, time: int, held: NDArray[np.int32]) -> NDArray[np.int64]:
        warned = time - grace[group[row]]
        waited = (came <= warned) & (warned < runs.start)
        rows = np.flatnonzero(waited if warned < time else runs.start == time)
        groups = group[of[rows]]
        rows = rows[(groups >= 0) & may[groups, group[row]]]
        if warned == time and cells is not None:
            had = (cells.rows(np.array([run])).node for run in rows.tolist())
            rows = rows[np.array([np.isin(nodes, held).any() for nodes in had], np.bool_)]
        jobs: NDArray[np.int64] = of[rows]
        return jobs

    return stoppers


def in_words(stops: Sequence[Stop], submit: int) -> list[str]:
    """Return sentences on the stops of a job that came at ``submit`` [s]."""
    if not stops:
        return []
    how = stops[-1].how
    verb = how if how in ("suspended", "cancelled") else "stopped"
    lines = _one_by_one(f"It was {verb}", [_told(stop, submit) for stop in stops])
    ran = duration(sum(stop.stopped - stop.began for stop in stops))
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
    lines += [f"Then {event}." for event in each[1:_NAMED]]
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


# --- Who ran while a job waited -------------------------------------------------------------------

Ints = NDArray[np.int64]


class Meanwhile(NamedTuple):
    """A run of each job that ran while another waited or was refused, (k,), by their starts.

    Of several runs of a job it is the one that began by stopping others, or else the first.

    Attributes
    ----------
    row : of the job, int64.
    start, end : [s].
    before : whether the run had begun before that wait did, bool.
    outside : whether it had even ended by then, while a quota kept the other job out, bool.
    resumed : whether the job had been suspended and went on then, bool.
    marked : whether the schedule tells of this run if it was backfilled, bool: it tells that of
        one run of each job.
    stopped : whether it began by stopping others, or may have, bool.
    """

    row: Ints
    start: Ints
    end: Ints
    before: NDArray[np.bool_]
    outside: NDArray[np.bool_]
    resumed: NDArray[np.bool_]
    marked: NDArray[np.bool_]
    stopped: NDArray[np.bool_]


def waits_of(result: Result, job: int) -> list[tuple[int, int]]:
    """Return from when until when a job waited, by time [s]; ``job`` is its row."""
    runs, of = all_runs(result)
    mine = np.flatnonzero(of == job)
    since, until = np.maximum(runs.workload.submit_time[mine], _begin(result)), runs.start[mine]
    spans = zip(since.tolist(), until.tolist(), strict=True)
    return sorted(span for span in spans if span[0] < span[1])


def _begin(result: Result) -> int:
    """Return when the extract began, of which a schedule is [s]; 0: of a whole workload."""
    initial = result.workload.initial
    return 0 if initial is None else initial.begin


def seen_from(result: Result, job: int) -> int:
    """Return when a job came, or, if that was before an extract began, when this began [s]."""
    return max(int(result.workload.submit_time[job]), _begin(result))


def due_of(result: Result, job: int) -> int:
    """Return when the log submits a job [s], whose row is ``job``."""
    given, number = result.given, result.workload.job_number[job]
    if given is None:
        return int(result.workload.submit_time[job])
    return int(given.submit_time[np.flatnonzero(given.job_number == number)[-1]])


def since(result: Result, job: int) -> int:
    """Return from when on others may have kept a job from starting [s]; ``job`` is its row.

    That is its submission, or where a quota of submitted jobs refused it when the log submits it.
    """
    came, due = seen_from(result, job), max(due_of(result, job), _begin(result))
    return came if result.scheduler.dependencies != "none" else min(due, came)


def meanwhile(result: Result, job: int) -> Meanwhile:
    """Return who ran while a job waited or was refused; ``job`` is its row."""
    runs, of = all_runs(result)
    came, due = seen_from(result, job), since(result, job)
    spans = [*([(due, came)] if due < came else []), *waits_of(result, job)]
    parts = [np.zeros((0, 2), np.int64)]
    for begin, end in spans:
        run = np.flatnonzero((runs.start < end) & (runs.end > begin) & (of != job))
        run = run[np.argsort(runs.start[run], kind="stable")]
        parts.append(np.stack((run, np.full(len(run), begin)), axis=1))
    run, begun = np.concatenate(parts).T
    begun = np.maximum(begun, came)  # what ran while it was refused had begun before it came
    began = {(by, victim.time) for victim in whom_others_stopped(result, spans) for by in victim.by}
    pairs = zip(of[run].tolist(), runs.start[run].tolist(), strict=True)
    stopped = np.array([pair in began for pair in pairs], np.bool_)
    # of each job the run that stopped others, or else the first
    order = np.lexsort((np.arange(len(run)), ~stopped, of[run]))
    kept = order[np.unique(of[run][order], return_index=True)[1]]
    kept = kept[np.argsort(runs.start[run[kept]], kind="stable")]
    row, start, end = of[run[kept]], runs.start[run[kept]], runs.end[run[kept]]
    suspends = result.pieces is not None
    resumed = (start > result.start[row]) & suspends
    marked = ~resumed if suspends else end == result.end[row]
    before = start < begun[kept]
    return Meanwhile(row, start, end, before, end <= came, resumed, marked, stopped[kept])
