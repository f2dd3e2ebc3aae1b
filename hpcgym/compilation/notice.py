"""What people are told while functions are compiled: one line, once it has been silent for long.

It goes to the logger ``hpcgym``, as a warning: on the error stream, unless the program that imports
hpcgym says otherwise (:mod:`logging`).
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

SILENCE_S = 2.0  # [s] of compiling, in all, before something is said

_LOGGER = logging.getLogger("hpcgym")

#: Where a function stands -> what it is part of, how long all of that takes [s] on an idle core,
#: and the part of ``hpcgym warmup`` that it belongs to. The first that fits counts.
_PARTS = (
    ("hpcgym.envs.kernels", "the environments", 60, "environments"),
    ("hpcgym.engine.machines.nodes", "the simulator of nodes", 20, "nodes"),
    ("hpcgym.engine.machines.limited", "the simulator of limits of power", 30, "limits"),
    ("hpcgym.engine.machines.corun", "the simulator of shared nodes", 20, "corun"),
    ("hpcgym.engine.answers", "learned run times and fair share", 30, "learning"),
    ("hpcgym.engine.many", "the simulator of many schedules", 40, "batches"),
    ("hpcgym", "the simulator", 12, "simulator"),
)


def text_of(module: str) -> str:
    """Return what is said while a function of a module is compiled."""
    for begin, what, seconds, part in _PARTS:
        if module.startswith(begin):
            return (
                f"hpcgym: compiling {what} for this machine, about {seconds} s on an idle core;"
                f" this happens once, and `hpcgym warmup {part}` does it beforehand"
            )
    return f"hpcgym: compiling {module}; this happens once"


class _Silence:
    """How long this process has been compiling each part; numba lets one thread do so at a time."""

    def __init__(self) -> None:
        self.text = ""  # of the function that is compiled now, with all that it calls
        self._spent_s: dict[str, float] = {}
        self._begin = 0.0
        self._timer: threading.Timer | None = None

    def start(self) -> None:
        """Begin to count; once it is too long, say once what is compiled."""
        self._begin = time.monotonic()
        left_s = SILENCE_S - self._spent_s.get(self.text, 0.0)
        if left_s > 0:
            self._timer = threading.Timer(left_s, _LOGGER.warning, (self.text,))
            self._timer.daemon = True
            self._timer.start()

    def stop(self) -> None:
        """Stop counting."""
        spent_s = time.monotonic() - self._begin
        self._spent_s[self.text] = self._spent_s.get(self.text, 0.0) + spent_s
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


_silence = _Silence()


@contextmanager
def counting(module: str) -> Iterator[None]:
    """Count the time for which a function of a module is compiled."""
    if _silence.text:  # it is called by the function that is compiled
        yield
        return
    _silence.text = text_of(module)
    _silence.start()
    try:
        yield
    finally:
        _silence.stop()
        _silence.text = ""


@contextmanager
def paused() -> Iterator[None]:
    """Do not count while another process compiles the function: that one speaks."""
    if not _silence.text:
        yield
        return
    _silence.stop()
    try:
        yield
    finally:
        _silence.start()
