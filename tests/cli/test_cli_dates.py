"""Dates of a log as options."""

from __future__ import annotations

from pathlib import Path

import pytest
from commands import as_csv, run

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
        found: list[dict[str, str]] = as_csv("simulate", str(file), *options)
        return found

    assert extract(*dates) == extract(*seconds) != extract("0", "100h")
    file.write_text(f"; MaxProcs: 2\n{ROWS}")
    done = run("simulate", str(file), "--from", dates[0])
    assert done.exit_code == 1
    assert f"--from {dates[0]}: the log does not tell by which date it begins" in done.stderr
