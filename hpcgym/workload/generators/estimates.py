"""How long users say their jobs will run: a model of over-estimated requested times.

D. Tsafrir, Y. Etsion and D. G. Feitelson, "Modeling user runtime estimates", 11th Workshop on Job
Scheduling Strategies for Parallel Processing, LNCS 3834, 1-35, 2005; constants as in the authors'
program. Users choose from few, round values, and the longest one allowed is the favourite:

- *How many* distinct values there are grows with the number of jobs.
- *Head*: the 20 most popular values serve 89 % of jobs: the longest allowed, 15 round values that
  all the logs had in common (5 minutes to 18 hours), and further round ones. Their shares fall
  exponentially with the rank of popularity. Which value has which rank is drawn among the ranks
  that values of that place had in four logs; the longest allowed always ranks first.
- *Tail*: the other values share 11 % by a power law, at times given by a hyperbola of their rank.
- *Assignment*: the jobs get these values at random such that none is shorter than its run time.

Where this module differs from the program: shares become numbers of jobs by largest remainders;
where the long jobs need more long requests than the model has, the shortest requests missing are
raised just enough (the program stops); and of all assignments that the model allows, one is taken
in which the jobs of one user that run about equally long have the same request, since users reuse
their values. That changes neither the distribution of requests nor how it depends on run times.

What the model does not have: the many real jobs that run exactly as long as requested. And how
accurate its requests are depends on the run times: the interactive jobs of Lublin's model are so
short that most requests are over a hundred times too long (with all jobs in one class, 20 times).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hpcgym.units import MINUTE_S

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]

MAX_REQUEST_S = 172_800  # two days: the first round time above the longest run of Lublin's model

HEAD = 20  # popular values
HEAD_SHARE = 0.89  # of the jobs

# Values among the 20 most popular in all of the four logs the model was made from, in minutes.
COMMON_MINUTES = (5, 10, 15, 20, 30, 60, 120, 180, 240, 300, 360, 480, 600, 720, 1080)
# Multiples of these fill up the head, from the longest allowed downwards.
ROUND_MINUTES = (12_000, 6000, 3000, 600, 300, 120, 60, 20, 10, 5)
# Popularity rank, in each of the logs (SDSC-SP2, CTC-SP2, KTH-SP2, SDSC-BLUE), of the longest value
# (first row) and of the other 19, from short to long.
RANKS_IN_LOGS = (
    (3, 1, 1, 1), (1, 3, 4, 6), (4, 4, 10, 5), (17, 2, 14, 3), (13, 12, 20, 7),
    (7, 9, 2, 2), (8, 8, 3, 18), (18, 18, 7, 19), (2, 6, 12, 4), (6, 7, 6, 11),
    (16, 11, 19, 20), (10, 20, 5, 9), (5, 16, 18, 10), (15, 5, 16, 14), (14, 14, 9, 13),
    (19, 13, 17, 16), (11, 10, 15, 15), (12, 15, 13, 17), (9, 17, 8, 8), (20, 19, 11, 12),
)  # fmt: skip
# Number of distinct values by number of jobs, linear in between.
JOBS_TO_VALUES = (
    (0, 20, 200, 1000, 10_000, 70_000, 250_000),
    (0, 10, 20, 35, 90, 340, 565),
)
# Seconds by which a value of the tail steps aside where another one is.
OFFSETS_S = (0, 30, -30, 20, -20, 10, -10)


def requested_times(
    run_time: IntArray, user_id: IntArray, seed: int | np.random.Generator = 0
) -> IntArray:
    """Return a requested time for each job, never shorter than its run time.

    Parameters
    ----------
    run_time : (n_jobs,) int64, seconds, at most ``MAX_REQUEST_S``.
    user_id : (n_jobs,) int64; jobs of one user that run about equally long get the same request
        where the model allows it.
    seed : a whole number or a generator.

    Returns
    -------
    (n_jobs,) int64, seconds.
    """
    rng = np.random.default_rng(seed)
    values, shares = request_distribution(len(run_time), MAX_REQUEST_S, rng)
    shortest = np.searchsorted(values, run_time).astype(np.int16)  # index of the first that fits
    bounded = np.bincount(shortest, minlength=len(values))
    supply = _enough(_whole_numbers(shares, len(run_time)), bounded)
    label = rng.permutation(int(np.max(user_id)) + 1)[user_id]
    order = np.lexsort((label.astype(np.min_scalar_type(label.max())), shortest))
    del label, shortest
    requests = np.empty(len(run_time), np.int64)
    end = len(run_time)
    # From the longest jobs to the shortest, each of the jobs that any value from the k-th on fits
    # takes one of those left over with equal chances: the numbers of each are hypergeometric.
    for k in range(len(values) - 1, -1, -1):
        start = end - int(bounded[k])
        if start < end:
            taken = rng.multivariate_hypergeometric(supply[k:], end - start)
            supply[k:] -= taken
            requests[order[start:end]] = np.repeat(values[k:], taken)
        end = start
    return requests


def request_distribution(
    jobs: int, max_request_s: int, seed: int | np.random.Generator = 0
) -> tuple[IntArray, FloatArray]:
    """Return the distinct requests of a workload and the share of jobs that makes each.

    Returns
    -------
    values : (n_values,) int64, seconds, ascending.
    shares : (n_values,) float64, of sum 1.
    """
    rng = np.random.default_rng(seed)
    number = round(float(np.interp(jobs, *JOBS_TO_VALUES)))
    head = _head_values(max_request_s)
    shares = _head_shares()[_popularity_ranks(rng) - 1]
    tail = _tail_values(max(number - HEAD, 0), number, max_request_s, set(head))
    rank = np.arange(HEAD + 1, HEAD + 1 + len(tail))
    tail_shares = 795.6 * rank**-2.267
    if len(tail):
        tail_shares *= (1 - HEAD_SHARE) / tail_shares.sum()
    values = np.array(head + tail, np.int64)
    shares = np.concatenate([shares, rng.permutation(tail_shares)])
    order = np.argsort(values)
    return values[order], shares[order] / shares.sum()


def _head_values(max_request_s: int) -> list[int]:
    """Return the 20 popular values in seconds: the longest allowed, then the others ascending."""
    others = [m * MINUTE_S for m in COMMON_MINUTES if m * MINUTE_S < max_request_s]
    for step in (m * MINUTE_S for m in ROUND_MINUTES):
        for value in range(max_request_s // step * step, 0, -step):
            if len(others) < HEAD - 1 and value != max_request_s and value not in others:
                others.append(value)
    return [max_request_s, *sorted(others)]


def _head_shares() -> FloatArray:
    """Return the shares of the popularity ranks 1 to 20; rank 1 has what the others leave."""
    others = 0.140491 * np.exp(-0.177531 * np.arange(2, HEAD + 1)) + 0.00462513
    return np.concatenate([[HEAD_SHARE - others.sum()], others])


def _popularity_ranks(rng: np.random.Generator) -> IntArray:
    """Return the popularity rank of each of the 20 head values: first the longest, then ascending.

    A rank is open to a value once one of the logs had it there, or at a shorter value; and it is
    due at the last value where a log had it. Otherwise the more popular of two drawn is taken.
    """
    last_place = {rank: place for place, row in enumerate(RANKS_IN_LOGS) for rank in row}
    ranks = [1]
    pool: list[int] = list(RANKS_IN_LOGS[0])
    for place in range(1, HEAD):
        pool = [r for r in (*pool, *RANKS_IN_LOGS[place]) if r not in ranks]
        due = [r for r in range(1, HEAD + 1) if last_place[r] <= place and r not in ranks]
        drawn = [pool[i] for i in rng.integers(len(pool), size=2)]
        ranks.append(min(due) if due else min(drawn))
    return np.array(ranks)


def _tail_values(number: int, all_values: int, max_request_s: int, taken: set[int]) -> list[int]:
    """Return at most ``number`` whole-minute values beside those taken, in seconds."""
    bend = 1 + 12.1039 * max(all_values, 1) ** -0.6026
    place = np.arange(1, number + 1) / max(number, 1)
    minutes = np.round((bend - 1) * place / (bend - place) * max_request_s / MINUTE_S)
    values: list[int] = []
    for second in (minutes.astype(np.int64) * MINUTE_S).tolist():
        for value in (second + offset for offset in OFFSETS_S):
            if 0 < value < max_request_s and value not in taken:
                values.append(value)
                taken.add(value)
                break
    return values


def _whole_numbers(shares: FloatArray, jobs: int) -> IntArray:
    """Return whole numbers of sum ``jobs`` in these proportions, by largest remainders."""
    exact = shares * jobs
    numbers = np.floor(exact).astype(np.int64)
    largest = np.argsort(numbers - exact, kind="stable")[: jobs - int(numbers.sum())]
    numbers[largest] += 1
    return numbers


def _enough(supply: IntArray, bounded: IntArray) -> IntArray:
    """Return the supply of each value, raised where the jobs that need it or longer are more."""
    at_least = np.maximum(np.cumsum(supply[::-1]), np.cumsum(bounded[::-1]))
    return np.diff(at_least, prepend=0)[::-1].copy()
