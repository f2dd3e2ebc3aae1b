"""The state of an environment as text and as an image, for ``render``.

Neither shows what an online scheduler does not know: running jobs are drawn up to their predicted
ends, and metrics are those of what has happened.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, cast

import gymnasium
import numpy as np
from numpy.typing import NDArray

from hpcgym.envs.core.infos import schedule_of, state_of
from hpcgym.envs.core.simulations import Simulations, pass_view
from hpcgym.report.canvas import (
    BLACK,
    BLUE,
    DARK_GREY,
    JOB_COLOURS,
    SKY_BLUE,
    new_figure,
    plain,
    unit_of,
)
from hpcgym.report.placement import place_jobs, rows_of
from hpcgym.schedule.metrics import processors_in_use, queue_length
from hpcgym.schedule.result import Result
from hpcgym.schedule.runs import Allocation, Coschedule, LostRuns, of_some
from hpcgym.schedule.schedule import ran_before, runs_of
from hpcgym.units import duration
from hpcgym.words import shown

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.backends.backend_agg import FigureCanvasAgg

# --- What a person may see of an environment ------------------------------------------------------


@dataclass(frozen=True)
class View:
    """The submitted jobs of an episode, by their rows among these, at the present time.

    Attributes
    ----------
    heading : the environment and its jobs.
    first, now : [s] when the episode began, and the present.
    processors, free : of the machine.
    schedule : of the submitted jobs, as if queued ones started, and running ones ended, now.
    queued : (n_queued,) rows of the jobs that wait, in order of submission.
    fits : (n_queued,) which of those that wait would fit now.
    running : (n_running,) rows of the jobs that run, first predicted end first.
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

    def drawn(self) -> tuple[Result, NDArray[np.int64]]:
        """Return the runs of the jobs that have started, to predicted ends, and the job of each."""
        part, run_time, rows = self.schedule, self.schedule.run_time.copy(), self.started
        run_time[self.running] = self.until - part.start[self.running]
        if part.suspended is not None:
            run_time[self.running] -= part.suspended[self.running]
        part, job = _some(_timed(part, part.start, run_time), rows), np.flatnonzero(rows)
        if part.interrupted is None:
            return part, job
        runs, place = runs_of(part)
        ran = runs.run_time > 0  # a suspended job has run in its pieces alone
        return _some(runs, ran), job[place[ran]]


def look(simulations: Simulations, name: str) -> View:
    """Return what an online scheduler knows of the present episode of an environment.

    Raises
    ------
    ResetNeeded : no episode has begun.
    """
    if simulations.rows(0)[1] == 0:
        raise gymnasium.error.ResetNeeded("there is nothing to render: call reset() first")
    result = schedule_of(state_of(simulations, 0))
    # the result has the jobs in the order in which they came
    order = np.argsort(simulations.jobs(0)["submit"], kind="stable")
    came = simulations.came(0)[order]
    place = np.zeros(len(order), np.int64)
    place[order[came]] = np.arange(came.sum())
    now = max(int(simulations.time(0)), result.begin)  # it stands at 0 before the first event
    rows, ends = simulations.running(0)
    running, suspended = place[rows], place[simulations.suspended(0)]
    part = _some(result, came)
    start, run_time = part.start.copy(), part.run_time.copy()
    queued = np.flatnonzero(start < 0)
    start[queued], run_time[queued] = now, 0
    start[running] = np.minimum(start[running], now)  # some may wait for their nodes
    run_time[running] = now - start[running]
    if part.suspended is not None:
        run_time[running] -= part.suspended[running]
        run_time[suspended] = ran_before(part)[suspended]
    waiting = order[came][queued]
    fits = simulations.finds_room(0, waiting)
    until = np.ceil(simulations.seconds(ends, 0)).astype(np.int64)
    widths = part.workload.requested_processors[running]
    machines = simulations.world(0).machines
    free = machines.free_processors(simulations.simulation(0).free, widths)
    return View(
        heading=f"{name} · {part.workload.name}",
        first=result.begin,
        now=now,
        processors=machines.options.cluster.processors,
        free=free,
        schedule=_timed(part, start, run_time),
        queued=queued,
        fits=pass_view(simulations, 0, waiting).fits() if fits is None else fits,
        running=running,
        until=np.maximum(until, now + 1),
        suspended=suspended,
    )


def _some(result: Result, chosen: NDArray[np.bool_]) -> Result:
    """Return the schedule of the jobs that are chosen, (n_jobs,)."""

    def of(value: Any) -> Any:
        if isinstance(value, np.ndarray):
            return value[chosen]
        if isinstance(value, LostRuns):
            return of_some(value, chosen)
        return value.take(chosen) if isinstance(value, Allocation | Coschedule) else value

    own = {each.name: of(getattr(result, each.name)) for each in fields(result)}
    return replace(result, **own | {"workload": result.workload.take(chosen), "given": None})


