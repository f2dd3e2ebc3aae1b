"""Passes under quotas and around windows, of jobs that may follow others.

They are those of :mod:`hpcgym.engine.passes.planning`, with what a machine gives to them; here is
added who may start, that plans are made around windows, and when jobs come that follow others. A
pass follows the end of each window at which jobs wait.

Where an agent says what is served, a pass asks as long as a queued job that may start finds room
beside those that run: for an order of the queue once, or for one job after the other.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from hpcgym.compilation import jit_part
from hpcgym.engine.answers.told import Told, usage_by_clock
from hpcgym.engine.events import enqueue
from hpcgym.engine.loop import loop_of
from hpcgym.engine.passes.asking import asking_of, stops_nobody
from hpcgym.engine.passes.dependencies import Dependencies, line_up_due, may_come, next_coming
from hpcgym.engine.passes.looks import go_to, next_planned_pass
from hpcgym.engine.passes.planning import Parts, inside, planning_of
from hpcgym.engine.passes.quotas import Quotas, exceeds, note, settle
from hpcgym.engine.passes.windows import Windows, are_left, forget_over, next_over
from hpcgym.engine.state import (
    A_RENEWAL,
    AN_EVENT,
    AN_ORDER,
    EACH_JOB,
    FOREVER,
    NEVER,
    NOBODY,
    QUEUE,
)


class Restricted(NamedTuple):
    """A machine, and what restricts who may start when."""

    machine: Any  # as its own kind takes it
    quotas: Quotas
    windows: Windows
    dependencies: Dependencies
    places: Quotas  # of jobs that are queued or run, which keep others outside the queue


class Restricting(NamedTuple):
    """What a machine does besides where it is restricted.

    Attributes
    ----------
    welcome : what it does when a job comes that follows another.
    close : takes from the plan what a window takes, from a time to its end.
    fits_around : as ``fits_now`` of its parts, beside the windows, too, while a job runs.
    """

    welcome: Any
    close: Any
    fits_around: Any


@jit_part
def advance(
    sim, jobs, progress, users, history, blocks, entries, freed, idle, ended, machine, stop_time
):
    """Advance to an event, or to when reservations are made, a window ends or a job comes."""
    return next_restricted_pass(
        sim, jobs, progress, users, history, blocks, entries, freed, idle, ended, machine,
        np.int64(FOREVER), stop_time,
    )  # fmt: skip


@jit_part
def next_restricted_pass(
    sim, jobs, progress, users, history, blocks, entries, freed, idle, ended, machine, other,
    stop_time,
):  # fmt: skip
    """Do so, or to an ``other`` time at which a pass is due."""
    own = machine.dependencies.scalars[0]
    due = other
    if blocks[QUEUE].count > 0:
        due = min(due, next_over(machine.windows))
    time = min(due, next_coming(machine.dependencies))
    goes_on = sim.asked == A_RENEWAL  # all but the pass has been done
    if not goes_on:
        own.alone = 0
    is_pass = next_planned_pass(
        sim, jobs, progress, users, history, blocks, entries, freed, idle, ended, machine,
        min(stop_time, time),
    )  # fmt: skip
    if goes_on:
        return True
    if is_pass or sim.asked == A_RENEWAL:
        if sim.time == time:
            sim.woken = AN_EVENT
        return is_pass and not asks_for_coming(sim, machine.dependencies)
    if sim.asked != 0 or time > stop_time or time == FOREVER:
        return False
    own.alone = np.int64(time < due)
    return go_to(sim, blocks, time) and not asks_for_coming(sim, machine.dependencies)


@jit_part
def asks_for_coming(sim, dependencies):
    """Ask for scores before the pass if jobs may come in it; return whether it does."""
    if sim.renews != NEVER and may_come(dependencies, sim):
        sim.asked = A_RENEWAL
    return sim.asked == A_RENEWAL


@jit_part
def coming_now(sim, ended, machine):
    """Return how many jobs may come now, and the list of them; others wait outside the queue."""
    own = machine.dependencies
    if len(own.outside) > 0:
        line_up_due(own, sim, ended)
    return own.scalars[0].outside, own.outside


RESTRICTED = Told(usage_by_clock, coming=coming_now)


@jit_part
def barred(machine, job):
    """Return whether a job would exceed a quota now."""
    return exceeds(machine.quotas, job)


def restricted_parts(parts: Parts, restricting: Restricting) -> Parts:
    """Return the parts of a machine with what restricts it, of :class:`Restricted`."""
    before_of, plan_running = parts.before, parts.plan_running
    fits_now, begin = parts.fits_now, parts.begin
    close, fits_around = restricting.close, restricting.fits_around

    @jit_part
    def before(sim, profile, ended, machine):
        """Let what has ended count no longer, and forget the windows that are over."""
        settle(machine.quotas, sim, ended)
        forget_over(machine.windows, sim.time)
        before_of(sim, profile, ended, machine.machine)

    @jit_part
    def plan_all(sim, blocks, entries, profile, machine):
        """Make the plan of the running jobs and the windows."""
        plan_running(sim, blocks, entries, profile, machine.machine)
        windows = machine.windows
        for w in range(windows.scalars[0].over, len(windows.end)):
            begins = max(windows.begin[w], sim.time)
            close(sim, profile, machine.machine, windows.taken[w], begins, windows.end[w])

    @jit_part
    def fits(sim, jobs, progress, profile, line, machine, job):
        """Give a job room beside the running jobs, and the windows while it runs, if there is."""
        if are_left(machine.windows):
            return fits_around(sim, jobs, progress, profile, line, machine.machine, job)
        return fits_now(sim, jobs, progress, profile, line, machine.machine, job)

    @jit_part
    def begin_counted(sim, jobs, progress, blocks, entries, machine, job):
        """Let a job begin, and count."""
        begin(sim, jobs, progress, blocks, entries, machine.machine, job)
        note(machine.quotas, job, np.int64(-1))

    return inside(parts)._replace(
        before=before, plan_running=plan_all, fits_now=fits, begin=begin_counted
    )  # fmt: skip


def coming_of(welcome: Any) -> Any:
    """Return what lets jobs come whose submissions the schedule says, to a machine.

    ``welcome``: as in :class:`Restricting`.
    """

    @jit_part
    def come(sim, jobs, keys, scores, progress, blocks, entries, narrow, ended, machine):
        """Put the jobs into the queue that come now: those that are due, and not one too many.

        Return whether a pass is due now: if nothing else happens, only if some have come.
        """
        own, places = machine.dependencies, machine.places
        if len(own.outside) == 0:  # jobs come when the log says
            return True
        line_up_due(own, sim, ended)
        last = own.scalars[0].outside
        # who has waited outside goes on waiting unless a job has ended
        first = last - own.scalars[0].lined_up if places.scalars[0].settled == sim.ended else 0
        own.scalars[0].lined_up = 0
        settle(places, sim, ended)
        left = first
        for i in range(first, last):
            job = own.outside[i]
            if exceeds(places, job):
                own.outside[left] = job
                left += 1
                continue
            note(places, job, np.int64(-1))
            jobs[job].submit = sim.time
            own.came[job] = own.scalars[0].came
            own.scalars[0].came += 1
            for k in range(2):
                if own.by_arrival[k] == 1:
                    keys[k * len(jobs) + job] = sim.time
            welcome(machine.machine, job)
            enqueue(sim, jobs, progress, keys, scores, blocks, entries, narrow, job)
        own.scalars[0].outside = left
        return own.scalars[0].alone == 0 or left < last

    return come


def loop_restricted(parts: Parts, restricting: Restricting) -> Any:
    """Return the loop of a machine under quotas and around windows."""
    own, come = restricted_parts(parts, restricting), coming_of(restricting.welcome)
    before, plan_all = own.before, own.plan_running
    is_to_ask = asking_of(barred, own.has_room, stops_nobody)
    plan_and_start = planning_of(own, barred)

    @jit_part
    def do_pass(
        jobs, keys, scores, users,
        sim, progress, history, blocks, entries, profile, line, narrow, freed, idle,
        ended, machine,
    ):  # fmt: skip
        """Start what may start, once what has ended counts no longer."""
        if sim.asked == AN_ORDER:
            sim.asked = 0  # it goes on, with the answer
        else:
            before(sim, profile, ended, machine)
            if not come(
                sim, jobs, keys, scores, progress, blocks, entries, narrow, ended, machine
            ):  # fmt: skip
                return
            if sim.asks != NOBODY:
                arrived, sim.arrived = sim.arrived, 0
                for job in range(sim.next - arrived, sim.next):
                    enqueue(sim, jobs, progress, keys, scores, blocks, entries, narrow, job)
                asks = is_to_ask(sim, jobs, blocks, entries, machine)
                sim.changed = 1  # nothing has been planned
                if asks:
                    sim.asked = AN_ORDER
                if asks or sim.every == 0:
                    return
        # jobs that start in order, and not by a plan, need one of the windows all the same
        if are_left(machine.windows) and (sim.every > 0 or sim.depth == 0):
            plan_all(sim, blocks, entries, profile, machine)
        plan_and_start(
            jobs, keys, scores, sim, progress, blocks, entries, profile, line, narrow, idle, machine
        )  # fmt: skip
        if sim.asks == EACH_JOB:
            starts = progress[sim.selected].start >= 0
            sim.selected = -1
            if starts and is_to_ask(sim, jobs, blocks, entries, machine):
                sim.asked = AN_ORDER

    return loop_of(advance, do_pass)
