"""Opening files so that whatever is wrong with one ends in a single clear line."""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Literal, cast

from hpcgym.errors import WorkloadError

#: What to do with a line that is no job: stop with an error, or drop and count it.
Errors = Literal["raise", "skip"]


def check_errors(errors: str) -> None:
    """Say so if ``errors`` is not one of the two ways to treat bad lines."""
    if errors not in ("raise", "skip"):
        raise WorkloadError(f"errors must be 'raise' or 'skip', not {errors!r}")


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turn what the system or a damaged archive says into a WorkloadError that names the file."""
    try:
        yield
    except FileNotFoundError:
        raise WorkloadError(f"{path}: no such file") from None
    except IsADirectoryError:
        raise WorkloadError(f"{path} is a folder, not a file") from None
    except EOFError:
        raise WorkloadError(f"{path} is a truncated gzip file: get it again") from None
    except (gzip.BadGzipFile, zlib.error) as error:
        raise WorkloadError(f"{path} is a damaged gzip file: {error}") from None
    except OSError as error:
        raise WorkloadError(f"{path} cannot be read: {error.strerror or error}") from None


@contextmanager
def writing(path: Path, hint: str = "") -> Iterator[None]:
    """Turn what the system says when a file cannot be written into a WorkloadError."""
    try:
        yield
    except OSError as error:
        raise WorkloadError(f"{path} cannot be written: {error.strerror or error}{hint}") from None


@contextmanager
def whole(path: Path) -> Iterator[Path]:
    """Give a file to write that gets the name ``path`` at the end: no reader ever sees half of it.

    Folders are made. What is wrong ends in a WorkloadError that names the file.
    """
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_name(f"{path.name}.{os.getpid()}.part")
        try:
            yield part
            with part.open("rb+") as file:
                os.fsync(file.fileno())
            os.replace(part, path)
        finally:
            part.unlink(missing_ok=True)


@contextmanager
def open_bytes(path: Path) -> Iterator[IO[bytes]]:
    """Open a plain or gzip file for reading; its first bytes tell which, not its name."""
    with reading(path), path.open("rb") as file:
        if file.peek(2)[:2] != b"\x1f\x8b":
            yield file
        else:
            with gzip.open(file, "rb") as unpacked:
                yield cast(IO[bytes], unpacked)


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file, in hexadecimal digits."""
    with reading(path), path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def create_text(path: Path) -> IO[str]:
    """Open a file for writing text, gzip if its name ends in ``.gz``, the same bytes every time."""
    if path.suffix != ".gz":
        return path.open("w", encoding="utf-8", newline="\n")
    packed = gzip.GzipFile(path, "wb", compresslevel=6, mtime=0)
    return io.TextIOWrapper(packed, encoding="utf-8", newline="\n")


def stem(path: Path) -> str:
    """Return the name of a file without its folder and without endings such as ``.swf.gz``."""
    name = path.name
    for ending in (".gz", ".swf", ".csv", ".parquet", ".json"):
        name = name.removesuffix(ending)
    return name or path.name
