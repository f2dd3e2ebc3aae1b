"""What files say of their origin: the record, and where it stands in each kind.

It is one line of JSON in ASCII. SWF has it as a note of the header, a page as a meta element,
Parquet and pictures as metadata, results in JSON under a key. Tables of jobs in CSV and JSON have
it in a file beside them: comments would break programs that read CSV.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cached_property
from html import escape, unescape
from pathlib import Path
from typing import Any

from hpcgym.dates import utc_text
from hpcgym.errors import HpcgymError
from hpcgym.files import MEGABYTE, MOST_JSON, bytes_of, json_of, lines_of, open_bytes, text_of
from hpcgym.files.tables import csv_rows, need_parquet, parquet_metadata
from hpcgym.files.writing import json_text, plain, whole_text
from hpcgym.own_code import used_packages
from hpcgym.units import count_of
from hpcgym.version import __version__

# --- Where a file is from -------------------------------------------------------------------------

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
    line, None from Python; "files", what that command reads, name -> SHA-256. If this process has
    used something of other packages by its name, "packages": package -> version.

    Raises
    ------
    HpcgymError : SOURCE_DATE_EPOCH is no date.
    """
    command, packages = _COMMAND.get(), used_packages()
    others = {PACKAGES: packages} if packages else {}
    if command is None:
        return {"hpcgym": __version__, **others, "date": date_text(), "command": None, "files": {}}
    arguments, files = list(command.arguments), command.files
    of_command = {"date": command.date, "command": arguments, "files": files}
    return {"hpcgym": __version__, **others, **of_command}


def date_text() -> str:
    """Return the time now in UTC, such as ``2026-11-23T10:15:00Z``.

    Or that of the environment variable SOURCE_DATE_EPOCH, seconds since 1970, so that files can be
    written again byte by byte.

    Raises
    ------
    HpcgymError : it is no whole number of seconds from 0 up to the year 9999.
    """
    date = os.environ.get("SOURCE_DATE_EPOCH")
    if not date:
        return f"{utc_text(time.time())}Z"
    seconds = count_of(date)
    if seconds is None or seconds > _LAST_SECOND:
        raise HpcgymError(
            f"SOURCE_DATE_EPOCH must be whole seconds since 1970, up to the year 9999, not {date!r}"
        )
    return f"{utc_text(seconds)}Z"


# --- Where the record of a file's origin stands ---------------------------------------------------

#: The key of a record in JSON, and what its note in SWF begins with.
KEY = "provenance"

#: The name of a record in Parquet's and in a page's metadata.
NAME = "hpcgym"

#: Ending of a picture's name -> the key of the format under which a record stands.
PICTURE_KEYS = {".png": "Description", ".svg": "Description", ".pdf": "Subject"}

#: Columns of a table of results that say where each schedule is from.
COLUMNS = ("hpcgym", "date", "command", "workload_sha256", "schedule_sha256")

#: The column that is there if something of other packages was used, and the key of a record.
PACKAGES = "packages"

_MOST = 256 * MEGABYTE  # of a page or a picture


def record_text(record: Mapping[str, Any]) -> str:
    """Return a record as one line of ASCII."""
    return json.dumps(plain(record), allow_nan=False)


def origin_columns(record: Mapping[str, Any]) -> dict[str, str]:
    """Return the columns of a table of results that say where a schedule is from.

    Comments would break programs that read CSV, and rows of several tables may be put together.
    """
    (schedule,) = record["schedules"]
    values = (
        record["hpcgym"],
        record["date"],
        shlex.join(["hpcgym", *(record["command"] or ())]),
        schedule["workload"],
        schedule["sha256"],
    )
    of_others = {PACKAGES: packages_text(record)} if PACKAGES in record else {}
    return dict(zip(COLUMNS, values, strict=True)) | of_others


def packages_text(record: Mapping[str, Any]) -> str:
    """Return the other packages of a record with their versions, in words."""
    return ", ".join(f"{name} {version}" for name, version in record[PACKAGES].items())


def _of_rows(rows: list[tuple[int, list[str]]]) -> dict[str, Any] | None:
    """Return the record of a table of results from its first row; its workloads tell no more."""
    if len(rows) < 2 or not set(COLUMNS) <= set(rows[0][1]):
        return None
    lines = [dict(zip(rows[0][1], cells, strict=False)) for _, cells in rows[1:]]
    version, date, command, *_ = (lines[0].get(name, "") for name in COLUMNS)
    texts = [[line.get(name, "") for name in ("scheduler", *COLUMNS[3:])] for line in lines]
    packages = lines[0].get(PACKAGES)
    try:
        _, *arguments = shlex.split(command)
        pairs = [text.split(" ") for text in packages.split(", ")] if packages else []
        of_others = {PACKAGES: dict(pairs)} if pairs else {}
    except ValueError:
        return None
    return {
        "hpcgym": version,
        **of_others,
        "date": date,
        "command": arguments,
        "files": {},
        "workloads": [{"sha256": sha} for sha in dict.fromkeys(jobs for _, jobs, _ in texts)],
        "schedules": [{"name": name, "workload": jobs, "sha256": sha} for name, jobs, sha in texts],
    }


