"""Common parts of readers of sites' logs: fields as columns of texts, and counts of dropped lines.

A reader defines the fields and how each is read; the rest is here. A line becomes a job, or it is
counted by the reason why it does not. So the jobs of a workload and the counts that begin with
"dropped: " add up to the lines of the file, without blank lines and the names of fields.
"""

from __future__ import annotations

import math
import re
from array import array
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hpcgym.dates import Clock
from hpcgym.errors import WorkloadError, WorkloadWarning, warn_caller
from hpcgym.files import lines_in, pieces_of
from hpcgym.names import NAME_COLUMNS, NODES, UNITS_PER_NODE, printable
from hpcgym.units import OF_LOG, Durations, count_in, nearest_second, seconds_in
from hpcgym.workload.columns import MAX_TIME, MISSING, distinct
from hpcgym.workload.io.files import SKIPS, ReadOptions, file_name, no_job
from hpcgym.workload.io.tables import from_pandas
from hpcgym.workload.model import Workload

Ints = NDArray[np.int64]

#: A field, and the parser of its texts, whose ValueError describes valid texts.
Told = tuple[str, Callable[[str], Any]]

#: Prefix of the names of columns of generic resources.
#: What some jobs ask for, and no log tells of a machine.
ALONE = "not used: {}, by which a job is alone on its nodes"
GENERIC = "gres/"

MOST_MB, MOST_KB = 1 << 40, 1 << 50  # of memory: more than any machine has

_REQUEUED_S = 60  # a job is submitted again within this time after a run of it has ended

MOVED = "repaired: submit_time moved to the start, which the log has before it"
HELD = "repaired: submit_time moved to when the job became eligible"
AGAIN = "repaired: run that was not the last of its job taken for a job of its own"
RESUBMITTED = "repaired: submit_time moved to the end of the run before, of the same job"
UNEVEN = (
    "repaired: cores, GPUs or the like that its nodes cannot share alike: as many on each as on"
    " the largest"
)
ANYWHERE = "repaired: nodes are not told, so its cores may lie on any"
CUT = "; it is the last line: is the file truncated?"


# --- Values of the texts of fields ----------------------------------------------------------------


def above_0(text: str) -> int:
    """Return a whole number, -1 of 0 and of what is below it."""
    return max(count_in(text, signed=True), 0) or MISSING


def bounded(memory: Fraction | float, most: int) -> int:
    """Return memory, rounded up."""
    if not memory <= most:  # or it is no number
        raise ValueError("more than any machine has")
    return math.ceil(memory)


def task_of(text: str) -> int:
    """Return the number of a task of an array, -1 of 0: of an invalid job."""
    return count_in(text) or MISSING


def lasted(text: str) -> int:
    """Return the whole seconds of a duration such as ``1-02:03:04``."""
    return nearest_second(seconds_in(text))


def time_limit(text: str, how: Durations = OF_LOG) -> int:
    """Return the whole seconds of a time limit, -1 of 0: it is not told."""
    return nearest_second(seconds_in(text, how)) or MISSING


def told_by_hosts(field: str, cores: Callable[[str], list[int]]) -> dict[str, Told]:
    """Return the facts in a field with the processors of a job on each host."""
    return {
        "given": (field, lambda text: sum(cores(text))),
        "nodes": (field, lambda text: len(cores(text))),
        "most_on_node": (field, lambda text: max(cores(text))),
        "divisor": (field, lambda text: math.gcd(*cores(text))),
    }


def begins_with(record: re.Pattern[str], head: bytes) -> bool:
    """Tell whether the first line of a file is a record; ``head``: its first bytes."""
    first = head.lstrip(b"\xef\xbb\xbf\r\n ").split(b"\n", 1)[0].decode("utf-8", "replace")
    return record.fullmatch(first.rstrip()) is not None


# --- The records of a log -------------------------------------------------------------------------


