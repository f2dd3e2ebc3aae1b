"""What a machine uses from one time to another."""

from __future__ import annotations

import numpy as np

from hpcgym.power.planning import greatest_w
from hpcgym.power.uses import powers_of
from hpcgym.result import Result


def energy_within(result: Result, begin: int, end: int) -> float:
    """Return the energy from ``begin`` up to ``end`` [J].

    By the books of the schedule; before its first submission and after its last end all nodes are
    on and idle.
    """
    time, watts = result.books.time, np.sum(list(result.books.watts().values()), axis=0)
    overlap = np.maximum(np.minimum(time[1:], end) - np.maximum(time[:-1], begin), 0)
    cluster = result.cluster
    powers = powers_of(cluster)
    busy_more = (powers.busy[:, -1] - powers.idle)[cluster.group_of].sum()
    idle_w = greatest_w(cluster) - float(busy_more)
    return float(np.dot(watts, overlap)) + idle_w * (end - begin - int(overlap.sum()))
