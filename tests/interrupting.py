"""Signals that come while a call of the engine runs."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class StopError(Exception):
    """What a handler of a signal raises: it is the user's own."""


@contextmanager
def alarms(every: float = 0.3) -> Iterator[None]:
    """Let a handler raise :class:`StopError` so many seconds from now, and as often again."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise StopError

    before = signal.signal(signal.SIGALRM, stop)
    try:
        signal.setitimer(signal.ITIMER_REAL, every, every)
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@contextmanager
def stopped(most: float = 20) -> Iterator[None]:
    """Interrupt what is done here, and expect it to end: the calls of tests take minutes.

    ``most``: in so many seconds, however busy the machine is.
    """
    begun = time.monotonic()
    ended = False
    try:
        with alarms():
            yield
    except StopError:
        ended = True
    assert ended
    assert time.monotonic() - begun < most
