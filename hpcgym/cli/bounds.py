"""What a recorded command may cost: anybody may have written it into a file.

A file that tells five jobs is not made again from a hundred million. What is checked here is known
before the work: how many jobs a generator is asked for, and how many simulations there would be.
Logs that are read from files are bounded by these files.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NamedTuple

from hpcgym.errors import HpcgymError

#: Jobs that may be generated whatever is told, for each job that is told (a week of many may have
#: been simulated), and at most.
_FREE, _EACH, _MOST = 100_000, 100, 10_000_000
#: Jobs that a file counts for which does not tell them.
UNTOLD = _MOST // _EACH
#: The same of combinations of options; some of them come to one row.
_FREE_ROWS = 1_000
#: More than any generator makes.
_JOBS_A_DAY = 1_000


class Told(NamedTuple):
    """What a file tells: how many jobs it has, and schedules."""

    jobs: int
    schedules: int


_TOLD: ContextVar[Told | None] = ContextVar("what the file of a command tells", default=None)


@contextmanager
def bounded(told: Told) -> Iterator[None]:
    """Refuse meanwhile what would cost far more than a file tells."""
    before = _TOLD.set(told)
    try:
        yield
    finally:
        _TOLD.reset(before)


def check_generated(source: str) -> None:
    """Raise an HpcgymError within :func:`bounded` for far more jobs than are told."""
    told, (name, _, given) = _TOLD.get(), source.partition(":")
    if told is None:
        return
    most = min(_FREE + _EACH * told.jobs, _MOST)
    for pair in given.split(","):
        key, _, value = (part.strip() for part in pair.partition("="))
        try:
            asked = float(value) * {"jobs": 1, "days": _JOBS_A_DAY}.get(key, 0)
        except ValueError:
            continue  # the generator says what is wrong with it
        if asked > most:
            raise HpcgymError(
                f"its command generates far more jobs, {name}:{key}={value}, than the {most:,}"
                " that are generated for a file of its size: if you trust it, give them by"
                " --workload"
            )


def check_combinations(number: int) -> None:
    """Raise an HpcgymError within :func:`bounded` for far more combinations than schedules."""
    told = _TOLD.get()
    if told is not None and number > _FREE_ROWS + _EACH * told.schedules:
        raise HpcgymError(_too_many(number, told))


def check_simulations(number: int) -> None:
    """Raise an HpcgymError within :func:`bounded` for more simulations than schedules."""
    told = _TOLD.get()
    if told is not None and number > told.schedules:
        raise HpcgymError(_too_many(number, told))


def _too_many(number: int, told: Told) -> str:
    return f"its command makes {number:,} schedules, and the file tells {told.schedules:,}"
