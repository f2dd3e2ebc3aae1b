"""CSV, Parquet and archives of arrays: bounded before a library reads them whole."""

from __future__ import annotations

import csv
import io
import math
import os
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple

from hpcgym.errors import HpcgymError, WorkloadError, installing
from hpcgym.files import MEGABYTE, PACKED_RATIO, open_bytes, open_file, size_text, text_of
from hpcgym.files.writing import csv_cell, of_csv_cell

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from numpy.typing import NDArray

#: Columns that a table may have.
MOST_COLUMNS = 2048

#: Bytes of the small tables that are read line by line: speedups, signals.
MOST_CSV = 64 * MEGABYTE

#: Values, rows times columns, that any table may have. Beyond them it may have some for each byte
#: of its file: equal values of Parquet take no room there, and much in the memory.
_VALUES_FREE = 64 * MEGABYTE
_VALUES_RATIO = 64

# what archives of arrays may always unpack to, and beyond it for each byte: mostly they are zeros
_ARRAYS_FREE = 1024 * MEGABYTE
_ARRAYS_RATIO = 256
_MOST_MEMBERS = 1 << 16  # of an archive


def csv_rows(path: Path, kind: str) -> list[tuple[int, list[str]]]:
    """Return the rows of a small CSV file that are not blank, each with the number of its line.

    A text that :func:`hpcgym.files.writing.csv_cell` has changed is what it was.

    Raises
    ------
    HpcgymError : it cannot be read, has over 64 MiB, or is no CSV.
    """
    return csv_rows_of(text_of(path, MOST_CSV, kind), str(path))


def csv_rows_of(
    text: str, where: str, error: type[HpcgymError] = HpcgymError
) -> list[tuple[int, list[str]]]:
    """Return the rows of a text as :func:`csv_rows` does; ``where`` is what messages call it."""
    records = csv_records(io.StringIO(text, newline=""), where, error)
    rows = [(line, row) for line, row in records if any(cell.strip() for cell in row)]
    return [(line, [*map(of_csv_cell, row)]) for line, row in rows]


def csv_records(
    lines: Iterable[str],
    where: str,
    error: type[HpcgymError] = HpcgymError,
    separator: str = ",",
) -> Iterator[tuple[int, list[str]]]:
    """Go through the rows of CSV of any size, each with the number of its (last) line.

    Raises
    ------
    HpcgymError : it is no CSV, or has over 2,048 columns; ``where`` is what the message calls it.
    """
    reader = csv.reader(lines, skipinitialspace=True, delimiter=separator)
    try:
        for row in reader:
            if len(row) > MOST_COLUMNS:
                raise error(f"{where}, line {reader.line_num}: {_too_wide(len(row))}")
            yield reader.line_num, row
    except csv.Error as problem:
        raise error(f"{where}, line {reader.line_num} is not CSV: {problem}") from None


def csv_frame(path: Path, error: type[HpcgymError] = HpcgymError, **options: Any) -> pd.DataFrame:
    """Return a CSV file, plain or gzip, as pandas reads it, texts as before ``csv_cell``.

    Parameters
    ----------
    path : of the file; its first line has the names of columns.
    error : what is raised.
    options : of ``pandas.read_csv``.

    Raises
    ------
    HpcgymError : it cannot be read, or is empty or no CSV.
    """
    import pandas as pd

    with open_bytes(path, error) as file:
        try:
            frame: pd.DataFrame = pd.read_csv(file, encoding="utf-8-sig", **options)
        except pd.errors.EmptyDataError:
            raise error(f"{path} is empty") from None
        except UnicodeDecodeError:
            raise error(f"{path} is binary, not a CSV table") from None
        except HpcgymError:
            raise
        except (ValueError, ArithmeticError, LookupError) as problem:
            reason = str(problem).removeprefix("Error tokenizing data. C error: ").strip()
            raise error(f"{path} is not a CSV table: {_first_line(reason)}") from None
    return _with_texts(frame, of_csv_cell)


def write_csv_frame(frame: pd.DataFrame, file: IO[str], *, index: bool = False) -> None:
    """Write a table as CSV, texts by :func:`hpcgym.files.writing.csv_cell`.

    Parameters
    ----------
    frame : the table.
    file : to write into.
    index : whether its index comes first.
    """
    made = _with_texts(frame, csv_cell)
    if index:
        made = made.rename(index=csv_cell)
    made.to_csv(file, index=index, lineterminator="\n")


