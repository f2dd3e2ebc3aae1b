"""Which reservations may be earlier once processors are given back, so that only these are tried.

Each reservation was at the earliest time when it was made or last tried. Since then a job can only
have won where processors were given back, from one step of the profile to another, and in one of
two ways:

- It *slides*: the second before it begins lies there, and now has room for it.
- It finds a *hole*: a stretch of time before that has room for it, and had not before. The job
  remembers from when to when it could begin in such holes, and is tried nowhere else.

Every job that can move is noted. Some that cannot may be, too: another may be first in a hole.
Beside these the next pass looks at the jobs whose reservations have begun.

The same holds for a new job. Before the reservation of another that is neither wider nor longer,
and is at its earliest, there is no room for the new one either: see :func:`step_to_begin_at`.
"""

from __future__ import annotations

import numpy as np

from hpcgym.compilation import jit, jit_part, trailing_zeros
from hpcgym.engine.ordered import (
    BLOCK,
    NOTHING,
    ONE,
    block_at,
    find,
    insert,
    last_block_from,
    remove,
)
from hpcgym.engine.orders.narrow import CLASSES
from hpcgym.engine.state import BY_LENGTH, FOREVER, NO_STEP

SLIDES, FINDS_A_HOLE = 1, 2  # loose

# BY_LENGTH has the queued jobs by class of their width and then by predicted run time, and `narrow`
# at BY_LENGTH's first block a time that no job of a class is predicted to run less than. The `span`
# of an entry is a time that the job's reservation is not later than. It is kept there, and not
# looked up in `line`, since most jobs are passed over for it.
_CLASS = 54  # bits of a key below the class
_LENGTH = (1 << _CLASS) - 1  # the predicted run time [s] in a key


@jit_part
def note(line, job):
    """Note that the next pass has to look at a job."""
    line[job >> 6].noted |= np.uint64(1) << np.uint64(job & 63)


@jit
def next_noted(line, first, end):
    """Return the first noted job from ``first`` on and before ``end``; -1: no job is noted there.

    It is noted no longer.
    """
    place = first >> 6
    passed = (np.uint64(1) << np.uint64(first & 63)) - np.uint64(1)
    while place * 64 < end:
        left = line[place].noted & ~passed
        if left != np.uint64(0):
            bit = trailing_zeros(left)
            line[place].noted ^= np.uint64(1) << np.uint64(bit)
            return place * 64 + bit
        passed = np.uint64(0)
        place += 1
    return np.int64(-1)


@jit
def note_due(sim, profile, line):
    """Note the jobs whose reservations have begun since the last pass."""
    step = profile[sim.profile_first].next
    while step != NO_STEP and profile[step].time <= sim.time:
        job = profile[step].job
        while job >= 0:
            note(line, job)
            job = line[job].next
        step = profile[step].next


@jit_part
def width_class(width):
    """Return the class of a width: 1, 2 and 3, 4 to 7, and so on; the last has all others.

    Not that of :mod:`hpcgym.engine.orders.narrow`: widths are mostly powers of two, and a hole is
    looked for that the narrowest of a class needs.
    """
    c = 0
    while c < CLASSES - 1 and (2 << c) <= width:
        c += 1
    return c


@jit_part
def key_of(jobs, progress, job):
    """Return the place of a job in BY_LENGTH."""
    return (width_class(jobs[job].processors) << _CLASS) + progress[job].predicted


@jit
def list_job(jobs, progress, blocks, entries, narrow, job):
    """List a job that waits now."""
    width, length = jobs[job].processors, progress[job].predicted
    insert(blocks, entries, BY_LENGTH, key_of(jobs, progress, job), job, FOREVER, width)
    least = BY_LENGTH * CLASSES + width_class(width)
    narrow[least] = min(narrow[least], length)


@jit
def strike_job(jobs, progress, blocks, entries, job):
    """Take a job that starts off the list."""
    key = key_of(jobs, progress, job)
    position, block, i = find(blocks, entries, BY_LENGTH, key, job)
    remove(blocks, entries, BY_LENGTH, position, block, i)


@jit
def may_be_late(jobs, progress, blocks, entries, job):
    """Note that the reservation of a job may be later than it was: it is made anew."""
    key = key_of(jobs, progress, job)
    _, _, i = find(blocks, entries, BY_LENGTH, key, job)
    entries[i].span = FOREVER


@jit
def step_to_begin_at(sim, blocks, entries, profile, line, width, length):
    """Return a step before which no new job of that width and length can begin.

    It is the last at which a job begins that is neither wider nor longer, and is at its earliest:
    where a new one could begin before, so could this one.
    """
    latest, step = sim.time, sim.profile_first
    greatest = (width_class(width) << _CLASS) + length
    for k in range(blocks[BY_LENGTH].in_use):
        block = block_at(blocks, BY_LENGTH, k)
        base = np.uint64(block * BLOCK)
        for i in range(base, base + np.uint64(blocks[block].count)):
            if entries[i].key > greatest:
                return step
            if entries[i].span <= latest or entries[i].key & _LENGTH > length:
                continue
            job = entries[i].job
            entries[i].span = line[job].reserved
            if line[job].reserved > latest and line[job].loose == 0 and entries[i].width <= width:
                latest, step = line[job].reserved, line[job].begins
    return step


