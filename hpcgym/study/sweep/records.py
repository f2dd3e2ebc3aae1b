"""What a sweep keeps on disk: one SQLite file in its folder, safe from kills.

Its tables are ``about`` (the function whose results they are; of an experiment the manifest, the
text and where it lay), ``results`` and ``failures``, each of rows with a ``name``, a ``text`` of
JSON and a checksum of both. A row counts once its transaction has ended, and as long as it is what
was written: what a disk damages is dropped, and its task done again.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import sqlite3
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from hpcgym.errors import HpcgymError, HpcgymWarning, warn_caller
from hpcgym.files import json_of
from hpcgym.files.writing import plain
from hpcgym.names import printable

FILE, LOCK = "sweep.sqlite", "lock"

#: No index: damaged or not, rows are found in turn.
_TABLES, _COLUMNS = ("about", "results", "failures"), "(name TEXT, text TEXT, sha256 TEXT)"
_EARLIER = ("manifest.json", "results.jsonl", "failures.jsonl")  # of versions before this file

#: [s] for which a writer waits for readers, and they for it.
_BUSY_S = 300.0
#: [s] for which :func:`is_locked` may have a folder, and much more.
_LOOKED_AT_S = 1.0

#: How the lock is opened: a pipe in its place, which nobody reads, is not waited for.
_WRITES = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NONBLOCK

Record = dict[str, Any]

#: A name, and a text of JSON.
Row = tuple[str, str]


def canonical(task: Any) -> str:
    """Return a task as JSON, the same text on every machine and in whatever order its keys are.

    Numbers that Python takes for equal need not be the same: 1, 1.0 and true are three.

    Raises
    ------
    HpcgymError : it is not a dict that JSON can hold.
    """
    if not isinstance(task, dict):
        raise HpcgymError(f"a task must be a dict, not {task!r}")
    try:
        return json.dumps(task, sort_keys=True, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError) as error:
        raise HpcgymError(f"a task must be what JSON can hold: {error}, in {task!r}") from None
    except RecursionError:
        raise HpcgymError("a task must be what JSON can hold: it is nested too deeply") from None


def identity(text: str) -> str:
    """Return what a task is known by: the hash of its canonical JSON, 16 hexadecimal digits."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def ids_of(tasks: Iterable[Any]) -> set[str]:
    """Return what tasks are known by."""
    return {identity(canonical(task)) for task in tasks}


def result_text(task: str, result: Mapping[str, Any]) -> str:
    """Return what is kept of a finished task, whose canonical JSON is ``task``."""
    return f'{{"task": {task}, "result": {json.dumps(plain(result), allow_nan=False)}}}'


def failure_text(task: str, attempts: int, error: str, traceback: str) -> str:
    """Return what is kept of a task that failed."""
    rest = json.dumps({"attempts": attempts, "error": error, "traceback": traceback})
    return f'{{"task": {task}, {rest[1:]}'


# --- The file -------------------------------------------------------------------------------------


@contextmanager
def reading(folder: Path) -> Iterator[sqlite3.Connection]:
    """Open the file of a folder to read it; without one, tables that have nothing in them.

    Raises
    ------
    HpcgymError : it is damaged, cannot be read, or the folder is of an earlier version.
    """
    path = folder / FILE
    begun = path.is_file() and path.stat().st_size > 0
    if not begun and any((folder / name).exists() for name in _EARLIER):
        raise HpcgymError(
            f"{folder} is of an earlier version of hpcgym, or has files of the same names: choose"
            " another folder, and run anew what it has"
        )
    with _opened(path if begun else ":memory:") as file:
        yield file


@contextmanager
def locked(folder: Path) -> Iterator[sqlite3.Connection]:
    """Keep a folder, made if need be, to this process, and open its file; a kill sets it free.

    Raises
    ------
    HpcgymError : another process has it, it cannot be written, or as of :func:`reading`.
    """
    with reading(folder):
        pass
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = os.fdopen(os.open(folder / LOCK, _WRITES, 0o666), "ab")
    except OSError as error:
        raise HpcgymError(f"{folder} cannot be written: {error.strerror or error}") from None
    with lock:
        end = time.monotonic() + _LOOKED_AT_S
        while not _taken(lock, fcntl.LOCK_EX):
            if time.monotonic() > end:
                raise HpcgymError(
                    f"{folder}: another process is at work on it; wait for its end, or choose"
                    " another folder"
                )
            time.sleep(0.01)
        with _opened(folder / FILE) as file:
            yield file


def is_locked(folder: Path) -> bool:
    """Tell whether some process is at work on a folder."""
    if not (folder / LOCK).is_file():
        return False
    with (folder / LOCK).open("rb") as lock:
        return not _taken(lock, fcntl.LOCK_SH)


