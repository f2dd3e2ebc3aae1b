"""What partitions let a job ask for: by hand, beside all ways to choose nodes, from a file."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import pytest
from drawing import given
from drawing import strategies as st
from typer.testing import CliRunner

import hpcgym
from hpcgym.cli import app
from hpcgym.cluster import Cluster, NodeGroup, Partition
from hpcgym.errors import HpcgymError, WorkloadError
from hpcgym.workload import within_limits
from hpcgym.workload.model import Workload
from hpcgym.workload.partition_limits import OVER_LIMITS, fewest_nodes, most_nodes

CONF = """\
NodeName=a[1-4] CPUs=4
PartitionName=batch Nodes=a[1-4] MaxTime=60 DefaultTime=10 MaxNodes=2
PartitionName=long Nodes=a[1-4] MaxTime=100
PartitionName=free Nodes=a[1-4]
"""
ALLOWED = "has an account that is none of the AllowAccounts"
_REPAIRED = "repaired: requested_time taken from the DefaultTime or MaxTime of its partition"


def table(folder: Path, *rows: tuple[str, int, int, int]) -> tuple[str, str]:
    """Return files of jobs (partition, processors, run time, requested time) and of a machine."""
    lines = ["submit_time,partition_name,requested_processors,run_time,requested_time"]
    lines += [",".join(map(str, (place, *row))) for place, row in enumerate(rows)]
    (folder / "jobs.csv").write_text("\n".join(lines) + "\n")
    (folder / "slurm.conf").write_text(CONF)
    return str(folder / "jobs.csv"), str(folder / "slurm.conf")


def test_jobs_that_ask_for_more_are_an_error_or_dropped(tmp_path: Path) -> None:
    rows = [
        ("batch", 8, 60, 3600),
        ("batch", 1, 60, 3601),
        ("long", 9, 60, 6000),
        ("batch", 9, 60, 60),
        ("free", 16, 60, 10**6),
    ]
    jobs, machine = table(tmp_path, *rows)
    workload = hpcgym.load_workload(jobs, cluster=machine)
    with pytest.raises(WorkloadError) as error:
        hpcgym.simulate(workload, "easy", cluster=machine)
    message = str(error.value)
    assert "job 2 asks for more than 3600 s, the MaxTime of partition 'batch': it would" in message
    assert "The same holds for 2 of 5 jobs: hpcgym.workload.within_limits(" in message
    with pytest.raises(WorkloadError, match=r"job 4 needs more than 2 nodes, the MaxNodes of"):
        hpcgym.simulate(workload.take([0, 3]), "easy", cluster=machine)
    found = hpcgym.cluster.find_cluster(machine)
    kept = within_limits(workload, found)
    assert kept.job_number.tolist() == [1, 3, 5]
    assert kept.cleaning[OVER_LIMITS] == 2
    assert within_limits(kept, found) is kept
    with pytest.raises(HpcgymError, match="no job is within the limits of its partition"):
        within_limits(workload.take([1, 3]), found)


def test_small_jobs_are_an_error_where_a_partition_is_for_several_nodes(tmp_path: Path) -> None:
    jobs, machine = table(tmp_path, ("wide", 3, 60, 60), ("wide", 2, 60, 60), ("free", 1, 60, 60))
    Path(machine).write_text(f"{CONF}PartitionName=wide Nodes=a[1-4] MinNodes=3\n")
    workload = hpcgym.load_workload(jobs, cluster=machine)
    with pytest.raises(
        WorkloadError, match=r"job 2 cannot be on 3 nodes, the MinNodes of partition 'wide'"
    ):
        hpcgym.simulate(workload, "easy", cluster=machine)
    kept = within_limits(workload, hpcgym.cluster.find_cluster(machine))
    assert kept.job_number.tolist() == [1, 3]


@pytest.mark.parametrize(
    ("limits", "refused", "why"),
    [
        ("AllowAccounts=a,b", [3], ALLOWED),
        ("DenyAccounts=b,c", [2, 3], "has an account that is one of the DenyAccounts"),
        ("AllowAccounts=a DenyAccounts=a", [2, 3], ALLOWED),
        ("AllowQos=high", [1, 3], "has a QOS that is none of the AllowQos"),
        ("DenyQos=low", [1, 3], "has a QOS that is one of the DenyQos"),
        ("AllowQos=low DenyQos=low", [2], "has a QOS that is none of the AllowQos"),
        ("AllowAccounts=ALL AllowQos=ALL", [], ""),
        ("State=DOWN", [1, 2, 3, 4], "cannot start in the state DOWN"),
        ("State=DRAIN", [1, 2, 3, 4], "cannot start in the state DRAIN"),
        ("State=INACTIVE", [1, 2, 3, 4], "cannot start in the state INACTIVE"),
        ("State=UP", [], ""),
    ],
)
def test_accounts_qos_and_states(tmp_path: Path, limits: str, refused: list[int], why: str) -> None:
    """4 is of an unknown account and QOS; 5 is in another partition."""
    lines = ["submit_time,partition_name,group,queue_name,requested_processors,run_time"]
    rows = ["some,a,low", "some,b,high", "some,c,low", "some,,", "free,c,low"]
    lines += [f"{place},{row},1,60" for place, row in enumerate(rows)]
    (tmp_path / "jobs.csv").write_text("\n".join(lines) + "\n")
    (tmp_path / "slurm.conf").write_text(f"{CONF}PartitionName=some Nodes=a[1-4] {limits}\n")
    machine = hpcgym.cluster.find_cluster(str(tmp_path / "slurm.conf"))
    workload = hpcgym.load_workload(str(tmp_path / "jobs.csv"), cluster=machine)
    kept = within_limits(workload, machine)
    assert kept.job_number.tolist() == [number for number in range(1, 6) if number not in refused]
    if refused:
        assert kept.cleaning[OVER_LIMITS] == len(refused)
        with pytest.raises(WorkloadError) as error:
            hpcgym.simulate(workload, "easy", cluster=machine)
        first = f"job {refused[0]} {why} of partition 'some': it would wait for ever"
        assert first in str(error.value)
        many = f"The same holds for {len(refused)} of 5 jobs"
        assert (many in str(error.value)) == (len(refused) > 1)


@pytest.mark.parametrize(
    ("state", "kept"), [("DOWN", [1]), ("INACTIVE", [1]), ("DRAIN", [1, 2]), ("UP", [1, 2, 3])]
)
def test_states_and_jobs_that_are_there(tmp_path: Path, state: str, kept: list[int]) -> None:
    """At second 5 job 1 runs, and goes on; job 2 waits, and starts where no new one may come."""
    lines = ["submit_time,wait_time,partition_name,requested_processors,run_time"]
    lines += ["0,0,some,16,60", "1,59,some,16,60", "7,113,some,16,60", "8,172,free,16,60"]
    (tmp_path / "jobs.csv").write_text("\n".join(lines) + "\n")
    (tmp_path / "slurm.conf").write_text(f"{CONF}PartitionName=some Nodes=a[1-4] State={state}\n")
    machine = hpcgym.cluster.find_cluster(str(tmp_path / "slurm.conf"))
    extract = hpcgym.load_workload(str(tmp_path / "jobs.csv"), cluster=machine).extract(5)
    assert within_limits(extract, machine).job_number.tolist() == [*kept, 4]


def test_jobs_within_the_limits_run_as_without(tmp_path: Path) -> None:
    rows = [("batch", 8, 60, 3600), ("long", 9, 60, 6000), ("free", 16, 60, 10**6)]
    jobs, machine = table(tmp_path, *rows)
    workload = hpcgym.load_workload(jobs, cluster=machine)
    starts = hpcgym.simulate(workload, "easy", cluster=machine).start.tolist()
    bare = CONF.replace(" MaxTime=60 DefaultTime=10 MaxNodes=2", "").replace(" MaxTime=100", "")
    Path(machine).write_text(bare)
    assert hpcgym.simulate(workload, "easy", cluster=machine).start.tolist() == starts


def test_unknown_times_are_those_of_the_partition(tmp_path: Path) -> None:
    rows = [("batch", 1, 60, -1), ("batch", 1, 700, -1), ("long", 1, 60, -1), ("free", 1, 60, -1)]
    jobs, machine = table(tmp_path, *rows, ("batch", 1, 60, 90))
    workload = hpcgym.load_workload(jobs, cluster=machine)
    assert workload.requested_time.tolist() == [600, 700, 6000, 60, 90]
    assert workload.cleaning == {
        _REPAIRED: 2,
        "repaired: requested_time taken from run_time": 2,
    }
    assert hpcgym.load_workload(jobs, "none", cluster=machine).requested_time[0] == -1
    pool = hpcgym.load_workload(jobs, processors=16)
    assert pool.requested_time.tolist() == [60, 700, 60, 60, 90]


def test_a_job_that_was_killed_late_asked_for_no_more_than_its_partition_allows(
    tmp_path: Path,
) -> None:
    jobs, machine = table(tmp_path, ("batch", 1, 3610, -1), ("batch", 1, 700, -1))
    workload = hpcgym.load_workload(jobs, cluster=machine)
    assert workload.requested_time.tolist() == [3600, 700]
    assert workload.cleaning[_REPAIRED] == 1
    assert hpcgym.simulate(workload, "easy", cluster=machine).end[0] == 3600


def test_unknown_times_on_the_command_line(tmp_path: Path) -> None:
    """As in Python: before the recipe takes run times for them."""
    jobs, machine = table(tmp_path, ("batch", 1, 60, -1))
    schedule = tmp_path / "schedule.swf"
    words = ["simulate", jobs, "--cluster", machine, "--output", str(schedule)]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    assert hpcgym.load_workload(schedule, "none").requested_time.tolist() == [600]


@given(
    st.lists(st.tuples(st.integers(1, 6), st.integers(0, 2)), min_size=1, max_size=5),
    st.lists(
        st.tuples(st.integers(1, 9), st.integers(1, 4), st.integers(0, 1)), min_size=1, max_size=5
    ),
)
def test_the_fewest_and_the_most_nodes(
    nodes: list[tuple[int, int]], jobs: list[tuple[int, int, int]]
) -> None:
    """Beside all sets of nodes that there are."""
    groups = [
        NodeGroup(f"n{place}", 1, {"core": cores, "gpu": gpus})
        for place, (cores, gpus) in enumerate(nodes)
    ]
    mine = Partition("1", tuple(range(len(nodes))))
    cluster = Cluster(groups=tuple(groups), partitions=(mine,))
    workload = Workload.from_columns(
        {"submit_time": [0] * len(jobs), "partition": [1] * len(jobs)},
        processors=cluster.processors,
        units=[units for units, _, _ in jobs],
        per_unit={"core": [core for _, core, _ in jobs], "gpu": [gpu for _, _, gpu in jobs]},
    )
    fewest, most = [], []
    for units, core, gpu in jobs:
        held = [min(c // core, g // gpu if gpu else c) for c, g in nodes]
        enough = [
            k
            for k in range(1, len(nodes) + 1)
            if any(sum(some) >= units for some in combinations(held, k))
        ]
        fewest.append(min(enough, default=len(nodes) + 1))
        possible = [
            k
            for k in range(min(units, len(nodes)) + 1)
            if any(0 not in some for some in combinations(held, k))
        ]
        most.append(max(possible))
    assert fewest_nodes(workload, cluster, mine).tolist() == fewest
    assert most_nodes(workload, cluster, mine).tolist() == most
