"""A model of users: who submitted which of the given jobs, so that users repeat themselves.

Real users submit runs of similar jobs, and predictors of running times live on that. Generators
that draw jobs independently lack it. This model adds it without changing a job, so that the
distributions of sizes, run times and arrivals stay exactly those of the generator: jobs that are
near in time and alike are given to the same user. Each :data:`WINDOW` consecutive submissions are
sorted by order of magnitude of the run time, size and run time; that order is cut into sessions of
geometrically distributed length; each session gets a user, drawn by Zipf's law; and a user's
sessions in a window lie side by side.

It is this project's own, not a published model. Its constants are chosen by four measures of two
logs (jobs with a run time and a size, in order of submission, each compared with the same user's
job before):

========================================  =======  ========  ===================
measure                                   KTH-SP2  SDSC-SP2  lublin(30000, 256)
========================================  =======  ========  ===================
same size                                 68 %     77 %      60 %
run times within a factor of two          61 %     69 %      56 %
same request (see ``estimates``)          64 %     79 %      85 %
correlation of ln(run time) with that of  0.72     0.77      0.75
the mean of the user's last two
share of jobs of the busiest 10 % of      54 %     59 %      55 %
users
========================================  =======  ========  ===================

What it does not model: that a user's next job often follows within minutes, or after the last one
has ended (arrivals are the generator's).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

IntArray = NDArray[np.int64]

WINDOW = 512  # consecutive submissions among which similar jobs are sought
SESSION_JOBS = 5.0  # mean length of a session, not counting cuts at the ends of windows
ZIPF_EXPONENT = 0.9  # activity of a user of rank r: r ** -0.9

_CHUNK = WINDOW * 512  # jobs at a time, to bound memory; the users do not depend on it


def default_users(jobs: int) -> int:
    """Return a plausible number of users, 4 jobs^0.4: 242 for KTH-SP2's 28,481 (there were 214)."""
    return max(1, min(jobs, round(4 * math.pow(jobs, 0.4))))


def assign_users(
    processors: IntArray, run_time: IntArray, users: int, seed: int | np.random.Generator = 0
) -> IntArray:
    """Return a user for each job, so that users repeat similar jobs.

    Parameters
    ----------
    processors, run_time : (n_jobs,) int64, of the jobs in order of submission; run times in
        seconds, at least 1.
    users : number of users to draw from, at least 1; in short workloads some get no job.
    seed : a whole number or a generator.

    Returns
    -------
    (n_jobs,) int64, users numbered from 1 for the busiest.
    """
    cuts, choice, shifts = np.random.default_rng(seed).spawn(3)
    activity = np.cumsum(np.arange(1, users + 1) ** -ZIPF_EXPONENT)
    place = choice.permutation(users)  # of a user in the order of a window, up to its shift
    user_id = np.empty(len(run_time), np.int64)
    for start in range(0, len(run_time), _CHUNK):
        run = run_time[start : start + _CHUNK]
        window = np.arange(len(run)) // WINDOW
        magnitude = np.searchsorted((100, 10_000), run, "right")
        order = np.lexsort((run, processors[start : start + _CHUNK], magnitude, window))
        begins = cuts.random(len(run)) < 1 / SESSION_JOBS
        begins[::WINDOW] = True
        drawn = np.searchsorted(activity, choice.random(begins.sum()) * activity[-1], "right")
        of_window = window[begins]
        shift = shifts.integers(users, size=int(window[-1]) + 1)
        drawn = drawn[np.lexsort(((place[drawn] + shift[of_window]) % users, of_window))]
        user_id[start : start + _CHUNK][order] = drawn[np.cumsum(begins) - 1] + 1
    return user_id
