"""Ordered lists of jobs in flat arrays: sorted blocks of at most ``BLOCK`` entries.

The queue and the running jobs are such lists. A sorted array costs a scan and a shift of all its
entries at each change; here both touch one block, and what is known of each block as a whole lets
a scan pass over it. A list of up to ``BLOCK`` jobs *is* a sorted array. Equal keys stay in the
order of insertion.

All lists of a simulation share two arrays. Block b holds the entries ``b * BLOCK`` onward. The
first block of list ``which`` is always block ``which``, and only an empty list has an empty block,
so that the first entry is found at once. All blocks of the list are named, in order, from
``blocks[first].order`` onward: ``in_use`` of them have entries, the rest are spare. A position is
counted from ``first``.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hpcgym.compilation import jit, jit_inline, jit_part
from hpcgym.schedule.records import records

BLOCK = 64


BLOCKS = records(
    ("count", np.int64),  # entries
    ("order", np.int64),  # the block that stands at this position
    ("least_width", np.int64),  # these two are bounds: a removal may leave them too low
    ("least_span", np.int64),
    ("sum_width", np.int64),
    ("narrow_known", np.int64),  # whether hpcgym.engine.orders.narrow holds for the block
    # bounds of what time-dependent scores are made of; see hpcgym.engine.orders.scores
    ("first_submit", np.int64),
    ("last_submit", np.int64),
    ("greatest_score", np.float64),
    ("greatest_gain", np.float64),
    # of the list, where the block is the first of one
    ("first", np.int64),
    ("in_use", np.int64),
    ("capacity", np.int64),
)
ENTRIES = records(
    ("key", np.int64),
    ("span", np.int64),  # [s] predicted run time of a queued job, end of a running one
    ("width", np.int64),  # processors
    ("job", np.int64),
)

# numba looks for negative indices, unless they cannot be: the innermost loops count in this type
ONE = np.uint64(1)

NOTHING = 2**62  # least value of an empty block


def make_lists(capacities: list[int]) -> tuple[NDArray[np.void], NDArray[np.void]]:
    """Return the arrays ``blocks`` and ``entries`` of empty lists of these capacities.

    The memory of the entries is touched, and so taken, only when used.
    """
    n_lists = len(capacities)
    # two neighbouring blocks always hold more than BLOCK / 2 entries together
    n_blocks = np.array([4 * (capacity // BLOCK + 1) + 2 for capacity in capacities])
    first = np.cumsum(n_blocks) - n_blocks
    blocks = np.zeros(n_blocks.sum(), BLOCKS)
    blocks["least_span"] = blocks["least_width"] = NOTHING
    blocks["greatest_gain"] = np.inf
    blocks["first"][:n_lists] = first
    blocks["in_use"][:n_lists] = 1
    blocks["capacity"][:n_lists] = n_blocks
    is_first = np.zeros(len(blocks), np.bool_)
    is_first[first] = True
    blocks["order"][is_first] = np.arange(n_lists)
    blocks["order"][~is_first] = np.arange(n_lists, len(blocks))
    return blocks, np.empty(len(blocks) * BLOCK, ENTRIES)


@jit
def last_block_from(blocks, entries, which, key):
    """Return the position of the last block whose first key is at most ``key``, else the first."""
    first = blocks[which].first
    low, high = 0, blocks[which].in_use
    while high - low > 1:
        middle = (low + high) // 2
        if entries[blocks[first + middle].order * BLOCK].key <= key:
            low = middle
        else:
            high = middle
    return low


@jit_part
def block_at(blocks, which, position):
    """Return the block at a position of list ``which``, without a look where there is only one."""
    # one load less to wait for
    return which if blocks[which].in_use == 1 else blocks[blocks[which].first + position].order


@jit_part
def length(blocks, which):
    """Return how many entries a list has."""
    total = 0
    for k in range(blocks[which].in_use):
        total += blocks[block_at(blocks, which, k)].count
    return total


@jit_part
def block_for(blocks, entries, which, key):
    """Return the position and the number of the block where ``key`` belongs."""
    if blocks[which].in_use == 1:
        return 0, which
    position = last_block_from(blocks, entries, which, key)
    return position, block_at(blocks, which, position)


@jit
def make_room(blocks, entries, which, position, key):
    """Split the full block at ``position``; return the number of the block for ``key``."""
    block = block_at(blocks, which, position)
    if blocks[which].in_use == blocks[which].capacity:
        raise RuntimeError("an ordered list is full")
    in_use = blocks[which].in_use
    place = blocks[which].first + position
    new = blocks[place - position + in_use].order
    # at the end of the list nothing is moved: a list that only grows there has full blocks
    moved = BLOCK // 2
    if position == in_use - 1 and key >= entries[block * BLOCK + BLOCK - 1].key:
        moved = 0
    for k in range(place - position + in_use, place + 1, -1):
        blocks[k].order = blocks[k - 1].order
    blocks[place + 1].order = new
    blocks[which].in_use += 1
    move_entries(blocks, entries, block, BLOCK - moved, new)
    return new if moved == 0 or key >= entries[new * BLOCK].key else block


@jit
def move_entries(blocks, entries, source, start, target):
    """Move the entries of a block from its ``start`` on to the end of another block."""
    free = target * BLOCK + blocks[target].count
    moved = blocks[source].count - start
    for i in range(moved):
        copy_entry(entries, free + i, source * BLOCK + start + i)
    blocks[source].count -= moved
    blocks[target].count += moved
    summarise(blocks, entries, source)
    summarise(blocks, entries, target)


@jit
def summarise(blocks, entries, block):
    """Compute anew what is known of a block as a whole."""
    least_span = NOTHING
    least_width = NOTHING
    sum_width = 0
    for i in range(block * BLOCK, block * BLOCK + blocks[block].count):
        least_span = min(least_span, entries[i].span)
        least_width = min(least_width, entries[i].width)
        sum_width += entries[i].width
    blocks[block].least_span = least_span
    blocks[block].least_width = least_width
    blocks[block].sum_width = sum_width
    blocks[block].greatest_gain = np.inf  # not known
    blocks[block].narrow_known = 0


@jit_part
def copy_entry(entries, target, source):
    """Copy an entry."""
    # all are read before the first is written: so it takes one move of the whole record
    key, span = entries[source].key, entries[source].span
    width, job = entries[source].width, entries[source].job
    entries[target].key = key
    entries[target].span = span
    entries[target].width = width
    entries[target].job = job


@jit_inline
def insert(blocks, entries, which, key, job, span, width):
    """Put a job behind all entries with keys up to ``key``; return its block."""
    position, block = block_for(blocks, entries, which, key)
    if blocks[block].count == BLOCK:
        block = make_room(blocks, entries, which, position, key)
    base = np.uint64(block * BLOCK)
    i = base + np.uint64(blocks[block].count)
    while i > base and entries[i - ONE].key > key:
        copy_entry(entries, i, i - ONE)
        i -= ONE
    entries[i].key = key
    entries[i].job = job
    entries[i].span = span
    entries[i].width = width
    blocks[block].count += 1
    blocks[block].least_span = min(blocks[block].least_span, span)
    blocks[block].least_width = min(blocks[block].least_width, width)
    blocks[block].sum_width += width
    return block


@jit
def empty(blocks, which):
    """Take all entries out of a list."""
    for k in range(blocks[which].in_use):
        block = block_at(blocks, which, k)
        blocks[block].count = 0
        blocks[block].least_width = blocks[block].least_span = NOTHING
        blocks[block].sum_width = 0
        blocks[block].narrow_known = 0
        blocks[block].greatest_gain = np.inf
    blocks[which].in_use = 1


@jit_inline
def find(blocks, entries, which, key, job):
    """Return position and number of the block of a job, and its entry; it must be listed."""
    position, block = block_for(blocks, entries, which, key)
    while True:
        for i in range(block * BLOCK, block * BLOCK + blocks[block].count):
            if entries[i].job == job:
                return position, block, i
        # equal keys may reach back into earlier blocks
        position -= 1
        block = block_at(blocks, which, position)


@jit_inline
def remove(blocks, entries, which, position, block, i):
    """Take entry ``i`` out of a block, given by its position and number."""
    blocks[block].count -= 1
    blocks[block].sum_width -= entries[i].width
    for k in range(i, block * BLOCK + blocks[block].count):
        copy_entry(entries, k, k + 1)
    if blocks[which].in_use > 1:
        tidy(blocks, entries, which, position)


@jit_part
def move_back(blocks, entries, which, position, block, i, key):
    """Give entry ``i`` of a block a greater key, and the place of that."""
    job, span, width = entries[i].job, entries[i].span, entries[i].width
    following = block_at(blocks, which, min(position + 1, blocks[which].in_use - 1))
    if following != block and entries[following * BLOCK].key <= key:
        remove(blocks, entries, which, position, block, i)
        summarise(blocks, entries, block)  # the least end of running jobs must be exact
        insert(blocks, entries, which, key, job, span, width)
        return
    last = block * BLOCK + blocks[block].count - 1
    while i < last and entries[i + 1].key <= key:
        copy_entry(entries, i, i + 1)
        i += 1
    entries[i].key = key
    entries[i].job = job
    entries[i].span = span
    entries[i].width = width


@jit
def tidy(blocks, entries, which, position):
    """Join the block at ``position`` with its neighbours if there are few entries in both."""
    if position > 0:
        join(blocks, entries, which, position - 1)
    if position + 1 < blocks[which].in_use:
        join(blocks, entries, which, position)


@jit
def tidy_swept(blocks, entries, which, k):
    """Tidy the block before position ``k``, which a sweep has left; return where to go on."""
    position = k - 1
    in_use = blocks[which].in_use
    if k < in_use:
        join(blocks, entries, which, position)
        if blocks[which].in_use < in_use:
            # entries that the sweep has yet to see have moved here
            return position
    if position > 0:
        join(blocks, entries, which, position - 1)
    return k - (in_use - blocks[which].in_use)


@jit
def join(blocks, entries, which, position):
    """Move the entries of the next block behind those of this one if there are few of both."""
    block = block_at(blocks, which, position)
    following = block_at(blocks, which, position + 1)
    few = blocks[block].count + blocks[following].count <= BLOCK // 2
    if not few and blocks[block].count > 0 and blocks[following].count > 0:
        return
    move_entries(blocks, entries, following, 0, block)
    blocks[which].in_use -= 1
    first = blocks[which].first
    end = first + blocks[which].in_use
    for k in range(first + position + 1, end):
        blocks[k].order = blocks[k + 1].order
    blocks[end].order = following
