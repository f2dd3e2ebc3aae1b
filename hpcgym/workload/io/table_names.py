"""Names in tables: columns ``user``, ``group``, ``code``, ``queue_name``, ``partition_name``.

Beside such a column may stand that of the numbers, which then numbers the names; without it they
are numbered from 1 in the order in which they first stand there. Or the column of numbers has
itself the names, as in ``user_id`` alice, bob. A blank is a job of which the name is not known.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from hpcgym.errors import WorkloadError
from hpcgym.naming import NAME_COLUMNS, printable
from hpcgym.workload.io.table_files import as_numbers, where_row
from hpcgym.workload.io.table_numbers import numbers_alone
from hpcgym.workload.names import HEADER_KEYS, check_name, header_lines, names_of, numbered

if TYPE_CHECKING:
    import pandas as pd

    from hpcgym.workload.model import Workload


def without_names(
    frame: pd.DataFrame, name: str, queues: Mapping[str, int] | None = None
) -> tuple[pd.DataFrame, dict[str, list[str]]]:
    """Return a table with numbers in place of names, and the lines of a header that tell them.

    Parameters
    ----------
    frame : the table.
    name : what messages call it.
    queues : name of a queue -> its number, if they are numbered already: by a machine, or a file.

    Raises
    ------
    WorkloadError : what is no name, a number that two names have, or a name without a number where
        others have one; the message names the row.
    """
    header: dict[str, list[str]] = {}
    for column, number in NAME_COLUMNS.items():
        if list(frame.columns).count(column) > 1:
            raise WorkloadError(f"{name} has the column {column!r} twice")
        if column not in frame and not (number in frame and _holds_names(frame, number, queues)):
            continue
        held = column if column in frame else number
        names = _names(frame, held, column, name)
        told = held == column and number in frame
        bare = frame.drop(columns=held)
        if told:
            of_number = _told_numbers(frame, column, names, name)
        else:
            of_name = numbered(filter(None, names))
            bare = bare.assign(**{number: [of_name.get(one, np.nan) for one in names]})
            of_number = {of: one for one, of in of_name.items()}
        frame = bare
        header[HEADER_KEYS[number]] = header_lines(of_number)
    return frame, header


def with_names(
    frame: pd.DataFrame, workload: Workload, without: tuple[str, ...] = ()
) -> pd.DataFrame:
    """Return the table of a workload with columns of the names that any job has.

    ``without`` are columns that are told otherwise.
    """
    import pandas as pd

    found: dict[str, Any] = {}
    for column, number in NAME_COLUMNS.items():
        names = names_of(workload, number)
        if column in without or not names:
            continue
        texts = [names.get(one) for one in workload.columns[number].tolist()]
        if any(texts):
            found[column] = pd.Series(texts, frame.index, dtype=object)
    return frame.assign(**found)


def _holds_names(frame: pd.DataFrame, column: str, queues: Mapping[str, int] | None) -> bool:
    """Tell whether a column of numbers has texts that are none; those of ``queues`` are known."""
    import pandas as pd

    if column == "queue" and queues:
        return False
    values = frame[column]
    if list(frame.columns).count(column) > 1 or pd.api.types.is_numeric_dtype(values.dtype):
        return False
    kinds = pd.api.types.is_string_dtype(values.dtype) or pd.api.types.is_object_dtype(values.dtype)
    if not (kinds or isinstance(values.dtype, pd.CategoricalDtype)):
        return False
    given = values.dropna().astype(object)
    if not given.map(lambda value: isinstance(value, str | int | float)).all():
        return False
    if given.map(lambda value: isinstance(value, bool)).any():
        return False
    unread = given[numbers_alone(given).isna().to_numpy()]
    return bool(unread.map(lambda text: isinstance(text, str) and bool(text.strip())).any())


def _names(frame: pd.DataFrame, held: str, column: str, name: str) -> list[str]:
    """Return the names in a column, nothing where it is blank; numbers are names in ``held``."""
    cache: dict[Any, str] = {}
    texts = []
    for row, given in enumerate(frame[held].astype(object)):
        known = cache.get(given) if isinstance(given, str) else None
        if known is None:
            numbers = held != column
            known = _name(given, numbers, column, where_row(frame.index, row, name))
            if isinstance(given, str):
                cache[given] = known
        texts.append(known)
    return texts


def _name(given: Any, numbers: bool, column: str, where: str) -> str:
    """Return a name, nothing where it is blank."""
    if not isinstance(given, str):
        # what is not equal to itself is not-a-number
        if given is None or given != given or type(given).__name__ == "NAType":
            return ""
        if not numbers:
            what = f"not the name of a {column.removesuffix('_name')}"
            raise WorkloadError(f"{where}: column {column} is {given!r}, {what}")
        given = f"{given:.15g}" if isinstance(given, float) else str(given)
    try:
        return printable(check_name(given.strip(), column)) if given.strip() else ""
    except WorkloadError as error:
        raise WorkloadError(f"{where}: {error}") from None


def _told_numbers(frame: pd.DataFrame, column: str, names: list[str], name: str) -> dict[int, str]:
    """Return names by the numbers that the table tells itself."""
    of = NAME_COLUMNS[column]
    # as objects: large numbers stay exact
    told = as_numbers(frame[of]).to_numpy(object, na_value=np.nan)
    numbers: dict[int, str] = {}
    for row, (number, text) in enumerate(zip(told.tolist(), names, strict=True)):
        if not text:
            continue
        if not (number >= 0 and number % 1 == 0):
            where = where_row(frame.index, row, name)
            shown, kind = frame[of].iloc[row], column.removesuffix("_name")
            raise WorkloadError(f"{where}: {of} is {shown}, no number for the {kind} {text!r}")
        if numbers.setdefault(int(number), text) != text:
            raise WorkloadError(
                f"{where_row(frame.index, row, name)}: {of} {int(number)} is {text!r} here, and"
                f" {numbers[int(number)]!r} before"
            )
    return numbers
