"""Files of compiled code: written whole or not at all, and read only if they are as written.

A file is a line that names the format, the SHA-256 of the rest, and the rest.
"""

from __future__ import annotations

import hashlib
import os
import stat
import tempfile
from contextlib import suppress
from pathlib import Path

FORMAT = b"hpcgym compiled code 1\n"

_SIZE = hashlib.sha256().digest_size

# What one system or the other does not know. A pipe would keep us waiting without O_NONBLOCK.
_FLAGS = os.O_RDONLY
for _name in ("O_BINARY", "O_CLOEXEC", "O_NOFOLLOW", "O_NONBLOCK"):
    _FLAGS |= getattr(os, _name, 0)


def sealed(content: bytes) -> bytes:
    """Return the bytes of a file with this content."""
    return FORMAT + hashlib.sha256(content).digest() + content


def write(path: Path, content: bytes) -> None:
    """Write a file that only the user can read, in place of the one there, if any.

    Raises
    ------
    OSError : the file cannot be written; the one there is as it was.
    """
    opened, part = tempfile.mkstemp(dir=path.parent, prefix=f"{path.name}.")
    try:
        with os.fdopen(opened, "wb") as file:
            file.write(sealed(content))
        os.replace(part, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(part)
        raise


def is_own(found: os.stat_result) -> bool:
    """Tell whether something is a file that only the user can have written."""
    if not stat.S_ISREG(found.st_mode):
        return False
    if not hasattr(os, "geteuid"):
        return True
    return found.st_uid == os.geteuid() and not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def read(path: Path) -> bytes | None:
    """Return the content of a file; None if it is missing, damaged, or not trusted.

    A folder that others could once write to may hold files of theirs, so the owner is looked at.
    """
    try:
        opened = os.open(path, _FLAGS)
        try:
            if not is_own(os.fstat(opened)):
                return None
            with open(opened, "rb", closefd=False) as file:
                kept = file.read()
        finally:
            os.close(opened)
    except OSError:
        return None
    content = kept[len(FORMAT) + _SIZE :]
    return content if kept == sealed(content) else None
