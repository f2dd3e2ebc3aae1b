"""The workload: jobs as columns of equal length, with the Standard Workload Format's own names.

Nothing here reads files or knows of simulation: :mod:`~hpcgym.workload.io.swf` and
:mod:`~hpcgym.workload.io.tables` build workloads, :mod:`~hpcgym.workload.cleaning` and
:mod:`~hpcgym.workload.extracts` derive others from them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from html import escape
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hpcgym.errors import WorkloadError
from hpcgym.names import (
    CORE,
    JOB_COLUMNS,
    KILLED,
    OWN_COLUMNS,
    UNITS,
    is_job_column,
    job_columns,
    known_columns,
    resource_problem,
)
from hpcgym.workload.columns import MISSING, Ints, as_column, is_missing, read_only, rows_of
from hpcgym.workload.ongoing import Ongoing

if TYPE_CHECKING:
    import pandas as pd

REORDERED = "repaired: moved into order of submission"


def called(numbers: NDArray[np.int64], row: int) -> str:
    """Return what messages call the job of a row: its number, and the row if others have it too.

    ``numbers``: of the jobs, (n_jobs,), -1 of those that have none.
    """
    number = int(numbers[row])
    if number < 0:
        return f"the job of row {row}"
    return (
        f"job {number} (row {row})" if np.count_nonzero(numbers == number) > 1 else f"job {number}"
    )


# --- Jobs that follow several others: pairs of numbers --------------------------------------------


def pairs_of(given: Any, name: str) -> Ints | None:
    """Return pairs of a job and one more that it follows, (n, 2), sorted, each once; None: no pair.

    Raises
    ------
    WorkloadError : no whole numbers above 0, two in each row.
    """
    if given is None or not len(given):
        return None
    pairs = np.asarray(given)
    if pairs.ndim != 2 or pairs.shape[1] != 2 or pairs.dtype.kind not in "iu":
        raise WorkloadError(f"{name}: more_preceding must be whole numbers, of shape (n, 2)")
    pairs = np.unique(pairs.astype(np.int64), axis=0)
    if (pairs < 1).any():
        raise WorkloadError(f"{name}: more_preceding has a number below 1, which is no job's")
    pairs.flags.writeable = False
    return pairs


def of_jobs(pairs: Ints | None, numbers: Ints) -> Ints | None:
    """Return the pairs of the jobs with these numbers, (n, 2)."""
    return None if pairs is None else pairs_of(pairs[np.isin(pairs[:, 0], numbers)], "")


def together(some: Sequence[Ints | None]) -> Ints | None:
    """Return the pairs of several parts of a workload, (n, 2)."""
    known = [pairs for pairs in some if pairs is not None]
    return np.concatenate(known) if known else None


def preceding_texts(workload: Workload) -> NDArray[Any]:
    """Return the numbers of the jobs that each job follows, (n_jobs,), as tables have them.

    Texts such as ``7 9``; ``preceding_job`` itself where no job follows several.
    """
    if workload.more_preceding is None:
        return workload.preceding_job
    more: dict[int, str] = {}
    for job, other in workload.more_preceding.tolist():
        more[job] = f"{more.get(job, '')} {other}"
    columns = (workload.job_number, workload.preceding_job)
    pairs = zip(*(column.tolist() for column in columns), strict=True)
    return np.array([f"{first}{more.get(job, '')}" for job, first in pairs], dtype=object)


# --- The workload ---------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Workload:
    """Jobs in order of submission, read-only; one array of shape (n_jobs,) for each column.

    All times are in seconds, int64; memory is in kilobytes a processor; -1 marks an unknown
    value. A column that no job has is a zero-stride view that takes no memory.

    Attributes
    ----------
    name : its name in tables and pictures.
    processors : size of the machine, the number of identical processors.
    columns : SWF field name -> array of shape (n_jobs,), int64 (``average_cpu_time`` float64);
        ``power_w``, mean power of the job on each of its processors [W], and ``slowdown``, its
        completion time at the lowest frequency over that at the highest, float64; ``array``;
        ``nice``, which may be negative; ``units_per_node``, the most units of the job that one
        node may have, -1: no bound; ``allocated_nodes``, on how many nodes it ran; ``billing``,
        what Slurm bills for a second of it; and ``licence.NAME``, how many of a licence it needs.
    killed : (n_jobs,) bool; True where cleaning cut the run time at the requested time.
    header : the SWF header, ``{"MaxProcs": ["128"], "Queue": ["0 interactive", ...], ...}``.
    cleaning : reason -> number of jobs dropped or repaired for it, in the order of treatment; each
        reason begins with "dropped: ", "repaired: " or "not used: ".
    units : (n_jobs,) int64, at least 1: how many equal units (nodes or tasks) each job asks for;
        None if the jobs ask for processors and nothing else.
    per_unit : resource -> (n_jobs,) int64, demand of a unit of each job: ``core``, which comes
        first and is at least 1, ``mem`` in MB, and any others. ``requested_processors`` is
        units * core. Empty without ``units``.
    initial : the state of the machine when the simulation of an extract begins; None: the machine
        is empty. See :meth:`extract`.
    more_preceding : (n, 2) int64: the number of a job, and that of a further job which it follows,
        beside its ``preceding_job``; it holds for all jobs with the first number. None if no job
        follows several.
    first_submit_s : when the first job of the log was submitted, on the log's clock [s]: weeks and
        the formulas F1 to F4 count from it. It stays when jobs are left out, so that a cleaned log,
        a week, an extract and an episode count from the same time as the whole log.
    """

    name: str
    processors: int
    columns: Mapping[str, NDArray[Any]]
    killed: NDArray[np.bool_]
    header: Mapping[str, list[str]] = field(default_factory=dict)
    cleaning: Mapping[str, int] = field(default_factory=dict)
    units: NDArray[np.int64] | None = None
    per_unit: Mapping[str, NDArray[np.int64]] = field(default_factory=dict)
    initial: Initial | None = None
    first_submit_s: int = 0
    more_preceding: NDArray[np.int64] | None = None

    @classmethod
    def from_columns(
        cls,
        columns: Mapping[str, Any],
        *,
        processors: int,
        name: str = "workload",
        killed: NDArray[np.bool_] | None = None,
        header: Mapping[str, list[str]] | None = None,
        cleaning: Mapping[str, int] | None = None,
        units: Any = None,
        per_unit: Mapping[str, Any] | None = None,
        initial: Initial | None = None,
        first_submit_s: int | None = None,
        more_preceding: Any = None,
    ) -> Workload:
        """Build a workload from any of ``JOB_COLUMNS``, and licences; absent ones become -1.

        Jobs that are out of order are sorted by submit time, equal times in the order given, and
        counted in ``cleaning``.

        Parameters
        ----------
        columns : one of ``JOB_COLUMNS``, or ``licence.NAME`` -> array-like of shape (n_jobs,);
            ``submit_time`` is needed. Read-only arrays of the right dtype are kept as they are,
            others are copied.
        processors : size of the machine, at least 1.
        name, killed, header, cleaning, initial, more_preceding : as the attributes of the class.
        first_submit_s : the same; None: the first known submission of these jobs, 0 without any.
        units, per_unit : as the attributes of the class. With ``per_unit`` alone each job is one
            unit. Without ``core`` a unit has an equal share of ``requested_processors`` where
            these are known, else 1. Unknown ``requested_processors`` are filled.

        Raises
        ------
        WorkloadError : an unknown column, columns of unequal length, a value that is no whole
            number or a time beyond 2^53 s, a negative power but -1, a machine without processors, a
            job without units or cores, or one whose processors are not units * core, a name that no
            resource can have (:func:`hpcgym.names.resource_problem`).
        """
        unknown = [c for c in columns if not is_job_column(c)]
        if unknown:
            raise WorkloadError(f"unknown column {unknown[0]!r}; {known_columns()}")
        if "submit_time" not in columns:
            raise WorkloadError("a workload needs the column 'submit_time'")
        n = len(columns["submit_time"])
        every = job_columns((*JOB_COLUMNS, *columns))
        filled = {c: as_column(c, columns.get(c), n) for c in every}
        if killed is None:
            killed = np.broadcast_to(np.False_, n)
        killed = read_only(np.asarray(killed, dtype=np.bool_))
        if killed.shape != (n,):
            raise WorkloadError(f"'killed' has shape {killed.shape}, 'submit_time' has {(n,)}")
        size = check_processors(processors)
        asked, demands = _resources(units, per_unit or {}, filled, name)
        lines, counts = dict(header or {}), dict(cleaning or {})
        pairs = pairs_of(more_preceding, name)
        workload = cls(
            name, size, filled, killed, lines, counts, asked, demands, initial, more_preceding=pairs
        )
        workload = _in_submission_order(workload)
        first = _first_known(workload) if first_submit_s is None else int(first_submit_s)
        return replace(workload, first_submit_s=first)

    def __len__(self) -> int:
        return len(self.columns["submit_time"])

    def __repr__(self) -> str:
        return f"Workload({self.name!r}, {len(self):,} jobs, {self.processors:,} processors)"

    def __getitem__(self, rows: NDArray[Any] | slice) -> Workload:
        """Return the jobs at ``rows``: ``log[log.user_id == 3]``, ``log[:9]``; as :meth:`take`."""
        if isinstance(rows, slice):
            if (rows.step or 1) > 0:
                return self.take(rows)
            rows = np.arange(len(self))[rows]
        chosen = np.asarray(rows, np.int64 if isinstance(rows, list) and not rows else None)
        mask = chosen.dtype == bool
        if chosen.ndim != 1 or not (mask or chosen.dtype.kind in "iu"):
            shown = f"an array of {chosen.dtype} of shape {chosen.shape}" if chosen.ndim else rows
            raise WorkloadError(
                "jobs are chosen by a mask, log[log.requested_processors > 8], by indices or by a"
                f" slice, not by {shown}"
            )
        if mask and len(chosen) != len(self):
            raise WorkloadError(f"a mask of {len(chosen):,} jobs does not fit {len(self):,} jobs")
        place = np.where(chosen < 0, len(self), 0) + chosen
        if not mask and (place[1:] <= place[:-1]).any():
            raise WorkloadError(
                "jobs stay in order of submission, each once: give indices that rise, such as"
                " log[np.unique(indices)]"
            )
        return self.take(chosen)

    def head(self, n: int = 5) -> pd.DataFrame:
        """Return the first ``n`` jobs as a table, without columns that are unknown for all."""
        table = self[:n].to_pandas()
        return table.loc[:, (table != MISSING).any()]

    def query(self, condition: str) -> Workload:
        """Return the jobs for which a condition holds, such as ``user == 3 and processors > 16``.

        Parameters
        ----------
        condition : an expression of pandas in columns of :meth:`to_pandas`, or ``user``, ``group``,
            ``processors``, ``wait``, ``requested`` and ``submit`` for short. Times are seconds, or
            durations: ``wait > 2h and requested < 1d 12h``. ``wait`` is that of the log, not of a
            simulation. Names stand in quotes: ``user == 'alice'``, ``queue in ['gpu', 'debug']``.

        Raises
        ------
        WorkloadError : an unknown name, a column that is unknown for all jobs, or no condition.
        """
        kept: NDArray[np.bool_] = import_module("hpcgym.workload.queries").jobs_of(self, condition)
        return self[kept]

    def _repr_html_(self) -> str:
        """Return its description and its first jobs, for a notebook."""
        return f"<p>{escape(repr(self))}</p>{self.head().to_html(index=False)}"

    def __getattr__(self, name: str) -> NDArray[Any]:
        """Return a column: ``workload.run_time`` is ``workload.columns["run_time"]``."""
        if name in JOB_COLUMNS:
            return self.columns[name]
        more = "; a table of jobs is to_pandas()" if name in ("jobs", "table", "df") else ""
        raise AttributeError(f"Workload has no attribute {name!r}{more}")

    def __reduce__(self) -> tuple[Any, ...]:
        # Columns that no job has would be blown up to full size by pickling.
        kept = {c: v for c, v in self.columns.items() if not is_missing(v) or c == "submit_time"}
        return _rebuild, (kept, self._beside())

    def _beside(self) -> dict[str, Any]:
        """Return all beside columns, as :meth:`from_columns` takes it."""
        plain = ("processors", "name", "units", "initial", "first_submit_s", "more_preceding")
        known = {name: getattr(self, name) for name in plain}
        known |= {name: dict(getattr(self, name)) for name in ("header", "cleaning", "per_unit")}
        return known | {"killed": self.killed if self.killed.any() else None}

    def take(
        self,
        rows: NDArray[Any] | slice,
        *,
        cleaning: Mapping[str, int] | None = None,
        **changes: Any,
    ) -> Workload:
        """Return the jobs at ``rows`` (a boolean mask, rising indices or a slice).

        ``cleaning`` counts are added to those the workload already has; ``changes`` replace other
        attributes (``name``, ``processors``, ``header``). A slice shares the memory of its columns.
        """
        if isinstance(rows, np.ndarray) and rows.dtype == np.bool_:
            rows = np.flatnonzero(rows)
        taken = {c: rows_of(values, rows) for c, values in self.columns.items()}
        part = replace(
            self,
            columns=taken,
            killed=rows_of(self.killed, rows),
            units=None if self.units is None else rows_of(self.units, rows),
            per_unit={r: rows_of(demand, rows) for r, demand in self.per_unit.items()},
            initial=None if self.initial is None else self.initial.take(rows),
            more_preceding=of_jobs(self.more_preceding, taken["job_number"]),
            **changes,
        )
        return part.counted(cleaning or {})

    def counted(self, cleaning: Mapping[str, int]) -> Workload:
        """Return the same jobs with counts added to ``cleaning``; counts of 0 are left out."""
        counts = dict(self.cleaning)
        for reason, number in cleaning.items():
            if number:
                counts[reason] = counts.get(reason, 0) + int(number)
        return replace(self, cleaning=counts)

    def with_columns(self, **columns: Any) -> Workload:
        """Return a workload in which the named columns are replaced.

        ``first_submit_s`` moves with the first job: a shift of all submit times changes nothing.
        """
        changed = Workload.from_columns({**self.columns, **columns}, **self._beside())
        if changed.submit_time is self.submit_time:
            return changed
        moved = _first_known(changed) - _first_known(self)
        return replace(changed, first_submit_s=self.first_submit_s + moved)

    @property
    def since_first_submit(self) -> NDArray[np.int64]:
        """Seconds from the log's first submission to each job's, (n_jobs,) int64."""
        since: NDArray[np.int64] = self.submit_time - self.first_submit_s
        return since

    def row_at(self, share: float) -> int:
        """Return the first row submitted when that share of the time is over, or later.

        The time is that from the first submission of these jobs to the last, and it is where logs
        are divided: rows before it are for training, the others for tests. Where all are submitted
        at once, it is that share of the jobs, to the nearest.

        Parameters
        ----------
        share : from 0 to 1.

        >>> jobs = {"submit_time": [7, 8, 57, 107], "run_time": [1] * 4}
        >>> Workload.from_columns(jobs, processors=1).row_at(0.5)
        2
        """
        since = self.submit_time - self.submit_time[:1]
        if len(since) == 0 or since[-1] == 0:
            return int(share * len(since) + 0.5)
        return int(np.searchsorted(since, share * since[-1]))

    def called(self, job: int) -> str:
        """Return the name of a job in messages: its number, and its row if others have that too."""
        return called(self.job_number, job)

    def weeks(self, origin_s: int | None = None) -> list[Workload]:
        """Return the weeks of the trace; see :func:`hpcgym.workload.extracts.weeks`."""
        parts: list[Workload] = _room().weeks(self, origin_s)
        return parts

    def months(self, origin_s: int | None = None) -> list[Workload]:
        """Return the months of the trace; see :func:`hpcgym.workload.extracts.months`."""
        parts: list[Workload] = _room().months(self, origin_s)
        return parts

    def extract(self, start: float, end: float | None = None) -> Workload:
        """Return an interval of the trace, with the state of the machine at its beginning.

        See :func:`hpcgym.workload.extracts.extract`.
        """
        part: Workload = _room().extract(self, start, end)
        return part

    def to_pandas(self) -> pd.DataFrame:
        """Return a DataFrame of n_jobs rows: the columns of SWF, others that any job has, units.

        The resources of units come behind these. ``killed``, 1 or 0, is there if any job is marked.
        If jobs follow several others, ``preceding_job`` has texts, such as ``7 9``.
        """
        import pandas as pd

        lacking = [c for c in OWN_COLUMNS if (self.columns[c] == MISSING).all()]
        columns = {c: values for c, values in self.columns.items() if c not in lacking}
        columns["preceding_job"] = preceding_texts(self)
        killed = {KILLED: self.killed.astype(np.int64)} if self.killed.any() else {}
        units = {} if self.units is None else {UNITS: self.units}
        return pd.DataFrame({**columns, **killed, **units, **self.per_unit})


@dataclass(frozen=True, eq=False)
class Initial:
    """The state of a machine just before ``begin``, which a workload may begin with.

    Jobs submitted before ``begin`` run or are queued then; all others are submitted later. Arrays
    are read-only, here and in :class:`~hpcgym.workload.ongoing.Ongoing`, as those of workloads are.

    Attributes
    ----------
    begin : [s] when the simulation begins.
    start : (n_jobs,) int64 [s], when a job that runs at ``begin`` started; -1 for all others.
    past : the jobs that had ended, with their waiting and run times: counters of fair share, users'
        histories and learned run times are rebuilt from them.
    ongoing : further state, if it comes from a simulation; None if it comes from a trace.
    """

    begin: int
    start: Ints
    past: Workload
    ongoing: Ongoing | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "start", read_only(self.start))

    def __repr__(self) -> str:
        running, past = int(self.running.sum()), len(self.past)
        queued = len(self.start) - running
        return (
            f"Initial(begin={self.begin}: {running:,} jobs run, {queued:,} are queued or come"
            f" later, {past:,} had ended)"
        )

    @property
    def running(self) -> NDArray[np.bool_]:
        """Whether a job runs at ``begin``, (n_jobs,) bool."""
        return self.start >= 0

    def take(self, rows: Any) -> Initial:
        """Return the state of the jobs at ``rows``."""
        ongoing = None if self.ongoing is None else self.ongoing.take(rows)
        return replace(self, start=self.start[rows], ongoing=ongoing)


# --- Checks ---------------------------------------------------------------------------------------


def _room() -> Any:
    """Return the package, which has the functions that derive parts: they are not imported here."""
    return import_module("hpcgym.workload")


def check_processors(processors: Any) -> int:
    """Return the size of a machine as an int, or say that it cannot be one."""
    try:
        size = int(processors)
    except (TypeError, ValueError, OverflowError):
        size = 0
    if size < 1 or size != processors:
        raise WorkloadError(f"processors must be a whole number of at least 1, not {processors!r}")
    return size


def _resources(
    units: Any, per_unit: Mapping[str, Any], filled: dict[str, NDArray[Any]], name: str
) -> tuple[NDArray[np.int64] | None, dict[str, NDArray[np.int64]]]:
    """Return units and demands checked, ``core`` first; fills ``requested_processors``."""
    if units is None and not per_unit:
        return None, {}
    n = len(filled["submit_time"])
    for resource in per_unit:
        if problem := resource_problem(resource):
            raise WorkloadError(f"{name}: {problem}")
    ones = np.broadcast_to(np.int64(1), n)
    asked = as_column(UNITS, ones if units is None else units, n)
    requested = filled["requested_processors"]
    core = np.where(requested > 0, requested // asked, 1)
    amounts = {CORE: core, **per_unit}
    demands = {resource: as_column(resource, values, n) for resource, values in amounts.items()}
    product = asked * demands[CORE]
    wrong = (requested > 0) & (requested != product)
    if wrong.any():
        job = int(wrong.argmax())
        raise WorkloadError(
            f"{name}: the job of row {job} requests {requested[job]} processors, which is not its"
            f" units * core = {asked[job]} * {demands[CORE][job]}"
        )
    filled["requested_processors"] = requested if (requested > 0).all() else read_only(product)
    return asked, demands


def _in_submission_order(workload: Workload) -> Workload:
    """Return the jobs sorted by submit time, equal times in the order they have."""
    submit = workload.submit_time
    late = submit[1:] < np.maximum.accumulate(submit[:-1])
    if not late.any():
        return workload
    order = np.argsort(submit, kind="stable")
    return workload.take(order, cleaning={REORDERED: int(np.count_nonzero(late))})


def _first_known(workload: Workload) -> int:
    """Return the first submit time that is known, at least 0 [s]; 0 where none is."""
    submit = workload.submit_time
    place = int(np.searchsorted(submit, 0))
    return int(submit[place]) if place < submit.size else 0


def _rebuild(columns: Mapping[str, NDArray[Any]], others: Mapping[str, Any]) -> Workload:
    """Return a pickled workload."""
    units, demands = others["units"], others["per_unit"]
    for values in (*columns.values(), *demands.values(), *([] if units is None else [units])):
        values.flags.writeable = False  # arrays come out of a pickle writable
    return Workload.from_columns(columns, **others)