def _with_texts(frame: pd.DataFrame, change: Callable[[Any], Any]) -> pd.DataFrame:
    """Return a table in which texts and names of columns are changed; values stay as they are."""
    made = frame.rename(columns=change)
    for place, kind in enumerate(frame.dtypes):
        if kind.kind not in "iufbMm":
            column = frame.iloc[:, place]
            texts = [text for text in column.unique() if isinstance(text, str)]
            if changed := {text: new for text in texts if (new := change(text)) != text}:
                made.isetitem(place, column.map(lambda text: changed.get(text, text)).array)
    return made


def need_parquet() -> None:
    """Raise an error if Parquet's library is missing."""
    try:
        import pyarrow  # noqa: F401
    except ImportError:
        raise WorkloadError(f"Parquet needs pyarrow: {installing('parquet')}") from None


def parquet_metadata(path: Path) -> dict[str, str]:
    """Return what a Parquet file tells beside its columns, by key; pyarrow must be installed.

    Raises
    ------
    HpcgymError : it cannot be read, is no Parquet or a damaged one.
    """
    from pyarrow.parquet import ParquetFile

    with _parquet(path, HpcgymError) as opened, ParquetFile(opened) as file:
        metadata = file.schema_arrow.metadata or {}
        return {key.decode(): value.decode("utf-8", "replace") for key, value in metadata.items()}


def write_parquet(frame: pd.DataFrame, path: Path, texts: Mapping[str, str]) -> None:
    """Write a table as Parquet, with texts by key beside its columns; pyarrow must be installed."""
    import pyarrow as pa
    from pyarrow.parquet import write_table

    table = pa.Table.from_pandas(frame, preserve_index=False)
    write_table(table.replace_schema_metadata({**(table.schema.metadata or {}), **texts}), path)


@contextmanager
def _parquet(path: Path, error: type[HpcgymError]) -> Iterator[IO[bytes]]:
    """Open a file; say of what goes wrong in it that it cannot be read, or is no Parquet."""
    try:
        with open_file(path, error) as file:
            yield file
    except HpcgymError:
        raise
    except Exception as problem:  # pyarrow raises many kinds for what it did not write
        raise error(f"{path} is not a Parquet file, or a damaged one: {_words(problem)}") from None


def parquet_frame(path: Path, error: type[HpcgymError] = HpcgymError) -> pd.DataFrame:
    """Return a Parquet file as pandas reads it; pyarrow must be installed.

    Raises
    ------
    HpcgymError : it cannot be read, is no Parquet or a damaged one, or tells more rows and columns
        than its size allows.
    """
    import pandas as pd

    with _parquet(path, error) as file:
        _check_size(path, file, error)
        return pd.read_parquet(file)


def check_parquet(path: Path) -> None:
    """Raise the HpcgymError of :func:`parquet_frame` before another library reads a file."""
    with _parquet(path, HpcgymError) as file:
        _check_size(path, file, HpcgymError)


# --- Archives of arrays ---------------------------------------------------------------------------


