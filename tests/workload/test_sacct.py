"""Dumps of sacct: all that is read, what is wrong, and the nice of jobs."""

from __future__ import annotations

import gzip
import warnings
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from drawing import given
from drawing import strategies as st
from mistakes import mistakes_of
from sacct_dumps import EPOCH, IN_WORDS, STATUS, dump

from hpcgym import forecast, load_workload, simulate, snapshot, validate_schedule
from hpcgym.errors import HpcgymError, WorkloadError, WorkloadWarning
from hpcgym.machine import Cluster, NodeGroup
from hpcgym.names import MOST_NICE
from hpcgym.workload import Workload
from hpcgym.workload.io.swf_header import names_of
from hpcgym.workload.load import format_of

pytestmark = pytest.mark.filterwarnings("ignore::hpcgym.errors.WorkloadWarning")


def read(folder: Path, text: str, **options: object) -> Workload:
    path = folder / "jobs.txt"
    path.write_text(text)
    return load_workload(path, "none", **options)  # type: ignore[arg-type]


def called(workload: Workload, column: str) -> list[str | None]:
    names = names_of(workload, column)
    return [names.get(number) for number in workload.columns[column].tolist()]


NOW = """\
JobID|User|State|Submit|Eligible|Start|ElapsedRaw|End|TimelimitRaw|AllocCPUS|ReqCPUS
1|alice|COMPLETED|2024-05-01T08:00:00|2024-05-01T08:00:00|2024-05-01T08:10:00|600|2024-05-01T08:20:00|60|4|4
2|bob|RUNNING|2024-05-03T08:00:00|2024-05-03T08:00:00|2024-05-03T08:05:00|3300|Unknown|120|8|8
3|alice|PENDING|2024-05-03T08:30:00|2024-05-03T08:30:00|Unknown|0|Unknown|240|0|16
4|carol|PENDING|2024-05-03T08:31:00|Unknown|Unknown|0|Unknown|240|0|16
5|carol|CANCELLED by 7|2024-05-03T08:31:00|2024-05-03T08:31:00|None|0|Unknown|240|0|16
6|alice|PENDING|2024-05-03T08:32:00|2024-05-04T08:00:00|Unknown|0|Unknown|240|0|16
7|alice|REQUEUE_HOLD|2024-05-03T08:30:00|2024-05-03T08:30:00|Unknown|0|Unknown|240|0|16
"""


@pytest.mark.parametrize("without", ["", "ElapsedRaw"])
def test_a_dump_of_now_is_a_state(tmp_path: Path, without: str) -> None:
    """Job 2 runs, 3 waits; 4 and 7 are held, 6 is to wait until tomorrow."""
    path = tmp_path / "now.txt"
    path.write_text(NOW.replace(without, "Comment") if without else NOW)
    log = load_workload(path, "unfinished", processors=16)
    assert log.job_number.tolist() == [1, 2, 3, 6]
    assert log.submit_time.tolist() == [0, 172_800, 174_600, 259_200]
    assert log.wait_time.tolist() == [600, 300, -1, -1]
    assert log.run_time.tolist() == [600, -1, -1, -1]
    assert log.requested_processors.tolist() == [4, 8, 16, 16]
    dropped = {reason: n for reason, n in log.cleaning.items() if reason.startswith("dropped")}
    assert dropped == {
        "dropped: PENDING and not eligible when the log was written": 1,
        "dropped: REQUEUE_HOLD and not eligible when the log was written": 1,
        "dropped: CANCELLED before it started": 1,
    }
    state = snapshot(path, "2024-05-03T09:00", processors=16)
    assert (state.jobs.job_number.tolist(), state.running.tolist()) == ([2, 3], [True, False])
    assert state.past.job_number.tolist() == [1]
    starts = forecast(state, "easy", futures=4).of(3).starts - state.time
    assert (starts[0] > 0, starts[-1] <= 65 * 60) == (True, True)  # job 2 ends by 10:05
    usual = load_workload(path, processors=16)
    assert usual.job_number.tolist() == [1]
    assert usual.cleaning["dropped: PENDING when the log was written"] == 3


