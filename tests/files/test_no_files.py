"""What is no file, or holds more than it should, in place of one: each reader says so at once."""

from __future__ import annotations

import os
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mistakes import mistakes_of
from no_files import in_place_of, said_apart
from test_damaged_files import KINDS, Reader, of_minari

from hpcgym import agents
from hpcgym.errors import HpcgymError
from hpcgym.files import open_file, sha256_of, tables
from hpcgym.files.recorded import record_of_file
from hpcgym.files.tables import arrays_of, is_whole
from hpcgym.machine import find_cluster
from hpcgym.machine.speedups import find_speedups
from hpcgym.scheduler.restrictions import read_windows
from hpcgym.scheduler.rules import read_quotas
from hpcgym.scheduler.slurm_qos import read_qos
from hpcgym.study.suite.runs import _steps_in
from hpcgym.study.suite.submissions import read as read_submission
from hpcgym.study.sweep.records import FILE, LOCK, locked
from hpcgym.study.sweep.simulations import file_of
from hpcgym.workload import load_workload

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs fork, and /proc")

# --- Files that are none --------------------------------------------------------------------------


def record_of_table(table: Path) -> None:
    table.touch()
    record_of_file(table)


#: Name of a file -> what reads it.
MORE: dict[str, Reader] = {
    "any": lambda path: open_file(path).__enter__(),
    "hashed.bin": sha256_of,
    "arrays.npz": arrays_of,
    "network.onnx": lambda path: agents.import_agent("onnx_models").load(path),
    "model.zip": agents.load,
    "slurm.conf": find_cluster,
    "qos.txt": read_qos,
    "sacct.txt": load_workload,
    "recorded.svg": record_of_file,
    "recorded.parquet": record_of_file,
    "jobs.csv.provenance.json": lambda path: record_of_table(path.with_name("jobs.csv")),
    "machine": find_cluster,
    "quotas": lambda path: read_quotas(str(path)),
    "windows": read_windows,
    "submission.json": lambda path: read_submission(path.parent),
    "0.steps.json": _steps_in,
    "model.env.json": lambda path: agents.saved.read_spec(path.with_name("model.zip")),
}

#: Name of a file -> what writes a right one perhaps, and returns what reads it.
READERS: dict[str, Callable[[Path], Reader]] = {
    **{name: write for name, write in KINDS.items() if write is not of_minari},
    **{name: lambda path, read=read: read for name, read in MORE.items()},
}


