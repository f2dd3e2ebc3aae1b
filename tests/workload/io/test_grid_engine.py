"""Logs of Grid Engine: records written field by field, as accounting(5) lists them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from mistakes import mistakes_of

from hpcgym import load_workload, simulate
from hpcgym.workload import Workload
from hpcgym.workload.io.swf_header import names_of
from hpcgym.workload.load import format_of

pytestmark = pytest.mark.filterwarnings("ignore::hpcgym.errors.WorkloadWarning")

BEGAN = 1_500_000_000


def record(**given: Any) -> str:
    """The record of a job of four slots that waited 100 s and ran for 50 s."""
    job = {
        "queue": "long.q", "id": 7, "submit": BEGAN, "start": BEGAN + 100, "end": BEGAN + 150,
        "failed": 0, "exit": 0, "project": "NONE", "slots": 4, "task": 0, "pe": "NONE",
        "category": "-l h_rt=3600,h_vmem=2G -pe mpi 4", "used": "4096000.000000",
        "rest": ["0", "0"],
    } | given  # fmt: skip
    fields = [
        job["queue"], "n1.local", "phys", "ann", "run.sh", job["id"], "sge", 0, job["submit"],
        job["start"], job["end"], job["failed"], job["exit"], 50, *["0.132815"] * 17,
        job["project"], "defaultdepartment", "mpi", job["slots"], job["task"], "0.37", "0.000000",
        "0.000477", job["category"], "0.000000", job["pe"], job["used"], *job["rest"],
    ]  # fmt: skip
    return ":".join(map(str, fields))


def test_logs_of_grid_engine(tmp_path: Path) -> None:
    path = tmp_path / "accounting"
    lines = [
        "# Version: 6.2u5\n#\n# DO NOT MODIFY THIS FILE MANUALLY!\n#\n",
        record(),
        record(id=8, category="-u ann -l cpu=24:00:00,h_rt=24:00:00,mem_free=1.5g", slots=1),
        record(id=9, task=3, category="-l h_rt=INFINITY", exit=1, submit=BEGAN + 10),
        record(id=9, task=12, failed=100, rest=[], used="1e6", project="bio", submit=BEGAN + 10),
        record(id=10, start=0, end=0, failed=21),
        record(id=7, pe="1.n2"),
        record(id=11, **{name: 1000 * (BEGAN + at) + 7 for name, at in
                         (("submit", 20), ("start", 30), ("end", 90))}, category="-l m_mem_free=4K",
               used="9323855872", rest=["0", "0", "NONE", "a:b"]),
    ]  # fmt: skip
    path.write_text("\n".join(lines) + "\n\n")
    assert format_of(path) == "grid-engine"
    workload = load_workload(path, "none", tz="Europe/Berlin")
    assert workload.job_number.tolist() == [7, 8, 12, 13, 11]
    assert workload.array.tolist() == [-1, -1, 9, 9, -1]
    assert workload.submit_time.tolist() == [0, 0, 10, 10, 20]
    assert workload.wait_time.tolist() == [100, 100, 90, 90, 10]
    assert workload.run_time.tolist() == [50, 50, 50, 50, 60]
    assert workload.requested_time.tolist() == [3600, 86_400, 31_536_000, 3600, -1]
    assert workload.requested_processors.tolist() == [4, 1, 4, 4, 4]
    assert workload.requested_memory.tolist() == [2_048_000, 1_431_000, -1, 2_048_000, 1000]
    assert workload.used_memory.tolist() == [977, 3907, 977, 239, 2_222_981]
    assert workload.status.tolist() == [1, 1, 0, 0, 1]
    assert names_of(workload, "user_id") == {1: "ann"}
    assert names_of(workload, "group_id") == {1: "bio"}
    assert workload.group_id.tolist() == [-1, -1, -1, 1, -1]
    assert names_of(workload, "queue") == {1: "long.q"}
    assert workload.header["UnixStartTime"] == [str(BEGAN)]
    assert workload.cleaning == {
        "dropped: failed before it started": 1,
        "dropped: task of a parallel job, beside the record of the job": 1,
        "repaired: missing group_id set to -1": 4,
    }
    assert len(simulate(load_workload(path, processors=64), "easy").wait) == 5


def read(folder: Path, line: str, **options: Any) -> Workload:
    """Read a log of a record and a line."""
    path = folder / "log"
    path.write_text(f"{record()}\n{line}\n")
    return load_workload(path, "none", **options)


@pytest.mark.parametrize(
    "line",
    [
        record()[:150],
        record(end=BEGAN + 50),
        record(submit=0),
        record(slots=0),
        record(start="x"),
        record(category="-l h_rt=long"),
    ],
)
def test_wrong_lines_are_skipped(tmp_path: Path, line: str) -> None:
    assert len(read(tmp_path, line, errors="skip")) == 1


def test_a_job_that_is_alone_on_its_nodes_is_counted(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text(
        record(category="-l h_rt=9,exclusive=TRUE -pe mpi 4") + "\n" + record(id=8) + "\n"
    )
    workload = load_workload(path, "none", processors=8)
    reason = "not used: -l exclusive, by which a job is alone on its nodes"
    assert workload.cleaning.get(reason) == 1


test_mistakes = mistakes_of(globals())
