"""Passes in which jobs that would exceed a quota are passed over, as if they did not wait.

They are those of :mod:`hpcgym.engine.passes.planning`, with what a machine gives to them; here is
added who may start, what counts from a start on, and what counts no longer once a job has ended.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcgym.compilation import jit_part
from hpcgym.engine.loop import loop_of
from hpcgym.engine.ordered import whole_numbers
from hpcgym.engine.passes.planning import next_planned_pass, planning_of

SCALARS = whole_numbers("settled")  # how many of the jobs that have ended count no longer


class Quotas(NamedTuple):
    """A machine, and what may run at once. K quotas, C counts: a quota has one or several."""

    machine: Any  # as its own kind takes it
    counts: NDArray[np.int64]  # (n_jobs, K) the counts that a job is in, -1: none of the quota
    processors: NDArray[np.int64]  # (n_jobs,)
    left: NDArray[np.int64]  # (C, 2) how many jobs, and processors, may still start
    scalars: NDArray[np.void]  # (1,) SCALARS


@jit_part
def barred(quotas, job):
    """Return whether a job would exceed a quota now."""
    for k in range(quotas.counts.shape[1]):
        count = quotas.counts[job, k]
        if count >= 0 and (
            quotas.left[count, 0] < 1 or quotas.left[count, 1] < quotas.processors[job]
        ):
            return True
    return False


@jit_part
def note(quotas, job, sign):
    """Note that a job runs now (sign -1), or no longer (1)."""
    for k in range(quotas.counts.shape[1]):
        count = quotas.counts[job, k]
        if count >= 0:
            quotas.left[count, 0] += sign
            quotas.left[count, 1] += sign * quotas.processors[job]


def loop_under_quotas(
    before: Any,
    plan_running: Any,
    reserve: Any,
    place_now: Any,
    fits_now: Any,
    free_until: Any,
    begin: Any,
) -> Any:
    """Return the loop of a machine under quotas.

    Parameters
    ----------
    before : what the machine does at the beginning of a pass.
    plan_running, reserve, place_now, fits_now, free_until, begin : as
        :func:`hpcgym.engine.passes.planning.planning_of` takes them.
    """

    @jit_part
    def plan_all(sim, blocks, entries, profile, quotas):
        """Make the plan of the running jobs."""
        plan_running(sim, blocks, entries, profile, quotas.machine)

    @jit_part
    def reserve_place(sim, jobs, progress, profile, line, quotas, job, last):
        """Give a job a place in the plan."""
        reserve(sim, jobs, progress, profile, line, quotas.machine, job, last)

    @jit_part
    def place(sim, jobs, progress, profile, line, quotas, job):
        """Give a job a place that begins now, if there is one."""
        return place_now(sim, jobs, progress, profile, line, quotas.machine, job)

    @jit_part
    def fits(sim, jobs, progress, profile, line, quotas, job):
        """Give a job room beside the running jobs, if there is any."""
        return fits_now(sim, jobs, progress, profile, line, quotas.machine, job)

    @jit_part
    def begin_counted(sim, progress, quotas, job):
        """Let a job begin, and count."""
        begin(sim, progress, quotas.machine, job)
        note(quotas, job, np.int64(-1))

    plan_and_start = planning_of(
        plan_all, reserve_place, place, fits, free_until, begin_counted, barred
    )

    @jit_part
    def do_pass(
        jobs, keys, scores, users,
        sim, progress, history, blocks, entries, profile, line, narrow, freed, idle,
        ended, machine,
    ):  # fmt: skip
        """Start what may start, once what has ended counts no longer."""
        while machine.scalars[0].settled < sim.ended:
            note(machine, ended[machine.scalars[0].settled], np.int64(1))
            machine.scalars[0].settled += 1
        before(sim, profile, ended, machine.machine)
        plan_and_start(
            jobs, keys, scores, sim, progress, blocks, entries, profile, line, narrow, idle, machine
        )  # fmt: skip

    return loop_of(next_planned_pass, do_pass)
