"""The list of running jobs, where ends move while jobs run."""

from __future__ import annotations

from hpcgym.compilation import jit_part
from hpcgym.engine.ordered import BLOCK, find, insert, remove, summarise
from hpcgym.engine.state import RUNNING


@jit_part
def relist(blocks, entries, key, job, predicted_end, end):
    """Move a running job to the place of another predicted end; ends of blocks stay exact."""
    position, block, i = find(blocks, entries, RUNNING, key, job)
    width = entries[i].width
    first, last = block * BLOCK, block * BLOCK + blocks[block].count - 1
    stays = i == first or entries[i - 1].key <= predicted_end
    stays = stays and (i == last or predicted_end < entries[i + 1].key)
    # the first and the last of a block have neighbours in others
    if stays and (blocks[RUNNING].in_use == 1 or first < i < last):
        entries[i].key = predicted_end
        entries[i].span = end
        summarise(blocks, entries, block)
        return
    remove(blocks, entries, RUNNING, position, block, i)
    summarise(blocks, entries, block)
    insert(blocks, entries, RUNNING, predicted_end, job, end, width)
