"""From a workload and a scheduler to a schedule."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcgym.baselines.schedulers import find_scheduler
from hpcgym.cluster.pool import Cluster
from hpcgym.compilation import compiling
from hpcgym.engine import conservative, easy, state
from hpcgym.errors import WorkloadError
from hpcgym.policy.features import JobColumns
from hpcgym.policy.index import Ranking, rank
from hpcgym.prediction.estimates import CORRECTION_CODES, predicted_run_times
from hpcgym.result import Result
from hpcgym.scheduler import Scheduler
from hpcgym.workload.model import Workload

_DEPTHS = {"none": 0, "easy": 1, "conservative": state.UNLIMITED}


def simulate(
    workload: Workload,
    scheduler: str | Scheduler = "easy",
    *,
    cluster: Cluster | None = None,
    processors: int | None = None,
    **rules: Any,
) -> Result:
    """Simulate a scheduler on a workload.

    Parameters
    ----------
    workload : jobs with processors, requested times and run times; see
        :func:`hpcgym.load_workload`, whose cleaning sees to that.
    scheduler : a name of :data:`hpcgym.baselines.SCHEDULERS`, or a :class:`Scheduler`.
    cluster : the machine; by default as many processors as the workload's machine had.
    processors : size of the machine, instead of ``cluster``.
    rules : rules that differ from the scheduler's, by the names of :class:`Scheduler`'s
        attributes: ``policy``, ``backfill``, ``backfill_order``, ``estimate``, ``correction``,
        ``threshold``, ``passes``.

    Returns
    -------
    result : the schedule, with its metrics.

    Raises
    ------
    HpcgymError : an unknown name or a rule with a value that it cannot have.
    WorkloadError : a job that cannot be simulated, named with its reason.

    Examples
    --------
    >>> import hpcgym
    >>> workload = hpcgym.load_workload("lublin:jobs=100,processors=64,seed=0")
    >>> result = hpcgym.simulate(workload, "easy", estimate="clairvoyant")
    >>> result.metrics["jobs"]
    100
    """
    if not isinstance(workload, Workload):
        raise WorkloadError(f"simulate takes a workload of load_workload, not {workload!r}")
    chosen = scheduler if isinstance(scheduler, Scheduler) else find_scheduler(scheduler)
    if rules:
        chosen = chosen.but(**rules)
    if cluster is not None and not isinstance(cluster, Cluster):
        raise WorkloadError(f"cluster must be a Cluster, not {cluster!r}; a number is processors")
    if cluster is None:
        cluster = Cluster(workload.processors if processors is None else processors)
    elif processors is not None:
        raise WorkloadError("give either cluster or processors, not both")
    prepared = prepare(workload, chosen, cluster)
    run = conservative.run if chosen.backfill == "conservative" else easy.run
    with compiling(run):
        run(*prepared, state.FOREVER, state.UNLIMITED)
    return Result.of(workload, cluster, chosen, prepared.jobs, prepared.progress)


class Prepared(NamedTuple):
    """A simulation before its first event: what the kernels' ``run`` takes, in its order."""

    jobs: NDArray[np.void]
    keys: NDArray[np.int64]
    scores: NDArray[np.void]
    users: NDArray[np.int64]
    sim: NDArray[np.int64]
    progress: NDArray[np.void]
    history: NDArray[np.int64]
    blocks: NDArray[np.void]
    entries: NDArray[np.void]
    profile: NDArray[np.void]
    line: NDArray[np.void]
    narrow: NDArray[np.int64]
    freed: NDArray[np.void]


