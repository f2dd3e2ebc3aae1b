"""Names and checksums of files; :mod:`hpcgym.files` reads and writes them."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from hpcgym.errors import WorkloadError
from hpcgym.files import saying
from hpcgym.naming import printable

#: How the names of files that hold tables end.
TABLE_ENDINGS = (".csv", ".csv.gz", ".parquet", ".json", ".json.gz")

#: What to do with a line that is no job: stop with an error, or drop and count it.
Errors = Literal["raise", "skip"]


@dataclass(frozen=True)
class Reading:
    """How a file is read, whatever its format.

    Attributes
    ----------
    processors : size of the machine, instead of what the file tells.
    errors : what to do with a line that is no job.
    queues : names of the machine's queues, by which a table's are numbered.
    tz : the time zone of dates without an offset, such as ``Europe/Berlin``; None: nobody said.
    """

    processors: int | None = None
    errors: Errors = "raise"
    queues: tuple[str, ...] = ()
    tz: str | None = None


def check_errors(errors: str) -> None:
    """Say so if ``errors`` is not one of the two ways to treat bad lines."""
    if errors not in ("raise", "skip"):
        raise WorkloadError(f"errors must be 'raise' or 'skip', not {errors!r}")


def is_table(path: Path) -> bool:
    """Tell whether a file's name ends as that of a table does."""
    return path.name.casefold().endswith(TABLE_ENDINGS)


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file, in hexadecimal digits."""
    with saying(path, WorkloadError), path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def stem(path: Path) -> str:
    """Return the name of a file without its folder and without endings such as ``.swf.gz``."""
    name = path.name
    for ending in (".gz", ".swf", ".csv", ".parquet", ".json"):
        name = name.removesuffix(ending)
    return printable(name) or path.name
