"""QOS as ``sacctmgr -P show qos`` prints them."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import Any

from hpcgym.errors import HpcgymError, check_each_once
from hpcgym.files import text_of
from hpcgym.machine.slurm.lines import check_printable, count, minutes_text

_MOST = 1 << 24  # bytes of a file
_MEMORY = re.compile(r"(\d{1,12}(?:\.\d+)?)([MGTP])", re.IGNORECASE)

#: Columns that are read, in lower case; others are named in :attr:`Qos.others`.
_LIMITS = {
    "maxjobspu": "max_jobs_per_user",
    "maxsubmitpu": "max_submitted_per_user",
    "grpjobs": "group_jobs",
    "grpsubmit": "group_submitted",
}
_TRES = {"maxtres": "max_tres", "maxtrespu": "max_tres_per_user", "grptres": "group_tres"}
_TEXTS = {
    "preemptmode": "preempt_mode",
    "preemptexempttime": "preempt_exempt_time",
    "gracetime": "grace_time",
}


@dataclass(frozen=True)
class Qos:
    """A quality of service: a priority and limits (man page sacctmgr, "SPECIFICATIONS FOR QOS").

    Attributes
    ----------
    name, priority : what jobs call it; what it adds to their priority, before the weight.
    max_jobs_per_user, max_submitted_per_user, group_jobs, group_submitted : jobs that run, or that
        run and wait, of each user and of all; None: no limit.
    max_tres, max_tres_per_user, group_tres : of a job, of a user, of all: resource -> most, such as
        ``{"cpu": 256, "gres/gpu": 4}``.
    max_wall_s : the longest that a job may ask for [s]; None: no limit.
    preempts : names of the QOS whose jobs it may preempt.
    preempt_mode, preempt_exempt_time, grace_time : how its jobs are stopped, for how long they are
        not, and how long they go on then; as they are written, "" where nothing is.
    others : other columns that hold something: name -> text; no simulation follows them.
    """

    name: str
    priority: int
    max_jobs_per_user: int | None
    max_submitted_per_user: int | None
    group_jobs: int | None
    group_submitted: int | None
    max_tres: dict[str, int]
    max_tres_per_user: dict[str, int]
    group_tres: dict[str, int]
    max_wall_s: int | None
    preempts: tuple[str, ...]
    preempt_mode: str
    preempt_exempt_time: str
    grace_time: str
    others: dict[str, str]


def read_qos(path: str | os.PathLike[str]) -> list[Qos]:
    """Return the QOS of a file that ``sacctmgr -P show qos`` printed.

    Raises
    ------
    HpcgymError : a file that cannot be read, without a header of columns between ``|``, a row of
        another length, a QOS that stands twice, or a value that cannot be; the message names file,
        line and column.
    """
    lines = text_of(path, _MOST, "a table of QOS").splitlines()
    header = lines[0].split("|") if lines else []
    columns = [name.strip().casefold() for name in header]
    if "name" not in columns or len(columns) < 2:
        raise HpcgymError(f"{path}: it must begin with a header such as Name|Priority|MaxJobsPU")
    found = []
    for number, line in enumerate(lines[1:], 2):
        check_printable(f"{path}, line {number}", line)
        values = line.split("|")
        if not line.strip():
            continue
        if len(values) != len(columns):
            raise HpcgymError(
                f"{path}, line {number}: {len(values)} columns; the header has {len(columns)}"
            )
        row = dict(zip(columns, values, strict=True))
        found.append(_qos(f"{path}, line {number}", row, header))
        check_each_once(f"{path}, line {number}: QOS", [one.name for one in found])
    return found


def _qos(where: str, row: dict[str, str], header: list[str]) -> Qos:
    """Return the QOS of a row."""
    written = {name.strip().casefold(): name.strip() for name in header}

    def take(column: str) -> str:
        return row.pop(column, "").strip()

    def tres(column: str) -> dict[str, int]:
        return _tres(take(column), f"{where}: {written.get(column, column)}")

    name, priority = take("name"), count(take("priority"), f"{where}: Priority")
    if not name:
        raise HpcgymError(f"{where}: a QOS without a name")
    limits: dict[str, Any] = {
        field: count(take(column), f"{where}: {written.get(column, column)}")
        for column, field in _LIMITS.items()
    }
    limits |= {field: tres(column) for column, field in _TRES.items()}
    limits["max_wall_s"] = minutes_text(take("maxwall"), f"{where}: MaxWall")
    preempts = tuple(one for one in take("preempt").split(",") if one)
    limits |= {field: take(column) for column, field in _TEXTS.items()}
    others = {written[column]: text.strip() for column, text in row.items() if text.strip()}
    return Qos(name, priority or 0, **limits, preempts=preempts, others=others)


def _tres(text: str, where: str) -> dict[str, int]:
    """Return trackable resources of ``cpu=256,gres/gpu=4,mem=2T``, memory in MB."""
    amounts = {}
    for part in filter(None, text.split(",")):
        name, equals, amount = part.partition("=")
        if not equals:
            raise HpcgymError(f"{where}: {part[:40]!r} is no resource such as cpu=256")
        memory = _MEMORY.fullmatch(amount) if name == "mem" else None
        if memory:
            most: int | None = round(float(memory[1]) * 1024 ** "MGTP".index(memory[2].upper()))
        else:
            most = count(amount, f"{where}: {name}")
        if most is not None:
            amounts[name] = most
    return amounts
