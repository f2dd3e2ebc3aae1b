"""The distributions of the Lublin-Feitelson model: arrivals, sizes and run times of rigid jobs.

U. Lublin and D. G. Feitelson, "The workload on parallel supercomputers: modeling the
characteristics of rigid jobs", J. Parallel and Distributed Computing 63(11), 1105-1122, 2003. The
constants are those of the authors' program (``m_lublin99.c``), fitted to logs of 128-processor
machines. For each class of jobs:

- *Size*: serial with a fixed probability; otherwise 2 to a two-stage uniform exponent, rounded
  to a whole exponent for the share of power-of-two jobs.
- *Run time*: e to a hyper-gamma variate; the probability of its first (short) gamma falls linearly
  with the job's size, so large jobs run longer. Variates above 12 (45 hours) are drawn again.
- *Arrivals*: gaps of e to a gamma variate (above 13: drawn again), counted on a clock that runs
  faster in the busy half-hours of the day; the weights of the 48 half-hours are slices of another
  gamma distribution. Time 0 is midnight.

Departures from the program: jobs never exceed the machine (there, a power-of-two job may round up
past a machine whose size is no power of two); and submission times are rounded down one by one,
whereas the program rounds its running clock down at each job, and so lets the daily cycle drift by
half a second a job.

Everything is drawn job by job from streams of its own, so that neither the number of jobs nor the
size of the chunks in which they are drawn changes a job.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

LARGEST_LOG_RUN_TIME = 12.0  # exp(12) s = 45 h, "no more than two days"
LARGEST_LOG_GAP = 13.0  # exp(13) s = 5 days
SLOTS = 48  # half-hours of a day
SLOT_S = 1800
DAY_S = 86_400
FIRST_SLOT = 11  # the model's day starts at the 11th half-hour, 05:00; earlier slots end it

_CHUNK = 1 << 18  # jobs at a time, to bound memory; the jobs do not depend on it


@dataclass(frozen=True)
class JobClass:
    """The model's parameters for one class of jobs; the program's own names are in brackets.

    Attributes
    ----------
    serial : probability of one processor (SERIAL_PROB).
    power_of_two : probability of a parallel job of rounded exponent (POW2_PROB).
    low : smallest exponent of a parallel job (ULOW).
    high_below : log2 of the machine's size minus the largest exponent (7 - UHI).
    medium_below : largest exponent minus the one where the two uniforms meet (UHI - UMED).
    lower_stage : probability of the lower uniform (UPROB).
    short_shape, short_scale : first gamma of ln(run time in s) (A1, B1).
    long_shape, long_scale : second gamma (A2, B2).
    slope, intercept : probability of the first gamma, slope * size + intercept (PA, PB).
    gap_shape, gap_scale : gamma of ln(gap between arrivals in s) (AARR * ARAR, BARR).
    day_shape, day_scale : gamma of the arrivals over a day, in half-hours (ANUM, BNUM).
    """

    serial: float
    power_of_two: float
    low: float
    high_below: float
    medium_below: float
    lower_stage: float
    short_shape: float
    short_scale: float
    long_shape: float
    long_scale: float
    slope: float
    intercept: float
    gap_shape: float
    gap_scale: float
    day_shape: float
    day_scale: float


INTERACTIVE = JobClass(
    serial=0.1541, power_of_two=0.625,
    low=1.0, high_below=1.5, medium_below=2.5, lower_stage=0.705,
    short_shape=3.8351, short_scale=0.6605, long_shape=7.073, long_scale=0.6856,
    slope=-0.0118, intercept=0.9156,
    gap_shape=6.5510 * 0.9797, gap_scale=0.6621, day_shape=8.9186, day_scale=3.6680,
)  # fmt: skip
BATCH = JobClass(
    serial=0.2927, power_of_two=0.6686,
    low=1.2, high_below=0.0, medium_below=2.0, lower_stage=0.875,
    short_shape=6.57, short_scale=0.823, long_shape=639.1, long_scale=0.0156,
    slope=-0.003, intercept=0.6986,
    gap_shape=6.0415 * 1.0519, gap_scale=0.8531, day_shape=6.1271, day_scale=5.2740,
)  # fmt: skip
WHOLE_SAMPLE = JobClass(
    serial=0.244, power_of_two=0.576,
    low=0.8, high_below=0.0, medium_below=2.5, lower_stage=0.86,
    short_shape=4.2, short_scale=0.94, long_shape=312.0, long_scale=0.03,
    slope=-0.0054, intercept=0.78,
    gap_shape=10.2303 * 1.0225, gap_scale=0.4871, day_shape=8.1737, day_scale=3.9631,
)  # fmt: skip

#: ``classes`` -> the job classes, in the order of their queue numbers.
CLASSES = {1: (WHOLE_SAMPLE,), 2: (INTERACTIVE, BATCH)}


# ---------------------------------------------------------------------------------- arrivals


def _gamma_cdf(x: FloatArray, shape: float, scale: float) -> FloatArray:
    """Return the distribution function of gamma(shape, scale) at x > 0, by its power series."""
    z = np.asarray(x, np.float64) / scale
    term = np.exp(shape * np.log(z) - z - math.lgamma(shape + 1))
    total = term.copy()
    for k in range(1, 400):
        term = term * z / (shape + k)
        total += term
        if (term <= 1e-17 * total).all():
            break
    return total


def slot_weights(kind: JobClass) -> FloatArray:
    """Return the arrival rate in each half-hour of the day, of mean 1; shape (48,)."""
    numbers = np.arange(FIRST_SLOT, FIRST_SLOT + SLOTS)  # counted from 1 at midnight, past 48
    edges = _gamma_cdf(np.append(numbers, numbers[-1] + 1) - 0.5, kind.day_shape, kind.day_scale)
    weights = np.empty(SLOTS)
    weights[(numbers - 1) % SLOTS] = np.diff(edges)
    weights /= weights.mean()
    return weights


def _day_knots(kind: JobClass) -> tuple[FloatArray, FloatArray]:
    """Return the slots' edges in seconds of the day, and the points counted until then."""
    edges = np.arange(SLOTS + 1, dtype=np.float64) * SLOT_S
    counted = np.concatenate([[0.0], np.cumsum(slot_weights(kind) * SLOT_S)])
    counted[-1] = DAY_S  # a day counts exactly as many points as it has seconds
    return edges, counted


