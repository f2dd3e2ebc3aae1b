"""How good forecasts would have been: at many submissions of a log, beside what is usual."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple, Unpack

import numpy as np

from hpcgym.baselines.schedulers import scheduler_of
from hpcgym.errors import (
    HpcgymWarning,
    WorkloadError,
    check_choice,
    check_whole,
    installing,
    warn_caller,
)
from hpcgym.forecasting import boosting
from hpcgym.forecasting.forecasts import Forecast
from hpcgym.forecasting.methods import LEARNED, METHODS, AtSubmission, Methods
from hpcgym.forecasting.run_times import RunTimes
from hpcgym.forecasting.scores import LEVELS, Floats, scores
from hpcgym.forecasting.state import state_of_log
from hpcgym.progress import Progress, silent
from hpcgym.simulation.run import simulate
from hpcgym.units import HOUR_S, MINUTE_S
from hpcgym.words import counted
from hpcgym.workload.columns import Ints
from hpcgym.workload.load import jobs_and_machine

if TYPE_CHECKING:
    import os

    import pandas as pd

    from hpcgym.machine.pool import Cluster
    from hpcgym.scheduler.rules import Rules, Scheduler
    from hpcgym.workload.model import Workload

#: The waits that the log has: those of the rules, in a simulation, or those that it recorded.
TRUTHS = ("simulated", "recorded")
_RECENT, _ENOUGH = 100, 30
#: Boosting learns from so many submissions of a log; in each half at most so often, and not again
#: before so many forecasts more.
_TAUGHT, _PARTS, _MORE = 6000, (2, 4), 50
_WIDTHS, _LIMITS = (2, 5, 17, 65), (HOUR_S, 4 * HOUR_S, 12 * HOUR_S)


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
    Boosting learns from up to 6,000 submissions, of those the last that have started by then.

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
    table : a row for each method (:data:`hpcgym.forecasting.methods.METHODS`), its name in
        ``method``; then :func:`hpcgym.forecasting.scores.scores`; ``moments``, how many were
        scored; and ``weight``, of the method in the pool at the end. Methods that are learned by
        boosting need scikit-learn, and are left out, with a warning, where it is not installed.

    Raises
    ------
    HpcgymError : as of :func:`hpcgym.forecast`.
    WorkloadError : a log in which no job waits, or that does not tell when jobs ran.
    """
    import pandas as pd

    check_choice("truth", truth, TRUTHS)
    jobs, machine = jobs_and_machine(log, cluster, processors, scheduler)
    chosen = scheduler_of(scheduler, rules)
    known = jobs
    if truth == "simulated":
        known = simulate(jobs, chosen, cluster=machine).as_workload()
    # many logs tell waits in whole minutes
    least = 0 if truth == "simulated" else MINUTE_S
    drawn = draw(known, check_whole("moments", moments, 1), least, seed)
    if not boosting.is_there():
        text = f"left out: {'; '.join(LEARNED)}: they need {installing('forecast')}"
        warn_caller(text, HpcgymWarning)
    done = forecasts_at(
        known,
        drawn,
        chosen,
        machine,
        futures=futures,
        seed=seed,
        threads=threads,
        progress=progress,
    )
    wait = known.wait_time[drawn.second] * 1.0
    return pd.DataFrame(
        [
            {"method": method, **scores(quantiles, wait), "moments": len(wait)}
            | {"weight": done.weights.get(method, 0.0)}
            for method, quantiles in done.said.items()
        ]
    )


class DrawnJobs(NamedTuple):
    """Jobs of a log, whose submissions are looked at: rows of it, rising.

    Attributes
    ----------
    first, second : of the first half, which teach, and of the second, which are scored.
    taught : that boosting learns from once they have started.
    """

    first: Ints
    second: Ints
    taught: Ints


