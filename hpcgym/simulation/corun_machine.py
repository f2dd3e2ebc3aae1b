"""Nodes that jobs share, as the engine takes them, and the file system that they may share, too.

All nodes are alike and have so many parts. A job of placement PART has one part of each of its
nodes, others are alone on theirs. Processors are parts; times are in ticks, much shorter than a
second, for jobs that speed each other up end at no whole second.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcgym._engine import FOREVER
from hpcgym.errors import HpcgymError, WorkloadError
from hpcgym.scheduler.policies.features import PASS_FEATURES
from hpcgym.scheduler.policies.index import parse_policy
from hpcgym.speedups.heatmap import Heatmap
from hpcgym.workload.codes import codes_of

if TYPE_CHECKING:
    from hpcgym.cluster.pool import Cluster
    from hpcgym.scheduler.rules import Scheduler
    from hpcgym.workload.model import Workload

COMPACT, SPREAD, PART = range(3)  # placement of a job
_PARTNERS = ("best", "fill", "first")  # by their codes: the order in which nodes are taken
_FINEST = 10**9  # ticks a second


class Files(NamedTuple):
    """The file system that all jobs share, where they slow each other down. C codes.

    What running jobs ask of it is added up. Where that is more than the bandwidth, all that waits
    for files takes so many times as long: the congestion.
    """

    bandwidth: float  # [bytes/s]
    share: NDArray[np.float64]  # (C,) of its time that a code alone waits for files
    demand: NDArray[np.int64]  # (n_jobs,) of each job meanwhile [bytes/s]


class SharedNodes(NamedTuple):
    """Nodes that jobs share, and how fast the jobs run there. C codes, n jobs."""

    speedup: NDArray[np.float64]  # (C, C) of a code beside another
    alone: NDArray[np.float64]  # (C,) of a code on parts of its nodes, with nobody beside
    n_nodes: int
    parts: int  # of a node
    partners: int  # code of the rule
    pairs_above: float | None  # what the mean speedup of good partners is above; None: all are good
    weights: NDArray[np.float64]  # (3,) of PASS_FEATURES
    fills: bool  # whether all that fits starts, without a reservation
    logs_spells: bool  # whether it is noted who ran how fast beside whom
    nodes: NDArray[np.int64]  # (n,) how many each job needs
    placement: NDArray[np.int64]  # (n,) COMPACT, SPREAD or PART
    code: NDArray[np.int64]  # (n,)
    files: Files | None

    @property
    def units(self) -> NDArray[np.int64]:
        """How many parts of nodes each job takes, (n,)."""
        return self.nodes * np.where(self.placement == PART, 1, self.parts)

    @property
    def told(self) -> dict[str, NDArray[Any]]:
        """The same as a model takes it; the scheduler believes in the true speedups."""
        rules = self.partners, self.fills, self.pairs_above is not None, self.logs_spells
        told: dict[str, NDArray[Any]] = {
            "machine": np.array([self.n_nodes, self.parts, *rules], np.int64),
            **{name: getattr(self, name) for name in ("nodes", "placement", "code", "weights")},
            **{name: np.ascontiguousarray(getattr(self, name)) for name in ("speedup", "alone")},
            **belief_in(self.speedup, self.alone, self.pairs_above),
            "bandwidth": np.zeros(1),
        }
        if self.files is not None:
            told["bandwidth"] = np.array([self.files.bandwidth], np.float64)
            told |= {"io_share": self.files.share, "io_demand": self.files.demand}
        return told

    def part(self, first: int, stop: int) -> SharedNodes:
        """Return the same for some of the jobs."""
        names = ("nodes", "placement", "code")
        return self._replace(**{name: getattr(self, name)[first:stop] for name in names})


def belief_in(
    believed: NDArray[np.float64], alone: NDArray[np.float64], pairs_above: float | None
) -> dict[str, NDArray[Any]]:
    """Return what a scheduler makes of what it takes for the speedups, (C, C) and (C,)."""
    mean = (believed + believed.T) / 2
    rank = [
        # the place of each code beside a code, and of an idle node; equal speedups have the same
        len(row) - np.searchsorted(np.sort(row), row, "right")
        for row in np.column_stack([believed, alone])
    ]
    partner = np.ones_like(mean) if pairs_above is None else mean > pairs_above
    return {
        "believed": np.ascontiguousarray(believed, np.float64),
        "believed_alone": np.ascontiguousarray(alone, np.float64),
        "rank": np.array(rank, np.int64),
        "good": (mean > 1).astype(np.int64),  # what makes a job popular
        "partner": partner.astype(np.int64),
        "greatest": np.array([alone.max(initial=1.0)]),
    }


def shared_nodes(
    workload: Workload,
    scheduler: Scheduler,
    cluster: Cluster,
    speedups: Heatmap,
    cores: int,
    sockets: int,
) -> SharedNodes:
    """Return nodes of so many ``cores`` and ``sockets``, and how fast jobs run beside each other.

    Raises
    ------
    HpcgymError : sockets with fewer cores than parts.
    WorkloadError : a job whose code has no speedups.
    """
    code = codes_of(workload, speedups.codes)
    nodes, placement = _placed(workload, scheduler, cluster.nodes, cores, sockets)
    weights, files = np.zeros(len(PASS_FEATURES)), _files_of(cluster, speedups, workload, code)
    if looks_at_pass(scheduler):
        given = parse_policy(scheduler.policy).weights
        weights[:] = [given.get(name, 0.0) for name in PASS_FEATURES]
    pairs = scheduler.pair_estimate
    return SharedNodes(
        speedups.filled,
        speedups.alone,
        cluster.nodes,
        max(scheduler.parts, 1),
        _PARTNERS.index(scheduler.partners),
        scheduler.pairs_above,
        weights,
        fills=scheduler.backfill == "fill",
        # spells are for what learns, which congestion is refused with
        logs_spells=files is None and not (isinstance(pairs, str) and pairs == "known"),
        nodes=nodes,
        placement=placement,
        code=code,
        files=files,
    )


def looks_at_pass(scheduler: Scheduler) -> bool:
    """Return whether the order of the queue depends on what the machine is like at a pass."""
    return parse_policy(scheduler.policy).looks_at_pass


def _placed(
    workload: Workload, scheduler: Scheduler, n_nodes: int, cores: int, sockets: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return how many nodes each job needs, and its placement there.

    A job that has too many processes to be spread over the machine is compact.
    """
    processors = workload.requested_processors
    nodes, placement = -(-processors // cores), np.full(len(workload), COMPACT)
    if scheduler.parts:
        wide = -(-processors // cores_of_part(scheduler, cores, sockets))
        spread = wide <= n_nodes
        nodes = np.where(spread, wide, nodes)
        placement[spread] = SPREAD if scheduler.parts == 1 else PART
    return nodes, placement


def cores_of_part(scheduler: Scheduler, cores: int, sockets: int) -> int:
    """Return how many cores of a node a job has that is spread over nodes, or shares them.

    Raises
    ------
    HpcgymError : sockets with fewer cores than parts.
    """
    of = max(scheduler.parts, 2)
    part = cores // sockets // of * sockets
    if part == 0:
        raise HpcgymError(
            f"allocation {scheduler.allocation!r}: sockets of {cores // sockets} cores have no {of}"
            " parts"
        )
    return part


def ticks_a_second(
    workload: Workload,
    speedups: Heatmap,
    believed: Any = "known",
    congested: float = 1.0,
    more: float = 0.0,
) -> int:
    """Return how many ticks a second has: a thousand million, or fewer in powers of ten.

    So few that the simulator's clock holds all jobs one after the other, each as slow as can be, in
    truth or as the scheduler's ``pair_estimate`` has it, and by ``congested`` times its rate, and
    ``more`` seconds in which none runs.

    Raises
    ------
    WorkloadError : the clock does not hold them in seconds.
    """
    slowest = min(1.0, *_slowest(speedups))
    if isinstance(believed, Heatmap):
        slowest = min(slowest, *_slowest(believed))
    elif not isinstance(believed, str):  # what it learns is never below what it has seen
        slowest = min(slowest, float(believed.matrix().min()))
    slowest *= congested
    total = 2.0 * float(workload.requested_time.sum(dtype=np.float64)) / slowest
    total += float(workload.submit_time.max(initial=0)) + 1 + more
    ticks = _FINEST
    while ticks > 1 and total * ticks >= FOREVER / 2:
        ticks //= 10
    if total * ticks >= FOREVER / 2:
        raise WorkloadError(
            f"{workload.name}: at a speedup of {slowest:g} the jobs take {total:.3g} s one after"
            " the other, more than the simulator's clock holds"
        )
    return ticks


def _slowest(speedups: Heatmap) -> tuple[float, float]:
    """Return the least speedup of a pair, and of a code alone."""
    return float(speedups.filled.min()), float(speedups.alone.min())


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


def _files_of(
    cluster: Cluster, speedups: Heatmap, workload: Workload, code: NDArray[np.int64]
) -> Files | None:
    """Return the file system; None where the machine has no bandwidth.

    ``code``: (n_jobs,) of each job, its place in the speedups.
    """
    if cluster.io_bytes_s is None or speedups.io_share is None:
        return None
    demand = workload.requested_processors * speedups.io_bytes_s[code]
    return Files(cluster.io_bytes_s, np.array(speedups.io_share, np.float64), demand)


def slowest_in_congestion(cluster: Cluster, speedups: Heatmap, files: Files | None) -> float:
    """Return a rate below which no congestion slows down a job that would run at rate 1.

    As if all jobs ran at once, or as many of the most demanding ones as the machine has room for.
    """
    if files is None:
        return 1.0
    asked = min(
        float(files.demand.sum(dtype=np.float64)),
        float(cluster.processors * speedups.io_bytes_s.max()),
    )
    congestion = max(1.0, asked / float(files.bandwidth))
    return 1.0 / (1.0 + float(files.share.max()) * (congestion - 1.0))