@dataclass
class LogRecords:
    """Records of a log as columns of texts; those that are no jobs are dropped and counted.

    A text is kept once, however often it stands there, and read once by each parser: most records
    say what others do.

    Attributes
    ----------
    path : of the file.
    how : the options by which it is read.
    lines : number of each record's line, from 1, (n,) int64.
    fields : name, in lower case -> the place of each record's text among all, (n,) int32.
    beside : other columns that stay with their records, (n,) each.
    counts : reason -> number of records, as :attr:`hpcgym.workload.Workload.cleaning`.
    refused : wrong lines, which are skipped.
    called : word for a record in messages: ``line``, or ``job`` for a file without lines.
    """

    path: Path
    how: ReadOptions
    lines: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    fields: dict[str, NDArray[np.int32]] = field(default_factory=dict)
    beside: dict[str, NDArray[Any]] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)
    refused: set[int] = field(default_factory=set)
    called: str = "line"
    _texts: list[str] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.lines)

    def pieces(self, kind: str) -> Iterator[tuple[int, str]]:
        """Go through the file in pieces of whole lines, each with the number of its first line.

        ``kind`` is what the file should be, for errors.

        Warns
        -----
        WorkloadWarning : the last line has no end, and so may be cut.
        """
        line, piece = 1, "\n"
        for piece in pieces_of(self.path, kind, WorkloadError):
            yield line, piece
            line += piece.count("\n")
        if not piece.endswith("\n"):
            warn_caller(
                f"{self.path}, line {line}: this last line has no end: is the file truncated? Its"
                " last field may be cut, and later lines lost",
                WorkloadWarning,
            )

    def texts_of_lines(self, kind: str) -> Iterator[tuple[int, str, str]]:
        """Go through the file: the number of each line, its text, and a hint if it may be cut.

        ``kind`` and warnings are those of :meth:`pieces`.
        """
        for first, piece in self.pieces(kind):
            yield from numbered_lines(first, piece)

    def fill(
        self,
        names: Iterable[str],
        records: Iterable[tuple[Iterable[int], Mapping[str, Iterable[str]]]],
    ) -> None:
        """Take all records: the names of their fields; of some at a time lines and fields."""
        places: defaultdict[str, int] = defaultdict()
        places.default_factory = places.__len__  # a new text comes last
        lines, columns = array("q"), {name.casefold(): array("i") for name in names}
        for numbers, fields in records:
            lines.extend(numbers)
            for name, texts in fields.items():
                columns[name.casefold()].extend(map(places.__getitem__, texts))
        self.lines = np.array(lines, np.int64)
        self.fields = {name: np.array(column, np.int32) for name, column in columns.items()}
        self._texts = [*places]

    def refuse(self, line: int, problem: str, reason: str) -> None:
        """Raise an error for a wrong line, or count it once if wrong lines are to be skipped.

        Raises
        ------
        WorkloadError : the message names the file, the line and the problem.
        """
        if self.how.errors == "raise":
            raise WorkloadError(f"{self.path}, {self.called} {line}: {problem}{SKIPS}")
        if line not in self.refused:
            self.refused.add(line)
            self.counts[f"dropped: {reason}"] += 1

    def refuse_at(self, at: ArrayLike, problem: str, reason: str) -> None:
        """Refuse the records at which a mask is true, (n,)."""
        for line in self.lines[np.flatnonzero(at)].tolist():
            self.refuse(line, problem, reason)

    def column(
        self, name: str, parse: Callable[[str], Any], blank: Any = MISSING, dtype: Any = np.int64
    ) -> NDArray[Any]:
        """Return a field as values, (n,); blank texts, and wrong ones skipped, are ``blank``."""
        values, place = self.values(name, parse, blank, dtype)
        column: NDArray[Any] = values[place]
        return column

    def values(
        self, name: str, parse: Callable[[str], Any], blank: Any = MISSING, dtype: Any = object
    ) -> tuple[NDArray[Any], Ints]:
        """Return the values of a field's distinct texts, and the place of each record's, (n,)."""
        texts, place = self._distinct(name)
        values: list[Any] = []
        wrong: dict[int, str] = {}
        for text in texts:
            try:
                values.append(parse(text) if text else blank)
            except ValueError as problem:
                wrong[len(values)] = f"{name} is {text[:40]!r}, {problem}"
                values.append(blank)
        for k in np.flatnonzero(np.isin(place, [*wrong])).tolist() if wrong else ():
            self.refuse(int(self.lines[k]), wrong[int(place[k])], f"line with a wrong {name}")
        return np.fromiter(values, dtype, len(values)), place

    def texts(self, *names: str) -> list[str]:
        """Return the first of some fields that the log has; blanks if it has none of them."""
        texts, place = self._distinct(*names)
        return [texts[k] for k in place.tolist()]

    def _distinct(self, *names: str) -> tuple[list[str], Ints]:
        """Return the texts in the first of some fields, and which of them each record has."""
        for name in names:
            if name.casefold() in self.fields:
                known, place = distinct(self.fields[name.casefold()].astype(np.int64))
                return [self._texts[k] for k in known.tolist()], place
        return [""], np.zeros(len(self), np.int64)

    def parsed(self, name: str, parse: Callable[[str], Any], blank: Any = MISSING) -> list[Any]:
        """Return a field as a list of any values; else as :meth:`column`."""
        values: list[Any] = self.column(name, parse, blank, object).tolist()
        return values

    def numbers(self, *fields: Told) -> Ints:
        """Return a column of whole numbers, (n,), -1 where it is unknown.

        Of several fields the first that is above 0 counts.
        """
        columns = [self.column(*pair) for pair in fields]
        return columns[0] if len(columns) == 1 else first_known(*columns)

    def names(self, *fields: str) -> NDArray[np.object_]:
        """Return a field as names that may stand in headers, None for blank texts, (n,)."""
        texts, place = self._distinct(*fields)
        return np.array([printable(text) or None for text in texts], object)[place]

    def count(self, reason: str, at: ArrayLike) -> None:
        """Count the records of a mask under a reason: a repair, or a fact that is not used."""
        if number := int(np.count_nonzero(at)):
            self.counts[reason] += number

    def drop(self, reasons: Sequence[str]) -> None:
        """Drop records, each for its reason, and count them; those with a blank reason stay."""
        self.counts.update(f"dropped: {reason}" for reason in reasons if reason)
        self.keep(np.array([not reason for reason in reasons], np.bool_))

    def drop_copies(self) -> None:
        """Drop records that equal an earlier one in all fields: dumps of several spans overlap."""
        import pandas as pd

        again = pd.DataFrame(self.fields).duplicated().to_numpy()
        self.count("dropped: line that stands there twice", again)
        self.keep(~again)

    def keep(self, at: NDArray[np.bool_ | np.int64]) -> None:
        """Keep only the records of a mask, or of places, in which one may stand several times."""
        self.lines = self.lines[at]
        self.fields = {name: places[at] for name, places in self.fields.items()}
        self.beside = {name: values[at] for name, values in self.beside.items()}

    def settled(self, columns: Mapping[str, Any]) -> dict[str, Any]:
        """Keep only the records that have not been refused, and return their columns.

        Raises
        ------
        WorkloadError : no job is left.
        """
        at = ~np.isin(self.lines, [*self.refused])
        if not at.any():
            raise no_job(self.path, self.counts, "no job that ran and ended")
        self.keep(at)
        return {name: np.asarray(values)[at] for name, values in columns.items()}


