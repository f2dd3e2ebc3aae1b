"""What can be proved of all runs of jobs, also of those that were lost, whatever ended them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from hpcgym.schedule.lost_runs import LostRuns, last_starts, queued_at
from hpcgym.validation.schedules import Mask, Times, cases

if TYPE_CHECKING:
    from hpcgym.schedule.result import Result

#: Nothing waits for nodes that are switched on.
NO_DELAYS = (0, 0)
_RELATIVE_ERROR = 1e-12


def check_shapes(result: Result, lost: LostRuns, on_nodes: bool = True) -> list[str]:
    """Find a schedule that does not tell which runs were lost, and who had which nodes."""
    k, m = len(lost.job), len(lost.node)
    shapes = [np.shape(column) for column in lost[1:]]
    told = not on_nodes or result.allocation is not None
    if not told or shapes != [(k,), (k,), (k,), (k + 1,), (m,), (m,)]:
        return ["the schedule does not tell which nodes lost runs and jobs had"]
    ordered = np.lexsort((lost.end, lost.job))
    if (ordered != np.arange(k)).any() or (np.diff(lost.first) < 0).any():
        return ["lost runs are not in the order of jobs and times"]
    return cases((lost.job < 0) | (lost.job >= len(result.start)), "lost run {} is of no job")


def last_runs(runs: Result, job: Times) -> Mask:
    """Return which of all runs is the last of its job, (n_runs,); ``job`` is of each run."""
    order = np.lexsort((runs.start, job))
    last = np.zeros(len(job), np.bool_)
    last[order] = np.append(np.diff(job[order]) != 0, True)[: len(job)]
    return last


def check_successive(result: Result, lost: LostRuns, length: Times) -> list[str]:
    """Find lost runs that were over when they were lost, or that overlap another of their job.

    ``length`` (n_jobs,) is how long a whole run lasts [s].
    """
    job, start, end = lost.job, lost.start, lost.end
    since, last = queued_at(result)
    return [
        *cases(end - start >= length[job], "lost run {} of job {} was over at {} s", job, end),
        *cases(start < since, "lost run {} of job {} starts at {} s, before the last", job, start),
        *cases(last_starts(result) < last, "job {} starts at {} s, while another run of it lasts",
               last_starts(result)),
    ]  # fmt: skip


def energies_of_runs(result: Result, runs: Result) -> list[str]:
    """Compare energies of the schedule with those of its runs."""
    mine, theirs = result.metrics, runs.metrics
    charged = math.fsum(result.books.by_job().tolist())
    pairs = [(name, mine[name], theirs[name]) for name in theirs if name.startswith("energy_")]
    pairs.append(("what jobs are charged", charged, theirs["energy_busy_j"]))
    return [
        f"{name}: {value} J instead of {expected} J"
        for name, value, expected in pairs
        if not math.isclose(value, expected, rel_tol=_RELATIVE_ERROR)
    ]
