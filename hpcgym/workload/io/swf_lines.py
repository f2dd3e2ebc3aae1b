"""A line of the Standard Workload Format, exactly, and what is wrong with one.

``hpcgym._engine.parse_lines`` reads what nearly every line of a log looks like, millions of lines
a second. What it does not understand (text, an exponent, a field too few, a number too long) it
leaves to :func:`parse_line`, which knows the whole format.
"""

from __future__ import annotations

import math
import re
from decimal import ROUND_HALF_UP, Decimal

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


def _kind(column: str) -> int:
    if column in FLOAT_COLUMNS:
        return DECIMAL
    if column in TIME_COLUMNS:
        return TIME
    return ROUNDED if column in ROUNDED_COLUMNS else WHOLE


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
