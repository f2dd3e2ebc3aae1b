"""The bounded slowdown of a job, compiled, for rewards and batches."""

from __future__ import annotations

import numpy as np

from hpcgym.compilation import jit_part


@jit_part
def bounded_slowdown(response, run, tau):
    """Return max(response / max(run, tau), 1), float64; Legrand et al. 2018, equation 1.

    As :func:`hpcgym.schedule.bounded_slowdown.bsld` has it for arrays.

    Parameters
    ----------
    response : [s] from submission to end.
    run : [s] run time, at the highest frequency.
    tau : [s] float64; shorter run times count as this.
    """
    return max(response / max(np.float64(run), tau), 1.0)