@pytest.mark.parametrize("named", ["JobID", "JobIDRaw"])
def test_tasks_of_arrays_wait_each_in_a_dump_of_now(tmp_path: Path, named: str) -> None:
    lines = [
        f"{named}|State|Submit|Start|ElapsedRaw|TimelimitRaw|ReqCPUS",
        "7_1|COMPLETED|2024-05-03T08:00:00|2024-05-03T08:00:00|60|60|2",
        "7_[3-9:3,12%2]|PENDING|2024-05-03T08:00:00|Unknown|0|60|2",
        "7_[3-9:3,12%2]|PENDING|2024-05-03T08:00:00|Unknown|0|60|2",  # spans overlap
        "9_[...]|PENDING|2024-05-03T08:10:00|Unknown|0|60|1",
        "11|RUNNING|2024-05-03T08:00:00|2024-05-03T08:01:00|60|60|4",
    ]
    path = tmp_path / "now.txt"
    path.write_text("\n".join(lines) + "\n")
    state = snapshot(path, "2024-05-03T08:05", processors=8)
    assert state.jobs.requested_processors.tolist() == [2, 2, 2, 2, 4]
    assert state.running.tolist() == [False] * 4 + [True]
    assert len({*state.jobs.job_number.tolist()}) == 5
    assert state.jobs.submit_time.tolist() == [0] * 5
    usual = load_workload(path, processors=8)
    assert usual.cleaning["dropped: tasks of an array that had not started"] == 3


def check_dump(folder: Path, seed: int, records: int) -> Workload:
    made = dump(seed, records)
    workload = read(folder, made.text)
    cleaning = dict(workload.cleaning)
    dropped = {r: n for r, n in cleaning.items() if r.startswith("dropped: ")}
    assert dropped == {f"dropped: {reason}": n for reason, n in made.dropped.items()}
    assert len(workload) + sum(dropped.values()) == made.lines
    assert len(workload) == len(made.jobs)
    first = min(job["submit"] for job in made.jobs)
    jobs = sorted(enumerate(made.jobs), key=lambda pair: (pair[1]["submit"], pair[0]))
    expected = [job for _, job in jobs]
    assert workload.header["UnixStartTime"] == [str(int(EPOCH.timestamp()) + first)]
    for column, values in {
        "submit_time": [job["submit"] - first for job in expected],
        "wait_time": [job["wait"] for job in expected],
        "run_time": [job["run"] for job in expected],
        "job_number": [job["raw"] for job in expected],
        "allocated_processors": [job["cores"] for job in expected],
        "requested_processors": [job["cores"] for job in expected],
        "requested_time": [IN_WORDS.get(job["limit"], job["limit"]) for job in expected],
        "status": [STATUS.get(job["state"], 0) for job in expected],
    }.items():
        assert workload.columns[column].tolist() == values, column
    for column, key in {
        "user_id": "user",
        "group_id": "account",
        "partition": "partition",
        "queue": "qos",
    }.items():
        assert called(workload, column) == [job[key] for job in expected]
    if "JobID" in made.fields:
        ids = [str(job["id"]).partition("_") for job in expected]
        assert workload.array.tolist() == [int(array) if task else -1 for array, _, task in ids]
    if "AllocTRES" in made.fields:
        gpus = [job["gpus"] for job in expected]
        assert workload.units is not None
        assert (workload.units * workload.per_unit["gpu"]).tolist() == gpus
        held = (workload.units * workload.per_unit["mem"]).tolist()
        assert held == [job["mem"] for job in expected]
    if {"AllocTRES", "NNodes", "ReqNodes"} & {*made.fields}:
        assert workload.units is not None
        assert workload.units.tolist() == [job["nodes"] for job in expected]
        assert (workload.units_per_node[workload.units > 1] == 1).all()
    else:
        assert workload.units is None
        kilobytes = workload.requested_memory * workload.requested_processors
        asked = np.array([job["mem"] * 1000 for job in expected])
        assert (kilobytes >= asked).all()
        assert (kilobytes - asked < workload.requested_processors).all()
    for reason, number in {
        "repaired: run that was not the last of its job taken for a job of its own": made.notes[
            "requeued"
        ],
        "not used: how many tasks of an array may run at once, %": made.notes["throttled"]
        * ("JobID" in made.fields),
    }.items():
        assert cleaning.get(reason, 0) == number
    for limit, taken in (
        ("UNLIMITED", "365 days, as Slurm plans with"),
        ("Partition_Limit", "unknown"),
    ):
        number = sum(job["limit"] == limit for job in made.jobs) + made.notes[limit]
        assert cleaning.get(f"repaired: time limit {limit} taken for {taken}", 0) == number
    return workload