@pytest.mark.parametrize("kind", ["a pipe", "a device", "a socket"])
@pytest.mark.parametrize(
    "read",
    [
        find_cluster,
        load_workload,
        read_quotas,
        read_windows,
        find_speedups,
        lambda name: file_of(name, Path(), of_jobs=True) and load_workload(file_of(name, Path())),
    ],
)
def test_what_has_a_name_with_another_meaning(
    read: Reader, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file of the name of a machine or a trace is meant before these, and so is what is none."""
    monkeypatch.chdir(tmp_path)
    with in_place_of(kind, tmp_path / "kth-sp2"):
        assert said_apart(lambda: read("kth-sp2")) == f"kth-sp2 is {kind}, not a file"


@pytest.mark.parametrize("kind", ["a pipe", "a device", "a socket"])
def test_what_a_slurm_conf_includes(kind: str, tmp_path: Path) -> None:
    (tmp_path / "slurm.conf").write_text("ClusterName=a\nInclude nodes.conf\n")
    with in_place_of(kind, tmp_path / "nodes.conf"):
        said = said_apart(lambda: find_cluster(tmp_path / "slurm.conf"))
    assert said == f"{tmp_path / 'nodes.conf'} is {kind}, not a file"


@pytest.mark.parametrize("kind", ["a pipe", "a device", "a folder", "a socket"])
@pytest.mark.parametrize("name", READERS)
def test_what_is_no_file_is_said_at_once(name: str, kind: str, tmp_path: Path) -> None:
    path = tmp_path / name
    if name in ("network.onnx", "model.zip", "network.pt"):
        pytest.importorskip("torch")
    read = READERS[name](path)
    with in_place_of(kind, path):
        text = said_apart(lambda: read(path))
    assert f"{path} is {kind}, not a file" in text


@pytest.mark.parametrize("kind", ["a pipe", "a device", "a socket"])
@pytest.mark.parametrize("name", ["data/metadata.json", "data/0/part-0.parquet"])
def test_a_data_set_with_what_is_no_file_is_not_read(name: str, kind: str, tmp_path: Path) -> None:
    pytest.importorskip("minari")
    (tmp_path / "data" / "0").mkdir(parents=True)
    (tmp_path / "data" / "metadata.json").write_text("{}")
    with in_place_of(kind, tmp_path / name):
        text = said_apart(lambda: agents.recordings.load_recording(tmp_path))
    assert f"{tmp_path / name} is {kind}, not a file" in text


def test_a_link_to_a_file_is_one(tmp_path: Path) -> None:
    (tmp_path / "a.npz").symlink_to(tmp_path / "b.npz")
    np.savez(tmp_path / "b.npz", values=np.arange(3))
    assert arrays_of(tmp_path / "a.npz")["values"].tolist() == [0, 1, 2]


def test_what_becomes_a_pipe_after_it_was_looked_at_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "log.swf"
    os.mkfifo(path)
    regular = os.stat(__file__)

    def stat(name: Any, **options: Any) -> os.stat_result:
        return regular

    monkeypatch.setattr(os, "stat", stat)
    assert said_apart(lambda: open_file(path).__enter__()) == f"{path} is a pipe, not a file"


@pytest.mark.parametrize("name", [FILE, LOCK])
def test_a_folder_of_a_sweep_with_a_pipe_in_it(name: str, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / name)
    assert " cannot be " in said_apart(lambda: locked(tmp_path).__enter__())


# --- Files that hold more than they should --------------------------------------------------------


def bomb(path: Path, size: int = 4 << 30) -> None:
    """An archive whose one array takes more memory than there is, of a thousandth of its bytes."""
    head = str({"descr": "|i1", "fortran_order": False, "shape": (size,)}).ljust(117) + "\n"
    with (
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive,
        archive.open("0/wait.npy", "w", force_zip64=True) as file,
    ):
        file.write(b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head.encode())
        for _ in range(size >> 24):
            file.write(bytes(1 << 24))


@pytest.mark.parametrize(
    ("shape", "message"),
    [((1 << 40,), "has not as many bytes as it should"), ((4,), "has not as many bytes")],
)
def test_an_array_that_says_of_itself_what_is_not_so(
    shape: tuple[int, ...], message: str, tmp_path: Path
) -> None:
    path = tmp_path / "a.npz"
    head = str({"descr": "<i8", "fortran_order": False, "shape": shape}).ljust(117) + "\n"
    with zipfile.ZipFile(path, "w") as archive:
        begin = b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little")
        archive.writestr("values.npy", begin + head.encode() + bytes(24))
    assert message in said_apart(lambda: arrays_of(path))


def test_arrays_are_not_unpacked_before_their_heads_are_looked_at(tmp_path: Path) -> None:
    path = tmp_path / "0.npz"
    bomb(path, 768 << 20)  # as much as any archive may unpack to, and more than there is here

    def check(heads: Any) -> None:
        assert heads["0/wait"].shape == (768 << 20,)
        assert heads["0/wait"].dtype == np.int8
        raise HpcgymError("not these")

    assert said_apart(lambda: arrays_of(path, check=check)) == "not these"
    assert "Unable to allocate" in said_apart(lambda: arrays_of(path))
    assert said_apart(lambda: print(end="") if is_whole(path) else exit("damaged")) == "nothing"


def test_an_array_whose_checksum_is_wrong(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    np.savez(path, values=np.arange(3))
    content = bytearray(path.read_bytes())
    content[content.index((2).to_bytes(8, "little"))] = 3
    path.write_bytes(content)
    with pytest.raises(HpcgymError, match="Bad CRC-32"):
        arrays_of(path)
    assert not is_whole(path)


def test_files_of_slurm_that_include_one_another_over_and_over(tmp_path: Path) -> None:
    """30 to the power of 6 of them."""
    for k in range(6):
        (tmp_path / f"{k}.conf").write_text(f"Include {k + 1}.conf\n" * 30)
    (tmp_path / "6.conf").write_text("")
    text = said_apart(lambda: find_cluster(tmp_path / "0.conf"))
    assert "0.conf includes more than 4,096 files" in text


test_mistakes = mistakes_of(globals(), tables, fixtures=("monkeypatch",))
