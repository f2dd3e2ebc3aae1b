"""Writing files whole or not at all, numbers as JSON has them, and a folder for compiled code."""

from __future__ import annotations

import csv
import errno
import gzip
import io
import json
import math
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from io import TextIOWrapper
from pathlib import Path
from typing import IO, Any, cast

from hpcgym.errors import WorkloadError

# --- Results as text: JSON and CSV, with floats in full -------------------------------------------


def plain(value: Any) -> Any:
    """Return a value as JSON has it: no numpy scalars or arrays; what is no number is null."""
    if isinstance(value, Mapping):
        return {str(key): plain(part) for key, part in value.items()}
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def json_text(value: Any) -> str:
    """Return a value as JSON, floats in full; what is no number (0 / 0) is null."""
    return json.dumps(plain(value), indent=2, allow_nan=False) + "\n"


#: What spreadsheets take for a formula and compute, behind apostrophes or none: a log may have it
#: as the name of a user. Digits behind the sign of minus are a number.
_COMPUTED = re.compile(
    r"'*(?:[=+@\t\r\n\uff0b\uff0d\uff1d\uff20]|-(?!(?:[0-9.]+(?:e[+-]?[0-9]+)?|inf|nan)?\Z))",
    re.IGNORECASE,
)


def csv_cell(value: Any) -> Any:
    """Return a value as it is written into a cell of CSV: a text that is computed has ``'`` before.

    It does no harm in a spreadsheet then; :func:`of_csv_cell` returns what it was. All CSV is
    written by this module and by :func:`hpcgym.files.tables.write_csv_frame`.

    >>> [csv_cell(value) for value in ("=1+1", "@ann", "'=x", "-5", "ann", -5)]
    ["'=1+1", "'@ann", "''=x", '-5', 'ann', -5]
    """
    return f"'{value}" if isinstance(value, str) and _COMPUTED.match(value) else value


def of_csv_cell(value: Any) -> Any:
    """Return the value of which :func:`csv_cell` has made this one."""
    changed = isinstance(value, str) and value[:1] == "'" and _COMPUTED.match(value)
    return value[1:] if changed else value


def csv_text(rows: Iterable[Mapping[str, Any]]) -> str:
    """Return rows as CSV, floats in full; what some have and others not is empty in these."""
    lines = [{csv_cell(n): csv_cell(value) for n, value in plain(row).items()} for row in rows]
    columns = dict.fromkeys(column for line in lines for column in line)
    text = io.StringIO()
    writer = csv.DictWriter(text, list(columns), lineterminator="\n")
    writer.writeheader()
    writer.writerows(lines)
    return text.getvalue()


# --- Writing files --------------------------------------------------------------------------------