def _timed(result: Result, start: NDArray[Any], run_time: NDArray[Any]) -> Result:
    """Return the schedule with other times [s]."""
    sharing = result.coschedule
    if sharing is not None:
        begin, length = (np.rint(s * sharing.ticks).astype(np.int64) for s in (start, run_time))
        sharing = sharing._replace(start_ticks=begin, end_ticks=begin + length)
    return replace(result, start=start, run_time=run_time, coschedule=sharing)


# --- As text --------------------------------------------------------------------------------------

BAR_LETTERS = 50  # of the bar of busy processors
MOST_ROWS = 10  # of a table of text


def text_of(view: View) -> str:
    """Return a state as text: clock, machine, running jobs, queue and metrics."""
    busy = view.processors - view.free
    marks = round(BAR_LETTERS * busy / view.processors)
    schedule, rows = view.schedule, view.running[:MOST_ROWS]
    running = {
        "job": rows,
        "processors": schedule.workload.requested_processors[rows],
        "runs for": _durations(schedule.run_time[rows]),
        "should end in": _durations(view.until[:MOST_ROWS] - view.now),
    }
    lines = [
        view.heading,
        _counts(view),
        f"processors  [{'#' * marks:.<{BAR_LETTERS}}] {busy:,} of {view.processors:,} busy, "
        f"{view.free:,} free",
        "",
        *_table("Running, by predicted end", len(view.running), running),
        "",
        *_queue(view, MOST_ROWS),
        "",
        *_metrics(view),
    ]
    return "\n".join(lines) + "\n"


def _counts(view: View) -> str:
    """Return the time, and how many jobs there are."""
    return (
        f"{duration(view.now - view.first)} since the episode began, at {view.now:,} s:"
        f" {len(view.queued):,} queued, {len(view.running):,} running,"
        f" {int(view.ended.sum()):,} ended"
    )


def _queue(view: View, most: int) -> list[str]:
    """Return the jobs that have waited longest as lines."""
    schedule, rows = view.schedule, view.queued[:most]
    columns = {
        "job": rows,
        "processors": schedule.workload.requested_processors[rows],
        "requested": _durations(schedule.workload.requested_time[rows]),
        "predicted": _durations(schedule.predicted_run_time[rows]),
        "waits for": _durations(schedule.wait[rows]),
        "fits now": np.where(view.fits[:most], "yes", "no"),
    }
    return _table("Queue, first submitted first", len(view.queued), columns)


def _table(heading: str, total: int, columns: dict[str, Any]) -> list[str]:
    """Return the lines of a table with columns set to the right."""
    rows = list(zip(*columns.values(), strict=True))
    if not rows:
        return [f"{heading}: none"]
    more = [f"  ... and {total - len(rows):,} more"] if total > len(rows) else []
    cells = [[name, *map(str, column)] for name, column in columns.items()]
    aligned = [[cell.rjust(max(map(len, column))) for cell in column] for column in cells]
    lines = ["  " + "  ".join(row) for row in zip(*aligned, strict=True)]
    return [heading, *lines, *more]


def _metrics(view: View) -> list[str]:
    """Return the metrics of what has happened as lines.

    Jobs that ran when the episode began count for the machine alone, and from then on.
    """
    schedule, decided, machine = view.schedule, view.schedule.decided, view.schedule.from_begin
    slowdowns = schedule.bsld[view.ended & decided]
    wait, waited = schedule.wait[decided], schedule.wait[view.started & decided]
    processors = schedule.workload.requested_processors
    busy = float(machine.run_time @ processors)
    requested = schedule.workload.requested_time[view.queued].astype(np.float64)
    elapsed = max(view.now - view.first, 1)
    metrics = {
        "mean bounded slowdown, ended jobs": _if_any(slowdowns, np.mean, shown),
        "largest": _if_any(slowdowns, np.max, shown),
        "mean wait, started jobs": _if_any(waited, np.mean, duration),
        "longest wait so far": _if_any(wait, np.max, duration),
        "mean utilization": f"{100 * busy / (view.processors * elapsed):.1f} %",
        "mean queue length": shown(float(machine.wait.sum()) / elapsed),
        "requested by the queue, of the machine": duration(
            float(requested @ processors[view.queued]) / view.processors
        ),
    }
    return ["Metrics so far", *(f"  {name:<40}{text:>14}" for name, text in metrics.items())]


def _if_any(values: NDArray[Any], sums_up: Any, words: Any) -> str:
    return str(words(float(sums_up(values)))) if values.size else "-"


def _durations(seconds: NDArray[Any]) -> list[str]:
    return [duration(float(time)) for time in seconds]


# --- As an image ----------------------------------------------------------------------------------

DPI = 128
WIDTH, HEIGHT = 1280, 800  # pixels, multiples of 16 as video codecs like them
QUEUE_ROWS = 18
RECENT_STARTS = 250  # so many can be told apart in the chart of the machine
PAST_SHARE = 0.7  # of that chart
LEAST_SPAN_S = 60


