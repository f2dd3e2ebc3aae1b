"""In which order nodes are filled: by number, by what is free or left free on them, or at random.

``nodes`` are those of :mod:`hpcgym.engine.machines.nodes.placement`, ``room`` (N, R) what is free
on each, now or at another time.
"""

from __future__ import annotations

import numpy as np

from hpcgym.compilation import jit, jit_entry, jit_part
from hpcgym.scheduler.allocations import (
    BALANCED,
    BEST_FIT,
    FIRST_FIT,
    HYBRID,
    RANDOM,
    WEIGHTED,
    WORST_FIT,
)

_PLAIN, _FULL = -1, -2  # kinds of nodes without scarce resources, and without room for the job


@jit
def arrange(nodes, room, job):
    """Bring the nodes into the order in which a job is to fill them, where there is this room."""
    allocation = nodes.scalars[0].allocation
    if allocation == FIRST_FIT:
        return
    if allocation == RANDOM:
        shuffle(nodes)
        return
    if allocation >= WEIGHTED:
        order_by_value(nodes, room, job)
        return
    if nodes.scalars[0].n_stale == 0:
        return
    if allocation == BALANCED:
        balance(nodes, room)
    else:
        sort_nodes(nodes, nodes.stale[0], nodes.scalars[0].n_stale)
        merge_stale(nodes)
    nodes.scalars[0].n_stale = 0


@jit_part
def is_by_room(nodes):
    """Return whether the order changes with what is free."""
    return nodes.scalars[0].allocation in (BEST_FIT, WORST_FIT, BALANCED)


@jit_part
def goes_by_demand(nodes):
    """Return whether the order is another for each job, and changes with who else waits."""
    return nodes.scalars[0].allocation >= WEIGHTED


@jit_part
def note_waiting(nodes, job, sign):
    """Note that a job waits now, or no longer where ``sign`` is -1."""
    if goes_by_demand(nodes):
        for r in range(len(nodes.asked)):
            nodes.asked[r] += sign * nodes.asks[job, r]


@jit_part
def comes_before(nodes, a, b):
    """Return whether node ``a`` is filled before node ``b``."""
    left, other = nodes.left[a], nodes.left[b]
    if left != other:
        return (left < other) == (nodes.scalars[0].allocation != WORST_FIT)
    return a < b


@jit
def sort_nodes(nodes, order, n):
    """Sort the first ``n`` nodes of a list (Shell's sort)."""
    gap = 1
    while gap < n // 3:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(gap, n):
            node = order[i]
            k = i
            while k >= gap and comes_before(nodes, node, order[k - gap]):
                order[k] = order[k - gap]
                k -= gap
            order[k] = node
        gap //= 3


@jit
def merge_stale(nodes):
    """Put the nodes that have changed back to where they belong among the others."""
    order, stale, n = nodes.order, nodes.stale, nodes.scalars[0].n_stale
    kept = 0
    for i in range(len(order)):
        if stale[1, order[i]] == 0:
            order[kept] = order[i]
            kept += 1
    for i in range(len(order) - 1, -1, -1):
        if n == 0:
            break
        node = stale[0, n - 1]
        if kept > 0 and comes_before(nodes, node, order[kept - 1]):
            kept -= 1
            order[i] = order[kept]
        else:
            order[i] = node
            stale[1, node] = 0
            n -= 1


@jit_entry
def shuffle(nodes):
    """Bring the nodes into a random order (xorshift; Fisher and Yates)."""
    order = nodes.order
    for i in range(len(order) - 1, 0, -1):
        x = np.uint64(nodes.scalars[0].random_state)
        x ^= x << np.uint64(13)
        x ^= x >> np.uint64(7)
        x ^= x << np.uint64(17)
        nodes.scalars[0].random_state = np.int64(x)
        k = np.int64((x >> np.uint64(11)) % np.uint64(i + 1))
        order[i], order[k] = order[k], order[i]


@jit_entry
def weigh_all(nodes, room):
    """Compute anew what of the machine's resources is free on each node."""
    for node in range(len(room)):
        weigh(nodes, room, node)


