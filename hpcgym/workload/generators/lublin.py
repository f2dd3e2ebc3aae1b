"""The Lublin-Feitelson model: as many jobs as wanted, from a seed, with users.

Submission times, sizes and run times are those of the published model (``lublin_model``). The model
has neither requested times nor users: these come from ``estimates`` and ``users``, which change no
job.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcgym.errors import WorkloadError, positive_argument, whole_argument
from hpcgym.units import DAY_S
from hpcgym.workload.columns import MAX_TIME
from hpcgym.workload.generators.estimates import MAX_REQUEST_S, requested_times
from hpcgym.workload.model import Workload

# --- The distributions of the Lublin-Feitelson model ----------------------------------------------
#
# U. Lublin and D. G. Feitelson, "The workload on parallel supercomputers: modeling the
# characteristics of rigid jobs", J. Parallel and Distributed Computing 63(11), 1105-1122, 2003.
# The constants are those of the authors' program (``m_lublin99.c``), fitted to logs of
# 128-processor machines. For each class of jobs:
#
# - *Size*: serial with a fixed probability; otherwise 2 to a two-stage uniform exponent, rounded
#   to a whole exponent for the share of power-of-two jobs.
# - *Run time*: e to a hyper-gamma variate; the probability of its first (short) gamma falls
#   linearly with the job's size, so large jobs run longer. Variates above 12 (45 hours) are drawn
#   again.
# - *Arrivals*: gaps of e to a gamma variate (above 13: drawn again), counted on a clock that runs
#   faster in the busy half-hours of the day; the weights of the 48 half-hours are slices of another
#   gamma distribution. Time 0 is midnight.
#
# Departures from the program: jobs never exceed the machine (there, a power-of-two job may round
# up past a machine whose size is no power of two); and submission times are rounded down one by
# one, whereas the program rounds its running clock down at each job, and so lets the daily cycle
# drift by half a second a job.
#
# Everything is drawn job by job from streams of its own, so that the number of jobs changes none.

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

LARGEST_LOG_RUN_TIME = 12.0  # exp(12) s = 45 h, "no more than two days"
LARGEST_LOG_GAP = 13.0  # exp(13) s = 5 days
SLOTS = 48  # half-hours of a day
SLOT_S = 1800
FIRST_SLOT = 11  # the model's day starts at the 11th half-hour, 05:00; earlier slots end it

_CHUNK = 1 << 18  # arrivals drawn at a time; the jobs do not depend on it


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
    day, rest = np.divmod(points * factor, DAY_S)
    times: IntArray = (day * DAY_S + np.interp(rest, counted, edges)).astype(np.int64)
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
    sort, stage, place = rng.random((jobs, 3)).T
    lower = stage <= kind.lower_stage
    exponent = np.where(lower, kind.low, medium)
    exponent += place * np.where(lower, medium - kind.low, high - medium)
    rounded = np.minimum(np.floor(exponent + 0.5), processors.bit_length() - 1)
    exponent = np.where(sort <= kind.serial + kind.power_of_two, rounded, exponent)
    size = np.minimum(np.floor(np.exp2(exponent) + 0.5), processors)
    return np.where(sort <= kind.serial, 1, size).astype(np.int64)


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
    short = choice.random(len(size)) <= np.clip(kind.slope * size + kind.intercept, 0, 1)
    drawn: FloatArray = variate.standard_gamma(np.where(short, kind.short_shape, kind.long_shape))
    return drawn * np.where(short, kind.short_scale, kind.long_scale)


# --- A model of users -----------------------------------------------------------------------------
#
# Real users submit runs of similar jobs, and predictors of running times live on that. Generators
# that draw jobs independently lack it. This model adds it without changing a job, so that the
# distributions of sizes, run times and arrivals stay exactly those of the generator: jobs that are
# near in time and alike are given to the same user. Each :data:`WINDOW` consecutive submissions
# are sorted by order of magnitude of the run time, size and run time; that order is cut into
# sessions of geometrically distributed length; each session gets a user, drawn by Zipf's law; and
# a user's sessions in a window lie side by side.
#
# It is this project's own, not a published model. Its constants are chosen by four measures of two
# logs (jobs with a run time and a size, in order of submission, each compared with the same user's
# job before):
#
# ========================================  =======  ========  =================== measure
# KTH-SP2  SDSC-SP2  lublin(30000, 256) ========================================  =======  ========
# =================== same size                                 68 %     77 %      60 % run times
# within a factor of two          61 %     69 %      56 % same request (see ``estimates``)
# 64 %     79 %      85 % correlation of ln(run time) with that of  0.72     0.77      0.75 the
# mean of the user's last two share of jobs of the busiest 10 % of      54 %     59 %      55 %
# users ========================================  =======  ========  ===================
#
# What it does not model: that a user's next job often follows within minutes, or after the last
# one has ended (arrivals are the generator's).

WINDOW = 512  # consecutive submissions among which similar jobs are sought
SESSION_JOBS = 5.0  # mean length of a session, not counting cuts at the ends of windows
ZIPF_EXPONENT = 0.9  # activity of a user of rank r: r ** -0.9


def checked_sizes(
    generator: str, jobs: Any, machine: tuple[str, Any, int], seed: Any, load: Any
) -> tuple[int, int, int, float | None]:
    """Return how many jobs a generator makes, for how large a machine, its seed and its load.

    ``machine``: what the size is called, the size, and the most that it may be.

    Raises
    ------
    WorkloadError : one is out of range; the message names it.
    """
    name, size, most = machine
    return (
        whole_argument(generator, "jobs", jobs, 1, 10**9),
        whole_argument(generator, name, size, 1, most),
        whole_argument(generator, "seed", seed, 0, 2**64),
        positive_argument(generator, "load", load),
    )


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
    window = np.arange(len(run_time)) // WINDOW
    magnitude = np.searchsorted((100, 10_000), run_time, "right")
    order = np.lexsort((run_time, processors, magnitude, window))
    begins = cuts.random(len(run_time)) < 1 / SESSION_JOBS
    begins[::WINDOW] = True
    drawn = np.searchsorted(activity, choice.random(begins.sum()) * activity[-1], "right")
    of_window = window[begins]
    shift = shifts.integers(users, size=int(window[-1]) + 1)
    drawn = drawn[np.lexsort(((place[drawn] + shift[of_window]) % users, of_window))]
    user_id = np.empty(len(run_time), np.int64)
    user_id[order] = drawn[np.cumsum(begins) - 1] + 1
    return user_id


# --- The Lublin-Feitelson workload ----------------------------------------------------------------


def lublin(
    jobs: int = 10_000,
    processors: int = 256,
    seed: int = 0,
    load: float | None = None,
    classes: int = 2,
    users: int | None = None,
) -> Workload:
    """Generate a workload by the model of Lublin and Feitelson.

    The same arguments give the same workload, whatever the machine (numpy's PCG64 streams; the
    last bit of the platform's ``exp`` may move a time by a second once in billions of jobs).
    Without ``load``, a shorter workload of the same seed is the beginning of a longer one as far
    as submission times, sizes and run times go.

    Parameters
    ----------
    jobs : number of jobs, at least 1.
    processors : size of the machine, at least 1. The exponents of job sizes keep the distance to
        log2(processors) that they were fitted with at 128 processors.
    seed : of the random numbers, at least 0.
    load : offered load, sum(size * run time) / (processors * last submission time), the
        program's own definition. It is reached, up to the rounding of times to seconds, by
        scaling the gaps between arrivals *before* they are spread over the day, so that the daily
        cycle stays one day long. None keeps the model's gaps, whatever load they give.
    classes : 2 for separate interactive and batch jobs, 1 for the parameters that the authors
        fitted to all jobs together.
    users : number of users (default: grows with the jobs, 159 for 10,000).

    Returns
    -------
    Workload
        Columns ``submit_time``, ``run_time`` (at least 1 s), ``requested_time`` (at least the
        run time, :func:`hpcgym.workload.generators.estimates.requested_times`),
        ``requested_processors`` = ``allocated_processors``, ``user_id`` (from 1,
        :func:`hpcgym.workload.generators.lublin.assign_users`), ``queue`` (0 interactive, 1 batch;
        unknown with one class), ``status`` 1, ``job_number``.

    Raises
    ------
    WorkloadError
        An argument out of range; the message names it.
    """
    jobs, processors, seed, load = checked_sizes(
        "lublin", jobs, ("processors", processors, 2**31), seed, load
    )
    classes = whole_argument("lublin", "classes", classes, 1, 2)
    users = (
        default_users(jobs) if users is None else whole_argument("lublin", "users", users, 1, 10**7)
    )
    kinds = CLASSES[classes]
    request_seed, user_seed, *class_seeds = np.random.SeedSequence(seed).spawn(2 + len(kinds))

    columns = _model_columns(jobs, processors, load, kinds, class_seeds)
    columns["user_id"] = assign_users(
        columns["requested_processors"],
        columns["run_time"],
        users,
        np.random.default_rng(user_seed),
    )
    columns["requested_time"] = requested_times(
        columns["run_time"], columns["user_id"], seed=np.random.default_rng(request_seed)
    )
    columns["allocated_processors"] = columns["requested_processors"]
    columns["job_number"] = np.arange(1, jobs + 1)
    columns["status"] = np.broadcast_to(np.int64(1), jobs)
    for values in columns.values():
        values.flags.writeable = False  # read-only columns are not copied
    return Workload.from_columns(
        columns,
        processors=processors,
        name=f"lublin-{processors} seed {seed}" + ("" if load is None else f" load {load:g}"),
        header=_header(jobs, processors, seed, load, classes, users),
    )


def _model_columns(
    jobs: int,
    processors: int,
    load: float | None,
    kinds: tuple[JobClass, ...],
    class_seeds: list[np.random.SeedSequence],
) -> dict[str, Any]:
    """Return submission times, sizes, run times and queues of ``jobs`` jobs."""
    seeds = [s.spawn(3) for s in class_seeds]  # arrivals, sizes, run times
    points, order = arrivals(jobs, kinds, [s[0] for s in seeds])
    interactive_jobs = len(points[0])
    # Draws belong to the k-th job of a class: neither the load nor the other class changes them.
    class_sizes = [
        sizes(len(p), processors, kind, np.random.default_rng(s[1]))
        for p, kind, s in zip(points, kinds, seeds, strict=True)
    ]
    run_time = np.concatenate(
        [run_times(q, kind, s[2]) for q, kind, s in zip(class_sizes, kinds, seeds, strict=True)]
    )
    size = np.concatenate(class_sizes)
    factor = 1.0
    if load is not None:
        span = float(np.sum(size * run_time, dtype=np.float64)) / (processors * load)
        if span > MAX_TIME:
            raise WorkloadError(f"lublin: load {load} spreads the jobs over more than 2^53 s")
        factor = min(
            day_points(span, k) / p[-1] for k, p in zip(kinds, points, strict=True) if len(p)
        )
    submit_time = np.concatenate(
        [submit_times(p, k, factor) for k, p in zip(kinds, points, strict=True)]
    )
    if factor != 1.0:
        order = np.argsort(submit_time, kind="stable")
    columns: dict[str, Any] = {
        "submit_time": submit_time[order],
        "run_time": run_time[order],
        "requested_processors": size[order],
    }
    if len(kinds) > 1:
        columns["queue"] = (order >= interactive_jobs).astype(np.int64)
    return columns


def _header(
    jobs: int, processors: int, seed: int, load: float | None, classes: int, users: int
) -> dict[str, list[str]]:
    """Return the SWF header: the machine and how the jobs were made."""
    header = {
        "Version": ["2.2"],
        "UnixStartTime": ["0"],
        "TimeZoneString": ["UTC"],
        "MaxNodes": [str(processors)],
        "MaxProcs": [str(processors)],
        "MaxRuntime": [str(MAX_REQUEST_S)],
        "Note": [
            "Lublin-Feitelson model (JPDC 63(11), 2003), requested times by the model of Tsafrir, "
            "Etsion and Feitelson (JSSPP 2005)",
            f"lublin(jobs={jobs}, processors={processors}, seed={seed}, load={load}, "
            f"classes={classes}, users={users})",
        ],
    }
    if classes == 2:
        header["MaxQueues"] = ["2"]
        header["Queue"] = ["0 interactive", "1 batch"]
    return header
