"""In which order nodes are filled: by number, by what is free on them, or at random.

``nodes`` are those of :mod:`hpcgym.engine.machines.nodes.placement`, ``room`` (N, R) what is free
on each, now or at another time.
"""

from __future__ import annotations

import numpy as np

from hpcgym.compilation import jit, jit_entry, jit_part

FIRST_FIT, BEST_FIT, WORST_FIT, RANDOM, BALANCED = range(5)  # ALLOCATION


@jit
def arrange(nodes, room):
    """Bring the nodes into the order in which they are to be filled, where there is this room."""
    allocation = nodes.scalars[0].allocation
    if allocation == FIRST_FIT:
        return
    if allocation == RANDOM:
        shuffle(nodes)
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
    part = 1.0 / (room.shape[1] + 1)  # so that of whole numbers that are equal, the kind decides
    for node in range(len(order)):
        order[node] = node
        kind[node] = -1
        left[node] = 0.0
        for r in range(room.shape[1]):
            if room[node, r] > left[node] and is_scarce(nodes, r):
                left[node] = room[node, r]
                kind[node] = r
        left[node] += kind[node] * part
    sort_nodes(nodes, order, len(order))
    # a node's turn depends on how many of its kind are left when it has come
    for r in range(room.shape[1]):
        after = 0
        for i in range(len(order) - 1, -1, -1):
            if kind[order[i]] == r:
                after += 1
                left[order[i]] = r * part - after
    for node in range(len(order)):
        if kind[node] < 0:
            left[node] = -np.inf
    sort_nodes(nodes, order, len(order))


@jit_part
def is_scarce(nodes, r):
    """Return whether some nodes have none of a resource at all."""
    without = 0
    for node in range(len(nodes.capacity)):
        if nodes.capacity[node, r] == 0:
            without += 1
    return without > 0