def numbered_lines(first: int, piece: str) -> Iterator[tuple[int, str, str]]:
    """Go through the lines of a text, of which the first has a number, as of a whole file."""
    for line, (text, ended) in enumerate(lines_in(piece), first):
        yield line, text, "" if ended else CUT


def first_known(*columns: Ints) -> Ints:
    """Return for each job the first value above 0 among some columns; -1: no such value."""
    known: Ints = np.full(columns[0].shape, MISSING, dtype=np.int64)
    for column in reversed(columns):
        known = np.where(column > 0, column, known)
    return known


# --- Jobs of records ------------------------------------------------------------------------------


def numbered(number: Ints, task: Ints, part: Any = 0) -> dict[str, Ints]:
    """Return the columns ``job_number`` and, if there are any, ``array`` of jobs.

    Tasks of an array have its number. They get numbers of their own, array by array, from the one
    behind the greatest on.

    Parameters
    ----------
    number, task, part : of each job, (n,): its number; the task, -1 if it is of no array;
        what else tells tasks apart.
    """
    at = task != MISSING
    if not at.any():
        return {"job_number": number}
    of = (number, task, np.broadcast_to(part, at.shape))
    tasks = [*zip(*(column[at].tolist() for column in of), strict=True)]
    new = {task: own for own, task in enumerate(sorted({*tasks}), int(number.max()) + 1)}
    own = number.copy()
    own[at] = [new[task] for task in tasks]
    return {"job_number": own, "array": np.where(at, number, MISSING)}


