"""Cleaning: records that are repaired or dropped, counted; filters, and recipes of several.

A filter drops jobs that cannot be simulated or repairs them, and counts both. Recipes: ``glesser``
is that of D. Glesser's thesis (chapter 7), ``legrand`` that of the paper on index and mixed
policies by Legrand, Trystram and Zrigui; ``default`` extends ``glesser`` to logs without requested
times, and to logs with partial executions; ``unfinished`` is ``default``, and jobs stay that had
not started or ended when the log was written: for forecasts, not to be simulated.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcgym.errors import WorkloadError, WorkloadWarning, unknown, warn_caller
from hpcgym.names import MOST_AMOUNT
from hpcgym.workload.amounts import most_at_once
from hpcgym.workload.columns import MISSING
from hpcgym.workload.model import Workload, check_processors

# --- Records of a log that are no jobs, and the size of its machine -------------------------------
#
# The Standard Workload Format says that a job which was swapped out may have a record for each
# partial execution, status 2 (to be continued), then 3 or 4 (the last one), beside one of the
# whole job; and that studies of workloads should only look at that one. Source:
# https://www.cs.huji.ac.il/labs/parallel/workload/swf.html

Columns = Mapping[str, NDArray[Any]]


def are_parts(columns: Columns) -> NDArray[np.bool_]:
    """Return which records are partial executions, (n_jobs,): those with status 2, 3 or 4."""
    status = columns["status"]
    parts: NDArray[np.bool_] = (status >= 2) & (status <= 4)
    return parts


def parts_of(columns: Columns, numbers: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return which records are partial executions of the jobs of some numbers, (n_jobs,).

    A job without a number has no parts.
    """
    return are_parts(columns) & np.isin(columns["job_number"], numbers[numbers != MISSING])


def most_busy(columns: Columns, asked: NDArray[np.int64] | None = None) -> int:
    """Return the most processors that a log shows busy at once; 0 if it tells of no time.

    A job is busy from its submit time + wait on, for its run time, on the processors it was
    allocated, or requested if that is unknown; or, of another amount, has what it ``asked`` for,
    (n_jobs,). Jobs end before others start in the same second. A
    job with an unknown wait does not count, nor do parts of jobs that count as a whole, nor jobs
    larger than any machine.
    """
    submit, wait, run = (columns[name] for name in ("submit_time", "wait_time", "run_time"))
    allocated, requested = columns["allocated_processors"], columns["requested_processors"]
    width = np.where(allocated > 0, allocated, requested) if asked is None else asked
    known = (submit >= 0) & (wait >= 0) & (run > 0) & (width > 0) & (width <= MOST_AMOUNT)
    parts = are_parts(columns)
    if parts.any():
        known &= ~parts_of(columns, columns["job_number"][known & ~parts])
    if not known.any():
        return 0
    start, width = (submit + wait)[known], width[known]
    return int(most_at_once(start, start + run[known], width, np.zeros_like(start))[0])


def size_by_jobs(columns: Columns, name: str, reason: str = "") -> int:
    """Return the size of a machine as estimated from its jobs alone.

    It is the size of the largest job, or the most processors busy at once if these are more. Jobs
    larger than any machine do not count: cleaning drops them.

    Parameters
    ----------
    columns : those of a workload, (n_jobs,) each.
    name : of the workload, in messages.
    reason : why the size in the log is wrong, if the log tells one.

    Raises
    ------
    WorkloadError : no job tells its processors.

    Warns
    -----
    WorkloadWarning : always; it tells which of the two the size is.
    """
    sizes = (columns[c] for c in ("requested_processors", "allocated_processors"))
    largest = max(int(size.max(initial=0, where=size <= MOST_AMOUNT)) for size in sizes)
    if largest < 1:
        why = f"{reason}, and no job" if reason else "no job"
        raise WorkloadError(
            f"{name}: {why} tells its processors, so the machine's size is unknown;"
            " give processors=..."
        )
    busy = min(most_busy(columns), MOST_AMOUNT)
    if busy > largest:
        taken = (
            f"{busy:,} processors, the most that it shows busy at once (largest job {largest:,})"
        )
    else:
        taken = f"its largest job, {largest:,} processors"
    unknown = f": {reason}" if reason else " does not say how large its machine was"
    warn_caller(
        f"{name}{unknown}: taken to be {taken}; processors=... or --processors says otherwise",
        WorkloadWarning,
    )
    return max(busy, largest)


