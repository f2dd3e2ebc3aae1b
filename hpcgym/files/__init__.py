"""Reading of files in bounded memory and time; each error is one clear line.

Every reader of the library uses this module, which handles damaged files, and pipes and devices in
place of files: it opens, unpacks and decodes them, and parses JSON and TOML. ``tables`` reads CSV,
Parquet and arrays; ``writing`` writes files whole or not at all; ``fetching`` downloads;
``recorded`` tells where a file is from.
"""

from __future__ import annotations

import codecs
import gzip
import hashlib
import io
import json
import math
import os
import re
import stat
import tomllib
import zlib
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import IO, Any

from hpcgym.errors import HpcgymError

# --- Opening files, plain or gzip, and reading them up to a limit ---------------------------------

MEGABYTE = 1 << 20

#: Bytes that a gzip file may always unpack to.
PACKED_FREE = 256 * MEGABYTE

#: Beyond them, unpacked bytes for each byte of the file. Real traces have 5 to 10; files that are
#: made to fill the memory have up to 1,000.
PACKED_RATIO = 64

HEAD_BYTES = MEGABYTE  # bytes that ``peek`` can show

#: Bytes of the pieces in which texts are read, up to the next end of a line.
PIECE = MEGABYTE >> 2
_FILE_NAME = re.compile(r"\.{0,2}/[^:;=>,]*|[^:;=>,]*\w\.[A-Za-z]\w{1,6}")


#: Beginnings of files that are packed in other ways, the packer, and the command that unpacks them.
_PACKED = (
    (re.compile(rb"BZh[1-9](1AY&SY|\x17rE8P\x90)", re.DOTALL), "bzip2", "bunzip2 -k"),
    (re.compile(rb"\xfd7zXZ\x00"), "xz", "unxz -k"),
    (re.compile(rb"\x28\xb5\x2f\xfd"), "zstd", "unzstd"),
    (re.compile(rb"PK\x03\x04"), "zip", "unzip"),
)


