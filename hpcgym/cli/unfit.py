"""Which jobs of a workload a machine and its schedulers can run, as commands have it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from hpcgym.errors import HpcgymError

if TYPE_CHECKING:
    from hpcgym.cluster import Cluster
    from hpcgym.scheduler.rules import Scheduler
    from hpcgym.workload import Workload


def follow(schedulers: Sequence[Scheduler]) -> bool:
    """Tell whether all schedulers, of which there are some, know jobs that follow others."""
    return bool(schedulers) and all(one.dependencies != "none" for one in schedulers)


def for_schedulers(workload: Workload, schedulers: Sequence[Scheduler], drop: bool) -> Workload:
    """Return the jobs for the schedulers of a command.

    What all of them heed is not told as ignored, and jobs that a quota never lets run are refused,
    or dropped.
    """
    return _allowed(_heeded(workload, schedulers), schedulers, drop)


def _heeded(workload: Workload, schedulers: Sequence[Scheduler]) -> Workload:
    """Return jobs of which throttles of arrays are not counted as not used, if all heed them."""
    from hpcgym.naming import ARRAY
    from hpcgym.workload.io.sacct_fields import UNUSED_THROTTLE

    quotas = [[ARRAY in dict(quota.where) for quota in one.quotas] for one in schedulers]
    if not quotas or not all(map(any, quotas)):
        return workload
    left = {k: n for k, n in workload.cleaning.items() if k != UNUSED_THROTTLE}
    return replace(workload, cleaning=left)


def _allowed(workload: Workload, schedulers: Sequence[Scheduler], drop: bool) -> Workload:
    """Return the jobs that each quota lets run by itself: all, unless others are to be dropped."""
    from hpcgym.simulation.quotas import check_within, within_quotas

    quotas = [quota for one in schedulers for quota in one.quotas]
    if drop:
        return within_quotas(workload, quotas)
    try:
        check_within(workload, quotas)
    except HpcgymError as error:
        raise _to_drop(error) from None
    return workload


def fitting_on(workload: Workload, cluster: Cluster | None, drop: bool) -> Workload:
    """Return the jobs that the empty machine holds: all, unless the others are to be dropped."""
    from hpcgym.workload import check_fits, fitting, needs_of, within_limits
    from hpcgym.workload.cleaning import clean
    from hpcgym.workload.partition_limits import check_limits
    from hpcgym.workload.partitions import check_partitions

    if cluster is None or not cluster.groups:
        processors = None if cluster is None else cluster.processors
        return clean(workload, "drop-larger-than-machine", processors) if drop else workload
    partitions = [one.name for one in cluster.partitions]
    if drop:
        kept = fitting(workload, cluster.resources, cluster.capacity, partitions)
        return within_limits(kept, cluster)
    try:
        check_partitions(workload, partitions)
        needs = needs_of(workload, cluster.resources)
        check_fits(workload, needs, cluster.capacity, cluster.resources)
        check_limits(workload, cluster)
    except HpcgymError as error:
        if workload.units is None and (workload.requested_processors < 1).any():
            raise  # those are for --clean
        raise _to_drop(error) from None
    return workload


def _to_drop(error: HpcgymError) -> HpcgymError:
    """Return an error of jobs that do not fit, with the option that drops them."""
    told = str(error).partition(": hpcgym.")[0]  # how Python does
    return HpcgymError(f"{told}; --unfit drop drops such jobs, counted")
