"""Dates of logs, read in their time zones."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime, tzinfo
from zoneinfo import ZoneInfo

from hpcgym.errors import WorkloadError
from hpcgym.headers import header_number
from hpcgym.units import HOUR_S, duration, nearest_second, seconds_of

# A workload counts seconds from its log's first submission; its header tells when that was, as
# ``UnixStartTime``, and in which zone the log's clock ran, as ``TimeZoneString``.

_UNIX = re.compile(r"\d{9,11}")  # seconds since 1970: 1973 and later
_HOUR = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:")
_IN_HOUR = {f"{second // 60:02}:{second % 60:02}": second for second in range(HOUR_S)}
_DATE = re.compile(r"\d{4}-\d\d-\d\d(?:[T ]\d.*)?")
#: What has more would be of the year 5138: it is in milliseconds.
_MILLISECONDS = 10**11
_COUNTED = re.compile(r"[0-9]{1,15}")
_WITH_DECIMALS = re.compile(r"-?[0-9]{1,12}(\.[0-9]*)?")

_LAST_DATE = 253_370_764_800  # beginning of the year 9999, seconds since 1970

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
        # the first second of each hour in which no clock is changed; and of those that come later
        self._hours: tuple[dict[str, int], dict[str, int]] = {}, {}

    def seconds(self, text: str, later: bool = False) -> int:
        """Return the seconds since 1970 of a date such as ``2024-03-01T12:00:00``.

        It may have an offset, ``+01:00``, or be seconds since 1970 already. Of two times that a
        clock shows alike, when it is set back, it is the first, or the second if ``later``.

        Raises
        ------
        ValueError : it is no date; the message says what one looks like.
        """
        hours, hour, second = self._hours[later], text[:14], _IN_HOUR.get(text[14:])
        if second is None:
            return self._seconds(text, later)
        if hour not in hours and _HOUR.fullmatch(hour):  # most dates of a log share their hours
            first, last = (self._seconds(f"{hour}{end}", later) for end in ("00:00", "59:59"))
            if last - first == HOUR_S - 1:
                hours[hour] = first
        return hours[hour] + second if hour in hours else self._seconds(text, later)

    def _seconds(self, text: str, later: bool) -> int:
        """Return the seconds of any date; see :meth:`seconds`."""
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
        zone_lines = {"Note": [NO_ZONE]} if self.assumed else {"TimeZoneString": [zone]}
        return {"UnixStartTime": [str(first)], **zone_lines}


def zone_of(header: Mapping[str, list[str]]) -> tuple[tzinfo, str]:
    """Return the time zone that a header names, UTC where it names none that is known."""
    name = " ".join(header.get("TimeZoneString", ())).strip()
    try:
        return ZoneInfo(name), name
    except (ValueError, OSError, LookupError):  # an unknown name, or a system without time zones
        return UTC, "UTC"


def zero_of(header: Mapping[str, list[str]], last: float) -> int | None:
    """Return when second 0 of a log was, seconds since 1970.

    None if the header does not tell, or if the time ``last`` [s of the log's clock] has no date.
    """
    began = header_number(header, "UnixStartTime")
    return None if began is None or began >= _LAST_DATE - last else began


def time_text(header: Mapping[str, list[str]], time: int) -> str:
    """Return a time of a log's clock [s]: its date if the header tells that, else the time from 0.

    Other times have other texts.

    >>> time_text({}, 90_000), time_text({}, 91_000)
    ('1 d 1 h', '91000 s')
    >>> time_text({"UnixStartTime": ["843463293"], "TimeZoneString": ["Europe/Stockholm"]}, 90_027)
    '1996-09-24 10:22'
    """
    zero = zero_of(header, time)
    if zero is None:
        text = duration(time)
        return text if seconds_of(text) == time else f"{time} s"  # durations are rounded
    date = datetime.fromtimestamp(zero + time, zone_of(header)[0])
    text = f"{date:%Y-%m-%d %H:%M:%S}".removesuffix(":00")
    return f"{text}{date:%z}" if date.fold else text  # the hour that a clock shows twice


def unix_seconds(text: str, decimals: bool = False) -> int:
    """Return the whole seconds since 1970 of a number of them, or of milliseconds.

    With ``decimals`` it is of seconds alone, the nearest one, and may be below 0.

    Raises
    ------
    ValueError : the text is no number of seconds or milliseconds.
    """
    if not (_WITH_DECIMALS if decimals else _COUNTED).fullmatch(text):
        raise ValueError("no seconds since 1970")
    if decimals:
        return nearest_second(float(text))
    return int(text) // (1000 if int(text) >= _MILLISECONDS else 1)


def utc_text(seconds: float) -> str:
    """Return a time since 1970 as a date in UTC, such as ``2026-01-01T00:00:00``."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")


def is_date(text: object) -> bool:
    """Tell whether a text looks like a date, ``2024-03-01`` with or without a time."""
    return isinstance(text, str) and bool(_DATE.fullmatch(text.strip()))