_LONGEST = 200  # bytes of a file's name that the name of its part begins with: 255 is the limit


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turn what the system says when a file cannot be written into a WorkloadError.

    What it says of another file, which is read meanwhile perhaps, is said of that. That the reader
    of a pipe has gone is no error of a file.
    """
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        reason = error.strerror or error
        named = Path(error.filename) if isinstance(error.filename, str) else path
        ours = (path.absolute(), *path.absolute().parents)
        if named.suffix != ".part" and named.absolute() not in ours:
            raise WorkloadError(f"{error.filename}: {reason}") from None
        raise WorkloadError(f"{path} cannot be written: {reason}") from None


@contextmanager
def whole_file(path: str | os.PathLike[str], *, folders: bool = False) -> Iterator[Path]:
    """Give a file to write that takes the place of ``path`` at the end.

    Whatever happens before, an error, a full disk or a kill, ``path`` is what it was: no reader
    ever sees half of a file. A file that is replaced keeps its permissions, and a link to it stays
    a link. Pipes, terminals and the like are written to as they are, once all is there.

    Parameters
    ----------
    path : of the file.
    folders : whether missing folders are made.

    Raises
    ------
    WorkloadError : it cannot be written; the message names it.
    """
    path = Path(path)
    with writing(path):
        if folders:
            path.parent.mkdir(parents=True, exist_ok=True)
        if is_stream(path):
            with tempfile.TemporaryDirectory() as folder:
                part = Path(folder, "part")
                yield part
                with part.open("rb") as made, _opened(path) as stream:
                    shutil.copyfileobj(made, stream)
            return
        target = Path(os.path.realpath(path))  # what a link points to
        part = _begun(target)
        try:
            yield part
            with part.open("rb+") as file:
                os.fsync(file.fileno())
            os.replace(part, target)
        finally:
            part.unlink(missing_ok=True)


@contextmanager
def whole_text(path: str | os.PathLike[str], *, folders: bool = False) -> Iterator[IO[str]]:
    """Give a text file that takes the place of ``path`` at the end; see :func:`whole_file`.

    UTF-8, with line ends as they are written; gzip if the name ends in ``.gz``, the same bytes
    every time.
    """
    packed = os.fspath(path).endswith(".gz")
    with whole_file(path, folders=folders) as part, part.open("wb") as file:
        # without the part's name and the time, which gzip would keep
        inner = gzip.GzipFile("", "wb", 6, file, mtime=0) if packed else file
        with TextIOWrapper(cast(IO[bytes], inner), encoding="utf-8", newline="\n") as text:
            yield text


def whole_json(path: str | os.PathLike[str], contents: Any) -> None:
    """Write values as JSON, in such a way that a reader never sees half of it; folders are made.

    Raises
    ------
    HpcgymError : the file cannot be written.
    """
    with whole_text(path, folders=True) as file:
        file.write(json.dumps(contents, indent=1) + "\n")


def check_writable(path: Path, *, folders: bool = False) -> None:
    """Say before the work that a file cannot be written; what is there stays as it is.

    Parameters
    ----------
    path : of the file.
    folders : whether missing folders are made.

    Raises
    ------
    WorkloadError : it cannot be written; the message names it.
    """
    with writing(path):
        if folders:
            path.parent.mkdir(parents=True, exist_ok=True)
        if not is_stream(path):
            _begun(Path(os.path.realpath(path))).unlink()
        elif not os.access(path, os.W_OK):
            raise _error(errno.EACCES, path)


#: Files that this process has open -> their numbers.
_OPEN = {"/dev/stdout": 1, "/dev/stderr": 2}


def is_stream(path: Path) -> bool:
    """Tell whether a path is no file to replace: a pipe, a device, or this process's output.

    ``/dev/stdout``, or a link to it, is one wherever it leads to.
    """
    if _number(path) is not None:
        return True
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def _number(path: Path) -> int | None:
    """Return the number of a file that this process has open, None of any other."""
    link = path.readlink() if path.is_symlink() else path
    return _OPEN.get(str(path), _OPEN.get(str(link)))


def _opened(path: Path) -> IO[bytes]:
    """Open a stream to write to.

    A file that this process has open is not opened again: it goes on where others have written to
    it, and others go on behind it.
    """
    number = _number(path)
    return path.open("ab") if number is None else open(os.dup(number), "wb")


def same_file(path: Path, other: Path) -> bool:
    """Tell whether two paths lead to one file, or would if it were there."""
    with suppress(OSError):
        return path.samefile(other)
    return os.path.realpath(path) == os.path.realpath(other)


def _begun(target: Path) -> Path:
    """Return a new empty file beside one, with its permissions; those of new files without it.

    Raises
    ------
    OSError : it cannot be made, the target is a folder, or one that must not be written to.
    """
    before = target.stat() if target.exists() else None
    if before is not None and stat.S_ISDIR(before.st_mode):
        raise _error(errno.EISDIR, target)
    if before is not None and not os.access(target, os.W_OK):
        raise _error(errno.EACCES, target)
    mode = 0o666 if before is None else stat.S_IMODE(before.st_mode)
    name = os.fsdecode(os.fsencode(target.name)[:_LONGEST])
    part = target.with_name(f"{name}.{os.urandom(4).hex()}.part")
    os.close(os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode))
    if before is not None:
        if not (_given(part, before.st_uid, before.st_gid) or _given(part, -1, before.st_gid)):
            mode &= ~stat.S_IRWXG  # which would be rights of another group
        with suppress(OSError):
            part.chmod(mode)
    return part


def _given(path: Path, user: int, group: int) -> bool:
    """Return whether a file belongs to a user, if not -1, and a group now: not everybody may."""
    if not hasattr(os, "chown"):
        return True  # a system without groups
    try:
        os.chown(path, user, group)
    except OSError:
        return False
    return True


def _error(number: int, path: Path) -> OSError:
    return OSError(number, os.strerror(number), str(path))


# --- Which folder compiled code is kept in --------------------------------------------------------


def code_folder(name: str) -> Path:
    """Return a folder for compiled code, made if need be: below the cache folder of the user.

    Compiled code is run, so a folder that others own or may write to is not used. Where the cache
    folder (``XDG_CACHE_HOME`` or ``~/.cache``) has none, it is a new folder for temporary files.
    """
    with suppress(OSError, RuntimeError):  # it cannot be written; there is no home
        folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "hpcgym", name)
        folder.mkdir(0o700, parents=True, exist_ok=True)
        info = folder.stat()
        own = not hasattr(os, "geteuid") or info.st_uid == os.geteuid()
        if own and not info.st_mode & (stat.S_IWGRP | stat.S_IWOTH) and os.access(folder, os.W_OK):
            return folder
    return Path(tempfile.mkdtemp(prefix=f"hpcgym-{name}-"))
