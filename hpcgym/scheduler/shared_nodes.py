"""Nodes that jobs share, by speedups: which rules and machines go with them."""

from __future__ import annotations

from typing import Any

from hpcgym.errors import HpcgymError
from hpcgym.machine.pool import Cluster
from hpcgym.machine.speedups.heatmap import Heatmap
from hpcgym.names import CORE
from hpcgym.scheduler.allocations import COSCHEDULED
from hpcgym.scheduler.asked_for import check_scheduler
from hpcgym.scheduler.capabilities import check
from hpcgym.scheduler.policies.features import PASS_FEATURES
from hpcgym.scheduler.rules import Scheduler
from hpcgym.scheduler.whole_nodes import check_power_rule, own_nodes_by


def check_shared(scheduler: Scheduler) -> None:
    """Raise an HpcgymError for rules that do not go with shared nodes, or with each other."""
    if scheduler.allocation.partition(":")[0] not in ("first-fit", *COSCHEDULED):
        raise HpcgymError(
            f"allocation: with speedups it is compact, spread, half-socket or part:K, not "
            f"{scheduler.allocation!r}"
        )
    check_power_rule(scheduler, None)
    check_scheduler(scheduler, "nodes", "shared nodes")
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
    if cluster.constraints:
        check("shared nodes", words={"partitions": f"jobs on nodes with {cluster.constraints[0]}"})
    shapes = {(group.resources[CORE], group.sockets) for group in cluster.groups}
    if len(shapes) > 1:
        raise HpcgymError("speedups: all nodes must have the same cores and sockets")
    check("shared nodes", words=own_nodes_by(cluster, Scheduler()))
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
