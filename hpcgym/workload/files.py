"""Opening files so that whatever is wrong with one ends in a single clear line."""

from __future__ import annotations

import gzip
import hashlib
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


def stem(path: Path) -> str:
    """Return the name of a file without its folder and without endings such as ``.swf.gz``."""
    name = path.name
    for ending in (".gz", ".swf", ".csv", ".parquet", ".json"):
        name = name.removesuffix(ending)
    return name or path.name
