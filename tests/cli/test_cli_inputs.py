"""Dates of a log as options, and files and machines that cannot be read as they are."""

from __future__ import annotations

import bz2
import lzma
from pathlib import Path
from typing import Any

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
        jobs: list[dict[str, str]] = as_csv("simulate", str(file), *options)
        return jobs

    assert extract(*dates) == extract(*seconds) != extract("0", "100h")
    file.write_text(f"; MaxProcs: 2\n{ROWS}")
    done = run("simulate", str(file), "--from", dates[0])
    assert done.exit_code == 1
    assert f"--from {dates[0]}: the log does not tell the date at which it begins" in done.stderr


@pytest.mark.parametrize(
    ("name", "pack", "command"),
    [("a.swf.bz2", bz2.compress, "bunzip2 -k"), ("a.swf.xz", lzma.compress, "unxz -k")],
)
def test_how_to_unpack_a_log(tmp_path: Path, name: str, pack: Any, command: str) -> None:
    for text in (ROWS, ""):
        file = tmp_path / name
        file.write_bytes(pack(text.encode()))
        done = run("simulate", str(file), "--processors", "4")
        assert done.exit_code == 1
        assert f"{command} {file}" in done.stderr


def test_machines_are_named_one_by_one_and_have_a_limit(tmp_path: Path) -> None:
    (tmp_path / "a.conf").write_text("NodeName=n[1-2] CPUs=2\n")
    (tmp_path / "log.swf").write_text(ROWS)
    for machine, message in (
        ("a.conf,a.conf", "machines are given one by one"),
        ("a.conf+99999999", "a machine has at most 1,048,576 nodes"),
        ("a.conf+1048575", "a machine has at most 1,048,576 nodes"),
        ("a.conf-3", "its largest group has 2 nodes"),
    ):
        done = run("simulate", str(tmp_path / "log.swf"), "--cluster", str(tmp_path / machine))
        assert done.exit_code == 1
        assert message in done.stderr
