"""In which order a policy has the jobs that wait: by the engine's own scores."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hpcgym.cluster.pool import Cluster
from hpcgym.errors import HpcgymError
from hpcgym.scheduler.policies.index import refuse_usage
from hpcgym.scheduler.rules import Scheduler
from hpcgym.simulation.driver import new_simulation
from hpcgym.workload.model import Workload


def order_rules(scheduler: Scheduler) -> Scheduler:
    """Return the rules of a scheduler that say in which order jobs wait, and no others.

    Raises
    ------
    HpcgymError : that order is not known of a queue alone.
    """
    if scheduler.dispatcher is not None or callable(scheduler.policy):
        raise HpcgymError(
            "to drive Slurm takes an order of the queue: a policy by name, an expression, weights"
            " or a scheduler with one, and no dispatcher or function"
        )
    refuse_usage(scheduler.policy)
    if scheduler.policy_estimate != "requested":
        raise HpcgymError(
            "to drive Slurm a policy must look at requested times, and not at policy_estimate"
            f" {scheduler.describe()['policy_estimate']!r}: what has run before is not known"
        )
    return Scheduler(policy=scheduler.policy, threshold=scheduler.threshold, backfill="none")


def order_of(jobs: Workload, rules: Scheduler, now: int) -> NDArray[np.int64]:
    """Return the rows of jobs that wait in the order of a policy, (n,) int64, the first first.

    Parameters
    ----------
    jobs : all that wait, in order of submission, none submitted later than now.
    rules : of :func:`order_rules`.
    now : [s] of the jobs' clock.
    """
    if not len(jobs):
        return np.zeros(0, np.int64)
    nothing = np.zeros(0, np.int64)
    native = new_simulation(jobs, rules, Cluster(jobs.processors)).native
    native.begin(
        time=now,
        due=True,
        running=nothing,
        start=nothing,
        predicted=jobs.requested_time,
        promised=np.full(len(jobs), -1),
    )
    return native.in_order(np.arange(len(jobs)))
