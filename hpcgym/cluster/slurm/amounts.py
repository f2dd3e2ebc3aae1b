"""Times, counts and generic resources as slurm.conf and sacctmgr write them."""

from __future__ import annotations

import re

from hpcgym.errors import HpcgymError

_ENDLESS = ("infinite", "unlimited", "-1", "none", "")
_DAYS = re.compile(r"(\d+)-(\d+)(?::(\d+))?(?::(\d+))?")
_MINUTES = re.compile(r"(\d+)(?::(\d+))?")
_HOURS = re.compile(r"(\d+):(\d+):(\d+)")
_GRES = re.compile(r"([A-Za-z][\w-]*)((?::[\w.-]+)*?)(?::(\d+)([KMG]?))?(?:\([^)]*\))?")
_FACTORS = {"": 1, "K": 1024, "M": 1024**2, "G": 1024**3}


def minutes_text(text: str, where: str) -> int | None:
    """Return a time limit in seconds; None where there is none.

    It is ``minutes``, ``minutes:seconds``, ``hours:minutes:seconds``, ``days-hours``,
    ``days-hours:minutes`` or ``days-hours:minutes:seconds`` (man page slurm.conf, "MaxTime").

    Raises
    ------
    HpcgymError : another text; ``where`` begins the message.
    """
    if text.casefold() in _ENDLESS:
        return None
    if found := _DAYS.fullmatch(text):
        days, hours, minutes, seconds = (int(part or 0) for part in found.groups())
        return 86_400 * days + 3_600 * hours + 60 * minutes + seconds
    if found := _HOURS.fullmatch(text):
        hours, minutes, seconds = map(int, found.groups())
        return 3_600 * hours + 60 * minutes + seconds
    if found := _MINUTES.fullmatch(text):
        return 60 * int(found[1]) + int(found[2] or 0)
    raise HpcgymError(f"{where}: {text!r} is no time such as 90, 12:00:00 or 1-12")


def count(text: str, where: str) -> int | None:
    """Return a whole number; None where there is no limit.

    Raises
    ------
    HpcgymError : another text; ``where`` begins the message.
    """
    if text.casefold() in _ENDLESS:
        return None
    if not text.isascii() or not text.isdigit() or len(text) > 12:
        raise HpcgymError(f"{where}: {text[:40]!r} is no whole number")
    return int(text)


def gres(text: str, where: str) -> dict[str, int]:
    """Return generic resources of ``gpu:a100:4,ssd``: name -> how many, all types together.

    Raises
    ------
    HpcgymError : another text; ``where`` begins the message.
    """
    amounts: dict[str, int] = {}
    for part in re.split(r",(?![^(]*\))", text):
        found = _GRES.fullmatch(part.strip())
        if not found:
            raise HpcgymError(f"{where}: {part[:40]!r} is no resource such as gpu:a100:4")
        number = int(found[3] or 1) * _FACTORS[found[4] or ""]
        amounts[found[1]] = amounts.get(found[1], 0) + number
    return amounts


def several(text: str) -> tuple[str, ...]:
    """Return names between commas; none of ``ALL``."""
    return () if text.casefold() in ("all", "") else tuple(text.split(","))
