"""Reading and writing the Standard Workload Format 2.2, plain or gzip, a block of lines at a time.

The format: one job a line, 18 numbers between blanks, -1 where a value is unknown; comment lines
start with a semicolon, those before the first job are the header. Source:
https://www.cs.huji.ac.il/labs/parallel/workload/swf.html
"""

from __future__ import annotations

import math
import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from decimal import ROUND_HALF_UP, Decimal
from itertools import repeat
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from hpcgym._engine import parse_lines
from hpcgym.errors import WorkloadError, WorkloadWarning, warn_caller
from hpcgym.files import open_bytes, utf_16
from hpcgym.files.writing import whole_text
from hpcgym.names import CORE, MEMORY, SWF_COLUMNS
from hpcgym.workload.cleaning import size_by_jobs
from hpcgym.workload.columns import MISSING, TIME_COLUMNS, ColumnRange, kind_of
from hpcgym.workload.io.files import Errors, FileFormat, check_errors, is_table, no_job, stem
from hpcgym.workload.io.swf_header import HeaderReader, header_lines
from hpcgym.workload.model import Workload

# --- A line of the Standard Workload Format -------------------------------------------------------
#
# ``hpcgym._engine.parse_lines`` reads what nearly every line of a log looks like, millions of
# lines a second. What it does not understand (text, an exponent, a field too few, a number too
# long) it leaves to :func:`parse_line`, which knows the whole format.

FIELDS = len(SWF_COLUMNS)

#: How a field is read: as a whole number, rounded to one, rounded and limited, or with decimals.
WHOLE, ROUNDED, TIME, DECIMAL = range(4)


def _kind(column: str) -> int:
    kind = kind_of(column)
    if kind.dtype is np.float64:
        return DECIMAL
    if column in TIME_COLUMNS:
        return TIME
    return ROUNDED if kind.rounded else WHOLE


KINDS = [_kind(c) for c in SWF_COLUMNS]


class BadLineError(ValueError):
    """A line that is no job: what is wrong with it, and the reason it is counted under."""

    def __init__(self, problem: str, reason: str) -> None:
        super().__init__(problem)
        self.reason = reason


_MOST_DIGITS = 1000  # of a number; Decimal has its limits too
_NUMBER = re.compile(rb"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,4})?")


def parse_line(line: bytes) -> tuple[list[int | float], int, bool]:
    """Read one line that must be a job.

    Returns
    -------
    values, rounded, extra : the 18 fields, a bit mask of those rounded to whole numbers, and
        whether the line has more fields.

    Raises
    ------
    BadLineError : saying which field is wrong, and how.
    """
    line = line.rstrip(b"\r\n")
    if b"\r" in line:
        raise BadLineError("a carriage return inside the line", "line with a carriage return in it")
    tokens = line.split()
    values: list[int | float] = []
    rounded = 0
    for k, (token, column) in enumerate(zip(tokens, SWF_COLUMNS, strict=False)):
        try:
            value, changed = _parse_field(token, kind_of(column))
        except BadLineError as error:
            shown = token[:24].decode("utf-8", "backslashreplace")
            problem = f"field {k + 1} ({column}) is {shown!r}, {error}"
            if line.count(b"|") > 1:
                problem += "; a dump of sacct begins with names of fields; or --fields tells them"
            raise BadLineError(problem, error.reason) from None
        values.append(value)
        rounded |= changed << k
    if len(tokens) < FIELDS:
        raise BadLineError(
            f"{len(tokens)} fields instead of {FIELDS}, {SWF_COLUMNS[len(tokens)]} is missing",
            f"line with fewer than {FIELDS} fields",
        )
    return values, rounded, len(tokens) > FIELDS


