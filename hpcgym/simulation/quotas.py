"""Quotas: who may start, what counts from a start on, and no longer once a job has ended.

A job that would exceed a quota is passed over, as if it did not wait.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcgym.errors import RuleWarning, WorkloadError, warn_caller
from hpcgym.naming import so_many
from hpcgym.workload.warm_start import decided

if TYPE_CHECKING:
    from hpcgym.scheduler.quotas import Quota
    from hpcgym.workload.model import Workload

#: The reason by which :func:`within_quotas` counts the jobs that it drops.
OVER_QUOTA = "dropped: asks for more processors than a quota lets run"
_NO_BOUND = 2**62
_IN_PYTHON = ": hpcgym.simulation.quotas.within_quotas"


class Quotas(NamedTuple):
    """What may run, or be there, at once. K quotas, C counts: a quota has one or several."""

    counts: NDArray[np.int64]  # (n_jobs, K) the counts that a job is in, -1: none of the quota
    processors: NDArray[np.int64]  # (n_jobs,)
    left: NDArray[np.int64]  # (C, 2) how many jobs, and processors, may still start


def check_within(workload: Workload, quotas: Iterable[Quota]) -> None:
    """Say so if a job exceeds a quota of processors by itself.

    Raises
    ------
    WorkloadError : it names the first such job of a quota, and says how many there are.
    """
    for quota in quotas:
        wide = _wide(workload, quota)
        if wide.any():
            job = int(wide.argmax())
            count = so_many(int(np.count_nonzero(wide)), len(workload))
            raise WorkloadError(
                f"{workload.name}: {workload.called(job)} asks for"
                f" {workload.requested_processors[job]} processors, more than the quota {quota}"
                f" lets run: it would wait for ever{count}{_IN_PYTHON}(workload, quotas) drops them"
            )


def within_quotas(workload: Workload, quotas: Iterable[Quota]) -> Workload:
    """Return the jobs that each quota lets run; the others are counted in ``cleaning``.

    Such a job asks for more processors than a quota lets run together. Jobs that run at the
    beginning of an extract stay.

    Parameters
    ----------
    quotas : such as ``Scheduler.quotas``, of one scheduler or of all that are compared.

    Raises
    ------
    WorkloadError : no job is left.
    """
    over = np.zeros(len(workload), np.bool_)
    for quota in quotas:
        over |= _wide(workload, quota)
    if not over.any():
        return workload
    if over.all():
        raise WorkloadError(f"{workload.name}: no job is within the quotas")
    return workload.take(~over, cleaning={OVER_QUOTA: int(np.count_nonzero(over))})


def _wide(workload: Workload, quota: Quota) -> NDArray[np.bool_]:
    """Return which jobs exceed a quota by themselves, (n_jobs,), but for those that run already."""
    wide: NDArray[np.bool_] = workload.requested_processors > _bound(quota.processors)
    return wide & (quota.counted(workload) >= 0) & decided(workload)


def make_quotas(workload: Workload, quotas: tuple[Quota, ...]) -> Quotas:
    """Return quotas of what runs, of which nothing is used yet.

    Raises
    ------
    WorkloadError : a job that exceeds a quota by itself, and would wait for ever.
    """
    check_within(workload, quotas)
    width = np.array(workload.requested_processors)
    counted = [quota.counted(workload) for quota in quotas]
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
    )


def warn_of_none(
    slices: Sequence[Workload], quotas: tuple[Quota, ...], made: Sequence[Quotas]
) -> None:
    """Warn of quotas that are of no job of any slice; ``made`` are those of each of them.

    Warns
    -----
    RuleWarning : there are such.
    """
    of_none = [
        str(quota)
        for k, quota in enumerate(quotas)
        if not any((one.counts[:, k] >= 0).any() for one in made)
    ]
    if of_none:
        name = called_together(slices)
        warn_caller(f"{name}: no job falls under these quotas: {'; '.join(of_none)}", RuleWarning)


def called_together(slices: Sequence[Workload]) -> str:
    """Return what slices are called in messages about all of them."""
    return slices[0].name if len(slices) == 1 else f"{slices[0].name} to {slices[-1].name}"
