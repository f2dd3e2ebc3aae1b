"""How fast jobs that share nodes run, and when they end.

ELiSE: the rate of a job is the least of its speedups beside those that have a part of any of
its nodes. It changes when they come and go, and the end of the job with it; where jobs share a file
system, also with the congestion there. What a job has done of its work is worked out at these
changes only.
"""

from __future__ import annotations

import math

import numpy as np

from hpcgym.compilation import jit, jit_part
from hpcgym.engine.machines.corun.files.shared import (
    congestion_differs,
    in_congestion,
    keep_beside,
    rate_beside_others,
)
from hpcgym.engine.machines.corun.state import COMPACT, NOBODY_THERE, PART
from hpcgym.engine.passes.running import relist


@jit
def rate_of(machine, job):
    """Return the rate of a running job as its neighbours are now, and the code that limits it.

    If there was no congestion of files.
    """
    task = machine.tasks[job]
    if task.placement == COMPACT:
        return 1.0, -1
    if task.neighbours == 0:
        return machine.alone[task.code], -1
    least, limit = np.inf, -1
    for i in range(task.first, task.first + task.nodes):
        node = machine.cells[i]
        for k in range(machine.who.shape[1]):
            other = machine.who[node, k]
            if other == NOBODY_THERE:
                break
            if other != job:
                code = machine.tasks[other].code
                speedup = machine.speedup[task.code, code]
                if speedup < least:
                    least, limit = speedup, code
    return least, limit


@jit_part
def ticks_for(work, rate):
    """Return how many ticks work takes at a rate, at least 1."""
    return max(1, np.int64(math.ceil(work / rate)))


@jit_part
def lasting_rate(machine, job, rate):
    """Return the least rate to which a job comes down if it loses neighbours and gains none.

    As the scheduler believes it runs with nobody beside it. ``rate`` is without congestion of
    files, what is returned with that of now, which they do not make worse as they go.
    """
    task = machine.tasks[job]
    if task.placement != COMPACT:
        rate = min(rate, machine.believed_alone[task.code])
    return in_congestion(machine.io, task.code, rate)


@jit_part
def left_at(machine, job, time):
    """Return what is left of the work of a running job [ticks]."""
    task = machine.tasks[job]
    return task.left - task.rate * (time - task.since)


@jit
def set_rate(machine, jobs, progress, time, job, beside, limit):
    """Let a running job go on at another rate; its entry among the running jobs is not touched.

    ``beside``: the rate if there was no congestion of files.
    """
    task = machine.tasks[job]
    rate = in_congestion(machine.io, task.code, beside)
    before, least_before = task.predicted_end, task.least
    task.left = left_at(machine, job, time)
    task.since = time
    if machine.scalars[0].logs_spells == 1:
        note_spell(machine, time, job)
    task.rate = rate
    task.limit = limit
    keep_beside(machine.io, job, beside)
    task.least = lasting_rate(machine, job, beside)
    more = progress[job].predicted - jobs[job].run
    task.predicted_end = time + ticks_for(task.left + more, task.least)
    if task.least >= least_before:
        # no later than before: what is left of the work is rounded, and promises depend on it
        task.predicted_end = min(task.predicted_end, before)
    task.end = min(time + ticks_for(task.left, rate), task.predicted_end)


@jit
def note_spell(machine, time, job):
    """Keep how fast a job has run beside whom up to now."""
    task, number = machine.tasks[job], machine.scalars[0].n_spells
    if time > task.begun:
        spell = machine.spells[number]
        spell.job = job
        spell.beside = task.limit
        spell.begin = task.begun
        spell.end = time
        spell.rate = task.rate
        machine.scalars[0].n_spells = number + 1
    task.begun = time


@jit
def renew_rate(machine, sim_time, jobs, progress, blocks, entries, job):
    """Let the rate of a running job follow its neighbours and files, and its end the rate."""
    beside, limit = rate_of(machine, job)
    follow(machine, sim_time, jobs, progress, blocks, entries, job, beside, limit)


@jit_part
def follow(machine, sim_time, jobs, progress, blocks, entries, job, beside, limit):
    """Let a running job go on at the rate that it has now, ``beside`` if nobody read or wrote."""
    task = machine.tasks[job]
    same = beside == rate_beside_others(machine.io, job, task.rate)
    if same and in_congestion(machine.io, task.code, beside) == task.rate:
        if limit != task.limit:
            if machine.scalars[0].logs_spells == 1:
                note_spell(machine, sim_time, job)
            task.limit = limit
        return
    key = task.predicted_end
    set_rate(machine, jobs, progress, sim_time, job, beside, limit)
    relist(blocks, entries, key, job, task.predicted_end, task.end)


@jit_part
def renew_readers(machine, sim_time, jobs, progress, blocks, entries):
    """Let the rates of all that wait for files follow the congestion, if it is another."""
    if congestion_differs(machine.io):
        renew_each_reader(machine.io, machine, sim_time, jobs, progress, blocks, entries)


@jit
def renew_each_reader(io, machine, sim_time, jobs, progress, blocks, entries):
    """Do the same; ``io`` is that of the machine."""
    if io is None:
        return
    counts = io.counts[0]
    counts.told = counts.congestion
    for i in range(counts.running):
        job = io.running[i]
        beside, limit = io.beside[job], machine.tasks[job].limit
        follow(machine, sim_time, jobs, progress, blocks, entries, job, beside, limit)


@jit_part
def rate_beside(machine, job, code):
    """Return the rate that is believed of a running job with one of this code beside it too.

    If there was no congestion of files.
    """
    task = machine.tasks[job]
    speedup = machine.believed[task.code, code]
    if task.neighbours == 0:
        return speedup
    return min(rate_beside_others(machine.io, job, task.rate), speedup)


@jit
def is_delayed(machine, jobs, progress, time, shadow, job, code):
    """Return whether a running job is to end by the shadow time, but not beside this code."""
    task = machine.tasks[job]
    if task.predicted_end > shadow or task.placement != PART:
        return False
    rate = lasting_rate(machine, job, rate_beside(machine, job, code))
    more = progress[job].predicted - jobs[job].run
    return time + ticks_for(left_at(machine, job, time) + more, rate) > shadow