def processors(
    log: LogRecords, given: Ints, asked: Ints, fields: str, problem: str
) -> dict[str, Ints]:
    """Return the columns of processors: those that a job was given, else those it asked for.

    Parameters
    ----------
    log : refuses the records without either number, and counts those where they differ.
    given, asked : (n,) each, -1 where unknown.
    fields : the fields of both numbers in the log, for the count.
    problem : text about a record without either.
    """
    cores = first_known(given, asked)
    log.count(f"repaired: requested_processors taken from {fields}", (asked > 0) & (asked != cores))
    log.refuse_at(cores <= 0, problem, "line without processors")
    return {"requested_processors": cores, "allocated_processors": given}


#: Columns of the records of logs that some logs lack, and tables do not have.
_UNTOLD = ("eligible", "nodes", "most_on_node", "divisor", "gpus", "memory_mb", "used_kb")


def workload_of(log: LogRecords, columns: dict[str, Any], clock: Clock, *key: str) -> Workload:
    """Return the workload of a log's jobs, with times from its first submission on.

    Parameters
    ----------
    log : its records are jobs.
    columns : as in tables, (n,) each, of :meth:`LogRecords.settled`; ``submit_time`` in seconds
        since 1970. In place of waits they have ``start`` and, if the log tells it, ``eligible``. In
        place of units and memory they may have ``nodes``, ``memory_mb``, ``gpus`` and, with the
        prefix ``GENERIC``, other resources of jobs; ``used_kb``, the memory that a job used;
        ``most_on_node``, the processors of a job on the node with most of them; and ``divisor``,
        the greatest common divisor of its processors on each node.
    clock : the clock by which dates were read.
    key : fields in which all runs of a job are equal.

    Raises
    ------
    WorkloadError : as :func:`hpcgym.workload.from_pandas`.
    """
    import pandas as pd

    untold = dict.fromkeys(_UNTOLD, np.full(len(log), MISSING))
    runs = np.zeros(len(log), np.int64)
    for name in key:
        _, runs = distinct(runs * (1 << 31) + log.fields.get(name.casefold(), 0))
    columns, moved = _with_waits({**untold, **columns}, runs)
    columns, repaired = _with_units(columns, log.how.cluster is not None)
    for reason, at in {**moved, **repaired}.items():
        log.count(reason, at)
    kept = {name: v for name, v in columns.items() if name not in NAME_COLUMNS or any(v)}
    frame = pd.DataFrame(kept, index=pd.Index(log.lines, name=log.called))
    first = int(frame["submit_time"].min())
    frame = frame.assign(submit_time=frame["submit_time"] - first)
    frame = frame.sort_values("submit_time", kind="stable")  # logs are in any order
    how = log.how
    workload = from_pandas(frame, processors=how.processors, name=str(log.path), errors=how.errors)
    header = {**clock.header(first), **workload.header}
    return replace(workload.counted(log.counts), name=file_name(log.path), header=header)


#: Columns of jobs, and what was repaired in them: a reason -> a mask of jobs, (n,) bool.
Repaired = tuple[dict[str, Any], dict[str, NDArray[np.bool_]]]


def _with_waits(columns: Mapping[str, Any], runs: Ints) -> Repaired:
    """Return the submit and waiting times of jobs in place of their starts.

    A job cannot start before it is eligible, and one with ``--begin`` or a dependency is eligible
    later than it is submitted: ``submit_time`` is the later time. If runs have the same number in
    ``runs``, they are of one job, and each was submitted when the one before ended. No job is
    submitted after its start. A job that has not started has the start -1, and the wait -1.
    """
    changed = dict(columns)
    start, eligible, submit = changed.pop("start"), changed.pop("eligible"), changed["submit_time"]
    waits = start == MISSING
    start = np.where(waits, MAX_TIME, start)  # it starts later than all
    order = np.lexsort((start, runs))
    again = (np.diff(runs[order]) == 0) & ~waits[order[:-1]]
    before = np.full(len(start), MISSING)
    before[order[1:][again]] = (start + changed["run_time"])[order[:-1][again]]
    # of n runs n - 1 have another one behind them; a job that came later only reuses the number
    repaired = {AGAIN: (before >= 0) & (submit <= before + _REQUEUED_S)}
    for reason, time in ((HELD, eligible), (RESUBMITTED, before)):
        repaired[reason] = (time > submit) & (time <= start)
        submit = np.where(repaired[reason], time, submit)
    repaired[MOVED] = submit > start
    submit = np.minimum(submit, start)
    wait = np.where(waits, MISSING, start - submit)
    return {**changed, "submit_time": submit, "wait_time": wait}, repaired


