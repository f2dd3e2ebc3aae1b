"""Lines of the Standard Workload Format into columns: a compiled fast path and an exact slow one.

:func:`parse_lines` reads what nearly every line of a log looks like, at millions of lines a second.
What it does not understand (text, an exponent, a field too few, a number too long) it leaves to
:func:`parse_line`, which knows the whole format and can say what is wrong with a line.
"""

from __future__ import annotations

import math
import re
from decimal import ROUND_HALF_UP, Decimal

import numpy as np
from numpy.typing import NDArray

from hpcgym.compilation import jit, jit_entry
from hpcgym.naming import SWF_COLUMNS
from hpcgym.workload.model import (
    FLOAT_COLUMNS,
    MAX_TIME,
    ROUNDED_COLUMNS,
    TIME_COLUMNS,
)

FIELDS = len(SWF_COLUMNS)

#: How a field is read: as a whole number, rounded to one, rounded and limited, or with decimals.
WHOLE, ROUNDED, TIME, DECIMAL = range(4)

#: In place of a number of fields: the line is odd.
ODD = -1

SPACE, TAB, NEWLINE, RETURN, SEMICOLON = (ord(c) for c in " \t\n\r;")
PLUS, MINUS, POINT, ZERO = (ord(c) for c in "+-.0")


def _kind(column: str) -> int:
    if column in FLOAT_COLUMNS:
        return DECIMAL
    if column in TIME_COLUMNS:
        return TIME
    return ROUNDED if column in ROUNDED_COLUMNS else WHOLE


KINDS = np.array([_kind(c) for c in SWF_COLUMNS])


@jit
def _read_number(text: NDArray[np.uint8], position: int) -> tuple[int, int, int, int]:
    """Read digits, at most 18, with or without a point among them.

    Returns
    -------
    position, value, fraction, scale : the number is value + fraction / scale, or odd if scale is 0.
    """
    value = fraction = 0
    scale = 1
    start = position
    digit = int(text[position]) - ZERO
    while 0 <= digit <= 9:
        value = value * 10 + digit
        position += 1
        digit = int(text[position]) - ZERO
    digits = position - start
    if text[position] == POINT:
        position += 1
        digit = int(text[position]) - ZERO
        while 0 <= digit <= 9 and position - start <= 19:
            fraction = fraction * 10 + digit
            scale *= 10
            position += 1
            digit = int(text[position]) - ZERO
        digits = position - start - 1
    c = text[position]
    ended = c in (SPACE, NEWLINE, TAB, RETURN)
    if digits == 0 or digits > 18 or not ended:
        scale = 0
    return position, value, fraction, scale


@jit
def _read_job(
    text: NDArray[np.uint8],
    position: int,
    whole: NDArray[np.int64],
    decimal: NDArray[np.float64],
    row: int,
) -> tuple[int, int, int]:
    """Read the fields of one line into ``row``, and stop before its end or at what is odd.

    Returns
    -------
    position, fields, rounded : fields read, 19 if there are more than 18, or ``ODD``; a bit mask of
        the fields rounded.
    """
    rounded = 0
    for field in range(FIELDS + 1):
        while text[position] == SPACE or text[position] == TAB:
            position += 1
        if text[position] == NEWLINE:
            return position, field, rounded
        if text[position] == RETURN:
            return position, field if text[position + 1] in (NEWLINE, RETURN) else ODD, rounded
        if field == FIELDS:
            break
        sign = -1 if text[position] == MINUS else 1
        if text[position] == MINUS or text[position] == PLUS:
            position += 1
        position, value, fraction, scale = _read_number(text, position)
        if scale == 0:
            return position, ODD, rounded
        kind = KINDS[field]
        if kind == DECIMAL:
            # Exact: whole numbers up to 2^53 are, powers of ten up to 10^22, and so their ratio.
            mantissa = value * scale + fraction
            if mantissa > MAX_TIME:
                return position, ODD, rounded
            decimal[row] = sign * (mantissa / scale)
            continue
        if fraction > 0:
            if kind == WHOLE:
                return position, ODD, rounded
            rounded |= 1 << field
            if 2 * fraction >= scale:
                value += 1
        if kind == TIME and value > MAX_TIME:
            return position, ODD, rounded
        whole[field, row] = sign * value
    return position, FIELDS + 1, rounded