@jit_part
def weigh(nodes, room, node):
    """Note that what is free on a node has changed, and how much that is: what best fit goes by."""
    allocation = nodes.scalars[0].allocation
    if allocation in (BEST_FIT, WORST_FIT):
        left = 0.0
        for r in range(room.shape[1]):
            if nodes.total[r] > 0.0:
                left += room[node, r] / nodes.total[r]
        nodes.left[node] = left
        if nodes.stale[1, node] == 0:
            nodes.stale[1, node] = 1
            nodes.stale[0, nodes.scalars[0].n_stale] = node
            nodes.scalars[0].n_stale += 1
    elif allocation == BALANCED:
        nodes.scalars[0].n_stale = 1


@jit
def balance(nodes, room):
    """Order the nodes so that no scarce resource is used up before another.

    First come the nodes without any, by number. Each other node counts for the scarce resource of
    which it has most; of those resources the one with most nodes left gives the next node, and of
    its nodes the one that has least of it.
    """
    order, left, kind = nodes.order, nodes.left, nodes.stale[1]
    note_kinds(nodes, room)
    part = 1.0 / (room.shape[1] + 1)  # so that of whole numbers that are equal, the kind decides
    for node in range(len(order)):
        order[node] = node
        left[node] += kind[node] * part
    sort_nodes(nodes, order, len(order))
    take_turns(nodes, len(order))


@jit
def order_by_value(nodes, room, job):
    """Order the nodes by the value of what a job would leave free on them, the least first.

    A resource is worth the more, the more of it the others ask for that wait, and the more of all
    there is has been taken. HYBRID goes by it among the nodes of one kind, which are as BALANCED
    has them; nodes without room for the job are of none.
    """
    order, left, kind, worth = nodes.order, nodes.left, nodes.stale[1], nodes.worth
    for r in range(room.shape[1]):
        free = 0
        for node in range(len(room)):
            free += room[node, r]
        others = nodes.asked[r] - nodes.asks[job, r]
        total = nodes.total[r]
        worth[r] = 0.0
        if total > 0.0:
            worth[r] = (1.0 + others) * (1.0 + (total - free)) / (total * total)
    n = 0
    for node in range(len(room)):
        order[node] = node
        left[node] = np.inf
        units = held_by(room, node, nodes.needs, job, nodes.needs[job, 0])
        if units > 0:
            left[node] = 0.0
            for r in range(room.shape[1]):
                left[node] += (room[node, r] - units * nodes.needs[job, r + 1]) * worth[r]
            n += 1
    sort_nodes(nodes, order, len(order))
    if nodes.scalars[0].allocation == HYBRID:
        note_kinds(nodes, room)
        for i in range(n, len(order)):
            kind[order[i]] = _FULL
        take_turns(nodes, n)


@jit
def note_kinds(nodes, room):
    """Note of which scarce resource each node has most, and how much that is."""
    left, kind = nodes.left, nodes.stale[1]
    for node in range(len(room)):
        kind[node] = _PLAIN
        left[node] = 0.0
    for r in range(room.shape[1]):
        if is_scarce(nodes, r):
            for node in range(len(room)):
                if room[node, r] > left[node]:
                    left[node] = room[node, r]
                    kind[node] = r


@jit
def take_turns(nodes, n):
    """Let the kinds of the first ``n`` nodes take turns, each kind in the order that stands.

    Plain nodes come first. A node's turn depends on how many of its kind are left then.
    """
    order, left, kind = nodes.order, nodes.left, nodes.stale[1]
    resources = nodes.capacity.shape[1]
    part = 1.0 / (resources + 1)
    for i in range(n):
        left[order[i]] = i - 2.0 * len(order)
    for r in range(resources):
        after = 0
        for i in range(n - 1, -1, -1):
            if kind[order[i]] == r:
                after += 1
                left[order[i]] = r * part - after
    sort_nodes(nodes, order, n)


@jit_part
def is_scarce(nodes, r):
    """Return whether some nodes have none of a resource at all. A partition is no resource here."""
    if nodes.total[r] == 0.0:
        return False
    without = 0
    for node in range(len(nodes.capacity)):
        if nodes.capacity[node, r] == 0:
            without += 1
    return without > 0


@jit_part
def held_by(room, node, needs, job, most):
    """Return how many units of a job a node with that ``room`` (N, R) holds, at most ``most``."""
    for r in range(room.shape[1]):
        need, there = needs[job, r + 1], room[node, r]
        if there < need * most:
            # divisions take long, and are seldom needed
            most = 0 if there < need else there if need == 1 else there // need
    return most
