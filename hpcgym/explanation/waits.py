"""What all waiting of a schedule is due to: its passes again, and what each job waits for."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hpcgym.errors import HpcgymError, check_choice
from hpcgym.explanation.reasons import REASONS, needs_of_nodes, reasons_at
from hpcgym.explanation.watching import Watched, said_before, why_not_watched
from hpcgym.naming import NAMED, ONCE_CALLED, counted
from hpcgym.progress import silence
from hpcgym.schedule.result import Result
from hpcgym.workload.names import called, names_of
from hpcgym.workload.slicing import WEEK_S

if TYPE_CHECKING:
    import pandas as pd

    from hpcgym.workload.model import Workload

#: What jobs may be grouped by -> the column of the workload that holds it.
GROUPS = {
    "requested_processors": "requested_processors",
    **NAMED,
    "week": "submit_time",
}
#: Groups that have an order of their own.
ORDERED = ("requested_processors", "week")
_EVERY = 256  # passes between two reports of progress


def waits(result: Result, progress: Callable[[int, int], None] = silence) -> pd.DataFrame:
    """Return how long each job waited for what.

    The simulation is made again, a pass at a time. From each pass to the next a job in the queue
    waits for one thing: the first that holds of :data:`hpcgym.explanation.reasons.REASONS`.

    Parameters
    ----------
    result : of :func:`hpcgym.simulate`.
    progress : is called now and then with how many jobs have come, and how many there are.

    Returns
    -------
    A row a job, in the order of the workload, index ``job_number``; a column a reason, int64 [s].
    The sum of a row is the job's wait.

    Raises
    ------
    HpcgymError : the passes cannot be made again: under limits of power or energy, where jobs share
        nodes, where nodes fail or jobs stop others, where a dispatcher or a function says what
        starts; or an extract, whose first jobs waited before it begins.
    """
    import pandas as pd

    why = why_not_watched(result)
    if not why and result.workload.initial is not None:
        why = "for an extract, whose first jobs waited before it begins"
    if why:
        raise HpcgymError(f"why all jobs waited cannot be worked out {why}")
    seconds = np.zeros((len(result.start), len(REASONS)), np.int64)
    with said_before():
        watched = Watched(result)
    submit, needs = result.workload.submit_time, needs_of_nodes(result)
    processors = list(REASONS).index("processors")
    queue, codes = np.empty(0, np.int64), np.empty(0, np.int8)
    came = time = 0
    for passes, at in enumerate(watched.each_pass(int(result.start.max(initial=0)))):
        seconds[queue, codes] += at.time - time
        coming = np.arange(came, watched.come)
        # where each event has a pass, a job that does not fit as it comes has none
        seconds[coming, processors] += at.time - submit[coming]
        time, came = at.time, watched.come
        before = np.concatenate((queue, coming))
        queue = watched.queued(before)
        unseen = np.isin(queue, watched.unseen(before))
        barred = np.any(watched.exceeding(queue), axis=1)
        codes = reasons_at(result, queue, at, unseen, barred, needs)
        if passes % _EVERY == 0:
            progress(came, len(seconds))
    jobs = pd.Index(result.workload.job_number, name="job_number")
    return pd.DataFrame(seconds, index=jobs, columns=list(REASONS))


def waits_by(result: Result, waited: pd.DataFrame, by: str) -> pd.DataFrame:
    """Return what groups of jobs waited for.

    Parameters
    ----------
    result : of :func:`hpcgym.simulate`.
    waited : of :func:`waits`.
    by : one of :data:`GROUPS`: "requested_processors" has classes that double, "week" counts from
        the first submission, the others are what the log tells of a job.

    Returns
    -------
    A row a group, the one that waited longest first, sizes and weeks in their order; index ``by``.
    Columns: ``jobs``, their number, and one a reason, int64 [s].

    Raises
    ------
    HpcgymError : another name, or the log does not tell it of any job.
    """
    by = check_choice("by", ONCE_CALLED.get(by, by), GROUPS)
    workload = result.workload
    numbers, names = _groups(workload, by)
    kinds, kind = np.unique(numbers, return_inverse=True)
    table = waited.groupby(kind.ravel()).sum()
    table.index = table.index.map(lambda place: names(int(kinds[place]))).rename(by)
    table.insert(0, "jobs", np.bincount(kind.ravel(), minlength=len(kinds)))
    if by in ORDERED:
        return table
    longest = table.drop(columns="jobs").sum(axis=1)
    return table.loc[longest.sort_values(ascending=False, kind="stable").index]


def shortened(table: pd.DataFrame, most: int) -> pd.DataFrame:
    """Return a table of :func:`waits_by` with the last of more than ``most`` rows as one.

    Sizes and weeks, which have an order of their own, stay as they are.
    """
    import pandas as pd

    if len(table) <= most or table.index.name in ORDERED:
        return table
    kept, rest = table.iloc[: most - 1], table.iloc[most - 1 :]
    one = pd.Index([counted(len(rest), "other")], name=table.index.name)
    return pd.concat((kept, pd.DataFrame([rest.sum()], index=one)))


def size_classes(
    processors: NDArray[np.int64], most: int
) -> tuple[NDArray[np.int64], Callable[[int], str]]:
    """Return the number of each job's class of sizes, (n_jobs,) int64, and what a class is called.

    Classes double, 1, 2, 3 to 4, 5 to 8, ... processors, up to the ``most`` that a job may have.
    """

    def name(power: int) -> str:
        low, high = 2**power // 2 + 1, min(2**power, most)
        return f"{low} to {high}" if low < high else str(high)

    return np.ceil(np.log2(processors)).astype(np.int64), name


def _groups(workload: Workload, by: str) -> tuple[NDArray[np.int64], Callable[[int], str]]:
    """Return the number of each job's group, and what a group is called."""
    column = getattr(workload, GROUPS[by])
    if by == "requested_processors":
        return size_classes(column, workload.processors)
    if by == "week":
        first = column.min(initial=0)
        return (column - first) // WEEK_S + 1, lambda week: f"week {week}"
    if len(column) and column.max() < 0:
        raise HpcgymError(f"{workload.name}: the log does not tell the {by} of any job")
    known = names_of(workload, GROUPS[by])
    return column, lambda number: called(known, by, number)
