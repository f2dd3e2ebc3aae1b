"""Cleaning: records that are repaired or dropped, counted; filters, and recipes of several.

A filter drops jobs that cannot be simulated or repairs them, and counts both. Recipes: ``glesser``
is that of D. Glesser's thesis (chapter 7), ``legrand`` that of the paper on index and mixed
policies by Legrand, Trystram and Zrigui; ``default`` is ``glesser`` for logs without requested
times, and for those with partial executions, too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcgym.errors import WorkloadError, WorkloadWarning, warn_caller
from hpcgym.naming import MOST_AMOUNT
from hpcgym.workload.model import MISSING, Workload, check_processors

# --- What the records of a log tell beside its jobs -----------------------------------------------
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


def most_busy(columns: Columns) -> int:
    """Return the most processors that a log shows busy at once; 0 if it tells of no time.

    A job is busy from its submit time + wait on, for its run time, on the processors it was
    allocated, or requested if that is unknown. Jobs end before others start in the same second. Of
    a job with an unknown wait nobody knows when it ran: it does not count, nor do parts of jobs
    that count as a whole, nor jobs larger than any machine.
    """
    submit, wait, run = (columns[name] for name in ("submit_time", "wait_time", "run_time"))
    allocated, requested = columns["allocated_processors"], columns["requested_processors"]
    width = np.where(allocated > 0, allocated, requested)
    known = (submit >= 0) & (wait >= 0) & (run > 0) & (width > 0) & (width <= MOST_AMOUNT)
    parts = are_parts(columns)
    if parts.any():
        known &= ~parts_of(columns, columns["job_number"][known & ~parts])
    if not known.any():
        return 0
    start, width = (submit + wait)[known], width[known]
    # an end is sorted before the starts of its second
    times = np.concatenate([2 * (start + run[known]), 2 * start + 1])
    change = np.concatenate([-width, width])
    return int(np.cumsum(change[np.argsort(times, kind="stable")]).max())


def size_by_jobs(columns: Columns, name: str, told: str = "") -> int:
    """Return how large a machine is taken to be that nothing but its jobs tells of.

    As its largest job, or as the most processors that its jobs were busy on at once, if these were
    more. Jobs larger than any machine do not count: cleaning drops them.

    Parameters
    ----------
    columns : those of a workload, (n_jobs,) each.
    name : what messages call it.
    told : why what the log tells of the size is none, if it tells anything.

    Raises
    ------
    WorkloadError : no job tells its processors.

    Warns
    -----
    WorkloadWarning : always; it says which of the two it is.
    """
    sizes = (columns[c] for c in ("requested_processors", "allocated_processors"))
    largest = max(int(size.max(initial=0, where=size <= MOST_AMOUNT)) for size in sizes)
    if largest < 1:
        why = f"{told}, and no job" if told else "no job"
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
    unknown = f": {told}" if told else " does not say how large its machine was"
    warn_caller(
        f"{name}{unknown}: taken to be {taken}; processors=... or --processors says otherwise",
        WorkloadWarning,
    )
    return max(busy, largest)


def warn_of_ignored(workload: Workload, partitioned: bool = False, follows: bool = False) -> None:
    """Say what a log tells of its jobs that simulations do not heed, a line for each.

    ``partitioned``: the machine has partitions; ``follows``: schedules heed who follows whom.

    Warns
    -----
    WorkloadWarning : partial executions that are jobs of their own, jobs that follow others, more
        than one partition.
    """
    parts = int(np.count_nonzero(are_parts(workload.columns)))
    follow = int(np.count_nonzero((workload.preceding_job > 0) | (workload.think_time > 0)))
    partition = workload.partition
    partitions = len(np.unique(partition[partition != MISSING]))
    found = {
        f"{parts:,} records are partial executions (status 2 to 4): each is simulated as a job of"
        " its own": parts > 0,
        f"{follow:,} {'job follows' if follow == 1 else 'jobs follow'} others (preceding_job,"
        " think_time): submitted when the log says, unless dependencies is 'after' or"
        " 'closed-loop'": follow > 0 and not follows,
        f"its jobs ran in {partitions} partitions: unless the machine has them (--cluster), each"
        f" may have any of the {workload.processors:,} processors": partitions > 1
        and not partitioned,
    }
    for text, applies in found.items():
        if applies:
            warn_caller(f"{workload.name}: {text}", WorkloadWarning)


# --- Cleaning -------------------------------------------------------------------------------------

Filter = Callable[[Workload], Workload]

_PARTS = "drop-partial-executions"  # which asks what the filters after it keep
_REQUEST = "request-from-run-time"

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
            told = f"recipes: {', '.join(RECIPES)}; filters: {', '.join(FILTERS)}"
            near = get_close_matches(name, [*RECIPES, *FILTERS], n=1)
            hint = f"did you mean {near[0]!r}? " if near else ""
            raise WorkloadError(f"unknown cleaning recipe {name!r}; {hint}{told}")
    return tuple(names)


def fills_times(recipe: str | Sequence[str]) -> bool:
    """Return whether a recipe finds another time where no requested time is told."""
    return _REQUEST in filter_names(recipe)


def _filtered(workload: Workload, names: Sequence[str]) -> Workload:
    """Return what filters leave of a workload."""
    for place, name in enumerate(names, 1):
        if name == _PARTS:
            workload = drop_partial_executions(workload, names[place:])
        else:
            workload = FILTERS[name](workload)
    return workload


def _nothing_left(cleaned: Workload, recipe: str | Sequence[str]) -> str:
    """Say why cleaning has left no job, and what to try."""
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
    told = (workload.columns[allocated] > 0).any()
    for column, other in ((requested, allocated), (allocated, requested)):
        values = workload.columns[other]
        at = (workload.columns[column] <= 0) & (values > 0)
        if column == allocated and at.any() and not told:
            return workload.with_columns(**{column: np.where(at, values, workload.columns[column])})
        workload = _repaired(workload, at, column, values, f"{column} taken from {other}")
    return workload


def request_from_run_time(workload: Workload) -> Workload:
    """Take the run time for the requested time where that is unknown: a perfect estimate."""
    run = workload.run_time
    at = (workload.requested_time <= 0) & (run > 0)
    reason = "requested_time taken from run_time"
    return _repaired(workload, at, "requested_time", run, reason)


def drop_partial_executions(workload: Workload, rest: Sequence[str] = ()) -> Workload:
    """Drop records of parts of a job (status 2 to 4), where another one is of the whole job.

    A part without a record of the whole stays: it is all that the log tells of its job. So it does
    if the record of the whole is dropped itself by ``rest``, the filters that come after this one.
    """
    parts = are_parts(workload.columns)
    if not parts.any():
        return workload
    wholes = _filtered(workload.take(~parts), rest)
    bad = parts_of(workload.columns, wholes.job_number)
    return _dropped(workload, bad, "partial execution of a job that is there as a whole")


def drop_negative_submit_time(workload: Workload) -> Workload:
    """Drop jobs submitted before the trace's time 0, or at an unknown time."""
    return _dropped(workload, workload.submit_time < 0, "submitted before time 0")