def day_points(time_s: float, kind: JobClass) -> float:
    """Return the points counted until a time; the inverse of :func:`submit_times`."""
    edges, counted = _day_knots(kind)
    day, rest = divmod(time_s, DAY_S)
    return day * DAY_S + float(np.interp(rest, edges, counted))


def submit_times(points: FloatArray, kind: JobClass, factor: float = 1.0) -> IntArray:
    """Return the whole seconds at which the day's clock has counted ``factor * points``.

    The program walks through the half-hours and pays each one's weight; adding all that up, a
    job arrives when the integral of the daily cycle reaches the sum of the gaps so far.
    """
    edges, counted = _day_knots(kind)
    times = np.empty(len(points), np.int64)
    for start in range(0, len(points), _CHUNK):
        day, rest = np.divmod(points[start : start + _CHUNK] * factor, DAY_S)
        times[start : start + _CHUNK] = day * DAY_S + np.interp(rest, counted, edges)
    return times


def gaps(rng: np.random.Generator, number: int, kind: JobClass) -> FloatArray:
    """Return gaps between arrivals in points: ``number`` draws less those that are too long."""
    logs = rng.standard_gamma(kind.gap_shape, number) * kind.gap_scale
    return np.exp(logs[logs <= LARGEST_LOG_GAP])


