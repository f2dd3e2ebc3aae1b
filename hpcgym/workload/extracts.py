"""Parts of a workload: slices, weeks, shuffles, and extracts, which begin with running jobs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hpcgym.dates import time_text
from hpcgym.errors import WorkloadError, whole_argument
from hpcgym.units import DAY_S, MONTH_S, WEEK_S, in_seconds
from hpcgym.workload.columns import MAX_TIME, MISSING, is_missing, read_only
from hpcgym.workload.model import Initial, Workload, together

if TYPE_CHECKING:
    import pandas as pd


def decided(workload: Workload) -> NDArray[np.bool_]:
    """Return which jobs a schedule of the workload starts, (n_jobs,): those not running yet."""
    if workload.initial is None:
        return np.ones(len(workload), np.bool_)
    return ~workload.initial.running


def first_time(workload: Workload) -> int:
    """Return when a schedule of the workload begins [s].

    That is at the first submission; of an extract at its beginning, if jobs run or wait then.
    """
    first = int(workload.submit_time[0]) if len(workload) else 0
    return first if workload.initial is None else max(first, workload.initial.begin)


def joined(first: Workload, second: Workload) -> Workload:
    """Return the jobs of two parts of one workload, with the name of the second and no state."""
    parts = (first, second)
    columns = {c: np.concatenate([part.columns[c] for part in parts]) for c in second.columns}
    both = type(second).from_columns(
        columns,
        processors=second.processors,
        name=second.name,
        killed=np.concatenate([part.killed for part in parts]),
        header=second.header,
        units=None if second.units is None else np.concatenate([p.units for p in parts]),
        per_unit={r: np.concatenate([p.per_unit[r] for p in parts]) for r in second.per_unit},
        first_submit_s=second.first_submit_s,
        more_preceding=together([part.more_preceding for part in parts]),
    )
    return replace(both, cleaning=second.cleaning)


def stacked(parts: Sequence[Workload]) -> Workload:
    """Return the jobs of some parts of one log, one part behind the other, however submitted.

    It has the name of the last one, and no state. What only some parts tell is -1 in the others.
    """
    last = parts[-1]
    names = dict.fromkeys(name for part in parts for name in part.columns)
    columns = {name: _stacked([part.columns.get(name) for part in parts], parts) for name in names}
    killed = np.concatenate([part.killed for part in parts])
    units = None if last.units is None else np.concatenate([part.units for part in parts])
    per_unit = {r: np.concatenate([part.per_unit[r] for part in parts]) for r in last.per_unit}
    pairs = together([part.more_preceding for part in parts])
    return replace(
        last, columns=columns, killed=read_only(killed), initial=None, more_preceding=pairs,
        units=None if units is None else read_only(units),
        per_unit={resource: read_only(asked) for resource, asked in per_unit.items()},
    )  # fmt: skip


def _stacked(values: Sequence[NDArray[Any] | None], parts: Sequence[Workload]) -> NDArray[Any]:
    """Return a column of all parts; without memory where no job has it."""
    sizes = [len(part) for part in parts]
    if all(of is None or is_missing(of) or not len(of) for of in values):
        kind = next(of.dtype for of in values if of is not None)
        return np.broadcast_to(kind.type(MISSING), sum(sizes))
    kept = [np.full(n, MISSING) if of is None else of for of, n in zip(values, sizes, strict=True)]
    return read_only(np.concatenate(kept))


# --- An interval of a trace to be studied alone ---------------------------------------------------
#
# This is the replay method of Glesser 2016, section 3.2, as simulation: running and queued jobs
# are put back, and what happened before is kept for the counters of fair share. What the method
# cannot do holds here too (section 3.2.2): failures of the machine and the reaction of users to
# other waiting times are not replayed, so that schedules of an extract compare with each other,
# and not with what was recorded.

UNKNOWN = "dropped: submitted before the extract, and it is not known when it ran"
OVER_USED = "repaired: ran at the beginning on processors that others had; queued"
NO_NODES = "repaired: ran at the beginning, when the machine had no nodes left for it; queued"


def extract(workload: Workload, start: float, end: float | None = None) -> Workload:
    """Return the jobs of [start, end), and the state of the machine at ``start``, by the trace.

    A job that was submitted before ``start`` has one of three states then, by its recorded waiting
    time and run time, at most the requested time:

    - *running* if it started before ``start`` and ended after; it keeps its start and its end.
    - *queued* if it started at ``start`` or later; it keeps its submit time, and may start from
      ``start`` on, when the scheduler looks at the queue for the first time.
    - *past* if it had ended by ``start``. It is no job of the extract, but kept in
      ``Workload.initial``, for fair share and for run times that are learned.

    The ``cleaning`` of the extract counts all repairs, and nothing else: a job with an unknown
    waiting or run time that was submitted before ``start`` is dropped; if more jobs run than there
    are processors, those that started last and do not fit are queued.

    Parameters
    ----------
    workload : the trace, cleaned.
    start, end : of the trace's clock: whole seconds, or texts such as ``"84d"``; without ``end``,
        up to the last submission. Jobs submitted from ``end`` on are not in the extract.

    Returns
    -------
    part : the running, queued and submitted jobs, with ``part.initial``.

    Raises
    ------
    WorkloadError : times that are no whole seconds, or in the wrong order; no job in the extract;
        a trace that does not tell when jobs ran; an extract of an extract.
    """
    begin, last = interval(start, end)
    if workload.initial is not None:
        raise WorkloadError(f"{workload.name} is an extract itself: take one of the whole trace")
    submit, wait, run = workload.submit_time, workload.wait_time, recorded_run_time(workload)
    before = submit < begin
    known = (wait >= 0) & (run >= 1)
    if before.any() and not known[before].any():
        raise WorkloadError(
            f"{workload.name} does not tell when jobs ran, so the state at {begin} s is not known;"
            " simulate the whole and go on from there: hpcgym.continued(result, start, end)"
        )
    began = submit + wait
    runs = before & known & (began < begin) & (began + run > begin)
    past = before & known & (began + run <= begin)
    kept = (before & known & ~past) | (~before & (submit < last))
    if not kept.any():
        raise nothing_there(workload, begin, last)
    part = _with_state(workload, begin, runs, past, kept, int((before & ~known).sum()))
    return replace(part, name=named(workload, begin, last))


def jobs_at(workload: Workload, begin: int) -> Workload:
    """Return the jobs that run or wait at a time by a log, with the state of the machine.

    As of :func:`extract`, but without jobs to come, and of a log that need not know how they go on:
    a job without a wait has not started, and one without a run time has not ended.

    Parameters
    ----------
    workload : the log, cleaned but for these.
    begin : [s] of its clock; events of that second are still to come.

    Returns
    -------
    part : the running and the queued jobs, maybe none, with ``part.initial``.

    Raises
    ------
    WorkloadError : an extract, or a log that does not tell when jobs ran.
    """
    if workload.initial is not None:
        raise WorkloadError(f"{workload.name} is an extract itself: take the whole trace")
    submit, wait, run = workload.submit_time, workload.wait_time, workload.run_time
    before, has_waited, began = submit < begin, wait >= 0, submit + wait
    if before.any() and not has_waited[before].any():
        raise WorkloadError(
            f"{workload.name} does not tell when jobs ran: simulate it, and take the state of the"
            " result: hpcgym.snapshot(hpcgym.simulate(...), at)"
        )
    length = recorded_run_time(workload)
    past = before & has_waited & (run >= 1) & (began + length <= begin)
    runs = before & has_waited & (began < begin) & ~past & (run != 0)
    waits = before & np.where(has_waited, began >= begin, run < 0)
    lost = before & ~past & ~runs & ~waits
    return _with_state(workload, begin, runs, past, runs | waits, int(lost.sum()))


def _with_state(
    workload: Workload,
    begin: int,
    runs: NDArray[np.bool_],
    past: NDArray[np.bool_],
    kept: NDArray[np.bool_],
    lost: int,
) -> Workload:
    """Return the kept jobs with the state at a time; ``lost`` others are not known."""
    began = workload.submit_time + workload.wait_time
    fits = _fitting(workload, began, runs)
    too_many, jobs = runs & ~fits, workload
    if too_many.any():
        waited = np.where(too_many, begin - workload.submit_time, workload.wait_time)
        jobs = workload.with_columns(wait_time=waited)
    jobs = replace(jobs, cleaning={}).take(kept)
    started = np.where(fits, began, -1)[kept]
    state = Initial(begin, started, workload.take(past, name=f"{workload.name} before {begin}"))
    counts = {UNKNOWN: lost, OVER_USED: int(too_many.sum())}
    return replace(jobs, initial=state).counted(counts)


def without_nodes(workload: Workload, job: int) -> Workload:
    """Return an extract in which a running job waits instead, and is counted in ``cleaning``."""
    initial = workload.initial
    assert initial is not None
    start, wait = initial.start.copy(), workload.wait_time.copy()
    start[job], wait[job] = -1, initial.begin - workload.submit_time[job]
    queued = replace(workload.with_columns(wait_time=wait), initial=replace(initial, start=start))
    return queued.counted({NO_NODES: 1})


def interval(start: Any, end: Any) -> tuple[int, int]:
    """Return the two times of an extract [s], checked; a time beyond all where there is no end."""
    begin = whole_seconds("start", start, 0)
    last = MAX_TIME + 1 if end is None else whole_seconds("end", end, 0)
    if last <= begin:
        raise WorkloadError(f"end must be later than start, {begin} s, not {last} s")
    return begin, last


def nothing_there(workload: Workload, begin: int, last: int) -> WorkloadError:
    """Return the error that no job is in an interval, which tells where there are some."""
    until = "on" if last > MAX_TIME else f"to {last} s"
    text = f"{workload.name} has no job from {begin} s {until}"
    if len(workload):
        submit = workload.submit_time
        text += f"; it has submissions from {submit.min()} s to {submit.max()} s of its clock"
    return WorkloadError(text)


def named(workload: Workload, begin: int, last: int) -> str:
    """Return what an extract is called."""
    times = [begin] if last > MAX_TIME else [begin, last]
    texts = " to ".join(time_text(workload.header, time) for time in times)
    return f"{workload.name} from {texts}"


def recorded_run_time(workload: Workload) -> NDArray[np.int64]:
    """Return how long jobs run, at most their requested time where that is known, (n_jobs,) [s]."""
    requested, run = workload.requested_time, workload.run_time
    return np.where(requested > 0, np.minimum(run, requested), run)


def _fitting(
    workload: Workload, began: NDArray[np.int64], runs: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """Return which of the jobs that run have room, in the order of their starts, (n_jobs,)."""
    fits = np.zeros(len(workload), np.bool_)
    free = workload.processors
    rows = np.flatnonzero(runs)
    for job in rows[np.argsort(began[rows], kind="stable")].tolist():
        width = int(workload.requested_processors[job])
        fits[job] = width <= free
        free -= width * int(fits[job])
    return fits


# --- Slicing a trace into weeks and months --------------------------------------------------------
#
# The rule is that of the paper on index and mixed policies (Legrand, Trystram and Zrigui, sections
# 5.1 and 11): the first period is ignored as the machine's test phase, and jobs that started in
# one period and ended in another are dropped. A job belongs to the period it was *submitted* in.
# (That is the paper's text; its numbers come out without the dropping, and with 60 s in bounded
# slowdowns: see ``benchmarks/mixed_policies/README.md``.)
#
# Periods count from the first submission of the log, wherever its clock begins: a log in seconds
# since 1970 has the same weeks. The paper's count from time 0 of the log's clock, ``origin_s=0``.


def slices(
    workload: Workload,
    period_s: int,
    *,
    first: int = 1,
    label: str = "period",
    origin_s: int | None = None,
) -> list[Workload]:
    """Return the jobs of each period, by the period they were submitted in.

    A job is dropped if its *logged* start (submit + wait) and end (start + run) lie in different
    periods, and counted in the ``cleaning`` of its slice, which counts nothing else; an unknown
    wait counts as none. Periods without jobs are left out, so that the number of a period is that
    of its name, not its place in the list. Submit times stay those of the trace. A slice shares the
    memory of its columns with the others.

    Parameters
    ----------
    workload : the trace.
    period_s : length of a period, in seconds.
    first : number of the first period returned; period 0 begins at ``origin_s``.
    label : what a period is called: slices are named ``NAME LABEL NUMBER``.
    origin_s : when period 0 begins, on the trace's clock [s]; None: at the first submission of the
        log, ``workload.first_submit_s``.

    Raises
    ------
    WorkloadError : a period of less than a second, a time that is no whole number of seconds, no
        job in any period from ``first`` on, or an extract
        (:func:`hpcgym.workload.extracts.extract`).
    """
    if workload.initial is not None:
        raise WorkloadError(
            f"{workload.name} begins with jobs that run: a {label} begins with an empty machine,"
            " and is to be taken of the whole trace"
        )
    period_s = whole_seconds("period_s", period_s)
    if period_s < 1:
        raise WorkloadError(f"period_s must be a whole number of at least 1, not {period_s}")
    origin = workload.first_submit_s if origin_s is None else whole_seconds("origin_s", origin_s)
    submit = workload.submit_time - origin
    start = submit + np.maximum(workload.wait_time, 0)
    crosses = start // period_s != (start + np.maximum(workload.run_time, 0)) // period_s
    period = submit // period_s
    kept = workload.take(~crosses)
    kept_period = period[~crosses]
    parts = []
    for number in np.unique(kept_period[kept_period >= first]).tolist():
        begin, end = np.searchsorted(kept_period, [number, number + 1]).tolist()
        dropped = np.ptp(np.searchsorted(period, [number, number + 1])) - (end - begin)
        part = kept.take(slice(begin, end), name=f"{workload.name} {label} {number}")
        part = replace(part, cleaning={})
        parts.append(part.counted({f"dropped: crosses the end of a {label}": dropped}))
    if not parts:
        raise WorkloadError(
            f"{workload.name}: no job begins and ends within the same {label}, from {label} {first}"
            f" on ({label} 0 begins at {int(origin)} s)"
        )
    return parts


def whole_seconds(what: str, time: Any, least: int = -MAX_TIME) -> int:
    """Return a time as an int [s], or say that it is no whole number of seconds."""
    time = in_seconds(time, what)
    try:
        seconds = int(time)
    except (TypeError, ValueError, OverflowError):
        seconds = least - 1
    if seconds != time or not least <= seconds <= MAX_TIME:
        where = " of the trace's clock, from 0 on" if least == 0 else ""
        raise WorkloadError(f"{what} must be a whole number of seconds{where}, not {time!r}")
    return seconds


def weeks(workload: Workload, origin_s: int | None = None) -> list[Workload]:
    """Return the weeks of a trace from week 1 on: 7 days each; see :func:`slices`."""
    return slices(workload, WEEK_S, label="week", origin_s=origin_s)


def months(workload: Workload, origin_s: int | None = None) -> list[Workload]:
    """Return the months of a trace from month 1 on: 30 days each; see :func:`slices`."""
    return slices(workload, MONTH_S, label="month", origin_s=origin_s)


# --- Extracts of a trace that are worth a replay: intervals under stress --------------------------

_STARTS = 4  # intervals that are looked at begin so many times in their length
CRITERIA = ("utilization", "waiting", "jobs")


def interesting_extracts(
    workload: Workload, number: int = 5, length_s: int = DAY_S
) -> pd.DataFrame:
    """Return intervals of a trace under stress, for :func:`hpcgym.workload.extract`.

    Glesser 2016, section 3.2.1, names what an interesting extract has: a high utilization, many
    requested resources in waiting state, and many jobs. So each interval has a place by each of the
    three, the share of all intervals that have no more (1: the top), and the worst of its three
    places is its rank. The document does not say how to weigh the three, nor how long an extract
    is; that is up to us.

    Parameters
    ----------
    workload : the trace, cleaned, which tells when jobs ran. Jobs of which it does not tell it are
        counted by their submissions only.
    number : of intervals, at most; none overlap.
    length_s : of each [s]. Intervals begin at each quarter of it from the first submission on, and
        end at the last at the latest.

    Returns
    -------
    extracts : a row for each, the best first: "begin_s" and "end_s" by the trace's clock;
        "utilization", the share of processor seconds in use; "waiting", the mean of the processors
        that waiting jobs requested, over the machine; "jobs", that were submitted; "rank".

    Raises
    ------
    WorkloadError : no whole numbers of at least 1, a trace that is shorter than an interval, or
        does not tell when jobs ran.
    """
    import pandas as pd

    if not isinstance(workload, Workload):
        raise WorkloadError(
            "interesting_extracts takes a workload, as of load_workload or result.as_workload(),"
            f" not a {type(workload).__name__}"
        )
    number = whole_argument("interesting_extracts", "number", number, 1, MAX_TIME)
    length_s = whole_argument("interesting_extracts", "length_s", length_s, 1, MAX_TIME)
    submit, wait, run = workload.submit_time, workload.wait_time, recorded_run_time(workload)
    known = (wait >= 0) & (run >= 1)
    if not known.any():
        raise WorkloadError(
            f"{workload.name} does not tell when jobs ran; a simulation does:"
            " hpcgym.simulate(workload).as_workload(), or the .swf file of hpcgym simulate --output"
        )
    first, last = int(submit.min()), int(submit.max()) + 1
    begins = np.arange(first, last - length_s + 1, max(length_s // _STARTS, 1))
    if not len(begins):
        raise WorkloadError(
            f"{workload.name} has submissions in {last - first} s, which is less than an interval"
            f" of {length_s} s"
        )
    started, size = (submit + wait)[known], workload.requested_processors[known]
    seconds = workload.processors * length_s
    ends = begins + length_s
    extracts = pd.DataFrame({"begin_s": begins, "end_s": ends})
    used = _processor_seconds(started, started + run[known], size, begins, ends)
    queued = _processor_seconds(submit[known], started, size, begins, ends)
    extracts["utilization"], extracts["waiting"] = used / seconds, queued / seconds
    submits = np.sort(submit)
    extracts["jobs"] = np.searchsorted(submits, ends) - np.searchsorted(submits, begins)
    extracts["rank"] = extracts[list(CRITERIA)].rank(method="max", pct=True).min(axis=1)
    return _apart(extracts, number)


def _processor_seconds(
    begin: NDArray[np.int64],
    end: NDArray[np.int64],
    size: NDArray[np.int64],
    starts: NDArray[np.int64],
    stops: NDArray[np.int64],
) -> NDArray[np.float64]:
    """Return the processor seconds of jobs within each of some intervals, (n,).

    Jobs have ``size`` processors from ``begin`` to ``end`` [s], each (n_jobs,).
    """
    times = np.concatenate([begin, end])
    order = np.argsort(times, kind="stable")
    times, change = times[order], np.concatenate([size, -size])[order]
    # between two times the level is constant, so the sum up to a time is a straight line
    sums = np.concatenate([[0], np.cumsum(np.cumsum(change)[:-1] * np.diff(times))])
    up_to_start, up_to_stop = (np.interp(at, times, sums) for at in (starts, stops))
    within: NDArray[np.float64] = up_to_stop - up_to_start
    return within


def _apart(extracts: pd.DataFrame, number: int) -> pd.DataFrame:
    """Return the best intervals of which none overlap; the earlier one where two are alike."""
    begins, ends = extracts["begin_s"].to_numpy(), extracts["end_s"].to_numpy()
    taken: list[int] = []
    for row in np.lexsort((begins, -extracts["rank"].to_numpy())).tolist():
        if all(ends[row] <= begins[other] or ends[other] <= begins[row] for other in taken):
            taken.append(row)
        if len(taken) == number:
            break
    return extracts.iloc[taken].reset_index(drop=True)


# --- The same jobs in another order ---------------------------------------------------------------


def shuffled(workload: Workload, seed: int = 0) -> Workload:
    """Return the same jobs in another order: submit times stay, and jobs are drawn for them.

    All else of a job goes with it, its number and the wait that it had in the log too.

    Parameters
    ----------
    workload : the jobs.
    seed : of the order, at least 0; all orders are equally likely, and the same seed gives the same
        one.

    Returns
    -------
    Workload
        ``NAME shuffle SEED``.

    Raises
    ------
    WorkloadError : an invalid seed, or an extract, in which some jobs run already.
    """
    if workload.initial is not None:
        raise WorkloadError(
            f"{workload.name} begins with jobs that run: what is shuffled begins with an empty"
            " machine"
        )
    seed = whole_argument("shuffled", "seed", seed, 0, 2**64)
    order = np.random.default_rng(seed).permutation(len(workload))
    mixed = workload.take(order, name=f"{workload.name} shuffle {seed}")
    return replace(mixed, columns={**mixed.columns, "submit_time": workload.submit_time})


def last_of_users(
    users: NDArray[np.int64], number: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return which jobs are the last of their users, at most ``number`` of each.

    Parameters
    ----------
    users : (n_jobs,) of jobs in the order of their ends.

    Returns
    -------
    places : (k,) of these jobs, rising.
    later : (k,) how many jobs of the same user ended after each of them.
    """
    by_user = np.argsort(users, kind="stable")
    ordered = users[by_user]
    later = np.empty(len(users), np.int64)
    later[by_user] = np.searchsorted(ordered, ordered, side="right") - 1 - np.arange(len(users))
    places = np.flatnonzero(later < number)
    return places, later[places]


def taken_over(workload: Workload) -> Workload:
    """Return an extract with which no scheduler goes on, whatever its rules."""
    initial = workload.initial
    if initial is None or initial.ongoing is None:
        return workload
    return replace(workload, initial=replace(initial, ongoing=replace(initial.ongoing, rules={})))


def past_jobs(workload: Workload) -> tuple[Workload | None, NDArray[np.int64], NDArray[np.int64]]:
    """Return the jobs that ended before the beginning, the order of their ends, and the ends [s].

    Of the same second those that started first come first.
    """
    if workload.initial is None:
        none = np.zeros(0, np.int64)
        return None, none, none
    past = workload.initial.past
    start = past.submit_time + past.wait_time
    end = start + recorded_run_time(past)
    return past, np.lexsort((start, end)), end
