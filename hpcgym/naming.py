"""Words: names of columns and resources, times as texts and back, and arguments behind a colon."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, tzinfo
from difflib import get_close_matches
from fractions import Fraction
from itertools import pairwise
from numbers import Integral
from typing import Any
from zlib import crc32
from zoneinfo import ZoneInfo

from hpcgym.errors import WorkloadError

# --- What columns of jobs and resources of nodes are called ---------------------------------------
#
# Tables of jobs and files of machines share these names: what is a column of jobs in one cannot be
# a resource in the other. And how people say a time.

#: The 18 fields of a line of the Standard Workload Format 2.2, in file order.
SWF_COLUMNS = (
    "job_number",
    "submit_time",
    "wait_time",
    "run_time",
    "allocated_processors",
    "average_cpu_time",
    "used_memory",
    "requested_processors",
    "requested_time",
    "requested_memory",
    "status",
    "user_id",
    "group_id",
    "executable",
    "queue",
    "partition",
    "preceding_job",
    "think_time",
)

#: The column of the number of the array that a job is a task of; it has no names.
ARRAY = "array"
#: The column of what users of Slurm take from the priority of a job, and the most that they can.
NICE, MOST_NICE = "nice", 2**31 - 3
#: The column of how many units of a job may lie on one node.
UNITS_PER_NODE = "units_per_node"
#: Columns that SWF lacks: of measured jobs the mean power on each processor of a job [W], and its
#: completion time at the lowest frequency over that at the highest; of tasks their array; nice; and
#: how many units a node may have.
OWN_COLUMNS = ("power_w", "slowdown", ARRAY, NICE, UNITS_PER_NODE)

#: All columns that a job can have, but for units and resources.
JOB_COLUMNS = SWF_COLUMNS + OWN_COLUMNS

#: Whether cleaning cut the run time of a job at its requested time, in tables: 1 or 0.
KILLED = "killed"
#: What units of jobs are called in tables.
UNITS = "units"
#: What jobs are told apart by, in expressions, quotas, tables and pictures -> the columns of their
#: numbers, which may have names in a log.
NAMED = {
    "user": "user_id",
    "group": "group_id",
    "code": "executable",
    "queue": "queue",
    "partition": "partition",
}
#: The same, and QOS, which logs of Slurm have as queues.
WITH_QOS = {**NAMED, "qos": NAMED["queue"]}
#: The name of what a job runs, in tables: a text for each number of ``executable``.
CODE = "code"
#: Columns of names in tables -> the columns of numbers that they are of.
NAME_COLUMNS = {
    word if word not in SWF_COLUMNS else f"{word}_name": column for word, column in NAMED.items()
}
#: The resource that every node has and every unit of a job takes: what processors are counted by.
CORE = "core"
#: The one resource with a unit of measurement: whole megabytes (1 GB = 1,000 MB).
MEMORY = "mem"

#: What stands before the name of a partition, where nodes of its own are a resource like others.
#: No resource that somebody names has a blank in it.
PARTITION = "partition "

#: Characters that a name from a file may have: of an agent, a machine or a partition, say.
MOST_NAME = 200
#: The same where a name may be a list of nodes, a file or an expression.
MOST_OF_LIST = 4096

MOST_AMOUNT = 2**31  # of units, and of a resource on a node or in a unit: so that no sum overflows

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
_RESOURCE = re.compile(r"[A-Za-z][\w-]*")
# what stands beside resources in files of machines
_OF_GROUPS = ("name", "nodes", "sockets", "power")

#: What tables of jobs called columns in earlier versions, and classes of jobs -> columns of now.
ONCE_CALLED = {
    "processors": "requested_processors",
    "size": "requested_processors",
    "submit": "submit_time",
    "start": "start_time",
    "end": "end_time",
    "wait": "wait_time",
}

#: Other words for columns and resources.
_OTHER_WORDS = {
    "cpu": CORE,
    "executable": CODE,
    "job_id": "job_number",
    "jobid": "job_number",
    "memory": MEMORY,
    "node": UNITS,
    "processor": "requested_processors",
    "processors": "requested_processors",
    "ram": MEMORY,
    "runtime": "run_time",
    "task": UNITS,
    "walltime": "requested_time",
}


def near_name(name: str, known: Iterable[str], cutoff: float = 0.8) -> str | None:
    """Return which of the known names is meant by one that is not among them.

    It is that name in another case, in the plural, by another word, a part of it (``user`` of
    ``user_id``), or nearly its letters.

    Parameters
    ----------
    name : what is written.
    known : the names there are.
    cutoff : least similarity of the letters, from 0 to 1; see :func:`difflib.get_close_matches`.

    Returns
    -------
    One of ``known``, or None if none comes near.
    """
    names = {one.casefold(): one for one in known}
    written = re.sub(r"[\s-]+", "_", name.strip().casefold())
    for word in (written, written.removesuffix("s"), f"{written}s"):
        meant = word if word in names else _OTHER_WORDS.get(word, word)
        if meant in names:
            return names[meant]
        for folded, one in names.items():
            if word in folded.split("_"):
                return one
    # another letter makes another word of a short one: vmem is not mem, nor nic nice
    longer = [one for one in names if min(len(one), len(written)) > len(MEMORY)]
    near = get_close_matches(written, longer, 1, cutoff)
    return names[near[0]] if near else None


def resource_problem(name: Any) -> str:
    """Return why nothing can be a resource of this name, in words; nothing if it can.

    A resource begins with a letter, has letters, digits, ``_`` and ``-``, and is no column of jobs,
    nor nearly one, nor nearly ``core`` or ``mem``.
    """
    if not isinstance(name, str) or not _RESOURCE.fullmatch(name):
        why = "it must be letters, digits, '_' and '-', a letter first"
    elif name in (*JOB_COLUMNS, KILLED, UNITS, *NAME_COLUMNS):
        why = "it is a column of jobs"
    elif name in _OF_GROUPS:
        why = "it stands for something else in files of machines"
    elif name in (CORE, MEMORY):
        return ""
    elif near := near_name(name, (CORE, MEMORY)):
        why = f"did you mean {near!r}?"
    elif near := near_name(name, (*JOB_COLUMNS, UNITS, *NAME_COLUMNS)):
        why = f"it is nearly {near!r}, a column of jobs"
    else:
        return ""
    return f"{name!r} cannot be the name of a resource: {why}"


def of_type(resource: str, kind: str) -> str:
    """Return what those of one type of a resource are called, beside all of them.

    >>> of_type("gpu", "a100_3g.20gb")
    'gpu-a100_3g_20gb'
    """
    return f"{resource}-{re.sub(r'[^A-Za-z0-9_-]', '_', kind)}"


def name_problem(name: Any, most: int = MOST_NAME) -> str:
    """Return what a name must be that this is not, in words; nothing if it may be one.

    Names from files stand in tables, pages and pictures, where a line end would forge a row and an
    escape code would write what it likes on a terminal.
    """
    if not isinstance(name, str) or not name:
        return f"a text, not {name!r}"
    if not name.isprintable() or name != name.strip():
        return f"printable, on one line, without blanks at its ends, not {name!r}"
    return "" if len(name) <= most else f"of at most {most:,} characters, and has {len(name):,}"


def printable(text: str) -> str:
    """Return a name of a log as any terminal, table or page can show it.

    What cannot be printed becomes ``?``. Of what is too long the beginning is left, with a checksum
    of the whole: names that differ stay different.
    """
    shown = "".join(c if c.isprintable() else "?" for c in text).strip()
    if len(shown) <= MOST_NAME:
        return shown
    return f"{shown[: MOST_NAME - 11]}...{crc32(text.encode(errors='replace')):08x}"


def known_columns() -> str:
    """Return the columns that a job can have, in words."""
    return f"SWF has {', '.join(SWF_COLUMNS)}; besides there is {', '.join(OWN_COLUMNS)}"


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


def alike(names: Iterable[str]) -> tuple[str, str] | None:
    """Return two names that differ in case, a plural, ``-`` and ``_`` alone, if there are any."""
    seen: dict[str, str] = {}
    for name in dict.fromkeys(names):
        plain = name.casefold().replace("-", "_").removesuffix("s")
        if plain in seen:
            return seen[plain], name
        seen[plain] = name
    return None


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


def at_commas(text: str) -> list[str]:
    """Return what stands between the commas of a text, but for those in brackets: max(wait, 5)."""
    parts, depth = [""], 0
    for sign in text:
        depth += (sign == "(") - (sign == ")")
        if sign == "," and depth <= 0:
            parts.append("")
        else:
            parts[-1] += sign
    return parts


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


# --- Times and durations as logs write them -------------------------------------------------------
#
# A workload counts seconds from its log's first submission; its header tells when that was, as
# ``UnixStartTime``, and in which zone the log's clock ran, as ``TimeZoneString``.

_UNIX = re.compile(r"\d{9,11}")  # seconds since 1970: 1973 and later
_DATE = re.compile(r"\d{4}-\d\d-\d\d(?:[T ]\d.*)?")

NO_ZONE = "times without a time zone, taken for UTC"


class Clock:
    """Reads dates as seconds since 1970 in UTC.

    Attributes
    ----------
    name : the zone of dates without an offset, None where nobody said it: UTC then.
    assumed : whether a date without an offset was read though nobody said its zone.
    """

    def __init__(self, tz: str | None) -> None:
        try:
            self._zone = UTC if tz is None else ZoneInfo(tz)
        except (ValueError, OSError, LookupError):
            raise WorkloadError(
                f"tz must be the name of a time zone such as 'Europe/Berlin', not {tz!r}"
            ) from None
        self.name = tz
        self.assumed = False

    def seconds(self, text: str, later: bool = False) -> int:
        """Return the seconds since 1970 of a date such as ``2024-03-01T12:00:00``.

        It may have an offset, ``+01:00``, or be seconds since 1970 already. Of two times that a
        clock shows alike, when it is set back, it is the first, or the second if ``later``.

        Raises
        ------
        ValueError : it is no date; the message says what one looks like.
        """
        if _UNIX.fullmatch(text):
            return int(text)
        try:
            if not _DATE.fullmatch(text):
                raise ValueError
            date = datetime.fromisoformat(text)
            if date.tzinfo is None:
                self.assumed |= self.name is None
                date = date.replace(tzinfo=self._zone, fold=int(later))
            return int(date.timestamp() // 1)
        except (ValueError, OverflowError):
            raise ValueError("no date such as 2024-03-01T12:00:00") from None

    def header(self, first: int) -> dict[str, list[str]]:
        """Return the lines of a header that tell when a workload's second 0 was."""
        zone = "UTC" if self.name is None else self.name
        told = {"Note": [NO_ZONE]} if self.assumed else {"TimeZoneString": [zone]}
        return {"UnixStartTime": [str(first)], **told}


