"""Jobs that follow several others, in tables: ``preceding_job`` may be a text such as ``7 9``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from hpcgym.errors import WorkloadError
from hpcgym.workload.io.table_files import where_row

if TYPE_CHECKING:
    import pandas as pd

#: A column of a table while it is read: from 0 on, also where rows have been dropped.
_ROW = "row of the table"

_SEVERAL = re.compile(r"\s*-?[0-9]{1,18}(\s+[1-9][0-9]{0,17})+\s*")


def without_several(frame: pd.DataFrame) -> tuple[pd.DataFrame, dict[int, list[int]]]:
    """Return a table with one preceding job a row, and the others by the place of the row.

    If there are any, the table has a column more, for :func:`pairs_in`. What is no such text stays.
    """
    import pandas as pd

    if "preceding_job" not in frame:
        return frame, {}
    given = frame["preceding_job"]
    if pd.api.types.is_numeric_dtype(given.dtype):
        return frame, {}
    first: list[Any] = []
    more: dict[int, list[int]] = {}
    for row, value in enumerate(given.astype(object)):
        if isinstance(value, str) and _SEVERAL.fullmatch(value):
            value, *others = value.split()
            more[row] = [int(other) for other in others]
        first.append(value)
    if not more:
        return frame, {}
    frame = frame.assign(preceding_job=pd.Series(first, frame.index, dtype=object))
    frame[_ROW] = range(len(frame))
    return frame, more


def pairs_in(
    frame: pd.DataFrame, more: Mapping[int, list[int]], name: str
) -> list[tuple[int, int]] | None:
    """Return the numbers of jobs, and of one more that each follows, of the rows that are left.

    Raises
    ------
    WorkloadError : a job that follows several, and has no number.
    """
    if not more:
        return None
    pairs = []
    rows = zip(frame[_ROW].tolist(), frame["job_number"].tolist(), strict=True)
    for place, (row, number) in enumerate(rows):
        if row in more and not number >= 1:
            where = where_row(frame.index, place, name)
            raise WorkloadError(f"{where}: a job that follows several others needs a job_number")
        pairs += [(int(number), other) for other in more.get(row, ())]
    return pairs
