"""What a pass leaves waiting, and what it marks, for :mod:`hpcgym.validation.validate`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hpcgym.validation.nodes import Down, fits_nodes
from hpcgym.validation.orders import place_in_order
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
    free = result.cluster.processors - line.used
    fits = (first < 2 * n) & (result.workload.requested_processors[job] <= free) & passed
    what = "processors are free"
    if needs is not None and result.allocation is not None:
        fits = fits_nodes(result, needs, result.allocation, line, job, fits, down)
        what = "cores are free on nodes"
    text = f"at {{1}} s {{2}} {what} and job {{3}}, first in the queue, would fit"
    return cases(fits, text, line.time, free, job)


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
