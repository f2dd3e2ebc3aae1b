"""Sets of nodes, a bit for each, 64 in a word: so machines pass over nodes with nothing free."""

from __future__ import annotations

import numpy as np

from hpcgym.compilation import jit_part, trailing_zeros


@jit_part
def is_in(bits, node):
    """Return whether a node is in a set."""
    return (bits[node >> 6] >> np.uint64(node & 63)) & np.uint64(1) != 0


@jit_part
def add(bits, node):
    """Put a node into a set."""
    bits[node >> 6] |= np.uint64(1) << np.uint64(node & 63)


@jit_part
def remove(bits, node):
    """Take a node out of a set."""
    bits[node >> 6] &= ~(np.uint64(1) << np.uint64(node & 63))


@jit_part
def next_open(bits, node):
    """Return the first node from this one on whose bit is set, or one that there is not."""
    place = node >> 6
    word = bits[place] >> np.uint64(node & 63)
    if word == 0:
        place += 1
        while place < len(bits) and bits[place] == 0:
            place += 1
        if place == len(bits):
            return place << 6
        node, word = place << 6, bits[place]
    return node + trailing_zeros(word)