@given(seed=st.integers(0, 2**32), records=st.integers(20, 120))
def test_dumps_of_any_fields(
    tmp_path_factory: pytest.TempPathFactory, seed: int, records: int
) -> None:
    check_dump(tmp_path_factory.mktemp("dump"), seed, records)


# --- Heterogeneous jobs ---------------------------------------------------------------------------

PARTS = (
    "JobID|JobIDRaw|User|Account|Partition|QOS|State|Submit|Start|ElapsedRaw|TimelimitRaw|NNodes|"
    "AllocTRES"
)
APART = "repaired: component of a heterogeneous job taken for a job of its own"
JOINED = "dropped: component of a heterogeneous job, which is one job with the first"


def parts(*components: str, **changes: dict[int, str]) -> str:
    """A dump of job 7 of one component for each text: its nodes and its TRES."""
    rows = []
    for k, component in enumerate(components):
        nodes, _, tres = component.partition(" ")
        row = {
            "JobID": f"7+{k}", "JobIDRaw": str(7 + k), "User": "a", "Account": "x",
            "Partition": "p", "QOS": "q", "State": "COMPLETED", "Submit": "2024-03-01T12:00:00",
            "Start": "2024-03-01T12:00:10", "ElapsedRaw": "60", "TimelimitRaw": "10",
            "NNodes": nodes, "AllocTRES": tres,
        }  # fmt: skip
        row |= {name: texts[k] for name, texts in changes.items() if k in texts}
        rows.append("|".join(row.values()))
    return "\n".join([PARTS, *reversed(rows)]) + "\n"


@pytest.mark.parametrize(
    ("components", "units", "core"),
    [
        (["1 cpu=4,mem=8G", "3 cpu=12,mem=24G"], 4, 4),
        (["1 cpu=4,gres/gpu=2", "2 cpu=8,gres/gpu=4", "1 cpu=4,gres/gpu=2"], 4, 4),
        ([" cpu=4,gres/gpu=2", " cpu=6,gres/gpu=3"], 5, 2),  # nodes are not told
        (["2 cpu=7", "2 cpu=7"], 14, 1),  # cores, four at most on a node
    ],
)
def test_components_with_the_same_share_of_a_node_are_one_job(
    tmp_path: Path, components: list[str], units: int, core: int
) -> None:
    workload = read(tmp_path, parts(*components, ElapsedRaw={1: "50"}))
    assert workload.job_number.tolist() == [7]
    assert workload.units is not None
    assert (workload.units.tolist(), workload.per_unit["core"].tolist()) == ([units], [core])
    assert workload.requested_processors.tolist() == [units * core]
    assert (workload.run_time.tolist(), workload.requested_time.tolist()) == ([60], [600])
    cleaning = dict(workload.cleaning)
    assert cleaning[JOINED] == len(components) - 1
    assert cleaning["repaired: component of a heterogeneous job that ended before the longest"] == 1
    assert APART not in cleaning


UNLIKE = ["1 cpu=4,mem=8G,gres/gpu=4", "3 cpu=48,mem=24G"]


@pytest.mark.parametrize(
    ("components", "changes"),
    [
        (UNLIKE, {}),
        (["1 cpu=4,mem=8G", "1 cpu=4,mem=9G"], {}),
        (["1 cpu=4", "1 cpu=8"], {}),
        (["1 cpu=4", " cpu=4"], {}),
        (["1 cpu=4", "1 cpu=4"], {"Partition": {1: "other"}}),
        (["1 cpu=4", "1 cpu=4"], {"Account": {1: "other"}}),
        (["1 cpu=4", "1 cpu=4"], {"TimelimitRaw": {1: "20"}}),
        (["1 cpu=4", "1 cpu=4"], {"Start": {1: "2024-03-01T12:00:11"}}),
    ],
)
def test_components_that_no_equal_units_can_say_stay_apart(
    tmp_path: Path, components: list[str], changes: dict[str, dict[int, str]]
) -> None:
    workload = read(tmp_path, parts(*components, **changes))
    assert sorted(workload.job_number.tolist()) == [7, 8]
    assert dict(workload.cleaning)[APART] == 2