def picture_of(view: View) -> NDArray[np.uint8]:
    """Return a state as an image, (800, 1280, 3): the machine, the queue, metrics so far.

    Raises
    ------
    HpcgymError : matplotlib is not installed.
    """
    figure = new_figure(WIDTH / DPI, HEIGHT / DPI)
    figure.set_dpi(DPI)
    figure.set_layout_engine("none")
    figure.text(0.012, 0.96, view.heading, fontsize=11, fontweight="bold")
    figure.text(0.012, 0.925, _counts(view), fontsize=9, color=DARK_GREY)
    machine, use, length = (
        figure.add_axes((0.055, low, 0.5, high))
        for low, high in ((0.46, 0.41), (0.255, 0.115), (0.07, 0.105))
    )
    _draw_machine(machine, view)
    times, used = processors_in_use(view.schedule)
    _draw_so_far(use, view, times, used * 100.0 / view.processors)
    use.set_xlabel("")  # that of the chart below
    use.set_title("Utilization so far (%)", fontsize=9, loc="left")
    _draw_so_far(length, view, *queue_length(view.schedule))
    length.set_title("Queued jobs so far", fontsize=9, loc="left")
    lines = "\n".join([*_queue(view, QUEUE_ROWS), "", "", *_metrics(view)])
    figure.text(0.575, 0.87, lines, fontsize=7.6, va="top", family="monospace", linespacing=1.5)
    canvas = cast("FigureCanvasAgg", figure.canvas)
    canvas.draw()  # type: ignore[no-untyped-call]
    return np.array(np.asarray(canvas.buffer_rgba())[..., :3])  # type: ignore[no-untyped-call]


def _draw_machine(axes: Axes, view: View) -> None:
    """Draw which processors each job has: of recent ones, and pale what is predicted.

    Numbers are those of running jobs.
    """
    from matplotlib.collections import PolyCollection
    from matplotlib.colors import to_rgb

    schedule, of_job = view.drawn()
    recent = np.sort(schedule.start)[-RECENT_STARTS:]
    left = max(view.first, float(recent[0])) if recent.size else view.first
    usual = float(np.median(view.schedule.predicted_run_time)) if len(view.started) else 0.0
    past = max(view.now - left, usual, LEAST_SPAN_S)
    right = left + past / PAST_SHARE
    unit_s = _prepare(axes, view, left, right)
    rows = int(rows_of(schedule)[-1])  # processors or, where jobs share nodes, parts of nodes
    axes.set_ylim(0, rows)
    axes.set_ylabel("processors" if rows == view.processors else "parts of nodes", fontsize=8)
    placed = place_jobs(schedule)
    jobs = of_job[placed.job]
    colours = np.array([to_rgb(colour) for colour in JOB_COLOURS])[jobs % len(JOB_COLOURS)]
    for begin, end, pale in ((left, view.now, 0.0), (view.now, right, 0.55)):
        x, x_end = (
            (np.clip(times, begin, end) - view.first) / unit_s
            for times in (placed.begin, placed.end)
        )
        seen, low, high = x_end > x, placed.low, placed.high
        boxes = np.array([[x, low], [x, high], [x_end, high], [x_end, low]]).transpose(2, 0, 1)
        filled = ((1 - pale) * colours + pale)[seen]
        # an outline in its own colour lets the shortest job be seen
        style: dict[str, Any] = {"edgecolors": "white" if pale else "face", "linewidths": 0.4}
        axes.add_collection(PolyCollection(list(boxes[seen]), facecolors=filled, **style))
        for k in np.flatnonzero(seen & (high - low > rows / 30)) if pale else ():
            axes.text(x[k], (low[k] + high[k]) / 2, f" {jobs[k]}", fontsize=7, va="center",
                      clip_on=True)  # fmt: skip
    busy = view.processors - view.free
    title = f"Machine: {busy:,} of {view.processors:,} processors busy; pale: as predicted"
    axes.set_title(title, fontsize=9, loc="left")


def _draw_so_far(axes: Axes, view: View, times: NDArray[Any], levels: NDArray[Any]) -> None:
    """Draw a step function up to now."""
    unit_s = _prepare(axes, view, view.first, max(view.now, view.first + LEAST_SPAN_S))
    before = times < view.now
    held = np.append(levels[before], levels[before][-1:] if before.any() else 0)
    at = (np.append(times[before], view.now) - view.first) / unit_s
    axes.fill_between(at, held, step="post", color=SKY_BLUE, alpha=0.4, linewidth=0)
    axes.step(at, held, where="post", color=BLUE, linewidth=0.9)
    axes.set_ylim(0, 1.05 * max(float(held.max()), 1))


def _prepare(axes: Axes, view: View, left: float, right: float) -> int:
    """Let axes have the time since the episode began, and a line for now; return its unit [s]."""
    unit_s, unit = unit_of(right - left)
    plain(axes)
    axes.tick_params(labelsize=8)
    axes.set_xlim((left - view.first) / unit_s, (right - view.first) / unit_s)
    axes.set_xlabel(f"{unit} since the episode began", fontsize=8)
    axes.axvline((view.now - view.first) / unit_s, color=BLACK, linewidth=1.3, zorder=5)
    return unit_s