def arrivals(
    jobs: int, kinds: tuple[JobClass, ...], seeds: list[np.random.SeedSequence]
) -> tuple[list[FloatArray], NDArray[np.intp]]:
    """Return the first ``jobs`` arrivals of all classes together.

    Returns
    -------
    points : for each class its arrivals in points, the running sum of gaps.
    order : (jobs,) the jobs in the order of arrival, as indices into the classes laid one behind
        the other; of jobs of the same second the interactive one comes first, as in the program.
    """
    rngs = [np.random.default_rng(s) for s in seeds]
    points: list[list[FloatArray]] = [[] for _ in kinds]
    times: list[list[IntArray]] = [[] for _ in kinds]
    last = np.zeros(len(kinds))  # points of the last arrival drawn
    horizon = np.zeros(len(kinds), np.int64)  # its time
    number = min(_CHUNK, jobs + 16)
    while True:
        until = horizon.min()
        known = sum(int(np.searchsorted(t, until)) for ts in times for t in ts)
        if known >= jobs:
            break
        behind = int(horizon.argmin())
        more = gaps(rngs[behind], number, kinds[behind])
        if not len(more):
            continue
        more[0] += last[behind]  # into the sum, so that it adds up alike for any chunk
        drawn = np.cumsum(more)
        points[behind].append(drawn)
        times[behind].append(submit_times(drawn, kinds[behind]))
        last[behind], horizon[behind] = drawn[-1], times[behind][-1][-1]
    order = np.argsort(np.concatenate([t for ts in times for t in ts]), kind="stable")[:jobs]
    first_of_class = np.cumsum([0, *(sum(len(t) for t in ts) for ts in times)])
    kept = np.diff([np.count_nonzero(order < first) for first in first_of_class])
    surplus = first_of_class[:-1] - np.cumsum([0, *kept[:-1]])
    order -= surplus[np.searchsorted(first_of_class[1:-1], order, side="right")]
    return [np.concatenate(p)[:n] for p, n in zip(points, kept, strict=True)], order


# ------------------------------------------------------------------------ sizes and run times


def sizes(jobs: int, processors: int, kind: JobClass, rng: np.random.Generator) -> IntArray:
    """Return the numbers of processors of ``jobs`` jobs of one class."""
    high = max(math.log2(processors) - kind.high_below, kind.low)
    medium = max(high - kind.medium_below, kind.low)
    drawn = np.empty(jobs, np.int64)
    for start in range(0, jobs, _CHUNK):
        sort, stage, place = rng.random((min(_CHUNK, jobs - start), 3)).T
        lower = stage <= kind.lower_stage
        exponent = np.where(lower, kind.low, medium)
        exponent += place * np.where(lower, medium - kind.low, high - medium)
        rounded = np.minimum(np.floor(exponent + 0.5), processors.bit_length() - 1)
        exponent = np.where(sort <= kind.serial + kind.power_of_two, rounded, exponent)
        size = np.minimum(np.floor(np.exp2(exponent) + 0.5), processors)
        drawn[start : start + _CHUNK] = np.where(sort <= kind.serial, 1, size)
    return drawn


def run_times(size: IntArray, kind: JobClass, seed: np.random.SeedSequence) -> IntArray:
    """Return run times in whole seconds, at least 1, for jobs of the given sizes."""
    logs = _log_run_times(size, kind, seed)
    again = np.flatnonzero(logs > LARGEST_LOG_RUN_TIME)
    while len(again):
        logs[again] = _log_run_times(size[again], kind, seed)
        again = again[logs[again] > LARGEST_LOG_RUN_TIME]
    return np.exp(logs, out=logs).astype(np.int64)


def _log_run_times(size: IntArray, kind: JobClass, seed: np.random.SeedSequence) -> FloatArray:
    """Return hyper-gamma variates, one for each size, from the next two streams of the seed."""
    choice, variate = (np.random.default_rng(s) for s in seed.spawn(2))
    logs = np.empty(len(size))
    for start in range(0, len(size), _CHUNK):
        part = size[start : start + _CHUNK]
        short = choice.random(len(part)) <= np.clip(kind.slope * part + kind.intercept, 0, 1)
        logs[start : start + _CHUNK] = variate.standard_gamma(
            np.where(short, kind.short_shape, kind.long_shape)
        ) * np.where(short, kind.short_scale, kind.long_scale)
    return logs
