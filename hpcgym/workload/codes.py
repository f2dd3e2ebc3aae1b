"""Workloads of known codes: which are drawn or listed, when they come, what they request.

As the generators of ELiSE: codes drawn at random, or a list of codes, of which each may stand there
several times, in order or shuffled; all submitted at once, or at constant, random or exponentially
distributed distances. A job of a code has its processes, and its compact run time.

Requested times are run times times a factor. The table of jobs in ELiSE shows what the
program takes by itself: 6356 s requested for 4540 s, 4858 s for 3470 s, 1.4 in all rows.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hpcgym.errors import WorkloadError, did_you_mean, positive_argument, unknown, whole_argument
from hpcgym.workload.columns import MAX_TIME
from hpcgym.workload.io.swf_header import HEADER_KEYS, check_name, name_lines, names_of, numbered
from hpcgym.workload.model import Workload

if TYPE_CHECKING:
    from hpcgym.machine.speedups import Heatmap


# --- Codes that jobs run, by name -----------------------------------------------------------------
#
# The column ``executable`` holds numbers, and lines ``Code`` of the header tell what is meant by
# them, as lines ``Queue`` do of queues: ``; Code: 1 lu.E.2048``. Tables have the names in a column
# ``code``.

Ints = NDArray[np.int64]

#: What lines of the header that name codes begin with.
HEADER_KEY = HEADER_KEYS["executable"]

MOST_PROCESSES = 2**31


@dataclass(frozen=True)
class Code:
    """A parallel code as it is run: how many processes it has, and how long they take.

    Attributes
    ----------
    name : such as ``lu.E.2048``.
    processes : one on each processor, at least 1.
    compact_s : run time alone on whole nodes [s], above 0.

    Raises
    ------
    WorkloadError : an invalid name (:func:`hpcgym.workload.io.swf_header.check_name`), or a
        number that cannot be.
    """

    name: str
    processes: int
    compact_s: float

    def __post_init__(self) -> None:
        where = f"code {check_name(self.name)!r}"
        processes = whole_argument(where, "processes", self.processes, 1, MOST_PROCESSES)
        object.__setattr__(self, "processes", processes)
        if not 0 < self.compact_s < math.inf:
            raise WorkloadError(
                f"{where}: compact_s must be a number above 0 s, not {self.compact_s!r}"
            )


def code_names(workload: Workload) -> dict[int, str]:
    """Return the names of codes by number, from the lines ``Code`` of the header."""
    return names_of(workload, "executable")


def header_lines_of(codes: Iterable[str]) -> list[str]:
    """Return the lines ``Code`` of a header in which codes are numbered from 1."""
    return name_lines(dict(enumerate(codes, 1)))


def codes_of(workload: Workload, codes: Sequence[str]) -> Ints:
    """Return which code each job runs.

    Parameters
    ----------
    workload : jobs whose codes have names.
    codes : the names that are known, such as those of a table of speedups.

    Returns
    -------
    (n_jobs,) int64: the place of each job's code in ``codes``.

    Raises
    ------
    WorkloadError : a job whose code has no name, or none of ``codes``; it names the first, says how
        many there are, and which code may be meant.
    """
    places = {name: place for place, name in enumerate(codes)}
    names = code_names(workload)
    numbers, kind = np.unique(workload.executable, return_inverse=True)
    place_of = [places.get(names.get(number, ""), -1) for number in numbers.tolist()]
    code_of = np.array(place_of, np.int64)[kind.reshape(-1)]
    if (code_of < 0).any():
        job = int((code_of < 0).argmax())
        why = _no_code(int(workload.executable[job]), names, codes)
        raise WorkloadError(
            f"{workload.name}: {workload.called(job)} {why}; so it is with"
            f" {np.count_nonzero(code_of < 0):,} of {len(workload):,} jobs"
        )
    return code_of


def with_codes(workload: Workload, codes: Sequence[str]) -> Workload:
    """Return the same jobs with codes.

    Parameters
    ----------
    workload : the jobs.
    codes : n_jobs names, one for each job. They are numbered from 1 in the order in which they
        first stand there.

    Raises
    ------
    WorkloadError : invalid names, not one for each job, or an extract.
    """
    if isinstance(codes, str) or len(codes) != len(workload):
        raise WorkloadError(
            f"{workload.name}: codes must be one name for each of the {len(workload):,} jobs"
        )
    numbers = numbered(codes)
    executable = np.array([numbers[name] for name in codes], np.int64)
    return _numbered(workload, executable, list(numbers))


def assign_codes(
    workload: Workload,
    codes: Sequence[str],
    *,
    seed: int = 0,
    weights: Sequence[float] | None = None,
) -> Workload:
    """Return the jobs of any trace as if they ran codes, each drawn at random.

    Run times, processors and all else stay as they are: of a code a job gets how fast it runs
    beside others, not how long it takes nor its number of processes.

    Parameters
    ----------
    workload : the jobs, such as those of a log.
    codes : names; they are numbered from 1 in their order.
    seed : of the random numbers, at least 0; the same one gives the same codes.
    weights : (codes,), at least 0: how often each is drawn; by default all alike.

    Raises
    ------
    WorkloadError : invalid names, weights that cannot be, or an extract.
    """
    seed = whole_argument("assign_codes", "seed", seed, 0, 2**64)
    if isinstance(codes, str) or not len(codes):
        raise WorkloadError(f"codes must be names, at least one, not {codes!r}")
    shares = np.ones(len(codes)) if weights is None else np.array(weights, np.float64)
    right = shares.shape == (len(codes),) and bool((shares >= 0).all())
    if not right or not 0 < shares.sum() < math.inf:
        raise WorkloadError(
            f"weights must be {len(codes)} numbers of at least 0, one above, not {weights!r}"
        )
    random = np.random.default_rng(seed)
    drawn = random.choice(len(codes), size=len(workload), p=shares / shares.sum())
    return _numbered(workload, drawn + 1, codes)


def _numbered(workload: Workload, executable: Ints, codes: Sequence[str]) -> Workload:
    """Return the jobs with numbers of codes, and a header that names them."""
    if workload.initial is not None:
        raise WorkloadError(
            f"{workload.name} is an extract, whose past has codes too: give them to the whole trace"
        )
    lines = header_lines_of([check_name(name) for name in codes])
    numbered = workload.with_columns(executable=executable)
    return replace(numbered, header={**workload.header, HEADER_KEY: lines})


def _no_code(number: int, names: dict[int, str], codes: Sequence[str]) -> str:
    """Return why a job has none of the known codes."""
    if number not in names:
        return f"has no code: no line {HEADER_KEY!r} of the header names its executable, {number}"
    hint = did_you_mean(names[number], codes)
    return f"runs {names[number]!r}, which is not one of the {len(codes)} codes; {hint}"


# --- Workloads of known codes ---------------------------------------------------------------------

#: Which codes jobs have -> what that means.
MIXES = {
    "random": "each job's code is drawn, all alike",
    "list": "all jobs of the first code, then all of the second, and so on",
    "shuffle": "the same jobs as list, in random order",
}
#: When jobs come -> what that means; ``interval_s`` is the mean distance [s].
ARRIVALS = {
    "at-once": "all at time 0",
    "constant": "the first at time 0, then one each interval",
    "poisson": "the first at time 0, distances distributed exponentially",
    "random": "at independent random times within jobs * interval",
}

USUAL_FACTOR = 1.4
MOST_JOBS = 10**8
#: [s] between which compact run times are drawn, uniformly, of codes that do not tell them.
SHORTEST_S, LONGEST_S = 600.0, 7200.0

_NAME = "codes"


def codes(
    speedups: str = "generated",
    jobs: int = 500,
    processors: int | None = None,
    seed: int = 0,
    mix: str = "random",
    arrivals: str = "at-once",
    interval: float | None = None,
    requested: float = USUAL_FACTOR,
    processes: int | None = None,
) -> Workload:
    """Generate jobs of the codes whose speedups a file has; what the text ``codes:...`` stands for.

    Parameters
    ----------
    speedups : a file of speedups, or ``generated:codes=16`` for codes named as generated speedups
        name them, whatever the mean and spread of these (:mod:`hpcgym.machine.speedups`). A
        comma ends it: a file cannot have one in its name.
    jobs : number of jobs.
    processes : of each code, where the speedups do not tell it.
    processors, seed, mix, arrivals, interval, requested : as ``processors``, ``seed``, ``mix``,
        ``arrivals``, ``interval_s`` and ``requested_factor`` of :func:`generate_code_jobs`.

    Returns
    -------
    Workload
        Of :func:`generate_code_jobs`, with the codes of :func:`codes_in`.

    Raises
    ------
    HpcgymError : no such speedups, or an argument out of range; the message names it.
    """
    from hpcgym.machine.speedups import find_speedups

    return generate_code_jobs(
        codes_in(find_speedups(speedups), processes=processes, seed=seed),
        jobs,
        processors=processors,
        seed=seed,
        mix=mix,
        arrivals=arrivals,
        interval_s=interval,
        requested_factor=requested,
    )


def codes_in(speedups: Heatmap, *, processes: int | None = None, seed: int = 0) -> list[Code]:
    """Return the codes of a table of speedups, with their processes and compact run times.

    A code whose compact run time is not known gets one that is drawn uniformly from 10 minutes to 2
    hours: an assumption, nothing is published of it.

    Parameters
    ----------
    speedups : the table; ``speedups.take(names)`` is one of some codes alone.
    processes : of each code whose processes the table does not tell.
    seed : of the run times that are drawn, at least 0. What a code gets depends on its place.

    Raises
    ------
    WorkloadError : processes that are not told, or told although the table knows all.
    """
    seed = whole_argument(_NAME, "seed", seed, 0, 2**64)
    untold = np.flatnonzero(speedups.processes < 1).tolist()
    if processes is None and untold:
        raise WorkloadError(
            f"{_NAME}: {speedups.source} does not tell the processes of"
            f" {speedups.codes[untold[0]]!r}; give processes"
        )
    if processes is not None and not untold:
        raise WorkloadError(f"{_NAME}: {speedups.source} tells the processes of all its codes")
    given = (
        0 if processes is None else whole_argument(_NAME, "processes", processes, 1, MOST_PROCESSES)
    )
    # another stream than that of the jobs of the same seed
    random = np.random.default_rng([seed, 1])
    drawn = random.uniform(SHORTEST_S, LONGEST_S, len(speedups))
    compact_s = np.where(np.isnan(speedups.compact_s), drawn, speedups.compact_s)
    sizes = np.where(speedups.processes < 1, given, speedups.processes)
    of_codes = zip(speedups.codes, sizes.tolist(), compact_s.tolist(), strict=True)
    return [Code(name, size, time) for name, size, time in of_codes]


def generate_code_jobs(
    codes: Sequence[Code],
    jobs: int | None = None,
    *,
    processors: int | None = None,
    seed: int = 0,
    mix: str = "random",
    arrivals: str = "at-once",
    interval_s: float | None = None,
    requested_factor: float = USUAL_FACTOR,
) -> Workload:
    """Generate jobs that are runs of codes.

    The same arguments give the same workload. Which codes come does not depend on when they do, nor
    the other way round.

    Parameters
    ----------
    codes : what can come. One that stands there several times comes so much more often.
    jobs : number of jobs; lists have each of ``codes`` once without it.
    processors : size of the machine; by default, processes of the largest code.
    seed : of the random numbers, at least 0.
    mix : one of ``MIXES``. Lists have each code equally often, the first ones once more where jobs
        are no multiple of codes.
    arrivals : one of ``ARRIVALS``; times are rounded down to whole seconds.
    interval_s : mean distance of arrivals [s], above 0; needed by all but "at-once".
    requested_factor : requested over run time, at least 1; requested times are rounded up.

    Returns
    -------
    Workload
        Columns ``submit_time``, ``run_time`` (the compact run time, rounded up to whole seconds),
        ``requested_time``, ``requested_processors`` = ``allocated_processors`` (the processes),
        ``executable`` (numbered from 1 as in ``codes``, named in the header), ``status`` 1,
        ``job_number``.

    Raises
    ------
    WorkloadError
        An argument out of range, or a code with more processes than the machine has processors; the
        message names it.
    """
    if not len(codes) or not all(isinstance(code, Code) for code in codes):
        raise WorkloadError(f"{_NAME}: codes must be Code after Code, at least one, not {codes!r}")
    seed = whole_argument(_NAME, "seed", seed, 0, 2**64)
    for name, value, words in (("mix", mix, MIXES), ("arrivals", arrivals, ARRIVALS)):
        if value not in list(words):  # also of what has no hash
            raise WorkloadError(f"{_NAME}: {unknown(name, value, words)}")
    distance = _interval(arrivals, interval_s)
    factor = positive_argument(_NAME, "the factor of requested times", requested_factor)
    if factor is None or factor < 1:
        raise WorkloadError(
            f"{_NAME}: requested must be a factor of at least 1, not {requested_factor!r}"
        )
    largest = max(codes, key=lambda code: code.processes)
    size = largest.processes
    if processors is not None:
        size = whole_argument(_NAME, "processors", processors, 1, 2**31)
    if size < largest.processes:
        raise WorkloadError(
            f"{_NAME}: {largest.name!r} has {largest.processes} processes, the machine {size}"
            " processors: leave the code out"
        )
    mixing, arriving = np.random.default_rng(seed).spawn(2)
    place = _places(len(codes), jobs, mix, mixing)
    submit_time = _submit_times(len(place), arrivals, distance, arriving)
    terms = "" if arrivals == "at-once" else f", interval_s={distance:g}"
    terms = f"mix={mix}, arrivals={arrivals}{terms}, requested_factor={factor:g}, seed={seed}"
    return Workload.from_columns(
        {"submit_time": submit_time, **_columns(codes, place, factor)},
        processors=size,
        name=f"{_NAME} {mix} x {len(place)} seed {seed}",
        header={
            "Version": ["2.2"],
            "MaxProcs": [str(size)],
            HEADER_KEY: header_lines_of(numbered(code.name for code in codes)),
            "Note": [f"jobs of {len(codes)} codes: {terms}"],
        },
    )


def _interval(arrivals: str, interval_s: Any) -> float:
    """Return the mean distance of arrivals [s], which some need and one cannot have."""
    interval = positive_argument(_NAME, "interval", interval_s)
    if arrivals == "at-once":
        if interval is not None:
            raise WorkloadError(f"{_NAME}: arrivals at once have no interval, {interval:g} s")
        return 0.0
    if interval is None:
        raise WorkloadError(f"{_NAME}: {arrivals} arrivals need an interval [s]")
    return interval


def _places(codes: int, jobs: Any, mix: str, random: np.random.Generator) -> Ints:
    """Return which of some codes each job has, (n_jobs,)."""
    if mix == "random":
        return random.integers(codes, size=whole_argument(_NAME, "jobs", jobs, 1, MOST_JOBS))
    number = codes if jobs is None else whole_argument(_NAME, "jobs", jobs, 1, MOST_JOBS)
    order = np.arange(codes)
    listed = np.repeat(order, number // codes + (order < number % codes))
    return random.permutation(listed) if mix == "shuffle" else listed


def _submit_times(jobs: int, arrivals: str, interval_s: float, random: np.random.Generator) -> Ints:
    """Return when jobs come [s], (n_jobs,) int64, in order."""
    if jobs * interval_s > MAX_TIME:
        raise WorkloadError(f"{_NAME}: the interval spreads the jobs over more than 2^53 s")
    times: NDArray[np.floating[Any]] = np.arange(jobs) * interval_s
    if arrivals == "random":
        times = np.sort(random.random(jobs)) * (jobs * interval_s)
    elif arrivals == "poisson":
        distances = random.exponential(interval_s, jobs)
        distances[0] = 0.0
        times = np.cumsum(distances)
    whole_s: Ints = np.floor(times).astype(np.int64)
    return whole_s


def _columns(codes: Sequence[Code], place: Ints, factor: float) -> dict[str, Any]:
    """Return the columns of jobs but for their submit times."""
    run_s = [max(math.ceil(code.compact_s), 1) for code in codes]
    # 1.1 * 10 is a little more than 11
    requested_s = [math.ceil(round(time * factor, 6)) for time in run_s]
    processes = np.array([code.processes for code in codes], np.int64)[place]
    numbers = numbered(code.name for code in codes)
    return {
        "job_number": np.arange(1, len(place) + 1),
        "run_time": np.array(run_s, np.int64)[place],
        "requested_time": np.array(requested_s, np.int64)[place],
        "requested_processors": processes,
        "allocated_processors": processes,
        "executable": np.array([numbers[code.name] for code in codes], np.int64)[place],
        "status": np.ones(len(place), np.int64),
    }
