"""Policies that are functions in Python: asked at each pass for the scores of the queued jobs.

The engine does all else: who fits, the reservation of the head, backfilling. So such a policy needs
no EASY of its own, as a dispatcher does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcgym.cluster.pool import Cluster
from hpcgym.errors import HpcgymError
from hpcgym.scheduler.dispatchers.asking import Asking, Facts, begin
from hpcgym.scheduler.dispatchers.view import PassView
from hpcgym.scheduler.rule_values import plain
from hpcgym.simulation.nodes import Nodes, facts_of, pool_as_node
from hpcgym.simulation.prepare import job_records
from hpcgym.workload.model import Workload

Policy = Callable[[PassView], Any]
View = Callable[[Asking, Facts], PassView]


def scored_by(
    policy: Any,
    workload: Workload,
    cluster: Cluster,
    nodes: Nodes | None,
    view: View = Asking.view,
    ticks: int | None = None,
) -> Scoring | None:
    """Return what writes the scores of queued jobs at a pass; None if the policy is no function.

    ``nodes`` are those of the machine, None where it is a pool, or where jobs share nodes; there
    ``ticks`` of the simulator's clock are a second. ``view`` is what it is shown.
    """
    if not callable(policy):
        return None
    begin(policy)
    if nodes is None and view is Asking.view:
        pool = pool_as_node(workload.requested_processors, cluster.processors)
        clock = {} if ticks is None else {"jobs": job_records(workload), "ticks": ticks}
        shown = partial(_of_pool, pool, clock)
        return Scoring(policy, facts_of(workload, cluster, pool=True), shown)
    return Scoring(policy, facts_of(workload, cluster), view)


def _of_pool(pool: Nodes, clock: dict[str, Any], asking: Asking, facts: Facts) -> PassView:
    """Return the view of a pool, or of shared nodes as if they were one: a node stands for it."""
    return asking._replace(nodes=pool, **clock).view(facts)


@dataclass(frozen=True)
class Scoring:
    """Asks a policy for the scores of a pass, and writes them.

    Attributes
    ----------
    policy, facts : who is asked, and what does not change.
    view : what it is shown of a simulation that asks.
    """

    policy: Policy
    facts: Facts
    view: View

    def __call__(self, asking: Asking) -> None:
        """Do so."""
        view = self.view(asking, self.facts)
        asking.native.order(view.job, _asked(self.policy, view))


def _asked(policy: Policy, view: PassView) -> NDArray[np.float64]:
    """Return the scores of the jobs of a view, checked.

    Raises
    ------
    HpcgymError : anything but a number for each.
    """
    answer = policy(view)
    n = len(view.job)
    try:
        given = np.asarray(answer)
    except Exception as error:  # whatever a library's own array may raise
        raise HpcgymError(f"policy {plain(policy)} at {view.time} s: {error}") from error
    if given.shape == (n,) and given.dtype.kind in "biuf":
        scores = given.astype(np.float64)
        if not np.isnan(scores).any():
            return scores
        told = "numbers of which some are nan"
    elif given.ndim:
        told = f"an array of shape {given.shape}, {given.dtype}"
    else:
        told = repr(answer)[:60]
    raise HpcgymError(
        f"policy {plain(policy)} at {view.time} s: must return a number for each of the {n}"
        f" queued jobs, the highest first, not {told}"
    )