def test_on_a_pool_components_are_one_job_of_all_their_processors(tmp_path: Path) -> None:
    text = parts(*UNLIKE, Partition={1: "gpu"})
    workload = read(tmp_path, text, processors=100)
    assert workload.requested_processors.tolist() == [52]
    assert called(workload, "partition") == ["p"]
    assert dict(workload.cleaning)[JOINED] == 1
    # by hand: 20 processors are free at 10 s, for the second component alone, and 52 at 40 s
    other = "3||b|x|p|q|COMPLETED|2024-03-01T11:59:50|2024-03-01T11:59:50|50|10|5|cpu=80\n"
    both = simulate(read(tmp_path, text + other, processors=100), "fcfs")
    assert both.start.tolist() == [0, 50]


def test_runs_of_a_heterogeneous_job_are_runs_of_one_job(tmp_path: Path) -> None:
    first = parts("1 cpu=4", "1 cpu=4", State=dict.fromkeys((0, 1), "NODE_FAIL"))
    again = parts("1 cpu=4", "1 cpu=4", Start=dict.fromkeys((0, 1), "2024-03-01T12:05:00"))
    workload = read(tmp_path, first + again.partition("\n")[2])
    assert workload.job_number.tolist() == [7, 7]
    assert workload.requested_processors.tolist() == [8, 8]
    # the second run was submitted as the first had ended, at 70 s
    assert workload.submit_time.tolist() == [0, 70]


# --- Single dumps ---------------------------------------------------------------------------------

AGAIN = "run that was not the last of its job taken for a job of its own"
HEAD = "JobID|User|State|Submit|Start|End|AllocCPUS"
JOB = "7|alice|COMPLETED|2024-03-01T12:00:00|2024-03-01T12:00:10|2024-03-01T12:01:00|4"


def text(*lines: str, head: str = HEAD) -> str:
    return "\n".join([head, *lines]) + "\n"


@pytest.mark.filterwarnings("default::hpcgym.errors.WorkloadWarning")
def test_a_last_line_that_may_be_cut_is_told(tmp_path: Path) -> None:
    whole = text(JOB, JOB.replace("7|", "8|").replace("|4", "|128"))
    with pytest.warns(WorkloadWarning, match=r"jobs\.txt, line 3: this last line has no end"):
        assert read(tmp_path, whole[:-2], processors=256).requested_processors.tolist() == [4, 12]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(read(tmp_path, whole, processors=256)) == 2


def test_lines_that_are_wrong_are_skipped_and_counted_once(tmp_path: Path) -> None:
    wrong = [
        JOB.replace("COMPLETED", "COMPLETE").replace("|4", "|x"),
        JOB[:30],
        JOB.replace("alice", "al|ice"),
        JOB.replace("|4", "|x"),
        "",
    ]
    # as of ``cat january.txt february.txt``, with a job that ran in both
    workload = read(tmp_path, text(JOB, *wrong, HEAD, JOB), errors="skip")
    assert workload.cleaning == {
        "dropped: line that stands there twice": 1,
        "dropped: line with the names of fields again": 1,
        "dropped: line with too few fields": 1,
        "dropped: line with too many fields": 1,
        "dropped: line with a wrong State": 1,
        "dropped: line with a wrong AllocCPUS": 1,
    }
    assert len(workload) == 1


@given(data=st.data())
def test_damaged_dumps_lose_no_line(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    """Whatever stands in a dump: it is refused in one line, or each of its lines is counted."""
    content = dump(data.draw(st.integers(0, 99)), 30).text
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(content.index("\n"), len(content)))
        damage = st.sampled_from(["", "|", "||", "\n", "x", "-", ":", "é", "\x1b", "9" * 30, " "])
        content = content[:place] + data.draw(damage) + content[place + 1 :]
    if data.draw(st.booleans()):
        content = content[: data.draw(st.integers(0, len(content)))]
    folder = tmp_path_factory.mktemp("dump")
    lines = [line for line in content.split("\n")[1:] if line.strip()]
    workload = tried(folder, content, "skip")
    if isinstance(workload, str):
        assert "jobs.txt" in workload
        assert "\n" not in workload
        return
    kinds = ("dropped: ", "repaired: line with which a record goes on")
    counted = [n for reason, n in workload.cleaning.items() if reason.startswith(kinds)]
    assert len(workload) + sum(counted) == len(lines)
    strict = tried(folder, content, "raise")
    assert not isinstance(strict, str) or ", line " in strict


