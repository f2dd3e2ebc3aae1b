"""Workloads of known codes: which are drawn or listed, when they come, what they request.

As the generators of ELiSE: codes drawn at random, or a list of codes with how often
each one comes, in order or shuffled; all submitted at once, or at constant, random or exponentially
distributed distances. A job of a code has its processes, and its compact run time.

Requested times are run times times a factor. The table of jobs in ELiSE shows what the
program takes by itself: 6356 s requested for 4540 s, 4858 s for 3470 s, 1.4 in all rows.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcgym.errors import WorkloadError
from hpcgym.workload.codes import HEADER_KEY, MOST_PROCESSES, Code, header_lines_of
from hpcgym.workload.generators.arguments import positive, whole
from hpcgym.workload.model import MAX_TIME, Workload

if TYPE_CHECKING:
    from hpcgym.speedups import Heatmap

Ints = NDArray[np.int64]

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
        name them, whatever the mean and spread of these (:mod:`hpcgym.speedups`). A comma ends
        it: a file cannot have one in its name.
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
    from hpcgym.speedups import find_speedups

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
    seed = whole(_NAME, "seed", seed, 0, 2**64)
    untold = np.flatnonzero(speedups.processes < 1).tolist()
    if processes is None and untold:
        raise WorkloadError(
            f"{_NAME}: {speedups.source} does not tell the processes of"
            f" {speedups.codes[untold[0]]!r}; give processes"
        )
    if processes is not None and not untold:
        raise WorkloadError(f"{_NAME}: {speedups.source} tells the processes of all its codes")
    given = 0 if processes is None else whole(_NAME, "processes", processes, 1, MOST_PROCESSES)
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
    frequencies: Mapping[str, int] | None = None,
    arrivals: str = "at-once",
    interval_s: float | None = None,
    requested_factor: float = USUAL_FACTOR,
) -> Workload:
    """Generate jobs that are runs of codes.

    The same arguments give the same workload. Which codes come does not depend on when they do, nor
    the other way round.

    Parameters
    ----------
    codes : what can come, each name once.
    jobs : number of jobs; with ``frequencies`` it may be left out.
    processors : size of the machine; by default, processes of the largest code.
    seed : of the random numbers, at least 0.
    mix : one of ``MIXES``. Lists have each code equally often, the first ones once more where jobs
        are no multiple of codes.
    frequencies : name of a code -> how often it comes, at least 0, in the order of the list; for
        the mixes "list" and "shuffle".
    arrivals : one of ``ARRIVALS``; times are rounded down to whole seconds.
    interval_s : mean distance of arrivals [s], above 0; needed by all but "at-once".
    requested_factor : requested over run time, at least 1; requested times are rounded up.

    Returns
    -------
    Workload
        Columns ``submit_time``, ``run_time`` (the compact run time, rounded up to whole seconds),
        ``requested_time``, ``requested_processors`` = ``allocated_processors`` (the processes),
        ``executable`` (the place in ``codes``, from 1, named in the header), ``status`` 1,
        ``job_number``.

    Raises
    ------
    WorkloadError
        An argument out of range, a code that stands there twice or has more processes than the
        machine has processors; the message names it.
    """
    _check_codes(codes)
    rules = _Rules(
        seed=whole(_NAME, "seed", seed, 0, 2**64),
        mix=_one_of("mix", mix, MIXES),
        arrivals=_one_of("arrivals", arrivals, ARRIVALS),
        interval_s=_interval(arrivals, interval_s),
        factor=_factor(requested_factor),
    )
    size = _size(codes, processors)
    mixing, arriving = np.random.default_rng(rules.seed).spawn(2)
    place = _places(codes, jobs, mix, frequencies, mixing)
    submit_time = _submit_times(len(place), rules, arriving)
    return Workload.from_columns(
        {"submit_time": submit_time, **_columns(codes, place, rules.factor)},
        processors=size,
        name=f"{_NAME} {rules.mix} x {len(place)} seed {rules.seed}",
        header={
            "Version": ["2.2"],
            "MaxProcs": [str(size)],
            HEADER_KEY: header_lines_of([code.name for code in codes]),
            "Note": [f"jobs of {len(codes)} codes: {rules.text()}"],
        },
    )


class _Rules(NamedTuple):
    """How jobs are made of codes, checked."""

    seed: int
    mix: str
    arrivals: str
    interval_s: float
    factor: float

    def text(self) -> str:
        """Return the rules for a header."""
        pairs = {"mix": self.mix, "arrivals": self.arrivals}
        if self.arrivals != "at-once":
            pairs["interval_s"] = f"{self.interval_s:g}"
        pairs |= {"requested_factor": f"{self.factor:g}", "seed": str(self.seed)}
        return ", ".join(f"{name}={value}" for name, value in pairs.items())


def _check_codes(codes: Sequence[Code]) -> None:
    """Say so if these are no codes, or one stands there twice."""
    if not len(codes) or not all(isinstance(code, Code) for code in codes):
        raise WorkloadError(f"{_NAME}: codes must be Code after Code, at least one, not {codes!r}")
    names = [code.name for code in codes]
    if len({*names}) < len(names):
        twice = next(name for place, name in enumerate(names) if name in names[:place])
        raise WorkloadError(f"{_NAME}: the code {twice!r} stands there twice")


def _size(codes: Sequence[Code], processors: Any) -> int:
    """Return the processors of the machine, which holds each code."""
    largest = max(codes, key=lambda code: code.processes)
    if processors is None:
        return largest.processes
    size = whole(_NAME, "processors", processors, 1, 2**31)
    if size < largest.processes:
        raise WorkloadError(
            f"{_NAME}: {largest.name!r} has {largest.processes} processes, the machine {size}"
            " processors: leave the code out"
        )
    return size


def _one_of(name: str, value: Any, known: Mapping[str, str]) -> str:
    """Return an argument that must be one of some words."""
    if value not in list(known):  # also of what has no hash
        near = get_close_matches(str(value), known, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise WorkloadError(
            f"{_NAME}: {name} must be one of {', '.join(known)}, not {value!r}{hint}"
        )
    return str(value)


def _interval(arrivals: str, interval_s: Any) -> float:
    """Return the mean distance of arrivals [s], which some need and one cannot have."""
    interval = positive(_NAME, "interval", interval_s)
    if arrivals == "at-once":
        if interval is not None:
            raise WorkloadError(f"{_NAME}: arrivals at once have no interval, {interval:g} s")
        return 0.0
    if interval is None:
        raise WorkloadError(f"{_NAME}: {arrivals} arrivals need an interval [s]")
    return interval


def _factor(factor: Any) -> float:
    """Return how many times the run time jobs request."""
    number = positive(_NAME, "the factor of requested times", factor)
    if number is None or number < 1:
        raise WorkloadError(f"{_NAME}: requested must be a factor of at least 1, not {factor!r}")
    return number


def _places(
    codes: Sequence[Code],
    jobs: Any,
    mix: str,
    frequencies: Mapping[str, int] | None,
    random: np.random.Generator,
) -> Ints:
    """Return the place in ``codes`` of each job's code, (n_jobs,)."""
    if mix == "random":
        if frequencies is not None:
            raise WorkloadError(f"{_NAME}: frequencies are of the mixes list and shuffle")
        return random.integers(len(codes), size=whole(_NAME, "jobs", jobs, 1, MOST_JOBS))
    if frequencies is None:
        number = whole(_NAME, "jobs", jobs, 1, MOST_JOBS)
        order = np.arange(len(codes))
        counts = number // len(codes) + (order < number % len(codes))
    else:
        order, counts = _told_counts(codes, jobs, frequencies)
    listed = np.repeat(order, counts)
    return random.permutation(listed) if mix == "shuffle" else listed