@contextmanager
def saying(path: Any, error: type[HpcgymError] = HpcgymError) -> Iterator[None]:
    """Turn an error of the system or of a damaged archive into one that names the file.

    It names another file than ``path`` if the system's error does.
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
        raise error(f"{named} cannot be read: {problem.strerror or problem}") from None


def is_there(path: str | os.PathLike[str]) -> bool:
    """Return whether there is something of a name that is no folder.

    It need not be a file: who opens a pipe or a device by :func:`open_file` says what it is. What
    no file can be called is not there, either.
    """
    return os.path.exists(path) and not os.path.isdir(path)


def check_is_there(value: object) -> None:
    """Raise an error if a text that is no file is called as one, as x.txt or /x."""
    text = os.fspath(value) if isinstance(value, os.PathLike) else value
    if isinstance(text, str) and _FILE_NAME.fullmatch(text):
        with open_file(text):  # which says what it is
            pass


@contextmanager
def shaped(where: Any, kind: str) -> Iterator[None]:
    """Turn what a reader trips over in contents of another shape into one line.

    Parameters
    ----------
    where : the file; other messages get it in front.
    kind : what the file should be, such as "the manifest of a sweep".
    """
    try:
        yield
    except HpcgymError as problem:
        raise HpcgymError(f"{where}: {str(problem).removeprefix(f'{where}: ')}") from None
    except (
        LookupError, TypeError, AttributeError, ValueError, ArithmeticError, RuntimeError,
    ) as problem:  # fmt: skip
        # which may be a mistake of the reader's
        raise HpcgymError(f"{where} is not {kind}") from problem


#: What a path may lead to beside a regular file, which alone is read: a pipe may never be written
#: to, and a device may never end.
_NO_FILES = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


@contextmanager
def open_file(
    path: str | os.PathLike[str], error: type[HpcgymError] = HpcgymError
) -> Iterator[io.BufferedReader[Any]]:
    """Open a regular file, or a link to one, for reading its bytes as they are.

    Libraries are given this file rather than its name, so that what is read is what was looked at.

    Raises
    ------
    HpcgymError : or ``error``: the file cannot be opened or read, or it is a pipe, a device, a
        socket or a folder, which is said at once.
    """

    def regular(name: str, flags: int) -> int:
        # looked at before it is opened, which does something to some devices, and after: it may
        # have become another one; no pipe is waited for
        _check_regular(os.stat(name).st_mode, path, error)
        number = os.open(name, flags | os.O_NONBLOCK | os.O_NOCTTY)
        try:
            _check_regular(os.fstat(number).st_mode, path, error)
        except HpcgymError:
            os.close(number)
            raise
        return number

    with saying(path, error):
        try:
            file = io.FileIO(os.fspath(path), opener=regular)
        except HpcgymError:
            raise
        except ValueError as problem:  # a zero byte, or half a character
            raise error(f"{path} cannot be the name of a file: {problem}") from None
        with io.BufferedReader(file, HEAD_BYTES) as buffered:
            yield buffered


def check_is_file(path: str | os.PathLike[str]) -> None:
    """Raise the error of :func:`open_file` for what is no regular file, without opening it."""
    with saying(path):
        _check_regular(os.stat(path).st_mode, path, HpcgymError)


def _check_regular(mode: int, path: object, error: type[HpcgymError]) -> None:
    """Raise an error for the mode of what is no regular file."""
    if not stat.S_ISREG(mode):
        kind = next((kind for is_kind, kind in _NO_FILES if is_kind(mode)), "something else")
        raise error(f"{path} is {kind}, not a file")


@contextmanager
def open_bytes(path: Path, error: type[HpcgymError] = HpcgymError) -> Iterator[Any]:
    """Open a plain or gzip file for reading; its first bytes tell which, not its name.

    Raises
    ------
    HpcgymError : or ``error``: as of :func:`open_file`; the file is damaged, or it unpacks to far
        more than any trace does.
    """
    with open_file(path, error) as file:
        head = file.peek(10)[:10]
        for begins, kind, command in _PACKED:
            if begins.match(head):
                raise error(f"{path} is packed by {kind}, which is not read: {command} {path}")
        if head[:2] != b"\x1f\x8b":
            yield file
        else:
            with io.BufferedReader(_Unpacked(file, path, error), HEAD_BYTES) as unpacked:
                yield unpacked


def bytes_of(path: str | os.PathLike[str], most: int, error: type[HpcgymError]) -> bytes:
    """Return the bytes of a file, unpacked if it is gzip.

    Parameters
    ----------
    path : of the file.
    most : bytes that such a file may hold at most.
    error : type of the errors.

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

    Parameters and errors are those of :func:`pieces_of`.
    """
    return chain.from_iterable(map(lines_in, pieces_of(path, kind, error)))


def lines_in(text: str) -> Iterator[tuple[str, bool]]:
    """Go through the lines of a text as :func:`lines_of` does."""
    *lines, last = text.split("\n")
    for line in lines:
        yield line.rstrip("\r"), True
    if last or not lines:
        yield last.rstrip("\r"), False


def pieces_of(path: Path, kind: str, error: type[HpcgymError] = HpcgymError) -> Iterator[str]:
    """Go through a text of any size in pieces of whole lines.

    Parameters
    ----------
    path, error : as for :func:`bytes_of`.
    kind : what the file should be, for the error.

    Raises
    ------
    HpcgymError : as :func:`open_bytes`; also for a file that is binary, or has a line of over
        1 MiB, once the lines before have been gone through.
    """
    mark = codecs.BOM_UTF8
    with open_bytes(path, error) as file:
        while piece := file.read(PIECE):
            piece += file.readline(MEGABYTE + 1)
            piece, mark = piece.removeprefix(mark), b""
            good, problem = len(piece), ""
            last = piece.rfind(b"\n", 0, -1) + 1  # which alone may be that long
            if good - last > MEGABYTE:
                good, problem = last, f"has a line of over {size_text(MEGABYTE)}: it is not {kind}"
            if (zero := piece.find(b"\0", 0, good)) >= 0:
                good = piece.rfind(b"\n", 0, zero) + 1
                problem = f"is not {kind}: it is binary{utf_16(piece[good:])}"
            if good or not problem:
                yield text_of_lines(piece[:good])
            if problem:
                raise error(f"{path} {problem}")


def text_of_lines(lines: bytes) -> str:
    """Return lines as a text: in UTF-8, each that is not in Latin-1, in which all bytes may be."""
    try:
        return lines.decode()
    except UnicodeDecodeError:
        if b"\n" in lines:
            return "\n".join(map(text_of_lines, lines.split(b"\n")))
        return lines.decode("latin-1")


def head_of(path: Path, error: type[HpcgymError] = HpcgymError) -> bytes:
    """Return the first bytes of a file, unpacked, at most 1 MiB: what tells what it is."""
    with open_bytes(path, error) as file:
        head: bytes = file.peek(HEAD_BYTES)
    return head[:HEAD_BYTES]


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file, in hexadecimal digits."""
    with open_file(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def decoded(content: bytes, where: str, kind: str, error: type[HpcgymError] = HpcgymError) -> str:
    """Return the text of bytes in UTF-8; ``where`` and ``kind`` are for the error."""
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        hint = utf_16(content) or ", or not in UTF-8"
        raise error(f"{where} is not {kind}: it is binary{hint}") from None


def utf_16(content: bytes) -> str:
    """Return what to do with a text in UTF-16, as Windows writes it; nothing if it is not one."""
    if not content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return ""
    return ", or a text in UTF-16, of which iconv -f UTF-16 -t UTF-8 makes one in UTF-8"


def size_text(size: int) -> str:
    """Return a number of bytes in words."""
    unit, name = (MEGABYTE << 10, "GiB") if size >= MEGABYTE << 10 else (MEGABYTE, "MiB")
    return f"{size / unit:,.0f} {name}"


class _Unpacked(io.RawIOBase):
    """What a gzip file holds, up to a limit."""

    def __init__(self, file: IO[bytes], path: Path, error: type[HpcgymError]) -> None:
        self._file = gzip.GzipFile(fileobj=file, mode="rb")
        self._path, self._error = path, error
        self._most = max(PACKED_FREE, PACKED_RATIO * os.fstat(file.fileno()).st_size)
        self._count = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        # not all at once, however much is asked for: the limit is to come before the memory
        number = self._file.readinto(memoryview(buffer)[:HEAD_BYTES])
        self._count += number
        if self._count > self._most:
            raise self._error(
                f"{self._path} unpacks to more than {size_text(self._count)}, over {PACKED_RATIO}"
                " times its size, which no real trace does; if it is one, unpack it (gunzip), and"
                " give the file that this makes"
            )
        return number


# --- JSON and TOML --------------------------------------------------------------------------------

#: Bytes of the files that people and agents write: machines, experiments, shares, weights.
MOST_TOML = 4 * MEGABYTE
MOST_JSON = 16 * MEGABYTE

MOST_DEPTH = 64  # of lists and tables in each other
MOST_DIGITS = 300  # of a number: what is longer is no float
_TOO_LONG = 10**MOST_DIGITS


def json_file(path: str | os.PathLike[str]) -> Any:
    """Return what a file in JSON holds.

    Raises
    ------
    HpcgymError : it cannot be read, has over 16 MiB, or as of :func:`json_of`.
    """
    return json_of(bytes_of(path, MOST_JSON, HpcgymError), str(path))


def json_of(
    text: str | bytes,
    where: str,
    error: type[HpcgymError] = HpcgymError,
    *,
    flat: bool = False,
    finite: bool = True,
) -> Any:
    """Return the value of a text in JSON.

    Parameters
    ----------
    text : in JSON; bytes are UTF-8, or UTF-16 or UTF-32, as the beginning tells.
    where : the beginning of messages: the file, the line.
    error : type of the errors.
    flat : the values, which may be many million, are not checked.
    finite : infinity and nan, which Python writes, are errors.

    Raises
    ------
    HpcgymError : it is no JSON, a key stands twice in an object (Python would drop the first), a
        number is not finite or has over 300 digits, a text has half a character, or lists and
        objects are nested more than 64 deep.
    """

    def once(entries: list[tuple[str, Any]]) -> dict[str, Any]:
        by_key = dict(entries)
        if len(by_key) < len(entries):
            times = Counter(key for key, _ in entries)
            key = next(key for key, number in times.items() if number > 1)
            raise error(f"{where}: the key {key!r} stands there twice")
        return by_key

    def infinite(name: str) -> float:
        raise error(f"{where}: {name} is no finite number")

    try:
        if isinstance(text, bytes):
            text = text.decode(json.detect_encoding(text))
        constant = infinite if finite else None
        parsed = json.loads(text, parse_constant=constant, object_pairs_hook=once)
    except json.JSONDecodeError as problem:
        raise error(f"{where} is not JSON: {problem}") from None
    except UnicodeDecodeError:
        raise error(f"{where} is not JSON: it is binary, or not in UTF-8") from None
    except RecursionError:
        raise error(_too_deep(where)) from None
    except HpcgymError:
        raise
    except ValueError:  # of Python, for whole numbers of over 4,300 digits
        raise error(_too_long(where)) from None
    if not flat:
        _check_values(parsed, where, error, finite)
    return parsed


def toml_file(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return what a TOML file holds.

    Raises
    ------
    HpcgymError : it cannot be read, it has over 4 MiB, or as of :func:`toml_of`.
    """
    return toml_of(bytes_of(path, MOST_TOML, HpcgymError), str(path))


def toml_of(text: str | bytes, where: str) -> dict[str, Any]:
    """Return what a text in TOML holds.

    Parameters
    ----------
    text : in TOML; bytes are UTF-8.
    where : what messages call it.

    Raises
    ------
    HpcgymError : it is no TOML, tables and lists are more than 64 deep in each other, or a number
        has over 300 digits.
    """
    if isinstance(text, bytes):
        text = decoded(text, where, "TOML")
    try:
        parsed = tomllib.loads(text)
    except tomllib.TOMLDecodeError as problem:
        raise HpcgymError(f"{where} is not TOML: {problem}") from None
    except RecursionError:
        raise HpcgymError(_too_deep(where)) from None
    except ValueError:
        raise HpcgymError(_too_long(where)) from None
    _check_values(parsed, where, HpcgymError, finite=False)
    return parsed


def _check_values(parsed: Any, where: str, error: type[HpcgymError], finite: bool) -> None:
    """Raise an error for a value that no reader can use.

    These are a text with half a character, which cannot be printed or written; a number that is
    infinite, if ``finite``, or has over 300 digits; and lists and objects nested more than 64 deep.
    """
    level = [parsed]
    for _ in range(MOST_DEPTH + 1):
        below: list[Any] = []
        for value in level:
            if isinstance(value, dict):
                below += value
                below += value.values()
            elif isinstance(value, list):
                below += value
            elif isinstance(value, str):
                try:
                    value.encode()
                except UnicodeEncodeError:
                    shown = ascii(value[:40])
                    raise error(f"{where}: the text {shown} has half a character in it") from None
            elif isinstance(value, int) and abs(value) >= _TOO_LONG:
                raise error(_too_long(where))
            elif isinstance(value, float) and finite and not math.isfinite(value):
                raise error(f"{where} has a number that is too large")
        level = below
        if not level:
            return
    raise error(_too_deep(where))


def _too_deep(where: str) -> str:
    return f"{where} has lists or tables that are more than {MOST_DEPTH} deep in each other"


def _too_long(where: str) -> str:
    return f"{where}: a number has more than {MOST_DIGITS} digits"
