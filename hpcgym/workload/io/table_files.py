"""Reading CSV and Parquet files as DataFrames; what is wrong with one ends in a clear line."""

from __future__ import annotations

import math
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hpcgym.errors import WorkloadError, installing
from hpcgym.files import csv_frame, csv_widths, parquet_frame
from hpcgym.naming import CODE
from hpcgym.workload.io.files import Errors

if TYPE_CHECKING:
    import pandas as pd


def read_csv(path: Path, errors: Errors, skipped: dict[str, int]) -> pd.DataFrame:
    """Read a CSV file; lines with too many or too few fields end in an error.

    If errors is "skip" they are left out and counted in ``skipped``. Lines whose fields are all
    empty are always left out and counted, blank lines left out.

    Raises
    ------
    WorkloadError : the file cannot be read, or a line has too many or too few fields.
    """
    import pandas as pd

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", pd.errors.ParserWarning)
        frame = csv_frame(
            path,
            WorkloadError,
            dtype={CODE: "str"},  # a name may be all digits
            skipinitialspace=True,
            skip_blank_lines=False,
            index_col=False,
            on_bad_lines="error" if errors == "raise" else "warn",
        )
    said = " ".join(str(warning.message) for warning in caught)
    if "Length of header" in said:
        raise WorkloadError(f"{path}, line 2 has more fields than line 1, the names of columns")
    number = said.count("Skipping line")
    if number:
        skipped["dropped: line with too many fields"] = number
    frame.index = pd.RangeIndex(2, len(frame) + 2, name="line")
    frame = _without_short_lines(path, frame, errors, skipped)
    filled = frame.dropna(how="all")
    if len(filled) < len(frame) and (number := _empty_lines(path)):
        skipped["dropped: line without any value"] = number
    return filled


def _without_short_lines(
    path: Path, frame: pd.DataFrame, errors: Errors, skipped: dict[str, int]
) -> pd.DataFrame:
    """Return the rows of lines with all fields: pandas takes those that lack some for empty."""
    if len(frame) == 0 or frame.iloc[:, -1].notna().all():
        return frame
    widths = csv_widths(path, WorkloadError)
    header = int(np.flatnonzero(widths)[0])
    lines = widths[header + 1 :]
    if len(lines) != len(frame):  # those that are longer have been left out
        lines = lines[lines <= widths[header]]
    short = (lines > 0) & (lines < widths[header])
    number = int(short.sum())
    if number == 0:
        return frame
    if len(lines) != len(frame):
        raise WorkloadError(f"{path} is not a CSV table: it has lines that are too short")
    if errors == "raise":
        first = int(np.flatnonzero(short)[0])
        raise WorkloadError(
            f"{path}, line {frame.index[first]} has {lines[first]} fields, and line 1, the names of"
            f" columns, {widths[header]}"
        )
    skipped["dropped: line with too few fields"] = number
    whole: pd.DataFrame = frame[~short]
    return whole


def _empty_lines(path: Path) -> int:
    """Return how many lines of a CSV file have separators and nothing else.

    In the table they look as blank lines do; without those only they have no value.
    """
    frame = csv_frame(
        path,
        WorkloadError,
        dtype="str",
        skipinitialspace=True,
        skip_blank_lines=True,
        index_col=False,
        on_bad_lines="skip",
    )
    return int(frame.isna().all(axis=1).sum())


def read_parquet(path: Path) -> pd.DataFrame:
    """Read a Parquet file."""
    need_parquet()
    return parquet_frame(path, WorkloadError)


def need_parquet() -> None:
    """Say so if the library that Parquet needs is not installed."""
    try:
        import pyarrow  # noqa: F401
    except ImportError:
        raise WorkloadError(f"Parquet needs pyarrow: {installing('parquet')}") from None


def as_numbers(series: pd.Series[Any]) -> pd.Series[Any]:
    """Return a column as numbers; what is none, or too large to be a float, is missing."""
    import pandas as pd

    try:
        return pd.to_numeric(series, errors="coerce")
    except OverflowError:  # errors="coerce" is not for numbers of over 308 digits
        return pd.to_numeric(series.map(_as_float), errors="coerce")


def _as_float(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return math.nan


def where_row(index: pd.Index[Any], row: int, name: str) -> str:
    """Return the place of a row: the line of a file, the label in a DataFrame."""
    return f"{name}, {index.name or 'row'} {index[row]}"