class Head(NamedTuple):
    """What an array says of itself before its numbers are read."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]


#: What raises an HpcgymError for heads of arrays, by name, that are not as they should be.
CheckHeads = Callable[[Mapping[str, Head]], None]


def arrays_of(
    path: str | Path, names: Sequence[str] | None = None, check: CheckHeads | None = None
) -> dict[str, NDArray[Any]]:
    """Return the arrays of an ``.npz`` file by their names; no pickled objects.

    Parameters
    ----------
    path : of the file.
    names : of those that are needed; None: all that there are.
    check : what looks at the arrays' shapes and types before any of them is unpacked.

    Raises
    ------
    HpcgymError : it cannot be read, holds no arrays or not these, or unpacks to far more than such
        files do, or as of ``check``.
    """
    with open_archive(path) as (_, archive):
        try:
            members = {name.removesuffix(".npy"): name for name in archive.namelist()}
            chosen = {name: members[name] for name in (members if names is None else names)}
            heads = {name: _head(archive, member) for name, member in chosen.items()}
        except Exception as problem:  # zipfile and numpy raise many kinds for what is damaged
            raise _no_arrays(path, problem) from None
        if check is not None:
            check(heads)
        try:
            return {name: _array(archive, member) for name, member in chosen.items()}
        except Exception as problem:
            raise _no_arrays(path, problem) from None


def _no_arrays(path: str | Path, problem: Exception) -> HpcgymError:
    """Return the error of a file that has not the arrays that are needed."""
    why = f"it has no {problem}" if isinstance(problem, KeyError) else _words(problem)
    return HpcgymError(f"{path} holds no such arrays: {why}")


def _head(archive: zipfile.ZipFile, member: str) -> Head:
    """Return what an array says of itself; raise a ValueError if it has not the bytes for that."""
    from numpy.lib import format as npy

    with archive.open(member) as file:
        version = npy.read_magic(file)
        if version not in ((1, 0), (2, 0)):  # numpy writes others for names of fields alone
            raise ValueError("one of them is invalid")
        read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
        shape, _, dtype = read(file)
        if dtype.hasobject:
            raise ValueError("one of them has pickled objects")
        if math.prod(shape) * dtype.itemsize != archive.getinfo(member).file_size - file.tell():
            raise ValueError("one of them has not as many bytes as it should")
        return Head(shape, dtype)


def _array(archive: zipfile.ZipFile, member: str) -> NDArray[Any]:
    """Return an array, whose head has been looked at."""
    from numpy.lib import format as npy

    with archive.open(member) as file:
        array: NDArray[Any] = npy.read_array(file, allow_pickle=False)
        file.read(1)  # at whose end the checksum is compared
        return array


def is_whole(path: str | Path) -> bool:
    """Tell whether an archive can be read, and all its members have their checksums."""
    try:
        with open_archive(path) as (_, archive):
            return archive.testzip() is None  # in pieces
    except Exception:  # zipfile raises many kinds for what is damaged
        return False


@contextmanager
def open_archive(path: str | Path) -> Iterator[tuple[io.BufferedReader[Any], zipfile.ZipFile]]:
    """Open a ZIP file that does not unpack to far more than arrays do: its bytes, and its members.

    Raises
    ------
    HpcgymError : it cannot be read, it is no ZIP file, or it unpacks to more than that.
    """
    with open_file(path) as file:
        size = os.fstat(file.fileno()).st_size
        try:
            archive = zipfile.ZipFile(file)
            members = archive.infolist()
        except Exception as problem:  # zipfile raises many kinds for what is damaged
            raise HpcgymError(f"{path} is no archive of arrays: {_words(problem)}") from None
        with archive:
            if len(members) > _MOST_MEMBERS:
                raise HpcgymError(
                    f"{path} has {len(members):,} members; an archive of arrays may have"
                    f" {_MOST_MEMBERS:,}"
                )
            unpacked = sum(member.file_size for member in members)
            if unpacked > max(_ARRAYS_FREE, _ARRAYS_RATIO * size):
                raise HpcgymError(
                    f"{path} unpacks to {size_text(unpacked)}, over {_ARRAYS_RATIO} times its size:"
                    " it is damaged"
                )
            file.seek(0)
            yield file, archive


def _check_size(path: Path, file: IO[bytes], error: type[HpcgymError]) -> None:
    """Raise an error if a Parquet file tells more than its bytes can hold."""
    from pyarrow.parquet import ParquetFile

    metadata, size = ParquetFile(file).metadata, os.fstat(file.fileno()).st_size
    rows, columns = metadata.num_rows, metadata.num_columns
    if columns > MOST_COLUMNS:
        raise error(f"{path}: {_too_wide(columns)}")
    groups = [metadata.row_group(place) for place in range(metadata.num_row_groups)]
    if rows < 0 or sum(group.num_rows for group in groups) != rows:
        raise error(f"{path} is a damaged Parquet file: its numbers of rows do not agree")
    if rows * max(columns, 1) > max(_VALUES_FREE, _VALUES_RATIO * size):
        raise error(
            f"{path} tells of {rows:,} rows of {columns} columns in {size:,} bytes, over"
            f" {_VALUES_RATIO} values a byte: it is damaged"
        )
    for group in groups:
        for place in range(group.num_columns):
            chunk = group.column(place)
            packed, unpacked = chunk.total_compressed_size, chunk.total_uncompressed_size
            most = max(_VALUES_FREE, PACKED_RATIO * size)
            if not 0 <= packed <= size or not 0 <= unpacked <= most:
                raise error(f"{path} is a damaged Parquet file: a column is larger than the file")


def _too_wide(columns: int) -> str:
    return f"{columns:,} columns or more; a table may have {MOST_COLUMNS:,}"


def _words(problem: BaseException) -> str:
    """Return what a library raised, as one line."""
    return _first_line(str(problem)) or type(problem).__name__


def _first_line(text: str) -> str:
    return (text.splitlines() or [""])[0]