def _parse_field(token: bytes, kind: ColumnRange) -> tuple[int | float, bool]:
    """Return the value of a field as it is stored, and whether it was rounded."""
    if not _NUMBER.fullmatch(token):
        raise BadLineError("not a number", "line with text in a numeric field")
    if len(token) > _MOST_DIGITS:
        raise BadLineError("too long", "line with a number too large")
    if kind.dtype is np.float64:
        number = float(token)
        if math.isinf(number):
            raise BadLineError("too large", "line with a number too large")
        return number, False
    exact = Decimal(token.decode())
    if not exact:
        return 0, False
    nearest = exact.quantize(Decimal(1), ROUND_HALF_UP) if exact.adjusted() < 20 else exact
    if not kind.lowest <= nearest <= kind.highest:
        raise BadLineError(kind.problem, "line with a number too large")
    if nearest != exact and not kind.rounded:
        raise BadLineError(
            "not a whole number", "line with a fraction where only whole numbers make sense"
        )
    return int(nearest), nearest != exact


# --- Reading and writing the Standard Workload Format 2 -------------------------------------------

BLOCK_BYTES = 4 << 20  # of text read at once: what reading needs beside the columns
_SHORTEST_JOB = 36  # bytes of a line of 18 digits
_SPECIAL_LINES = 4096
_WRITTEN_AT_ONCE = 65536  # jobs
MOST_COMMENTS = 100_000  # lines; traces have some hundred, and each takes memory
_EXTRA = "repaired: columns after the 18th ignored"


def read_swf(
    path: str | os.PathLike[str], *, errors: Errors = "raise", processors: int | None = None
) -> Workload:
    """Read an SWF file as it is, without any cleaning.

    The machine's size is MaxProcs of the header, else MaxNodes, both whole numbers which a remark
    may follow, else what the jobs tell of it (:func:`hpcgym.workload.cleaning.size_by_jobs`).
    Jobs are sorted by submit time. Decimals of times and memory are rounded to the nearest whole
    number (halves away from 0); further columns after the 18th are ignored. Both are counted in
    ``Workload.cleaning``.

    Parameters
    ----------
    path : the file, plain text or gzip; its content tells which.
    errors : "raise" stops at the first line that is no job; "skip" drops and counts such lines.
    processors : size of the machine, instead of what the file tells.

    Raises
    ------
    WorkloadError : a file that cannot be read or holds no job, or a line that is no job: fewer than
        18 fields, text in a field, a time beyond 2^53 s; a machine's size that is no plain whole
        number, such as ``1,024``. It names the file, the line and the field.

    Warns
    -----
    WorkloadWarning : the header tells no size of the machine, or several.
    """
    check_errors(errors)
    path = Path(path)
    reader = _ColumnReader(path, errors)
    with open_bytes(path, WorkloadError) as file:
        for text, whole in _blocks(file, path):
            reader.read(text, whole)
    return reader.workload(processors)


def write_swf(workload: Workload, path: str | os.PathLike[str]) -> None:
    """Write a workload as an SWF file, gzip if the name ends in ``.gz``.

    The header is the workload's own, with the version and the machine's size added where they are
    missing or not right. Reading the file gives equal columns of SWF. The format has no place for
    units of several cores, for resources such as accelerators, for jobs that follow several others,
    nor for measured power and slowdowns. A file that is there is replaced, whole or not at all.

    Raises
    ------
    WorkloadError : a file that cannot be written, or whose name ends as a table's does; an extract,
        of which the format would lose with which jobs it begins.

    Warns
    -----
    WorkloadWarning : jobs have something that the format has no place for; it counts them.
    """
    path = Path(path)
    if is_table(path):
        raise WorkloadError(
            f"{path}: the name is that of a table, and this would be SWF: a name for SWF ends in"
            " .swf or .swf.gz"
        )
    if workload.initial is not None:
        raise WorkloadError(
            f"{path}: SWF would lose the state with which {workload.name} begins: write the whole"
            " trace, and take the extract when it is read; or pickle the extract"
        )
    with whole_text(path) as file:
        for line in header_lines(workload.header, workload.processors):
            file.write(line + "\n")
        for first in range(0, len(workload), _WRITTEN_AT_ONCE):
            jobs = slice(first, first + _WRITTEN_AT_ONCE)
            fields = [_texts(workload.columns[c][jobs]) for c in SWF_COLUMNS]
            file.write("\n".join(map(" ".join, zip(*fields, strict=True))) + "\n")
    lost = _lost(workload)
    if lost:
        jobs_lost = int(np.count_nonzero(np.logical_or.reduce(list(lost.values()))))
        each = ", ".join(f"{what} ({np.count_nonzero(at):,})" for what, at in lost.items())
        warn_caller(
            f"{path}: SWF has no place for what {jobs_lost:,} of {len(workload):,} jobs have:"
            f" {each}; a workload in CSV, JSON or Parquet keeps it (write_table)",
            WorkloadWarning,
        )


