"""Ctrl-C. Nothing slow is imported here: it may come before the commands are imported."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def interruptible() -> Iterator[None]:
    """End the program with one line and 130 after Ctrl-C."""
    try:
        yield
    except KeyboardInterrupt:
        sys.stderr.write("hpcgym: interrupted\n")
        raise SystemExit(130) from None
