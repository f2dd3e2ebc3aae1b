"""Which machines go with a scheduler's rules: with nodes of jobs' own, and with shared nodes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcgym.errors import HpcgymError, HpcgymWarning, warn_caller
from hpcgym.machine.pool import Cluster
from hpcgym.machine.power import NodePower
from hpcgym.machine.speedups.heatmap import Heatmap
from hpcgym.names import CORE
from hpcgym.scheduler.allocations import COSCHEDULED
from hpcgym.scheduler.asked_for import check_scheduler
from hpcgym.scheduler.capabilities import PLACES, check
from hpcgym.scheduler.limits import EnergyBudget, Limit, PowerCap
from hpcgym.scheduler.policies.features import PASS_FEATURES
from hpcgym.scheduler.rules import Scheduler
from hpcgym.workload.checks import needs_on, single_cores, units_that_fit
from hpcgym.workload.model import Workload

_NO_POWER = NodePower(idle_w=0.0, busy_w=0.0)


# --- Nodes of jobs' own, and nodes as a pool ------------------------------------------------------


def check_power_rule(scheduler: Scheduler, given: Any) -> None:
    """Raise an HpcgymError for a power rule without limits."""
    if given is None and scheduler.power != "none":
        raise HpcgymError(f"power={scheduler.power!r} needs limits: caps or budgets")


def takes_whole_nodes(cluster: Cluster, scheduler: Scheduler, given: Any) -> bool:
    """Return whether each job has nodes of its own: for limits, shutdown or contiguous nodes."""
    return (
        given is not None
        or scheduler.allocation == "contiguous"
        or bool(cluster.groups and cluster.shutdown_after_s is not None)
    )


def may_switch(scheduler: Scheduler, cluster: Cluster, given: tuple[Limit, ...]) -> bool:
    """Return whether nodes may be switched off: by limits, or by the machine."""
    shuts = any(isinstance(limit, EnergyBudget) and limit.shutdown for limit in given)
    planned = scheduler.power in ("shut", "mix") and any(isinstance(c, PowerCap) for c in given)
    return planned or shuts or cluster.shutdown_after_s is not None


def check_for_limits(scheduler: Scheduler, limited: bool = True) -> None:
    """Raise an HpcgymError for rules that do not go with jobs' own nodes, or with each other.

    ``limited``: there are limits too.
    """
    asked = {"whole nodes": PLACES["limits" if limited else "whole nodes"]}
    check(*(["limits"] if limited else []), words=asked | scheduler.asks_for)
    if scheduler.allocation not in ("first-fit", "contiguous"):
        raise HpcgymError(
            "allocation: with nodes of their own jobs are placed first-fit or contiguous, not"
            f" {scheduler.allocation!r}"
        )


def node_power(cluster: Cluster, needed: bool = True) -> NodePower:
    """Return the power of each node of a machine whose nodes are all alike.

    Raises
    ------
    HpcgymError : a pool, nodes that differ, or nodes without a power where it is ``needed``.
    """
    if not cluster.groups:
        raise HpcgymError(
            "limits, and allocation='contiguous', are for machines with nodes: cluster= says which"
        )
    if cluster.partitions:
        names = ", ".join(partition.name for partition in cluster.partitions)
        named = f"a machine with the partitions {names}"
        limits = "limits of power and energy (or allocation='contiguous')"
        check(words={"partitions": named, "whole nodes": limits})
    first = cluster.groups[0]
    for group in cluster.groups:
        if dict(group.resources) != dict(first.resources) or group.power != first.power:
            raise HpcgymError(
                f"limits need nodes that are all alike, but groups {first.name!r} and"
                f" {group.name!r} differ"
            )
    if first.power is None:
        if needed:
            raise HpcgymError(
                f"limits need the power of nodes, and group {first.name!r} has none; give it one:"
                " power=NodePower(...), or [group.power] in its file"
            )
        return _NO_POWER
    if first.power.off_w > first.power.idle_w:
        raise HpcgymError("off_w: under limits a node must not draw more off than idle")
    return first.power


def warn_of_own_nodes(
    needs: NDArray[np.int64],
    cluster: Cluster,
    scheduler: Scheduler,
    hint: str = "",
) -> None:
    """Warn of jobs that do not fill their nodes, and have them alone only because of shutdown.

    ``hint``: what to do about it.
    """
    partly = jobs_that_share(needs, cluster)
    if scheduler.allocation != "contiguous" and partly:
        warn_caller(
            "shutdown_after_s: nodes are switched off whole, so each job has nodes of its own, also"
            f" the {partly:,} of {len(needs):,} jobs that do not fill theirs{hint}",
            HpcgymWarning,
        )


def jobs_that_share(needs: NDArray[np.int64], cluster: Cluster) -> int:
    """Return how many jobs do not fill their nodes, so that others may be on them, too."""
    return int((needs[:, 0] % units_that_fit(needs, cluster) > 0).sum())


def check_limits_kept(scheduler: Scheduler, cluster: Cluster) -> None:
    """Raise an HpcgymError for a power rule that the environment does not have."""
    if scheduler.power != "none":
        check_scheduler(scheduler, "environments on nodes" if cluster.groups else "pool")


def simulates_as_pool(needs: NDArray[np.int64], scheduler: Scheduler) -> bool:
    """Return whether jobs start as on a pool, so that nodes can be chosen afterwards.

    This holds for jobs of single cores. It does not hold with Slurm's reservations or windows of
    named nodes, for which free cores on other nodes are of no use, nor under preemption, which
    frees nodes.
    """
    by_name = scheduler.reserve.slurm is not None or scheduler.preemption is not None
    by_name = by_name or any(window.nodes for window in scheduler.maintenance)
    return single_cores(needs) and not by_name


def is_pool(cluster: Cluster, workload: Workload, scheduler: Scheduler) -> bool:
    """Return whether a machine is a pool of processors, as :func:`simulates_as_pool` says.

    Raises
    ------
    WorkloadError : a job that never fits.
    """
    return not cluster.groups or simulates_as_pool(needs_on(workload, cluster), scheduler)


# --- Nodes that jobs share ------------------------------------------------------------------------


def check_shared(scheduler: Scheduler) -> None:
    """Raise an HpcgymError for rules that do not go with shared nodes, or with each other."""
    if scheduler.allocation.partition(":")[0] not in ("first-fit", *COSCHEDULED):
        raise HpcgymError(
            f"allocation: with speedups it is compact, spread, half-socket or part:K, not "
            f"{scheduler.allocation!r}"
        )
    check_scheduler(scheduler, "shared nodes")
    if not _is(scheduler.policy_estimate, "requested"):
        raise HpcgymError("policy_estimate does not go with speedups of jobs that share nodes")
    if not _is(scheduler.estimate, "requested", "double-requested", "clairvoyant"):
        raise HpcgymError(
            "estimate: with speedups it is 'requested', 'double-requested' or 'clairvoyant': run"
            " times beside others are not learned"
        )
    if scheduler.reserve.conservative and scheduler.parts:
        raise HpcgymError(
            "backfill='conservative' is for compact jobs: ends that move with neighbours would"
            " move all reservations"
        )
    if scheduler.sweep_order is not None and scheduler.sweep_order.looks_at_pass:
        raise HpcgymError(
            f"backfill_order: {', '.join(PASS_FEATURES)} order the queue, as policy, not what is"
            " backfilled"
        )
    if scheduler.order.looks_at_pass and scheduler.threshold is not None:
        raise HpcgymError("threshold: not with a policy that looks at the pass")


def _is(estimate: Any, *names: str) -> bool:
    """Return whether an estimate is one of these names."""
    return isinstance(estimate, str) and estimate in names


def check_machine(cluster: Cluster) -> tuple[int, int]:
    """Return the cores and the sockets of a node, which must all be alike.

    Raises
    ------
    HpcgymError : a pool, nodes that differ, or processors that are switched off.
    """
    if not cluster.groups:
        raise HpcgymError(
            "speedups are of jobs on nodes, of which a pool of processors has none: instead of"
            f" {cluster.processors} processors give nodes, such as cluster='16x2x24' (nodes x"
            " sockets x cores of a socket)"
        )
    if cluster.partitions:
        check("shared nodes", "partitions")
    shapes = {(group.resources[CORE], group.sockets) for group in cluster.groups}
    if len(shapes) > 1:
        raise HpcgymError("speedups: all nodes must have the same cores and sockets")
    if cluster.shutdown_after_s is not None:
        check("shared nodes", "shutdown")
    return shapes.pop()


def check_files(cluster: Cluster, speedups: Heatmap, scheduler: Scheduler) -> None:
    """Raise an HpcgymError for what does not go with a machine that has a bandwidth."""
    if cluster.io_bandwidth_gb_s is None:
        return
    if speedups.io_share is None:
        raise HpcgymError(
            "io_bandwidth_gb_s of the machine says nothing without what codes read and write: give"
            f" {speedups.source} io_share and io_demand_mb_s of each code, or the machine none"
        )
    if scheduler.reserve.conservative:
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


def cores_of_part(scheduler: Scheduler, cores: int, sockets: int) -> int:
    """Return the cores of a node that a job has if it is spread over nodes, or shares them.

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


def pool_rules(scheduler: Scheduler) -> Scheduler:
    """Return the rules that also hold on a pool: the orders, estimates and reservations."""
    plain: dict[str, Any] = {"allocation": "first-fit", "partners": "fill", "pairs_above": None}
    if scheduler.order.looks_at_pass:
        plain["policy"] = "fcfs"
    if scheduler.reserve.kind == "fill":  # the queue is swept in its own order
        by_function = scheduler.order.function is not None
        order = "fcfs" if by_function else plain.get("policy", scheduler.policy)
        plain |= {"backfill": "easy", "backfill_order": order}
    if scheduler.reserve.kind == "first-come":
        plain |= {"backfill": "easy", "backfill_order": "fcfs"}
    plain["pair_estimate"] = "known"
    return scheduler.but(**plain)
