"""The state of an environment as text and as an image, for ``render``.

Neither shows what an online scheduler does not know: running jobs are drawn up to their predicted
ends, and metrics are those of what has happened.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from importlib import import_module
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import gymnasium
import numpy as np
from numpy.typing import NDArray

from hpcgym.errors import HpcgymError, installing
from hpcgym.report.tables import shown
from hpcgym.schedule.result import Result
from hpcgym.schedule.runs import Coschedule, of_some
from hpcgym.schedule.schedule import ran_before, runs_of

if TYPE_CHECKING:
    from hpcgym.envs.render.picture import Picture
    from hpcgym.envs.single import SchedulingEnv


# --- What a person may see of an environment ------------------------------------------------------

_UNITS = ((86_400, "d"), (3_600, "h"), (60, "min"))


@dataclass(frozen=True)
class View:
    """The submitted jobs of an episode, by their rows in it, at the present time.

    Attributes
    ----------
    heading : the environment and its jobs.
    first, now : [s] when the episode began, and the present.
    processors, free : of the machine.
    schedule : of the submitted jobs, as if queued ones started, and running ones ended, now.
    queued : (n_queued,) rows of the jobs that wait, in order of submission.
    running : (n_running,) rows of the jobs that run, first predicted end first.
    fits : (n_queued,) which of those that wait would fit now.
    until : (n_running,) [s] their predicted ends, later than now.
    suspended : (n_suspended,) rows of the jobs that others have suspended.
    """

    heading: str
    first: int
    now: int
    processors: int
    free: int
    schedule: Result
    queued: NDArray[np.int64]
    fits: NDArray[np.bool_]
    running: NDArray[np.int64]
    until: NDArray[np.int64]
    suspended: NDArray[np.int64]

    @property
    def elapsed(self) -> int:
        """Seconds since the episode began."""
        return self.now - self.first

    @property
    def started(self) -> NDArray[np.bool_]:
        """Which jobs have started, (n_submitted,)."""
        started = np.ones(len(self.schedule.start), np.bool_)
        started[self.queued] = False
        return started

    @property
    def ended(self) -> NDArray[np.bool_]:
        """Which jobs have ended, (n_submitted,)."""
        ended = self.started
        ended[self.running] = ended[self.suspended] = False
        return ended

    def with_predicted_ends(self) -> Result:
        """Return the schedule of the jobs that have started, running ones to predicted ends."""
        run_time = self.schedule.run_time.copy()
        part, started = self.schedule, self.started
        run_time[self.running] = self.until - part.start[self.running]
        if part.suspended is not None:
            run_time[self.running] -= part.suspended[self.running]
        sharing = _in_ticks(part.coschedule, part.start, run_time)
        return replace(
            part,
            workload=part.workload.take(started),
            start=part.start[started],
            run_time=run_time[started],
            allocation=None if part.allocation is None else part.allocation.take(started),
            predicted_run_time=part.predicted_run_time[started],
            reserved_start=part.reserved_start[started],
            backfilled=part.backfilled[started],
            lost=of_some(part.lost, started),
            pieces=of_some(part.pieces, started),
            suspended=None if part.suspended is None else part.suspended[started],
            coschedule=None if sharing is None else sharing.take(started),
        )

    def drawn(self) -> tuple[Result, NDArray[np.int64]]:
        """Return the runs of the jobs that have started, to predicted ends, and the job of each."""
        schedule, rows = self.with_predicted_ends(), np.flatnonzero(self.started)
        if schedule.interrupted is None:
            return schedule, rows
        runs, job = runs_of(schedule)
        some = runs.run_time > 0  # a suspended job has run in its pieces alone
        return replace(
            runs,
            workload=runs.workload.take(some),
            start=runs.start[some],
            run_time=runs.run_time[some],
            allocation=None if runs.allocation is None else runs.allocation.take(some),
        ), rows[job[some]]


def look(env: SchedulingEnv) -> View:
    """Return what an online scheduler knows of the present episode.

    Raises
    ------
    ResetNeeded : no episode has begun.
    """
    batch = env.simulations.batch
    if batch.episode_state["jobs"][0] == 0:
        raise gymnasium.error.ResetNeeded("there is nothing to render: call reset() first")
    result = env.result()
    order = np.argsort(env.simulations.jobs(0)["submit"], kind="stable")  # that of the result
    rows = np.flatnonzero(env.simulations.came(0)[order])
    those = order[rows]
    place = np.zeros(len(order), np.int64)
    place[those] = np.arange(len(those))
    first = result.begin
    now = max(int(env.time), first)  # the clock stands at 0 before the first event
    running, until = _running(env)
    running = place[running]
    workload = result.workload.take(rows)
    start, run_time = result.start[rows], result.run_time[rows]
    queued = np.flatnonzero(start < 0)
    start[queued] = now
    start[running] = np.minimum(start[running], now)  # some may wait for their nodes
    run_time[queued] = 0
    run_time[running] = now - start[running]
    seen = np.zeros(len(result.start), np.bool_)
    seen[rows] = True
    paused = None if result.suspended is None else result.suspended[rows]
    suspended = place[env.simulations.suspended(0)]
    if paused is not None:
        run_time[running] -= paused[running]
        run_time[suspended] = ran_before(result)[rows][suspended]
    known = result.allocation
    sharing = None if result.coschedule is None else result.coschedule.take(seen)
    return View(
        heading=f"{type(env).__name__} · {workload.name}",
        first=first,
        now=now,
        processors=env.options.cluster.processors,
        free=_free(env),
        schedule=replace(
            result,
            workload=workload,
            start=start,
            run_time=run_time,
            predicted_run_time=result.predicted_run_time[rows],
            reserved_start=result.reserved_start[rows],
            backfilled=result.backfilled[rows],
            lost=of_some(result.lost, seen),
            pieces=of_some(result.pieces, seen),
            suspended=paused,
            frequency=None if result.frequency is None else result.frequency[rows],
            allocation=None if known is None else known.take(seen),
            coschedule=_in_ticks(sharing, start, run_time),
        ),
        queued=queued,
        fits=_fits(env, those[queued]),
        running=running,
        until=np.maximum(until, now + 1),
        suspended=suspended,
    )


def _in_ticks(
    sharing: Coschedule | None, start: NDArray[Any], run_time: NDArray[Any]
) -> Coschedule | None:
    """Return what is to be said of jobs that share nodes, with these times [s] for theirs."""
    if sharing is None:
        return None
    start_ticks = np.rint(start * sharing.ticks).astype(np.int64)
    length = np.rint(run_time * sharing.ticks).astype(np.int64)
    return sharing._replace(start_ticks=start_ticks, end_ticks=start_ticks + length)


def _free(env: SchedulingEnv) -> int:
    """Return the number of free processors, which may be those of whole free nodes."""
    running = env.episode_workload.requested_processors[env.running()]
    return env.simulations.machines.free_processors(env.free, running)


def _fits(env: SchedulingEnv, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return which of these waiting jobs would fit now, whatever limits say, (n,)."""
    found = env.simulations.finds_room(0, rows)
    return env.pass_view(rows).fits() if found is None else found


