"""The lines of a slurm.conf, and what stands in them: amounts, and lists of hosts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from hpcgym.errors import HpcgymError
from hpcgym.files import text_of
from hpcgym.naming import DAY_S, HOUR_S, MINUTE_S

# --- The lines of a slurm.conf --------------------------------------------------------------------
#
# A line is ``Name=value`` once or several times, with blanks between. ``#`` begins a comment, a
# backslash at the end joins the next line, quotes keep blanks, ``Include FILE`` reads another
# file, and names are the same in any case (man page slurm.conf, "DESCRIPTION").

#: How the names of these files end.
ENDING = ".conf"
_MOST = 1 << 24  # bytes of a file
_MOST_INCLUDES = 8  # files within files
_KIND = "a slurm.conf"

#: Settings that begin a line about one thing; all that follows on it belongs to that.
OBJECTS = ("nodename", "partitionname", "nodeset", "downnodes", "frontendname", "switchname")

_COMMENT = re.compile(r"(?<!\\)#.*")
_PAIR = re.compile(r'\s*([A-Za-z_][\w./]*)\s*(?:[+-]?=)\s*("[^"]*"|\S*)')
_INCLUDE = re.compile(r"\s*include\s+(\S+)\s*$", re.IGNORECASE)


class Setting(NamedTuple):
    """What stands at one place of a file.

    Attributes
    ----------
    where : file and line, for messages.
    name : as it is written.
    value : without quotes.
    others : what else the line says of a thing: lower case name -> (name, value); empty for
        settings of the whole machine.
    """

    where: str
    name: str
    value: str
    others: dict[str, tuple[str, str]]


class Thing(NamedTuple):
    """A line about nodes or a partition, with what lines of the name DEFAULT before it say.

    Attributes
    ----------
    where, called : file and line, and with them what messages call it.
    name : of the nodes, or of the partition.
    told : lower case name -> (name, value) of what the line says.
    """

    where: str
    called: str
    name: str
    told: dict[str, tuple[str, str]]

    def text(self, key: str, usual: str = "") -> str:
        """Return a value in lower case."""
        return self.told.get(key, ("", usual))[1].casefold()

    def number(self, key: str, usual: int | None) -> Any:
        """Return a whole number; ``usual`` where there is none."""
        written, value = self.told.get(key, (key, ""))
        found = count(value, f"{self.called}: {written}")
        return usual if found is None else found

    def time(self, key: str) -> int | None:
        """Return a time limit [s]; None where there is none."""
        written, value = self.told.get(key, (key, ""))
        return minutes_text(value, f"{self.called}: {written}")


def things(settings: Iterable[Setting], kind: str, called: str) -> Iterator[Thing]:
    """Yield the lines of one kind, which messages call so."""
    usual: dict[str, tuple[str, str]] = {}
    for line in settings:
        if line.name.casefold() == kind and line.value.casefold() == "default":
            usual = usual | line.others
        elif line.name.casefold() == kind:
            name = f"{line.where}, {called} {line.value!r}"
            yield Thing(line.where, name, line.value, usual | line.others)


def settings_of(path: str | Path) -> list[Setting]:
    """Return all settings of a slurm.conf in order, those of included files in their places.

    Raises
    ------
    HpcgymError : a file that cannot be read, a line that is no setting, files that include one
        another more than 8 deep; the message names file and line.
    """
    return list(_settings(Path(path), 0))


def _settings(path: Path, depth: int) -> Iterator[Setting]:
    """Yield the settings of a file and of those that it includes."""
    for number, line in _joined(text_of(path, _MOST, _KIND)):
        where = f"{path}, line {number}"
        found = _INCLUDE.match(line)
        if not found:
            yield from _of_line(where, line)
            continue
        if depth == _MOST_INCLUDES:
            raise HpcgymError(f"{where}: files include one another more than {depth} deep")
        try:
            yield from _settings(path.parent / found[1], depth + 1)
        except HpcgymError as error:
            raise HpcgymError(f"{where}, included: {error}") from None


def check_printable(where: str, line: str) -> None:
    """Raise an HpcgymError for a line with escape codes and the like: it is told on terminals."""
    if not line.replace("\t", " ").isprintable():
        raise HpcgymError(f"{where}: {line[:40]!r} has characters that cannot be printed")


def _joined(text: str) -> Iterator[tuple[int, str]]:
    """Yield lines without comments that are not blank, each with the number of its first."""
    begun, first = "", 0
    for number, raw in enumerate(text.splitlines(), 1):
        line = _COMMENT.sub("", raw).rstrip()
        first = first or number
        if line.endswith("\\"):
            begun += line[:-1]
            continue
        if (begun + line).strip():
            yield first, begun + line
        begun, first = "", 0
    if begun.strip():
        yield first, begun


def _of_line(where: str, line: str) -> Iterator[Setting]:
    """Yield the settings of one line."""
    check_printable(where, line)
    pairs, place = [], 0
    while place < len(line.rstrip()):
        found = _PAIR.match(line, place)
        if not found:
            rest = line[place:].strip()
            raise HpcgymError(f"{where}: {rest[:40]!r} is no setting such as Name=value")
        pairs.append((found[1], found[2].strip('"')))
        place = found.end()
    name, value = pairs[0]
    if name.casefold() in OBJECTS:
        yield Setting(where, name, value, {n.casefold(): (n, v) for n, v in pairs[1:]})
        return
    for name, value in pairs:
        yield Setting(where, name, value, {})


# --- Times ----------------------------------------------------------------------------------------

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
        return DAY_S * days + HOUR_S * hours + MINUTE_S * minutes + seconds
    if found := _HOURS.fullmatch(text):
        hours, minutes, seconds = map(int, found.groups())
        return HOUR_S * hours + MINUTE_S * minutes + seconds
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
