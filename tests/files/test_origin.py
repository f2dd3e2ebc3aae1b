"""Where files are from: dates, commands, and records that are read again as they were written."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpcgym.errors import HpcgymError
from hpcgym.files.recorded import (
    Command,
    beside,
    commanded,
    date_text,
    meta_of,
    note_of,
    origin,
    record_of_file,
    write_beside,
)
from hpcgym.report.canvas import new_figure, save_figure
from hpcgym.version import __version__

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)


def record(text: str) -> dict[str, Any]:
    """A record with a text that may be anything at all, as names of workloads are."""
    told = {"hpcgym": "1", "date": "2000", "command": ["simulate", text], "files": {text: "ab"}}
    return {**told, "workloads": [{"name": text}], "schedules": [{"name": text}]}


def test_the_date_is_now_in_utc(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SOURCE_DATE_EPOCH", raising=False)
    before = datetime.now(UTC).replace(microsecond=0)
    assert before <= datetime.fromisoformat(date_text()) <= datetime.now(UTC)


def test_the_date_may_be_told(monkeypatch: pytest.MonkeyPatch) -> None:
    for seconds, text in (("0", "1970-01-01T00:00:00Z"), ("86399", "1970-01-01T23:59:59Z")):
        monkeypatch.setenv("SOURCE_DATE_EPOCH", seconds)
        assert date_text() == text
    for wrong in ("now", "-1", "1.5", "9" * 40, "²"):
        monkeypatch.setenv("SOURCE_DATE_EPOCH", wrong)
        with pytest.raises(HpcgymError, match="SOURCE_DATE_EPOCH must be whole seconds"):
            date_text()


def test_what_is_written_during_a_command_tells_of_it() -> None:
    asked = []

    def files() -> dict[str, str]:
        asked.append(1)
        return {"b": "2", "a": "1"}

    with commanded(Command(["simulate", "x"], files, "2000")):
        assert not asked  # nothing is read where nothing is written
        first = origin()
        assert origin() == first
        assert (first["command"], list(first["files"])) == (["simulate", "x"], ["a", "b"])
        assert first["date"] == "2000"
    assert asked == [1]
    after = origin()
    assert (after["hpcgym"], after["command"], after["files"]) == (__version__, None, {})


@given(TEXTS)
def test_a_note_is_one_line_of_ascii(text: str) -> None:
    note = note_of(record(text))
    assert note.isascii()
    assert note.isprintable()
    assert json.loads(note.partition(": ")[2]) == record(text)


@pytest.mark.parametrize("text", ["plain", '</meta> "q" & <b>', "(a) \\( )) \\n \n", "café — ☃ 𝄞"])
@pytest.mark.parametrize("ending", ["swf", "csv", "html", "png", "svg", "pdf", "parquet"])
def test_what_is_read_is_what_was_written(tmp_path: Path, ending: str, text: str) -> None:
    path, told = tmp_path / f"a.{ending}", record(text)
    if ending == "swf":
        path.write_text(f"; Version: 2.2\n; Note: {note_of(told)}\n1 2\n")
    elif ending == "csv":
        path.write_text("a,b\n1,2\n")
        write_beside(path, told)
    elif ending == "html":
        path.write_text(f"<!DOCTYPE html><head>{meta_of(told)}</head>")
    elif ending == "parquet":
        pd = pytest.importorskip("pandas")
        pytest.importorskip("pyarrow", reason="Parquet needs pyarrow: pip install pyarrow")
        from hpcgym.files.recorded import NAME, record_text
        from hpcgym.files.tables import write_parquet

        write_parquet(pd.DataFrame({"a": [1]}), path, {NAME: record_text(told)})
        assert pd.read_parquet(path).to_dict("list") == {"a": [1]}
    else:
        pytest.importorskip("matplotlib", reason="pictures need matplotlib")
        save_figure(new_figure(1, 1), path, path.suffix, told)
    assert record_of_file(path) == told


def test_the_metadata_of_a_png_are_what_other_programs_read(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="pictures need matplotlib: pip install matplotlib")
    image = pytest.importorskip("PIL.Image")
    save_figure(new_figure(1, 1), tmp_path / "a.png", ".png", record("x"))
    with image.open(tmp_path / "a.png") as opened:
        assert json.loads(opened.text["Description"]) == record("x")


def test_a_file_without_a_record_says_so(tmp_path: Path) -> None:
    contents = {
        "a.swf": "; Version: 2.2\n1 0\n; Note: provenance: {}\n",  # a comment behind jobs is none
        "a.csv": "a\n1\n",
        "a.json": "[]",
        "b.json": "{}",
        "a.html": "<html>",
        "a.png": "\x89PNG",
        "a.svg": "<svg/>",
        "a.pdf": "%PDF",
    }
    for name, text in contents.items():
        (tmp_path / name).write_text(text)
        with pytest.raises(HpcgymError, match="has no record of what it was made from"):
            record_of_file(tmp_path / name)
    (tmp_path / "a.txt").write_text("")
    with pytest.raises(HpcgymError, match=r"files with a record end in \.swf"):
        record_of_file(tmp_path / "a.txt")
    with pytest.raises(HpcgymError, match="no such file"):
        record_of_file(tmp_path / "none.csv")


@pytest.mark.parametrize(
    "text",
    [
        *(b"{", b"[]", b"{}", b'{"hpcgym": 1}', b"\xff\xff"),
        json.dumps(record("x") | {"schedules": [1]}).encode(),
    ],
)
def test_a_damaged_record_ends_in_a_line(tmp_path: Path, text: bytes) -> None:
    path = tmp_path / "a.csv"
    path.write_text("a\n1\n")
    beside(path).write_bytes(text)
    with pytest.raises(HpcgymError, match="record"):
        record_of_file(path)
