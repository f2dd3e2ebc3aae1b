"""The state of an environment as text and as an image, for ``render``.

Neither shows what an online scheduler does not know: running jobs are drawn up to their predicted
ends, and metrics are those of what has happened.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from hpcgym.envs.render.view import Drawn, View, clock, duration, look, metrics_so_far
from hpcgym.errors import HpcgymError, installing

if TYPE_CHECKING:
    from hpcgym.envs.render.picture import Picture

BAR_LETTERS = 50  # of the bar of busy processors
MOST_RUNNING, MOST_QUEUED = 10, 10  # rows of the tables


def ansi(env: Drawn) -> str:
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


_PICTURES: WeakKeyDictionary[Drawn, Picture] = WeakKeyDictionary()


def rgb_array(env: Drawn) -> NDArray[np.uint8]:
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
