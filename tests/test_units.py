"""What each format means by the same text: durations, memory and counts."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from mistakes import mistakes_of

from hpcgym import units
from hpcgym.dates import unix_seconds
from hpcgym.errors import HpcgymError
from hpcgym.units import amount_of, count_of, seconds_of

YEAR = units.NO_LIMIT_S
#: What durations are to arguments, slurm.conf, TimelimitRaw, Timelimit and squeue; None: none.
DURATIONS = {
    "90": (90, 5_400, 5_400, None, 90),
    "90.5": (90.5, None, None, None, 90.5),
    "2:30": (150, 150, None, 150, 150),
    "1:02:03": (3_723, 3_723, None, 3_723, 3_723),
    "1-02:03:04": (93_784, 93_784, None, 93_784, 93_784),
    "1-02:03": (None, 93_780, None, None, None),
    "1-12": (None, 129_600, None, None, None),
    "1-02:03:04.5": (93_784.5, None, None, 93_784.5, 93_784.5),
    "1d 12h": (129_600, None, None, None, 129_600),
    "1:2:3:4": (None,) * 5,
    "UNLIMITED": (None, math.inf, YEAR, YEAR, YEAR),
    "NOT_SET": (None, None, None, None, YEAR),
    "none": (None, math.inf, None, None, None),
    "-1": (None, math.inf, None, None, None),
    "": (None, math.inf, None, None, None),
    "9007199254740992": (2**53, None, None, None, 2**53),
    "9007199254740993": (None,) * 5,
    "150119987579017w": (None,) * 5,
}
GRAMMARS = (
    units.ARGUMENT, units.OF_SLURM, units.OF_TIMELIMIT_RAW, units.OF_TIMELIMIT, units.OF_SQUEUE
)  # fmt: skip


@pytest.mark.parametrize(("text", "seconds"), DURATIONS.items())
def test_a_duration_by_each_grammar(text: str, seconds: tuple[float | None, ...]) -> None:
    assert tuple(seconds_of(text, how) for how in GRAMMARS) == seconds


#: What memory is to machines, Slurm, Grid Engine and PBS, in their megabytes; None: no memory.
MEMORY = {
    "2": (None, 2, Fraction(2, 1024**2), Fraction(2, 1024**2)),
    "2g": (None, 2048, Fraction(2_000_000_000, 1024**2), 2048),
    "2G": (None, 2048, 2048, 2048),
    "1.5 GB": (1_500, None, None, 1536),
    "1kw": (None, None, None, Fraction(8, 1024)),
    "2 TiB": (None,) * 4,
    "-2G": (None,) * 4,
}
WRITERS = (
    units.MEMORY_ALONE, units.MEMORY_OF_SLURM, units.MEMORY_OF_GRID_ENGINE, units.MEMORY_OF_PBS
)  # fmt: skip


@pytest.mark.parametrize(("text", "megabytes"), MEMORY.items())
def test_memory_by_each_format(text: str, megabytes: tuple[int | None, ...]) -> None:
    assert tuple(amount_of(text, how) for how in WRITERS) == megabytes


@pytest.mark.parametrize(
    ("text", "number"),
    [("4", 4), ("4K", 4096), ("4kib", 4096), ("4KB", 4000), ("4B", None), ("1.5K", None)],
)
def test_generic_resources(text: str, number: int | None) -> None:
    assert amount_of(text, units.GENERIC_OF_SLURM) == number


@pytest.mark.parametrize("text", ["", "-", "+1", "1.0", "1e3", " 1", "\u0665", "1" * 13])
def test_what_is_no_count(text: str) -> None:
    assert count_of(text) is None


def test_a_duration_that_is_too_long_names_its_argument() -> None:
    most = 2**53
    assert units.in_seconds(f"{most}s") == most
    assert units.whole_seconds("horizon", str(most), most=most) == most


def test_numbers_that_are_dates() -> None:
    assert unix_seconds("1700000000") == unix_seconds("1700000000999") == 1_700_000_000
    assert unix_seconds("1700000000.5", decimals=True) == 1_700_000_001


test_mistakes = mistakes_of(globals(), errors=(HpcgymError, ValueError))
