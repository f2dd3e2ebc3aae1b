"""Names of users, groups, codes, queues and partitions: jobs have numbers, the header their names.

A line ``User: 7 alice`` of a workload's header says that the user with number 7 is called alice.
So names stay with jobs through every cleaning and slice, and in SWF they are comments. SWF itself
knows the keys ``Queue`` and ``Partition``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from hpcgym.errors import WorkloadError
from hpcgym.naming import NAME_COLUMNS, NAMED
from hpcgym.workload.io.swf_header import numbered_names

if TYPE_CHECKING:
    import pandas as pd

    from hpcgym.workload.model import Workload

#: Column of numbers that stand for names -> the key of their lines in a header.
HEADER_KEYS = {column: word.capitalize() for word, column in NAMED.items()}

#: What they are called in messages.
_MEANT = {
    "user": "a user",
    "group": "a group",
    "code": "a code",
    "queue_name": "a queue",
    "partition_name": "a partition",
}


def names_of(workload: Workload, column: str) -> dict[int, str]:
    """Return the names of the numbers in a column that the header tells, of ``HEADER_KEYS``.

    Of other columns, such as ``array``, it tells none.

    >>> import hpcgym
    >>> jobs = hpcgym.load_workload("lublin:jobs=2,processors=4,seed=0")
    >>> names_of(jobs, "user_id")
    {}
    """
    key = HEADER_KEYS.get(column)
    return {} if key is None else numbered_names(workload.header, key)


def called(names: Mapping[int, str], kind: str, number: int) -> str:
    """Return what tables and pictures call a number: its name, ``user 7`` or ``unknown user``."""
    return names.get(number, f"{kind} {number}" if number >= 0 else f"unknown {kind}")


def name_all(table: pd.DataFrame, workload: Workload) -> pd.DataFrame:
    """Return a table of the jobs of a workload with names behind the numbers that it has.

    Columns are called as in :data:`hpcgym.naming.NAME_COLUMNS`; there is none of what has no names.
    A column that is there already stays as it is.
    """
    named = table.copy()
    for column, numbers in NAME_COLUMNS.items():
        names = names_of(workload, numbers)
        if names and numbers in named and column not in named:
            kind = HEADER_KEYS[numbers].lower()
            texts = [called(names, kind, number) for number in named[numbers].tolist()]
            named.insert(list(named.columns).index(numbers) + 1, column, texts)
    return named


def check_name(name: Any, column: str = "code") -> str:
    """Return a name that may stand in a header, or say that it is none.

    Names stand in lines of headers: they are printable, not empty, and have no blanks at the ends.

    Parameters
    ----------
    name : what is written.
    column : of tables with such names, one of :data:`hpcgym.naming.NAME_COLUMNS`.

    Raises
    ------
    WorkloadError : it is none.
    """
    if not isinstance(name, str) or not name or not name.isprintable() or name != name.strip():
        raise WorkloadError(f"{name!r} is no name of {_MEANT[column]}: a text, on one line")
    return name


def header_lines(names: Mapping[int, str]) -> list[str]:
    """Return the lines of a header that tell the names of numbers, in their order."""
    return [f"{number} {names[number]}" for number in sorted(names)]


def numbered(names: Iterable[str]) -> dict[str, int]:
    """Return names with their numbers: from 1 on, in the order in which they first stand there."""
    return {name: number for number, name in enumerate(dict.fromkeys(names), 1)}
