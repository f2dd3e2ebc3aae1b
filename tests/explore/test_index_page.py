"""The page about a folder: a row for each schedule, whatever names files and workloads have."""

from __future__ import annotations

import json
from base64 import b64encode
from hashlib import sha256
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

from hpcgym.errors import HpcgymError
from hpcgym.explore.document import indexed, write_index
from hpcgym.files.recorded import write_beside

ODD = '<script>alert("x")</script> & more'


class Page(HTMLParser):
    """Cells by row, links, and the content of scripts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self.links: list[str] = []
        self.scripts: list[str] = []
        self.policy = ""
        self._in = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        given = dict(attrs)
        self._in = tag if tag in ("td", "th", "script") else self._in
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self.rows[-1].append("")
        elif tag == "a":
            self.links.append(given["href"])
        elif tag == "script":
            self.scripts.append("")
        elif given.get("http-equiv"):
            self.policy = given["content"]

    def handle_endtag(self, tag: str) -> None:
        self._in = "" if tag == self._in else self._in

    def handle_data(self, data: str) -> None:
        if self._in == "script":
            self.scripts[-1] += data
        elif self._in:
            self.rows[-1][-1] += data


def record(*names: str, **metrics: float) -> dict[str, Any]:
    workload = {"name": ODD, "jobs": 1234, "processors": 5, "sha256": "ab"}
    schedules = [
        {"name": name, "workload": "ab", "rules": {"policy": "saf"}, "metrics": metrics}
        for name in names
    ]
    told = {"hpcgym": "1.2", "date": "2026-01-01T00:00:00Z", "command": ["simulate", "my log"]}
    return {**told, "files": {}, "workloads": [workload], "schedules": schedules}


def test_a_row_for_each_schedule_with_links(tmp_path: Path) -> None:
    inner = tmp_path / "runs" / "a b#?"
    inner.mkdir(parents=True)
    one, other, plain = inner / "one.csv", tmp_path / "runs" / "two.json", inner / "plain.csv"
    for file in (one, plain):
        file.write_text("a\n1\n")
    write_beside(one, record(ODD, mean_bsld=2.5))
    other.write_text(json.dumps({"provenance": record("easy", "saf", max_wait_s=7)}))
    (inner / "notes.txt").write_text("not looked at")
    page = tmp_path / "runs" / "index.html"
    for _ in range(2):  # the page of before is no result
        found = indexed(tmp_path / "runs", page)
        assert (list(found.records), found.others) == ([one, other], [plain])
        write_index(found, page, ODD)
    text = page.read_text()
    read = Page(text)
    assert [(page.parent / unquote(link)) for link in read.links] == [one, other, other]
    heads, *rows = read.rows
    assert len({len(row) for row in read.rows}) == 1
    columns = [dict(zip(heads, row, strict=True)) for row in rows]
    assert [row["scheduler"] for row in columns] == [ODD, "easy", "saf"]
    assert {row["workload"] for row in columns} == {ODD}
    assert {row["command"] for row in columns} == {"hpcgym simulate 'my log'"}
    assert [row["mean BSLD"] for row in columns] == ["2.500", "", ""]
    assert [row["max wait (s)"] for row in columns] == ["", "7", "7"]
    assert "plain.csv" in text


def test_the_browser_runs_only_the_script_of_sorting(tmp_path: Path) -> None:
    write_index(indexed(tmp_path, tmp_path / "i.html"), tmp_path / "i.html", ODD)
    read = Page((tmp_path / "i.html").read_text())
    (script,) = read.scripts
    digest = b64encode(sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in read.policy
    assert read.policy.startswith("default-src 'none'")


def test_parts_of_records_that_are_none_are_left_out(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text("a\n1\n")
    odd = {"name": 3, "workload": [1], "rules": 7, "metrics": {"mean_bsld": "x"}, "machine": []}
    write_beside(file, record() | {"schedules": [odd], "command": None})
    write_index(indexed(tmp_path, tmp_path / "i.html"), tmp_path / "i.html", "x")
    _, row = Page((tmp_path / "i.html").read_text()).rows
    assert row[0] == "a.csv"
    assert row[3] == "from Python"


def test_a_folder_that_is_none_ends_in_a_line(tmp_path: Path) -> None:
    with pytest.raises(HpcgymError, match="is no folder"):
        indexed(tmp_path / "none", tmp_path / "i.html")
