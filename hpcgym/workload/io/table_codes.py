"""Names of codes in tables: the column ``code``, from and to numbers with a header.

``executable`` may stand beside it, and numbers the codes then; without it they are numbered from 1
in the order in which they first stand there. A blank is a job whose code is not known.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from hpcgym.errors import WorkloadError
from hpcgym.naming import CODE
from hpcgym.workload.codes import check_name, code_names
from hpcgym.workload.io.table_files import as_numbers, where_row

if TYPE_CHECKING:
    import pandas as pd

    from hpcgym.workload.model import Workload

_NUMBER = "executable"


def without_code_column(frame: pd.DataFrame, name: str) -> tuple[pd.DataFrame, list[str]]:
    """Return a table with numbers in place of names of codes, and the lines ``Code`` of its header.

    Raises
    ------
    WorkloadError : a code that is no name, a number that two codes have, or a code without a number
        where others have one; the message names the row.
    """
    if CODE not in frame:
        return frame, []
    if list(frame.columns).count(CODE) > 1:
        raise WorkloadError(f"{name} has the column {CODE!r} twice")
    names = [_name(code, where_row(frame.index, row, name)) for row, code in enumerate(frame[CODE])]
    bare = frame.drop(columns=CODE)
    if _NUMBER in frame:
        numbers = _told_numbers(frame, names, name)
    else:
        order = dict.fromkeys(code for code in names if code)
        of_name = {code: number for number, code in enumerate(order, 1)}
        bare = bare.assign(**{_NUMBER: [of_name.get(code, np.nan) for code in names]})
        numbers = {number: code for code, number in of_name.items()}
    return bare, [f"{number} {numbers[number]}" for number in sorted(numbers)]


def with_code_column(frame: pd.DataFrame, workload: Workload) -> pd.DataFrame:
    """Return the table of a workload with the names of its codes, if any job's has one."""
    import pandas as pd

    names = code_names(workload)
    codes = [names.get(number) for number in workload.executable.tolist()] if names else []
    if not any(codes):
        return frame
    return frame.assign(**{CODE: pd.Series(codes, frame.index, dtype=object)})


def _name(code: Any, where: str) -> str:
    """Return the name of a code, nothing where it is blank."""
    if not isinstance(code, str):
        # what is not equal to itself is not-a-number
        if code is None or code != code or type(code).__name__ == "NAType":
            return ""
        raise WorkloadError(f"{where}: column {CODE} is {code!r}, not the name of a code")
    try:
        return check_name(code.strip()) if code.strip() else ""
    except WorkloadError as error:
        raise WorkloadError(f"{where}: {error}") from None


def _told_numbers(frame: pd.DataFrame, names: list[str], name: str) -> dict[int, str]:
    """Return the codes by the numbers that the table tells itself."""
    # as objects: large numbers stay exact
    told = as_numbers(frame[_NUMBER]).to_numpy(object, na_value=np.nan)
    numbers: dict[int, str] = {}
    for row, (number, code) in enumerate(zip(told.tolist(), names, strict=True)):
        if not code:
            continue
        where = where_row(frame.index, row, name)
        if not (number >= 0 and number % 1 == 0):
            shown = frame[_NUMBER].iloc[row]
            raise WorkloadError(f"{where}: {_NUMBER} is {shown}, no number for the code {code!r}")
        if numbers.setdefault(int(number), code) != code:
            raise WorkloadError(
                f"{where}: {_NUMBER} {int(number)} is {code!r} here, and"
                f" {numbers[int(number)]!r} before"
            )
    return numbers
