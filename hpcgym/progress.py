"""What is shown of long work on the error stream: to people bars, to logs a line now and then."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

from hpcgym.units import duration

#: A title and a number of steps -> a context that gives a function to call before each step, with
#: what is done next; and, with a 0 behind that, in the midst of one.
Progress = Callable[[str, int], AbstractContextManager[Callable[..., None]]]


def watched() -> bool:
    """Return whether the error stream is a terminal. Notebooks want colour, but are not."""
    return sys.stderr.isatty()


#: [s] between lines of progress: they follow one another in a log, not on a terminal.
SHOW_S = 5.0 if watched() else 30.0


def say(text: str) -> None:
    """Show a line of progress: on a terminal in the place of the one before."""
    if watched():
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)
    else:
        print(text, file=sys.stderr, flush=True)


def silence(*arguments: object) -> None:
    """Show no progress."""


def silent(title: str, total: int) -> AbstractContextManager[Callable[..., None]]:
    """Show no progress of steps."""
    return nullcontext(silence)


@contextmanager
def working(text: str) -> Iterator[None]:
    """Show that work goes on, if somebody watches the error stream."""
    from rich.console import Console

    if not watched():
        yield
        return
    with Console(stderr=True).status(text):
        yield


@contextmanager
def repeating(tell: Callable[[], None]) -> Iterator[None]:
    """Call a function every :data:`SHOW_S` seconds while other work goes on."""
    over = threading.Event()

    def repeat() -> None:
        while not over.wait(SHOW_S):
            tell()

    thread = threading.Thread(target=repeat, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


@contextmanager
def counting(title: str, total: int) -> Iterator[Callable[..., None]]:
    """Show a bar, or lines in a log; the function given names what is being done next."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
    from rich.progress import TimeRemainingColumn as Remaining

    console = Console(stderr=True)
    if not watched():
        yield _counting_in_lines(total)
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    times = (TimeElapsedColumn(), Remaining())
    with Progress(*columns, *times, console=console, transient=True) as progress:
        task = progress.add_task(title, total=total)
        started = False

        def step(text: str, steps: int = 1) -> None:
            nonlocal started
            progress.update(task, description=text, advance=steps * started)
            started = True

        yield step


def _left(done: float, total: float, took: float) -> str:
    """Return about how long the rest takes, of work of which a part took so many seconds."""
    if done <= 0:
        return ""
    seconds = (total - done) * took / done
    return f", about {duration(60 * round(seconds / 60) if seconds > 120 else round(seconds))} left"


def _counting_in_lines(total: int) -> Callable[..., None]:
    """Return what says every now and then what is being done next: nothing of short work."""
    begin = shown = time.monotonic()
    done = -1

    def step(text: str, steps: int = 1) -> None:
        nonlocal shown, done
        done = max(done + steps, 0)
        if time.monotonic() - shown >= SHOW_S:
            shown = time.monotonic()
            say(f"{done:,} of {total:,}{_left(done, total, shown - begin)}: {text}")

    return step


def _measuring_in_lines(title: str) -> Callable[[int, int], None]:
    """Return what says now and then how much is done."""
    said, pace = time.monotonic(), Pace()

    def show(done: int, total: int) -> None:
        nonlocal said
        rate = pace.rate(done)
        if time.monotonic() - said >= SHOW_S:
            said = time.monotonic()
            say(f"{title}: {done:,} of {total:,}{_left(rate, rate + total - done, 1)}")

    return show


class Pace:
    """How fast work goes on; what was done before it was first asked counts for nothing."""

    def __init__(self) -> None:
        self._begin, self._before = 0.0, float("inf")

    def rate(self, done: float) -> float:
        """Return how much is done a second; if less is done than at first, work began anew."""
        now = time.monotonic()
        if done < self._before:
            self._begin, self._before = now, done
        return (done - self._before) / max(now - self._begin, 1e-9)


@contextmanager
def measuring(title: str) -> Iterator[Callable[[int, int], None]]:
    """Show a bar with the rate and the time that remains, or lines in a log.

    The function given is to be told how much is done, and of how much; what was done before its
    first call counts for no rate.
    """
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
    from rich.progress import TimeRemainingColumn as Remaining

    console = Console(stderr=True)
    if not watched():
        yield _measuring_in_lines(title)
        return
    columns = (
        TextColumn(title),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
    )
    with Progress(*columns, Remaining(), console=console, transient=True) as progress:
        task: Any = None
        pace = Pace()

        def show(done: int, total: int) -> None:
            nonlocal task
            rate = pace.rate(done)
            if task is None:
                task = progress.add_task(title, total=total, completed=done, rate="")
                return
            text = f"{rate:,.0f} a second" if rate >= 10 else f"{rate * 60:,.1f} a minute"
            progress.update(task, completed=done, rate=text)

        yield show
