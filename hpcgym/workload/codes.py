"""Codes that jobs run, by name: those of workloads, and given to the jobs of any trace.

The column ``executable`` holds numbers, and lines ``Code`` of the header tell what is meant by
them, as lines ``Queue`` do of queues: ``; Code: 1 lu.E.2048``. Tables have the names in a column
``code``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches

import numpy as np
from numpy.typing import NDArray

from hpcgym.errors import WorkloadError
from hpcgym.workload.generators.arguments import whole
from hpcgym.workload.model import Workload
from hpcgym.workload.names import HEADER_KEYS, check_name, header_lines, names_of

Ints = NDArray[np.int64]

#: What lines of the header that name codes begin with.
HEADER_KEY = HEADER_KEYS["executable"]

MOST_PROCESSES = 2**31
_SHOWN = 5  # names in an error


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
    WorkloadError : a name that is none (:func:`hpcgym.workload.names.check_name`), or a number that
        cannot be.
    """

    name: str
    processes: int
    compact_s: float

    def __post_init__(self) -> None:
        where = f"code {check_name(self.name)!r}"
        processes = whole(where, "processes", self.processes, 1, MOST_PROCESSES)
        object.__setattr__(self, "processes", processes)
        if not 0 < self.compact_s < math.inf:
            raise WorkloadError(
                f"{where}: compact_s must be a number above 0 s, not {self.compact_s!r}"
            )


def code_names(workload: Workload) -> dict[int, str]:
    """Return the names of codes by number, from the lines ``Code`` of the header."""
    return names_of(workload, "executable")


def header_lines_of(codes: Sequence[str]) -> list[str]:
    """Return the lines ``Code`` of a header in which codes are numbered from 1."""
    return header_lines(dict(enumerate(codes, 1)))


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
    found = np.array(place_of, np.int64)[kind.reshape(-1)]
    if (found < 0).any():
        job = int((found < 0).argmax())
        why = _no_code(int(workload.executable[job]), names, codes)
        raise WorkloadError(
            f"{workload.name}: {workload.called(job)} {why}; so it is with"
            f" {np.count_nonzero(found < 0):,} of {len(workload):,} jobs"
        )
    return found


def with_codes(workload: Workload, codes: Sequence[str]) -> Workload:
    """Return the same jobs with codes.

    Parameters
    ----------
    workload : the jobs.
    codes : n_jobs names, one for each job. They are numbered from 1 in the order in which they
        first stand there.

    Raises
    ------
    WorkloadError : names that are none, not one for each job, or an extract.
    """
    if isinstance(codes, str) or len(codes) != len(workload):
        raise WorkloadError(
            f"{workload.name}: codes must be one name for each of the {len(workload):,} jobs"
        )
    numbers: dict[str, int] = {}
    executable = [numbers.setdefault(name, len(numbers) + 1) for name in codes]
    return _numbered(workload, np.array(executable, np.int64), list(numbers))


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
    WorkloadError : names that are none, weights that cannot be, or an extract.
    """
    seed = whole("assign_codes", "seed", seed, 0, 2**64)
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
    near = get_close_matches(names[number], codes, n=3)
    if near:
        hint = f"did you mean {' or '.join(map(repr, near))}?"
    else:
        more = ", ..." if len(codes) > _SHOWN else ""
        hint = f"there are {', '.join(codes[:_SHOWN])}{more}"
    return f"runs {names[number]!r}, which is none of the {len(codes)} codes; {hint}"
