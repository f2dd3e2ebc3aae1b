"""What is read is bounded, and what is wrong with it is one line."""

from __future__ import annotations

import gzip
import json
import pickle
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mistakes import mistakes_of

from hpcgym import agents, files
from hpcgym.errors import HpcgymError, WorkloadError, WorkloadWarning
from hpcgym.files import json_of, tables, toml_of
from hpcgym.files.tables import arrays_of
from hpcgym.machine import find_cluster, read_cluster
from hpcgym.machine.speedups import find_speedups, read_speedups
from hpcgym.schedule.signals import read_signal
from hpcgym.scheduler.policies import FairShare
from hpcgym.study import load_experiment, run_experiment
from hpcgym.workload import load_workload
from hpcgym.workload.archive import data_folders

# --- JSON -----------------------------------------------------------------------------------


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999", "[1e999]"])
def test_what_python_has_written_need_not_be_finite(number: str) -> None:
    json_of(f'{{"a": {number}}}', "here", finite=False)


def test_json_in_other_encodings(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    for encoding in ("utf-8-sig", "utf-16", "utf-32-le"):
        path.write_bytes('[{"submit_time": 1, "run_time": 2, "code": "ü"}]'.encode(encoding))
        assert len(load_workload(path, "none", processors=2)) == 1
    assert toml_of("x = inf", "here") == {"x": float("inf")}  # a number of TOML


# --- Tables ---------------------------------------------------------------------------------


def half_a_million(folder: Path) -> Path:
    """A file of half a million rows, which are all the same."""
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    path = folder / "a.parquet"
    parquet.write_table(pa.table({"submit_time": [1] * 500_000, "run_time": [1] * 500_000}), path)
    return path


def test_parquet_of_many_rows(tmp_path: Path) -> None:

    assert len(load_workload(half_a_million(tmp_path), "none", processors=2)) == 500_000


def test_archives_of_arrays(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    np.savez_compressed(path, values=np.zeros(1_000_000))
    assert arrays_of(path)["values"].size == 1_000_000


# --- Packed files ---------------------------------------------------------------------------


def packed(line: str, head: str = "") -> bytes:
    """30 MB of the same line."""
    return gzip.compress((head + line * (30_000_000 // len(line))).encode(), 9)


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


#: Names of a hundred thousand columns.
NAMES = ",".join(f"x{k}" for k in range(100_000))
SWF = "1 0 5 {} 4 -1 -1 4 200 -1 1 7 3 -1 2 -1 -1 -1\n"


test_mistakes = mistakes_of(
    globals(), data_folders, FairShare, agents, find_cluster, find_speedups, json,
    load_experiment, read_cluster, read_signal, read_speedups, run_experiment, tables, zipfile,
    fixtures=("monkeypatch",),
)  # fmt: skip
