"""Energy in environments whose nodes have powers, or stand below something that has."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hpcgym.cluster import Cluster
from hpcgym.cluster.power_plans import idle_w
from hpcgym.cluster.powers import powers_of
from hpcgym.envs.core import arrays
from hpcgym.envs.core.options import Options
from hpcgym.errors import HpcgymError
from hpcgym.scheduler.estimates.learning import asks_for_predictions


def keeps_books(options: Options, alike: bool = False) -> bool:
    """Return whether energy is counted by what nodes and what stands above them draw.

    ``alike``: the cores could be a pool of processors. While run times are learned they are, unless
    energy is rewarded: books need nodes. Where jobs may be stopped there are no books.

    Raises
    ------
    HpcgymError : a reward for energy that cannot be counted as metrics count it.
    """
    cluster, measured = options.cluster, options.workload.columns.get("power_w")
    powers = any(group.power is not None for group in cluster.groups) or bool(cluster.levels)
    rewarded = any(weights[arrays.ENERGY] for weights in options.rewards.weights)
    if rewarded and measured is not None and (measured >= 0).any():
        raise HpcgymError(
            "reward 'energy': measured powers of jobs, power_w, count only where jobs have"
            " nodes of their own; workload.with_columns(power_w=...) of -1 leaves them out"
        )
    if options.scheduler.preemption is not None:
        if powers and rewarded:
            raise HpcgymError(
                "reward 'energy': not supported yet where nodes have powers and jobs may be stopped"
                " (preemption)"
            )
        return False
    return powers and (rewarded or not (alike and asks_for_predictions(options.scheduler)))


def node_watts(cluster: Cluster, books: bool) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return ``node_watts`` and ``still_w`` of :class:`hpcgym.envs.core.arrays.Table`."""
    if not books:
        return np.zeros((0, 2)), np.zeros(1)
    powers = powers_of(cluster)
    more = powers.busy[np.arange(len(powers.top)), powers.top] - powers.idle
    each = np.where(powers.whole, more, more / powers.cores)
    return np.column_stack([each, powers.whole])[cluster.group_of], np.array([idle_w(cluster)])
