"""Nodes of jobs' own, as under limits of power: which rules and machines go with them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcgym.errors import HpcgymError, HpcgymWarning, warn_caller
from hpcgym.machine.pool import Cluster
from hpcgym.machine.power import NodePower
from hpcgym.scheduler.capabilities import FEATURES, PLACES, check
from hpcgym.scheduler.limits import EnergyBudget, Limit, PowerCap
from hpcgym.scheduler.rules import Scheduler
from hpcgym.workload.checks import units_that_fit

_NO_POWER = NodePower(idle_w=0.0, busy_w=0.0)


def check_power_rule(scheduler: Scheduler, given: Any) -> None:
    """Raise an HpcgymError for a power rule without limits."""
    if given is None and scheduler.power != "none":
        raise HpcgymError(f"power={scheduler.power!r} needs limits: caps or budgets")


def own_nodes_by(cluster: Cluster, scheduler: Scheduler, given: Any = None) -> dict[str, str]:
    """Return what gives each job nodes of its own, as :func:`check` takes it; empty: nothing does.

    ``given``: limits, or None.
    """
    if given is not None:
        return {"whole nodes": PLACES["limits"]}
    if scheduler.allocation == "contiguous":
        return {"whole nodes": FEATURES["contiguous"]}
    if cluster.groups and cluster.shutdown_after_s is not None:
        return {"whole nodes": FEATURES["shutdown"]}
    return {}


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
    check("nodes", words=asked | scheduler.asks_for)
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
    if cluster.partitions or cluster.constraints:
        names = ", ".join(partition.name for partition in cluster.partitions)
        named = f"a machine with the partitions {names}"
        if not names:
            named = f"jobs on nodes with {cluster.constraints[0]}"
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
