"""Logs of LSF: records written field by field, as lsb.acct(5) lists them."""

from __future__ import annotations

import gzip
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


def quoted(text: str) -> str:
    doubled = text.replace('"', '""')
    return f'"{doubled}"'


def record(version: str = "10.1", **given: Any) -> str:
    """The record of a job of four slots that waited 100 s and ran for 50 s."""
    job: dict[str, Any] = {
        "id": 7, "idx": 0, "submit": BEGAN, "begin": 0, "start": BEGAN + 100, "end": BEGAN + 150,
        "asked": [], "hosts": ["n1", "n1", "n2", "n2"], "slots": 4, "command": 'a "b c" ; d',
        "resreq": "", "depend": "", "status": 64, "memory": 4001, "limit": 3600, "name": "x",
        "pairs": 2, "used": 2, "project": "phys", "options": 33554434,
    } | given  # fmt: skip
    fields: list[Any] = [
        quoted("JOB_FINISH"), quoted(version), job["end"], job["id"], 1501, job["options"],
        job["slots"],
        job["submit"], job["begin"], 0, job["start"], quoted("ann"), quoted("long"),
        quoted(job["resreq"]), quoted(job["depend"]), '""', quoted("login"), quoted("/home"),
        '""', '""', '""', quoted("123.4"), len(job["asked"]), *map(quoted, job["asked"]),
        len(job["hosts"]), *map(quoted, job["hosts"]), job["status"], 60.0, quoted(job["name"]),
        quoted(job["command"]), *[0.5] * 19, '""', quoted(job["project"]), 0, job["slots"], '""',
        '""', job["idx"], job["memory"], 0, '""', '""',
    ]  # fmt: skip
    if version != "5.1":
        fields += ['""', '""', 0, '""', 0, '""', -1, '""', '""', '""', '""', -1, '""', '""', 5136]
        fields += ['""', 0, '""', '""', job["pairs"], *[1032, quoted("0")] * job["pairs"]]
        fields += [job["used"], *["n1", 1306, 0, 1287, 242, 0] * job["used"]]
        fields += [job["limit"], 4194304, 1024, quoted("select[type == any] ")]
    return " ".join(map(str, fields))


def test_logs_of_lsf(tmp_path: Path) -> None:
    path = tmp_path / "lsb.acct"
    lines = [
        record(),
        record(id=8, submit=BEGAN + 10, begin=BEGAN + 60, asked=["n1", "n3"], name='q "8"'),
        record(id=9, idx=2, hosts=["16*n1", "2*n2"], status=32, limit=-1, pairs=0, used=0),
        record(id=9, idx=1, hosts=["n1"], slots=1, memory=0, depend="done(7)"),
        record(id=11, start=0, hosts=[]),
        record("5.1", id=12, resreq="rusage[mem=4915] span[hosts=1]", submit=BEGAN + 20),
        '"EVENT_ADRSV_FINISH" "10.1" 1500000000 5 1 2 3',
    ]
    path.write_text("# 1\n" + "\n".join(lines) + "\n")
    assert format_of(path) == "swf"  # a comment tells nothing
    path.write_text("\n".join(lines) + "\n")
    assert format_of(path) == "lsf"
    workload = load_workload(path, "none", tz="Europe/Berlin")
    assert workload.job_number.tolist() == [7, 14, 13, 12, 8]
    assert workload.array.tolist() == [-1, 9, 9, -1, -1]
    assert workload.submit_time.tolist() == [0, 0, 0, 20, 60]
    assert workload.wait_time.tolist() == [100, 100, 100, 80, 40]
    assert workload.run_time.tolist() == [50] * 5
    assert workload.requested_time.tolist() == [3600, -1, 3600, -1, 3600]
    assert workload.requested_processors.tolist() == [4, 18, 1, 4, 4]
    assert workload.units is not None
    assert workload.units.tolist() == [2, 9, 1, 2, 2]  # 16 slots on one host, two on another
    assert workload.units_per_node.tolist() == [1, 8, -1, 1, 1]
    assert workload.used_memory.tolist() == [977, 218, -1, 977, 977]
    assert workload.status.tolist() == [1, 0, 1, 1, 1]
    assert names_of(workload, "user_id") == {1: "ann"}
    assert names_of(workload, "group_id") == {1: "phys"}
    assert names_of(workload, "queue") == {1: "long"}
    assert workload.header["UnixStartTime"] == [str(BEGAN)]
    assert workload.cleaning == {
        "dropped: record EVENT_ADRSV_FINISH, not of the end of a job": 1,
        "dropped: ended before it started": 1,
        "repaired: requested_processors taken from execHosts, not numProcessors": 1,
        "repaired: submit_time moved to when the job became eligible": 1,
        "not used: conditions on other jobs, dependCond": 1,
        "not used: memory of rusage[mem=...], of a unit that the log does not tell": 1,
    }
    assert len(simulate(load_workload(path, processors=64), "easy").wait) == 5
    packed = tmp_path / "packed"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert len(load_workload(packed, "none")) == 5


def read(folder: Path, line: str, **options: Any) -> Workload:
    """Read a log of a record and a line."""
    path = folder / "log"
    path.write_text(f"{record()}\n{line}\n")
    return load_workload(path, "none", **options)


@pytest.mark.parametrize(
    "line",
    [
        record()[:120],
        "JOB_FINISH 5",
        record(end=BEGAN + 50),
        record(submit=0),
        record(id="x"),
        record(hosts=[], slots=0),
    ],
)
def test_wrong_lines_are_skipped(tmp_path: Path, line: str) -> None:
    assert len(read(tmp_path, line, errors="skip")) == 1


def test_a_job_that_is_alone_on_its_nodes_is_counted(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text(record(options=33554434 | 0x40) + "\n" + record(id=8) + "\n")
    workload = load_workload(path, "none", processors=8)
    reason = "not used: bsub -x, by which a job is alone on its nodes"
    assert workload.cleaning.get(reason) == 1


test_mistakes = mistakes_of(globals())
