"""Logs of PBS and workloads of Batsim: small ones, counted by hand."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from mistakes import mistakes_of

from hpcgym import load_workload, simulate
from hpcgym.errors import WorkloadError
from hpcgym.workload import Workload
from hpcgym.workload.io.swf_header import names_of
from hpcgym.workload.load import FORMATS, format_of

pytestmark = pytest.mark.filterwarnings("ignore::hpcgym.errors.WorkloadWarning")


def called(workload: Workload, column: str) -> list[str | None]:
    names = names_of(workload, column)
    return [names.get(number) for number in workload.columns[column].tolist()]


# --- PBS ------------------------------------------------------------------------------------------

TORQUE = (
    "06/06/2005 14:07:17;E;407.ign1.org;user=ann group=phys jobname=a b queue=batch"
    " ctime=1118087915 qtime=1118087916 etime=1118087915 start=1118088366"
    " exec_host=n1/0+n1/1+n2/0+n2/1 Resource_List.neednodes=2:ppn=2 Resource_List.nodect=2"
    " Resource_List.nodes=2:ppn=2 Resource_List.walltime=00:16:40 session=6365 end=1118088437"
    " Exit_status=0 resources_used.cput=00:00:00 resources_used.mem=3068kb"
    " resources_used.walltime=00:01:11"
)
PRO = (
    '06/06/2005 15:00:00;E;408[3].srv;user=bob group=users account="bio lab" project=_pbs'
    " jobname=x queue=gpu ctime=1118088000 qtime=1118088000 etime=1118088600 start=1118088700"
    " exec_host=c1/0*13+c2/1*13 exec_vnode=(c1:ncpus=13)+(c2:ncpus=13) Resource_List.mem=600mb"
    " Resource_List.ncpus=26 Resource_List.ngpus=4 Resource_List.nodect=2"
    " Resource_List.select=2:ncpus=13:ngpus=2:mem=300mb Resource_List.walltime=02:00:00"
    " session=1 end=1118089000 Exit_status=271 resources_used.ncpus=26"
)
OTHERS = [
    "06/06/2005 14:04:25;D;408.ign1.zeta2.org;requestor=guest@ign1.zeta2.org",
    "06/06/2005 14:04:35;Q;409.ign1.zeta2.org;queue=batch",
    "06/06/2005 14:04:44;Q;410.ign1.zeta2.org;queue=batch",
    "06/06/2005 14:06:06;S;407.ign1.zeta2.org;user=guest group=guest",
    "06/06/2005 15:00:00;E;408[].srv;user=bob start=1118088700 end=1118089000",
    "06/06/2005 15:00:00;E;411.srv;user=bob ctime=1118088000 Exit_status=271",
]


@pytest.mark.parametrize(
    ("entries", "units", "cores", "per_node"),
    [
        ("exec_host=n1/0*4+n2/0*4 Resource_List.select=2:ncpus=4", 2, 4, 1),
        ("exec_host=n1/0*4+n1/1*4 Resource_List.select=2:ncpus=4 Resource_List.nodect=2", 1, 8, -1),
        ("exec_host=n1/0+n1/1+n2/0", 3, 1, 2),  # two on one, one on the other
        ("exec_host=n1/0*4+n2/0*2 Resource_List.select=1:ncpus=4+1:ncpus=2", 3, 2, 2),
        ("exec_host=n1/0*2+n1/1*2+n2/0*4+n3/0-1,3", 11, 1, 4),
        ("Resource_List.nodes=2:ppn=4+n9:ppn=4", 3, 4, 1),
        ("Resource_List.nodes=1:ppn=8", 1, 8, -1),
        ("Resource_List.mppwidth=48 Resource_List.mppnppn=24", 2, 24, 1),
        # of a Cray XT: hosts and chunks are those of the login node, on which the script runs
        (
            "exec_host=nid7/17 Resource_List.select=1 Resource_List.mppwidth=64"
            " Resource_List.mppnppn=2 Resource_List.ncpus=1",
            32,
            2,
            1,
        ),
        ("Resource_List.ncpus=6", 6, 1, -1),  # which may lie anywhere
    ],
)
def test_nodes_of_jobs_of_pbs(
    tmp_path: Path, entries: str, units: int, cores: int, per_node: int
) -> None:
    times = "ctime=1118087915 start=1118088366 end=1118088437 Resource_List.walltime=00:16:40"
    with_nodes = f"{times} exec_host=n3/0*2"  # so that the log tells of nodes
    lines = [f"06/06/2005 14:07:17;E;{job}.s;user=ann {entry}" for job, entry in enumerate(
        [f"{times} {entries}", with_nodes], 1)]  # fmt: skip
    path = tmp_path / "20050606"
    path.write_text("\n".join(lines) + "\n")
    workload = load_workload(path, "none", processors=64)
    assert workload.units is not None
    assert (workload.units[0], workload.per_unit["core"][0]) == (units, cores)
    assert (workload.units_per_node[0], workload.requested_processors[0]) == (
        per_node, units * cores,
    )  # fmt: skip


def test_a_run_of_pbs_that_was_lost_is_a_run(tmp_path: Path) -> None:
    """By hand: job 1 is run again after ten hours; job 2 waits for its second run, too."""
    asked = "user=ann ctime=1743500000 exec_host=n1/0*32 Resource_List.walltime=12:00:00"
    lines = [
        f"04/01/2025 09:43:20;S;1.pbs;{asked} start=1743500600",
        f"04/01/2025 19:43:20;R;1.pbs;{asked} start=1743500600 end=1743536600 Exit_status=-3",
        f"04/01/2025 19:48:20;S;1.pbs;{asked} start=1743536900",
        f"04/01/2025 21:48:20;E;1.pbs;{asked} start=1743536900 end=1743544100 Exit_status=0",
        f"04/01/2025 22:48:20;E;2.pbs;{asked} start=1743544100 end=1743547700 Exit_status=0"
        " Resource_List.place=scatter:excl",
    ]
    path = tmp_path / "20250401"
    path.write_text("\n".join(lines) + "\n")
    workload = load_workload(path, "none", processors=64)
    runs = sorted(
        zip(
            *(workload.columns[name].tolist() for name in ("job_number", "run_time", "wait_time")),
            strict=True,
        )
    )
    assert runs == [(1, 7200, 300), (1, 36_000, 600), (2, 3600, 44_100)]
    alone = "not used: Resource_List.place=excl, by which a job is alone on its nodes"
    assert workload.cleaning[alone] == 1
    assert not any("record R" in reason for reason in workload.cleaning)
    path.write_text("\n".join([lines[0], "04/01/2025 19:43:20;R;1.pbs;", *lines[2:]]) + "\n")
    workload = load_workload(path, "none", processors=64)  # a run of which nothing is told
    assert sorted(workload.run_time.tolist()) == [3600, 7200]
    assert workload.cleaning["dropped: record R, not of the end of a job"] == 1


def test_logs_of_pbs(tmp_path: Path) -> None:
    path = tmp_path / "20050606"
    path.write_text("\n".join([*OTHERS, TORQUE, PRO]) + "\n")
    assert format_of(path) == "pbs"
    workload = load_workload(path, "none", tz="America/Chicago")
    assert workload.job_number.tolist() == [407, 409]
    assert workload.array.tolist() == [-1, 408]
    assert workload.submit_time.tolist() == [0, 1118088600 - 1118087915]
    assert workload.wait_time.tolist() == [1118088366 - 1118087915, 100]
    assert workload.run_time.tolist() == [71, 300]
    assert workload.requested_time.tolist() == [1000, 7200]
    assert workload.allocated_processors.tolist() == [4, 26]
    assert workload.requested_processors.tolist() == [4, 26]
    assert workload.used_memory.tolist() == [750, -1]
    assert workload.status.tolist() == [1, 0]
    assert workload.units is not None
    assert workload.units.tolist() == [2, 2]
    assert workload.per_unit["gpu"].tolist() == [0, 2]
    assert workload.per_unit["mem"].tolist() == [0, 300]
    assert called(workload, "user_id") == ["ann", "bob"]
    assert called(workload, "group_id") == [None, "bio lab"]
    assert called(workload, "queue") == ["batch", "gpu"]
    assert workload.header["UnixStartTime"] == ["1118087915"]
    assert workload.cleaning == {
        "dropped: record D, not of the end of a job": 1,
        "dropped: record Q, not of the end of a job": 2,
        "dropped: record S, not of the end of a job": 1,
        "dropped: array as a whole, beside its subjobs": 1,
        "dropped: ended before it started": 1,
        "repaired: submit_time moved to when the job became eligible": 1,
        "repaired: missing group_id set to -1": 1,
    }
    assert len(simulate(load_workload(path), "easy").wait) == 2
    path.write_text(TORQUE.replace("end=1118088437", "end=0"))  # not told: by its walltime
    assert load_workload(path, "none").run_time.tolist() == [71]


@pytest.mark.parametrize(
    ("hosts", "processors"),
    [("n1/0", 1), ("n1/0-11,14+n2/3", 14), ("a/0*4+b/2*4", 8), ("a/0-1*2", 4)],
)
def test_hosts_of_jobs(tmp_path: Path, hosts: str, processors: int) -> None:
    path = tmp_path / "log"
    path.write_text(TORQUE.replace("n1/0+n1/1+n2/0+n2/1", hosts))
    workload = load_workload(path, "none")
    assert workload.allocated_processors.tolist() == [processors]
    assert sum(workload.cleaning.values()) == (processors != 4)


@pytest.mark.parametrize(
    ("nodes", "processors"),
    [("3:ppn=4+n7:ppn=2", 14), ("2:ncpus=3:mem=1gb+1", 7), ("ncpus=5", 5), ("n1+n2", 2)],
)
def test_what_jobs_asked_for(tmp_path: Path, nodes: str, processors: int) -> None:
    kind = "select" if "ncpus" in nodes else "nodes"
    path = tmp_path / "log"
    path.write_text(
        TORQUE.replace("exec_host=n1/0+n1/1+n2/0+n2/1", "").replace(
            "Resource_List.nodes=2:ppn=2", f"Resource_List.{kind}={nodes}"
        )
    )
    workload = load_workload(path, "none")
    assert workload.requested_processors.tolist() == [processors]
    assert workload.allocated_processors.tolist() == [-1]


@pytest.mark.parametrize(
    "line",
    [
        *("06/06/2005;E;x", TORQUE[:300], TORQUE[:30], TORQUE.replace("end=1118088437", "end=1")),
        *(TORQUE.replace("ctime=1118087915", "ctime=abc"), TORQUE.replace("00:16:40", "long")),
        *(TORQUE.replace("n1/0+", "n1+"), TORQUE.replace("ctime", "c").replace("qtime", "q")),
        TORQUE.replace("=0 ", "=ok "),
    ],
)
def test_wrong_lines_of_pbs_are_skipped(tmp_path: Path, line: str) -> None:
    path = tmp_path / "log"
    path.write_text(f"{PRO}\n{line}")
    skipped = load_workload(path, "none", errors="skip")
    assert len(skipped) == 1
    assert sum(n for reason, n in skipped.cleaning.items() if reason.startswith("dropped")) == 1


@pytest.mark.parametrize(
    ("memory", "kilobytes"),
    [("3068kb", 750), ("3mb", 750), ("12.27M", 3068), ("4096b", 1), ("1gw", 2_048_000), ("8", 1)],
)
def test_memory_in_any_unit(tmp_path: Path, memory: str, kilobytes: int) -> None:
    path = tmp_path / "log"
    path.write_text(TORQUE.replace("3068kb", memory))  # of four processors
    assert load_workload(path, "none").used_memory.tolist() == [kilobytes]


QUEUED = [  # of a log without ctime, start and end in records E
    "01/01/2019 00:01:33;Q;10.eadm;queue=route",
    "01/01/2019 00:01:33;Q;10.eadm;queue=devel",
    "01/01/2019 00:01:40;S;10.eadm;user=ann Resource_List.nodes=4:ppn=40",
    "01/01/2019 00:01:44;S;10.eadm;user=ann Resource_List.nodes=4:ppn=40",
    "01/01/2019 00:28:07;E;10.eadm;Resource_List.nodes=4:ppn=40 resources_used.walltime=00:26:03",
]


def test_records_q_and_s_tell_what_e_does_not(tmp_path: Path) -> None:
    path = tmp_path / "log"
    more = [
        "01/01/2019 00:30:00;E;7.eadm;Resource_List.ncpus=2 resources_used.walltime=00:10:00",
        "01/01/2019 00:31:00;Q;11.eadm;queue=devel",
        "01/01/2019 00:51:00;E;11.eadm;Resource_List.ncpus=2 resources_used.walltime=00:10:00",
        "01/01/2019 00:32:00;Q;10.eadm;queue=devel",  # a number that is used again
        "01/01/2019 00:33:00;S;10.eadm;queue=devel",
        "01/01/2019 00:33:30;E;10.eadm;Resource_List.ncpus=1 resources_used.walltime=30",
        "01/01/2019 00:34:00;E;12.eadm;Resource_List.ncpus=1",
    ]
    for lines in ([*QUEUED, *more], [*more, *QUEUED]):  # of days that are joined in any order
        path.write_text("\n".join(lines) + "\n")
        workload = load_workload(path, "none", tz="Europe/Berlin")
        assert workload.job_number.tolist() == [10, 11, 10]
        assert workload.requested_processors.tolist() == [160, 2, 1]
        assert workload.submit_time.tolist() == [0, 1767, 1827]
        assert workload.wait_time.tolist() == [11, 600, 60]
        assert workload.run_time.tolist() == [1563, 600, 30]
        assert called(workload, "queue") == ["devel"] * 3
        assert called(workload, "user_id") == ["ann", None, None]
        assert workload.header["UnixStartTime"] == ["1546297293"]  # 00:01:33 in Berlin
        assert {
            reason: n for reason, n in workload.cleaning.items() if "missing" not in reason
        } == {
            "dropped: record Q, not of the end of a job": 4,
            "dropped: record S, not of the end of a job": 3,
            "dropped: queued before the log begins": 1,  # 7
            "dropped: ended before it started": 1,  # 12
            "repaired: start taken from the end and the walltime": 1,  # 11
            "repaired: nodes are not told, so its cores may lie on any": 1,
        }


def test_the_date_of_a_record_is_an_end_where_a_log_tells_no_other(tmp_path: Path) -> None:
    path = tmp_path / "log"
    lines = [line.replace(" resources_used.walltime=00:26:03", "") for line in QUEUED]
    path.write_text("\n".join(lines) + "\n")
    workload = load_workload(path, "none")
    assert workload.wait_time.tolist() == [11]
    assert workload.run_time.tolist() == [26 * 60 + 23]


def test_subjobs_are_jobs_of_their_own(tmp_path: Path) -> None:
    path = tmp_path / "log"
    names = ("408[3].srv", "408[11].srv", "410.srv", "409-2.srv")
    path.write_text("\n".join(TORQUE.replace("407.ign1.org", name) for name in names) + "\n")
    workload = load_workload(path, "none")
    assert sorted(zip(workload.array.tolist(), workload.job_number.tolist(), strict=True)) == [
        (-1, 410), (408, 411), (408, 412), (409, 413)
    ]  # fmt: skip
    assert workload.cleaning == {}


def test_times_may_have_decimals_and_entries_no_value(tmp_path: Path) -> None:
    path = tmp_path / "log"
    text = TORQUE.replace("ctime=1118087915 ", "ctime=1118087915.4 ")
    text = text.replace("start=1118088366", "start=1118088366.5")
    text = text.replace("end=1118088437", "end=1118088437.49").replace("group=phys", "group=None")
    path.write_text(text.replace("00:01:11", "71.0"))
    workload = load_workload(path, "none")
    assert workload.wait_time.tolist() == [452]
    assert workload.run_time.tolist() == [70]
    assert called(workload, "group_id") == [None]


# --- Batsim ---------------------------------------------------------------------------------------

BATSIM: dict[str, Any] = {
    "nb_res": 4,
    "jobs": [
        {"id": "w0!7", "subtime": 10.5, "walltime": 30, "res": 2, "profile": "a"},
        {"id": 8, "subtime": 3, "res": 4, "profile": "b", "dependencies": ["w0!7"]},
        {"id": 9, "subtime": 20, "walltime": 0, "res": 1, "profile": "b"},
    ],
    "profiles": {"a": {"type": "delay", "delay": 20.25},
                 "b": {"type": "DelayProfile", "delay": 7}},
}  # fmt: skip


def test_workloads_of_batsim(tmp_path: Path) -> None:
    path = tmp_path / "jobs.json.gz"
    path.write_bytes(gzip.compress(json.dumps(BATSIM).encode()))
    assert format_of(path) == "batsim"
    workload = load_workload(path, "none")
    assert (workload.name, workload.processors) == ("jobs.json.gz", 4)
    assert workload.job_number.tolist() == [8, 7, 9]
    assert workload.submit_time.tolist() == [3, 11, 20]
    assert workload.run_time.tolist() == [7, 20, 7]
    assert workload.requested_time.tolist() == [-1, 30, -1]
    assert workload.requested_processors.tolist() == [4, 2, 1]
    assert workload.cleaning["not used: dependencies"] == 1
    assert load_workload(path, "none", processors=9).processors == 9


def test_profiles_that_are_no_delays_are_skipped_by_name(tmp_path: Path) -> None:
    path = tmp_path / "jobs.json"
    profiles = {**BATSIM["profiles"], "a": {"type": "smpi"}}
    path.write_text(json.dumps({**BATSIM, "profiles": profiles}))
    workload = load_workload(path, "none", errors="skip")
    assert workload.cleaning["dropped: profile of type smpi"] == 1
    assert workload.job_number.tolist() == [8, 9]


def test_the_formats_and_what_they_are_of(tmp_path: Path) -> None:
    assert list(FORMATS)[-1] == "swf"
    for name, content, expected in (
        ("a.txt", "; MaxProcs: 4\n1 0 0 9 1\n", "swf"),
        ("a.csv", "submit_time,run_time\n", "table"),
        ("a.json", '{"jobs": [{"submit_time": 0}]}', "table"),
        ("a.csv", "JobID,State,Submit,Start\n", "sacct"),
        ("b.txt", "", "swf"),
    ):
        path = tmp_path / name
        path.write_text(content)
        assert format_of(path) == expected, content


test_mistakes = mistakes_of(globals(), json, errors=WorkloadError)
