"""What readers of sites' logs share: fields as columns of texts, and each line accounted for.

A line becomes a job, or it is counted by the reason why it is none. So the jobs of a workload and
the counts that begin with "dropped: " add up to the lines of the file, but for blank ones and the
names of fields.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcgym.errors import WorkloadError, WorkloadWarning, warn_caller
from hpcgym.naming import NAME_COLUMNS, Clock, printable
from hpcgym.workload.io.files import Reading, stem
from hpcgym.workload.io.tables import from_pandas
from hpcgym.workload.model import MISSING, Workload

Ints = NDArray[np.int64]

MOVED = "repaired: submit_time moved to the start, which the log has before it"
HELD = "repaired: submit_time moved to when the job became eligible"
AGAIN = "repaired: run that was not the last of its job taken for a job of its own"
RESUBMITTED = "repaired: submit_time moved to the end of the run before, of the same job"
UNEVEN = (
    "repaired: cores, GPUs or the like that its nodes cannot share alike: fewer units, or larger"
    " ones"
)


@dataclass
class Log:
    """Records of a log as columns of texts; those that are no jobs are dropped and counted.

    Attributes
    ----------
    path : of the file.
    how : as it is read.
    lines : number of each record's line, from 1.
    fields : name -> a text for each record.
    counts : reason -> number of records, as :attr:`hpcgym.workload.Workload.cleaning`.
    refused : lines that were wrong, and are skipped.
    """

    path: Path
    how: Reading
    lines: list[int] = field(default_factory=list)
    fields: dict[str, list[str]] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)
    refused: set[int] = field(default_factory=set)

    def __len__(self) -> int:
        return len(self.lines)

    def refuse(self, line: int, problem: str, reason: str) -> None:
        """Stop at a line that is wrong, or count it, once, if such lines are to be skipped.

        Raises
        ------
        WorkloadError : it names the file, the line and the problem.
        """
        if self.how.errors == "raise":
            raise WorkloadError(f"{self.path}, line {line}: {problem}")
        if line not in self.refused:
            self.refused.add(line)
            self.counts[f"dropped: {reason}"] += 1

    def texts(self, *names: str) -> list[str]:
        """Return the first of some fields that the log has; blanks if it has none of them."""
        for name in names:
            if name in self.fields:
                return self.fields[name]
        return [""] * len(self)

    def parsed(self, name: str, parse: Callable[[str], Any], blank: Any = MISSING) -> list[Any]:
        """Return a field as values; blanks, and what is wrong and skipped, are ``blank``.

        ``parse`` raises a ValueError that says what the field should be.
        """
        known: dict[str, Any] = {"": blank}
        values = []
        for line, text in zip(self.lines, self.texts(name.casefold()), strict=True):
            if text not in known:
                try:
                    known[text] = parse(text)
                except ValueError as problem:
                    self.refuse(
                        line, f"{name} is {text[:40]!r}, {problem}", f"line with a wrong {name}"
                    )
                    values.append(blank)
                    continue
            values.append(known[text])
        return values

    def numbers(self, name: str, parse: Callable[[str], int]) -> Ints:
        """Return a field as whole numbers, -1 where it is blank."""
        return np.array(self.parsed(name, parse), dtype=np.int64)

    def drop(self, reasons: Mapping[int, str]) -> None:
        """Drop records, by their places, and count each by its reason."""
        for reason in reasons.values():
            self.counts[f"dropped: {reason}"] += 1
        self.keep([place for place in range(len(self)) if place not in reasons])

    def drop_copies(self) -> None:
        """Drop records all of whose fields stand there before: dumps of several spans overlap."""
        seen: set[tuple[str, ...]] = set()
        copies: dict[int, str] = {}
        for place, record in enumerate(zip(*self.fields.values(), strict=True)):
            if record in seen:
                copies[place] = "line that stands there twice"
            seen.add(record)
        self.drop(copies)

    def keep(self, places: list[int]) -> None:
        """Keep these records alone."""
        self.lines = [self.lines[place] for place in places]
        self.fields = {
            name: [texts[place] for place in places] for name, texts in self.fields.items()
        }

    def settled(self, columns: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
        """Return columns of the records that have not been refused, and keep those alone.

        Raises
        ------
        WorkloadError : there are none.
        """
        places = [k for k, line in enumerate(self.lines) if line not in self.refused]
        if not places:
            raise no_job(self)
        if len(places) < len(self):
            self.keep(places)
        return {name: np.asarray(values)[places] for name, values in columns.items()}

    def count(self, reason: str, at: NDArray[np.bool_]) -> None:
        """Count records by what was repaired or not used."""
        if number := int(np.count_nonzero(at)):
            self.counts[reason] += number

    def names(self, *fields: str) -> list[str | None]:
        """Return a field as names that may stand in headers, None where it is blank."""
        known = {text: printable(text) or None for text in set(self.texts(*fields))}
        return [known[text] for text in self.texts(*fields)]


def first_known(*columns: Ints) -> Ints:
    """Return the first of some columns that is above 0 for each job, -1 where none is."""
    known: Ints = np.full(columns[0].shape, MISSING, dtype=np.int64)
    for column in reversed(columns):
        known = np.where(column > 0, column, known)
    return known


def no_job(log: Log) -> WorkloadError:
    """Return the error that a log holds no job, and why not."""
    why = ", ".join(f"{n:,} {reason.removeprefix('dropped: ')}" for reason, n in log.counts.items())
    return WorkloadError(f"{log.path} holds no job that ran and ended{': ' + why if why else ''}")


def warn_of_cut(path: Path, line: int, ended: bool) -> None:
    """Say that a file stops within its last line, of which nobody can tell whether it is whole.

    Warns
    -----
    WorkloadWarning : the line has no end.
    """
    if not ended:
        warn_caller(
            f"{path}, line {line}: this last line has no end: is the file truncated? Its last field"
            " may be cut, and later lines lost",
            WorkloadWarning,
        )


def with_submissions(log: Log, columns: dict[str, Any], eligible: Ints, key: list[str]) -> None:
    """Set when jobs were submitted, and how long they waited, in ``columns``.

    A schedule cannot start a job before it is eligible, which one with ``--begin`` or a dependency
    is later than submitted: ``submit_time`` is that time. A run after another one of the same job
    was submitted when that ended. Nothing is submitted after its start.

    Parameters
    ----------
    log : counts what was moved.
    columns : with ``submit_time``, ``start`` and ``run_time``, (n,) int64; start becomes a wait.
    eligible : (n,) int64, -1 where it is unknown.
    key : what runs of one job have alike.
    """
    submit, start = columns["submit_time"], columns.pop("start")
    held = (eligible > submit) & (eligible <= start)
    log.count(HELD, held)
    submit = np.where(held, eligible, submit)
    order = np.argsort(start, kind="stable").tolist()
    end: dict[str, int] = {}
    before = np.full(len(submit), -1)
    for place in order:
        before[place] = end.get(key[place], -1)
        end[key[place]] = int(start[place] + columns["run_time"][place])
    again = before >= 0
    log.count(AGAIN, again)  # of n runs n - 1 have another one behind them
    late = again & (submit < before) & (before <= start)
    log.count(RESUBMITTED, late)
    submit = np.where(late, before, submit)
    moved = submit > start
    log.count(MOVED, moved)
    submit = np.where(moved, start, submit)
    columns["submit_time"], columns["wait_time"] = submit, start - submit


def with_units(
    log: Log,
    columns: dict[str, Any],
    nodes: Ints,
    gpus: Ints,
    memory_mb: Ints,
    others: Mapping[str, Ints] = MappingProxyType({}),
) -> None:
    """Set units of jobs and what each asks for, if any asks for GPUs; and memory, in ``columns``.

    A unit is a job's share of a node: its processors and GPUs over its nodes. Where these do not
    share the GPUs alike the units are as many as can; where units do not share the processors alike
    each has as many as the largest.

    Parameters
    ----------
    log : counts where that is so.
    columns : with ``requested_processors``, (n,) int64.
    nodes, gpus, memory_mb : of each job, (n,) int64; -1 where unknown.
    others : more resources that nodes share as they do GPUs: name -> (n,) int64.
    """
    cores = columns["requested_processors"]
    known = (memory_mb > 0) & (cores > 0)
    kilobytes = -(-memory_mb * 1000 // np.maximum(cores, 1))
    columns["requested_memory"] = np.where(known, kilobytes, MISSING)
    held = {name: np.maximum(amount, 0) for name, amount in {"gpu": gpus, **others}.items()}
    held = {name: amount for name, amount in held.items() if amount.any()}
    if not held:
        return
    asked = np.maximum(nodes, 1)
    units = np.gcd.reduce([asked, *held.values()])  # those of jobs without any are their nodes
    log.count(UNEVEN, (units < asked) | (cores % units > 0))
    columns["units"] = units
    columns["core"] = -(-np.maximum(cores, 1) // units)
    columns["requested_processors"] = columns["core"] * units
    for name, amount in held.items():
        columns[name] = amount // units
    if known.any():
        columns["mem"] = np.where(known, -(-memory_mb // units), 0)


def workload_of(log: Log, columns: Mapping[str, Any], clock: Clock, told: Any = None) -> Workload:
    """Return the workload of a log's jobs, with times from its first submission on.

    Parameters
    ----------
    log : its records are jobs.
    columns : as in tables, (n,) each; ``submit_time`` in seconds since 1970.
    clock : by which dates were read.
    told : more lines of the header.

    Raises
    ------
    WorkloadError : as :func:`hpcgym.workload.from_pandas`.
    """
    import pandas as pd

    kept = {name: v for name, v in columns.items() if name not in NAME_COLUMNS or any(v)}
    frame = pd.DataFrame(kept, index=pd.Index(log.lines, name="line"))
    first = int(frame["submit_time"].min())
    frame = frame.assign(submit_time=frame["submit_time"] - first)
    frame = frame.sort_values("submit_time", kind="stable")  # logs are in any order
    how = log.how
    workload = from_pandas(frame, processors=how.processors, name=str(log.path), errors=how.errors)
    header = {**clock.header(first), **(told or {}), **workload.header}
    return workload.take(slice(None), name=stem(log.path), cleaning=log.counts, header=header)
