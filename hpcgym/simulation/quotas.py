"""Quotas as the engine takes them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hpcgym.engine.passes.quotas import SCALARS, Quotas
from hpcgym.errors import WorkloadError, WorkloadWarning, warn_caller

if TYPE_CHECKING:
    from hpcgym.scheduler.quotas import Quota
    from hpcgym.workload.model import Workload

_NO_BOUND = 2**62


def make_quotas(workload: Workload, quotas: tuple[Quota, ...]) -> Quotas:
    """Return quotas of what runs, of which nothing is used yet.

    Raises
    ------
    WorkloadError : a job that exceeds a quota by itself, and would wait for ever.
    """
    width = np.array(workload.requested_processors)
    counted = [quota.counted(workload) for quota in quotas]
    waits = (
        np.ones(len(workload), np.bool_) if workload.initial is None else ~workload.initial.running
    )
    for quota, count in zip(quotas, counted, strict=True):
        wide = waits & (count >= 0) & (width > _bound(quota.processors))
        if wide.any():
            job = int(wide.argmax())
            raise WorkloadError(
                f"{workload.name}: {workload.called(job)} asks for {width[job]} processors, more"
                f" than the quota {quota} lets run: it would wait for ever. So it is with"
                f" {np.count_nonzero(wide):,} of {len(workload):,} jobs"
            )
    most = [(_bound(quota.jobs), _bound(quota.processors)) for quota in quotas]
    return _counting(width, counted, most)


def use_up(quotas: Quotas, running: NDArray[np.bool_]) -> None:
    """Let the jobs count that run at the beginning; together they may exceed a quota."""
    for k in range(quotas.counts.shape[1]):
        counts = quotas.counts[:, k]
        rows = running & (counts >= 0)
        used = np.column_stack([np.ones_like(counts), quotas.processors])
        np.subtract.at(quotas.left, counts[rows], used[rows])


def make_places(workload: Workload, quotas: tuple[Quota, ...]) -> Quotas:
    """Return quotas of jobs that run or wait, of which none does yet."""
    bounds = [quota for quota in quotas if quota.submitted is not None]
    counted = [quota.counted(workload) for quota in bounds]
    most = [(_bound(quota.submitted), _NO_BOUND) for quota in bounds]
    return _counting(np.array(workload.requested_processors), counted, most)


def _bound(most: int | None) -> int:
    return _NO_BOUND if most is None else most


def _counting(
    width: NDArray[np.int64], counted: list[NDArray[np.int64]], most: list[tuple[int, int]]
) -> Quotas:
    """Return quotas by the count that each job is in, (n_jobs,) of each, and their bounds."""
    counts: list[NDArray[np.int64]] = [np.zeros((len(width), 0), np.int64)]
    left: list[NDArray[np.int64]] = [np.zeros((0, 2), np.int64)]
    n_counts = 0
    for count, bounds in zip(counted, most, strict=True):
        counts.append(np.where(count >= 0, n_counts + count, -1)[:, np.newaxis])
        left.append(np.tile(bounds, (int(count.max(initial=-1)) + 1, 1)))
        n_counts += len(left[-1])
    return Quotas(
        np.ascontiguousarray(np.concatenate(counts, axis=1), np.int64),
        width,
        np.concatenate(left).astype(np.int64),
        np.zeros(1, SCALARS),
    )


def warn_of_none(
    slices: Sequence[Workload], quotas: tuple[Quota, ...], made: Sequence[Quotas]
) -> None:
    """Warn of quotas that are of no job of any slice; ``made`` are those of each of them.

    Warns
    -----
    WorkloadWarning : there are such.
    """
    of_none = [
        str(quota)
        for k, quota in enumerate(quotas)
        if not any((one.counts[:, k] >= 0).any() for one in made)
    ]
    if of_none:
        name = called_together(slices)
        warn_caller(f"{name}: quotas of no job: {'; '.join(of_none)}", WorkloadWarning)


def called_together(slices: Sequence[Workload]) -> str:
    """Return what slices are called in messages about all of them."""
    return slices[0].name if len(slices) == 1 else f"{slices[0].name} to {slices[-1].name}"
