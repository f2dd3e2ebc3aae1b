"""The lines of a slurm.conf, and what stands in them: numbers, times and lists of names."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from hpcgym.errors import HpcgymError, Remarks, check_each_once
from hpcgym.files import bytes_of, is_there, size_text, text_of_lines, utf_16
from hpcgym.machine.partitions import hosts
from hpcgym.units import MINUTE_S, OF_SLURM, SLURM_NO_LIMIT, count_in, seconds_in

# --- The lines of a slurm.conf --------------------------------------------------------------------
#
# A line is ``Name=value`` once or several times, with blanks between. ``#`` begins a comment, a
# backslash at the end joins the next line, one before a character keeps that as it is, quotes keep
# blanks, ``Include FILE`` reads another file, and names are the same in any case (man page
# slurm.conf, "DESCRIPTION"). A line that is not one of this costs itself, not the file.

#: How the names of these files end.
ENDING = ".conf"
# one in the name of a scheduler, with rules behind it, or of a machine, with more nodes
_FILE = re.compile(rf"(.+?{re.escape(ENDING)})(?=$|[:,]|[+-]\d+$|\+\w+=)", re.DOTALL)
#: What may stand behind the name of a slurm.conf, each with a file: the tables of sacctmgr.
_BESIDE = re.compile(rf"(?P<conf>.*{re.escape(ENDING)}):(?P<files>(?:qos|assoc)=.*)", re.DOTALL)
_NEXT = re.compile(r"\+(?=(?:qos|assoc)=)")
_RULES = re.compile(r"[:+](?!(?:qos|assoc)=)(?=\w+=)")
_MOST = 1 << 24  # bytes of a file, with all that it includes
_LEAST = 1 << 12  # bytes that each of these counts for: they are 4,096 at most
_MOST_INCLUDES = 8  # files within files
#: Kinds of remarks: what is not followed, files that are lacking, and those that lie elsewhere
#: than their line says.
NOT_READ, MISSING = "lines or parts of lines not read", "included files that are missing"
ELSEWHERE = "included files found beside this file"

#: Settings that begin a line about one thing; all that follows on it belongs to that.
OBJECTS = ("nodename", "partitionname", "nodeset", "downnodes", "frontendname", "switchname")

_COMMENT = re.compile(r"(?<!\\)((?:\\\\)*)#.*")
_GOES_ON = re.compile(r"(?<!\\)((?:\\\\)*)\\\s*$")
_ESCAPE = re.compile(r"\\(.)")
_PAIR = re.compile(r'\s*([A-Za-z_][\w./]*)\s*(?:[-+*/]?=)\s*("[^"]*"(?!\S)|\S*)')
_INCLUDE = re.compile(r'\s*include\s+"?([^\s"]+)"?\s*$', re.IGNORECASE)


def conf_in(name: str) -> str:
    """Return the slurm.conf of which a scheduler or a machine is named; blank without it.

    >>> conf_in("slurm.conf:qos=qos.txt"), conf_in("slurm.conf+2"), conf_in("easy")
    ('slurm.conf', 'slurm.conf', '')
    """
    match = _FILE.match(name)
    return match[1] if match else ""


def rules_behind(name: Any) -> tuple[str, str]:
    """Return a slurm.conf with the files behind it, and rules that follow these; or two blanks.

    >>> rules_behind("slurm.conf:qos=qos.txt+policy=saf,hold=0.1"), rules_behind("slurm.conf")
    (('slurm.conf:qos=qos.txt', 'policy=saf,hold=0.1'), ('', ''))
    """
    conf = conf_in(name) if isinstance(name, str) else ""
    match = _RULES.search(name, len(conf)) if conf else None
    return (name[: match.start()], name[match.end() :]) if match else ("", "")


class SlurmFiles(NamedTuple):
    """A slurm.conf, and beside it files of QOS and of associations."""

    conf: str
    qos: str | None = None
    assoc: str | None = None


def files_of(name: Any) -> SlurmFiles | None:
    """Return the slurm.conf that a text names, and the files behind it.

    None: it names none, or has :func:`rules_behind` it.

    Raises
    ------
    HpcgymError : a kind of file that stands there twice.

    >>> files_of("slurm.conf:qos=qos.txt+assoc=assoc.txt"), files_of("easy")
    (SlurmFiles(conf='slurm.conf', qos='qos.txt', assoc='assoc.txt'), None)
    """
    if not isinstance(name, str) or rules_behind(name)[1]:
        return None
    if beside := _BESIDE.fullmatch(name):
        pairs = [part.partition("=") for part in _NEXT.split(beside["files"])]
        check_each_once(f"{name!r}", [kind for kind, _, _ in pairs])
        return SlurmFiles(beside["conf"], **{kind: file for kind, _, file in pairs})
    return SlurmFiles(name) if name.endswith(ENDING) else None


class SlurmSetting(NamedTuple):
    """What stands at one place of a file.

    Attributes
    ----------
    where : file and line, for messages.
    name : as it is written.
    value : without quotes.
    told : what else the line says of a thing: lower case name -> (name, value); empty for settings
        of the whole machine.
    """

    where: str
    name: str
    value: str
    told: dict[str, tuple[str, str]]


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

    def value(self, key: str, usual: str = "") -> str:
        """Return a value as it is written."""
        return self.told.get(key, ("", usual))[1]

    def text(self, key: str, usual: str = "") -> str:
        """Return a value in lower case."""
        return self.value(key, usual).casefold()

    def place(self, key: str) -> str:
        """Return what messages call a value: file, line, thing, and the key as it is written."""
        return f"{self.called}: {self.told.get(key, (key, ''))[0]}"

    def number(self, key: str, usual: int | None) -> Any:
        """Return a whole number; ``usual`` if it is missing."""
        value = count(self.value(key), self.place(key))
        return usual if value is None else value

    def time(self, key: str) -> int | None:
        """Return a time limit [s], in Slurm whole minutes, rounded up; None if it is missing."""
        seconds = minutes_text(self.value(key), self.place(key))
        return None if seconds is None else -(-seconds // MINUTE_S) * MINUTE_S


def things(settings: Iterable[SlurmSetting], kind: str, called: str) -> Iterator[Thing]:
    """Yield the lines of one kind, which messages call so."""
    usual: dict[str, tuple[str, str]] = {}
    for line in settings:
        if line.name.casefold() == kind and line.value.casefold() == "default":
            usual = usual | line.told
        elif line.name.casefold() == kind:
            name = f"{line.where}, {called} {line.value!r}"
            yield Thing(line.where, name, line.value, usual | line.told)


def not_read(line: Thing, error: HpcgymError, remarks: Remarks) -> None:
    """Tell that a line is left out, and why."""
    problem = str(error)
    where = "" if problem.startswith(line.where) else f"{line.called}: "
    remarks[NOT_READ].append(where + problem)


def settings_of(path: str | Path, remarks: Remarks) -> list[SlurmSetting]:
    """Return all settings of a slurm.conf in order, those of included files in their places.

    ``remarks`` is told of invalid lines, and of included files that are not where they should
    be: a file that was copied from its site has them beside it.

    Raises
    ------
    HpcgymError : a file that cannot be read or is binary, files that include one another more than
        8 deep, or that hold more than 16 MiB together; the message names the file, and the line.
    """
    settings: list[SlurmSetting] = []
    _read(Path(path), (Path(path),), settings, remarks, _MOST)
    return settings


def _read(
    path: Path,
    within: tuple[Path, ...],
    settings: list[SlurmSetting],
    remarks: Remarks,
    left: int,
) -> int:
    """Add the settings of a file, and of those that it includes; return how much may still come.

    ``within`` : the first file, and those that include one another down to this. ``left`` : bytes
    that may come.
    """
    text = _text(path)
    left -= max(len(text), _LEAST)
    if left < 0:
        raise HpcgymError(
            f"{within[0]} includes more than {_MOST // _LEAST:,} files, or {size_text(_MOST)} in"
            f" all: the last is {path}"
        )
    for number, line in _joined(text):
        where = f"{path}, line {number}"
        include = _INCLUDE.match(line)
        if not include:
            settings += _of_line(where, line, remarks)
            continue
        if len(within) > _MOST_INCLUDES:
            raise HpcgymError(f"{where}: files include one another more than {_MOST_INCLUDES} deep")
        name = include[1].replace("%c", _cluster(settings))
        places = _places(name, within[0], path)
        place = next((file for file in places if is_there(file)), None)
        if place is None:
            remarks[MISSING].append(f"{where}: Include {name}: no such file")
            continue
        if place != places[0]:
            remarks[ELSEWHERE].append(f"{where}: {name} is {place}")
        left = _read(place, (*within, place), settings, remarks, left)
    return left


def _cluster(settings: Iterable[SlurmSetting]) -> str:
    """Return the name of the cluster in lower case, which ``%c`` in the name of a file stands for.

    It is that which stands before.
    """
    names = [setting.value for setting in settings if setting.name.casefold() == "clustername"]
    return names[-1].lower() if names else "%c"


def _places(name: str, first: Path, path: Path) -> list[Path]:
    """Return where an included file may be: where Slurm looks, then beside the first file.

    Slurm takes a name for one in the folder of the first file, also within other files. After that
    come, in the folders of both, what is left of the name without its first folders.
    """
    parts = [part for part in Path(name).parts if part != os.sep]
    folders = dict.fromkeys((first.parent, path.parent))
    shorter = [Path(folder, *parts[k:]) for folder in folders for k in range(len(parts))]
    return [first.parent / name, *shorter]


def _text(path: Path) -> str:
    """Return the text of a file; lines that are not in UTF-8 are taken for Latin-1."""
    content = bytes_of(path, _MOST, HpcgymError)
    if b"\0" in content:
        raise HpcgymError(f"{path} is not a slurm.conf: it is binary{utf_16(content)}")
    return text_of_lines(content.removeprefix(b"\xef\xbb\xbf"))


def check_printable(where: str, line: str) -> None:
    """Raise an HpcgymError for a line with escape codes and the like: it is told on terminals."""
    if not line.replace("\t", " ").isprintable():
        raise HpcgymError(f"{where}: {line[:40]!r} has characters that cannot be printed")


def _joined(text: str) -> Iterator[tuple[int, str]]:
    """Yield lines without comments that are not blank, each with the number of its first.

    What cannot be printed is a question mark: names and values are told on terminals.
    """
    begun, first = "", 0
    lines = text.split("\n")  # splitlines() breaks at more than that
    for number, raw in enumerate([*lines, ""], 1):  # a blank one ends what goes on
        line = _COMMENT.sub(r"\1", raw).rstrip()
        first = first or number
        if _GOES_ON.search(line):
            begun += _GOES_ON.sub(r"\1", line)
            continue
        if whole := _ESCAPE.sub(r"\1", begun + line).strip():
            yield first, "".join(c if c.isprintable() or c == "\t" else "?" for c in whole)
        begun, first = "", 0


def _of_line(where: str, line: str, remarks: Remarks) -> Iterator[SlurmSetting]:
    """Yield the settings of one line; invalid words among them cost themselves."""
    pairs, words, place = [], [], 0
    while place < len(line):
        if match := _PAIR.match(line, place):
            pairs.append((match[1], match[2].strip('"')))
            place = match.end()
        else:
            words.append(line[place:].split()[0])
            place = line.index(words[-1], place) + len(words[-1])
    if words:
        text = " ".join(words)
        remarks[NOT_READ].append(f"{where}: {text[:40]!r} is no setting such as Name=value")
    if pairs and pairs[0][0].casefold() in OBJECTS:
        values = {name.casefold(): (name, value) for name, value in pairs[1:]}
        yield SlurmSetting(where, *pairs[0], values)
        return
    for name, value in pairs:
        yield SlurmSetting(where, name, value, {})


# --- Times ----------------------------------------------------------------------------------------


def minutes_text(text: str, where: str) -> int | None:
    """Return a time limit in seconds; None if it is missing.

    It is ``minutes``, ``minutes:seconds``, ``hours:minutes:seconds``, ``days-hours``,
    ``days-hours:minutes`` or ``days-hours:minutes:seconds`` (man page slurm.conf, "MaxTime").

    Raises
    ------
    HpcgymError : another text; ``where`` begins the message.
    """
    try:
        seconds = seconds_in(text, OF_SLURM)
    except ValueError as problem:
        raise HpcgymError(f"{where} is {text[:40]!r}, {problem}") from None
    return None if seconds == math.inf else int(seconds)


def count(text: str, where: str) -> int | None:
    """Return a whole number; None where there is no limit.

    Raises
    ------
    HpcgymError : another text; ``where`` begins the message.
    """
    if text.casefold() in SLURM_NO_LIMIT:
        return None
    try:
        return count_in(text)
    except ValueError as problem:
        raise HpcgymError(f"{where} is {text[:40]!r}, {problem}") from None


# --- Lists of names -------------------------------------------------------------------------------


def several(text: str) -> tuple[str, ...]:
    """Return names between commas; none of ``ALL``."""
    names = tuple(filter(None, (name.strip() for name in text.split(","))))
    return () if text.casefold() == "all" else names


def node_list(text: str) -> str:
    """Return a list of nodes as :func:`hpcgym.machine.partitions.hosts` reads it.

    Slurm takes blanks for commas, and does not mind more commas than are needed.
    """
    return re.sub(r"[\s,]+", ",", text).strip(",")


def hosts_of(line: Thing, text: str, remarks: Remarks) -> list[str]:
    """Return the names of a list of nodes; none of one that cannot be read, which is told."""
    try:
        listed = node_list(text)
        return hosts(listed, line.called) if listed else []
    except HpcgymError as error:
        not_read(line, error, remarks)
        return []
