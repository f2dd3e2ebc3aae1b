"""Windows: times at which processors, or nodes, are closed to jobs, known from the beginning.

A window stands in every plan from now, or from its beginning, to its end. So what runs never meets
it, for no job runs longer than predicted; and nothing has to happen when it begins.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcgym.compilation import jit_part
from hpcgym.engine.state import FOREVER
from hpcgym.schedule.records import whole_numbers

SCALARS = whole_numbers("over")  # how many windows are


class Windows(NamedTuple):
    """Windows by their ends, (W,)."""

    begin: NDArray[np.int64]  # [s]
    end: NDArray[np.int64]  # [s]
    # how many processors of a pool are closed; on nodes, who holds the nodes then: a negative
    # number, for they stand at the end of what is asked and held, behind all jobs
    taken: NDArray[np.int64]
    scalars: NDArray[np.void]  # (1,) SCALARS


@jit_part
def forget_over(windows, time):
    """Forget the windows that are over."""
    own = windows.scalars[0]
    while own.over < len(windows.end) and windows.end[own.over] <= time:
        own.over += 1


@jit_part
def are_left(windows):
    """Return whether a window lasts, or is to come."""
    return windows.scalars[0].over < len(windows.end)


@jit_part
def next_over(windows):
    """Return when the next window ends, FOREVER if there is none."""
    return windows.end[windows.scalars[0].over] if are_left(windows) else np.int64(FOREVER)


@jit_part
def meets_window(windows, sim, progress, job):
    """Return whether a window would last while a job ran that started now."""
    end, first = sim.time + progress[job].predicted + sim.strict, np.int64(FOREVER)
    for w in range(windows.scalars[0].over, len(windows.end)):
        first = min(first, windows.begin[w])
    return first < end
