"""Reading CSV and Parquet files of jobs as DataFrames; what is wrong is one line."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from hpcgym.errors import NoJobError, WorkloadError
from hpcgym.files import lines_of
from hpcgym.files import sha256_of as sha256_of
from hpcgym.files.tables import csv_frame, csv_records
from hpcgym.names import NAME_COLUMNS, printable

if TYPE_CHECKING:
    import pandas as pd

    from hpcgym.workload.model import Workload


# --- Names and checksums of files -----------------------------------------------------------------

#: How the names of files that hold tables end.
TABLE_ENDINGS = (".csv", ".csv.gz", ".parquet", ".json", ".json.gz")

#: What to do with a line that is no job: stop with an error, or drop and count it.
Errors = Literal["raise", "skip"]


#: What errors of lines end with that may be left out.
SKIPS = "; errors='skip', or --errors skip, drops and counts such lines"


def check_errors(errors: str) -> None:
    """Raise a WorkloadError unless ``errors`` is one of the two ways to treat bad lines."""
    if errors not in ("raise", "skip"):
        raise WorkloadError(f"errors must be 'raise' or 'skip', not {errors!r}")


@dataclass(frozen=True)
class ReadOptions:
    """How a file is read, whatever its format.

    Attributes
    ----------
    processors : size of the machine, instead of what the file tells.
    errors : what to do with a line that is no job.
    format : name of the format, in :data:`hpcgym.workload.load.FORMATS`; None: it is recognized.
    tz : the time zone of dates without an offset, such as ``Europe/Berlin``; None: not given.
    fields : names of the fields of a dump of ``sacct -n``, which has no header; None: it has one.
    cluster : name of the machine with nodes for which the jobs are read; None: a pool.
    resources : of its nodes.
    unfinished : whether jobs stay that had not started or ended when the file was written: without
        wait and run time, -1.
    """

    processors: int | None = None
    errors: Errors = "raise"
    format: str | None = None
    tz: str | None = None
    fields: tuple[str, ...] | None = None
    cluster: str | None = None
    resources: tuple[str, ...] = ()
    unfinished: bool = False

    def __post_init__(self) -> None:
        check_errors(self.errors)


def names_in(fields: str | Sequence[str] | None) -> tuple[str, ...] | None:
    """Return names of fields, also of a text with commas between them; None if none are given."""
    names = fields.split(",") if isinstance(fields, str) else fields
    return None if names is None else tuple(names)


class FileFormat(NamedTuple):
    """A format of files of jobs; modules of readers call theirs ``FORMAT``.

    Attributes
    ----------
    recognizes : tells whether a file is of it, by its path and first bytes, unpacked.
    read : reads one.
    """

    recognizes: Callable[[Path, bytes], bool]
    read: Callable[[Path, ReadOptions], Workload]


def is_table(path: Path) -> bool:
    """Tell whether a file's name ends as that of a table does."""
    return path.name.casefold().endswith(TABLE_ENDINGS)


def stem(path: Path) -> str:
    """Return the name of a file without its folder and without endings such as ``.swf.gz``."""
    name = path.name
    for ending in (".gz", ".swf", ".csv", ".parquet", ".json"):
        name = name.removesuffix(ending)
    return printable(name) or path.name


def file_name(path: Path) -> str:
    """Return the name of a file without its folder, as messages call it."""
    return printable(path.name) or path.name


def no_job(where: object, counts: Mapping[str, int], what: str = "no job") -> NoJobError:
    """Return the error that a file holds no job, and why: what was counted of its lines."""
    why = ", ".join(f"{n:,} {reason.removeprefix('dropped: ')}" for reason, n in counts.items())
    return NoJobError(f"{where} holds {what}{why and f': {why}'}")


def check_once(columns: Iterable[str], name: object) -> None:
    """Raise a WorkloadError if a table has a column twice; ``name`` is what it is called."""
    seen = set()
    for column in columns:
        if column in seen:
            raise WorkloadError(f"{name} has the column {column!r} twice")
        seen.add(column)


# --- Reading CSV and Parquet files as DataFrames --------------------------------------------------

#: What stands for a number that is not known, as pandas has it.
_NOTHING = [
    *("", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN"),
    *("<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null"),
]


def read_csv(path: Path, errors: Errors, skipped: dict[str, int]) -> pd.DataFrame:
    """Read a CSV file; lines with too many or too few fields end in an error.

    If errors is "skip" they are left out and counted in ``skipped``. Lines whose fields are all
    empty are always left out and counted, blank lines left out.

    Raises
    ------
    WorkloadError : the file cannot be read, has a column twice, or a line with too many or too
        few fields.
    """
    import pandas as pd

    texts = (text for text, _ in lines_of(path, "a CSV table", WorkloadError))
    names: list[str] = []
    lines: list[int] = []
    left_out: set[int] = set()  # rows: one may have several lines
    # pandas takes fields that are not there for empty ones, and does not count what it leaves out
    for row, (line, cells) in enumerate(csv_records(texts, str(path), WorkloadError)):
        if not any(cell.strip() for cell in cells):
            problem = "without any value" if len(cells) > 1 else ""
        elif not names:
            names = [name.strip() for name in cells]
            continue
        elif len(cells) == len(names):
            lines.append(line)
            continue
        else:
            problem = f"with too {'many' if len(cells) > len(names) else 'few'} fields"
            if errors == "raise":
                raise WorkloadError(
                    f"{path}, line {line} has {len(cells)} fields, and line 1, the names of"
                    f" columns, has {len(names)}{SKIPS}"
                )
        left_out.add(row)
        if problem:
            reason = f"dropped: line {problem}"
            skipped[reason] = skipped.get(reason, 0) + 1
    check_once(filter(None, names), path)  # pandas would call the second one run_time.1
    options = _names_as_written(names)
    frame = csv_frame(
        path, WorkloadError, skipinitialspace=True, index_col=False, skiprows=left_out, **options
    )
    frame.index = pd.Index(lines, name="line")
    return frame


def _names_as_written(columns: list[str]) -> dict[str, Any]:
    """Return options by which names stay what they are, all digits, or ``null``."""
    if not {*columns} & {*NAME_COLUMNS}:
        return {}
    blank = {column: [""] if column in NAME_COLUMNS else _NOTHING for column in columns}
    kinds = dict.fromkeys(NAME_COLUMNS, "str")
    return {"dtype": kinds, "na_values": blank, "keep_default_na": False}


def as_numbers(series: pd.Series[Any]) -> pd.Series[Any]:
    """Return a column as numbers; what is not one, or too large to be a float, is missing."""
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
