"""Shares of users as the engine takes them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hpcgym._engine import FOREVER, charge_past, fields_of
from hpcgym.errors import HpcgymError
from hpcgym.names import CORE
from hpcgym.scheduler.asked_for import places_of_usage
from hpcgym.scheduler.policies.fair_share import FAIR_TREE, FairShare
from hpcgym.scheduler.policies.features import USER_FEATURES
from hpcgym.scheduler.policies.index import IndexPolicy
from hpcgym.workload.columns import MISSING
from hpcgym.workload.extracts import past_jobs, recorded_run_time
from hpcgym.workload.partitions import charged

if TYPE_CHECKING:
    from hpcgym.machine.pool import Cluster
    from hpcgym.scheduler.rules import Scheduler
    from hpcgym.workload.model import Workload


# --- Simulations in which users' shares decide ----------------------------------------------------

ENERGY = 1  # what is counted: processors or another amount, or energy

# What an order makes of usage: nothing; the least usage of processors or energy for the share
# first; the least sum of both, each over its present maximum; priorities, weighted, beside others.
UNAWARE, BY_CPU, BY_ENERGY, BY_BOTH, MIXED = range(5)

#: Of an order that does not look at it: that, and the weights of processors and energy.
NO_USAGE = UNAWARE, (0.0, 0.0)

Accounts = dict[str, NDArray[Any]]  #: of users before the first event: an argument of ``Model``


def accounts_of(
    workload: Workload,
    scheduler: Scheduler,
    cluster: Cluster,
    ticks: int = 1,
    features: Sequence[str] | None = None,
) -> Accounts:
    """Return the accounts of a simulation before its first event.

    Parameters
    ----------
    ticks : of its clock in a second.
    features : whose weights, which are told later, are the order of the queue; None: it is that of
        the scheduler.

    Raises
    ------
    HpcgymError : an order by energy where there is no power.
    """
    orders = [usage_order(order) for order in scheduler.orders]
    energy = features is not None and bool(places_of_usage(features)[ENERGY] >= 0)
    if features is not None:
        orders[0] = NO_USAGE
    rules = scheduler.fair_share or FairShare()
    assert isinstance(rules, FairShare)
    past, by_end, ends = past_jobs(workload)
    every = [workload] if past is None else [past, workload]
    width, power = (np.concatenate([part.columns[name] for part in every]) for name in _CHARGED)
    tree = rules.tree_of(every)
    energy = energy or any(weights[ENERGY] for _, weights in orders)
    watts, energy_capacity = _energy(power, width, cluster, energy)
    by_part = [charged(part, rules.charged, cluster.partitions) for part in every]
    of_jobs = np.concatenate(by_part)
    rate = np.stack([of_jobs, watts]) * np.concatenate([*map(rules.factor_of, every)])
    # charged alike, jobs have the machine's processors, to the last bit
    alike = np.array_equal(of_jobs, width)
    each = 1.0 if alike else math.fsum(of_jobs.tolist()) / max(int(width.sum()), 1)
    n = len(tree.parent)
    begin = min((int(part.submit_time[0]) for part in every if len(part)), default=0)
    now = begin if workload.initial is None else workload.initial.begin
    period = rules.period_s * ticks
    own = len(by_end)  # from there on are the jobs that are simulated
    endless = rules.half_life_s == math.inf
    book = {
        "leaves": tree.leaves,
        "half_life": 0 if endless else min(int(rules.half_life_s) * ticks, FOREVER),
        "period": period,
        "counted": (now * ticks - 1) // period * period if period else 0,
        "ticks": ticks,
        "begin": begin * ticks,
        "epoch": begin * ticks,
        "open_at": -1,
        "written": -1,
        "written_at": begin * ticks,
        "in_a_tree": int(rules.formula == FAIR_TREE),
    }
    accounts: Accounts = {
        "owner": tree.owner[own:],
        "rate": rate[:, own:].copy(),
        "parent": tree.parent,
        "share": tree.share,
        "part": tree.part,
        "kinds": np.array([kind for kind, _ in orders]),
        "weights": np.array([weights for _, weights in orders]),
        "capacity": np.array([cluster.processors * each, energy_capacity], np.float64),
        "damping": np.array([rules.damping]),
        "used": np.zeros((2, n)),
        "recent": np.zeros((2, n)),
        "book": np.array([book.get(name, 0) for name, _ in fields_of("Book")]),
    }
    if past is not None:
        of_past = {"owner": tree.owner[by_end], "rate": rate[:, by_end].copy()}
        run = np.ascontiguousarray(recorded_run_time(past)[by_end])
        used, recent, accounts["book"] = charge_past(accounts | of_past, run, ends[by_end])
        accounts |= {"used": used.reshape(2, n), "recent": recent.reshape(2, n)}
    return accounts


# --- Many simulations, under weights --------------------------------------------------------------


# --- Orders and energy ----------------------------------------------------------------------------


_CHARGED = ("requested_processors", "power_w")


def usage_order(index: IndexPolicy | None) -> tuple[int, tuple[float, float]]:
    """Return what an order makes of usage, and the weights of processors and energy in it."""
    if index is None or not index.looks_at_usage:
        return NO_USAGE
    if index.summed:
        return BY_BOTH, (1.0, 1.0)
    by_cpu, by_energy = (index.weights.get(name, 0.0) for name in USER_FEATURES)
    # alone, priorities order as usages for shares do, which time does not change
    if len(index.weights) == 1 and index.expression is None:
        return (BY_CPU if by_cpu else BY_ENERGY), (by_cpu, by_energy)
    return MIXED, (by_cpu, by_energy)


def _energy(
    power_w: NDArray[np.float64], processors: NDArray[np.int64], cluster: Cluster, needed: bool
) -> tuple[NDArray[np.float64], float]:
    """Return the power of each job, (n_jobs,), and that of the whole machine, in one unit.

    The unit is the usual power of a processor, so that where power is the same for all jobs, what
    they use are the processor seconds to the last bit. A job whose power is unknown has the
    machine's busy power.
    """
    busy = _busy_watts(cluster)
    watts = np.where(power_w == MISSING, busy, power_w)
    unit = float(np.quantile(watts, 0.5, method="lower")) if len(watts) else busy
    if unit <= 0:
        unit = 1.0
    if needed and (busy <= 0 or (len(watts) > 0 and not watts.any())):
        raise HpcgymError(
            "policy: without power there is no energy to share; the busy power of the cluster "
            "must be above 0, and the power_w of some jobs"
        )
    return watts / unit * processors, cluster.processors * busy / unit


def _busy_watts(cluster: Cluster) -> float:
    """Return the power of a busy processor, the mean where groups of nodes have their own."""
    total = sum(
        group.nodes * group.power.busy_levels_w[-1]
        if group.power is not None
        else group.nodes * group.resources[CORE] * cluster.busy_power_w
        for group in cluster.groups
    )
    return total / cluster.processors if cluster.groups else cluster.busy_power_w
