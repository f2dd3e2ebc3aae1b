"""When a pass asks an agent: mostly as long as a queued job may start, as far as is known."""

from __future__ import annotations

from typing import Any

import numpy as np

from hpcgym.compilation import jit, jit_part
from hpcgym.engine.ordered import BLOCK, block_at
from hpcgym.engine.state import AN_EVENT, QUEUE, RUNNING


def asking_of(barred: Any, has_room: Any, may_stop: Any) -> Any:
    """Return what says whether a pass is to ask.

    Parameters
    ----------
    barred : returns whether a job may not start now, whatever is free.
    has_room : returns whether a job finds room beside those that run, whatever is closed.
    may_stop : returns whether a job may stop another that runs, be that enough or not.
    """

    @jit
    def is_to_ask(sim, jobs, blocks, entries, machine):
        """Return whether a queued job may start now: in free room, or in that of others.

        Where there are looks, an order holds from event to event, and each event asks at which jobs
        wait: reservations are in that order, too, and on nodes they say when the next look comes.
        """
        if sim.every > 0:
            return sim.woken == AN_EVENT and blocks[QUEUE].count > 0
        for k in range(blocks[QUEUE].in_use):
            block = block_at(blocks, QUEUE, k)
            for i in range(block * BLOCK, block * BLOCK + blocks[block].count):
                job = entries[i].job
                if barred(machine, job):
                    continue
                if has_room(sim, jobs, machine, job) or may_stop(machine, job):
                    return True
        return False

    return is_to_ask


def asking_where_some_stop(barred: Any, has_room: Any, hide_all: Any) -> Any:
    """Return the same where some jobs may stop others.

    Parameters
    ----------
    barred, has_room : as of :func:`asking_of`.
    hide_all : hides from everybody, or shows again, what suspended jobs have.
    """
    is_to_ask = asking_of(barred, has_room, may_stop_some)

    @jit
    def asks_now(sim, jobs, progress, blocks, entries, machine):
        """Return whether a queued job may start now, or may stop one that runs."""
        note_stoppers(sim, progress, blocks, entries, machine)
        hide_all(sim, jobs, machine, np.int64(-1))
        asks = is_to_ask(sim, jobs, blocks, entries, machine)
        hide_all(sim, jobs, machine, np.int64(1))
        return asks

    return asks_now


@jit_part
def stops_nobody(machine, job):
    """Return that a job stops no other."""
    return False


@jit
def note_stoppers(sim, progress, blocks, entries, machine):
    """Note in ``machine.noted`` which groups may stop a job that runs, or is suspended, now."""
    for group in range(len(machine.noted)):
        machine.noted[group] = False
    for k in range(blocks[RUNNING].in_use):
        block = block_at(blocks, RUNNING, k)
        for i in range(block * BLOCK, block * BLOCK + blocks[block].count):
            job = entries[i].job
            group = machine.group[job]
            if group >= 0 and sim.time - progress[job].start >= machine.exempt[group]:
                note_stoppers_of(machine, group)
    for k in range(machine.scalars[0].count):
        note_stoppers_of(machine, machine.group[machine.suspended[k].job])


@jit_part
def note_stoppers_of(machine, group):
    """Note which groups may stop the jobs of a group."""
    for other in range(len(machine.noted)):
        if machine.may[other, group]:
            machine.noted[other] = True


@jit_part
def may_stop_some(machine, job):
    """Return whether a job is of a group that was noted so."""
    group = machine.group[job]
    return group >= 0 and machine.noted[group]