def _running(env: SchedulingEnv) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the running jobs and their predicted ends [s], the first first."""
    rows, ends = env.simulations.running(0)
    return rows, np.ceil(env.simulations.seconds(ends)).astype(np.int64)


def metrics_so_far(view: View) -> dict[str, str]:
    """Return the metrics of what has happened, as text for people by what they are.

    Jobs that ran when the episode began count for the machine alone, and from then on.
    """
    schedule, decided, machine = view.schedule, view.schedule.decided, view.schedule.from_begin
    slowdowns = schedule.bsld[view.ended & decided]
    wait, waited = schedule.wait[decided], schedule.wait[view.started & decided]
    workload = schedule.workload
    busy = float(machine.run_time @ workload.requested_processors)
    requested = workload.requested_time[view.queued].astype(np.float64)
    waiting = float(requested @ workload.requested_processors[view.queued])
    elapsed = max(view.elapsed, 1)
    return {
        "mean bounded slowdown, ended jobs": shown(_mean(slowdowns)),
        "largest": shown(float(slowdowns.max())) if slowdowns.size else "-",
        "mean wait, started jobs": duration(_mean(waited)),
        "longest wait so far": duration(wait.max() if wait.size else np.nan),
        "mean utilization": f"{100 * busy / (view.processors * elapsed):.1f} %",
        "mean queue length": shown(float(machine.wait.sum()) / elapsed),
        "requested by the queue, of the machine": duration(waiting / view.processors),
    }


def _mean(values: NDArray[np.int64] | NDArray[np.float64]) -> float:
    """Return the mean, nan of nothing."""
    return float(values.mean()) if values.size else np.nan


def duration(seconds: float) -> str:
    """Return a time for people: one unit, two or three digits.

    >>> duration(59), duration(90), duration(7200), duration(200_000)
    ('59 s', '1.5 min', '2 h', '2.3 d')
    """
    if not seconds < np.inf:
        return "-"
    for length, unit in _UNITS:
        if seconds >= length:
            number = seconds / length
            text = f"{number:.1f}" if number < 100 else f"{number:,.0f}"
            return f"{text.removesuffix('.0')} {unit}"
    return f"{seconds:.0f} s"


def clock(seconds: int) -> str:
    """Return the time since the beginning: days, hours, minutes and seconds.

    >>> clock(93_784)
    'day 1, 02:03:04'
    """
    days, rest = divmod(seconds, 86_400)
    return f"day {days}, {rest // 3600:02}:{rest // 60 % 60:02}:{rest % 60:02}"


# --- The state of an environment as text and as an image, for ``render`` --------------------------

BAR_LETTERS = 50  # of the bar of busy processors
MOST_RUNNING, MOST_QUEUED = 10, 10  # rows of the tables


def ansi(env: SchedulingEnv) -> str:
    """Return the present state as text: clock, machine, running jobs, queue and metrics.

    Parameters
    ----------
    env : an environment without wrappers, in an episode.

    Raises
    ------
    ResetNeeded : no episode has begun.
    """
    view = look(env)
    busy = view.processors - view.free
    queued, running, ended = len(view.queued), len(view.running), int(view.ended.sum())
    marks = round(BAR_LETTERS * busy / view.processors)
    lines = [
        view.heading,
        f"time        {clock(view.elapsed)} since the episode began; {view.now:,} s",
        f"processors  [{'#' * marks:.<{BAR_LETTERS}}] {busy:,} of {view.processors:,} busy, "
        f"{view.free:,} free",
        f"jobs        {queued:,} queued, {running:,} running, {ended:,} ended",
        "",
        *_running_table(view),
        "",
        *_queue_table(view),
        "",
        "Metrics so far",
        *(f"  {name:<40}{text:>10}" for name, text in metrics_so_far(view).items()),
    ]
    return "\n".join(lines) + "\n"


def _running_table(view: View) -> list[str]:
    """Return the running jobs with the earliest predicted ends."""
    schedule, rows = view.schedule, view.running[:MOST_RUNNING]
    columns = {
        "job": [str(row) for row in rows],
        "processors": [f"{n:,}" for n in schedule.workload.requested_processors[rows]],
        "runs for": [duration(t) for t in schedule.run_time[rows]],
        "should end in": [duration(t) for t in view.until[:MOST_RUNNING] - view.now],
    }
    return _table("Running, by predicted end", len(view.running), columns)


def _queue_table(view: View) -> list[str]:
    """Return the jobs that have waited longest."""
    schedule, rows = view.schedule, view.queued[:MOST_QUEUED]
    processors = schedule.workload.requested_processors[rows]
    columns = {
        "job": [str(row) for row in rows],
        "processors": [f"{n:,}" for n in processors],
        "requested": [duration(t) for t in schedule.workload.requested_time[rows]],
        "predicted": [duration(t) for t in schedule.predicted_run_time[rows]],
        "waits for": [duration(t) for t in schedule.wait[rows]],
        "fits now": ["yes" if fits else "no" for fits in view.fits[:MOST_QUEUED]],
    }
    return _table("Queue, first submitted first", len(view.queued), columns)


def _table(heading: str, total: int, columns: dict[str, list[str]]) -> list[str]:
    """Return the lines of a table with columns set to the right."""
    rows = list(zip(*columns.values(), strict=True))
    if not rows:
        return [f"{heading}: none"]
    more = [f"  ... and {total - len(rows):,} more"] if total > len(rows) else []
    lines = ["".join(f"{text:>14}" for text in row) for row in [tuple(columns), *rows]]
    return [heading, *lines, *more]


_PICTURES: WeakKeyDictionary[SchedulingEnv, Picture] = WeakKeyDictionary()


def rgb_array(env: SchedulingEnv) -> NDArray[np.uint8]:
    """Return the present state as an image, (800, 1280, 3) uint8; see `hpcgym.envs.render.picture`.

    Parameters
    ----------
    env : an environment without wrappers, in an episode.

    Raises
    ------
    HpcgymError : matplotlib is not installed.
    ResetNeeded : no episode has begun.
    """
    try:
        import_module("matplotlib.figure")
    except ImportError:
        raise HpcgymError(
            f'render_mode "rgb_array" needs matplotlib: {installing("report")}'
        ) from None
    from hpcgym.envs.render.picture import Picture

    view = look(env)
    if env not in _PICTURES:
        _PICTURES[env] = Picture()
    return _PICTURES[env].draw(view)
