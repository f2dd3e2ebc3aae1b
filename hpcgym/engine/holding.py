"""Jobs that are held back: long ones start only if some processors stay free behind them.

A machine that long jobs have filled has nothing for short ones for hours. So a job of q processors
that is probably long needs more of them to be free: min(P, q + round(share P z / (1 + wait /
erode))), on a machine of P, with z = ln(x / from) / ln(factor), from 0 to 1, of a run time x. That
is like the protection levels of revenue management (Littlewood 1972), which keep seats for those
who book late. How many processors a job holds back before it has waited stands in ``line``.
"""

from __future__ import annotations

import math

import numpy as np

from hpcgym.compilation import jit_entry, jit_part
from hpcgym.scheduler.hold import BY, BY_BOTH, BY_PREDICTED, FROM, LOG_FACTOR, MOST


@jit_part
def needed(sim, jobs, line, job):
    """Return how many processors must be free for a job to start now."""
    width = jobs[job].processors
    if sim.holds == 0:
        return width
    back = line[job].held
    if back == 0.0:
        return width
    if sim.erode > 0:
        back /= 1.0 + (sim.time - jobs[job].submit) / sim.erode
    return min(sim.capacity, width + np.int64(np.rint(back)))


@jit_part
def held_back(numbers, requested, predicted):
    """Return how many processors a job holds back before it has waited; its run times are in s."""
    x = np.float64(requested)
    if numbers[BY] == BY_PREDICTED:
        x = np.float64(predicted)
    elif numbers[BY] == BY_BOTH:
        x = math.sqrt(x * predicted)
    if x <= numbers[FROM]:
        return 0.0
    return numbers[MOST] * min(math.log(x / numbers[FROM]) / numbers[LOG_FACTOR], 1.0)


@jit_entry
def hold_back(jobs, predicted, numbers, line):
    """Note how many processors each job holds back, as long as it has not waited.

    Parameters
    ----------
    predicted : (n_jobs,) int64, the run times that policies look at [s].
    numbers : (4,) float64, those of the rule.
    """
    for job in range(len(jobs)):
        line[job].held = held_back(numbers, jobs[job].requested, predicted[job])
