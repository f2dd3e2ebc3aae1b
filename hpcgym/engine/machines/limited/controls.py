"""Limits that are set anew from outside as time goes on: a cap, nodes to be off, a ceiling.

The machine's last cap is then a *control*: from the time it is set on it holds as a cap of power
that has just been announced, without killing, and keeps the first nodes off; no job starts at a
level above the ceiling. Nodes are switched on after a cap or a control whatever its power, as far
as budgets suffice. And whatever it says, a machine on which nothing runs serves the first job, if
limits allow it: so none waits for ever.
"""

from __future__ import annotations

from hpcgym.compilation import jit
from hpcgym.engine.machines.limited.budgets import wake_free
from hpcgym.engine.machines.limited.nodes import cap_near
from hpcgym.engine.machines.limited.state import NEVER, PLENTY


@jit
def extend_control(machine, end):
    """Let the control hold up to another time [s].

    One that limits nothing has no end: plans do not look at the time.
    """
    control = machine.caps[len(machine.caps) - 1]
    control.end = NEVER if control.mw == PLENTY and control.off == 0 else end


@jit
def set_control(machine, start, end, mw, off, ceiling):
    """Set the control anew, from ``start`` up to ``end`` [s]: until then it is not changed again.

    ``off`` is how many of the first nodes are to be off, ``ceiling`` a level. Where nothing was
    limited, and nothing is, there is no pass for it: the schedule is as if nobody had said it.
    """
    scalars = machine.scalars[0]
    control = machine.caps[len(machine.caps) - 1]
    limits_nothing = control.mw == PLENTY and control.off == 0 and mw == PLENTY and off == 0
    if limits_nothing and ceiling == scalars.ceiling:
        return
    scalars.was_off = control.off
    scalars.ceiling = ceiling
    control.start = control.announced = start
    control.mw = mw
    control.off = off
    extend_control(machine, end)
    control.known = 0
    control.work_mw = control.outside = control.inside = 0


@jit
def switch_for_control(machine, blocks, entries, time):
    """Begin to switch on the nodes that a control which begins now does not have off any more."""
    if machine.scalars[0].controlled == 0:
        return
    last = len(machine.caps) - 1
    control = machine.caps[last]
    if control.start != time:
        return
    control.known = 0  # it says nothing of the nodes behind its own
    if not cap_near(machine, time):
        wake_free(machine, blocks, entries, time, control.off, machine.scalars[0].was_off)
    control.known = 1
    machine.scalars[0].was_off = control.off
