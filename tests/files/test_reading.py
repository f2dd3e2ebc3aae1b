"""What is read is bounded, and what is wrong with it is one line."""

from __future__ import annotations

import gzip
import json
import pickle
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from hpcgym import agents, files
from hpcgym.cli import app
from hpcgym.errors import HpcgymError, WorkloadError, WorkloadWarning
from hpcgym.files import json_of, tables, toml_of
from hpcgym.files.tables import arrays_of
from hpcgym.machine import find_cluster, read_cluster
from hpcgym.machine.speedups import find_speedups, read_speedups
from hpcgym.schedule.signals import read_signal
from hpcgym.scheduler.policies import FairShare
from hpcgym.study import load_experiment, run_experiment
from hpcgym.workload import load_workload

TOML: list[Callable[[Path], Any]] = [read_cluster, FairShare.read, load_experiment]
JSON: list[Callable[[Path], Any]] = [read_speedups, agents.load]


def named(reader: Any) -> str:
    return str(getattr(reader, "__qualname__", reader))


def said(read: Callable[[Path], Any], path: Path, content: str | bytes) -> str:
    """What is said of a file that cannot be read, but for its name, which comes first."""
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(HpcgymError) as caught:
        read(path)
    text = str(caught.value)
    assert text.isprintable()
    assert text.startswith(str(path))
    return text.removeprefix(str(path))


# --- TOML -----------------------------------------------------------------------------------


@pytest.mark.parametrize("read", TOML, ids=named)
@pytest.mark.parametrize(
    ("text", "message"),
    [
        (".".join(["a"] * 3_000) + " = 1", "64 deep"),
        ("a = " + "[" * 100_000, "64 deep"),
        ("a = " + "{a = " * 100_000, "64 deep"),
        ("a = " + "[" * 65 + "]" * 65, "64 deep"),
        ("\n\nprocessors = " + "9" * 5000, ": a number has more than 300 digits"),
        ("processors = 0x" + "f" * 5000, "a number has more than 300 digits"),
        ("#" * (4 << 20) + "\n", "is larger than 4 MiB"),
        (b"\xff\xfe\x00", "is not TOML: it is binary"),
        ("a = ", "is not TOML: Invalid value (at end of document)"),
    ],
    ids=["dots", "lists", "tables", "65", "int", "hex", "size", "bytes", "end"],
)
def test_toml_that_is_damaged(
    read: Callable[[Path], Any], text: str | bytes, message: str, tmp_path: Path
) -> None:
    assert message in said(read, tmp_path / "a.toml", text)


# --- JSON -----------------------------------------------------------------------------------


@pytest.mark.parametrize("read", JSON, ids=named)
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"a":' * 100_000, "64 deep"),
        ('{"a":' * 65 + "1" + "}" * 65, "64 deep"),
        ('{"a":\n' + "9" * 5000 + "}", ": a number has more than 300 digits"),
        ('{"a": ' + "9" * 400 + "}", "a number has more than 300 digits"),
        ('{"a": "\\ud800"}', r"the text '\ud800' has half a character"),
        ('{"\\udfff": 1}', r"the text '\udfff' has half a character"),
        ('{"a": 1, "a": 2}', "the key 'a' stands there twice"),
        ('{"a": \x00}', "is not JSON: Expecting value: line 1"),
        (b'{"a": "\xff\xfe\xfd"}', "is not JSON: it is binary, or not in UTF-8"),
    ],
    ids=["deep", "65", "lines", "digits", "text", "key", "twice", "zero", "bytes"],
)
def test_json_that_is_damaged(
    read: Callable[[Path], Any], text: str | bytes, message: str, tmp_path: Path
) -> None:
    problem = said(read, tmp_path / "a.json", text)
    if read is read_speedups and isinstance(text, bytes):
        message = "is not CSV or JSON: it is binary"
    assert message in problem


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999", "[1e999]"])
def test_numbers_in_json_are_finite(number: str) -> None:
    with pytest.raises(HpcgymError, match=r"here.*(finite number|too large)"):
        json_of(f'{{"a": {number}}}', "here")
    json_of(f'{{"a": {number}}}', "here", finite=False)  # what Python itself has written


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[{"submit_time": "\\ud800"}]', "half a character"),
        ('[{"submit_time": 1e999}]', "too large"),
        ('[{"submit_time": ' + "9" * 400 + "}]", ": a number has more than 300"),
        ('[{"submit_time": 1, "\\ud800": 1}]', "half a character"),
        ('[{"submit_time": [[[1]]]}]', "job 1: submit_time is a list or an object"),
        ('{"jobs": [{"submit_time": 1}], "processors": 1e999}', "too large"),
        (json.dumps([{f"x{k}": 1 for k in range(3000)}]), "jobs have 3,000 fields"),
        ('[{"submit_time": 1, "submit_time": 2}]', "the key 'submit_time' stands there twice"),
    ],
)
def test_jobs_in_json_that_are_damaged(text: str, message: str, tmp_path: Path) -> None:
    assert message in said(load_workload, tmp_path / "a.json", text)


