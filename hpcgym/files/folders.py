"""Which folder compiled code is kept in: one where nobody else can put code of theirs.

Compiled code is unpickled and run, so whoever can write it can do all that the user can. The rule:

- The folders that are made here, all those below the one that is given, must be the user's own, no
  links, and writable by nobody else. They are made with mode 0700 whatever the umask; from one of
  the user's that others may write to that right is taken, since it bears a name of hpcgym's.
- In the folder that is given nobody else may rename what lies there: it is the user's or root's,
  and sticky, as ``/tmp`` is, or writable by nobody else. The group may write to it if it is the
  user's: a umask of 002 makes such folders, of a group that mostly has one member. Links to it are
  followed; what lies above it is the choice of whoever gave it.

A folder against the rule is not used and not changed; a warning says which and why. Each file is
looked at again before it is read. Where the system knows no
owners, as Windows, its own rights on the user's folders must do.
"""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from hpcgym.errors import CompilationWarning

ROOM = 20_000_000  # bytes; most uses take fewer

_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


class _NotTrustedError(Exception):
    """A folder that others have made, or can change; the message is a sentence about it."""


def find_folder(name: str, given: str = "") -> Path | None:
    """Return a folder for compiled code, made if need be; None if there can be none.

    One that has compiled code is taken though nothing can be written to it, as in an image that is
    read only: what lies in it can be loaded.

    Parameters
    ----------
    name : of the folder.
    given : where it must be, such as the value of ``NUMBA_CACHE_DIR``; if empty, it is in the
        user's cache folder (``XDG_CACHE_HOME`` or ``~/.cache``), else in the system's folder for
        temporary files.

    Warns
    -----
    CompilationWarning : a place is against the rule above, and is passed over; there is none.
    """
    refused = False
    for base, *levels in _places(given):
        try:
            folder = _made(Path(base), [*levels, name])
            if any(folder.glob("*.nbc")) or _has_room(folder):
                return folder
        except _NotTrustedError as error:
            refused = True
            warnings.warn(
                f"compiled code is not kept below {base}: {error};"
                " NUMBA_CACHE_DIR can name a folder of your own",
                CompilationWarning,
                stacklevel=2,
            )
        except OSError:
            continue  # it cannot be written
    if not refused:
        warnings.warn(
            "compiled code is kept nowhere, and so each process compiles anew: no folder for it can"
            " be written; NUMBA_CACHE_DIR can name one",
            CompilationWarning,
            stacklevel=2,
        )
    return None


def _places(given: str) -> Iterator[tuple[str, ...]]:
    """Yield folders to look in, each with the folders between it and that of compiled code."""
    if given:
        yield (given,)
        return
    with suppress(RuntimeError):  # no home
        yield os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache"), "hpcgym"
    user = os.geteuid() if hasattr(os, "geteuid") else "all"
    with suppress(FileNotFoundError):  # nothing can be written
        yield tempfile.gettempdir(), f"hpcgym-{user}"


def _made(base: Path, levels: list[str]) -> Path:
    """Return the folder so many levels below ``base``, made if need be, and trusted."""
    base = Path(os.path.realpath(base))
    _make(base)
    _check_given(base)
    folder = base
    for level in levels:
        folder = folder / level
        _make(folder)
        _check_own(folder)
    return folder


def _make(folder: Path) -> None:
    """Make a folder, and those above it that are missing, for the user alone."""
    if not folder.is_dir():
        _make(folder.parent)
        with suppress(FileExistsError):
            folder.mkdir(0o700)


def _check_given(folder: Path) -> None:
    """Say so if others can rename what lies in a folder that is given."""
    found = folder.stat()
    if not hasattr(os, "geteuid"):
        return
    own = found.st_uid == os.geteuid()
    if not own and found.st_uid != 0:  # who may rename all in it, be it sticky or not
        raise _NotTrustedError(f"{folder} belongs to another user")
    sticky = found.st_mode & stat.S_ISVTX
    if not sticky and found.st_mode & (stat.S_IWOTH if own else _OTHERS_WRITE):
        raise _NotTrustedError(f"others can write to {folder}")


def _check_own(folder: Path) -> None:
    """Take others' right to write to a folder of a name of hpcgym's; say so if it is not ours.

    The folder is opened first: what is looked at cannot be exchanged before it is changed.
    """
    if folder.is_symlink() or not folder.is_dir():
        raise _NotTrustedError(f"{folder} is a link or no folder")
    if not hasattr(os, "geteuid"):
        return
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        if os.fstat(opened).st_uid != os.geteuid():
            raise _NotTrustedError(f"{folder} belongs to another user")
        mode = stat.S_IMODE(os.fstat(opened).st_mode)
        if mode & _OTHERS_WRITE:
            os.fchmod(opened, mode & ~_OTHERS_WRITE)
        if os.fstat(opened).st_mode & _OTHERS_WRITE:  # some file systems do as they like
            raise _NotTrustedError(f"others can write to {folder}")
    finally:
        os.close(opened)


def _has_room(folder: Path) -> bool:
    """Tell whether files can be written to a folder, and enough of them."""
    with tempfile.TemporaryFile(dir=folder):
        return shutil.disk_usage(folder).free >= ROOM
