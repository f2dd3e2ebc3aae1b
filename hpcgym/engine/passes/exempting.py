"""When jobs are no longer exempt from being stopped, and so a pass is due."""

from __future__ import annotations

import numpy as np

from hpcgym.compilation import jit, jit_part
from hpcgym.engine.ordered import BLOCK, block_at
from hpcgym.engine.state import FOREVER, QUEUE, RUNNING


@jit
def first_exempt_until(sim, progress, blocks, entries, machine):
    """Return when a queued job may stop a running one that is still exempt; FOREVER if none is."""
    first = np.int64(FOREVER)
    if machine.scalars[0].exempts == 0:
        return first
    for group in range(len(machine.noted)):
        machine.noted[group] = False
    for k in range(blocks[QUEUE].in_use):
        block = block_at(blocks, QUEUE, k)
        for i in range(block * BLOCK, block * BLOCK + blocks[block].count):
            group = machine.group[entries[i].job]
            if group >= 0:
                machine.noted[group] = True
    for k in range(blocks[RUNNING].in_use):
        block = block_at(blocks, RUNNING, k)
        for i in range(block * BLOCK, block * BLOCK + blocks[block].count):
            group = machine.group[entries[i].job]
            if group < 0 or machine.exempt[group] == 0:
                continue
            until = progress[entries[i].job].start + machine.exempt[group]
            if sim.time < until < first and is_waited_for(machine, group):
                first = until
    return first


@jit_part
def is_waited_for(machine, group):
    """Return whether a job waits, after a pass, that may stop those of a group."""
    found = False
    for own in range(len(machine.noted)):
        found = found or (machine.noted[own] and machine.may[own, group])
    return found
