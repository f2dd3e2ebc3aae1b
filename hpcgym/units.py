"""Durations and memory: read from texts, and said in words."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from fractions import Fraction
from itertools import pairwise
from typing import Any

#: Names of units of memory -> megabytes.
MEGABYTES = {"MB": 1, "GB": 1_000, "TB": 1_000_000}

#: What stands before units where computers count, in small letters.
BINARY = {prefix: 1024**power for power, prefix in enumerate(("", *"kmgtpe"))}

#: Units of memory in Slurm, in small letters -> its megabytes, which a number alone is of.
SLURM_MEGABYTES = {unit: Fraction(size, BINARY["m"]) for unit, size in BINARY.items()}
SLURM_MEGABYTES[""] = Fraction(1)

#: Whole numbers of seconds; a month is of 30 days.
MINUTE_S, HOUR_S, DAY_S, WEEK_S, MONTH_S = 60, 3_600, 86_400, 7 * 86_400, 30 * 86_400

#: What stands for a time limit of jobs that have none [s]: the year with which Slurm plans.
NO_LIMIT_S = 365 * DAY_S

#: How it is said, in small letters, also where it is no time that has no limit.
NO_LIMIT = ("unlimited", "infinite", "inf", "infinity")

#: Units of time -> seconds.
SECONDS = {"s": 1, "m": MINUTE_S, "min": MINUTE_S, "h": HOUR_S, "d": DAY_S, "w": WEEK_S}
_SECONDS = re.compile(r"\d{1,15}(?:\.\d{1,9})?")
_WITH_UNIT = re.compile(r"(\d{1,15}(?:\.\d{1,9})?)\s*(s|min|m|h|d|w)")

#: A number and a unit, or several of them.
WITH_UNITS = re.compile(rf"{_WITH_UNIT.pattern}(?:\s*{_WITH_UNIT.pattern})*")
_CLOCK = re.compile(
    r"(?:(?P<days>\d{1,6})-)?(?:(?P<first>\d{1,9}):)?(?P<second>\d{1,9}):"
    r"(?P<third>\d{1,9}(?:\.\d{1,9})?)"
)
_AMOUNT = re.compile(r"(\d{1,20}(?:\.\d{1,20})?)\s*([A-Za-z]*)")


def megabytes(text: str) -> int | None:
    """Return the whole megabytes of a text such as ``16 GB`` or ``1.5 GB``; None if it has none."""
    amount = amount_in(text.strip().upper(), MEGABYTES)
    return None if amount is None or amount.denominator > 1 else int(amount)


def amount_in(text: str, units: Mapping[str, int | Fraction]) -> Fraction | None:
    """Return a number times what the unit behind it stands for; None if the text is not one.

    >>> amount_in("1.5 GB", MEGABYTES), amount_in("2t", SLURM_MEGABYTES), amount_in("2", MEGABYTES)
    (Fraction(1500, 1), Fraction(2097152, 1), None)
    """
    found = _AMOUNT.fullmatch(text)
    return Fraction(found[1]) * units[found[2]] if found and found[2] in units else None


def seconds_of(text: str) -> float | None:
    """Return the seconds of a time as people and logs write it; None if it is not one.

    Seconds alone, a number and a unit or several of them (s, m or min, h, d, w), or a clock of
    hours, minutes and seconds, perhaps with days before.

    >>> seconds_of("90"), seconds_of("1.5h"), seconds_of("1d 12h"), seconds_of("1-12:00:00")
    (90.0, 5400.0, 129600.0, 129600.0)
    """
    text = text.strip()
    if _SECONDS.fullmatch(text):
        return float(text)
    if WITH_UNITS.fullmatch(text):
        parts = _WITH_UNIT.findall(text)
        return float(sum(Fraction(number) * SECONDS[unit] for number, unit in parts))
    found = _CLOCK.fullmatch(text)
    if found is None or (found["days"] and not found["first"]):
        return None
    hours = int(found["days"] or 0) * 24 + int(found["first"] or 0)
    return (hours * 60 + int(found["second"])) * 60 + float(found["third"])


def in_seconds(value: Any) -> Any:
    """Return a duration in seconds: of a text its number, and whatever else is given as it is.

    A text that is no duration stays a text, so that the caller's check says what it should be.

    >>> in_seconds("80h"), in_seconds("1.5"), in_seconds(60), in_seconds("soon")
    (288000, 1.5, 60, 'soon')
    """
    if not isinstance(value, str):
        return value
    text = value.strip()
    if text.isascii() and text.isdigit():
        return int(text)  # of any size
    seconds = seconds_of(text)
    if seconds is None:
        return value
    return int(seconds) if seconds.is_integer() else seconds


def duration(seconds: float) -> str:
    """Return seconds as people say them: the two largest units, rounded to the smaller, halves up.

    Pages say them in the same way: ``span`` in ``explore/browser/words.js``.

    >>> duration(45), duration(3_660), duration(266_000), duration(3_599.6)
    ('45 s', '1 h 1 min', '3 d 2 h', '1 h')
    """
    size = abs(seconds)
    rounded = math.floor(size + 0.5)
    text = f"{rounded} s"
    units = [(1, "s"), (MINUTE_S, "min"), (HOUR_S, "h"), (DAY_S, "d")]
    for (smaller, smaller_name), (larger, name) in pairwise(units):
        if rounded < larger:
            break
        rounded = math.floor(size / smaller + 0.5) * smaller
        count, rest = divmod(rounded, larger)
        text = f"{count} {name}" + (f" {rest // smaller} {smaller_name}" if rest else "")
    return f"-{text}" if seconds < 0 and text != "0 s" else text


def seconds_in(text: str) -> float:
    """Return the seconds of ``1-02:03:04``, ``02:03:04``, ``03:04.5``, ``5h`` or plain seconds.

    Raises
    ------
    ValueError : it is not one of them, as :func:`hpcgym.naming.seconds_of` has them.
    """
    seconds = seconds_of(text)
    if seconds is None:
        raise ValueError("no duration such as 1-02:03:04 or 02:03:04")
    return seconds


def nearest_second(seconds: float) -> int:
    """Return the nearest whole number of seconds, halves up."""
    return int(seconds + 0.5)
