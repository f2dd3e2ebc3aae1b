"""What a sweep keeps on disk: a line of JSON for each task, safe from kills.

``results.jsonl`` has a line for each finished task, ``{"id": ..., "task": ..., "result": ...}``;
``failures.jsonl`` one for each that failed, with its error and traceback instead of a result. A
line counts once its end is there: what a kill leaves behind is dropped, and its task done again.
``function`` names the function whose results they are.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from hpcgym.errors import HpcgymError
from hpcgym.writing import whole, writing

RESULTS, FAILURES, FUNCTION, LOCK = "results.jsonl", "failures.jsonl", "function", "lock"

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


def identity(text: str) -> str:
    """Return what a task is known by: the hash of its canonical JSON, 16 hexadecimal digits."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def plain(value: Any) -> Any:
    """Return a value as JSON has it: no numpy scalars or arrays; what is no number is null."""
    if isinstance(value, Mapping):
        return {str(key): plain(part) for key, part in value.items()}
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def result_line(identity: str, task: str, result: Mapping[str, Any]) -> str:
    """Return the line of a finished task, whose canonical JSON is ``task``."""
    text = json.dumps(plain(result), allow_nan=False)
    return f'{{"id": "{identity}", "task": {task}, "result": {text}}}\n'


def failure_line(identity: str, task: str, attempts: int, error: str, traceback: str) -> str:
    """Return the line of a task that failed."""
    rest = json.dumps({"attempts": attempts, "error": error, "traceback": traceback})
    return f'{{"id": "{identity}", "task": {task}, {rest[1:]}\n'


def read_records(path: Path) -> Iterator[Record | None]:
    """Return the records of a file, in its order; None for each line that cannot be read.

    Without the file there are none. A last line without an end is being written, or was when its
    writer was killed.
    """
    if not path.is_file():
        return
    with path.open("rb") as file:
        for line in file:
            try:
                record = json.loads(line) if line.endswith(b"\n") else None
            except ValueError:
                record = None
            yield record if isinstance(record, dict) and "id" in record else None


def finished(folder: Path) -> tuple[set[str], int]:
    """Return the ids of the finished tasks, and how many lines could not be read: they are dropped.

    For the process that has the folder; the file is as it was, or without these lines.
    """
    path = folder / RESULTS
    torn = mend(path)
    done, wrong = set(), set()
    for number, record in enumerate(read_records(path)):
        if record is None:
            wrong.add(number)
        else:
            done.add(record["id"])
    if wrong:  # else each later run would find them again
        with path.open("rb") as file, whole(path) as part, part.open("wb") as kept:
            kept.writelines(line for number, line in enumerate(file) if number not in wrong)
    return done, len(wrong) + torn


def read_results(folder: str | Path, tasks: Iterable[dict[str, Any]] | None = None) -> list[Record]:
    """Return the finished tasks: dicts with "id", "task" and "result".

    Parameters
    ----------
    folder : of the results.
    tasks : those to return, in this order, as far as they have finished; by default all, in the
        order of their ids, which is the same wherever they were done.
    """
    found = {record["id"]: record for record in read_records(Path(folder) / RESULTS) if record}
    if tasks is None:
        return [found[name] for name in sorted(found)]
    names = (identity(canonical(task)) for task in tasks)
    return [found[name] for name in names if name in found]


def read_failures(folder: str | Path) -> list[Record]:
    """Return the tasks that failed for good, in the order of their ids.

    Each is a dict with "id", "task", "attempts", "error" and "traceback".
    """
    folder = Path(folder)
    last = {record["id"]: record for record in read_records(folder / FAILURES) if record}
    for record in read_records(folder / RESULTS):
        if record:
            last.pop(record["id"], None)  # a later run did it
    return [last[name] for name in sorted(last)]


def mend(path: Path) -> bool:
    """Cut off a last line without an end, so that no other is written behind it; tell if one was.

    Raises
    ------
    HpcgymError : the file cannot be written.
    """
    if not path.is_file():
        return False
    with writing(path), path.open("r+b") as file:
        end = size = file.seek(0, os.SEEK_END)
        while end:
            begin = max(0, end - 65_536)
            file.seek(begin)
            found = file.read(end - begin).rfind(b"\n")
            end = begin + found + 1  # without any in this block: its begin
            if found >= 0:
                break
        if end < size:
            file.truncate(end)
    return end < size


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
    HpcgymError : it has results of another.
    """
    path = folder / FUNCTION
    before = path.read_text(errors="replace").strip() if path.is_file() else ""
    if before == function:
        return
    files = (folder / RESULTS, folder / FAILURES)
    if before and any(file.exists() and file.stat().st_size for file in files):
        raise HpcgymError(
            f"{folder} has results of {before}, not of {function}: choose another folder"
        )
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
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise HpcgymError(
                f"{folder}: another process is at work on it; wait for its end, or choose another"
                " folder"
            ) from None
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
