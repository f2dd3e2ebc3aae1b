"""Common parts of readers of sites' logs: fields as columns of texts, and counts of dropped lines.

A reader defines the fields and how each is read; the rest is here. A line becomes a job, or it is
counted by the reason why it does not. So the jobs of a workload and the counts that begin with
"dropped: " add up to the lines of the file, without blank lines and the names of fields.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hpcgym.dates import Clock
from hpcgym.errors import WorkloadError, WorkloadWarning, warn_caller
from hpcgym.files import lines_of
from hpcgym.names import NAME_COLUMNS, NODES, UNITS_PER_NODE, printable
from hpcgym.units import OF_LOG, Durations, count_in, nearest_second, seconds_in
from hpcgym.workload.columns import MISSING
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


def task_of(text: str) -> int | None:
    """Return the number of a task of an array, None of 0: of an invalid job."""
    return count_in(text) or None


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

    Attributes
    ----------
    path : of the file.
    how : the options by which it is read.
    lines : number of each record's line, from 1.
    fields : name, in lower case -> a text for each record.
    counts : reason -> number of records, as :attr:`hpcgym.workload.Workload.cleaning`.
    refused : wrong lines, which are skipped.
    called : word for a record in messages: ``line``, or ``job`` for a file without lines.
    """

    path: Path
    how: ReadOptions
    lines: list[int] = field(default_factory=list)
    fields: dict[str, list[str]] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)
    refused: set[int] = field(default_factory=set)
    called: str = "line"

    def __len__(self) -> int:
        return len(self.lines)

    def texts_of_lines(self, kind: str) -> Iterator[tuple[int, str, str]]:
        """Go through the file: the number of each line, its text, and a hint if it may be cut.

        ``kind`` is what the file should be, for errors.

        Warns
        -----
        WorkloadWarning : the last line has no end, and so may be cut.
        """
        line, ended = 1, True
        for line, (text, ended) in enumerate(lines_of(self.path, kind, WorkloadError), 1):
            yield line, text, "" if ended else CUT
        if not ended:
            warn_caller(
                f"{self.path}, line {line}: this last line has no end: is the file truncated? Its"
                " last field may be cut, and later lines lost",
                WorkloadWarning,
            )

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
        for place in np.flatnonzero(at).tolist():
            self.refuse(self.lines[place], problem, reason)

    def texts(self, *names: str) -> list[str]:
        """Return the first of some fields that the log has; blanks if it has none of them."""
        for name in names:
            if name.casefold() in self.fields:
                return self.fields[name.casefold()]
        return [""] * len(self)

    def parsed(self, name: str, parse: Callable[[str], Any], blank: Any = MISSING) -> list[Any]:
        """Return a field as values; blank texts, and wrong ones that are skipped, are ``blank``."""
        known: dict[str, Any] = {"": blank}
        values = []
        for line, text in zip(self.lines, self.texts(name), strict=True):
            if text not in known:
                try:
                    known[text] = parse(text)
                except ValueError as problem:
                    wrong = f"{name} is {text[:40]!r}, {problem}"
                    self.refuse(line, wrong, f"line with a wrong {name}")
                    values.append(blank)
                    continue
            values.append(known[text])
        return values

    def numbers(self, *fields: Told) -> Ints:
        """Return a column of whole numbers, (n,), -1 where it is unknown.

        Of several fields the first that is above 0 counts.
        """
        columns = [np.array(self.parsed(*pair), dtype=np.int64) for pair in fields]
        return columns[0] if len(columns) == 1 else first_known(*columns)

    def names(self, *fields: str) -> list[str | None]:
        """Return a field as names that may stand in headers, None for blank texts."""
        known = {text: printable(text) or None for text in set(self.texts(*fields))}
        return [known[text] for text in self.texts(*fields)]

    def count(self, reason: str, at: ArrayLike) -> None:
        """Count the records of a mask under a reason: a repair, or a fact that is not used."""
        if number := int(np.count_nonzero(at)):
            self.counts[reason] += number

    def drop(self, reasons: Sequence[str]) -> None:
        """Drop records, each for its reason, and count them; those with a blank reason stay."""
        self.counts.update(f"dropped: {reason}" for reason in reasons if reason)
        self.keep([place for place, reason in enumerate(reasons) if not reason])

    def drop_copies(self) -> None:
        """Drop records that equal an earlier one in all fields: dumps of several spans overlap."""
        seen: set[tuple[str, ...]] = set()
        reasons = []
        for record in zip(*self.fields.values(), strict=True):
            reasons.append("line that stands there twice" if record in seen else "")
            seen.add(record)
        self.drop(reasons)

    def keep(self, places: list[int]) -> None:
        """Keep only these records."""
        self.lines = [self.lines[place] for place in places]
        self.fields = {
            name: [texts[place] for place in places] for name, texts in self.fields.items()
        }

    def settled(self, columns: Mapping[str, Any]) -> dict[str, Any]:
        """Keep only the records that have not been refused, and return their columns.

        Raises
        ------
        WorkloadError : no job is left.
        """
        places = [k for k, line in enumerate(self.lines) if line not in self.refused]
        if not places:
            raise no_job(self.path, self.counts, "no job that ran and ended")
        self.keep(places)
        return {name: np.asarray(values)[places] for name, values in columns.items()}