def _with_units(columns: Mapping[str, Any], for_nodes: bool) -> Repaired:
    """Return memory per processor, and units with their demands, in place of amounts of jobs.

    If the log tells neither nodes nor resources beside memory, there are no units.
    """
    changed = dict(columns)
    names = ("requested_processors", "nodes", "memory_mb", "most_on_node", "divisor", "used_kb")
    cores, nodes, memory_mb, most, divisor, used_kb = map(changed.pop, names)
    amounts = {"gpu": changed.pop("gpus")}
    for name in [name for name in changed if name.startswith(GENERIC)]:
        amounts[name.removeprefix(GENERIC)] = changed.pop(name)
    held = {name: np.maximum(amount, 0) for name, amount in amounts.items() if amount.max() > 0}
    known = memory_mb > 0
    changed |= {
        "requested_processors": cores,
        "requested_memory": np.where(known, -(-memory_mb * 1000 // cores), MISSING),
        # both in thousandths of the megabytes in which jobs ask for memory, 1,024 KB
        "used_memory": np.where(used_kb >= 0, -(-used_kb * 1000 // (1024 * cores)), MISSING),
    }
    if not held and (nodes <= 0).all():
        return changed, {}
    units, on_node, repaired = _shared(cores, nodes, most, divisor, [*held.values()], for_nodes)
    of_unit = -(-cores // units)
    changed |= {"units": units, "core": of_unit, "requested_processors": of_unit * units}
    if (nodes > 1).any():
        changed[UNITS_PER_NODE] = on_node
    changed[NODES] = np.where(nodes > 0, nodes, MISSING)
    changed |= {name: -(-amount // units) for name, amount in held.items()}
    if known.any():
        changed["mem"] = np.where(known, -(-memory_mb // units), 0)
    return changed, repaired


def _shared(
    cores: Ints, nodes: Ints, most: Ints, divisor: Ints, held: list[Ints], for_nodes: bool
) -> tuple[Ints, Ints, dict[str, NDArray[np.bool_]]]:
    """Return the number of equal units of jobs, how many a node may have, and what was repaired.

    Columns are (n,) each, as in :func:`workload_of`; ``held`` are further amounts that are divided
    among units. A job with the same share on each node has one unit on each node. If shares differ,

    - each node gets the largest share, which is counted: a job keeps its nodes, and gets less than
      one core too much on each. This is done if the log is read for a machine with nodes, and does
      not tell that a node had more than the mean; and if no smaller unit would do.
    - else a job keeps its processors, in as many units as its amounts allow; a unit has at least
      the common divisor of its processors on all nodes. No node has more units than the largest
      share.

    A job without known nodes has as many units as its amounts allow, on any nodes: counted.
    """
    known, on = nodes > 0, np.maximum(nodes, 1)
    parts = np.gcd.reduce([cores // np.maximum(divisor, 1), cores, *held])
    largest = np.maximum(most, -(-cores // on))
    at_most_mean = largest <= -(-cores // on)
    even = np.all([amount % on == 0 for amount in (cores, *held)], axis=0) & (largest * on <= cores)
    larger = known & ~even & ((parts < on) | (for_nodes & at_most_mean))
    units = np.where(known & (even | larger), on, parts)
    on_node = np.where(units == on, 1, -(-largest // -(-cores // units)))
    on_node = np.where(known & (on > 1), on_node, MISSING)
    return units, on_node, {ANYWHERE: ~known & (cores > 1), UNEVEN: larger}
