"""Which reservations may be earlier once processors are given back, so that only these are tried.

Each reservation was at the earliest time when it was made or last tried. Since then a job can only
have won where processors were given back, from one step of the profile to another, and in one of
two ways:

- It *slides*: the second before it begins lies there, and now has room for it.
- It finds a *hole*: a stretch of time before that has room for it, and had not before.

What is noted is never too little. It may be too much: another job may be first in a hole.
"""

from __future__ import annotations

from hpcgym.compilation import jit, jit_part
from hpcgym.engine.machines.pool.profile import NO_STEP
from hpcgym.engine.ordered import BLOCK, NOTHING, block_at, find, insert, last_block_from, remove
from hpcgym.engine.orders.narrow import CLASSES
from hpcgym.engine.state import BY_LENGTH, FOREVER

SLIDES, FINDS_A_HOLE = 1, 2  # loose

# BY_LENGTH has the queued jobs by class of their width and then by predicted run time, and `narrow`
# at BY_LENGTH's first block a time that no job of a class is predicted to run less than.
_CLASS = 54  # bits of a key below the class


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
    insert(blocks, entries, BY_LENGTH, key_of(jobs, progress, job), job, length, width)
    least = BY_LENGTH * CLASSES + width_class(width)
    narrow[least] = min(narrow[least], length)


@jit
def strike_job(jobs, progress, blocks, entries, job):
    """Take a job that starts off the list."""
    key = key_of(jobs, progress, job)
    position, block, i = find(blocks, entries, BY_LENGTH, key, job)
    remove(blocks, entries, BY_LENGTH, position, block, i)


@jit
def note_given_back(sim, jobs, blocks, entries, profile, line, narrow, begin, end, width):
    """Note who may begin earlier, after ``width`` processors were given back from step to step."""
    least, most = FOREVER, 0
    step = begin
    while step != end:
        free = profile[step].free
        least, most = min(least, free), max(most, free)
        step = profile[step].next
        job = profile[step].job
        while job >= 0:
            if jobs[job].processors <= free:
                line[job].loose |= SLIDES
            job = line[job].next
    # what is no wider was free before throughout
    least = max(least - width + 1, 1)
    if most < least:
        return
    last = width_class(most)
    for c in range(width_class(least), last + 1):
        narrowest = max(1 << c, least)
        widest = most if c == last else (2 << c) - 1
        first, length = find_hole(sim, profile, begin, end, narrowest, widest, width)
        if narrow[BY_LENGTH * CLASSES + c] <= length:
            offer_hole(
                blocks, entries, profile, line, narrow, c, narrowest, widest, first, length
            )  # fmt: skip


@jit
def find_hole(sim, profile, begin, end, narrowest, widest, width):
    """Return where stretches begin that have become free, and how long the longest is [s].

    ``narrowest``, ``widest``: of the jobs for which they are looked for. The stretches are free for
    the narrowest, meet the steps from ``begin`` to ``end``, and have a step that was not free for
    the widest before. Where there is none, NO_STEP and 0.
    """
    first, longest = NO_STEP, 0
    step = begin
    while step != end:
        if profile[step].free < narrowest:
            step = profile[step].next
            continue
        start, is_new = step, False
        if step == begin:
            start = stretch_before(sim, profile, step, narrowest)
        while step != end and profile[step].free >= narrowest:
            is_new |= profile[step].free - width < widest
            step = profile[step].next
        if is_new:
            if first == NO_STEP:
                first = start
            until = stretch_end(profile, step, narrowest)
            longest = max(longest, until - profile[start].time)
    return first, longest


@jit_part
def stretch_before(sim, profile, step, width):
    """Return the first step from which on, up to ``step``, so many processors are free."""
    while step != sim.profile_first and profile[profile[step].before].free >= width:
        step = profile[step].before
    return step


@jit_part
def stretch_end(profile, step, width):
    """Return when so many processors, free up to ``step``, are no longer."""
    while step != NO_STEP and profile[step].free >= width:
        step = profile[step].next
    return FOREVER if step == NO_STEP else profile[step].time


@jit
def offer_hole(blocks, entries, profile, line, narrow, c, narrowest, widest, first, length):
    """Note the jobs of a class of widths that a hole of that length is long enough for."""
    least, lowest, time = BY_LENGTH * CLASSES + c, c << _CLASS, profile[first].time
    narrow[least] = NOTHING
    for k in range(last_block_from(blocks, entries, BY_LENGTH, lowest), blocks[BY_LENGTH].in_use):
        block = block_at(blocks, BY_LENGTH, k)
        for i in range(block * BLOCK, block * BLOCK + blocks[block].count):
            if entries[i].key < lowest:
                continue
            if entries[i].key >= lowest + (1 << _CLASS):
                return
            narrow[least] = min(narrow[least], entries[i].span)
            if entries[i].span > length:
                return
            job, width = entries[i].job, entries[i].width
            if line[job].reserved <= time or width < narrowest or width > widest:
                continue
            if line[job].loose < FINDS_A_HOLE or line[job].hole_time > time:
                line[job].loose |= FINDS_A_HOLE
                line[job].hole, line[job].hole_time = first, time