def first_known(*columns: Ints) -> Ints:
    """Return for each job the first value above 0 among some columns; -1: no such value."""
    known: Ints = np.full(columns[0].shape, MISSING, dtype=np.int64)
    for column in reversed(columns):
        known = np.where(column > 0, column, known)
    return known


# --- Jobs of records ------------------------------------------------------------------------------


def numbered(ids: Sequence[tuple[int, Any]]) -> dict[str, Ints]:
    """Return the columns ``job_number`` and, if there are any, ``array`` of jobs.

    Tasks of an array have its number. They get numbers of their own, array by array, from the one
    behind the greatest on.

    Parameters
    ----------
    ids : of each job its number, and the task of an array; None of what is no job.
    """
    tasks = {task for task in ids if task[1] is not None}
    first = max((number for number, _ in ids), default=0) + 1
    new = {task: number for number, task in enumerate(sorted(tasks), first)}
    columns = {"job_number": np.array([new.get(pair, pair[0]) for pair in ids], np.int64)}
    if tasks:
        arrays = [MISSING if task is None else number for number, task in ids]
        columns["array"] = np.array(arrays, np.int64)
    return columns


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
    runs = list(zip(*map(log.texts, key), strict=True))
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


def _with_waits(columns: Mapping[str, Any], runs: Sequence[Hashable]) -> Repaired:
    """Return the submit and waiting times of jobs in place of their starts.

    A job cannot start before it is eligible, and one with ``--begin`` or a dependency is eligible
    later than it is submitted: ``submit_time`` is the later time. If runs have the same entry in
    ``runs``, they are of one job, and each was submitted when the one before ended. No job is
    submitted after its start.
    """
    changed = dict(columns)
    start, eligible, submit = changed.pop("start"), changed.pop("eligible"), changed["submit_time"]
    before = np.full(len(start), MISSING)
    end: dict[Hashable, int] = {}
    for place in np.argsort(start, kind="stable").tolist():
        before[place] = end.get(runs[place], MISSING)
        end[runs[place]] = int(start[place] + changed["run_time"][place])
    # of n runs n - 1 have another one behind them; a job that came later only reuses the number
    repaired = {AGAIN: (before >= 0) & (submit <= before + _REQUEUED_S)}
    for reason, time in ((HELD, eligible), (RESUBMITTED, before)):
        repaired[reason] = (time > submit) & (time <= start)
        submit = np.where(repaired[reason], time, submit)
    repaired[MOVED] = submit > start
    submit = np.minimum(submit, start)
    return {**changed, "submit_time": submit, "wait_time": start - submit}, repaired


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
