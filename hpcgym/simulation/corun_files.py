"""The file system that jobs share where they slow each other down, made of machine and speedups."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hpcgym.engine.machines.corun.files.shared import SharedFiles, make_files
from hpcgym.errors import HpcgymError
from hpcgym.speedups.heatmap import Heatmap

if TYPE_CHECKING:
    from hpcgym.cluster.pool import Cluster
    from hpcgym.scheduler.rules import Scheduler
    from hpcgym.workload.model import Workload


def check_files(cluster: Cluster, speedups: Heatmap, scheduler: Scheduler) -> None:
    """Raise an HpcgymError for what does not go with a machine that has a bandwidth."""
    if cluster.io_bandwidth_gb_s is None:
        return
    if speedups.io_share is None:
        raise HpcgymError(
            "io_bandwidth_gb_s of the machine says nothing without what codes read and write: give"
            f" {speedups.source} io_share and io_demand_mb_s of each code, or the machine none"
        )
    if scheduler.backfill == "conservative":
        raise HpcgymError(
            "backfill='conservative' does not go with io_bandwidth_gb_s: ends that move with what"
            " others read and write would move all reservations"
        )
    pairs = scheduler.pair_estimate
    if pairs != "known" and not isinstance(pairs, Heatmap):
        raise HpcgymError(
            "pair_estimate: with io_bandwidth_gb_s it is 'known' or a heatmap: how fast a job was"
            " does not tell of its neighbours where files slow it down too"
        )


def files_of(
    cluster: Cluster, speedups: Heatmap, workload: Workload, code: NDArray[np.int64]
) -> SharedFiles | None:
    """Return the file system, nobody using it; None where the machine has no bandwidth.

    ``code``: (n_jobs,) of each job, its place in the speedups.
    """
    if cluster.io_bytes_s is None or speedups.io_share is None:
        return None
    demand = workload.requested_processors * speedups.io_bytes_s[code]
    return make_files(cluster.io_bytes_s, speedups.io_share, demand)


def slowest_in_congestion(cluster: Cluster, speedups: Heatmap, files: SharedFiles | None) -> float:
    """Return a rate below which no congestion slows down a job that would run at rate 1.

    As if all jobs ran at once, or as many of the most demanding ones as the machine has room for.
    """
    if files is None:
        return 1.0
    asked = min(
        float(files.demand.sum(dtype=np.float64)),
        float(cluster.processors * speedups.io_bytes_s.max()),
    )
    congestion = max(1.0, asked / float(files.bandwidth[0]))
    return 1.0 / (1.0 + float(files.share.max()) * (congestion - 1.0))
