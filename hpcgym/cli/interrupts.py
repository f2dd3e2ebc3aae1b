"""Ctrl-C and SIGTERM. Nothing slow is imported here: they may come before the commands do."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from hpcgym.starting import CODE, INTERRUPTED


class Terminated(KeyboardInterrupt):
    """The program is to end, as Slurm tells it by SIGTERM at the time limit.

    What saves work after Ctrl-C saves it then, too.
    """


def _terminate(number: int, frame: FrameType | None) -> None:
    raise Terminated


@contextmanager
def interruptible() -> Iterator[None]:
    """End the program with one line: with 130 after Ctrl-C, with 143 after SIGTERM."""
    try:
        with _heard():
            yield
    except Terminated:
        sys.stderr.write("hpcgym: terminated\n")
        raise SystemExit(128 + signal.SIGTERM) from None
    except KeyboardInterrupt:
        sys.stderr.write(INTERRUPTED)
        raise SystemExit(CODE) from None


@contextmanager
def _heard() -> Iterator[None]:
    """Let SIGTERM raise :class:`Terminated`, unless something else is to be done at it."""
    hears = signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    try:
        if hears:
            signal.signal(signal.SIGTERM, _terminate)
    except ValueError:  # not the main thread, where none is heard
        hears = False
    try:
        yield
    finally:
        if hears:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