def _taken(lock: BinaryIO, kind: int) -> bool:
    try:
        fcntl.flock(lock, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


@contextmanager
def _opened(place: str | Path) -> Iterator[sqlite3.Connection]:
    """Open a file, with the tables of a sweep.

    SQLite keeps changes in a rollback journal. Its other journal needs memory that all processes
    with the file share, which is impossible across machines.
    """
    try:
        with closing(sqlite3.connect(place, timeout=_BUSY_S)) as file:
            file.text_factory = lambda text: text.decode(errors="replace")
            _begin(file, place)
            yield file
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:  # of what SQLite quotes, perhaps
        known = getattr(error, "sqlite_errorname", "SQLITE_CORRUPT")
        damaged = known.startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB", "SQLITE_ERROR"))
        what = "is damaged" if damaged else "cannot be read or written"
        raise HpcgymError(f"{place} {what}: {printable(str(error))}") from None


def _begin(file: sqlite3.Connection, place: str | Path) -> None:
    """Make the tables that are missing; raise an HpcgymError if a file has others."""
    own = {name: f"CREATE TABLE {name} {_COLUMNS}" for name in _TABLES}
    there = file.execute("SELECT name, sql FROM sqlite_master").fetchall()
    if foreign := [name for name, made in there if made != own.get(name)]:
        raise HpcgymError(
            f"{place} is no file of a sweep: it has {printable(', '.join(foreign))}; choose another"
            " folder"
        )
    for name in _TABLES:
        file.execute(f"CREATE TABLE IF NOT EXISTS {name} {_COLUMNS}")


# --- Its rows -------------------------------------------------------------------------------------


def _seal(name: str, text: str) -> str:
    return hashlib.sha256(f"{name} {text}".encode()).hexdigest()


def append(file: sqlite3.Connection, **tables: Iterable[Row]) -> None:
    """Add rows to tables, all or none; when this returns they are on the disk."""
    with file:
        for table, rows in tables.items():
            sealed = [(name, text, _seal(name, text)) for name, text in rows]
            file.executemany(f"INSERT INTO {table} VALUES (?, ?, ?)", sealed)


def rows_of(file: sqlite3.Connection, table: str) -> Iterator[tuple[int, Row | None]]:
    """Return the rows of a table by their numbers, in their order; None of what is damaged."""
    every = file.execute(f"SELECT rowid, name, text, sha256 FROM {table} ORDER BY rowid")
    for number, name, text, seal in every:
        yield number, (name, text) if seal == _seal(name, text) else None


def kept(file: sqlite3.Connection, table: str) -> tuple[set[str], int]:
    """Return the names of the rows of a table, and how many were damaged: they are dropped."""
    names, damaged = set(), []
    for number, row in rows_of(file, table):
        if row is None:
            damaged.append((number,))
        else:
            names.add(row[0])
    with file:
        file.executemany(f"DELETE FROM {table} WHERE rowid = ?", damaged)
    return names, len(damaged)


def about(file: sqlite3.Connection) -> dict[str, Any]:
    """Return what a file says of itself, by name."""
    rows = [row for _, row in rows_of(file, "about")]
    if None in rows:
        raise sqlite3.DatabaseError("what it says of itself is not what was written")
    return {row[0]: json_of(row[1], "", flat=True) for row in rows if row is not None}


def claim(file: sqlite3.Connection, function: str) -> None:
    """Keep a file to the results of one function, known by its name.

    Raises
    ------
    HpcgymError : it has results of another.
    """
    before = about(file).get("function")
    if before is None:
        append(file, about=[("function", json.dumps(function))])
    elif before != function:
        raise HpcgymError(
            f"the folder has results of {before!r}, not of {function}: choose another"
        )


# --- What others read -----------------------------------------------------------------------------


def read_results(folder: str | Path, tasks: Iterable[dict[str, Any]] | None = None) -> list[Record]:
    """Return the finished tasks: dicts with "id", "task" and "result".

    Parameters
    ----------
    folder : of the results.
    tasks : those to return, in this order, as far as they have finished; by default all, in the
        order of their ids, which is the same wherever they were done.

    Raises
    ------
    HpcgymError : the file is damaged as a whole, or the folder is of an earlier version.

    Warns
    -----
    HpcgymWarning : rows are damaged; they are left out.
    """
    with reading(Path(folder)) as file:
        records = _by_id(file, folder, "results")
    if tasks is None:
        return [records[name] for name in sorted(records)]
    names = (identity(canonical(task)) for task in tasks)
    return [records[name] for name in names if name in records]


def read_failures(folder: str | Path) -> list[Record]:
    """Return the tasks that failed for good, in the order of their ids.

    Each is a dict with "id", "task", "attempts", "error" and "traceback".

    Raises
    ------
    HpcgymError : as of :func:`read_results`.

    Warns
    -----
    HpcgymWarning : rows are damaged; they are left out.
    """
    with reading(Path(folder)) as file:
        last = _by_id(file, folder, "failures")
        for _, row in rows_of(file, "results"):
            if row is not None:
                last.pop(row[0], None)  # a later run did it
    return [last[name] for name in sorted(last)]


def _by_id(file: sqlite3.Connection, folder: str | Path, table: str) -> dict[str, Record]:
    """Return the records of a table by their ids, the last of each; say so if rows are damaged."""
    records, damaged = {}, 0
    for _, row in rows_of(file, table):
        if row is None:
            damaged += 1
        else:
            records[row[0]] = {"id": row[0], **json_of(row[1], "", flat=True)}
    if damaged:
        text = (
            f"{folder} has damaged {table}: {damaged:,}; a run that goes on does their tasks again"
        )
        warn_caller(text, HpcgymWarning)
    return records