def _lost(workload: Workload) -> dict[str, NDArray[np.bool_]]:
    """Return what the format has no place for -> which jobs have it, (n_jobs,)."""
    columns = workload.columns.items()
    lost = {c: values != MISSING for c, values in columns if c not in SWF_COLUMNS}
    if workload.more_preceding is not None:
        several = np.isin(workload.job_number, workload.more_preceding[:, 0])
        lost["preceding jobs beside the first"] = several
    for resource, demand in workload.per_unit.items():
        if resource == CORE:
            # readers of the file take each processor for a unit of one core
            lost["units of several cores"] = demand > 1
        elif resource == MEMORY:
            lost[MEMORY] = (demand > 0) & (workload.requested_memory == MISSING)
        else:
            lost[resource] = demand > 0
    return {what: at for what, at in lost.items() if at.any()}


def _texts(values: NDArray[Any]) -> Iterator[str]:
    """Return the values of a column as they stand in a file."""
    if values.strides == (0,):
        return repeat(str(values[0].item()), values.size)
    if values.dtype.kind == "i":
        return map(str, values.tolist())
    return (str(int(v)) if v.is_integer() else repr(v) for v in values.tolist())


def _blocks(file: IO[bytes], path: Path) -> Iterator[tuple[bytes, bool]]:
    """Return the file in blocks of whole lines, and whether each ends as the file has it.

    False means that the last line lacks its line end, which is added.
    """
    rest = b""
    first = True
    while data := file.read(BLOCK_BYTES):
        if first:
            data = data.removeprefix(b"\xef\xbb\xbf")  # a byte order mark
            if b"\0" in data[:1024]:
                problem = f"not a Standard Workload Format text{utf_16(data)}"
                raise WorkloadError(f"{path} is binary, {problem}")
            first = False
        end = data.rfind(b"\n") + 1
        if end:
            yield rest + data[:end], True
            rest = data[end:]
        elif len(rest) > BLOCK_BYTES:
            raise WorkloadError(f"{path} has a line of over 4 MiB: no Standard Workload Format")
        else:
            rest += data
    if first:
        raise WorkloadError(f"{path} is empty")
    if rest:
        yield rest + b"\n", False


def _joined(pieces: list[NDArray[Any]]) -> NDArray[Any]:
    """Return a read-only column; it takes no memory if no piece has any value."""
    if all(piece.strides == (0,) for piece in pieces):
        return np.broadcast_to(pieces[0].dtype.type(MISSING), sum(map(len, pieces)))
    whole = np.concatenate(pieces)
    whole.flags.writeable = False
    return whole


