"""Which blocks of a long queue need no look: the least prediction among their narrow jobs.

A block may have a job that is narrow enough to start now and another that is short enough, and none
that is both. So for the blocks of a long queue in order of submission, the least predicted run time
is kept among the jobs of up to 1, 2, 4, ... 4096 and any number of processors, at
``narrow[block * CLASSES + c]``. (In an order by run time the jobs of a block are alike anyway.)
"""

from __future__ import annotations

from hpcgym.compilation import jit, jit_part
from hpcgym.engine.ordered import BLOCK, NOTHING

CLASSES = 14


@jit_part
def class_of(width):
    """Return the first class whose jobs include those of this width."""
    c = 0
    while c < CLASSES - 1 and (1 << c) < width:
        c += 1
    return c


@jit
def summarise_narrow(blocks, entries, narrow, block):
    """Compute the least predictions of a block."""
    base = block * CLASSES
    for c in range(CLASSES):
        narrow[base + c] = NOTHING
    for i in range(block * BLOCK, block * BLOCK + blocks[block].count):
        c = base + class_of(entries[i].width)
        narrow[c] = min(narrow[c], entries[i].span)
    for c in range(1, CLASSES):
        narrow[base + c] = min(narrow[base + c], narrow[base + c - 1])
    blocks[block].narrow_known = 1


@jit
def least_of_narrow(narrow, block, width):
    """Return a time that no job of a block of up to this width is predicted to run less than."""
    return narrow[block * CLASSES + class_of(width)]


@jit
def widen_narrow(narrow, block, width, predicted):
    """Let the least predictions of a block hold for a job that has been put there."""
    for c in range(class_of(width), CLASSES):
        narrow[block * CLASSES + c] = min(narrow[block * CLASSES + c], predicted)