def warn_of_ignored(workload: Workload, partitioned: bool = False, follows: bool = False) -> None:
    """Warn of facts in a log that simulations ignore, a line for each.

    ``partitioned``: the machine has partitions; ``follows``: schedules follow dependencies of jobs.

    Warns
    -----
    WorkloadWarning : partial executions that are jobs of their own, jobs that follow others, more
        than one partition.
    """
    parts = int(np.count_nonzero(are_parts(workload.columns)))
    follow = int(np.count_nonzero((workload.preceding_job > 0) | (workload.think_time > 0)))
    partition = workload.partition
    partitions = len(np.unique(partition[partition != MISSING]))
    facts = {
        f"{parts:,} records are partial executions (status 2 to 4): each is simulated as a job of"
        " its own": parts > 0,
        f"{follow:,} {'job follows' if follow == 1 else 'jobs follow'} others (preceding_job,"
        " think_time): submitted when the log says, unless dependencies is 'after' or"
        " 'closed-loop'": follow > 0 and not follows,
        f"its jobs ran in {partitions} partitions: unless the machine has them (--cluster), each"
        f" may have any of the {workload.processors:,} processors": partitions > 1
        and not partitioned,
    }
    for text, applies in facts.items():
        if applies:
            warn_caller(f"{workload.name}: {text}", WorkloadWarning)


# --- Cleaning -------------------------------------------------------------------------------------

_PARTS = "drop-partial-executions"  # it depends on what the filters after it keep
_REQUEST = "request-from-run-time"
_DID_NOT_RUN = "drop-did-not-run"
_CUT = "run_time cut at requested_time"
#: What is counted where a run time is cut.
CUT = f"repaired: {_CUT}"

#: What to try when a reason has left no job at all.
_HINTS = {
    "dropped: no requested time": "clean='default' takes the run time for a missing requested time",
    "dropped: more processors than the machine": "give a larger one: processors=... or cluster=...",
}


def clean(
    workload: Workload, recipe: str | Sequence[str] = "default", processors: int | None = None
) -> Workload:
    """Apply a recipe, and count what it drops and repairs in ``Workload.cleaning``.

    Parameters
    ----------
    workload : jobs to clean; it stays as it is.
    recipe : name of a recipe of ``RECIPES`` or a filter of ``FILTERS``, several joined by ``+`` or
        as a sequence; they are applied from left to right.
    processors : size of the machine, instead of the workload's own.

    Raises
    ------
    WorkloadError : an unknown name, or no job is left.
    """
    if processors is not None:
        workload = replace(workload, processors=check_processors(processors))
    cleaned = _filtered(workload, filter_names(recipe))
    if not len(cleaned):
        raise WorkloadError(_nothing_left(cleaned, recipe))
    return cleaned


def filter_names(recipe: str | Sequence[str]) -> tuple[str, ...]:
    """Return the names of the filters that a recipe consists of, in order."""
    names: list[str] = []
    if not isinstance(recipe, (str, Sequence)):
        raise WorkloadError(f"clean must be names of recipes such as 'none', not {recipe!r}")
    for part in recipe.split("+") if isinstance(recipe, str) else recipe:
        name = str(part).strip()
        if name in RECIPES:
            names += RECIPES[name]
        elif name in FILTERS:
            names.append(name)
        else:
            raise WorkloadError(unknown("cleaning recipe", name, [*RECIPES, *FILTERS]))
    return tuple(names)


def fills_times(recipe: str | Sequence[str]) -> bool:
    """Return whether a recipe fills in unknown requested times."""
    return _REQUEST in filter_names(recipe)


def keeps_unfinished(recipe: str | Sequence[str]) -> bool:
    """Return whether a recipe knows jobs that have not started or ended, as of a log of now."""
    return _DID_NOT_RUN in filter_names(recipe)


def _filtered(workload: Workload, names: Sequence[str]) -> Workload:
    """Return a workload after some filters."""
    for place, name in enumerate(names, 1):
        if name == _PARTS:
            workload = drop_partial_executions(workload, names[place:])
        elif name in _REPAIRED:
            workload = _REPAIRED[name](workload)
        else:
            reason, bad = _DROPPED[name]
            workload = _dropped(workload, bad(workload), reason)
    return workload


def _nothing_left(cleaned: Workload, recipe: str | Sequence[str]) -> str:
    """Return a message why cleaning has left no job, and what to try."""
    dropped = {r: n for r, n in cleaned.cleaning.items() if r.startswith("dropped: ")}
    shown = recipe if isinstance(recipe, str) else "+".join(recipe)
    why = ", ".join(f"{n:,} {r.removeprefix('dropped: ')}" for r, n in dropped.items())
    text = f"{cleaned.name}: no job is left after cleaning {shown!r}; dropped: {why or 'none'}"
    if dropped:
        hint = _HINTS.get(max(dropped, key=lambda reason: dropped[reason]))
        text += f"; {hint}" if hint else ""
    return text


def _dropped(workload: Workload, bad: NDArray[np.bool_], reason: str) -> Workload:
    """Drop the jobs of the mask ``bad``; without any, the workload is returned as it is."""
    number = int(np.count_nonzero(bad))
    return workload.take(~bad, cleaning={f"dropped: {reason}": number}) if number else workload


