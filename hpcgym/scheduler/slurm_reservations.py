"""Reservations of Slurm, as ``scontrol show reservation`` prints them, as windows.

A reservation keeps its nodes for the jobs of its accounts and users, and of these Slurm runs in it
those that ask for it, ``--reservation`` (https://slurm.schedmd.com/reservations.html). One for
maintenance is open to nobody but root.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

from hpcgym.errors import HpcgymError, HpcgymWarning, Remarks, warn_of_file
from hpcgym.files import text_of

Window = TypeVar("Window")

_BEGINNING, _NOTHING = "ReservationName=", "No reservations in the system"
#: How such a file begins.
BEGINNINGS = (_BEGINNING.encode(), _NOTHING.encode())
_MOST_BYTES = 1 << 24
_FIELD = re.compile(r"(\w+)=(\S*)")
_NONE = ("", "(null)", "n/a")
#: Kinds of remarks.
_LEFT = "reservations left out, which are no times of whole nodes"
_ONCE = "reservations that repeat, of which only the time that is shown counts"
_REPEAT = {"DAILY", "HOURLY", "WEEKDAY", "WEEKEND", "WEEKLY"}
_FLOATING = "TIME_FLOAT"


def read_reservations(path: Path, window: Callable[..., Window]) -> list[Window]:
    """Return the reservations of a file, with or without ``-o``, as windows.

    Parameters
    ----------
    window : makes one, as :class:`hpcgym.scheduler.restrictions.Window`.

    Raises
    ------
    HpcgymError : a file that cannot be read, or with reservations of which none is a window.

    Warns
    -----
    HpcgymWarning : reservations that are left out, or followed in part: a line for each kind.
    """
    remarks = Remarks(list, {_LEFT: [], _ONCE: []})
    windows = []
    for given in _reservations(text_of(path, _MOST_BYTES, "reservations of scontrol")):
        name, flags = given["ReservationName"], {*given.get("Flags", "").split(",")}
        try:
            if why := _no_window(given, flags):
                raise HpcgymError(why)
            begin, end = given.get("StartTime", ""), given.get("EndTime", "")
            windows.append(window(begin, end, nodes=given["Nodes"], **_who(given), printed=True))
        except HpcgymError as error:
            remarks[_LEFT].append(f"{name}: {error}")
            continue
        if flags & _REPEAT:
            remarks[_ONCE].append(name)
    if remarks[_LEFT] and not windows:
        raise HpcgymError(f"{path}: it has no reservation of whole nodes: {remarks[_LEFT][0]}")
    warn_of_file(path, remarks, HpcgymWarning)
    return windows


def _reservations(text: str) -> Iterator[dict[str, str]]:
    """Yield the fields of each reservation that have a value."""
    for part in re.split(rf"^(?={_BEGINNING})", text, flags=re.MULTILINE):
        if part.strip() and not part.startswith(_NOTHING):
            yield {key: value for key, value in _FIELD.findall(part) if value not in _NONE}


def _no_window(given: dict[str, str], flags: set[str]) -> str:
    """Return why a reservation is no window; nothing if it may be one."""
    if "CoreIDs" in given:
        return "it is of some cores of nodes"
    if _FLOATING in flags:
        return "its time moves on"
    if "Nodes" not in given:
        return "it has no nodes"
    denied = [key for key in ("Accounts", "Users") if given.get(key, "").startswith("-")]
    return f"its {denied[0]} are those that it is closed to" if denied else ""


def _who(given: dict[str, str]) -> dict[str, Any]:
    """Return the accounts, users and the name of a reservation; nothing of one of root alone."""
    names = {
        key: tuple(name for name in given[of].split(",") if name != "root")
        for key, of in (("accounts", "Accounts"), ("users", "Users"))
        if of in given
    }
    if not names or not all(names.values()):
        return {}
    return {**names, "reservations": (given["ReservationName"],)}