def tried(folder: Path, content: str, errors: str) -> Workload | str:
    """The workload of a dump, or what is wrong with it."""
    try:
        return read(folder, content, errors=errors, format="sacct")
    except WorkloadError as error:
        return str(error)


def test_separators_of_all_kinds(tmp_path: Path) -> None:
    for separator in (",", ";", "\t", "^"):
        workload = read(tmp_path, text(JOB).replace("|", separator))
        assert called(workload, "user_id") == ["alice"]
    packed = tmp_path / "packed.txt"
    packed.write_bytes(gzip.compress(text(JOB).encode()))
    assert format_of(packed) == "sacct"
    assert len(load_workload(packed, "none", format="sacct")) == 1


def test_clocks_that_are_set_back(tmp_path: Path) -> None:
    """On 27 October 2024 at 3 h summer time Berlin had 2 h once more."""
    jobs = [
        # submitted at 2:50 summer time, started 20 minutes later, for an hour
        "1|a|COMPLETED|2024-10-27T02:50:00|2024-10-27T02:10:00|2024-10-27T03:10:00|4",
        "2|a|COMPLETED|2024-10-27T01:00:00|2024-10-27T01:30:00|2024-10-27T04:30:00|4",
    ]
    workload = read(tmp_path, text(*jobs), tz="Europe/Berlin")
    assert workload.submit_time.tolist() == [0, 110 * 60]
    assert workload.wait_time.tolist() == [30 * 60, 20 * 60]
    assert workload.run_time.tolist() == [4 * 3600, 3600]
    assert workload.header["TimeZoneString"] == ["Europe/Berlin"]
    untold = read(tmp_path, text(*jobs))
    assert untold.run_time.tolist() == [3 * 3600, 3600]
    assert untold.wait_time.tolist() == [30 * 60, 0]
    moved = "repaired: submit_time moved to the start, which the log has before it"
    assert untold.cleaning == {moved: 1}
    assert "TimeZoneString" not in untold.header
    assert untold.header["Note"] == ["times without a time zone, taken for UTC"]


def test_a_job_comes_when_it_is_eligible(tmp_path: Path) -> None:
    """Unless that is unknown, or after its start, which no schedule can mean."""
    times = ("12:00:05", "12:00:20", "")
    rows = [f"{k}{JOB[1:]}|{time and f'2024-03-01T{time}'}" for k, time in enumerate(times, 7)]
    workload = read(tmp_path, text(*rows, head=f"{HEAD}|Eligible"))
    assert workload.job_number.tolist() == [8, 9, 7]
    assert workload.submit_time.tolist() == [0, 0, 5]
    assert workload.wait_time.tolist() == [10, 10, 5]
    held = "repaired: submit_time moved to when the job became eligible"
    assert workload.cleaning == {held: 1}


def test_durations_memory_and_resources(tmp_path: Path) -> None:
    head = "JobID|Submit|Start|Elapsed|Timelimit|ReqCPUS|ReqMem|ReqTRES|NNodes"
    times = "2024-03-01T12:00:00|2024-03-01T12:00:00"
    rows = [
        f"1|{times}|1-00:00:01|2-00:00:00|4|4Gc||1",
        f"2|{times}|10:05.623|00:10:00|4|2000Mn||2",
        f"3|{times}|00:00:09|UNLIMITED|4|0n||2",
        f"4|{times}|00:00:09||6||cpu=6,mem=1.5T,node=3,gres/gpu:a=3,gres/gpu:b=6,gres/gpumem=9G|3",
        f"5|{times}|00:00:09||7||cpu=7,mem=700M,node=2|2",
        f"6|{times}|00:00:09||4||cpu=4,node=2,gres/gpu=3|2",  # two GPUs on each, as on the first
        f"7|{times}|00:00:09||9||cpu=9,node=2,gres/gpu=3|2",  # two of three thirds on one node
        f"8|{times}|00:00:09||9||cpu=9,node=4,gres/gpu=6,gres/fpga=3|4",
    ]
    workload = read(tmp_path, text(*rows, head=head), processors=8)
    assert workload.run_time.tolist() == [86_401, 606, *[9] * 6]
    assert workload.requested_time.tolist() == [172_800, 600, 31_536_000, *[-1] * 5]
    assert workload.units is not None
    assert workload.units.tolist() == [1, 2, 2, 3, 7, 2, 3, 4]
    assert workload.units_per_node.tolist() == [-1, 1, 1, 1, 4, 1, 2, 1]  # 7 cores: 4 and 3
    assert workload.per_unit["core"].tolist() == [4, 2, 2, 2, 1, 2, 3, 3]
    assert workload.per_unit["gpu"].tolist() == [0, 0, 0, 3, 0, 2, 1, 2]
    assert workload.per_unit["mem"].tolist() == [16_384, 2000, 0, 512 * 1024, 100, 0, 0, 0]
    assert workload.requested_memory.tolist()[:3] == [4_096_000, 1_000_000, -1]
    reason = (
        "repaired: cores, GPUs or the like that its nodes cannot share alike: as many on each as on"
        " the largest"
    )
    assert workload.cleaning[reason] == 2


