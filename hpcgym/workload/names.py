"""Names of users, groups, codes, queues and partitions: jobs have numbers, the header their names.

A line ``User: 7 alice`` of a workload's header says that the user with number 7 is called alice.
So names stay with jobs through every cleaning and slice, and in SWF they are comments. SWF itself
knows the keys ``Queue`` and ``Partition``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from hpcgym.errors import WorkloadError
from hpcgym.workload.io.swf_header import numbered_names

if TYPE_CHECKING:
    import pandas as pd

    from hpcgym.workload.model import Workload

#: Column of numbers that stand for names -> the key of their lines in a header.
HEADER_KEYS = {
    "user_id": "User",
    "group_id": "Group",
    "executable": "Code",
    "queue": "Queue",
    "partition": "Partition",
}

#: Column -> what tables, pictures and filters call a number of it.
KINDS = {column: key.lower() for column, key in HEADER_KEYS.items()}

#: What they are called in messages.
_MEANT = {
    "user": "a user",
    "group": "a group",
    "code": "a code",
    "queue_name": "a queue",
    "partition_name": "a partition",
}


def names_of(workload: Workload, column: str) -> dict[int, str]:
    """Return the names of the numbers in a column, one of ``HEADER_KEYS``, that the header tells.

    >>> import hpcgym
    >>> jobs = hpcgym.load_workload("lublin:jobs=2,processors=4,seed=0")
    >>> names_of(jobs, "user_id")
    {}
    """
    return numbered_names(workload.header, HEADER_KEYS[column])


def called(names: Mapping[int, str], kind: str, number: int) -> str:
    """Return what tables and pictures call a number: its name, or such as ``user 7``."""
    return names.get(number, f"{kind} {number}")


def name_users(table: pd.DataFrame, workload: Workload) -> pd.DataFrame:
    """Return a table with a column ``user`` of names behind ``user_id``, if users have any."""
    names = names_of(workload, "user_id")
    if not names:
        return table
    texts = [called(names, "user", number) for number in table["user_id"].tolist()]
    named = table.copy()
    named.insert(list(table.columns).index("user_id") + 1, "user", texts)
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