@jit
def note_given_back(sim, jobs, blocks, entries, profile, line, narrow, begin, end, width):
    """Note who may begin earlier, after ``width`` processors were given back from step to step."""
    least, most = FOREVER, 0
    step = np.uint32(begin)
    while step != end:
        free = profile[step].free
        least, most = min(least, free), max(most, free)
        step = profile[step].next
        job = profile[step].job
        while job >= 0:
            if jobs[job].processors <= free:
                line[job].loose |= SLIDES
                note(line, job)
            job = line[job].next
    # what is no wider was free before throughout
    least = max(least - width + 1, 1)
    if most < least:
        return
    lone = profile[begin].next == end
    first, after = begin, end
    # from the widest class on, so that the stretch around a single step only grows
    for c in range(width_class(most), width_class(least) - 1, -1):
        narrowest = max(1 << c, least)
        widest = min(most, (2 << c) - 1) if c < CLASSES - 1 else most
        shortest = narrow[BY_LENGTH * CLASSES + c]
        if lone:
            first = stretch_before(sim, profile, first, narrowest)
            after = stretch_after(profile, after, narrowest)
            if shortest <= time_of(profile, after) - profile[first].time:
                offer_hole(
                    blocks, entries, profile, line, narrow, c, narrowest, widest, first, after
                )  # fmt: skip
        elif shortest < FOREVER:
            find_holes(
                sim, blocks, entries, profile, line, narrow, c, narrowest, widest, begin, end, width
            )  # fmt: skip


@jit
def find_holes(
    sim, blocks, entries, profile, line, narrow, c, narrowest, widest, begin, end, width
):  # fmt: skip
    """Offer each hole that the steps from ``begin`` to ``end`` have a part in.

    ``narrowest``, ``widest``: of the jobs for which they are looked for. Holes are free for the
    narrowest, and have a step there that was not free for the widest before.
    """
    step = np.uint32(begin)
    while step != end:
        if profile[step].free < narrowest:
            step = profile[step].next
            continue
        first, is_new = np.int64(step), False
        if step == begin:
            first = stretch_before(sim, profile, step, narrowest)
        while step != end and profile[step].free >= narrowest:
            is_new |= profile[step].free - width < widest
            step = profile[step].next
        if is_new:
            after = stretch_after(profile, step, narrowest)
            length = time_of(profile, after) - profile[first].time
            if narrow[BY_LENGTH * CLASSES + c] <= length:
                offer_hole(
                    blocks, entries, profile, line, narrow, c, narrowest, widest, first, after
                )  # fmt: skip


@jit_part
def stretch_before(sim, profile, step, width):
    """Return the first step from which on, up to ``step``, so many processors are free."""
    step = np.uint32(step)
    while step != sim.profile_first and profile[profile[step].before].free >= width:
        step = profile[step].before
    return np.int64(step)


@jit_part
def stretch_after(profile, step, width):
    """Return the first step from ``step`` on where so many are not free; NO_STEP: for ever."""
    step = np.uint32(step)
    while step != NO_STEP and profile[step].free >= width:
        step = profile[step].next
    return np.int64(step)


@jit_part
def time_of(profile, step):
    """Return when a step begins; FOREVER for NO_STEP."""
    return FOREVER if step == NO_STEP else profile[step].time


@jit
def offer_hole(blocks, entries, profile, line, narrow, c, narrowest, widest, first, after):
    """Note the jobs of a class of widths for which a hole, from step to step, is long enough."""
    lowest, time = c << _CLASS, profile[first].time
    end = time_of(profile, after)
    greatest = lowest + min(end - time, _LENGTH)
    shortest = NOTHING
    for k in range(last_block_from(blocks, entries, BY_LENGTH, lowest), blocks[BY_LENGTH].in_use):
        block = block_at(blocks, BY_LENGTH, k)
        base = np.uint64(block * BLOCK)
        after_last = base + np.uint64(blocks[block].count)
        for i in range(first_from(entries, base, after_last, lowest), after_last):
            key = entries[i].key
            if shortest == NOTHING and key <= lowest + _LENGTH:
                shortest = key - lowest
            if key > greatest:
                narrow[BY_LENGTH * CLASSES + c] = shortest
                return
            if entries[i].span <= time:
                continue
            job, width = entries[i].job, entries[i].width
            entries[i].span = line[job].reserved
            if line[job].reserved <= time or width < narrowest or width > widest:
                continue
            if line[job].loose < FINDS_A_HOLE:
                line[job].loose |= FINDS_A_HOLE
                note(line, job)
                line[job].hole_time, line[job].last_begin = FOREVER, 0
            if time < line[job].hole_time:
                line[job].hole, line[job].hole_time = first, time
            line[job].last_begin = max(line[job].last_begin, end - (key - lowest))
    narrow[BY_LENGTH * CLASSES + c] = shortest


@jit_part
def first_from(entries, low, high, key):
    """Return the first entry of a block, from ``low`` up to ``high``, with that key or a later."""
    while low < high:
        middle = (low + high) >> ONE
        if entries[middle].key < key:
            low = middle + ONE
        else:
            high = middle
    return low
