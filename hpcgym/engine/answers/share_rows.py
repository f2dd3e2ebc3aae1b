"""Accounts of many simulations, for environments and batches: Shares with a row for each.

The arrays are those of :class:`hpcgym.engine.answers.shares.Shares`, under the same names, with one
more axis in front. Rows of what a simulation begins with lie behind those of the simulations: each
begins as a copy of one of them, so that nothing is left of what ran in its row before.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hpcgym.compilation import jit, jit_part
from hpcgym.engine.answers.fair_tree import TREE
from hpcgym.engine.answers.shares import (
    BOOK,
    BY_CPU,
    BY_ENERGY,
    CPU,
    ENERGY,
    MIXED,
    UNAWARE,
    Shares,
)
from hpcgym.engine.state import SCORES

# what changes while a simulation runs, and is of no use before
_WORKING = ("base", "greatest", "places", "tree", "terms", "stamp")


def make_share_rows(
    number: int, behind: int, longest: int, n_leaves: int, n_accounts: int
) -> Shares:
    """Return rows for that many simulations, and behind them for what they begin with.

    Parameters
    ----------
    number, behind : of rows.
    longest : the most jobs of a simulation.
    n_leaves, n_accounts : the most accounts that jobs have, and that there are.
    """
    n = number + behind
    return Shares(
        owner=np.zeros((n, longest), np.int64),
        rate=np.zeros((n, 2, longest)),
        parent=np.zeros((n, n_accounts), np.int64),
        share=np.zeros((n, n_accounts)),
        part=np.zeros((n, n_accounts)),
        kinds=np.zeros((n, 2), np.int64),
        weights=np.zeros((n, 2, 2)),
        base=np.zeros((number, 2 * longest), SCORES),
        capacity=np.zeros((n, 2)),
        damping=np.zeros((n, 1)),
        used=np.zeros((n, 2, n_accounts)),
        recent=np.zeros((n, 2, n_accounts)),
        greatest=np.zeros((number, 2)),
        places=np.zeros((number, 2, n_leaves)),
        tree=np.zeros((number, n_accounts + 1), TREE),
        terms=np.zeros((number, 2, n_leaves)),
        stamp=np.zeros((number, n_leaves), np.int64),
        book=np.zeros((n, 1), BOOK),
    )


def set_beginning(rows: Shares, row: int, one: Shares) -> None:
    """Set what a simulation begins with: the accounts of ``one``, before its first event."""
    for name, array in one._asdict().items():
        if name not in _WORKING:
            target: Any = getattr(rows, name)[row]
            target[...] = np.zeros((), target.dtype)
            target[tuple(map(slice, array.shape))] = array


@jit_part
def shares_of(fair, e, n):
    """Return the accounts of simulation ``e``, which has ``n`` jobs."""
    rows = fair.rows
    return Shares(
        rows.owner[e, :n], rows.rate[e], rows.parent[e], rows.share[e], rows.part[e],
        rows.kinds[e], rows.weights[e], rows.base[e], rows.capacity[e], rows.damping[e],
        rows.used[e], rows.recent[e], rows.greatest[e], rows.places[e], rows.tree[e],
        rows.terms[e], rows.stamp[e], rows.book[e],
    )  # fmt: skip


@jit
def begin_shares(fair, row, e, n):
    """Let simulation ``e``, of ``n`` jobs, begin with the accounts that stand in ``row``."""
    rows = fair.rows
    rows.book[e, 0] = rows.book[row, 0]
    rows.damping[e, 0] = rows.damping[row, 0]
    for job in range(n):
        rows.owner[e, job] = rows.owner[row, job]
    for account in range(rows.parent.shape[1]):
        rows.parent[e, account] = rows.parent[row, account]
        rows.share[e, account] = rows.share[row, account]
        rows.part[e, account] = rows.part[row, account]
    for what in range(2):
        rows.kinds[e, what] = rows.kinds[row, what]
        rows.capacity[e, what] = rows.capacity[row, what]
        rows.greatest[e, what] = 0.0
        for other in range(2):
            rows.weights[e, what, other] = rows.weights[row, what, other]
        for job in range(n):
            rows.rate[e, what, job] = rows.rate[row, what, job]
        for account in range(rows.parent.shape[1]):
            rows.used[e, what, account] = rows.used[row, what, account]
            rows.recent[e, what, account] = rows.recent[row, what, account]
        for leaf in range(rows.stamp.shape[1]):
            rows.terms[e, what, leaf] = rows.places[e, what, leaf] = 0.0
    for leaf in range(rows.stamp.shape[1]):
        rows.stamp[e, leaf] = 0
    for place in range(2 * n):
        rows.base[e, place].score = rows.base[e, place].patience = 0.0


@jit
def weigh_usage(fair, e, weights, n_weights, total):
    """Let the first order of simulation ``e`` make of usage what weights divided by a total say.

    As :func:`hpcgym.simulation.fair_share.usage_order` has it of a policy that stays. Scores that
    have been written are not those of the weights yet. The first ``n_weights`` are of features.
    """
    rows, by_usage = fair.rows, fair.by_usage
    others = False
    for k in range(n_weights):
        if k != by_usage[CPU] and k != by_usage[ENERGY] and total > 0 and weights[k] / total != 0:
            others = True
    for what in range(2):
        place = by_usage[what]
        weight = weights[place] / total if place >= 0 and total > 0 else 0.0
        rows.weights[e, 0, what] = weight
    by_cpu, by_energy = rows.weights[e, 0, CPU] != 0, rows.weights[e, 0, ENERGY] != 0
    if not by_cpu and not by_energy:
        rows.kinds[e, 0] = UNAWARE
        for leaf in range(rows.terms.shape[2]):
            rows.terms[e, 0, leaf] = 0.0
    elif others or (by_cpu and by_energy):
        rows.kinds[e, 0] = MIXED
    else:
        rows.kinds[e, 0] = BY_CPU if by_cpu else BY_ENERGY
