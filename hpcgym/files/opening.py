"""Opening files, plain or gzip, and reading them up to a limit."""

from __future__ import annotations

import gzip
import io
import os
import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, cast

from hpcgym.errors import HpcgymError

MEGABYTE = 1 << 20

#: Bytes that a gzip file may always unpack to.
PACKED_FREE = 256 * MEGABYTE

#: Beyond them, bytes for each one of the file. Real traces have 5 to 10; what is made to fill the
#: memory has up to 1,000.
PACKED_RATIO = 64

HEAD_BYTES = MEGABYTE  # bytes that ``peek`` can show
_FILE_NAME = re.compile(r"\.{0,2}/[^:;=>,]*|[^:;=>,]*\w\.[A-Za-z]\w{1,6}")


@contextmanager
def saying(path: Any, error: type[HpcgymError] = HpcgymError) -> Iterator[None]:
    """Turn what the system or a damaged archive says into an error that names the file.

    That is another one than ``path`` where the system says so.
    """
    try:
        yield
    except EOFError:
        raise error(f"{path} is a truncated gzip file: get it again") from None
    except (gzip.BadGzipFile, zlib.error) as problem:
        raise error(f"{path} is a damaged gzip file: {problem}") from None
    except OSError as problem:
        named = path if problem.filename is None else problem.filename
        if isinstance(problem, FileNotFoundError):
            raise error(f"{named}: no such file") from None
        if isinstance(problem, IsADirectoryError):
            raise error(f"{named} is a folder, not a file") from None
        raise error(f"{named} cannot be read: {problem.strerror or problem}") from None


def check_is_there(value: object, error: type[HpcgymError] = HpcgymError) -> None:
    """Raise an error if a text that is no file is called as one, as x.txt or /x."""
    text = os.fspath(value) if isinstance(value, os.PathLike) else value
    if isinstance(text, str) and _FILE_NAME.fullmatch(text):
        raise error(f"{text}: no such file")


@contextmanager
def shaped(where: Any, kind: str, error: type[HpcgymError] = HpcgymError) -> Iterator[None]:
    """Turn what a reader trips over in contents of another shape into one line.

    Parameters
    ----------
    where : the file; other messages get it in front.
    kind : what the file should be, such as "the manifest of a sweep".
    error : what is raised.
    """
    try:
        yield
    except HpcgymError as problem:
        raise error(f"{where}: {str(problem).removeprefix(f'{where}: ')}") from None
    except (
        LookupError, TypeError, AttributeError, ValueError, ArithmeticError, RuntimeError,
    ) as problem:  # fmt: skip
        raise error(f"{where} is not {kind}") from problem  # which may be a mistake of the reader's


@contextmanager
def open_bytes(path: Path, error: type[HpcgymError] = HpcgymError) -> Iterator[Any]:
    """Open a plain or gzip file for reading; its first bytes tell which, not its name.

    Raises
    ------
    HpcgymError : or ``error``: the file cannot be opened or read, it is damaged, or it unpacks to
        far more than any trace does.
    """
    with saying(path, error), _opened(path, error) as file:
        if file.peek(2)[:2] != b"\x1f\x8b":
            yield file
        else:
            with io.BufferedReader(_Unpacked(file, path, error), HEAD_BYTES) as unpacked:
                yield unpacked


def bytes_of(path: str | os.PathLike[str], most: int, error: type[HpcgymError]) -> bytes:
    """Return what a file holds, unpacked if it is gzip.

    Parameters
    ----------
    path : of the file.
    most : bytes that such a file may hold at most.
    error : what is raised.

    Raises
    ------
    HpcgymError : as :func:`open_bytes`; also for a file that holds more.
    """
    with open_bytes(Path(path), error) as file:
        content: bytes = file.read(most + 1)
    if len(content) > most:
        raise error(f"{path} is larger than {size_text(most)}, more than such a file may hold")
    return content


