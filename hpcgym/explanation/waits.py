"""What all waiting of a schedule is due to: its passes again, and what each job waits for."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hpcgym.errors import HpcgymError, check_choice
from hpcgym.explanation.reasons import REASONS, needs_of_nodes, reasons_at
from hpcgym.explanation.watching import (
    exceeding,
    moment_of,
    queued,
    said_before,
    unseen,
    why_not_watched,
)
from hpcgym.naming import NAMED, ONCE_CALLED, counted
from hpcgym.progress import silence
from hpcgym.schedule.result import Result
from hpcgym.simulation.continued import again
from hpcgym.workload.names import called, names_of
from hpcgym.workload.slicing import WEEK_S

if TYPE_CHECKING:
    import pandas as pd

    from hpcgym.simulation.driver import Simulation
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
        simulation, _ = again(result)
    watched = _Watched(result, simulation, seconds, progress)
    simulation.after_pass = watched.note
    simulation.drive(int(result.start.max(initial=0)))
    jobs = pd.Index(result.workload.job_number, name="job_number")
    return pd.DataFrame(seconds, index=jobs, columns=list(REASONS))


class _Watched:
    """The queue after the last pass, and what each job in it waits for."""

    def __init__(
        self,
        result: Result,
        simulation: Simulation,
        seconds: NDArray[np.int64],
        progress: Callable[[int, int], None],
    ) -> None:
        self.result, self.seconds, self.progress = result, seconds, progress
        self.simulation, self.arrays = simulation, simulation.arrays
        self.needs = needs_of_nodes(result)
        self.queue = np.empty(0, np.int64)
        self.codes = np.empty(0, np.int8)
        self.came, self.time, self.passes = 0, 0, 0

    def note(self) -> None:
        """Count what jobs have waited for since the last pass, and look at the queue again."""
        at = moment_of(self.arrays)
        self.seconds[self.queue, self.codes] += at.time - self.time
        coming = np.arange(self.came, int(self.arrays.sim.next))
        # passes at single events: there is none for a job that does not fit as it comes
        submitted = self.result.workload.submit_time[coming]
        self.seconds[coming, list(REASONS).index("processors")] += at.time - submitted
        self.time, self.came = at.time, self.came + len(coming)
        self.queue = queued(self.arrays, np.concatenate((self.queue, coming)))
        barred = np.any(exceeding(self.simulation, self.queue), axis=1)
        self.codes = reasons_at(self.result, self.queue, at, self._unseen(), barred, self.needs)
        self.passes += 1
        if self.passes % _EVERY == 0:
            self.progress(self.came, len(self.seconds))

    def _unseen(self) -> NDArray[np.bool_]:
        """Return which jobs in the queue the pass does not look at; none but for Slurm."""
        now = np.flatnonzero(self.arrays.progress["start"] == self.time)
        looked = np.union1d(self.queue, now)
        return np.isin(self.queue, unseen(self.result, self.simulation, looked))


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
