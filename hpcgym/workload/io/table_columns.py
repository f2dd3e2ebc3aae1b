"""Columns of tables as columns of a workload: numbers, names, times, predecessors.

Where a column holds such texts, each value that is not stays a text, of which its reader says so.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hpcgym.dates import Clock, is_date
from hpcgym.errors import WorkloadError
from hpcgym.names import (
    CONSTRAINT,
    CORE,
    JOB_COLUMNS,
    KILLED,
    MEMORY,
    MOST_NAME,
    MOST_OF_LIST,
    NAME_COLUMNS,
    RESERVATION,
    UNITS,
    is_job_column,
    known_columns,
    near_name,
    printable,
    resource_problem,
)
from hpcgym.units import (
    LIMIT_OF_TABLE,
    MEMORY_ALONE,
    NO_LIMIT_S,
    OF_TABLE,
    Durations,
    amount_of,
    seconds_of,
)
from hpcgym.workload.columns import MISSING, kind_of
from hpcgym.workload.io.files import as_numbers, where_row
from hpcgym.workload.io.swf_header import HEADER_KEYS, check_name, name_lines, names_of, numbered

if TYPE_CHECKING:
    import pandas as pd

    from hpcgym.workload.model import Workload


# --- Numbers in tables ----------------------------------------------------------------------------
#
# What a column may hold is that of workloads (:func:`hpcgym.workload.columns.kind_of`), and the
# reasons by which rows are counted are those of lines of the Standard Workload Format
# (:mod:`hpcgym.workload.io.swf`).

_LIMIT = "requested_time"  # which may be none at all: infinite

#: Reasons by which rows are dropped.
TEXT = "line with text in a numeric field"
_LARGE = "line with a number too large"
_FRACTION = "line with a fraction where only whole numbers make sense"


def numbers_in(series: pd.Series[Any], column: str, name: str) -> pd.Series[Any]:
    """Return a column of a table, which ``name`` is called, as numbers; what is not one is missing.

    Raises
    ------
    WorkloadError : it holds neither numbers nor texts.
    """
    import pandas as pd

    dtype = series.dtype
    truths = pd.api.types.is_bool_dtype(dtype)
    if pd.api.types.is_numeric_dtype(dtype) and not truths:
        return series.replace(np.inf, NO_LIMIT_S) if column == _LIMIT else series
    if not (truths or pd.api.types.is_string_dtype(dtype) or pd.api.types.is_object_dtype(dtype)):
        raise WorkloadError(f"{name}: column {column} holds {dtype}, not numbers{_how(column)}")
    if read := _TEXTS.get(column):
        series = series.map(lambda value: read(value) if isinstance(value, str) else value)
    return numbers_alone(series)


def numbers_alone(series: pd.Series[Any]) -> pd.Series[Any]:
    """Return a column of texts and objects as numbers; what is not one is missing.

    True and False are no numbers, in files of JSON too.
    """
    given = series.astype(object)
    truths = given.map(lambda value: isinstance(value, bool | np.bool_)).to_numpy(np.bool_)
    return as_numbers(given.where(~truths, None) if truths.any() else series)


def wrong_numbers(
    given: pd.Series[Any], numbers: pd.Series[Any], column: str
) -> dict[tuple[str, str], NDArray[np.bool_]]:
    """Return which rows of a column hold what it cannot.

    Parameters
    ----------
    given : the column of the table, (n_jobs,).
    numbers : the same as :func:`numbers_in` has it; what is missing in both is not wrong.
    column : what it is called.

    Returns
    -------
    (reason, problem) -> (n_jobs,) bool: the reason by which such rows are counted, and what is
    wrong with the value, in words.
    """
    kind = kind_of(column)
    values = numbers.to_numpy(dtype=np.float64, na_value=np.nan)
    is_number = ~np.isnan(values)
    exact = values  # as a float 2^53 + 1 is 2^53
    if numbers.dtype.kind in "iu":
        exact = numbers.to_numpy(dtype=f"{numbers.dtype.kind}8", na_value=0)
    large = kind.problem.startswith("beyond")
    wrong = {
        (TEXT, f"not a number{_how(column)}"): ~is_number & given.notna().to_numpy(np.bool_),
        (_LARGE, "no finite number"): np.isinf(values),
        (_LARGE if large else f"line with {column} out of its limits", kind.problem): is_number
        & np.isfinite(values)
        & kind.outside(exact),
    }
    if kind.dtype is np.int64 and not kind.rounded:
        fraction = np.isfinite(values) & (np.floor(values) != values)
        wrong[_FRACTION, "not a whole number"] = fraction
    return wrong


def _how(column: str) -> str:
    """Return what a column holds in place of text, to be added to an error; nothing of most."""
    if column == MEMORY:
        return "; it must be whole MB or such as '16 GB'"
    if column in ("requested_memory", "used_memory"):
        return ", of kilobytes a processor"
    if column == SUBMIT:
        return ", nor a date such as '2024-03-01 12:00'"
    return ", nor a name" if column in NAME_COLUMNS.values() else ""


def _megabytes(text: str) -> int | str:
    """Return the megabytes of a text such as ``16 GB``, or what is not one as it is."""
    amount = amount_of(text, MEMORY_ALONE)
    return text if amount is None or amount.denominator > 1 else int(amount)


def _seconds(text: str, how: Durations = OF_TABLE) -> float | str:
    """Return the seconds of a duration such as ``1-02:03:04``, or what is not one as it is."""
    seconds = seconds_of(text, how)
    return text if seconds is None else seconds


#: Columns -> what reads their texts.
_TEXTS: dict[str, Callable[[str], Any]] = {
    MEMORY: _megabytes,
    **dict.fromkeys(
        ("wait_time", "run_time", "requested_time", "think_time", "average_cpu_time"), _seconds
    ),
    _LIMIT: partial(_seconds, how=LIMIT_OF_TABLE),
}


# --- Names in tables ------------------------------------------------------------------------------
#
# Beside such a column may stand that of the numbers, which then numbers the names; without it they
# are numbered from 1 in the order in which they first stand there. Or the column of numbers has
# itself the names, as in ``user_id`` alice, bob. A blank is a job of which the name is not known.


def without_names(frame: pd.DataFrame, name: str) -> tuple[pd.DataFrame, dict[str, list[str]]]:
    """Return a table with numbers in place of names, and the lines of a header that tell them.

    Parameters
    ----------
    frame : the table.
    name : what messages call it.

    Raises
    ------
    WorkloadError : what is no name, a number that two names have, or a name without a number where
        others have one; the message names the row.
    """
    header: dict[str, list[str]] = {}
    for column, number in NAME_COLUMNS.items():
        if column not in frame and not (number in frame and _holds_names(frame[number])):
            continue
        held = column if column in frame else number
        names = _names(frame, held, column, name)
        has_numbers = held == column and number in frame
        bare = frame.drop(columns=held)
        if has_numbers:
            of_number = _told_numbers(frame, column, names, name)
        else:
            of_name = numbered(filter(None, names))
            blank = MISSING if number in (CONSTRAINT, RESERVATION) else np.nan  # it has none
            bare = bare.assign(**{number: [of_name.get(text, blank) for text in names]})
            of_number = {of: text for text, of in of_name.items()}
        frame = bare
        header[HEADER_KEYS[number]] = name_lines(of_number)
    return frame, header


def with_names(frame: pd.DataFrame, workload: Workload) -> pd.DataFrame:
    """Return the table of a workload with columns of the names that any job has."""
    import pandas as pd

    columns: dict[str, Any] = {}
    for column, number in NAME_COLUMNS.items():
        names = names_of(workload, number)
        texts = [names.get(value) for value in workload.columns[number].tolist()] if names else []
        if any(texts):
            columns[column] = pd.Series(texts, frame.index, dtype=object)
    return frame.assign(**columns)


def _holds_names(column: pd.Series[Any]) -> bool:
    """Tell whether a column of numbers has texts that are no numbers."""
    import pandas as pd

    if pd.api.types.is_numeric_dtype(column.dtype):
        return False
    given = column.dropna().astype(object)
    kinds = set(map(type, given))
    if bool in kinds or not all(issubclass(kind, str | int | float) for kind in kinds):
        return False
    unread = given[numbers_alone(given).isna().to_numpy()]
    return any(isinstance(text, str) and text.strip() for text in unread)


def _names(frame: pd.DataFrame, held: str, column: str, name: str) -> list[str]:
    """Return the names in a column, nothing where it is blank; numbers are names in ``held``."""
    cache: dict[Any, str] = {}
    texts = []
    for row, given in enumerate(frame[held].astype(object)):
        known = cache.get(given) if isinstance(given, str) else None
        if known is None:
            known = _name(given, held != column, column, partial(where_row, frame.index, row, name))
            if isinstance(given, str):
                cache[given] = known
        texts.append(known)
    return texts


def _name(given: Any, numbers: bool, column: str, where: Callable[[], str]) -> str:
    """Return a name, nothing where it is blank."""
    if not isinstance(given, str):
        # what is not equal to itself is not-a-number
        if given is None or given != given or type(given).__name__ == "NAType":
            return ""
        if not numbers:
            what = f"not the name of a {column.removesuffix('_name')}"
            raise WorkloadError(f"{where()}: column {column} is {given!r}, {what}")
        given = f"{given:.15g}" if isinstance(given, float) else str(given)
    try:
        most = MOST_OF_LIST if NAME_COLUMNS[column] == CONSTRAINT else MOST_NAME
        return printable(check_name(given.strip(), column), most) if given.strip() else ""
    except WorkloadError as error:
        raise WorkloadError(f"{where()}: {error}") from None


def _told_numbers(frame: pd.DataFrame, column: str, names: list[str], name: str) -> dict[int, str]:
    """Return names by the numbers that the table tells itself."""
    of = NAME_COLUMNS[column]
    # as objects: large numbers stay exact
    values = as_numbers(frame[of]).to_numpy(object, na_value=np.nan)
    numbers: dict[int, str] = {}
    for row, (number, text) in enumerate(zip(values.tolist(), names, strict=True)):
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


# --- Which columns a table of jobs has ------------------------------------------------------------

#: Columns of other programs' logs, for which a table has two others.
_TIMES = ("start", "start_time", "begin", "begin_time", "end", "end_time", "finish_time")
_FOR_TIMES = "write wait_time and run_time in place of starts and ends"
_FOR_DEPENDENCIES = "write preceding_job, the job_number of each job that must end before"
#: Columns of all tables of results that hpcgym writes.
_OF_RESULTS = {"workload", "scheduler", "mean_bsld"}


def resource_columns(frame: pd.DataFrame, name: str) -> list[str]:
    """Return the columns of a table that are of units and resources.

    Raises
    ------
    WorkloadError : a column that is unknown, or needed and not there; all unknown ones are named,
        each with what may be meant.
    """
    names = [str(column) for column in frame.columns]
    _check_separator(names, name)
    if {*names} >= _OF_RESULTS and "submit_time" not in names:
        raise WorkloadError(
            f"{name} is a table of results, not of jobs: give the log that was simulated, which its"
            " column workload names"
        )
    has_units = UNITS in names or CORE in names
    resources = []
    unknown = {}
    for column in names:
        if is_job_column(column) or column == KILLED:
            continue
        if column not in (UNITS, CORE) and (hint := _hint(column, has_units)):
            unknown[column] = hint
        resources.append(column)
    if len(unknown) == 1:
        ((column, hint),) = unknown.items()
        raise WorkloadError(f"{name} has an unknown column {column!r}; {hint}")
    if unknown:
        columns_of: dict[str, list[str]] = {}  # by their hints, of which some are long
        for column, hint in unknown.items():
            columns_of.setdefault(hint, []).append(repr(column))
        listed = "; ".join(f"{', '.join(columns)} ({hint})" for hint, columns in columns_of.items())
        raise WorkloadError(f"{name} has unknown columns: {listed}")
    if "submit_time" not in names:
        raise WorkloadError(f"{name} lacks the column 'submit_time', which a workload needs")
    return resources


def _check_separator(names: list[str], name: str) -> None:
    """Raise a WorkloadError if all names are one, with something else than commas between."""
    for mark, called in ((";", "';'"), ("\t", "tabs"), ("|", "'|'")):
        if len(names) == 1 and mark in names[0]:
            raise WorkloadError(f"{name} has {called} between its columns; write commas")


def _hint(column: str, has_units: bool) -> str:
    """Return why a column is no resource and what may be meant; nothing if it is one."""
    if column.strip().casefold() in _TIMES:
        return _FOR_TIMES
    if column.strip().casefold() in ("dependency", "dependencies"):
        return _FOR_DEPENDENCIES
    problem = resource_problem(column)
    if has_units and not problem:
        return ""
    if not has_units and near_name(column, (CORE,)):
        return "did you mean 'requested_processors'?"
    names = (*JOB_COLUMNS, KILLED, UNITS, CORE, *NAME_COLUMNS)
    known = (*names, MEMORY) if has_units else names
    if near := near_name(column, known, 0.8 if has_units else 0.6):
        return f"did you mean {near!r}?"
    return problem or (
        f"a resource, of which each unit of a job asks for some, needs the column {UNITS!r} or"
        f" {CORE!r} beside it; {known_columns()}, {', '.join(NAME_COLUMNS)}"
    )


# --- Jobs that follow several others, in tables ---------------------------------------------------

#: A column of a table while it is read: from 0 on, also where rows have been dropped.
_ROW = "row of the table"

_SEVERAL = re.compile(r"\s*-?[0-9]{1,18}(\s+[1-9][0-9]{0,17})+\s*")


def without_several(frame: pd.DataFrame) -> tuple[pd.DataFrame, dict[int, list[int]]]:
    """Return a table with one preceding job a row, and the others by the place of the row.

    If there are any, the table has a column more, for :func:`pairs_in`. A blank text is no job;
    what else is no such text stays.
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
        first.append(None if isinstance(value, str) and not value.strip() else value)
    frame = frame.assign(preceding_job=pd.Series(first, frame.index, dtype=object))
    if more:
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


