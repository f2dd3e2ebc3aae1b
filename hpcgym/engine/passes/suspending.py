"""Jobs that are suspended where others start, and later go on with what is left of their runs.

What a suspended job gives up is taken all the same, but not for jobs that may stop it. So before a
job is looked at, what those have that it may not stop is hidden from it, and afterwards shown
again; less than nothing may be free then, for others run there. Each level begins with its
suspended jobs, before the queued ones: one goes on if it fits beside all that run, and the
suspended jobs that may stop it. A job is as if it had started later, by the time for which it has
been suspended: its ``start`` is moved, so that ends and corrections of predictions are as ever.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hpcgym.compilation import jit, jit_part
from hpcgym.engine.ordered import BLOCK, block_at, insert
from hpcgym.engine.passes.lining_up import sort_line
from hpcgym.engine.state import RUNNING
from hpcgym.schedule.records import records

SUSPENDED = records(
    ("job", np.int64),
    ("width", np.int64),  # processors
    ("ran", np.int64),  # [s] all its pieces together
    ("left", np.int64),  # [s] of its run
    ("predicted", np.int64),  # [s] what is left of its predicted run
    ("end", np.int64),  # [s] when it is expected to end
)


def suspending_of(lend: Any, hide: Any, goes_on: Any, meets: Any, plan_end: Any) -> Any:
    """Return what a machine does for suspended jobs: the parts of a loop in which jobs stop others.

    Parameters
    ----------
    lend : gives back what a job gives up when it is suspended, or takes it again where its last
        argument is -1; for ``sim.free`` too.
    hide : the same for those who look at what is free alone, -1 to hide it.
    goes_on : returns whether a suspended job can go on where it ran.
    meets : returns whether two jobs can be in each other's way.
    plan_end : lets the plan give back what a suspended job has at its expected end.
    """

    @jit
    def hide_from(sim, jobs, machine, job, sign):
        """Hide from a job, or show again, what suspended jobs have that it may not stop."""
        for k in range(machine.scalars[0].count):
            other = machine.suspended[k].job
            if not machine.may[machine.group[job], machine.group[other]]:
                hide(sim, jobs, machine.machine.machine, other, sign)

    @jit
    def hide_all(sim, jobs, machine, sign):
        """Hide from everybody, or show again, what suspended jobs have."""
        for k in range(machine.scalars[0].count):
            hide(sim, jobs, machine.machine.machine, machine.suspended[k].job, sign)

    @jit
    def hide_stoppers(sim, jobs, machine, job, sign):
        """Hide from a suspended job, or show again, what those have that may stop it."""
        for k in range(machine.scalars[0].count):
            other = machine.suspended[k].job
            if machine.may[machine.group[other], machine.group[job]]:
                hide(sim, jobs, machine.machine.machine, other, sign)

    @jit
    def go_on(sim, jobs, progress, blocks, entries, machine, level):
        """Let those of the suspended jobs of a level go on that can, who has run longest first."""
        order, count = machine.victims, 0
        for k in range(machine.scalars[0].count):
            job = machine.suspended[k].job
            if machine.level[machine.group[job]] == level:
                order[count].job, order[count].score = job, np.float64(machine.suspended[k].ran)
                count += 1
        sort_line(order, np.int64(0), count)
        for i in range(count):
            job = order[i].job
            hide_stoppers(sim, jobs, machine, job, np.int64(-1))
            fits = goes_on(sim, jobs, machine.machine.machine, job)
            hide_stoppers(sim, jobs, machine, job, np.int64(1))
            if not fits:
                continue
            k = place_of(machine, job)
            own = machine.suspended[k]
            lend(sim, jobs, machine.machine.machine, job, np.int64(-1))
            progress[job].start = sim.time - own.ran
            end = sim.time + own.left
            insert(blocks, entries, RUNNING, sim.time + own.predicted, job, end, own.width)
            machine.scalars[0].count -= 1
            put(machine, machine.scalars[0].count, k)

    @jit_part
    def in_the_way(machine, one, other):
        """Return whether a job can keep another, which is suspended, from going on."""
        group = machine.group[one]
        stops = group >= 0 and machine.may[group, machine.group[other]]
        return stops and meets(machine.machine.machine, one, other)

    @jit
    def expect_end(sim, blocks, entries, machine, k):
        """Note when a suspended job is expected to end: when none is in its way, and it has run."""
        own = machine.suspended[k]
        job, end = own.job, sim.time
        for position in range(blocks[RUNNING].in_use):
            block = block_at(blocks, RUNNING, position)
            for i in range(block * BLOCK, block * BLOCK + blocks[block].count):
                if entries[i].key > end and in_the_way(machine, entries[i].job, job):
                    end = entries[i].key
        for m in range(machine.scalars[0].count):
            other = machine.suspended[m].job
            if machine.suspended[m].end > end and in_the_way(machine, other, job):
                end = machine.suspended[m].end
        own.end = end + own.predicted

    @jit
    def plan_suspended(sim, blocks, entries, profile, machine):
        """Let the plan give back what suspended jobs have, when they are expected to end."""
        if machine.scalars[0].count == 0:
            return
        for level in range(machine.scalars[0].highest - 1, -1, -1):
            for k in range(machine.scalars[0].count):
                job = machine.suspended[k].job
                if machine.level[machine.group[job]] == level:
                    expect_end(sim, blocks, entries, machine, k)
                    own = machine.suspended[k]
                    plan_end(sim, profile, machine.machine.machine, job, own.width, own.end)

    return hide_from, hide_all, go_on, plan_suspended


@jit_part
def note_suspended(sim, progress, entries, machine, i):
    """Note what is left of the running job at an entry, which is suspended now."""
    job = entries[i].job
    own = machine.suspended[machine.scalars[0].count]
    machine.scalars[0].count += 1
    own.job = job
    own.width = entries[i].width
    own.ran = sim.time - progress[job].start
    own.left = entries[i].span - sim.time
    own.predicted = entries[i].key - sim.time


@jit_part
def place_of(machine, job):
    """Return where a suspended job is in the list of them."""
    k = 0
    while machine.suspended[k].job != job:
        k += 1
    return k


@jit_part
def put(machine, source, target):
    """Copy an entry of the list of suspended jobs over another."""
    one, other = machine.suspended[source], machine.suspended[target]
    other.job, other.width, other.ran = one.job, one.width, one.ran
    other.left, other.predicted, other.end = one.left, one.predicted, one.end
