"""What is kept of a schedule: boxes of slowdowns, waits and queues, by class of jobs, as drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hpcgym.schedule.result import Result

HOUR_S = 3600

#: Remediani 2017, section 3.1.1: class of jobs -> run times above, and up to [s].
CLASSES: Mapping[str, tuple[float, float]] = {
    "all": (-np.inf, np.inf),
    "short": (-np.inf, HOUR_S),
    "medium": (HOUR_S, 12 * HOUR_S),
    "long": (12 * HOUR_S, np.inf),
}

Box = dict[str, float | int]


def box(values: ArrayLike) -> Box:
    """Return what a box of the documents' figures is drawn from (section 3.3.1).

    Returns
    -------
    number, mean, std, and of the values low, q1, median, q3 and high; these are nan of no values.
    """
    given = np.asarray(values, np.float64)
    if given.size == 0:
        nan = float("nan")
        return {"number": 0, **dict.fromkeys(("mean", "std", *_QUARTERS), nan)}
    quarters = np.quantile(given, [0, 0.25, 0.5, 0.75, 1])
    return {
        "number": given.size,
        "mean": float(given.mean()),
        "std": float(given.std()),
        **{name: float(value) for name, value in zip(_QUARTERS, quarters, strict=True)},
    }


_QUARTERS = ("low", "q1", "median", "q3", "high")


def slowdown_of(result: Result) -> NDArray[np.float64]:
    """Return (n_jobs,) equation 3.1 of Remediani 2017, the slowdown, which is not bounded."""
    run = np.maximum(result.run_time, 1)
    return (result.wait + run) / run


def shapes_of(results: Sequence[Result]) -> dict[str, dict[str, Any]]:
    """Return of each class of jobs what the documents' figures and tables show.

    Parameters
    ----------
    results : schedules of one run on several workloads, all jobs of which are taken together.

    Returns
    -------
    class -> ``jobs``, their number; ``slowdown`` and ``wait`` [s] of all of them; ``slowed`` and
    ``waited``, the same of those alone that waited, as figures 5.1 to 5.11 are.
    """
    slowdown = np.concatenate([slowdown_of(result) for result in results])
    wait = np.concatenate([result.wait for result in results])
    run_time = np.concatenate([result.run_time for result in results])
    found = {}
    for name, (above, up_to) in CLASSES.items():
        of = (run_time > above) & (run_time <= up_to)
        late = of & (wait > 0)
        found[name] = {
            "jobs": int(of.sum()),
            "slowdown": box(slowdown[of]),
            "wait": box(wait[of]),
            "slowed": box(slowdown[late]),
            "waited": box(wait[late]),
        }
    return found


def queues_of(results: Sequence[Result]) -> dict[str, Any]:
    """Return how long the queue is (Remediani 2017, equation 3.2).

    Parameters
    ----------
    results : schedules of one run on several workloads.

    Returns
    -------
    ``passes`` : number of the times at which jobs were submitted or ended while some waited: at
        these a dispatcher is asked. ``queue`` : box of the numbers of jobs that wait after these,
        as equation 3.2 has it. ``queue_in_time`` : their mean over time, as the figures' titles
        say ("at every second"), from the first submission to the last end.
    """
    after, spans = zip(*(_waiting(result) for result in results), strict=True)
    queue = np.concatenate(after)
    waited = sum(int(result.wait.sum()) for result in results)
    return {
        "passes": queue.size,
        "queue": box(queue),
        "queue_in_time": waited / sum(spans),
    }


def _waiting(result: Result) -> tuple[NDArray[np.int64], int]:
    """Return how many jobs wait after each pass with jobs in the queue, and the time of all [s]."""
    submit, start, end = (np.sort(t) for t in (_submit(result), result.start, result.end))
    times = np.unique(np.concatenate([submit, end]))
    came = np.searchsorted(submit, times, side="right")
    before = came - np.searchsorted(start, times, side="left")
    after = came - np.searchsorted(start, times, side="right")
    asked = before > 0
    span = max(int(times[-1] - times[0]), 1)
    return after[asked], span


def _submit(result: Result) -> NDArray[np.int64]:
    return result.workload.submit_time
