"""Reservations for all queued jobs: earlier as jobs end early, made anew as predictions expire.

A machine gives what it does differently, which is compiled in: how a job gets a place in its plan,
and what happens to that when it starts. When a job is to start stands in ``line[job].reserved``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hpcgym.compilation import jit, jit_part
from hpcgym.engine.events import leave_queue, start
from hpcgym.engine.passes.lining_up import line_up
from hpcgym.engine.state import BACKFILLED, FOREVER


def starting_of(begin: Any) -> Any:
    """Return what starts a job whose reservation is now; ``begin``: as of :func:`compress_of`."""

    @jit_part
    def start_reserved(
        sim, jobs, keys, progress, blocks, entries, idle, machine, job, backfilled
    ):  # fmt: skip
        """Start a job; ``backfilled``: whether one that comes earlier in order waits."""
        if backfilled:
            progress[job].marks += BACKFILLED
        begin(sim, jobs, progress, blocks, entries, machine, job)
        leave_queue(sim, jobs, progress, keys, blocks, entries, job)
        start(sim, jobs, progress, blocks, entries, idle, job)

    return start_reserved


def compress_of(advance: Any, begin: Any) -> Any:
    """Return what compresses the reservations of a machine.

    Parameters
    ----------
    advance : makes the reservation of a job anew if it can be earlier, or if its time was missed;
        ``sim.may_advance`` is 1 once one has moved.
    begin : turns the reservation of a job that starts now into its predicted run.
    """
    start_reserved = starting_of(begin)

    @jit_part
    def compress(
        sim, jobs, keys, scores, progress, blocks, entries, profile, line, narrow, idle, machine
    ):  # fmt: skip
        """Make reservations earlier where that is possible, and start the jobs that are due."""
        loose = sim.may_advance == 1
        if not loose and sim.first_reserved > sim.time:
            return
        sim.may_advance = 0
        sim.first_reserved = FOREVER
        waiting = False
        for i in range(line_up(sim, jobs, scores, blocks, entries, line, np.int64(FOREVER))):
            job = line[i].job
            if loose and line[job].reserved != sim.time:
                advance(
                    sim, jobs, progress, blocks, entries, profile, line, narrow, machine, job
                )  # fmt: skip
            if line[job].reserved > sim.time:
                sim.first_reserved = min(sim.first_reserved, line[job].reserved)
                waiting = True
                continue
            start_reserved(
                sim, jobs, keys, progress, blocks, entries, idle, machine, job, waiting
            )  # fmt: skip

    return compress


def replan_of(plan_running: Any, reserve: Any) -> Any:
    """Return what makes all reservations of a machine anew.

    Parameters
    ----------
    plan_running : makes the plan of the running jobs alone, by their predicted ends.
    reserve : gives a job a reservation at the earliest time that the plan allows.
    """

    @jit
    def replan(sim, jobs, scores, progress, blocks, entries, profile, line, machine):
        """Make all reservations anew, in primary order, beside the running jobs' predicted ends."""
        sim.expired = 0
        sim.may_advance = 0
        sim.first_reserved = FOREVER
        plan_running(sim, blocks, entries, profile, machine)
        for i in range(line_up(sim, jobs, scores, blocks, entries, line, np.int64(FOREVER))):
            reserve(sim, jobs, progress, profile, line, machine, line[i].job)

    return replan
