"""Reading CSV and Parquet files as DataFrames; what is wrong with one ends in a clear line."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hpcgym.errors import WorkloadError, installing
from hpcgym.naming import CODE
from hpcgym.workload.files import Errors

if TYPE_CHECKING:
    import pandas as pd


def read_csv(path: Path, errors: Errors, skipped: dict[str, int]) -> pd.DataFrame:
    """Read a CSV file; lines with too many fields are counted in ``skipped`` if errors is skip."""
    import pandas as pd

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", pd.errors.ParserWarning)
        try:
            frame = pd.read_csv(
                path,
                encoding="utf-8-sig",
                dtype={CODE: "str"},  # a name may be all digits
                skipinitialspace=True,
                skip_blank_lines=False,
                index_col=False,
                on_bad_lines="error" if errors == "raise" else "warn",
            )
        except pd.errors.EmptyDataError:
            raise WorkloadError(f"{path} is empty") from None
        except pd.errors.ParserError as error:
            reason = str(error).removeprefix("Error tokenizing data. C error: ").strip()
            raise WorkloadError(f"{path} is not a CSV table: {reason.splitlines()[0]}") from None
        except UnicodeDecodeError:
            raise WorkloadError(f"{path} is binary, not a CSV table") from None
    said = " ".join(str(warning.message) for warning in caught)
    if "Length of header" in said:
        raise WorkloadError(f"{path}, line 2 has more fields than line 1, the names of columns")
    number = said.count("Skipping line")
    if number:
        skipped["dropped: line with too many fields"] = number
    frame.index = pd.RangeIndex(2, len(frame) + 2, name="line")
    return frame.dropna(how="all")  # blank lines


def read_parquet(path: Path) -> pd.DataFrame:
    """Read a Parquet file."""
    import pandas as pd

    need_parquet()
    from pyarrow.lib import ArrowException

    try:
        return pd.read_parquet(path)
    except ArrowException as error:
        reason = str(error).splitlines()[0]
        raise WorkloadError(f"{path} is not a Parquet file: {reason}") from None


def need_parquet() -> None:
    """Say so if the library that Parquet needs is not installed."""
    try:
        import pyarrow  # noqa: F401
    except ImportError:
        raise WorkloadError(f"Parquet needs pyarrow: {installing('parquet')}") from None


def where_row(index: pd.Index[Any], row: int, name: str) -> str:
    """Return the place of a row: the line of a file, the label in a DataFrame."""
    return f"{name}, {index.name or 'row'} {index[row]}"
