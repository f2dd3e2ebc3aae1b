"""Dates of a log as options, and files and machines that cannot be read as they are."""

from __future__ import annotations

import bz2
import lzma
from pathlib import Path

import pytest
from commands import as_csv, typed
from mistakes import mistakes_of

ROWS = "".join(f"{k + 1} {60 * k} 0 60 1 -1 -1 1 60 -1 1 1 1 1 1 1 -1 -1\n" for k in range(10))


@pytest.mark.parametrize(
    ("dates", "seconds"),
    [
        (("2024-03-05T00:03", "2024-03-05T00:06:00"), ("180", "360")),
        (("2024-03-05", "2024-03-05T00:02"), ("0", "2m")),
    ],
)
def test_an_extract_begins_and_ends_at_dates_of_the_log(
    tmp_path: Path, dates: tuple[str, str], seconds: tuple[str, str]
) -> None:
    file = tmp_path / "log.swf"
    head = "; MaxProcs: 2\n; UnixStartTime: 1709593200\n; TimeZoneString: Europe/Berlin\n"
    file.write_text(head + ROWS)  # second 0 is midnight in Berlin

    def extract(begin: str, end: str) -> list[dict[str, str]]:
        options = ("--from", begin, "--to", end, "--output", "-")
        jobs: list[dict[str, str]] = as_csv("simulate", str(file), *options)
        return jobs

    assert extract(*dates) == extract(*seconds) != extract("0", "100h")


test_mistakes = mistakes_of(globals(), typed, bz2, lzma)