def text_of(
    path: str | os.PathLike[str], most: int, kind: str, error: type[HpcgymError] = HpcgymError
) -> str:
    """Return the text of a file in UTF-8, with or without a byte order mark.

    Parameters
    ----------
    path, most, error : as for :func:`bytes_of`.
    kind : what the file should be, for the error.

    Raises
    ------
    HpcgymError : as :func:`bytes_of`; also for a file that is not in UTF-8.
    """
    return decoded(bytes_of(path, most, error), str(path), kind, error)


def lines_of(
    path: Path, kind: str, error: type[HpcgymError] = HpcgymError
) -> Iterator[tuple[str, bool]]:
    """Go through the lines of a text of any size: each without its end, and whether it has one.

    Parameters
    ----------
    path, error : as for :func:`bytes_of`.
    kind : what the file should be, for the error.

    Raises
    ------
    HpcgymError : as :func:`open_bytes`; also for a file that is binary, or has a line of over
        1 MiB.
    """
    with open_bytes(path, error) as file:
        first = True
        for line in iter(lambda: file.readline(MEGABYTE + 1), b""):
            if first:
                line, first = line.removeprefix(b"\xef\xbb\xbf"), False  # a byte order mark
            if len(line) > MEGABYTE:
                raise error(f"{path} has a line of over {size_text(MEGABYTE)}: it is not {kind}")
            if b"\0" in line:
                raise error(f"{path} is not {kind}: it is binary")
            try:
                text = line.decode()
            except UnicodeDecodeError:
                text = line.decode("latin-1")
            yield text.rstrip("\r\n"), line.endswith(b"\n")


def head_of(path: Path, error: type[HpcgymError] = HpcgymError) -> bytes:
    """Return the first bytes of a file, unpacked, at most 1 MiB: what tells what it is."""
    with open_bytes(path, error) as file:
        head: bytes = file.peek(HEAD_BYTES)
    return head[:HEAD_BYTES]


def decoded(content: bytes, where: str, kind: str, error: type[HpcgymError] = HpcgymError) -> str:
    """Return the text of bytes in UTF-8; ``where`` and ``kind`` are for the error."""
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise error(f"{where} is not {kind}: it is binary, or not in UTF-8") from None


def size_text(size: int) -> str:
    """Return a number of bytes in words."""
    unit, name = (MEGABYTE << 10, "GiB") if size >= MEGABYTE << 10 else (MEGABYTE, "MiB")
    return f"{size / unit:,.0f} {name}"


def _opened(path: Path, error: type[HpcgymError]) -> Any:
    """Open a file, or say that its name cannot be one."""
    try:
        return path.open("rb", buffering=HEAD_BYTES)
    except ValueError as problem:  # a zero byte, or half a character
        raise error(f"{path} cannot be the name of a file: {problem}") from None


class _Counted:
    """A file that counts what has been read of it."""

    def __init__(self, file: IO[bytes]) -> None:
        self.file = file
        self.count = 0

    def read(self, size: int = -1) -> bytes:
        data = self.file.read(size)
        self.count += len(data)
        return data


class _Unpacked(io.RawIOBase):
    """What a gzip file holds, up to a limit."""

    def __init__(self, file: IO[bytes], path: Path, error: type[HpcgymError]) -> None:
        self._packed = _Counted(file)
        self._file = gzip.GzipFile(fileobj=cast(Any, self._packed), mode="rb")
        self._path, self._error = path, error
        self._count = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        # not all at once, however much is asked for: the limit is to come before the memory
        number = self._file.readinto(memoryview(buffer)[:HEAD_BYTES])
        self._count += number
        if self._count > max(PACKED_FREE, PACKED_RATIO * self._packed.count):
            raise self._error(
                f"{self._path} unpacks to more than {size_text(self._count)}, over {PACKED_RATIO}"
                " times its size, which no real trace does; if it is one, unpack it (gunzip), and"
                " give the file that this makes"
            )
        return number
