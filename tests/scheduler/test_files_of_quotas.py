"""Quotas and windows from files: of QOS, arrays and outages."""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from few_jobs import few_jobs
from mistakes import mistakes_of

import hpcgym
from hpcgym import Scheduler
from hpcgym.baselines.schedulers import find_scheduler
from hpcgym.errors import HpcgymError, HpcgymWarning, MachineOnlyWarning, WorkloadError
from hpcgym.machine import Failures, find_cluster
from hpcgym.simulation.restricted import within_quotas


def test_a_file_of_failures_as_planned(tmp_path: Path) -> None:
    file = tmp_path / "outages.csv"
    Failures(np.array([0, 1, 2]), np.array([5, 5, 40]), np.array([15, 15, 50])).write(file)
    scheduler = Scheduler(maintenance=str(file), backfill="depth:2")
    assert scheduler.describe()["maintenance"] == "5/15:nodes=0-1; 40/50:nodes=2"
    jobs = few_jobs(4, [0, 1, 2], [10] * 3, [2] * 3)
    assert hpcgym.simulate(jobs, scheduler, cluster="3x1x2").start.tolist() == [0, 10, 15]


def test_throttles_of_a_dump(tmp_path: Path) -> None:
    """By hand: two of the four tasks of array 7 that ran may run at once."""
    file = tmp_path / "jobs.txt"
    ran = "2024-03-01T12:00:00|2024-03-01T12:00:00|2024-03-01T12:00:10|1"
    rows = [f"7_{task}|{8 + task}|COMPLETED|{ran}" for task in range(1, 5)]
    rows += [f"6|6|COMPLETED|{ran}", f"7_[5-9%2]|7|PENDING|{ran}", f"9_[1,3]|9|PENDING|{ran}"]
    file.write_text("\n".join(["JobID|JobIDRaw|State|Submit|Start|End|AllocCPUS", *rows]) + "\n")
    scheduler = Scheduler(quota=str(file))
    assert scheduler.describe()["quota"] == "array=7:jobs=2"
    jobs = hpcgym.load_workload(file, processors=8)
    result = hpcgym.simulate(jobs, scheduler)
    by_number = dict(zip(jobs.job_number.tolist(), result.start.tolist(), strict=True))
    assert by_number == {9: 0, 10: 0, 11: 10, 12: 10, 6: 0}


def test_limits_of_qos_are_quotas(tmp_path: Path) -> None:
    file = tmp_path / "qos.txt"
    head = "Name|Priority|MaxJobsPU|MaxTRESPU|GrpTRES|GrpJobs|MaxSubmitPU|GrpSubmit|MaxWall"
    rows = [
        "normal|0|||||0|||00:00:00",
        "day|10|2|cpu=8,gres/gpu=1,gres/gpu:a100=1,energy=3||||2|1-00:00:00|00:00:00",
    ]
    rows += ["night|10|||cpu=4,mem=1T|3|9|0||00:01:00"]
    file.write_text("\n".join([f"{head}|GraceTime", *rows]) + "\n")
    with pytest.warns(HpcgymWarning) as warned:
        scheduler = Scheduler(quota=str(file))
    assert str(warned[0].message) == (
        f"{file}: not followed by quotas: normal: MaxSubmitPU=0 (lets no such"
        " job run), day: MaxTRESPU energy, night: GrpSubmit=0 (lets no such job run),"
        " night: GraceTime"
    )
    assert scheduler.describe()["quota"] == (
        "queue=day/user:jobs=2+processors=8+gpu=1+gpu-a100=1; queue=day:submitted=2;"
        " queue=day/job:requested_time=86400;"
        " queue=night/user:submitted=9; queue=night:jobs=3+processors=4+mem=1048576"
    )
    assert Scheduler(quota=scheduler.quota) == scheduler


def test_gpus_of_each_user_are_bound(tmp_path: Path) -> None:
    """By hand: of six jobs of one GPU each four run at once; the others wait for these to end."""
    conf, qos, log = (tmp_path / name for name in ("slurm.conf", "qos.txt", "jobs.txt"))
    conf.write_text(
        "SelectType=select/cons_tres\nSelectTypeParameters=CR_Core\nGresTypes=gpu\n"
        "SchedulerType=sched/backfill\nNodeName=g[1-4] CPUs=40 Gres=gpu:4\n"
        "PartitionName=gpu Nodes=g[1-4] Default=YES\n"
    )
    qos.write_text("Name|Priority|MaxTRESPU\ndev|0|cpu=160,gres/gpu=4\nother|0|gres/gpu=1\n")
    ran = "2024-03-01T12:00:0{0}|2024-03-01T12:00:0{0}|01:00:00|02:00:00|cpu=4,gres/gpu={1},node=1"
    jobs = [f"{n}|ann|dev|COMPLETED|{ran.format(n, 1)}" for n in range(1, 7)]
    jobs.append(f"7|ann|dev|COMPLETED|{ran.format(7, 0)}")  # without a GPU it may start
    head = "JobID|User|QOS|State|Submit|Start|Elapsed|Timelimit|AllocTRES"
    log.write_text("\n".join([head, *jobs]) + "\n")
    cluster = find_cluster(conf)
    workload = hpcgym.load_workload(log, cluster=cluster)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = hpcgym.simulate(workload, "fcfs", quota=str(qos), cluster=cluster)
    assert result.wait.tolist() == [0, 0, 0, 0, 3596, 3596, 0]
    assert "quotas" in hpcgym.validate_schedule(result)
    bounds = ["queue=dev/user:processors=160+gpu=4", "queue=other/user:gpu=1"]
    assert [str(quota) for quota in result.scheduler.quota] == bounds
    reasons = hpcgym.explain(result, 5).passes["quotas"].tolist()
    assert set(reasons) == {"queue=dev/user:gpu=4", ""}