def _told_counts(
    codes: Sequence[Code], jobs: Any, frequencies: Mapping[str, int]
) -> tuple[Ints, Ints]:
    """Return the places of the codes that a list has, and how often each comes."""
    places = {code.name: place for place, code in enumerate(codes)}
    for name in frequencies:
        if name not in places:
            near = get_close_matches(name, places, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise WorkloadError(f"{_NAME}: frequencies: there is no code {name!r}{hint}")
    counts = [
        whole(_NAME, f"the frequency of {name!r}", count, 0, MOST_JOBS)
        for name, count in frequencies.items()
    ]
    if not 1 <= sum(counts) <= MOST_JOBS or jobs not in (None, sum(counts)):
        told = "" if jobs is None else f", not {jobs!r}"
        raise WorkloadError(
            f"{_NAME}: jobs are the sum of the frequencies, {sum(counts)}; they must be from 1 to"
            f" {MOST_JOBS}{told}"
        )
    return np.array([places[name] for name in frequencies]), np.array(counts)


def _submit_times(jobs: int, rules: _Rules, random: np.random.Generator) -> Ints:
    """Return when jobs come [s], (n_jobs,) int64, in order."""
    if jobs * rules.interval_s > MAX_TIME:
        raise WorkloadError(f"{_NAME}: the interval spreads the jobs over more than 2^53 s")
    times: NDArray[np.floating[Any]]
    if rules.arrivals == "random":
        times = np.sort(random.random(jobs)) * (jobs * rules.interval_s)
    elif rules.arrivals == "poisson":
        distances = random.exponential(rules.interval_s, jobs)
        distances[0] = 0.0
        times = np.cumsum(distances)
    else:
        times = np.arange(jobs) * rules.interval_s
    return np.floor(times).astype(np.int64)


def _columns(codes: Sequence[Code], place: Ints, factor: float) -> dict[str, Any]:
    """Return the columns of jobs but for their submit times."""
    run_s = [max(math.ceil(code.compact_s), 1) for code in codes]
    # 1.1 * 10 is a little more than 11
    requested_s = [math.ceil(round(time * factor, 6)) for time in run_s]
    processes = np.array([code.processes for code in codes], np.int64)[place]
    return {
        "job_number": np.arange(1, len(place) + 1),
        "run_time": np.array(run_s, np.int64)[place],
        "requested_time": np.array(requested_s, np.int64)[place],
        "requested_processors": processes,
        "allocated_processors": processes,
        "executable": place + 1,
        "status": np.ones(len(place), np.int64),
    }
