"""Times in tables: dates of submissions, durations such as ``1-02:03:04``, as seconds.

Where a column holds such texts, each value that is none stays a text, of which its reader says so.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from hpcgym.workload.io.times import Clock, duration, is_date

if TYPE_CHECKING:
    import pandas as pd

SUBMIT = "submit_time"
_DURATIONS = ("wait_time", "run_time", "requested_time", "think_time", "average_cpu_time")


def with_seconds(frame: pd.DataFrame, tz: str | None) -> tuple[pd.DataFrame, dict[str, list[str]]]:
    """Return a table with seconds in place of dates and durations, and lines of its header.

    Dates of ``submit_time`` become seconds from the first of them on; the header tells when it was.

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
    header: dict[str, list[str]] = {}
    for column in map(str, frame.columns):
        if list(frame.columns).count(column) > 1:
            continue  # which is said later
        values = frame[column]
        if column in _DURATIONS and _has(values, lambda text: ":" in text):
            frame = frame.assign(**{column: values.map(_seconds)})
        elif column == SUBMIT and _holds_dates(values):
            seconds = [_unix(value, clock) for value in values]
            first = min((one for one in seconds if isinstance(one, int)), default=0)
            since = [one - first if isinstance(one, int) else one for one in seconds]
            frame = frame.assign(**{column: pd.Series(since, frame.index, dtype=object)})
            header = clock.header(first)
    return frame, header


def _has(values: pd.Series[Any], test: Callable[[str], bool]) -> bool:
    """Tell whether a column has a text for which the test holds."""
    import pandas as pd

    dtype = values.dtype
    if not (pd.api.types.is_object_dtype(dtype) or pd.api.types.is_string_dtype(dtype)):
        return False
    return any(isinstance(value, str) and test(value) for value in values)


def _holds_dates(values: pd.Series[Any]) -> bool:
    """Tell whether a column has dates, as such or as texts."""
    import pandas as pd

    return pd.api.types.is_datetime64_any_dtype(values.dtype) or _has(values, is_date)


def _seconds(value: Any) -> Any:
    """Return the seconds of a duration, or what is none as it is."""
    if not isinstance(value, str):
        return value
    try:
        return duration(value.strip())
    except ValueError:
        return value


def _unix(value: Any, clock: Clock) -> Any:
    """Return the seconds since 1970 of a date; None if it is blank, else a text if it is none."""
    import pandas as pd

    if value is None or value is pd.NaT or value != value or (isinstance(value, str) and not value):
        return None
    text = value.isoformat() if isinstance(value, pd.Timestamp) else str(value).strip()
    try:
        return clock.seconds(text)
    except ValueError:
        # a number among dates is none
        return f"{text} (no date)" if text.lstrip("+-").replace(".", "").isdigit() else text