class _ColumnReader:
    """Gathers the columns, the header and what had to be dropped or repaired, block by block."""

    def __init__(self, path: Path, errors: Errors) -> None:
        self.path = path
        self.errors = errors
        self.header = HeaderReader()
        self.pieces: dict[str, list[NDArray[Any]]] = {c: [] for c in SWF_COLUMNS}
        self.line = self.jobs = 0
        self.counts: Counter[str] = Counter()
        self.rounded = np.zeros(len(SWF_COLUMNS), dtype=np.int64)

    def read(self, text: bytes, complete: bool) -> None:
        """Add the lines of ``text``; ``complete`` tells that the last had its line end."""
        rows = len(text) // _SHORTEST_JOB + 1
        whole = np.empty((len(SWF_COLUMNS), rows), dtype=np.int64)
        decimal = np.empty(rows)
        special = np.empty((_SPECIAL_LINES, 4), dtype=np.int64)
        position = 0
        while position < len(text):
            position, self.line, row, n_special, n_extra = parse_lines(
                text, position, self.line, KINDS, whole, decimal, special, self.rounded
            )
            self.counts[_EXTRA] += n_extra
            keep = np.ones(row, dtype=np.bool_)
            for start, end, line, at in special[:n_special].tolist():
                if at < 0:  # a comment
                    self.header.add(text[start:end], line, after_jobs=at < -1 or self.jobs > 0)
                    if self.header.count > MOST_COMMENTS:
                        raise WorkloadError(
                            f"{self.path}, line {line}: no trace has over {MOST_COMMENTS:,} lines"
                            " of comments"
                        )
                else:
                    cut = not complete and end == len(text) - 1
                    keep[at] = self._odd_line(text[start:end], line, cut, whole[:, at], decimal, at)
            self.jobs += row
            jobs = slice(row) if keep.all() else np.flatnonzero(keep)
            for k, pieces in enumerate(self.pieces.values()):
                values = decimal[jobs] if KINDS[k] == DECIMAL else whole[k][jobs]
                untold = np.broadcast_to(values.dtype.type(MISSING), len(values))
                pieces.append(untold if (values == untold).all() else values.copy())

    def _odd_line(
        self,
        text: bytes,
        line: int,
        cut: bool,
        whole: NDArray[np.int64],
        decimal: NDArray[np.float64],
        row: int,
    ) -> bool:
        """Read a line that the fast path left; return whether it is a job."""
        try:
            values, rounded, extra = parse_line(text)
        except BadLineError as error:
            if self.errors == "raise":
                hint = "; it is the last line: is the file truncated?" if cut else ""
                if line == 1:
                    hint = "; what begins like no other format is read as SWF"
                raise WorkloadError(f"{self.path}, line {line}: {error}{hint}") from None
            self.counts[f"dropped: {error.reason}"] += 1
            return False
        for k, value in enumerate(values):
            if KINDS[k] == DECIMAL:
                decimal[row] = value
            else:
                whole[k] = value
            self.rounded[k] += (rounded >> k) & 1
        self.counts[_EXTRA] += extra
        return True

    def workload(self, processors: int | None) -> Workload:
        """Return what was read."""
        for column, number in zip(SWF_COLUMNS, self.rounded.tolist(), strict=True):
            self.counts[f"repaired: {column} rounded to a whole number"] = number
        cleaning = {reason: number for reason, number in self.counts.items() if number}
        columns = {column: _joined(self.pieces.pop(column)) for column in SWF_COLUMNS}
        if not len(columns["submit_time"]):
            raise no_job(self.path, cleaning)
        size = self._machine_size(columns) if processors is None else processors
        self._check_start()
        return Workload.from_columns(
            columns,
            processors=size,
            name=stem(self.path),
            header=self.header.finish(),
            cleaning=cleaning,
        )

    def _machine_size(self, columns: Mapping[str, NDArray[Any]]) -> int:
        """Return the processors that the header tells, or else the jobs; say what is odd."""
        try:
            size, odd = self.header.machine_size(str(self.path))
        except WorkloadError as error:
            raise WorkloadError(
                f"{error}; correct it, or give the machine's size: processors=... (--processors)"
            ) from None
        if size is None:
            return size_by_jobs(columns, str(self.path), odd)
        if odd:
            warn_caller(
                f"{self.path}: {odd}: taken to be {size:,} processors; processors=... or"
                " --processors says otherwise",
                WorkloadWarning,
            )
        return size

    def _check_start(self) -> None:
        """Warn if the header has a date of second 0 that cannot be read."""
        try:
            self.header.number("UnixStartTime", str(self.path))
        except WorkloadError as error:
            warn_caller(f"{error}: when the trace began counts as unknown", WorkloadWarning)


FORMAT = FileFormat(  # what is of no other format
    lambda path, head: True,
    lambda path, how: read_swf(path, errors=how.errors, processors=how.processors),
)
