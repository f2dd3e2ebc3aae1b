"""Durations, memory and counts: one parser of each, by a grammar for each format; and in words."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from fractions import Fraction
from itertools import pairwise
from typing import Any, NamedTuple

from hpcgym.errors import HpcgymError, is_number

# --- Durations ------------------------------------------------------------------------------------

#: Whole numbers of seconds; a month is of 30 days.
MINUTE_S, HOUR_S, DAY_S, WEEK_S, MONTH_S = 60, 3_600, 86_400, 7 * 86_400, 30 * 86_400

#: What stands for a time limit of jobs that have none [s]: the year with which Slurm plans.
NO_LIMIT_S = 365 * DAY_S
#: How it is said, in small letters, also where it is no time that has no limit.
NO_LIMIT = ("unlimited", "infinite", "inf", "infinity")
#: The same in files of Slurm, where nothing says so, too.
SLURM_NO_LIMIT = (*NO_LIMIT, "-1", "none", "")

_MOST_S = 2**53  # as of all times in a workload: floats have them exactly

#: Units of time -> seconds.
_SECONDS = {"s": 1, "m": MINUTE_S, "min": MINUTE_S, "h": HOUR_S, "d": DAY_S, "w": WEEK_S}
_NUMBER = r"\d{1,300}(?:\.\d{1,9})?"
_WITH_UNIT = re.compile(rf"({_NUMBER})\s*(s|min|m|h|d|w)")
#: A number and a unit, or several of them.
WITH_UNITS = re.compile(rf"{_WITH_UNIT.pattern}(?:\s*{_WITH_UNIT.pattern})*")
_CLOCK = re.compile(r"(?:(\d{1,300})-)?(\d{1,300}(?::\d{1,300}){0,2})(\.\d{1,9})?")


class Durations(NamedTuple):
    """How a format writes durations.

    Attributes
    ----------
    such : what one looks like, for errors.
    alone_s : what a number alone counts [s]; 0: none stands alone.
    units : whether numbers may have units, such as ``1d 12h``.
    fractions : whether seconds may have decimals.
    clock : whether it may be ``minutes:seconds``, ``hours:minutes:seconds``, or days, ``-``, and
        hours, minutes and seconds.
    least_behind_days : of these three so many must stand behind days.
    endless, endless_s : what stands for no limit, in small letters, and what it counts [s].
    """

    such: str
    alone_s: int = 1
    units: bool = True
    fractions: bool = True
    clock: bool = True
    least_behind_days: int = 3
    endless: tuple[str, ...] = ()
    endless_s: float = NO_LIMIT_S


#: Arguments, options of the command line, TOML.
ARGUMENT = Durations("90, 5h or 1-12:00:00")
#: Fields of logs: Elapsed of sacct, walltime of PBS.
OF_LOG = Durations("1-02:03:04 or 02:03:04")
#: The same, of Grid Engine's ``h_rt``, which may be no limit.
OF_GRID_ENGINE = OF_LOG._replace(endless=NO_LIMIT)
#: slurm.conf and sacctmgr: man page slurm.conf, "MaxTime".
OF_SLURM = Durations(
    "90, 12:00:00 or 1-12", alone_s=MINUTE_S, units=False, fractions=False, least_behind_days=1,
    endless=SLURM_NO_LIMIT, endless_s=math.inf,
)  # fmt: skip
#: ``TimelimitRaw`` of sacct.
OF_TIMELIMIT_RAW = Durations(
    "90", alone_s=MINUTE_S, units=False, fractions=False, clock=False, endless=NO_LIMIT
)
#: ``Timelimit`` of sacct.
OF_TIMELIMIT = Durations("1-00:00:00", alone_s=0, units=False, endless=NO_LIMIT)
#: Columns of tables: numbers alone are read with the column.
OF_TABLE = OF_TIMELIMIT._replace(such="1-02:03:04 or 02:03:04", endless=())
#: ``requested_time`` of tables.
LIMIT_OF_TABLE = OF_TABLE._replace(endless=NO_LIMIT)
#: Time limits that squeue prints.
OF_SQUEUE = OF_LOG._replace(endless=(*NO_LIMIT, "not_set", "invalid"))


def seconds_of(text: str, how: Durations = ARGUMENT) -> int | float | None:
    """Return the seconds of a duration, or None for any other text.

    Whole seconds are an int. More than 2^53 s are no duration.

    >>> seconds_of("90"), seconds_of("1.5h"), seconds_of("1d 12h"), seconds_of("1-12:00:00.5")
    (90, 5400, 129600, 129600.5)
    >>> seconds_of("90", OF_SLURM), seconds_of("1-12", OF_SLURM), seconds_of("None", OF_SLURM)
    (5400, 129600, inf)
    """
    text = text.strip()
    if text.casefold() in how.endless:
        return how.endless_s
    exact = _exact_seconds(text, how)
    if exact is None or exact > _MOST_S:
        return None
    return int(exact) if exact.denominator == 1 else float(exact)


def _exact_seconds(text: str, how: Durations) -> int | Fraction | None:
    """Return the seconds of a duration of any length, or None for any other text."""
    exact: int | Fraction
    if how.units and WITH_UNITS.fullmatch(text):
        exact = sum(_exact(number) * _SECONDS[unit] for number, unit in _WITH_UNIT.findall(text))
    else:
        match = _CLOCK.fullmatch(text)
        if match is None or (match[3] and not how.fractions):
            return None
        parts = [int(part) for part in match[2].split(":")]
        if match[1] is None and len(parts) == 1:
            weights = [how.alone_s]
        elif not how.clock or (match[1] is not None and len(parts) < how.least_behind_days):
            return None
        else:
            sizes = (HOUR_S, MINUTE_S, 1)
            weights = [*(sizes[: len(parts)] if match[1] is not None else sizes[-len(parts) :])]
        if not weights[0]:
            return None
        exact = sum(map(int.__mul__, parts, weights)) + DAY_S * int(match[1] or 0)
        exact += Fraction(f"0{match[3]}") * weights[-1] if match[3] else 0
    return exact


def _exact(number: str) -> int | Fraction:
    """Return the number that a text is."""
    return Fraction(number) if "." in number else int(number)


def seconds_in(text: str, how: Durations = OF_LOG) -> int | float:
    """Return the seconds of a duration, as :func:`seconds_of`.

    Raises
    ------
    ValueError : the text is no duration; the message says what one looks like.
    """
    seconds = seconds_of(text, how)
    if seconds is None:
        raise ValueError(f"no duration such as {how.such}")
    return seconds


def in_seconds(value: Any, argument: str = "a duration") -> Any:
    """Return a duration in seconds: of a text its number, and whatever else is given as it is.

    A text that is no duration stays a text, so that the caller's check says what it should be.

    >>> in_seconds("80h"), in_seconds("1.5"), in_seconds(60), in_seconds("soon")
    (288000, 1.5, 60, 'soon')

    Raises
    ------
    HpcgymError : a duration of more than 2^53 s; the message names the argument.
    """
    seconds = seconds_of(value) if isinstance(value, str) else None
    if seconds is None and isinstance(value, str) and _exact_seconds(value.strip(), ARGUMENT):
        raise HpcgymError(f"{argument} is at most {_MOST_S:,} s, not {value!r}")
    return value if seconds is None else seconds


def whole_seconds(argument: str, value: Any, least: int = 0, most: int = 2**31) -> int:
    """Return an argument that is a duration as whole seconds.

    Raises
    ------
    HpcgymError : no whole seconds, or out of bounds; the message names the argument and the value.
    """
    seconds = in_seconds(value, argument)
    if not (is_number(seconds) and least <= seconds <= most and seconds == int(seconds)):
        raise HpcgymError(
            f"{argument} must be whole seconds from {least} to {most}, or a duration such as 5h or"
            f" 1-12:00:00, not {value!r}"
        )
    return int(seconds)


def nearest_second(seconds: float) -> int:
    """Return the nearest whole number of seconds, halves up."""
    return int(seconds + 0.5)


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


# --- Amounts of memory, and of generic resources --------------------------------------------------

_AMOUNT = re.compile(r"(\d{1,20}(?:\.\d{1,20})?)\s*([A-Za-z]*)")
_MB = 1024**2
# what stands before units where computers count
_BINARY = {prefix: Fraction(1024**power, _MB) for power, prefix in enumerate(("", *"KMGTPE"))}


class Amounts(NamedTuple):
    """How a format writes amounts.

    Attributes
    ----------
    such : what one looks like, for errors.
    units : names -> how much they are; ``""``: a number alone. Of memory that is megabytes, as the
        format counts them.
    folds : whether small letters mean the same; names are in capitals then.
    fractions : whether there may be decimals.
    """

    such: str
    units: Mapping[str, int | Fraction]
    folds: bool = True
    fractions: bool = True


#: Files of machines and tables of jobs.
MEMORY_ALONE = Amounts("16 GB", {"MB": 1, "GB": 1_000, "TB": 1_000_000})
#: Slurm, whose numbers alone are megabytes.
MEMORY_OF_SLURM = Amounts("4G", {**_BINARY, "": 1})
#: Grid Engine, whose small letters are powers of 1,000 (man page sge_types, "memory_specifier").
MEMORY_OF_GRID_ENGINE = Amounts(
    "2G", {**_BINARY, **{p: Fraction(1000**k, _MB) for k, p in enumerate("kmgt", 1)}}, folds=False
)
#: PBS: bytes, or words of eight.
MEMORY_OF_PBS = Amounts(
    "600mb",
    {f"{prefix}{unit}": size * times for prefix, size in _BINARY.items()
     for unit, times in (("", 1), ("B", 1), ("W", 8))},
)  # fmt: skip

#: Generic resources in slurm.conf (man page slurm.conf, "Gres").
GENERIC_OF_SLURM = Amounts(
    "4K",
    {"": 1, **{f"{prefix}{unit}": base**power for power, prefix in enumerate("KMGTP", 1)
               for unit, base in (("", 1024), ("IB", 1024), ("B", 1000))}},
    fractions=False,
)  # fmt: skip


def amount_of(text: str, how: Amounts) -> Fraction | None:
    """Return an amount, of memory in megabytes, or None for any other text.

    >>> amount_of("1.5 GB", MEMORY_ALONE), amount_of("2t", MEMORY_OF_SLURM)
    (Fraction(1500, 1), Fraction(2097152, 1))
    """
    match = _AMOUNT.fullmatch(text.strip())
    if match is None or ("." in match[1] and not how.fractions):
        return None
    unit = match[2].upper() if how.folds else match[2]
    return Fraction(match[1]) * how.units[unit] if unit in how.units else None


def amount_in(text: str, how: Amounts) -> Fraction:
    """Return an amount, as :func:`amount_of`.

    Raises
    ------
    ValueError : the text is no amount; the message says what one looks like.
    """
    amount = amount_of(text, how)
    if amount is None:
        raise ValueError(f"no memory such as {how.such}")
    return amount


def memory_text(megabytes: int) -> str:
    """Return whole megabytes as files of machines have them, in the largest unit that divides them.

    >>> memory_text(64_000), memory_text(1_500)
    ('64 GB', '1500 MB')
    """
    sizes = reversed([*MEMORY_ALONE.units.items()])
    unit, size = next((unit, int(size)) for unit, size in sizes if megabytes % size == 0)
    return f"{megabytes // size} {unit}"


# --- Counts of processors, nodes, jobs ------------------------------------------------------------

_WHOLE = re.compile(r"(-?)[0-9]{1,12}")


def count_of(text: str, signed: bool = False) -> int | None:
    """Return a whole number of at most 12 digits, at least 0 unless ``signed``; else None.

    >>> count_of("64"), count_of("-1"), count_of("-1", signed=True), count_of("1e3")
    (64, None, -1, None)
    """
    match = _WHOLE.fullmatch(text)
    return None if match is None or (match[1] and not signed) else int(text)


def count_in(text: str, signed: bool = False) -> int:
    """Return a whole number, as :func:`count_of`.

    Raises
    ------
    ValueError : the text is no such number.
    """
    number = count_of(text, signed)
    if number is None:
        raise ValueError("no whole number")
    return number