def draw(log: Workload, moments: int, least: int, seed: int) -> DrawnJobs:
    """Draw jobs of a log that waited longer than the least time [s], so many in each half.

    Raises
    ------
    WorkloadError : no job waits in the second half.
    """
    waits = np.flatnonzero(log.wait_time > least)
    waits, half = waits[waits >= len(log) // 10], log.row_at(0.5)
    early, late = waits[waits < half], waits[waits >= half]
    if not len(late):
        raise WorkloadError(f"{log.name}: no job waits in the second half")
    # what the first half taught had to be known before the second began
    early = early[log.submit_time[early] + log.wait_time[early] < log.submit_time[half]]
    drawing = np.random.default_rng([seed, 0])
    return DrawnJobs(
        *(
            np.sort(drawing.choice(rows, min(number, len(rows)), replace=False))
            for rows, number in ((early, moments), (late, moments), (waits, _TAUGHT))
        )
    )


class Done(NamedTuple):
    """What was said of the second half.

    Attributes
    ----------
    said : method -> (n, n_levels) quantiles [s] of each wait.
    weights : of the methods in the pool, at the end.
    """

    said: dict[str, Floats]
    weights: dict[str, float]


def forecasts_at(
    log: Workload,
    drawn: DrawnJobs,
    scheduler: Scheduler,
    cluster: Cluster,
    *,
    futures: int = 64,
    seed: int = 0,
    threads: int | None = None,
    progress: Progress = silent,
) -> Done:
    """Return what each method says at the submission of some jobs, by what was known then.

    Parameters
    ----------
    log : with the waits and run times that came of it.
    drawn : which jobs.
    scheduler, cluster, futures, seed, threads, progress : as of :func:`backtest`.
    """
    rows = np.concatenate([drawn.first, drawn.second]).tolist()
    run_times, simulated = RunTimes(log), []
    with progress("forecasting", len(rows)) as tell:
        for row, recent in zip(rows, recent_waits(log, rows), strict=True):
            tell(f"job {log.job_number[row]}")
            waits = _simulated(log, row, scheduler, cluster, run_times, futures, seed, threads)
            simulated.append(AtSubmission(row, *waits, recent))
    n = len(drawn.first)
    methods = Methods(log, cluster.processors, drawn.taught, seed)
    parts = []
    for half, most in zip((simulated[:n], simulated[n:]), _PARTS, strict=True):
        number = max(min(len(half) // _MORE, most), 1)
        bounds = [len(half) * k // number for k in range(number + 1)]
        parts += [half[a:b] for a, b in pairwise(bounds)]
    said = []
    with progress("learning", len(parts)) as tell:
        for part in parts:
            tell(f"what is said of {counted(len(part), 'job')}")
            said += methods.says(part)
    names = [name for name in METHODS if name in said[n]]
    by_name = {name: np.array([each[name] for each in said[n:]]) for name in names}
    return Done(by_name, methods.pool.weights)


def _simulated(
    log: Workload,
    row: int,
    scheduler: Scheduler,
    cluster: Cluster,
    run_times: RunTimes,
    number: int,
    seed: int,
    threads: int | None,
) -> tuple[Floats, float, float]:
    """Return the waits of a job in futures, rising, and those by requests and by medians [s]."""
    time = int(log.submit_time[row])
    state = state_of_log(log, time, cluster)
    new = new_job(log, row)
    said = Forecast(state, scheduler, state.past, number, seed + row, threads, run_times)
    waits = said.new_starts(new, points=True) - time
    requested, median = waits[number:].tolist()
    return np.sort(waits[:number]), requested, median


def new_job(log: Workload, row: int) -> Workload:
    """Return a job at its submission, behind those before it in the same second."""
    new = log.take(slice(int(log.submit_time.searchsorted(log.submit_time[row])), row + 1))
    return new.with_columns(run_time=np.full(len(new), -1), wait_time=np.full(len(new), -1))


def recent_waits(log: Workload, rows: list[int]) -> Iterator[Floats]:
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
