"""The loop of every simulation: from one scheduling pass to the next.

What a machine does differently it gives as two parts, which are compiled into its loop: how far it
goes to the next pass, and what a pass is.
"""

from __future__ import annotations

from typing import Any

from hpcgym.compilation import jit_entry, jit_part
from hpcgym.engine.events import next_pass
from hpcgym.engine.state import AN_ORDER


def loop_of(advance: Any, do_pass: Any) -> Any:
    """Return the compiled loop of a machine.

    Parameters
    ----------
    advance : goes to the next pass at ``stop_time`` or before; returns whether there is one.
    do_pass : starts what may start. Where ``sim.asked`` is AN_ORDER it stops in the middle, and
        is called again for the rest.
    """

    @jit_entry
    def run(
        jobs, keys, scores, users,
        sim, progress, history, blocks, entries, profile, line, narrow, freed, idle,
        ended, machine, stop_time, max_passes,
    ):  # fmt: skip
        """Simulate to ``stop_time``, the end or ``max_passes`` passes; return the passes done.

        It also stops where ``sim.asked`` is set: for a prediction, or within a pass for an order
        of the queue or a job that is to start. Called again, it goes on.
        """
        passes = 0
        while passes < max_passes and (
            sim.asked == AN_ORDER
            or advance(
                sim, jobs, progress, users, history, blocks, entries, freed, idle, ended, machine,
                stop_time,
            )
        ):  # fmt: skip
            do_pass(
                jobs, keys, scores, users,
                sim, progress, history, blocks, entries, profile, line, narrow, freed, idle,
                ended, machine,
            )  # fmt: skip
            if sim.asked == AN_ORDER:
                break
            passes += 1
        return passes

    return run


@jit_part
def next_event_pass(
    sim, jobs, progress, users, history, blocks, entries, freed, idle, ended, machine, stop_time
):
    """Advance to the next pass that follows an event, as most machines do."""
    return next_pass(
        sim, jobs, progress, users, history, blocks, entries, freed, idle, ended, stop_time
    )
