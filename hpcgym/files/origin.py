"""Where a file is from: the program, when, by which command, and of which files."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

from hpcgym.errors import HpcgymError
from hpcgym.version import __version__

_LAST_SECOND = 253_402_300_799  # of the year 9999


@dataclass(frozen=True)
class Command:
    """What the program was asked to do.

    Attributes
    ----------
    arguments : of the command line, without the program's name.
    find_files : returns the files that it reads, name -> SHA-256; asked when something is written.
    date : when it was asked, see :func:`date_text`; all that it writes has this date.
    """

    arguments: Sequence[str]
    find_files: Callable[[], Mapping[str, str]]
    date: str

    @cached_property
    def files(self) -> dict[str, str]:
        """The files that it reads, name -> SHA-256 in hexadecimal digits, by name."""
        return dict(sorted(self.find_files().items()))


_COMMAND: ContextVar[Command | None] = ContextVar("command", default=None)


@contextmanager
def commanded(command: Command) -> Iterator[None]:
    """Let all that is written meanwhile tell of a command."""
    token = _COMMAND.set(command)
    try:
        yield
    finally:
        _COMMAND.reset(token)


def origin() -> dict[str, Any]:
    """Return where what is written now comes from, as JSON has it.

    Returns
    -------
    "hpcgym", the version; "date", see :func:`date_text`; "command", the arguments of the command
    line, None from Python; "files", what that command reads, name -> SHA-256.

    Raises
    ------
    HpcgymError : SOURCE_DATE_EPOCH is no date.
    """
    command = _COMMAND.get()
    if command is None:
        return {"hpcgym": __version__, "date": date_text(), "command": None, "files": {}}
    arguments, files = list(command.arguments), command.files
    return {"hpcgym": __version__, "date": command.date, "command": arguments, "files": files}


def date_text() -> str:
    """Return the time now in UTC, such as ``2026-11-23T10:15:00Z``.

    Or that of the environment variable SOURCE_DATE_EPOCH, seconds since 1970, so that files can be
    written again byte by byte.

    Raises
    ------
    HpcgymError : it is no whole number of seconds from 0 up to the year 9999.
    """
    told = os.environ.get("SOURCE_DATE_EPOCH")
    if not told:
        return f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
    if not (told.isascii() and told.isdigit() and len(told) <= 12 and int(told) <= _LAST_SECOND):
        raise HpcgymError(
            f"SOURCE_DATE_EPOCH must be whole seconds since 1970, up to the year 9999, not {told!r}"
        )
    return f"{datetime.fromtimestamp(int(told), UTC):%Y-%m-%dT%H:%M:%SZ}"