#: As Slurm 22.05 to 25.05 print QOS; the last ones have to be asked for.
HEAD = (
    "Name|Priority|GraceTime|Preempt|PreemptExemptTime|PreemptMode|Flags|UsageThres|UsageFactor|"
    "GrpTRES|GrpTRESMins|GrpTRESRunMins|GrpJobs|GrpSubmit|GrpWall|MaxTRES|MaxTRESPerNode|"
    "MaxTRESMins|MaxWall|MaxTRESPU|MaxJobsPU|MaxSubmitPU|MaxTRESPA|MaxTRESRunMinsPA|"
    "MaxTRESRunMinsPU|MaxJobsPA|MaxSubmitPA|MinTRES|"
    "ID|Descr|LimitFactor|MinPrioThres|GrpJobsAccrue|MaxJobsAccruePA|MaxJobsAccruePU"
)
OF_QOS = HEAD.split("|")
FOLLOWED = {
    "GrpTRES": ("cpu=9", "queue=q:processors=9"),
    "GrpJobs": ("9", "queue=q:jobs=9"),
    "GrpSubmit": ("9", "queue=q:submitted=9"),
    "MaxTRESPU": ("cpu=9", "queue=q/user:processors=9"),
    "MaxJobsPU": ("9", "queue=q/user:jobs=9"),
    "MaxSubmitPU": ("9", "queue=q/user:submitted=9"),
    "MaxTRESPA": ("cpu=9", "queue=q/group:processors=9"),
    "GrpTRESRunMins": ("gres/gpu=9", "queue=q:gpu-minutes=9"),
    "MaxTRESRunMinsPU": ("cpu=9", "queue=q/user:processor-minutes=9"),
    "MaxTRESRunMinsPA": ("mem=9", "queue=q/group:mem-minutes=9"),
    "MaxJobsPA": ("9", "queue=q/group:jobs=9"),
    "MaxSubmitPA": ("9", "queue=q/group:submitted=9"),
    "MaxTRES": ("cpu=9,gres/gpu=0", "queue=q/job:processors=9+gpu=0"),
    "MaxTRESPerNode": ("cpu=9,gres/gpu=2", "queue=q/job:gpu-a-node=2+processors-a-node=9"),
    "MaxTRESMins": ("cpu=9,gres/gpu=2", "queue=q/job:gpu-minutes=2+processor-minutes=9"),
    "MinTRES": ("cpu=9,gres/gpu=1", "queue=q/job:processors>=9+gpu>=1"),
    "MaxWall": ("1-00:00:00", "queue=q/job:requested_time=86400"),
}
NO_LIMIT = ("", "-1", "UNLIMITED", "infinite", "cpu=-1")


@pytest.mark.parametrize("column", OF_QOS)
def test_each_column_of_qos_is_followed_or_named(tmp_path: Path, column: str) -> None:
    """One line of warnings names what is not followed; what is endless is no limit."""
    path = tmp_path / "qos.txt"

    def quotas_of(value: str) -> str | None:
        row = dict.fromkeys(OF_QOS, "") | {"Name": "q"} | {column: value}
        path.write_text("|".join(OF_QOS) + "|\n" + "|".join(row.values()) + "|\n")
        quota = Scheduler(quota=str(path)).describe()["quota"] if value else None
        assert quota is None or isinstance(quota, str)
        return quota

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        if column in FOLLOWED:
            value, quota = FOLLOWED[column]
            assert quotas_of(value) == quota
            of_tres = [value for value in NO_LIMIT if ("=" in value) == ("TRES" in column)]
            assert {quotas_of(value_of_tres) for value_of_tres in of_tres} == {None}
            return
        if column in ("Name", "Priority", "ID", "Descr"):
            assert quotas_of("7") is None
            return
    values = {"GraceTime": "00:01:00", "GrpTRESMins": "cpu=5"}
    more = {"Flags": "Flags=5", "GrpTRESMins": r"GrpTRESMins \(slurm.conf:.*what is forgotten\)"}
    named = more.get(column, column)
    with pytest.warns(HpcgymWarning, match=f"not followed by quotas: q: {named}$") as caught:
        assert quotas_of(values.get(column, "5")) is None
    assert len(caught) == 1


