"""Tables that Slurm's sacctmgr prints with ``-P`` or ``-p``, and what stands in them."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, TypeVar

from hpcgym.errors import HpcgymError, HpcgymWarning, check_each_once, warn_caller
from hpcgym.files import text_of
from hpcgym.machine.slurm.lines import check_printable, count, minutes_text
from hpcgym.scheduler.restrictions import JOB
from hpcgym.units import MEMORY_OF_SLURM, amount_of
from hpcgym.workload.amounts import (
    AMOUNTS,
    OF_ONE_JOB,
    amount_called,
    amount_of_tres,
    minutes_of,
    on_a_node,
    used_of,
)

_MOST_BYTES = 1 << 26
_FEW = 3  # so many are named with what is not followed of them, else how many they are


class SlurmRow:
    """A row of a table.

    Attributes
    ----------
    where : file and line, for messages.
    others : columns that are not taken yet, in lower case -> text.
    """

    def __init__(self, where: str, header: Sequence[str], values: Sequence[str]):
        self.where = where
        check_each_once(where, [name.strip() for name in header])
        self._written = {name.strip().casefold(): name.strip() for name in header}
        self.others = dict(zip(self._written, values, strict=True))

    def take(self, column: str) -> str:
        """Return what stands in a column, "" if it is missing."""
        return self.others.pop(column, "").strip()

    def count(self, column: str) -> int | None:
        """Return the whole number in a column; None: no limit."""
        return count(self.take(column), self.at(column))

    def time(self, column: str) -> int | None:
        """Return the seconds of the time limit in a column; None: no limit."""
        return minutes_text(self.take(column), self.at(column))

    def amounts(self, column: str) -> dict[str, int]:
        """Return trackable resources of ``cpu=256,gres/gpu=4,mem=2T``, memory in MB."""
        amounts = {}
        for part in filter(None, self.take(column).split(",")):
            name, equals, amount = part.partition("=")
            if not equals:
                raise HpcgymError(
                    f"{self.at(column)}: {part[:40]!r} is no resource such as cpu=256"
                )
            of_memory = name.casefold() == "mem"
            memory = amount_of(amount, MEMORY_OF_SLURM) if of_memory else None
            at = f"{self.at(column)}: {name}"
            most = count(amount, at) if memory is None else round(memory)
            if most is not None:
                amounts[name] = most
        return amounts

    def at(self, column: str) -> str:
        """Return the name of a column in messages."""
        return f"{self.where}: {self._written.get(column, column)}"

    def left(self) -> dict[str, str]:
        """Return what stands in columns that are not taken, by their names in the file."""
        return {
            self._written[name]: text.strip() for name, text in self.others.items() if text.strip()
        }


class LimitColumn(NamedTuple):
    """What a column bounds, of a QOS or an association (man page sacctmgr).

    Attributes
    ----------
    each : columns of jobs by which those of a QOS, or of an account and all below it, count apart;
        ("user",) of an association is each user below it, unless she has her own. ("job",): of one
        job.
    amount : of jobs, that it bounds; "" of a column of trackable resources, each with its bound.
    called : what bounds call the amount of a trackable resource.
    least : whether it is the least that a job must ask for.
    """

    each: tuple[str, ...]
    amount: str = ""
    called: Callable[[str], str] = str
    least: bool = False


#: The columns of limits: one more is a row.
LIMITS = {
    "MaxJobsPU": LimitColumn(("user",), "jobs"),
    "MaxTRESPU": LimitColumn(("user",)),
    "MaxSubmitPU": LimitColumn(("user",), "submitted"),
    "MaxJobsPA": LimitColumn(("group",), "jobs"),
    "MaxTRESPA": LimitColumn(("group",)),
    "MaxSubmitPA": LimitColumn(("group",), "submitted"),
    "GrpJobs": LimitColumn((), "jobs"),
    "GrpTRES": LimitColumn(()),
    "GrpSubmit": LimitColumn((), "submitted"),
    "MaxJobs": LimitColumn(("user",), "jobs"),
    "MaxSubmit": LimitColumn(("user",), "submitted"),
    "GrpTRESRunMins": LimitColumn((), called=minutes_of),
    "GrpTRESMins": LimitColumn((), called=used_of),
    "MaxTRESRunMinsPU": LimitColumn(("user",), called=minutes_of),
    "MaxTRESRunMinsPA": LimitColumn(("group",), called=minutes_of),
    "MaxTRES": LimitColumn((JOB,)),
    "MaxTRESPerNode": LimitColumn((JOB,), called=on_a_node),
    "MaxTRESMins": LimitColumn((JOB,), called=minutes_of),
    "MaxWall": LimitColumn((JOB,), "requested_time"),
    "MinTRES": LimitColumn((JOB,), least=True),
}

#: The columns of budgets, of which only a slurm.conf says what is forgotten of them.
BUDGETS = tuple(
    column for column, limit in LIMITS.items() if amount_called(limit.called("gpu")).budget
)

#: Column of limits -> amount of jobs, or trackable resource -> most.
Limits = Mapping[str, Mapping[str, int]]
#: A limit: "Grp" of all below an association, "Max" of each user, "" of each job; and the amount.
Limit = tuple[str, str]
#: What a limit bounds: what groups jobs, an amount, and whether it is the least of it.
Bound = tuple[tuple[str, ...], str, bool]


def kind_of(each: tuple[str, ...]) -> str:
    """Return of what kind a limit is; see :data:`Limit`."""
    return "" if JOB in each else "Max" if each else "Grp"


def limits_of(row: SlurmRow) -> dict[str, dict[str, int]]:
    """Return the limits in a row, without those that are not set.

    Such as ``{"GrpJobs": {"jobs": 4}, "MaxTRESPU": {"cpu": 256, "gres/gpu": 4}}``.
    """
    limits: dict[str, dict[str, int]] = {}
    for column, limit in LIMITS.items():
        if limit.amount:
            read = row.time if limit.amount == "requested_time" else row.count
            most = read(column.casefold())
            limits[column] = {} if most is None else {limit.amount: most}
        else:
            limits[column] = row.amounts(column.casefold())
    return {column: bounds for column, bounds in limits.items() if bounds}


def bounds_of(limits: Limits) -> dict[Bound, int]:
    """Return the limits that quotas can follow, with the most, or least, of each."""
    bounds: dict[Bound, int] = {}
    for column, of_column in limits.items():
        limit = LIMITS[column]
        for name, most in of_column.items():
            amount = limit.amount or amount_of_tres(name)
            if amount and not _closes(amount, most):
                called = amount if limit.amount else limit.called(amount)
                bounds[limit.each, called, limit.least] = most
    return bounds


def _closes(amount: str, most: int) -> bool:
    """Return whether a limit lets no job run at all: 0 of what each job asks for."""
    return not most and (amount in AMOUNTS or amount in OF_ONE_JOB)


def unfollowed(limits: Limits) -> list[str]:
    """Return what of some limits no quota follows, in words.

    A limit of 0 of what all jobs ask for lets nothing run: no simulation of jobs that ran can
    follow it.
    """
    left = []
    for column, bounds in limits.items():
        for name, most in bounds.items():
            amount = LIMITS[column].amount or amount_of_tres(name)
            limit = column if LIMITS[column].amount else f"{column} {name}"
            if not amount:
                left.append(limit)
            elif _closes(amount, most):
                left.append(f"{limit}=0 (lets no such job run)")
    return left


def header_of(text: str) -> list[str]:
    """Return the names of the columns of a table, in lower case."""
    return [name.strip().casefold() for name in text.partition("\n")[0].split("|")]


def rows_of(
    path: str | os.PathLike[str], what: str, needed: Sequence[str], such: str
) -> Iterator[SlurmRow]:
    """Yield the rows of a table.

    Parameters
    ----------
    what : of which it is a table, for messages.
    needed : columns that it must have, in lower case.
    such : how its header begins, for messages.

    Raises
    ------
    HpcgymError : a file that cannot be read, without a header of columns between ``|``, or a row of
        another length.
    """
    text = text_of(path, _MOST_BYTES, f"a table of {what}")
    columns = header_of(text)
    lines = text.splitlines()
    if not {*needed} <= {*columns} or len(columns) < 2:
        raise HpcgymError(f"{path}: it must begin with a header such as {such}")
    for number, line in enumerate(lines[1:], 2):
        where = f"{path}, line {number}"
        check_printable(where, line)
        values = line.split("|")
        if not line.strip():
            continue
        if len(values) != len(columns):
            raise HpcgymError(f"{where}: {len(values)} columns; the header has {len(columns)}")
        yield SlurmRow(where, lines[0].split("|"), values)


class Left(NamedTuple):
    """Something that a row says and nothing follows: what it is of, and which column, in words."""

    of: str
    column: str

    def __str__(self) -> str:
        return f"{self.of}: {self.column}"


_Row = TypeVar("_Row", bound=Any)


def without_budgets(
    rows: Sequence[_Row], why: str = "slurm.conf:qos=FILE+assoc=FILE says what is forgotten"
) -> tuple[list[_Row], list[Left]]:
    """Return QOS or associations without limits of what has been used, and which these are."""
    left = [
        Left(row.name, f"{column} ({why})")
        for row in rows
        for column in row.limits
        if column in BUDGETS
    ]
    kept = [
        {column: bounds for column, bounds in row.limits.items() if column not in BUDGETS}
        for row in rows
    ]
    return [replace(row, limits=own) for row, own in zip(rows, kept, strict=True)], left


def warn_of_left(
    path: str | os.PathLike[str], left: Sequence[Left], kind: str, by: str = "", why: str = ""
) -> None:
    """Warn of what a table says and nothing follows, or no quotas do (``by``); ``why`` is added."""
    if left:
        text = f"{path}: not followed{by}: {', '.join(in_short(left, kind))}{why}"
        warn_caller(text, HpcgymWarning, [str(row) for row in left])


def in_short(left: Sequence[Left], kind: str) -> list[str]:
    """Return what is not followed, in words; a column of many rows, which are a kind, once."""
    times = Counter(row.column for row in left)
    words = [
        str(row) if times[row.column] <= _FEW else f"{row.column} of {times[row.column]:,} {kind}"
        for row in left
    ]
    return list(dict.fromkeys(words))