# --- Times in tables ------------------------------------------------------------------------------

SUBMIT = "submit_time"


def with_seconds(frame: pd.DataFrame, tz: str | None) -> tuple[pd.DataFrame, dict[str, list[str]]]:
    """Return a table with seconds in place of dates of submission, and lines of its header.

    They are seconds from the first of them on; the header tells when it was.

    Parameters
    ----------
    frame : the table.
    tz : the time zone of dates without an offset; None: UTC.

    Raises
    ------
    WorkloadError : no such time zone.
    """
    import pandas as pd

    clock = Clock(tz)
    if SUBMIT not in frame or not _holds_dates(frame[SUBMIT]):
        return frame, {}
    seconds = [_unix(value, clock) for value in frame[SUBMIT]]
    first = min((time for time in seconds if isinstance(time, int)), default=0)
    since = [time - first if isinstance(time, int) else time for time in seconds]
    frame = frame.assign(**{SUBMIT: pd.Series(since, frame.index, dtype=object)})
    return frame, clock.header(first)


def _holds_dates(values: pd.Series[Any]) -> bool:
    """Tell whether a column has dates, as such or as texts."""
    import pandas as pd

    dtype = values.dtype
    if pd.api.types.is_datetime64_any_dtype(dtype):
        return True
    texts = pd.api.types.is_object_dtype(dtype) or pd.api.types.is_string_dtype(dtype)
    return texts and any(isinstance(value, str) and is_date(value) for value in values)


def _unix(value: Any, clock: Clock) -> Any:
    """Return the seconds since 1970 of a date; None if blank, a text if it is no date."""
    import pandas as pd

    if value is None or value is pd.NaT or value != value or (isinstance(value, str) and not value):
        return None
    text = value.isoformat() if isinstance(value, pd.Timestamp) else str(value).strip()
    try:
        return clock.seconds(text)
    except ValueError:
        # a number among dates is no date
        return f"{text} (no date)" if text.lstrip("+-").replace(".", "").isdigit() else text