def drop_no_run_time(workload: Workload) -> Workload:
    """Drop jobs that never ran: cancelled in the queue, of zero length, or unknown."""
    return _dropped(workload, workload.run_time <= 0, "no run time")


def drop_no_requested_time(workload: Workload) -> Workload:
    """Drop jobs whose requested time is unknown, zero or negative."""
    return _dropped(workload, workload.requested_time <= 0, "no requested time")


def drop_no_processors(workload: Workload) -> Workload:
    """Drop jobs whose number of requested processors is unknown, zero or negative."""
    return _dropped(workload, workload.requested_processors <= 0, "no processors")


def drop_larger_than_machine(workload: Workload) -> Workload:
    """Drop jobs that request more processors than the machine has."""
    bad = workload.requested_processors > workload.processors
    return _dropped(workload, bad, "more processors than the machine")


def cap_run_time(workload: Workload) -> Workload:
    """Cut the run time at the requested time, and mark the job as killed there."""
    request = workload.requested_time
    over = (workload.run_time > request) & (request > 0)
    if not over.any():
        return workload
    killed = workload.killed | over
    killed.flags.writeable = False
    reason = "run_time cut at requested_time"
    return replace(_repaired(workload, over, "run_time", request, reason), killed=killed)


def drop_overrun(workload: Workload) -> Workload:
    """Drop jobs that ran for longer than requested."""
    request = workload.requested_time
    bad = (workload.run_time > request) & (request > 0)
    return _dropped(workload, bad, "ran longer than requested")


#: Name of a filter -> the function.
FILTERS: dict[str, Filter] = {
    "fill-processors": fill_processors,
    _REQUEST: request_from_run_time,
    _PARTS: drop_partial_executions,
    "drop-negative-submit-time": drop_negative_submit_time,
    "drop-no-run-time": drop_no_run_time,
    "drop-no-requested-time": drop_no_requested_time,
    "drop-no-processors": drop_no_processors,
    "drop-larger-than-machine": drop_larger_than_machine,
    "cap-run-time": cap_run_time,
    "drop-overrun": drop_overrun,
}

_VALID = (
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
    "glesser": (*_VALID, "cap-run-time"),
    "legrand": (*_VALID, "drop-overrun"),
}