def prepare(workload: Workload, scheduler: Scheduler, cluster: Cluster) -> Prepared:
    """Return the arrays of a simulation that is about to start.

    Raises
    ------
    WorkloadError : a job that cannot be simulated.
    """
    check_jobs(workload, cluster.processors)
    run_time = np.minimum(workload.run_time, workload.requested_time)
    jobs = np.empty(len(workload), state.JOBS)
    jobs["submit"] = workload.submit_time
    jobs["run"] = run_time
    jobs["requested"] = workload.requested_time
    jobs["processors"] = workload.requested_processors
    predicted = predicted_run_times(scheduler.estimate, run_time, workload)  # type: ignore[arg-type]
    never_short = predicted is not None and bool((predicted >= run_time).all())
    correction = state.NEVER if never_short else CORRECTION_CODES[scheduler.correction]
    users, n_users = (_NO_USERS, 0) if predicted is not None else _numbered(workload.user_id)
    primary, secondary, keys, scores = _orders(workload, scheduler)
    threshold = scheduler.threshold
    rules = [
        state.PER_EVENT if scheduler.passes == "per-event" else state.PER_TIMESTAMP,
        _DEPTHS[scheduler.backfill],
        primary,
        secondary,
        state.GIVEN if predicted is not None else state.AVERAGE_OF_TWO,
        correction,
        # waiting times are whole seconds, so "longer than" stays the same rounded down
        state.NO_THRESHOLD if threshold is None else int(min(threshold, state.LATEST_TIME)),
    ]
    start = state.make_state(rules, predicted, len(workload), cluster.processors, n_users)
    return Prepared(jobs, keys, scores, users, *start)


_NO_USERS = np.zeros(0, np.int64)


def _orders(
    workload: Workload, scheduler: Scheduler
) -> tuple[int, int, NDArray[np.int64], NDArray[np.void]]:
    """Return the codes of the primary and the secondary order, their keys and their scores."""
    columns = JobColumns(workload)
    first = rank(scheduler.policy, columns)
    second: Ranking | None = Ranking(None, None)  # by submission, unless EASY has another
    if scheduler.backfill == "easy":
        order = scheduler.backfill_order
        second = None if order == "sjbf" else rank(order, columns)
    primary = _order_code(first)
    secondary = state.PREDICTION if second is None else _order_code(second)
    n = len(workload)
    # the memory of a half that nobody needs is never touched, and so never taken
    keys = np.empty(2 * n if state.KEYED in (primary, secondary) else 0, np.int64)
    scores = np.empty(2 * n if max(primary, secondary) >= state.SCORED else 0, state.SCORES)
    for half, ranking, code in ((0, first, primary), (n, second, secondary)):
        if ranking is not None and code == state.KEYED:
            assert ranking.score is not None
            keys[half : half + n] = state.ascending_keys(ranking.score)
        elif ranking is not None and code >= state.SCORED:
            scores["score"][half : half + n] = ranking.score
            scores["patience"][half : half + n] = ranking.patience
    return primary, secondary, keys, scores


def _order_code(ranking: Ranking) -> int:
    """Return how the engine keeps this order."""
    if ranking.by_submission:
        return state.SUBMISSION
    if ranking.patience is None:
        return state.KEYED
    return state.CUBED if ranking.cubed else state.SCORED


def _numbered(user_id: NDArray[np.int64]) -> tuple[NDArray[np.int64], int]:
    """Return each job's user as a number from 0, and how many numbers there are."""
    if user_id.size == 0:
        return _NO_USERS, 0
    low, high = int(user_id.min()), int(user_id.max())
    if high - low <= 4 * user_id.size:
        return user_id - low, high - low + 1
    distinct, numbered = np.unique(user_id, return_inverse=True)
    return numbered.astype(np.int64), distinct.size


def check_jobs(workload: Workload, processors: int) -> None:
    """Raise a WorkloadError that names the first job that cannot be simulated on the machine."""
    if len(workload) == 0:
        return
    checks = (
        ("run_time", 1, state.LATEST_TIME),
        ("requested_time", 1, state.LATEST_TIME),
        ("requested_processors", 1, processors),
        ("submit_time", 0, state.LATEST_TIME),
    )
    for column, least, most in checks:
        values = workload.columns[column]
        if values.min() >= least and values.max() <= most:
            continue
        bad = (values < least) | (values > most)
        first = int(np.flatnonzero(bad)[0])
        raise WorkloadError(
            f"{workload.name}: {int(bad.sum()):,} of {len(workload):,} jobs cannot be simulated: "
            f"{column} must be from {least} to {most}, and that of job "
            f"{workload.job_number[first]} (row {first}) is {values[first]}; "
            f"load_workload(..., clean='default', processors={processors}) drops such jobs, counted"
        )
    # no schedule is longer than its jobs one after the other
    total = float(workload.requested_time.sum(dtype=np.float64)) + float(workload.submit_time[-1])
    if total >= state.FOREVER / 2:
        raise WorkloadError(
            f"{workload.name}: the jobs request {total:.3g} s one after the other, more than the "
            f"simulator's clock holds ({state.FOREVER / 2:.3g} s)"
        )