def zone_of(header: Mapping[str, list[str]]) -> tuple[tzinfo, str]:
    """Return the time zone that a header names, UTC where it names none that is known."""
    name = " ".join(header.get("TimeZoneString", ())).strip()
    try:
        return ZoneInfo(name), name
    except (ValueError, OSError, LookupError):  # an unknown name, or a system without time zones
        return UTC, "UTC"


def is_date(text: object) -> bool:
    """Tell whether a text looks like a date, ``2024-03-01`` with or without a time."""
    return isinstance(text, str) and bool(_DATE.fullmatch(text.strip()))


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


# --- Arguments of generators, checked -------------------------------------------------------------


def whole_argument(generator: str, name: str, value: Any, least: int, most: int) -> int:
    """Return an argument as an int; a float from a command line may stand for one (1e6).

    Raises
    ------
    WorkloadError : it is no whole number from ``least`` to ``most``.
    """
    try:
        number = int(value)
    except (TypeError, ValueError, OverflowError):
        number = least - 1
    if not least <= number <= most or number != value:
        raise WorkloadError(
            f"{generator}: {name} must be a whole number from {least} to {most}, not {value!r}"
        )
    return number


def positive_argument(generator: str, name: str, value: Any) -> float | None:
    """Return an argument as a float above 0, or None as it is.

    Raises
    ------
    WorkloadError : it is no number above 0.
    """
    if value is None:
        return None
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not 0 < number < math.inf:
        raise WorkloadError(f"{generator}: {name} must be a number above 0, not {value!r}")
    return number
