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
    """Return quotas of which nothing is used yet.

    Raises
    ------
    WorkloadError : a job that exceeds a quota by itself, and would wait for ever.
    """
    width = np.array(workload.requested_processors)
    counts: list[NDArray[np.int64]] = [np.zeros((len(width), 0), np.int64)]
    left: list[NDArray[np.int64]] = [np.zeros((0, 2), np.int64)]
    n_counts = 0
    for quota in quotas:
        count = quota.counted(workload)
        bound = _NO_BOUND if quota.processors is None else quota.processors
        wide = (count >= 0) & (width > bound)
        if wide.any():
            job = int(wide.argmax())
            raise WorkloadError(
                f"{workload.name}: {workload.called(job)} asks for {width[job]} processors, more"
                f" than the quota {quota} lets run: it would wait for ever. So it is with"
                f" {np.count_nonzero(wide):,} of {len(workload):,} jobs"
            )
        counts.append(np.where(count >= 0, n_counts + count, -1)[:, np.newaxis])
        most = np.array([_NO_BOUND if quota.jobs is None else quota.jobs, bound])
        left.append(np.tile(most, (int(count.max(initial=-1)) + 1, 1)))
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
