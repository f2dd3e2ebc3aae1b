"""Lines that say how far a training is."""

from __future__ import annotations

import sys

#: [s] between lines of progress: they follow one another in a log, not on a terminal.
SHOW_S = 5.0 if sys.stderr.isatty() else 30.0


def say(text: str) -> None:
    """Show a line of progress: on a terminal in the place of the one before."""
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)
    else:
        print(text, file=sys.stderr, flush=True)
