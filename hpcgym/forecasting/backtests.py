"""How good forecasts would have been: at many submissions of a log, beside what is usual."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple, Unpack

import numpy as np
from numpy.typing import NDArray

from hpcgym.baselines.schedulers import scheduler_of
from hpcgym.errors import WorkloadError, check_choice, check_whole
from hpcgym.forecasting.arrivals import Block
from hpcgym.forecasting.forecasts import Forecast
from hpcgym.forecasting.futures import Futures
from hpcgym.forecasting.run_times import RunTimes
from hpcgym.forecasting.scores import LEVELS, places, recalibrated, scores
from hpcgym.forecasting.state import state_of_log
from hpcgym.progress import Progress, silent
from hpcgym.simulation.run import simulate
from hpcgym.units import HOUR_S, MINUTE_S
from hpcgym.workload.columns import Ints
from hpcgym.workload.extracts import stacked
from hpcgym.workload.load import jobs_and_machine

if TYPE_CHECKING:
    import os

    import pandas as pd

    from hpcgym.machine.pool import Cluster
    from hpcgym.scheduler.rules import Rules, Scheduler
    from hpcgym.workload.model import Workload

Floats = NDArray[np.float64]

#: Method -> what it says of a wait.
METHODS = {
    "futures": "quantiles of futures, at levels recalibrated by forecasts whose jobs had started",
    "futures, raw": "quantiles of futures",
    "requested": "a future in which all run as long as requested, and none come: a point",
    "median": "one in which all run for the medians of their distributions, and none come: a point",
    "recent": "quantiles of the last 100 waits of jobs that were alike in processors and request",
}
#: The waits that the log has: those of the rules, in a simulation, or those that it recorded.
TRUTHS = ("simulated", "recorded")
_RECENT, _ENOUGH = 100, 30
_NEWER = 3  # weight of a scored forecast in recalibration; one of the first half has 1
_WIDTHS, _LIMITS = (2, 5, 17, 65), (HOUR_S, 4 * HOUR_S, 12 * HOUR_S)
_NO_BLOCK = Block(np.zeros(0, np.int64), np.zeros(0, np.int64))


class AtSubmission(NamedTuple):
    """What was said at the submission of a job.

    Attributes
    ----------
    row : of the job, in the log.
    samples : (n_futures,) float64 [s] its waits in the futures.
    requested, median : [s] its waits in the futures of these points.
    """

    row: int
    samples: Floats
    requested: float
    median: float


def backtest(
    log: Workload | str | os.PathLike[str] | pd.DataFrame,
    scheduler: str | Scheduler = "easy",
    *,
    moments: int = 200,
    futures: int = 64,
    seed: int = 0,
    truth: str = "simulated",
    cluster: Cluster | str | int | os.PathLike[str] | None = None,
    processors: int | None = None,
    threads: int | None = None,
    progress: Progress = silent,
    **rules: Unpack[Rules],
) -> pd.DataFrame:
    """Return how good forecasts of starts would have been, beside what is usual.

    At the submission of jobs that do not start at once, drawn from the second half of the log, each
    method says when the job starts, knowing nothing of what came later. Others, drawn from the
    first half, are what futures are recalibrated by at first; later also those that were scored.

    Parameters
    ----------
    log, scheduler, cluster, processors, rules : as :func:`hpcgym.simulate` takes them.
    moments : submissions, in each half.
    futures, threads : as of :func:`hpcgym.forecast`.
    seed : of the moments, and of all draws.
    truth : "simulated": the waits are those of the rules. "recorded": those of the log, of more
        than a minute; its rules are then only supposed.
    progress : shows how much is done, such as :func:`hpcgym.progress.counting`.

    Returns
    -------
    table : a row for each method (:data:`METHODS`), its name in ``method``; then
        :func:`hpcgym.forecasting.scores.scores`, and ``moments``, how many were scored.

    Raises
    ------
    HpcgymError : as of :func:`hpcgym.forecast`.
    WorkloadError : a log in which no job waits, or that does not tell when jobs ran.
    """
    import pandas as pd

    check_choice("truth", truth, TRUTHS)
    moments = check_whole("moments", moments, 1)
    jobs, machine = jobs_and_machine(log, cluster, processors, scheduler)
    chosen = scheduler_of(scheduler, rules)
    known = jobs
    if truth == "simulated":
        known = simulate(jobs, chosen, cluster=machine).as_workload()
    # many logs tell waits in whole minutes
    waits = np.flatnonzero(known.wait_time > (0 if truth == "simulated" else MINUTE_S))
    half = known.row_at(0.5)
    early, late = waits[(waits >= len(known) // 10) & (waits < half)], waits[waits >= half]
    if not len(late):
        raise WorkloadError(f"{known.name}: no job waits in the second half")
    # what the first half taught had to be known before the second began
    early = early[known.submit_time[early] + known.wait_time[early] < known.submit_time[half]]
    drawing = np.random.default_rng([seed, 0])
    first, second = (
        np.sort(drawing.choice(rows, min(moments, len(rows)), replace=False))
        for rows in (early, late)
    )
    run_times = RunTimes(known)
    rows, said = np.concatenate([first, second]).tolist(), []
    with progress("forecasting", len(rows)) as tell:
        for row in rows:
            tell(f"job {known.job_number[row]}")
            said.append(
                _at_submission(known, row, chosen, machine, run_times, futures, seed, threads)
            )
    return pd.DataFrame(_table(known, said, len(first), drawing))


def _at_submission(
    log: Workload,
    row: int,
    scheduler: Scheduler,
    cluster: Cluster,
    run_times: RunTimes,
    number: int,
    seed: int,
    threads: int | None,
) -> AtSubmission:
    """Return what is said at the submission of a job, by what was known then."""
    time = int(log.submit_time[row])
    state = state_of_log(log, time, cluster)
    # the job, and those that were submitted before it in the same second
    new = log.take(slice(int(log.submit_time.searchsorted(time)), row + 1))
    new = new.with_columns(run_time=np.full(len(new), -1), wait_time=np.full(len(new), -1))
    said = Forecast(state, scheduler, state.past, number, seed + row, threads, run_times)
    samples = np.sort(said.new_starts(new)) - time
    both = stacked([state.jobs, new])
    start = np.concatenate([state.start, np.full(len(new), -1)])
    medians = [
        int(
            run_times.of(user, requested, width, time, time - began if began >= 0 else 0).quantile(
                0.5
            )
        )
        for user, requested, width, began in zip(
            both.user_id.tolist(),
            both.requested_time.tolist(),
            both.requested_processors.tolist(),
            start.tolist(),
            strict=True,
        )
    ]
    points = np.stack([both.requested_time, np.array(medians, np.int64)])
    alone = Futures(state, scheduler, log.take(slice(0)), [_NO_BLOCK], new)
    starts = alone.starts(points, np.zeros(2, np.int64), np.array([alone.n_own - 1]), 1)[:, 0]
    requested, median = np.where(starts < 0, np.inf, starts - time).tolist()
    return AtSubmission(row, samples, requested, median)


def _table(
    log: Workload, moments: list[AtSubmission], n_first: int, rng: np.random.Generator
) -> list[dict[str, Any]]:
    """Return the scores of each method on the moments behind the first ones.

    Futures are recalibrated by the forecasts whose jobs had started by each moment.
    """
    rows = np.array([moment.row for moment in moments])
    samples, wait = np.array([moment.samples for moment in moments]), log.wait_time[rows] * 1.0
    place, began = places(samples, wait, rng), log.submit_time[rows] + wait
    weight = np.where(np.arange(len(rows)) < n_first, 1, _NEWER)
    second, samples, wait = moments[n_first:], samples[n_first:], wait[n_first:]
    fitted = []
    for moment, own in zip(second, samples, strict=True):
        known = np.repeat(place, weight * (began < log.submit_time[moment.row]))
        fitted.append(np.quantile(own, recalibrated(known), method="median_unbiased"))
    said = {
        "futures": np.array(fitted),
        "futures, raw": np.quantile(samples, LEVELS, axis=1, method="median_unbiased").T,
        "requested": _points([moment.requested for moment in second]),
        "median": _points([moment.median for moment in second]),
        "recent": np.array([*_recent(log, [moment.row for moment in second])]),
    }
    assert said.keys() == METHODS.keys()
    return [
        {"method": method, **scores(quantiles, wait), "moments": len(wait)}
        for method, quantiles in said.items()
    ]


def _points(waits: list[float]) -> Floats:
    """Return points as quantiles of all levels."""
    return np.repeat(np.array(waits, np.float64)[:, np.newaxis], len(LEVELS), axis=1)


def _recent(log: Workload, rows: list[int]) -> Iterator[Floats]:
    """Yield the quantiles of recent waits of jobs like each of some, as known at its submission.

    Those that waited at all, and had started: of its class of processors and of requested time, or
    of processors alone while there are few.
    """
    width = np.searchsorted(_WIDTHS, log.requested_processors, "right")
    limit = np.searchsorted(_LIMITS, log.requested_time, "right")
    began = log.submit_time + log.wait_time
    order = np.flatnonzero(log.wait_time > 0)
    order = order[np.argsort(began[order], kind="stable")]
    for row in rows:
        known = order[: int(began[order].searchsorted(log.submit_time[row]))]
        alike = known[width[known] == width[row]]
        same = alike[limit[alike] == limit[row]]
        chosen: Ints = same if len(same) >= _ENOUGH else alike if len(alike) >= _ENOUGH else known
        if not len(chosen):
            yield np.zeros(len(LEVELS))
            continue
        yield np.quantile(log.wait_time[chosen[-_RECENT:]], LEVELS, method="median_unbiased")
