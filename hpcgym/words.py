"""Numbers and lists in words, as tables, messages and pages have them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Integral


def so_many(number: int, total: int) -> str:
    """Return how many of all jobs something is so of, as a sentence behind that of the first.

    >>> so_many(12, 40), so_many(1, 40)
    ('. The same holds for 12 of 40 jobs', '')
    """
    return f". The same holds for {number:,} of {total:,} jobs" if number > 1 else ""


def first_few(names: Sequence[str]) -> str:
    """Return the first five names, and how many more there are."""
    more = len(names) - 5
    return ", ".join(names[:5]) + (f" and {more} more" if more > 0 else "")


def counted(number: int, word: str) -> str:
    """Return how many there are of something, whose plural has an s.

    >>> counted(1, "task"), counted(2_000, "job")
    ('1 task', '2,000 jobs')
    """
    return f"{number:,} {word}{'' if number == 1 else 's'}"


_DIGITS = 4  # significant ones


def signed(value: float, digits: int = 0) -> str:
    """Return a number with its sign; what is 0 with so many digits has none.

    >>> signed(3.2), signed(-0.3), signed(-0.25, 1)
    ('+3', '0', '-0.2')
    """
    text = f"{value:+.{digits}f}"
    return text if float(text) else text[1:]


def shown(value: float) -> str:
    """Return a number with four significant digits, whole ones in full, commas at thousands.

    >>> shown(92.57654), shown(0.0123456), shown(28481), shown(14805.23), shown(1.0)
    ('92.58', '0.01235', '28,481', '14,805', '1.000')
    """
    if isinstance(value, Integral):
        return f"{value:,}"
    if not math.isfinite(value):
        return "-" if math.isnan(value) else str(value)
    if value == 0:
        return "0"
    # Rounding first: 9.9999 has one digit before the point, but is shown as 10.00.
    magnitude = math.floor(math.log10(abs(float(f"{value:.{_DIGITS - 1}e}"))))
    if magnitude < -_DIGITS:
        return f"{value:.{_DIGITS - 1}e}"
    return f"{value:,.{max(_DIGITS - 1 - magnitude, 0)}f}"
