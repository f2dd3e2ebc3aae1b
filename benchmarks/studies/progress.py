"""Telling whoever waits how far a study is."""

from __future__ import annotations

from collections.abc import Callable

#: Told what is being done, how much of it is done, and of how much.
Progress = Callable[[str, int, int], None]


def no_progress(what: str, done: int, total: int) -> None:
    """Show nothing."""