def test_nodes_are_what_the_log_tells(tmp_path: Path) -> None:
    """A unit is a share of a node; of jobs without told nodes, and of uneven shares, a core."""
    head = "JobID|Submit|Start|Elapsed|Timelimit|AllocCPUS|NNodes"
    times = "2024-03-01T12:00:00|2024-03-01T12:00:00|00:10:00|00:10:00"
    asked = [(6, "1"), (8, "2"), (7, "2"), (5, "")]
    rows = [f"{job}|{times}|{cores}|{nodes}" for job, (cores, nodes) in enumerate(asked, 1)]
    workload = read(tmp_path, text(*rows, head=head), processors=16)
    assert workload.units is not None
    assert workload.requested_processors.tolist() == [6, 8, 7, 5]
    assert workload.units.tolist() == [1, 2, 7, 5]
    assert workload.per_unit["core"].tolist() == [6, 4, 1, 1]
    assert workload.units_per_node.tolist() == [-1, 1, 4, -1]
    reason = "repaired: nodes are not told, so its cores may lie on any"
    assert workload.cleaning == {reason: 1}
    path = tmp_path / "jobs.txt"
    machine = Cluster(groups=(NodeGroup("n", 3, {"core": 8}),))
    there = load_workload(path, "none", cluster=machine)  # 7 cores on two nodes are four on each
    assert there.units is not None
    assert there.units.tolist() == [1, 2, 2, 5]
    assert there.per_unit["core"].tolist() == [6, 4, 4, 1]
    # three nodes of 8 cores: job 1 has 6 of node 0, job 2 four of two nodes, job 3 no more than 4
    # of one, and job 4 what is left
    machine = Cluster(groups=(NodeGroup("n", 3, {"core": 8}),))
    result = simulate(workload, cluster=machine, backfill="none")
    first, node, units = result.allocation
    cells = [
        dict(zip(node[a:b].tolist(), units[a:b].tolist(), strict=True))
        for a, b in pairwise(first.tolist())
    ]
    assert result.start.tolist() == [0, 0, 0, 600]
    assert cells == [{0: 1}, {1: 1, 2: 1}, {0: 2, 1: 4, 2: 1}, {0: 5}]
    validate_schedule(result)


def test_jobs_of_several_clusters(tmp_path: Path) -> None:
    """Each has its own ids, arrays and followers; a machine takes those of its name."""
    head = HEAD + "|Cluster|Dependency"
    rows = [f"{JOB}|alpha|", f"{JOB}|beta|", f"8{JOB[1:]}|beta|afterok:7", f"9_1{JOB[1:]}|beta|"]
    workload = read(tmp_path, text(*rows, head=head))
    assert workload.job_number.tolist() == [7, 17, 18, 20]
    assert workload.preceding_job.tolist() == [-1, -1, 17, -1]
    reason = "repaired: job numbered anew, for one of another cluster has its number"
    assert workload.cleaning[reason] == 3
    for name, numbers in (("alpha", [7]), ("Beta", [7, 8, 10]), ("gamma", [7, 8, 10])):
        (tmp_path / "slurm.conf").write_text(
            f"ClusterName={name}\nNodeName=n1 CPUs=8\nPartitionName=batch Nodes=n1\n"
        )
        mine = read(tmp_path, text(*rows, head=head), cluster=tmp_path / "slurm.conf")
        assert mine.job_number.tolist() == numbers
        other = {"alpha": "beta"}.get(name, "alpha")
        assert mine.cleaning[f"dropped: job of another cluster, {other}"] == 4 - len(numbers)
    elsewhere = [row.replace("7|", "17|").replace("|beta", "|") for row in rows[1:]]
    alone = read(tmp_path, text(*elsewhere, head=head), cluster=tmp_path / "slurm.conf")
    assert len(alone) == 3
    apart = read(tmp_path, text(rows[0], rows[2], head=head))  # no id is there twice
    assert apart.job_number.tolist() == [7, 8]


