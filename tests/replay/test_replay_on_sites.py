"""Replays of what sites have: nodes of several cores, limits of QOS, windows for maintenance."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from mistakes import mistakes_of
from slurm_here import needs_slurm

import hpcgym
from hpcgym.errors import HpcgymError
from hpcgym.machine import Cluster, NodeGroup, Partition, find_cluster
from hpcgym.replay import facts_of, replay_on_slurm
from hpcgym.replay.accounts import limits_of
from hpcgym.replay.configuration import (
    PrivateNodes,
    SlurmNode,
    asks_of,
    licences_of,
    nodes_of,
    scheduling_of,
    slurm_conf,
)
from hpcgym.replay.private import private_slurm, read_records
from hpcgym.scheduler.policies import FairShare
from hpcgym.scheduler.rules import read_quotas
from hpcgym.workload import Workload
from hpcgym.workload.amounts import billed

CONF = """
NodeName=n[01-04] CPUs=8
PartitionName=batch Nodes=n[01-03] Default=YES PriorityJobFactor=1
PartitionName=short Nodes=n[03-04] PriorityJobFactor=4
PriorityType=priority/multifactor
PriorityWeightPartition=1000
PriorityWeightQOS=2000
"""
QOS = """Name|Priority|GrpTRES|MaxJobsPU|MaxTRESPU
normal|10||4|cpu=16
long|0|cpu=16||
"""
QUOTAS = (
    "all/spares=1:processors=30;user/spares=1:jobs=5;queue=1:jobs=3;queue=1:processors=9;"
    "qos=2/user:jobs=2"
)


def site_jobs(jobs: int, load: float) -> Workload:
    """Jobs of whole nodes, of a part of one, and of tasks that lie anywhere."""
    made = hpcgym.load_workload(f"lublin:jobs={jobs},processors=32,load={load},seed=1")
    random = np.random.default_rng(1)
    processors = np.minimum(made.requested_processors, 16)
    several, loose = processors > 8, random.random(jobs) < 0.5
    requested = -(-made.requested_time // 60) * 60
    table = {
        "submit_time": made.submit_time,
        "run_time": np.maximum(made.run_time, 1),
        "requested_time": requested,
        "units": np.where(several, -(-processors // 8), np.where(loose, processors, 1)),
        "core": np.where(several, 8, np.where(loose, 1, processors)),
        "units_per_node": np.where(loose & ~several, -1, 1),
        "partition_name": np.where(requested <= 7200, "short", "batch"),
        "queue_name": np.where(requested > 36_000, "long", "normal"),
        "user": [f"user-{number}" for number in random.integers(1, 5, jobs)],
    }
    return hpcgym.load_workload(pd.DataFrame(table), processors=32)


def some(**columns: list[int]) -> Workload:
    """Three jobs."""
    usual = {"submit_time": [0, 1, 2], "run_time": [60] * 3, "requested_time": [60] * 3}
    return hpcgym.load_workload(pd.DataFrame({**usual, **columns}), processors=64)


# --- Nodes of several cores -----------------------------------------------------------------------


def test_units_are_tasks() -> None:
    jobs = some(units=[6, 2, 1], core=[2, 4, 3], units_per_node=[3, 1, -1])
    assert asks_of(jobs, find_cluster("8x1x8")) == [
        ["-n", "6", "-c", "2", "--ntasks-per-node=3"],
        ["-n", "2", "-c", "4", "-N", "2"],
        ["-n", "1", "-c", "3", "-N", "1"],
    ]
    assert asks_of(jobs, Cluster(64)) == [["-n", "12"], ["-n", "8"], ["-n", "3"]]


def test_memory_is_that_of_a_core_or_of_a_node() -> None:
    machine = Cluster(groups=(NodeGroup("thin", 8, {"core": 8, "mem": 64_000}),))
    jobs = some(units=[6, 2, 1], core=[2, 4, 3], units_per_node=[-1, 1, -1], mem=[10, 1001, 7])
    memory = [words[-1] for words in asks_of(jobs, machine)]
    assert memory == ["--mem-per-cpu=5M", "--mem=1001M", "--mem=7M"]


#: Nodes with GPUs, one of them with fast storage too, and one with neither.
WITH_GPUS = Cluster(
    groups=(
        NodeGroup("gpu", 2, {"core": 8, "gpu": 4}),
        NodeGroup("both", 1, {"core": 8, "gpu": 2, "ssd": 1}),
        NodeGroup("thin", 1, {"core": 8}),
    )
)


def test_gpus_are_generic_resources_of_each_node(tmp_path: Path) -> None:
    needs = {"core": [1, 1, 1], "gpu": [4, 0, 1], "ssd": [0, 0, 1]}
    jobs = some(units=[2, 1, 1], units_per_node=[1, 1, -1], **needs)
    gpus_asked = asks_of(jobs, WITH_GPUS)
    assert [[word for word in words if "gres" in word] for words in gpus_asked] == [
        ["--gres=xgpu:4"],
        [],
        ["--gres=xgpu:1,xssd:1"],
    ]
    machine = PrivateNodes(nodes_of(WITH_GPUS), 12_345)
    lines = slurm_conf(tmp_path, machine, "me", {}).splitlines()
    assert "GresTypes=xgpu,xssd" in lines
    assert [line.partition(" Gres=")[2] for line in lines if line.startswith("NodeName")] == [
        "xgpu:4", "xgpu:4", "xgpu:2,xssd:1", ""
    ]  # fmt: skip


@needs_slurm
@pytest.mark.filterwarnings("ignore:.*its jobs ran")
def test_gpus_are_shared_out_as_in_the_simulation() -> None:
    random, made = np.random.default_rng(5), site_jobs(60, 1.5)
    gpu = np.where(random.random(60) < 0.6, random.integers(1, 5, 60), 0)
    table = {
        "submit_time": made.submit_time,
        "run_time": made.run_time,
        "requested_time": made.requested_time,
        "units": np.where(random.random(60) < 0.2, 2, 1),
        "core": np.minimum(made.requested_processors, 8),
        "units_per_node": 1,
        "gpu": gpu,
    }
    jobs = hpcgym.load_workload(pd.DataFrame(table), processors=32)
    replayed = replay_on_slurm(jobs, "easy:backfill=slurm", cluster=WITH_GPUS)
    facts = facts_of(replayed)
    assert facts["close_starts"] >= 0.98, facts
    none = hpcgym.load_workload(pd.DataFrame({**table, "gpu": 0}), processors=32)  # they do matter
    other = hpcgym.simulate(none, "easy:backfill=slurm", cluster=WITH_GPUS)
    assert (other.start != replayed.simulated.start).mean() > 0.1


def test_processors_of_each_node_are_read() -> None:
    line = "JobId=1 Name={} JobState=COMPLETED NodeList=n[1-3] {}"
    times = " ".join(f"{event}Time=1970-01-01T00:00:01" for event in ("Submit", "Start", "End"))
    text = "\n".join(line.format(name, times) for name in ("job-0", "job-1"))
    records_read = read_records(text, 0, "job-1 4(x2),12\n")
    assert [record.processors for record in records_read] == [(), (4, 4, 12)]


# --- Limits ---------------------------------------------------------------------------------------


def test_quotas_are_limits_of_accounts_and_qos() -> None:
    jobs = some(queue=[1, 2, 2], user_id=[7, 7, 8], requested_processors=[1, 1, 1])
    limits = limits_of(jobs, read_quotas(f"{QUOTAS};all/spares=1:processors=40"), {"2": 50})
    assert limits.of_all == {"processors": 30}
    assert limits.of_account == {"u7": {"jobs": 5}, "u8": {"jobs": 5}}
    assert limits.of_qos == {
        "q1": ({"jobs": 3, "processors": 9}, {}, 0),
        "q2": ({}, {"jobs": 2}, 50),
    }
    assert [limits.words(row) for row in (0, 2)] == [
        ["--account=u7", "--qos=q1"],
        ["--account=u8", "--qos=q2"],
    ]


def test_quotas_of_groups_and_of_one_user_are_limits_of_accounts() -> None:
    jobs = some(queue=[1, 2, 2], group_id=[4, 4, 5], requested_processors=[1, 1, 1])
    quotas = "group:jobs=9; group=4:processors=6; group=5/group:jobs=2; queue=2/group:processors=7"
    limits = limits_of(jobs, read_quotas(quotas))
    assert limits.of_account == {"g4": {"jobs": 9, "processors": 6}, "g5": {"jobs": 2}}
    assert limits.of_qos["q2"] == ({}, {"processors": 7}, 0)
    assert [*limits.account] == ["g4", "g4", "g5"]
    assert limits_of(jobs, read_quotas("user=1:jobs=3")).of_account == {}  # she has no job


def test_limits_of_any_amount_are_of_what_slurm_tracks() -> None:
    jobs = some(queue=[1, 2, 2], user_id=[7, 7, 8], requested_processors=[1, 1, 1])
    jobs = jobs.with_columns(**{"licence.matlab": [2, 0, 1], "licence.fluent": [0, 3, 0]})
    text = "all:licence.matlab=8+nodes=9; user:gpu=4; queue=1/user:mem=7+billing=5"
    licences, quotas = licences_of(jobs, read_quotas(text))
    assert licences == {"Licenses": "fluent:1000000,matlab:8"}
    assert [words[2:] for words in asks_of(jobs, Cluster(64))] == [
        ["-L", "matlab:2"],
        ["-L", "fluent:3"],
        ["-L", "matlab:1"],
    ]
    limits = limits_of(jobs, quotas)
    assert limits.of_all == {"nodes": 9}
    assert limits.of_account == {"u7": {"gpu": 4}, "u8": {"gpu": 4}}
    assert limits.of_qos["q1"] == ({}, {"mem": 7, "billing": 5}, 0)
    by_time = limits_of(jobs, read_quotas("user:gpu-minutes=40+processor-minutes=9"))
    assert by_time.of_account["u7"] == {"gpu-minutes": 40, "processor-minutes": 9}
    assert by_time.tracked([]) == ["gres/xgpu"]
    billed = Partition("p", (0,), billing="CPU=1,GRES/fpga=2,license/matlab=3")
    assert limits.tracked([billed]) == ["gres/xgpu", "gres/xfpga", "license/matlab"]


def test_shares_are_those_of_accounts_below_each_other() -> None:
    jobs = some(user_id=[7, 7, 8], group_id=[1, 1, 2], requested_processors=[1, 1, 1])
    shares = {7: 2, 9: 6, "physics": 3}
    fair_share = FairShare(shares=shares, accounts={7: "physics", 8: "physics", "physics": "all"})
    limits = limits_of(jobs, [], fair_share=fair_share)
    assert [*limits.account] == ["u7", "u7", "u8"]
    above = limits.above["u7"]
    assert limits.above["u8"] == above
    assert limits.above[above] not in limits.above
    assert limits.shares["u7"] == 2 * limits.shares["u8"]
    (idle,) = limits.idle  # user 9, beside the account of all
    top = {name: share for name, share in limits.shares.items() if name not in limits.above}
    assert top[idle] == 6 * min(top.values())
    assert len(top) == 2
    several = {"a@x": 1, "a@y": 1}
    named = replace(jobs, header={"User": ["7 a"], "Group": ["1 x", "2 y"]})
    with pytest.raises(HpcgymError, match="each user in one account"):
        limits_of(named.with_columns(user_id=[7] * 3), [], fair_share=FairShare(shares=several))


#: Jobs of partitions, groups and queues.
PLACED = some(
    requested_processors=[1, 1, 1], partition=[1, 1, 1], group_id=[1, 2, 2], queue=[1, 2, 2]
)


@needs_slurm
def test_slurm_knows_the_limits() -> None:
    """It has no database: it reads them among its states, and tells them as it always does."""
    jobs = some(queue=[1, 2, 2], user_id=[7, 7, 8], requested_processors=[1, 1, 1])
    limits = limits_of(jobs, read_quotas(QUOTAS), {"2": 50})
    settings = scheduling_of(hpcgym.Scheduler(backfill="slurm"))
    with private_slurm((SlurmNode(8),), settings, 30, limits=limits) as slurm:
        slurm.begin(0)
        slurm.advance(0)
        slurm.submit("mine", ["-n", "1", *limits.words(1)], 600, 300)
        slurm.advance(5)
        lines = slurm.run("scontrol", "-o", "show", "assoc_mgr", "flags=qos,assoc").splitlines()
    for begin, *parts in (
        ("ClusterName=replay Account=root ", "GrpJobs=N(1)", "GrpTRES=cpu=30(1)"),
        ("ClusterName=replay Account=u7 UserName= ", "GrpJobs=5(1)", "GrpTRES=cpu=N(1)"),
        ("ClusterName=replay Account=u8 UserName= ", "GrpJobs=5(0)"),
        ("QOS=q1(", "GrpJobs=3(0)", "GrpTRES=cpu=9(0)", "Priority=0"),
        ("QOS=q2(", "GrpJobs=N(1)", "MaxJobsPA=2(1)", "Priority=50"),
    ):
        line = next(text for text in lines if text.startswith(begin))
        assert [part for part in parts if f" {part}" not in line.replace("{", " ")] == [], line


@needs_slurm
def test_slurm_knows_limits_of_minutes() -> None:
    """Of what running jobs still may use; it counts the time that they have run as they end."""
    jobs = some(queue=[1, 2, 2], user_id=[7, 7, 8], requested_processors=[1, 1, 1])
    quotas = "user:processor-minutes=40; queue=1:node-minutes=70"
    limits = limits_of(jobs, read_quotas(quotas))
    settings = scheduling_of(hpcgym.Scheduler(backfill="slurm"))
    with private_slurm((SlurmNode(8),), settings, 30, limits=limits) as slurm:
        slurm.begin(0)
        slurm.advance(0)
        for name, row in (("a", 0), ("b", 2), ("c", 2), ("d", 2)):
            slurm.submit(name, ["-n", "2", *limits.words(row)], 600, 300)
        slurm.advance(5)
        lines = slurm.run("scontrol", "-o", "show", "assoc_mgr", "flags=qos,assoc").splitlines()
        waits = slurm.run("squeue", "-h", "-t", "PENDING", "-o", "%j %r").split()
    for begin, part in (
        ("ClusterName=replay Account=u7 UserName= ", "GrpTRESRunMins=cpu=40(20)"),
        ("QOS=q1(", "node=70(10)"),
    ):
        assert part in next(text for text in lines if text.startswith(begin))
    assert waits == ["d", "AssocGrpCPURunMinutesLimit"]


@needs_slurm
def test_slurm_knows_budgets() -> None:
    """Job b is too much while a may still use 20 of 39 minutes; c of another user is not."""
    jobs = some(user_id=[7, 7, 8], requested_processors=[1, 1, 1])
    limits = limits_of(jobs, read_quotas("user:processor-minutes-in-all=39"))
    settings = scheduling_of(hpcgym.Scheduler(backfill="slurm"))
    settings["AccountingStorageEnforce"] = "safe"
    with private_slurm((SlurmNode(8),), settings, 30, limits=limits) as slurm:
        slurm.begin(0)
        slurm.advance(0)
        for name, row in (("a", 0), ("b", 1), ("c", 2)):
            slurm.submit(name, ["-n", "2", *limits.words(row)], 600, 300)
        slurm.advance(5)
        lines = slurm.run("scontrol", "-o", "show", "assoc_mgr", "flags=assoc").splitlines()
        waits = slurm.run("squeue", "-h", "-t", "PENDING", "-o", "%j %r").split()
    line = next(
        text for text in lines if text.startswith("ClusterName=replay Account=u7 UserName= ")
    )
    assert "GrpTRESMins=cpu=39(0)" in line
    assert waits == ["b", "AssocGrpCPUMinutesLimit"]


@needs_slurm
def test_a_limit_of_a_qos_stands_in_place_of_that_of_an_account() -> None:
    jobs = hpcgym.load_workload("lublin:jobs=80,processors=8,load=2,seed=3")
    turns = np.arange(len(jobs))
    jobs = jobs.with_columns(queue=2 + turns % 2, user_id=1 + turns % 3)
    quotas = "user/spares=2:jobs=1; queue=2:jobs=4"
    replayed = replay_on_slurm(jobs, "easy:backfill=until-shadow", restrictions={"quota": quotas})
    facts = facts_of(replayed)
    assert facts["close_starts"] >= 0.98, facts
    for other in ("user:jobs=1; queue=2:jobs=4", "queue=3/user:jobs=1; queue=2:jobs=4"):
        rules = replayed.simulated.scheduler.but(
            quota=other
        )  # who is spared is not bound, and counts
        assert (hpcgym.simulate(jobs, rules).start != replayed.simulated.start).mean() > 0.1


@needs_slurm
def test_slurm_charges_what_is_billed() -> None:
    """By the weights of the partition, to the account of the job and to those above it."""
    table = {"submit_time": [0], "run_time": [300], "requested_time": [600], "core": [4]}
    jobs = hpcgym.load_workload(pd.DataFrame(table | {"gpu": [2]}), processors=8)
    jobs = jobs.with_columns(user_id=[7], group_id=[1], **{"licence.matlab": [3]})
    shares = FairShare(shares={7: 1, 8: 3, "x": 1}, accounts={7: "x", 8: "x"}, formula="fair-tree")
    partition = Partition("p", (0,), billing="CPU=1,GRES/gpu=16,license/matlab=2")
    licences, quotas = licences_of(jobs, read_quotas("all:licence.matlab=3"))
    limits = limits_of(jobs, quotas, fair_share=shares)
    settings = {"PriorityType": "priority/multifactor", "PriorityWeightFairshare": "1000"}
    machine = Cluster(groups=(NodeGroup("n", 1, {"core": 8, "gpu": 4}),), partitions=(partition,))
    asks, every_s = asks_of(jobs, machine)[0], 30
    with private_slurm(
        nodes_of(machine), settings | licences, every_s, machine.partitions, limits=limits
    ) as slurm:
        slurm.begin(0)
        slurm.advance(0)
        slurm.submit("mine", ["-p", "p", *asks, *limits.words(0)], 600, 300)
        slurm.advance(700)
        lines = slurm.run("scontrol", "-o", "show", "assoc_mgr", "flags=assoc").splitlines()
        (line,) = (text for text in lines if "Account=u7 UserName= " in text)
        (beside,) = (text for text in lines if "Account=a1 UserName= " in text)
    billed_s = 300 * billed(jobs, partition.billing, greatest=False)[0]
    used = float(line.partition("UsageRaw/Norm/Efctv=")[2].partition("/")[0])
    assert used == pytest.approx(billed_s, rel=0.01)  # it halves in a week
    assert "SharesRaw/Norm/Level/Factor=180180000/0.25/720720000/" in line
    assert "SharesRaw/Norm/Level/Factor=540540000/0.75/720720000/" in beside


# --- All of it together ---------------------------------------------------------------------------


@needs_slurm
@pytest.mark.filterwarnings("ignore:.*follow", "ignore:.*settings that", "ignore:.*its jobs ran")
def test_a_site_with_limits_and_a_window(tmp_path: Path) -> None:
    conf, qos = tmp_path / "site.conf", tmp_path / "qos.txt"
    conf.write_text(CONF)
    qos.write_text(QOS)
    jobs, window = site_jobs(100, 1.5), {"maintenance": "10000/20000:nodes=0"}
    replayed = replay_on_slurm(jobs, f"{conf}:qos={qos}", restrictions=window)
    facts = facts_of(replayed)
    assert facts["close_starts"] >= 0.98, facts
    had = replayed.replayed.allocation
    assert had is not None
    assert (np.add.reduceat(had.units, had.first[:-1]) == jobs.units).all()
    closed = (replayed.replayed.start < 20_000) & (replayed.replayed.end > 10_000)
    assert not {*had.node[np.repeat(closed, np.diff(had.first))].tolist()} & {0}
    for name, value in {"quota": (), "maintenance": ()}.items():  # both matter here
        rules = replayed.simulated.scheduler.but(**{name: value})
        other = hpcgym.simulate(jobs, rules, cluster=str(conf))
        assert (other.start != replayed.simulated.start).mean() > 0.05


@needs_slurm
@pytest.mark.filterwarnings("ignore:.*follow", "ignore:.*settings that", "ignore:.*its jobs ran")
def test_priorities_of_qos_beside_age(tmp_path: Path) -> None:
    conf, qos = tmp_path / "site.conf", tmp_path / "qos.txt"
    conf.write_text(
        CONF.replace("PriorityWeightPartition=1000", "PriorityWeightAge=1000\nPriorityMaxAge=1-0")
    )
    qos.write_text("Name|Priority\nnormal|0\nlong|10\n")
    replayed = replay_on_slurm(site_jobs(100, 3.0), f"{conf}:qos={qos}")
    assert facts_of(replayed)["close_starts"] >= 0.98


test_mistakes = mistakes_of(globals())