def test_json_in_other_encodings(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    for encoding in ("utf-8-sig", "utf-16", "utf-32-le"):
        path.write_bytes('[{"submit_time": 1, "run_time": 2, "code": "ü"}]'.encode(encoding))
        assert len(load_workload(path, "none", processors=2)) == 1
    assert toml_of("x = inf", "here") == {"x": float("inf")}  # a number of TOML


# --- Tables ---------------------------------------------------------------------------------


def test_tables_with_too_many_columns(tmp_path: Path) -> None:
    names = ",".join(f"x{k}" for k in range(100_000))
    for head in (f"submit_time,units,{names}", f'"submit\n_time",{names}'):
        assert "columns or more; a table may have 2,048" in said(
            load_workload, tmp_path / "a.csv", f"{head}\n"
        )
    wide = said(read_speedups, tmp_path / "b.csv", f"{names}\n{names}\n")
    assert wide.startswith(", line 1: 100,000 columns")
    assert ", line 1: 100,000 columns" in said(read_signal, tmp_path / "c.csv", f"{names}\n")
    endless = said(load_workload, tmp_path / "d.csv", "x" * (2 << 20))
    assert "has a line of over 1 MiB: it is not a CSV table" in endless


def test_parquet_that_tells_more_than_it_can_hold(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    path = tmp_path / "a.parquet"
    parquet.write_table(pa.table({"submit_time": [1] * 500_000, "run_time": [1] * 500_000}), path)
    assert len(load_workload(path, "none", processors=2)) == 500_000
    monkeypatch.setattr(tables, "_VALUES_FREE", 1000)
    with pytest.raises(WorkloadError, match=r"tells of 500,000 rows of 2 columns in .* bytes"):
        load_workload(path, processors=2)


def test_archives_that_unpack_to_too_much(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.npz"
    np.savez_compressed(path, values=np.zeros(1_000_000))
    assert arrays_of(path)["values"].size == 1_000_000
    monkeypatch.setattr(tables, "_ARRAYS_FREE", 1000)
    with pytest.raises(HpcgymError, match="unpacks to 8 MiB, over 256 times its size"):
        arrays_of(path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("values.npy", b"no array")
    with pytest.raises(HpcgymError, match=r"a\.npz holds no such arrays"):
        arrays_of(path)
    with pytest.raises(HpcgymError, match=r"none\.npz: no such file"):
        arrays_of(tmp_path / "none.npz")


# --- Packed files ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "head", "line"),
    [
        ("a.swf.gz", "", "1 0 5 100 4 -1 -1 4 200 -1 1 7 3 -1 2 -1 -1 -1\n"),
        ("a.csv.gz", "submit_time,run_time,requested_processors\n", "1,2,3\n"),
        ("a.json.gz", '[{"submit_time": 1, "run_time": 1}', "," + " " * 99),
    ],
)
def test_files_that_unpack_to_too_much(
    name: str, head: str, line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / name
    packed = gzip.compress((head + line * (30_000_000 // len(line))).encode(), 9)
    monkeypatch.setattr(files, "PACKED_FREE", 1 << 20)
    assert "over 64 times its size, which no real trace does; if" in said(
        load_workload, path, packed
    )


def test_real_traces_unpack_within_bounds(trace: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "PACKED_FREE", 0)
    for file in ("KTH-SP2-1996-2.swf.gz", "SDSC-SP2-1998-4.2-cln.swf.gz", "lublin_256.swf.gz"):
        assert len(load_workload(trace(file)))


# --- Messages -------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [HpcgymError, WorkloadError, WorkloadWarning])
def test_messages_are_one_line(kind: type[Exception]) -> None:
    assert str(kind("a\nb\r\nc")) == "a b c"
    assert str(kind("\x1b[31mred\x00\t\ud800 ü 数")) == "\\x1b[31mred\\x00\\t\\ud800 ü 数"
    long = str(kind("file.toml: key " + "x" * 3_000_000 + " must be a number"))
    assert len(long) < 2000
    assert long.startswith("file.toml: key xxx")
    assert "characters]" in long
    assert long.endswith("xxx must be a number")
    assert str(pickle.loads(pickle.dumps(kind(long)))) == long


@pytest.mark.parametrize("name", ["a\0b.toml", "\ud800.toml", "a" * 5000 + ".toml"])
def test_names_that_no_file_can_have(name: str, tmp_path: Path) -> None:
    with pytest.raises(HpcgymError, match="cannot be"):
        read_cluster(name)
    with pytest.raises(HpcgymError, match="cannot be"):
        find_cluster(name)
    with pytest.raises(HpcgymError, match="is no file, trace or generator"):
        load_workload(name)
    file = tmp_path / "a.toml"
    if name.isprintable():
        file.write_text(f"schedulers = ['easy']\n[[workloads]]\nworkload = '{name}'\n")
        with pytest.raises(HpcgymError, match="must be of at most 4,096 characters"):
            run_experiment(file, tmp_path / "sweep", "serial")


def test_a_home_of_nobody(tmp_path: Path) -> None:
    """A name that begins with ``~`` and a user that there is not is a name like any other."""
    arguments = ["simulate", "~nosuchuser/x.swf", "--output", str(tmp_path / "o.csv")]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 1
    assert "~nosuchuser/x.swf" in result.stderr
    assert len(result.stderr.splitlines()) == 1
    result = CliRunner().invoke(app, ["traces", "list"], env={"HPCGYM_DATA": "~nosuchuser"})
    assert result.exit_code == 1
    assert result.stderr == "hpcgym: HPCGYM_DATA names ~nosuchuser, which is not a folder\n"
    with pytest.raises(HpcgymError, match="~nosuchuser"):
        find_speedups("~nosuchuser/x.csv")


def test_a_number_of_a_trace_that_is_endless(tmp_path: Path) -> None:
    """Decimals stop at a million digits, with an error of their own."""
    line = f"1 0 5 {'1' * 1_100_000} 4 -1 -1 4 200 -1 1 7 3 -1 2 -1 -1 -1"
    assert "(run_time) is '111111111111111111111111', too long" in said(
        load_workload, tmp_path / "a.swf", f"{line}\n"
    )