def note_of(record: Mapping[str, Any]) -> str:
    """Return the note of an SWF header that has a record."""
    return f"{KEY}: {record_text(record)}"


def meta_of(record: Mapping[str, Any]) -> str:
    """Return the element of a page's head that has a record."""
    return f'<meta name="{NAME}" content="{escape(record_text(record))}">'


def beside(path: Path) -> Path:
    """Return the file that has the record of a table of jobs: ``jobs.csv.provenance.json``."""
    return path.with_name(f"{path.name}.{KEY}.json")


def table_of(path: Path) -> Path | None:
    """Return the table that a file is the record of; None if it is no such file."""
    ending = f".{KEY}.json"
    return path.with_name(path.name.removesuffix(ending)) if path.name.endswith(ending) else None


def write_beside(path: Path, record: Mapping[str, Any]) -> None:
    """Write the record of a table beside it.

    Raises
    ------
    WorkloadError : it cannot be written.
    """
    with whole_text(beside(path)) as file:
        file.write(json_text(record))


def ending_of(path: Path) -> str:
    """Return the ending of a file's name in small letters, that before ``.gz``: what it holds."""
    name = path.name.casefold().removesuffix(".gz")
    return name[name.rfind(".") :] if "." in name else ""


def record_of_file(path: Path) -> dict[str, Any]:
    """Return the record of a file.

    Raises
    ------
    HpcgymError : the file cannot be read, is of a kind that has no record, or has none.
    """
    read = READERS.get(ending_of(path))
    if read is None:
        raise HpcgymError(f"{path}: files with a record end in {', '.join(READERS)}")
    with open_bytes(path):
        pass  # which says what is wrong with the name, before the file beside it is looked for
    text = read(path)
    if not text:
        raise HpcgymError(f"{path} has no record of what it was made from")
    record = json_of(text, f"the record of {path}") if isinstance(text, str) else text
    if not _is_record(record):
        raise HpcgymError(f"the record of {path} is damaged")
    return {"schedules": [], **record}  # a leaderboard has none


def _is_record(record: Any) -> bool:
    """Tell whether a value has the parts that every record has."""
    if not isinstance(record, dict) or "command" not in record:
        return False
    lists = {str: record["command"] or [], dict: record.get("workloads")}
    lists_right = all(
        isinstance(values, list) and all(isinstance(value, kind) for value in values)
        for kind, values in (*lists.items(), (dict, record.get("schedules", [])))
    )
    kinds = {"hpcgym": str, "date": str, "files": dict, PACKAGES: dict}
    parts = {PACKAGES: {}, **record}
    return lists_right and all(isinstance(parts.get(key), kind) for key, kind in kinds.items())


def _of_swf(path: Path) -> str | None:
    for line, _ in lines_of(path, "SWF"):
        text = line.strip()
        if text and not text.startswith(";"):
            return None  # the header has ended
        key, _, value = text.removeprefix(";").strip().partition(": ")
        if key == "Note" and value.startswith(f"{KEY}: "):
            return value.removeprefix(f"{KEY}: ")
    return None


def _of_table(path: Path) -> str | None:
    record = beside(path)
    return text_of(record, MOST_JSON, "a record") if record.exists() else None


def _of_csv(path: Path) -> Any:
    return _of_table(path) or _of_rows(csv_rows(path, "CSV"))


def _of_json(path: Path) -> Any:
    text = _of_table(path)
    if text is not None:
        return text
    value = json_of(bytes_of(path, MOST_JSON, HpcgymError), str(path), flat=True)
    if not isinstance(value, dict):
        return None
    return value.get(KEY)


def _of_parquet(path: Path) -> str | None:
    need_parquet()
    return parquet_metadata(path).get(NAME) or _of_table(path)


def _of_drawn(path: Path) -> str | None:
    """Return the record of a page or picture: the first text that begins as records do."""
    text = bytes_of(path, _MOST, HpcgymError).decode("latin-1")
    if ending_of(path) == ".pdf":
        text = re.sub(r"\\(.)", r"\1", text, flags=re.DOTALL)
    elif ending_of(path) in (".html", ".svg"):
        text = unescape(text)
    at = text.find('{"hpcgym": "')
    if at < 0:
        return None
    try:
        return text[at : json.JSONDecoder().raw_decode(text, at)[1]]
    except (ValueError, RecursionError):
        raise HpcgymError(f"the record of {path} is damaged") from None


#: Ending of a file that may have a record -> what returns it: text, or the record itself.
READERS: dict[str, Any] = {
    ".swf": _of_swf,
    ".csv": _of_csv,
    ".json": _of_json,
    ".md": _of_table,  # reports of studies
    ".parquet": _of_parquet,
    **dict.fromkeys((".html", *PICTURE_KEYS), _of_drawn),
}