def test_a_column_of_many_qos_is_named_once(tmp_path: Path) -> None:
    path = tmp_path / "qos.txt"
    flags = {2: "DenyOnLimit,NoReserve,PartitionTimeLimit"}
    rows = [f"q{number}|1-0|{flags.get(number, '')}" for number in range(4)]
    path.write_text("\n".join(["Name|UsageThres|Flags", *rows]))
    with pytest.warns(HpcgymWarning, match="quotas: UsageThres of 4 QOS, q2: Flags=No") as caught:
        Scheduler(quota=str(path))
    details = caught[0].message
    assert isinstance(details, HpcgymWarning)
    assert [*details.details] == [
        "q0: UsageThres", "q1: UsageThres", "q2: UsageThres", "q2: Flags=NoReserve",
        "q2: Flags=PartitionTimeLimit", "q3: UsageThres",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("column", "limit", "beyond", "problem"),
    [
        ("MaxTRES", "gres/gpu=3", 1, "asks for 4 gpu, more than the quota queue=q/job:gpu=3"),
        ("MaxTRES", "gres/gpu=0", 2, "asks for 4 gpu, more than the quota queue=q/job:gpu=0"),
        ("MaxTRESPerNode", "cpu=4", 1, "asks for 8 processors-a-node, more than the quota"),
        ("MinTRES", "gres/gpu=1", 1, "asks for 0 gpu, less than the quota queue=q/job:gpu>=1"),
        ("MaxWall", "02:00:00", 1, "asks for 86400 s of requested_time, more than the quota"),
        ("MaxTRESPU", "gres/gpu=3", 1, "asks for 4 gpu, more than the quota queue=q/user:gpu=3"),
    ],
)
@pytest.mark.parametrize("flags", ["", "DenyOnLimit"])
def test_jobs_beyond_a_limit_of_one_job_are_refused(
    tmp_path: Path, column: str, limit: str, beyond: int, problem: str, flags: str
) -> None:
    """As Slurm never runs them: they wait for ever, or are refused. QOS without jobs is no mistake.

    By hand: job 1 has 8 processors on 2 nodes and 4 GPUs, job 2 has 8 on one node and 2 GPUs, job 3
    asks for a day; all fit at once.
    """
    conf, qos, log = (tmp_path / name for name in ("slurm.conf", "qos.txt", "jobs.txt"))
    conf.write_text(
        "SelectType=select/cons_tres\nSelectTypeParameters=CR_Core\nGresTypes=gpu\n"
        "NodeName=g[1-4] CPUs=8 Gres=gpu:4\nPartitionName=p Nodes=ALL Default=YES\n"
        "PriorityWeightQOS=9\n"
    )
    qos.write_text(f"Name|{column}|Flags|GrpJobs|Priority\nq|{limit}|{flags}|9|2\nqs|||3|4\n")
    ran = "2024-03-01T12:00:00|2024-03-01T12:00:00|01:00:00"
    rows = [f"1|q|COMPLETED|{ran}|02:00:00|cpu=8,node=2,gres/gpu=4"]
    rows += [f"2|q|COMPLETED|{ran}|02:00:00|cpu=8,node=1,gres/gpu=2"]
    rows += [f"3|q|COMPLETED|{ran}|1-00:00:00|cpu=1,node=1", f"4|r|{rows[0][4:]}"]
    head = "JobID|QOS|State|Submit|Start|Elapsed|Timelimit|AllocTRES"
    log.write_text("\n".join([head, *rows]) + "\n")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", MachineOnlyWarning)
        workload = hpcgym.load_workload(log, cluster=str(conf))
        scheduler = find_scheduler(f"{conf}:qos={qos}")
        with pytest.raises(WorkloadError, match=problem):
            hpcgym.simulate(workload, scheduler, cluster=str(conf))
        jobs = within_quotas(workload, scheduler.quota)
        assert jobs.cleaning["dropped: asks for more than a quota lets run"] == beyond
        result = hpcgym.simulate(jobs, scheduler, cluster=str(conf))
    assert result.start.tolist() == [0] * (4 - beyond)
    assert "quotas" in hpcgym.validate_schedule(result)
    free = hpcgym.simulate(workload, scheduler.but(quota=None), cluster=str(conf))
    with pytest.raises(HpcgymError, match=r"job \d asks for|are in use"):
        hpcgym.validate_schedule(replace(free, scheduler=scheduler))


def test_a_limit_of_what_a_log_does_not_tell_is_left(tmp_path: Path) -> None:
    path = tmp_path / "qos.txt"
    path.write_text("Name|MaxTRESPerNode|MaxTRES\n1|cpu=1|cpu=2\n")
    jobs = few_jobs(8, [0, 0], [5, 5], [2, 1], queue=[1, 1])
    with pytest.warns(HpcgymWarning, match="not followed: quota .*a-node=1.*nothing tells"):
        result = hpcgym.simulate(jobs, quota=str(path))
    assert result.start.tolist() == [0, 0]
    hpcgym.validate_schedule(result)
    with pytest.raises(HpcgymError, match="nothing tells how many nodes"):
        hpcgym.simulate(jobs, quota="job:processors-a-node=1")


test_mistakes = mistakes_of(globals())