@jit_entry
def parse_lines(
    text: NDArray[np.uint8],
    position: int,
    line: int,
    whole: NDArray[np.int64],
    decimal: NDArray[np.float64],
    row: int,
    special: NDArray[np.int64],
    rounded: NDArray[np.int64],
) -> tuple[int, int, int, int, int]:
    """Read lines from ``position`` on until the text, the rows or the special lines are full.

    Parameters
    ----------
    text : (n_bytes,) whole lines, the last one with its line end as well.
    position, line, row : where to go on: byte of the text, lines and rows done before it.
    whole : (18, n_rows) out, the fields of each job; undefined in the rows of odd lines.
    decimal : (n_rows,) out, the field ``average_cpu_time``.
    special : (n_special, 4) out, of each comment and odd line: its first byte, the byte after its
        last one, its number, and its row, or for a comment -1 - rows before it.
    rounded : (18,) out, number of jobs in which the field was rounded, added to what it holds.

    Returns
    -------
    position, line, row, n_special, n_extra : n_extra jobs had more than 18 fields.
    """
    n_special = n_extra = 0
    while position < text.size and row < decimal.size and n_special < special.shape[0]:
        start = position
        line += 1
        while text[position] == SPACE or text[position] == TAB:
            position += 1
        comment = text[position] == SEMICOLON
        fields = changed = 0
        if not comment:
            position, fields, changed = _read_job(text, position, whole, decimal, row)
        while text[position] != NEWLINE:
            if text[position] == RETURN and text[position + 1] not in (NEWLINE, RETURN):
                fields = ODD
            position += 1
        if comment or fields == ODD or 0 < fields < FIELDS:
            special[n_special, 0] = start
            special[n_special, 1] = position
            special[n_special, 2] = line
            special[n_special, 3] = -1 - row if comment else row
            n_special += 1
        elif fields >= FIELDS:
            n_extra += fields > FIELDS
            for field in range(FIELDS if changed else 0):
                rounded[field] += (changed >> field) & 1
        row += not comment and fields != 0
        position += 1  # past the line end
    return position, line, row, n_special, n_extra


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
            value, changed = _parse_field(token, _kind(column))
        except BadLineError as error:
            shown = token[:24].decode("utf-8", "backslashreplace")
            problem = f"field {k + 1} ({column}) is {shown!r}, {error}"
            if line.count(b"|") > 1:
                problem += "; a dump of sacct begins with a line of names: sacct -P, without -n"
            raise BadLineError(problem, error.reason) from None
        values.append(value)
        rounded |= changed << k
    if len(tokens) < FIELDS:
        raise BadLineError(
            f"{len(tokens)} fields instead of {FIELDS}, {SWF_COLUMNS[len(tokens)]} is missing",
            f"line with fewer than {FIELDS} fields",
        )
    return values, rounded, len(tokens) > FIELDS


def _parse_field(token: bytes, kind: int) -> tuple[int | float, bool]:
    """Return the value of a field as it is stored, and whether it was rounded."""
    if not _NUMBER.fullmatch(token):
        raise BadLineError("not a number", "line with text in a numeric field")
    if len(token) > _MOST_DIGITS:
        raise BadLineError("too long", "line with a number too large")
    if kind == DECIMAL:
        number = float(token)
        if math.isinf(number):
            raise BadLineError("too large", "line with a number too large")
        return number, False
    exact = Decimal(token.decode())
    if not exact:
        return 0, False
    nearest = exact.quantize(Decimal(1), ROUND_HALF_UP) if exact.adjusted() < 20 else exact
    if kind == TIME and abs(nearest) > MAX_TIME:
        raise BadLineError("beyond 2^53 s", "line with a number too large")
    if abs(nearest) >= 2**63:
        raise BadLineError("beyond 2^63", "line with a number too large")
    if nearest != exact and kind == WHOLE:
        raise BadLineError(
            "not a whole number", "line with a fraction where only whole numbers make sense"
        )
    return int(nearest), nearest != exact