def _repaired(
    workload: Workload, at: NDArray[np.bool_], column: str, values: NDArray[Any], reason: str
) -> Workload:
    """Give the jobs of the mask ``at`` the ``values`` in a column."""
    number = int(np.count_nonzero(at))
    if not number:
        return workload
    repaired = workload.with_columns(**{column: np.where(at, values, workload.columns[column])})
    return repaired.counted({f"repaired: {reason}": number})


def fill_processors(workload: Workload) -> Workload:
    """Take allocated for requested processors where these are unknown, and the reverse.

    That no job tells its allocated processors is no fault, and not counted: most tables lack them.
    """
    requested, allocated = "requested_processors", "allocated_processors"
    is_told = (workload.columns[allocated] > 0).any()
    for column, other in ((requested, allocated), (allocated, requested)):
        values = workload.columns[other]
        at = (workload.columns[column] <= 0) & (values > 0)
        if column == allocated and at.any() and not is_told:
            return workload.with_columns(**{column: np.where(at, values, workload.columns[column])})
        workload = _repaired(workload, at, column, values, f"{column} taken from {other}")
    return workload


def request_from_run_time(workload: Workload) -> Workload:
    """Take the run time for the requested time where that is unknown: a perfect estimate."""
    run = workload.run_time
    at = (workload.requested_time <= 0) & (run > 0)
    return _repaired(workload, at, "requested_time", run, "requested_time taken from run_time")


def drop_partial_executions(workload: Workload, rest: Sequence[str]) -> Workload:
    """Drop records of parts of a job (status 2 to 4) if another record is of the whole job.

    A part without a record of the whole stays: it is all that the log tells of its job. It also
    stays if the record of the whole is dropped by ``rest``, the filters that come after this one.
    """
    parts = are_parts(workload.columns)
    if not parts.any():
        return workload
    wholes = _filtered(workload.take(~parts), rest)
    bad = parts_of(workload.columns, wholes.job_number)
    return _dropped(workload, bad, "partial execution of a job that is there as a whole")


def cap_run_time(workload: Workload) -> Workload:
    """Cut the run time at the requested time, and mark the job as killed there."""
    request = workload.requested_time
    over = (workload.run_time > request) & (request > 0)
    if not over.any():
        return workload
    killed = workload.killed | over
    killed.flags.writeable = False
    return replace(_repaired(workload, over, "run_time", request, _CUT), killed=killed)


#: Name of a filter that drops jobs -> why, and which, (n_jobs,) bool.
_DROPPED: dict[str, tuple[str, Callable[[Workload], NDArray[np.bool_]]]] = {
    "drop-negative-submit-time": ("submitted before time 0", lambda jobs: jobs.submit_time < 0),
    "drop-no-run-time": ("no run time", lambda jobs: jobs.run_time <= 0),
    # of jobs that have not ended, run time and status are unknown
    _DID_NOT_RUN: (
        "did not run",
        lambda jobs: (jobs.run_time <= 0) & ((jobs.run_time == 0) | (jobs.status != MISSING)),
    ),
    "drop-no-requested-time": ("no requested time", lambda jobs: jobs.requested_time <= 0),
    "drop-no-processors": ("no processors", lambda jobs: jobs.requested_processors <= 0),
    "drop-larger-than-machine": (
        "more processors than the machine",
        lambda jobs: jobs.requested_processors > jobs.processors,
    ),
    "drop-overrun": (
        "ran longer than requested",
        lambda jobs: (jobs.run_time > jobs.requested_time) & (jobs.requested_time > 0),
    ),
}

#: Name of a filter that repairs jobs -> the function.
_REPAIRED: dict[str, Callable[[Workload], Workload]] = {
    "fill-processors": fill_processors,
    _REQUEST: request_from_run_time,
    "cap-run-time": cap_run_time,
}

#: Name of a filter -> what it does, in words.
FILTERS = {
    _PARTS: "Drop records of parts of a job, where another one is of the whole job.",
    **{name: (repair.__doc__ or "").partition("\n")[0] for name, repair in _REPAIRED.items()},
    **{name: f"Drop jobs: {reason}." for name, (reason, _) in _DROPPED.items()},
}

_VALID: tuple[str, ...] = (
    "fill-processors",
    "drop-negative-submit-time",
    "drop-no-run-time",
    "drop-no-requested-time",
    "drop-no-processors",
    "drop-larger-than-machine",
)

#: Name of a recipe -> its filters, in order.
RECIPES: dict[str, tuple[str, ...]] = {
    "none": (),
    "default": (_PARTS, _REQUEST, *_VALID, "cap-run-time"),
    "unfinished": (
        *(_PARTS, _REQUEST),
        *(_DID_NOT_RUN if name == "drop-no-run-time" else name for name in _VALID),
        "cap-run-time",
    ),
    "glesser": (*_VALID, "cap-run-time"),
    "legrand": (*_VALID, "drop-overrun"),
}
