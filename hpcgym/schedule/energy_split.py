"""Nodes that several jobs share: what they draw, and which part each job is charged.

Only nodes that are busy as a whole matter here, and of their jobs those that have not all cores.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hpcgym.cluster.powers import Floats, Ints, Powers, weighed
from hpcgym.schedule.power_uses import Cells


class EnergySplit(NamedTuple):
    """Nodes over time, between changes; k intervals, s shares, those of jobs that are not measured.

    Attributes
    ----------
    node, begin, end : (k,) int64; from and up to which place in the list of times.
    cores : (k,) int64, the cores that are not those of measured jobs: this part of the node is busy
        where ``level`` is not -1.
    level : (k,) int64, the highest of the jobs that are not measured; -1 where there is none.
    rate : (k,) float64, what the busy part draws, for each core of a job and each watt of its
        level.
    job : (s,) int64.
    weight : (s,) float64, cores of the job times the watts of its level.
    first, last : (s,) int64, from and up to which interval the job has them.
    """

    node: Ints
    begin: Ints
    end: Ints
    cores: Ints
    level: Ints
    rate: Floats
    job: Ints
    weight: Floats
    first: Ints
    last: Ints

    def charges(self, lengths: Floats, n_jobs: int) -> Floats:
        """Return what each job is charged, (n_jobs,), where intervals count ``lengths``, (k,)."""
        if not len(self.job):
            return np.zeros(n_jobs)
        parts = np.append(self.rate * lengths, 0.0)  # reduceat wants every place below the size
        spans = np.stack((self.first, self.last), axis=1).ravel()
        sums = np.add.reduceat(parts, spans)[::2]
        return weighed(self.job, self.weight * sums, n_jobs)


def no_split() -> EnergySplit:
    """Return that no node is shared."""
    none, empty = np.zeros(0, np.int64), np.zeros(0)
    return EnergySplit(none, none, none, none, none, empty, none, empty, none, none)


def share(cells: Cells, begin: Ints, end: Ints, powers: Powers, n_times: int) -> EnergySplit:
    """Return what happens on shared nodes.

    Parameters
    ----------
    cells : on nodes that are busy as a whole, of jobs that have not all of their cores.
    begin, end : (m,) from and up to which of the ``n_times`` times the job runs.
    """
    m = len(cells.job)
    if not m:
        return no_split()
    keys = np.concatenate([cells.node * n_times + begin, cells.node * n_times + end])
    order = np.argsort(keys, kind="stable")
    sorted_keys = keys[order]
    last = np.append(sorted_keys[1:] != sorted_keys[:-1], True)  # of what happens at one time
    unmeasured = cells.measured < 0

    def running(amounts: Ints) -> Ints:
        # integers throughout: nothing drifts
        total: Ints = np.cumsum(np.concatenate([amounts, -amounts])[order])[last]
        return total

    node, time = np.divmod(sorted_keys[last], n_times)
    group = np.zeros(len(node), np.int64)
    group[np.searchsorted(node, cells.node)] = cells.group
    group = group[np.searchsorted(node, node)]
    cores = powers.cores[group] - running(np.where(unmeasured, 0, cells.cores))
    highest, weights = np.full(len(node), -1), np.zeros(len(node))
    for level in np.unique(cells.level[unmeasured]).tolist():
        used = running(np.where(unmeasured & (cells.level == level), cells.cores, 0))
        highest[used > 0] = level
        weights += used * powers.busy[group, level]
    draws = cores / powers.cores[group] * powers.busy[group, highest]
    rate = np.divide(draws, weights, out=np.zeros(len(node)), where=weights > 0)
    # to the next change of the same node; after the last one nothing is left
    until = np.append(time[1:], 0)
    until[np.append(node[1:] != node[:-1], True)] = 0
    until = np.maximum(until, time)
    place = np.empty(2 * m, np.int64)
    place[order] = np.cumsum(np.append(0, last[:-1]))
    first, stop = place[:m][unmeasured], place[m:][unmeasured]
    by_place = np.argsort(first, kind="stable")  # so that sums between shares are short
    shares = cells.take(unmeasured)
    weight = shares.cores * powers.busy[shares.group, shares.level]
    return EnergySplit(
        node,
        time,
        until,
        cores,
        highest,
        rate,
        shares.job[by_place],
        weight[by_place],
        first[by_place],
        stop[by_place],
    )
