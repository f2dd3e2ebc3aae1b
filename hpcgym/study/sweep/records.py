"""What a sweep keeps on disk: a line of JSON for each task, safe from kills.

``results.jsonl`` has a line for each finished task, ``{"id": ..., "task": ..., "result": ...}``;
``failures.jsonl`` one for each that failed, with its error and traceback instead of a result. A
line counts once its end is there, and as long as it is what was written: its last entry, "sha256",
is a checksum of all before it. What a kill tears or a disk damages is dropped, and its task done
again. ``function`` names the function whose results they are.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, cast

from hpcgym.errors import HpcgymError, HpcgymWarning, warn_caller
from hpcgym.files import json_of, text_of
from hpcgym.files.writing import plain, whole, writing

RESULTS, FAILURES, FUNCTION, LOCK = "results.jsonl", "failures.jsonl", "function", "lock"

_MOST_NAME = 1 << 16  # bytes of the name of a function

#: Between what a line says and its checksum.
_SEAL = b', "sha256": "'

#: [s] for which :func:`is_locked` may have a folder, and much more.
_LOOKED_AT_S = 1.0

Record = dict[str, Any]


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


def result_line(identity: str, task: str, result: Mapping[str, Any]) -> str:
    """Return the line of a finished task, whose canonical JSON is ``task``."""
    text = json.dumps(plain(result), allow_nan=False)
    return _sealed(f'{{"id": "{identity}", "task": {task}, "result": {text}'.encode()).decode()


def failure_line(identity: str, task: str, attempts: int, error: str, traceback: str) -> str:
    """Return the line of a task that failed."""
    rest = json.dumps({"attempts": attempts, "error": error, "traceback": traceback})
    return _sealed(f'{{"id": "{identity}", "task": {task}, {rest[1:-1]}'.encode()).decode()


def _sealed(body: bytes) -> bytes:
    """Return a line, of which the last brace is left out, with its checksum."""
    return body + _SEAL + hashlib.sha256(body).hexdigest()[:16].encode() + b'"}\n'


def _record(line: bytes) -> Record | None:
    """Return the record of a line; None if it is not what was written."""
    if line == _sealed(line.rpartition(_SEAL)[0]):
        return cast(Record, json_of(line, "", flat=True))
    return None


def read_records(path: Path) -> Iterator[Record | None]:
    """Return the records of a file, in its order; None for each line that is damaged.

    Without the file there are none. A last line without an end is being written, or was when its
    writer was killed: it is passed over.
    """
    if path.is_file():
        with path.open("rb") as file:
            yield from (_record(line) for line in file if line.endswith(b"\n"))


def kept(path: Path) -> tuple[set[str], int]:
    """Return the ids of the records of a file, and how many lines were damaged: they are dropped.

    For the process that has the folder; the file is as it was, or without these lines.
    """
    if not path.is_file():
        return set(), 0
    with path.open("rb") as file:
        ids = [record and record["id"] for record in map(_record, file)]
    if None in ids:  # else each later run would find them again
        with whole(path) as part, path.open("rb") as file, part.open("wb") as good:
            good.writelines(line for line, name in zip(file, ids, strict=True) if name)
    return {name for name in ids if name}, ids.count(None)


def read_results(folder: str | Path, tasks: Iterable[dict[str, Any]] | None = None) -> list[Record]:
    """Return the finished tasks: dicts with "id", "task" and "result".

    Parameters
    ----------
    folder : of the results.
    tasks : those to return, in this order, as far as they have finished; by default all, in the
        order of their ids, which is the same wherever they were done.

    Warns
    -----
    HpcgymWarning : lines are damaged; they are left out.
    """
    found = _by_id(Path(folder) / RESULTS)
    if tasks is None:
        return [found[name] for name in sorted(found)]
    names = (identity(canonical(task)) for task in tasks)
    return [found[name] for name in names if name in found]


def read_failures(folder: str | Path) -> list[Record]:
    """Return the tasks that failed for good, in the order of their ids.

    Each is a dict with "id", "task", "attempts", "error" and "traceback".

    Warns
    -----
    HpcgymWarning : lines are damaged; they are left out.
    """
    folder = Path(folder)
    last = _by_id(folder / FAILURES)
    for record in read_records(folder / RESULTS):
        if record:
            last.pop(record["id"], None)  # a later run did it
    return [last[name] for name in sorted(last)]


def _by_id(path: Path) -> dict[str, Record]:
    """Return the records of a file by their ids, the last of each; say so if lines are damaged."""
    found, damaged = {}, 0
    for record in read_records(path):
        if record is None:
            damaged += 1
        else:
            found[record["id"]] = record
    if damaged:
        text = f"{path} has damaged lines: {damaged:,}; a run that goes on does their tasks again"
        warn_caller(text, HpcgymWarning)
    return found


def append(path: Path, lines: Iterable[str]) -> None:
    """Write lines at the end of a file; when this returns they are on the disk.

    Raises
    ------
    HpcgymError : they cannot be written, on a full disk perhaps; the file is as it was.
    """
    with writing(path, "; what it holds is kept, and the next run goes on from there"):
        size = path.stat().st_size if path.exists() else 0
        try:
            with path.open("ab") as file:
                file.write("".join(lines).encode())
                file.flush()
                os.fsync(file.fileno())
        except OSError:
            with suppress(OSError):  # what is written next must not stand behind half a line
                os.truncate(path, size)
            raise


def claim(folder: Path, function: str) -> None:
    """Keep a folder to the results of one function, known by its name.

    Raises
    ------
    HpcgymError : it has results of another, or files of these names that are the user's.
    """
    path = folder / FUNCTION
    if path.is_file():
        before = text_of(path, _MOST_NAME, "the name of a function").strip()
        if before == function:
            return
        raise HpcgymError(
            f"{folder} has results of {before[:80]!r}, not of {function}: choose another folder"
        )
    for name in (RESULTS, FAILURES):
        file = folder / name
        if file.exists() and file.stat().st_size and not any(read_records(file)):
            raise HpcgymError(f"{file} is there, and is none of a sweep: choose another folder")
    with whole(path) as part:
        part.write_bytes(f"{function}\n".encode())


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Keep a folder, made if need be, to this process; a kill sets it free.

    Raises
    ------
    HpcgymError : another process has it, or it cannot be written.
    """
    import fcntl

    try:
        folder.mkdir(parents=True, exist_ok=True)
        file = (folder / LOCK).open("ab")
    except OSError as error:
        raise HpcgymError(f"{folder} cannot be written: {error.strerror or error}") from None
    with file:
        end = time.monotonic() + _LOOKED_AT_S
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > end:
                    raise HpcgymError(
                        f"{folder}: another process is at work on it; wait for its end, or choose"
                        " another folder"
                    ) from None
            time.sleep(0.01)
        yield


def is_locked(folder: Path) -> bool:
    """Tell whether some process is at work on a folder."""
    import fcntl

    if not (folder / LOCK).is_file():
        return False
    with (folder / LOCK).open("rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        return False