def test_a_number_that_is_used_again_is_no_run_of_the_job_before(tmp_path: Path) -> None:
    """As sacct --duplicates prints them: the second was requeued, the third came a day later."""
    rows = [
        JOB.replace("COMPLETED", "NODE_FAIL"),
        JOB.replace("12:01:00", "12:03:00").replace("12:00:10", "12:02:00"),
        JOB.replace("2024-03-01", "2024-03-02"),
    ]
    workload = read(tmp_path, text(*rows))
    assert workload.submit_time.tolist() == [0, 60, 86_400]
    assert workload.wait_time.tolist() == [10, 60, 10]
    assert workload.cleaning["repaired: " + AGAIN] == 1


@pytest.mark.parametrize(
    ("printed", "megabytes"),
    [  # of a job of 4 cores on 2 nodes
        ("4000Mn", 8000), ("4Gc", 16_384), ("0n", None), ("0Mc", None), ("", None),
        ("1.50Gn", 3072), ("512K", 1), ("2T", 2 << 20), ("1P", 1 << 30), ("2Pc", None),
        ("2147487648Mn", 16_000), ("2147487648Mc", 16_000), ("2147487648M", 16_000),
        ("2097156Gn", 16_384), ("2049Tn", 4 << 20), ("2147483648Kn", 4 << 20),
        ("2Pn", None), ("4294967294Mn", None), ("2147483646Mc", None), ("1048576M", 1 << 20),
        ("9223372036854779808", 16_000), ("9223372036854779808M", 16_000),
        ("9223372036854779808Mn", 16_000), ("9007199254740996G", 16_384),
        ("18446744073709551614", None), ("18446744073709551615M", None),
    ],
)  # fmt: skip
def test_memory_as_any_slurm_prints_it(tmp_path: Path, printed: str, megabytes: int | None) -> None:
    """The highest bit of 32 or 64 marks memory of each core, where no node has so much."""
    row = f"{JOB}|{printed}|2"
    workload = read(tmp_path, text(row, head=f"{HEAD}|ReqMem|NNodes"))
    kilobytes = -1 if megabytes is None else -(-megabytes * 1000 // 4)
    assert workload.requested_memory.tolist() == [kilobytes]


def test_generic_resources_are_what_jobs_hold(tmp_path: Path) -> None:
    head = "JobID|Submit|Start|Elapsed|AllocCPUS|ReqTRES|AllocTRES"
    times = "2024-03-01T12:00:00|2024-03-01T12:00:00|00:10:00"
    rows = [
        f"1|{times}|2||cpu=2,node=1,gres/fpga=2",
        f"2|{times}|4||cpu=4,node=2,gres/fpga:u280=2,gres/gpu:a=2,gres/gpu=4,gres/gpumem=9",
        f"3|{times}|2||cpu=2,node=1,license/matlab=1",
        f"4|{times}|2|cpu=2,node=1,gres/fpga=1|",
        f"5|{times}|2||cpu=2,node=1,gres/users=1,gres/core=1",
    ]
    workload = read(tmp_path, text(*rows, head=head), processors=16)
    assert workload.units is not None
    assert workload.units.tolist() == [1, 2, 1, 1, 1]
    assert {name: demand.tolist() for name, demand in workload.per_unit.items()} == {
        "core": [2, 2, 2, 2, 2],
        "gpu": [0, 2, 0, 0, 0],
        "fpga": [2, 1, 0, 1, 0],
    }
    assert workload.cleaning == {
        "not used: gres/core, which is no name of a resource here": 1,
        "not used: gres/users, which is no name of a resource here": 1,
        "not used: types of gres/fpga by which the machine does not tell nodes apart": 1,
        "not used: types of gres/gpu by which the machine does not tell nodes apart": 1,
    }


def test_what_is_told_and_not_used_is_counted(tmp_path: Path) -> None:
    head = f"{HEAD}|Priority|Reason|Dependency"
    rows = [f"{JOB}|5|None|", f"{JOB[1:]}".join(["8", "|6|Licenses|afterok:7"])]
    rows += ["9" + JOB[1:] + "||(null)|afterok:7:8"]
    workload = read(tmp_path, text(*rows, head=head))
    assert workload.preceding_job.tolist() == [-1, 7, 7]
    assert workload.more_preceding is not None
    assert workload.more_preceding.tolist() == [[9, 8]]
    assert workload.cleaning == {
        "not used: Priority": 2,
        "not used: Reason": 1,
    }


def test_a_log_is_simulated_without_more_words(tmp_path: Path) -> None:
    path = tmp_path / "jobs.txt"
    path.write_text(text(JOB, "8" + JOB[1:]))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        workload = load_workload(path)
    assert len(caught) == 1
    assert "taken to be 8 processors" in str(caught[0].message)
    assert len(simulate(workload, "easy").wait) == 2


LIFTED = "repaired: nice of -1, which stands for an unknown one, taken for 0"
NO_NICE = "repaired: nice that is no number from -2,147,483,645 to 2,147,483,645 taken for 0"


@pytest.mark.parametrize(
    ("line", "nice", "reason"),
    [
        ("sbatch run.sh", 0, ""),
        ("sbatch --nice run.sh", 100, ""),
        ("sbatch -n 4 --nice=50 run.sh", 50, ""),
        ("sbatch --nice=-20 a|b", -20, ""),
        ("sbatch --nice=+7 run.sh", 7, ""),
        ("sbatch --ni=5 run.sh", 5, ""),
        ("sbatch --nice=5 --nice=6 run.sh", 6, ""),
        ("sbatch --nice=5 --nice run.sh", 100, ""),
        ("srun --nice 50 run.sh", 100, ""),  # 50 is what is run
        ("sbatch --nice=12abc run.sh", 12, ""),
        ("sbatch --nice=abc run.sh", 0, NO_NICE),
        ("sbatch --nice=-1 run.sh", 0, LIFTED),
        (f"sbatch --nice={MOST_NICE} run.sh", MOST_NICE, ""),
        (f"sbatch --nice={MOST_NICE + 1} run.sh", 0, NO_NICE),
        ("sbatch --nicer=5 run.sh", 0, ""),
        ("sbatch --n=5 run.sh", 0, ""),
        ("sbatch x--nice=5", 0, ""),
        ("", 0, ""),
    ],
)
def test_nice_of_commands(tmp_path: Path, line: str, nice: int, reason: str) -> None:
    usual = "8" + JOB[1:] + "|sbatch --nice=3 a.sh"
    workload = read(tmp_path, text(usual, f"{JOB}|{line}", head=f"{HEAD}|SubmitLine"))
    assert workload.nice.tolist() == [3, nice]
    assert workload.cleaning == ({reason: 1} if reason else {})


def test_nice_of_squeue_and_of_nobody(tmp_path: Path) -> None:
    rows = [f"{k}{JOB[1:]}|{nice}" for k, nice in enumerate(("5", "", "-7", "-1"), 1)]
    workload = read(tmp_path, text(*rows, head=f"{HEAD}|NICE"))
    assert workload.nice.tolist() == [5, 0, -7, 0]
    assert workload.cleaning[LIFTED] == 1
    assert "nice" not in read(tmp_path, text(f"{JOB}|0", head=f"{HEAD}|Nice")).to_pandas()


def test_ends_that_are_not_start_and_elapsed_are_counted(tmp_path: Path) -> None:
    """Of five lines two: job 3 was suspended for 40 s, and job 5 ended before it began.

    Job 4 is a second off, and job 2 has no End.
    """
    ends = ("1709287300", "Unknown", "1709287300", "1709287300", "1709280000")
    times = zip((100, 100, 60, 99, 9), ends, strict=True)
    lines = [
        f"{job}|COMPLETED|1709287200|1709287200|{end}|{ran}|10|1"
        for job, (ran, end) in enumerate(times, 1)
    ]
    head = "JobID|State|Submit|Start|End|ElapsedRaw|TimelimitRaw|AllocCPUS"
    workload = read(tmp_path, "\n".join([head, *lines, ""]), processors=4)
    assert workload.run_time.tolist() == [100, 100, 60, 99, 9]
    reason = "not used: End that is not Start + Elapsed, as where Slurm suspended the job"
    assert workload.cleaning == {reason: 2}


test_mistakes = mistakes_of(globals(), errors=HpcgymError)
