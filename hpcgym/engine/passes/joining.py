"""Running jobs that end together, as Slurm has them when it asks when a job can start.

It lets them end in spans of time. The first reaches from the first end to 30 s after the
next multiple of 30 s, and those behind it twice as far each time, or by as many seconds further as
``sim.linear`` says. Who ends in a span ends with the last who does.
"""

from __future__ import annotations

from hpcgym.compilation import jit, jit_part

HALF_MINUTE = 30  # [s]


@jit_part
def raised(end):
    """Return the next multiple of 30 s after the first end: spans start there."""
    return end + HALF_MINUTE - end % HALF_MINUTE


@jit
def wider(sim, span, least):
    """Return how far the next span reaches, which is as far as ``least`` at least [s]."""
    if sim.linear > 0:
        return span - (span - least) // sim.linear * sim.linear
    while span < least:
        span *= 2
    return span


@jit_part
def rounded(sim, time):
    """Return when what happens then does so in plans."""
    return time - time % sim.resolution


@jit_part
def rounded_end(sim, begin, end):
    """Return when a reservation from ``begin`` to ``end`` is over in plans."""
    return max(rounded(sim, end), rounded(sim, begin) + sim.resolution)
