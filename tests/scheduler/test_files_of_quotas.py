"""Quotas and windows from files: of QOS, arrays and outages."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest
from few_jobs import few_jobs
from mistakes import mistakes_of

import hpcgym
from hpcgym import Scheduler
from hpcgym.errors import HpcgymWarning
from hpcgym.machine import Failures, find_cluster


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
        " job run), day: MaxTRESPU energy, day: MaxWall, night: GrpSubmit=0 (lets no such job run),"
        " night: GraceTime"
    )
    assert scheduler.describe()["quota"] == (
        "queue=day/user:jobs=2+processors=8+gpu=1+gpu-a100=1; queue=day:submitted=2;"
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
    values = {"MaxWall": "1-00:00:00", "MaxTRES": "cpu=4", "GraceTime": "00:01:00"}
    named = "Flags=5" if column == "Flags" else column
    with pytest.warns(HpcgymWarning, match=f"not followed by quotas: q: {named}$") as caught:
        assert quotas_of(values.get(column, "5")) is None
    assert len(caught) == 1


def test_a_column_of_many_qos_is_named_once(tmp_path: Path) -> None:
    path = tmp_path / "qos.txt"
    flags = {2: "DenyOnLimit,PartitionTimeLimit"}
    rows = [f"q{number}|1-0|{flags.get(number, '')}" for number in range(4)]
    path.write_text("\n".join(["Name|MaxWall|Flags", *rows]))
    with pytest.warns(HpcgymWarning, match="quotas: MaxWall of 4 QOS, q2: Flags=Deny") as caught:
        Scheduler(quota=str(path))
    details = caught[0].message
    assert isinstance(details, HpcgymWarning)
    assert [*details.details] == [
        "q0: MaxWall", "q1: MaxWall", "q2: MaxWall", "q2: Flags=DenyOnLimit",
        "q2: Flags=PartitionTimeLimit", "q3: MaxWall",
    ]  # fmt: skip


test_mistakes = mistakes_of(globals())
