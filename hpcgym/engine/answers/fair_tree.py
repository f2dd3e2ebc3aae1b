"""Fair Tree: users in a row by what they and the accounts above them have used for their shares.

Slurm's usual fair share (https://slurm.schedmd.com/fair_tree.html). Among those that have the same
account above them, the first is who has the greatest share for its part of what they all used. All
users below an account come before all below the next one. Who ties has the same place.
"""

from __future__ import annotations

import math

import numpy as np

from hpcgym.compilation import jit, jit_part
from hpcgym.engine.passes.lining_up import sort_line
from hpcgym.schedule.records import records

# What ranking works with: a record for each account, and the last for the machine.
TREE = records(
    ("usage", np.float64),  # in any unit
    ("served", np.float64),  # its share for its part of the usage of all with the same one above
    ("below", np.int64),  # the first directly below it, -1: nobody
    ("next", np.int64),  # the next with the same one above, -1: nobody
    ("ties", np.int64),  # 1 if it ties with who comes before it
    # a list of accounts, which is not by account; its first two fields are named for `sort_line`
    ("job", np.int64),  # an account that is still to be looked at, the next one last
    ("score", np.float64),  # its `served`
    ("merged", np.int64),  # an account of those that tie
)


@jit
def rank(places, parent, part, tree, leaves):
    """Write the place of each user: 1 of the first, down to 1 / number of users of the last.

    Users that tie have the place of the first of them. Accounts that tie count as one: whoever is
    below any of them is compared. A user that ties with an account has the place of the first user
    below that.

    Parameters
    ----------
    places : (n_users,) float64, is written.
    parent, part : (n_accounts,) of :class:`hpcgym.engine.answers.shares.Shares`.
    tree : (n_accounts + 1,) TREE, whose ``usage`` is known.
    leaves : how many users there are, which are the first accounts.
    """
    machine = len(parent)
    link(parent, part, tree)
    waiting = add_below(tree, machine, np.int64(0))
    put_in_order(tree, np.int64(0), waiting, np.int64(0))
    place = untied = leaves
    while waiting > 0:
        waiting -= 1
        account = tree[waiting].job
        if account < leaves:
            if tree[account].ties == 0:
                place = untied
            places[account] = place / leaves
            untied -= 1
            continue
        # those that tie with it are accounts, too: users come before them
        merged = 1
        tree[0].merged = account
        while waiting > 0 and tree[tree[waiting - 1].job].ties == 1:
            waiting -= 1
            tree[merged].merged = tree[waiting].job
            merged += 1
        end = waiting
        for i in range(merged):
            end = add_below(tree, tree[i].merged, end)
        put_in_order(tree, waiting, end, tree[account].ties)
        waiting = end


@jit_part
def link(parent, part, tree):
    """Write who is below whom, and which share each account has for its part of the usage."""
    machine = len(parent)
    tree[machine].usage, tree[machine].below = 0.0, -1
    for account in range(machine):
        tree[account].below = -1
        if parent[account] < 0:
            tree[machine].usage += tree[account].usage
    for account in range(machine):
        above = machine if parent[account] < 0 else parent[account]
        tree[account].next, tree[above].below = tree[above].below, account
        tree[account].served = np.inf
        if tree[account].usage > 0:
            used = tree[account].usage / tree[above].usage
            tree[account].served = rounded(part[account] / used)


@jit_part
def rounded(number):
    """Return a number to 40 bits, about 12 digits: where sums differ by their rounding is a tie."""
    fraction, exponent = math.frexp(number)
    return math.ldexp(np.round(fraction * 2.0**40), exponent - 40)


@jit
def add_below(tree, account, end):
    """Put all that are directly below an account behind ``end``; return where they end."""
    below = tree[account].below
    while below >= 0:
        tree[end].job, tree[end].score = below, tree[below].served
        end += 1
        below = tree[below].next
    return end


@jit
def put_in_order(tree, begin, end, ties):
    """Let the greatest share be the last, and note who ties with the one before it.

    ``ties``: whether the first of them ties with whoever came before all of them.
    """
    sort_line(tree, begin, end)
    for i in range(begin, end):
        account = tree[i].job
        tree[account].ties = ties if i == begin else np.int64(tree[i].score == tree[i - 1].score)
    for i in range((end - begin) // 2):
        a, b = begin + i, end - 1 - i
        job, score = tree[a].job, tree[a].score
        tree[a].job, tree[a].score = tree[b].job, tree[b].score
        tree[b].job, tree[b].score = job, score
