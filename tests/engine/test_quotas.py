"""Quotas: the engine's schedules equal those of the slow simulators; by hand; what is refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from drawing import given
from drawing import strategies as st
from few_jobs import few_jobs
from node_strategies import slow_jobs_and_nodes
from quota_strategies import COLUMNS

import hpcgym
from hpcgym.cluster import Cluster, NodeGroup
from hpcgym.errors import HpcgymError, HpcgymWarning, WorkloadError, WorkloadWarning
from hpcgym.reference.nodes import simulate_nodes
from hpcgym.scheduler.restrictions import COLUMNS as WORDS
from hpcgym.scheduler.restrictions import Quota
from hpcgym.scheduler.rules import read_quotas
from hpcgym.workload.model import Workload


@pytest.mark.parametrize("backfill", ["easy", "until-shadow"])
def test_the_reservation_on_nodes_is_of_room(backfill: str) -> None:
    """On crowded nodes with memory, where one of nodes by name would let others start in some."""
    for seed in range(40):
        rng = np.random.default_rng(seed)
        units, core, memory = rng.integers(1, 4, 20), rng.integers(1, 3, 20), rng.integers(0, 3, 20)
        sizes = zip("ab", rng.integers(4, 9, (2, 2)).tolist(), strict=True)
        cluster = Cluster(
            groups=tuple(
                NodeGroup(name, 2, {"core": cores, "mem": has}) for name, (cores, has) in sizes
            )
        )
        run = rng.integers(1, 40, 20)
        columns = {
            "submit_time": np.sort(rng.integers(0, 60, 20)),
            "run_time": run,
            "requested_time": run + rng.integers(0, 30, 20),
            "requested_processors": units * core,
            "user_id": rng.integers(1, 4, 20),
        }
        each = {"core": core, "mem": memory}
        jobs = Workload.from_columns(
            columns, processors=cluster.processors, units=units, per_unit=each
        )
        most = int(rng.integers(1, 4))
        rules = {"backfill": backfill, "policy": "fcfs", "backfill_order": "sjbf"}
        result = hpcgym.simulate(jobs, cluster=cluster, quota=f"user:jobs={most}", **rules)
        quota = (jobs.user_id.tolist(), most, 10**9)
        slow, capacity = slow_jobs_and_nodes(cluster, jobs)
        expected = simulate_nodes(slow, capacity, quotas=[quota], **rules)
        assert result.start.tolist() == [job.start for job in expected]
        assert result.reserved_start.tolist() == [job.reserved_start for job in expected]
        hpcgym.validate_schedule(result)


def test_by_hand_in_an_extract() -> None:
    """At 5 s two jobs of the user run, one too many; the third waits until both have ended."""
    log = four(submit_time=[0, 0, 6, 7], wait_time=[0, 0, 0, 0], run_time=[10, 20, 5, 5])
    part = log.with_columns(requested_time=log.run_time).extract(5)
    result = hpcgym.simulate(part, quota="user:jobs=1")
    assert result.start.tolist() == [0, 0, 20, 25]
    hpcgym.validate_schedule(result)
    early = replace(result, start=np.array([0, 0, 19, 25]))
    with pytest.raises(HpcgymError, match=r"quota user:jobs=1: at 19 s 2 jobs run"):
        hpcgym.validate_schedule(early)


def test_who_runs_at_the_beginning_may_be_too_wide() -> None:
    log = four(submit_time=[0, 0, 6, 7], wait_time=[0, 0, 0, 0], requested_processors=[4, 2, 2, 2])
    result = hpcgym.simulate(log.extract(5), quota="user:processors=3")
    assert result.start.tolist() == [0, 0, 10, 20]


def four(**columns: list[int]) -> Workload:
    """Return four jobs of 10 s on 2 of 8 processors each, all submitted at once by one user."""
    given = {
        "submit_time": [0] * 4,
        "run_time": [10] * 4,
        "requested_time": [10] * 4,
        "requested_processors": [2] * 4,
        "user_id": [1] * 4,
    }
    return Workload.from_columns({**given, **columns}, processors=8)


@pytest.mark.parametrize(
    ("quota", "starts"),
    [
        ("user:jobs=2", [0, 0, 10, 10]),
        ("user:processors=6", [0, 0, 0, 10]),
        ("all:jobs=1", [0, 10, 20, 30]),
        ("queue=2:jobs=1", [0, 0, 10, 0]),
        ("queue:jobs=1", [0, 0, 10, 10]),
        ("queue=2/user:jobs=1; all:processors=4", [0, 0, 10, 10]),
        ("array:jobs=1", [0, 0, 0, 10]),
        ("array=7:processors=2", [0, 0, 0, 10]),
        ("array/queue:jobs=1", [0, 0, 0, 0]),
        (None, [0, 0, 0, 0]),
    ],
)
def test_by_hand(quota: str | None, starts: list[int]) -> None:
    result = hpcgym.simulate(four(queue=[1, 2, 2, 1], array=[-1, 7, -1, 7]), quota=quota)
    assert result.start.tolist() == starts
    hpcgym.validate_schedule(result)


@pytest.mark.parametrize("backfill", ["easy", "depth:2"])
def test_a_reservation_is_lost_when_another_of_the_user_starts(backfill: str) -> None:
    """By hand: job 2 starts before job 1 of its user, whose reservation then bars nobody."""
    jobs = few_jobs(9, [0, 0, 0, 1], [100, 100, 50, 200], [6, 9, 2, 1], user_id=[1, 2, 2, 3])
    result = hpcgym.simulate(jobs, quota="user:jobs=1", backfill=backfill)
    assert result.start.tolist() == [0, 201, 0, 1]


def test_who_is_first_of_those_that_may_start_is_promised_its_start() -> None:
    """By hand: job 2, the head, is passed over once job 3 of its user runs; so job 4 is the head.

    Nothing is free when job 4 comes: its promise is made nevertheless.
    """
    jobs = few_jobs(
        5, [0, 0, 1, 2, 3], [100, 50, 10, 20, 10], [2, 2, 5, 1, 3], user_id=[1, 2, 4, 4, 5]
    )
    result = hpcgym.simulate(jobs, quota="user:jobs=1")
    assert result.start.tolist() == [0, 0, 100, 2, 50]
    assert result.reserved_start.tolist() == [-1, -1, 100, -1, 50]


def test_names_of_the_log() -> None:
    jobs = replace(four(queue=[1, 2, 2, 1]), header={"Queue": ["1 day", "2 night"]})
    assert hpcgym.simulate(jobs, quota="queue=night:jobs=1").start.tolist() == [0, 0, 10, 0]
    with pytest.warns(WorkloadWarning) as told:
        hpcgym.simulate(jobs, quota="queue=nigth:jobs=1")
    texts = [str(one.message) for one in told]
    assert any("nothing is called 'nigth' in queue; did you mean 'night'?" in one for one in texts)
    assert "workload: no job falls under these quotas: queue=nigth:jobs=1" in texts


@pytest.mark.parametrize("word", WORDS)
def test_each_column_is_proved(word: str) -> None:
    columns = ("queue", "partition", "group_id", "executable", "array")
    jobs = four(**{column: [1] * 4 for column in columns})
    for quota in (f"{word}:jobs=2", f"{word}=1:jobs=2", f"{word}:submitted=2"):
        result = hpcgym.simulate(jobs, quota=quota)
        assert result.start.tolist() == [0, 0, 10, 10]
        hpcgym.validate_schedule(result)
        more = replace(result.scheduler, quota=quota.replace("=2", "=1"))
        with pytest.raises(HpcgymError, match=f"quota {word}"):
            hpcgym.validate_schedule(replace(result, scheduler=more))


@pytest.mark.parametrize("column", ["user", "array"])
def test_the_proof_counts_by_itself(column: str) -> None:
    result = hpcgym.simulate(four(array=[3] * 4), quota=f"{column}:jobs=2")
    wrong = replace(result, scheduler=replace(result.scheduler, quota=f"{column}:jobs=1"))
    with pytest.raises(HpcgymError, match=rf"quota {column}:jobs=1: at 0 s 2 jobs run"):
        hpcgym.validate_schedule(wrong)


@given(
    st.lists(
        st.builds(
            Quota,
            each=st.lists(st.sampled_from(list(COLUMNS)), max_size=3, unique=True).map(tuple),
            where=st.lists(
                st.tuples(st.sampled_from(list(COLUMNS)), st.sampled_from(["1", "a b", "x-y"])),
                max_size=2,
            ).map(tuple),
            jobs=st.integers(1, 100),
            processors=st.one_of(st.none(), st.integers(1, 2**31)),
            submitted=st.one_of(st.none(), st.integers(1, 100)),
        ),
        max_size=3,
    )
)
def test_as_text_and_back(given: list[Quota]) -> None:
    assert read_quotas("; ".join(map(str, given)) or None) == read_quotas(given) == tuple(given)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("user", "quota 'user' is neither a file nor a quota such as 'user:jobs=10'"),
        ("nofile.txt", "nofile.txt: no such file"),
        ("user:jobs", "'jobs' is no bound"),
        ("user:jobs=0", "jobs must be a whole number from 1 on, not 0"),
        ("user:jobs=1+jobs=2", "'jobs=2' is no bound"),
        ("users:jobs=1", "unknown column 'users'"),
        ("name=x:jobs=1", "unknown column 'name'"),
        (
            "account:jobs=1",
            "unknown column 'account'; known are user, group, code, queue, partition,"
            " qos, array; accounts of Slurm are groups",
        ),
        ("user:nodes=1", "'nodes=1' is no bound"),
    ],
)
def test_what_is_no_quota_is_one_line(text: str, message: str) -> None:
    with pytest.raises(HpcgymError) as error:
        hpcgym.simulate(four(), quota=text)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_jobs_that_would_wait_for_ever() -> None:
    with pytest.raises(WorkloadError, match=r"asks for 2 processors, more than the quota all:pro"):
        hpcgym.simulate(four(), quota="all:processors=1")


def test_throttles_of_a_dump(tmp_path: Path) -> None:
    """By hand: two of the four tasks of array 7 that ran may run at once."""
    file = tmp_path / "jobs.txt"
    ran = "2024-03-01T12:00:00|2024-03-01T12:00:00|2024-03-01T12:00:10|1"
    rows = [f"7_{task}|{8 + task}|COMPLETED|{ran}" for task in range(1, 5)]
    rows += [f"6|6|COMPLETED|{ran}", f"7_[5-9%2]|7|PENDING|{ran}", f"9_[1,3]|9|PENDING|{ran}"]
    file.write_text("\n".join(["JobID|JobIDRaw|State|Submit|Start|End|AllocCPUS", *rows]) + "\n")
    scheduler = hpcgym.Scheduler(quota=str(file))
    assert scheduler.describe()["quota"] == "array=7:jobs=2"
    jobs = hpcgym.load_workload(file, processors=8)
    result = hpcgym.simulate(jobs, scheduler)
    by_number = dict(zip(jobs.job_number.tolist(), result.start.tolist(), strict=True))
    assert by_number == {9: 0, 10: 0, 11: 10, 12: 10, 6: 0}
    file.write_text(file.read_text().replace("%2", ""))
    with pytest.raises(HpcgymError, match="no line tells how many tasks of an array may run at"):
        hpcgym.Scheduler(quota=str(file))


def test_limits_of_qos(tmp_path: Path) -> None:
    file = tmp_path / "qos.txt"
    file.write_text(
        "Name|Priority|MaxJobsPU|MaxTRESPU|GrpTRES|GrpJobs|MaxSubmitPU|MaxWall|GraceTime\n"
        "normal|0|||||||00:00:00\n"
        "day|10|2|cpu=8,gres/gpu=1||||1-00:00:00|00:00:00\n"
        "night|10|||cpu=4,mem=1T|3|9||00:01:00\n"
    )
    with pytest.warns(HpcgymWarning) as told:
        scheduler = hpcgym.Scheduler(quota=str(file))
    assert str(told[0].message) == (
        f"{file}: not followed by quotas: day: MaxWall, day: MaxTRESPU gres/gpu,"
        " night: GrpTRES mem, night: GraceTime"
    )
    assert scheduler.describe()["quota"] == (
        "queue=day/user:jobs=2+processors=8; queue=night/user:submitted=9;"
        " queue=night:jobs=3+processors=4"
    )
    assert hpcgym.Scheduler(quota=scheduler.quota) == scheduler
    jobs = replace(four(queue=[2, 2, 2, 1]), header={"Queue": ["1 day", "2 night"]})
    assert hpcgym.simulate(jobs, scheduler).start.tolist() == [0, 0, 10, 0]
