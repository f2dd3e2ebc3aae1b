"""Times by which a job shall have started, as people say them."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from hpcgym.dates import is_date, zone_of
from hpcgym.errors import HpcgymError, is_number
from hpcgym.headers import header_number
from hpcgym.scheduler.restrictions import second_of
from hpcgym.units import in_seconds

_DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_NAMES = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
#: Its groups are a weekday, or nothing, and hours, minutes and seconds.
_TIME_OF_DAY = re.compile(
    r"(?:([a-z]+)\s+)?([01]?\d|2[0-3]|24(?=:00(?::00)?$)):([0-5]\d)(?::([0-5]\d))?"
)
#: Also 25:00, which is no time of day, and no duration either.
_LIKE_A_TIME_OF_DAY = re.compile(r"[\d:]*:[\d:]*")


def time_by(when: Any, now: int, header: Mapping[str, list[str]]) -> int:
    """Return a time that somebody names, [s] of the clock of a log.

    Parameters
    ----------
    when : a time of day, "18:00", or with a weekday, "Tue 18:00": the next one, which may be now,
        by the clocks of the log's time zone; a date, "2024-05-03 18:00"; how long from now, "6h";
        or [s] of the log's clock.
    now : [s] of the log's clock.
    header : of the log: when its second 0 was, and in which zone.

    Raises
    ------
    HpcgymError : none of these; or a date or a weekday, and the log does not tell its dates.
    """
    text = when.strip() if isinstance(when, str) else ""
    clock = _TIME_OF_DAY.fullmatch(text.casefold())
    if clock and (clock[1] is None or clock[1] in (*_DAYS, *_NAMES)):
        weekday = None if clock[1] is None else _DAYS.index(clock[1][:3])
        of_day = timedelta(
            **{
                unit: int(part or 0)
                for unit, part in zip(
                    ("hours", "minutes", "seconds"), clock.groups()[1:], strict=True
                )
            }
        )
        return _next(weekday, of_day, now, header)
    if is_date(text):
        try:
            return second_of(text, header, f"by {text!r}")
        except HpcgymError:
            raise
        except ValueError as error:
            raise HpcgymError(f"by {text!r}: {error}") from None
    if text.isdecimal():
        return int(text)
    if text and not _LIKE_A_TIME_OF_DAY.fullmatch(text):
        seconds = in_seconds(text, "by")
        if not isinstance(seconds, str):
            return now + int(seconds)
    if is_number(when) and math.isfinite(when):
        return int(when)
    raise HpcgymError(
        "by: a time of day such as '18:00' or 'Tue 18:00', a date, '2024-05-03 18:00', how long"
        f" from now, '6h', or seconds of the log's clock, not {when!r}"
    )


def _next(weekday: int | None, of_day: timedelta, now: int, header: Mapping[str, list[str]]) -> int:
    """Return the next time of day [s], on a weekday or on any; days begin by the log's clocks."""
    zero, zone = header_number(header, "UnixStartTime", least=0), zone_of(header)[0]
    if zero is None:
        if weekday is not None:
            raise HpcgymError("by: the log does not tell the date at which it begins, nor weekdays")
        zero, zone = 0, UTC
    today = datetime.fromtimestamp(zero + now, zone).replace(
        hour=0, minute=0, second=0, microsecond=0, tzinfo=None
    )
    for day in range(9):
        date = today + timedelta(days=day)
        # of the wall's clock: where it is changed in between, an hour more or less goes by
        second = int((date + of_day).replace(tzinfo=zone).timestamp()) - zero
        if second >= now and weekday in (None, date.weekday()):
            return second
    raise AssertionError("a week has each weekday")
