"""Locks between processes: one compiles a function, others that want it wait and load it.

A lock is on one byte of a file, which stands for the function. The system releases the locks of a
process that ends, however it ends. A process may hold some locks and wait for another: compiling a
function locks those that it calls, never those that call it, so nobody waits in a circle. Locks
spare work and are needed for nothing else: where there are none, and after a long time, we go on.
"""

from __future__ import annotations

import hashlib
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

WAIT_S = 300.0  # longer than any function takes to compile; its process may have been stopped
PAUSE_S = 0.05

#: Of each thread, ``locks``: what the innermost :func:`releasing` is to release.
_taken: Any = threading.local()


@contextmanager
def releasing() -> Iterator[None]:
    """Release at the end what this thread has locked within."""
    outer = getattr(_taken, "locks", None)
    _taken.locks = []
    try:
        yield
    finally:
        for opened, byte in _taken.locks:
            with suppress(OSError):
                fcntl.lockf(opened, fcntl.LOCK_UN, 1, byte)
        _taken.locks = outer


def take(path: Path) -> None:
    """Lock what stands for a file, within :func:`releasing`, once no other process has it locked.

    The locks are this process's: numba has one thread compile at a time, so no thread needs another
    lock. There is none, and no wait, where the file system knows no locks.
    """
    locks = getattr(_taken, "locks", None)
    opened = _opened(path.parent)
    if locks is None or opened is None:
        return
    byte = int.from_bytes(hashlib.sha256(path.name.encode()).digest()[:4]) // 2  # any system's size
    end = time.monotonic() + WAIT_S
    while time.monotonic() < end:
        try:
            fcntl.lockf(opened, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, byte)
        except (BlockingIOError, PermissionError):  # another has it
            time.sleep(PAUSE_S)
        except OSError:  # no locks here
            return
        else:
            locks.append((opened, byte))
            return


@cache
def _opened(folder: Path) -> int | None:
    """Open the file whose bytes are locked; closing it would release them all."""
    if fcntl is None:
        return None
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        return os.open(folder / "locks", flags, 0o600)
    except OSError:
        return None
