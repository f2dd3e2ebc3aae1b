"""What a pass leaves waiting, and what it marks, for :mod:`hpcgym.validation.validate`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hpcgym.scheduler.hold import Hold
from hpcgym.validation.nodes import Down, fits_nodes
from hpcgym.validation.orders import place_in_order
from hpcgym.validation.promises import known_beforehand
from hpcgym.validation.schedules import Mask, Timeline, Times, cases
from hpcgym.workload.warm_start import decided

if TYPE_CHECKING:
    from hpcgym.schedule.result import Result


def check_order(
    result: Result,
    line: Timeline,
    rank: Times,
    first: Times,
    needs: Times | None,
    number: Times | None = None,
    down: Down | None = None,
) -> list[str]:
    """Find times at which the first waiting job would fit the free processors, or nodes.

    ``number`` as :func:`hpcgym.validation.orders.first_waiting` takes it, ``down`` as
    :func:`hpcgym.validation.nodes.fits_nodes`.
    """
    n = len(result.workload)
    by_number = np.arange(n) if number is None else np.argsort(number)
    job_at = np.concatenate((by_number, np.argsort(rank), [0]))  # place -> job
    job = job_at[first]
    passed = line.submission | line.termination
    if result.scheduler.passes == "per-event" and result.scheduler.threshold is not None:
        passed = line.termination
    passed &= ~_cut_short(result, line)
    free = result.cluster.processors - line.used
    if down is not None:
        free -= _cores_down(result, line, down)
    needed = _needed(result, job, line.time)
    if needed is None:
        return []
    fits = (first < 2 * n) & (needed <= free) & passed
    what = "processors are free"
    if needs is not None and result.allocation is not None:
        fits = fits_nodes(result, needs, result.allocation, line, job, fits, down)
        what = "cores are free on nodes"
    text = f"at {{1}} s {{2}} {what} and job {{3}}, first in the queue, would fit"
    return cases(fits, text, line.time, free, job)


def _cut_short(result: Result, line: Timeline) -> Mask:
    """Return at which times a pass of Slurm's may have left out jobs, as it looked at enough."""
    slurm = result.scheduler.slurm
    if slurm is None:
        return np.zeros(len(line.time), np.bool_)
    started = np.bincount(line.start, minlength=len(line.time))
    cut: Mask = (started > slurm.default_queue_depth) & (line.time % slurm.sched_interval != 0)
    return cut


def _cores_down(result: Result, line: Timeline, down: Down) -> Times:
    """Return how many cores are on nodes that are down, (n_times,)."""
    node, begin, end = down
    cores = result.cluster.capacity[node, 0]
    changes = np.zeros(line.time.size + 1, np.int64)
    np.add.at(changes, begin, cores)
    np.subtract.at(changes, end, cores)
    total: Times = np.cumsum(changes)[:-1]
    return total


def _needed(result: Result, job: Times, time: Times) -> Times | None:
    """Return how many processors must be free for jobs to start at these times, both (n,).

    None where that follows from run times that are learned.
    """
    workload, hold = result.workload, Hold.parse(result.scheduler.hold)
    q: Times = workload.requested_processors[job]
    if hold is None:
        return q
    actual = np.minimum(workload.run_time, workload.requested_time)
    predicted = known_beforehand(result.scheduler.policy_estimate, workload.requested_time, actual)
    if predicted is None and hold.looks_at_estimate:
        return None
    p = workload.requested_time[job].astype(np.float64)
    e = p if predicted is None else predicted[job]
    x = {"requested": p, "policy_estimate": e, "both": np.sqrt(p * e)}[hold.by]
    z = np.clip(np.log(x / hold.from_s) / np.log(hold.factor), 0, 1)
    most = result.cluster.processors
    back = hold.share * most * z / (1 + (time - workload.submit_time[job]) / hold.erode_s)
    # where rounding decides, rather too many than a job called late that is not
    needed: Times = np.minimum(most, q + np.rint(back * (1 + 1e-12) + 1e-12).astype(np.int64))
    return needed


def check_backfilled(
    result: Result,
    line: Timeline,
    rank: Times,
    first: Times,
    submit: Times | None = None,
    number: Times | None = None,
    told: Mask | None = None,
) -> list[str]:
    """Compare the backfilled marks with who was left waiting at each job's start.

    ``submit`` (n_jobs,) [s] is what waiting counts from, ``number`` is as
    :func:`hpcgym.validation.orders.first_waiting` takes it, ``told`` (n_jobs,) whose marks are
    known.
    """
    wait = result.start - (result.workload.submit_time if submit is None else submit)
    overtook = first[line.start] < place_in_order(wait, result.scheduler.threshold, rank, number)
    overtook &= decided(result.workload)
    known = np.ones(len(overtook), np.bool_) if told is None else told
    return [
        *cases(
            overtook & ~result.backfilled & known,
            "job {} starts ahead of the queue but is not marked",
        ),
        *cases(
            result.backfilled & ~overtook & known,
            "job {} is marked as backfilled but overtakes no job",
        ),
    ]
