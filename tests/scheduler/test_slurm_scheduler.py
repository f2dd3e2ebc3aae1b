"""The rules of a slurm.conf as a scheduler."""

from __future__ import annotations

import math
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from few_jobs import few_jobs
from mistakes import mistakes_of

import hpcgym
from hpcgym.baselines.schedulers import find_scheduler, is_scheduler
from hpcgym.errors import HpcgymWarning
from hpcgym.machine import Cluster, NodeGroup
from hpcgym.machine.files import find_cluster
from hpcgym.scheduler.policies import FairShare
from hpcgym.scheduler.restrictions import Quota
from hpcgym.scheduler.slurm_qos import read_qos
from hpcgym.simulation.batch import BatchSimulator
from hpcgym.workload import load_workload

NODES = "ClusterName=mine\nNodeName=n[1-4] CPUs=16\n"


def conf(folder: Path, text: str) -> str:
    """Write a slurm.conf and return its path."""
    path = folder / "slurm.conf"
    path.write_text(NODES + text)
    return str(path)


@pytest.mark.slow
def test_all_that_is_followed(tmp_path: Path) -> None:
    file = conf(
        tmp_path,
        "SchedulerType=sched/backfill\n"
        "SchedulerParameters=bf_interval=60,bf_max_job_test=1000,bf_window=2880\n"
        "PriorityType=priority/multifactor\nPriorityWeightAge=1000\nPriorityMaxAge=14-0\n"
        "PriorityWeightJobSize=50\nPriorityWeightFairshare=10000\nPriorityDecayHalfLife=1-0\n",
    )
    assert is_scheduler(file)
    scheduler = find_scheduler(file)
    assert scheduler.backfill == "slurm:bf_interval=60+bf_max_job_test=1000+bf_window=2880"
    assert scheduler.policy == (
        "1000 * min(wait / 1209600, 1) + 50 * processors / 64 + 10000 * fairshare"
        " - min(nice, 11050)"
    )
    assert scheduler.fair_share == FairShare(86_400, formula="fair-tree", period_s=300)
    jobs = hpcgym.load_workload("lublin:jobs=100,processors=64,load=1.2,seed=1")
    result = hpcgym.simulate(jobs, file, cluster=file)
    hpcgym.validate_schedule(result)


@pytest.mark.parametrize(
    ("text", "policy", "backfill"),
    [
        ("", "fcfs", "slurm"),
        ("PriorityType=priority/basic\nPriorityWeightAge=9\n", "fcfs", "slurm"),
        ("SchedulerType=sched/builtin\n", "fcfs", "slurm:bf_interval=-1"),
        (
            "SchedulerType=sched/builtin\nSchedulerParameters=bf_interval=9,default_queue_depth=5\n",
            "fcfs",
            "slurm:bf_interval=-1+default_queue_depth=5",
        ),
        ("SchedulerParameters=bf_interval=-1\n", "fcfs", "slurm:bf_interval=-1"),
        ("PriorityWeightAge=5\nPriorityMaxAge=UNLIMITED\n", "fcfs", "slurm"),
        ("PriorityWeightAge=5\n", "max(5 * min(wait / 604800, 1) - nice, 1)", "slurm"),
        (
            "PriorityWeightJobSize=5\nPriorityFavorSmall=YES\n",
            "max(5 * (1 - processors / 64) - nice, 1)",
            "slurm",
        ),
        (
            "PriorityWeightJobSize=5\nPriorityFavorSmall=true\n",
            "max(5 * (1 - processors / 64) - nice, 1)",
            "slurm",
        ),
        (
            "PriorityWeightJobSize=5\nPriorityFavorSmall=1\n",
            "max(5 * (1 - processors / 64) - nice, 1)",
            "slurm",
        ),
        (
            "PriorityWeightJobSize=5\nPriorityFavorSmall=DOWN\n",
            "max(5 * processors / 64 - nice, 1)",
            "slurm",
        ),
        (
            "SchedulerParameters=bf_job_part_count_reserve=1\n",
            "fcfs",
            "slurm:bf_job_part_count_reserve=1",
        ),
        ("SchedulerParameters=bf_max_job_user=0\n", "fcfs", "slurm"),
        ("SchedulerParameters=bf_max_job_user=20\n", "fcfs", "slurm:bf_max_job_user=20"),
    ],
)
def test_what_a_file_says(tmp_path: Path, text: str, policy: str, backfill: str) -> None:
    scheduler = find_scheduler(conf(tmp_path, text))
    assert (scheduler.policy, scheduler.backfill) == (policy, backfill)


def test_usage_that_is_never_forgotten(tmp_path: Path) -> None:
    for half in ("0", "0-0"):
        file = conf(
            tmp_path,
            f"PriorityWeightFairshare=1\nPriorityDecayHalfLife={half}\n"
            "PriorityFlags=NO_FAIR_TREE\n",
        )
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert find_scheduler(file).fair_share == FairShare(math.inf, period_s=300)
    file = conf(tmp_path, "PriorityWeightFairshare=1\nFairShareDampeningFactor=3\n")
    tree = FairShare(formula="fair-tree", period_s=300)
    assert find_scheduler(file).fair_share == tree
    text = "PriorityWeightFairshare=1\nPriorityFlags=FAIR_TREE\nPriorityCalcPeriod=10\n"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert find_scheduler(conf(tmp_path, text)).fair_share == replace(tree, period_s=600)
    file = conf(tmp_path, "PriorityWeightFairshare=1\nPriorityFlags=NO_FAIR_TREE,ACCRUE_ALWAYS\n")
    with pytest.warns(HpcgymWarning, match="not followed: PriorityFlags"):
        assert find_scheduler(file).fair_share == FairShare(period_s=300)


def test_strict_order_needs_no_settings_of_backfilling(tmp_path: Path) -> None:
    file = conf(tmp_path, "SchedulerType=sched/builtin\nSchedulerParameters=bf_window=5\n")
    with pytest.warns(HpcgymWarning, match="SchedulerParameters bf_window"):
        find_scheduler(file)


BUILTIN = (
    "SchedulerType=sched/builtin\nPriorityType=priority/basic\n"
    "PartitionName=a Nodes=n1 Default=YES\nPartitionName=b Nodes=n2\n"
    "PartitionName=both Nodes=n[1-2]\n"
)


@pytest.mark.parametrize(
    ("partition", "start"),
    [
        # job 2 waits in a, and job 3 has b to itself
        ([1, 1, 2, 2], [0, 100, 2, 102]),
        # job 2 waits for both, and no node of both is left for who comes later
        ([1, 3, 2, 2], [0, 100, 200, 300]),
    ],
)
def test_strict_order_is_of_each_partition(
    tmp_path: Path, partition: list[int], start: list[int]
) -> None:
    file = conf(tmp_path, BUILTIN)
    width = [32 if number == 3 else 16 for number in partition]
    numbers = {"partition": partition, "job_number": [1, 2, 3, 4]}
    jobs = few_jobs(64, [0, 1, 2, 3], [100] * 4, width, **numbers)
    jobs = replace(jobs, header={"Partition": ["1 a", "2 b", "3 both"]})
    result = hpcgym.simulate(jobs, file, cluster=file)
    assert result.start.tolist() == start
    hpcgym.validate_schedule(result)
    assert set(hpcgym.explain(result, 4).waited_for) <= {
        "processors",
        "nodes",
        "partition",
        "order",
    }
    batch = BatchSimulator([jobs], ["wait"], find_scheduler(file), cluster=find_cluster(file))
    assert batch.run([[1.0]], ["mean_wait_s"]).item() == np.mean(start) - 1.5


def test_plans_are_rounded_and_joined_as_the_file_says(tmp_path: Path) -> None:
    file = conf(tmp_path, "SchedulerParameters=bf_resolution=300,bf_window_linear=20\n")
    assert find_scheduler(file).backfill == "slurm:bf_resolution=300+bf_window_linear=20"


def test_what_is_not_followed_is_named(tmp_path: Path) -> None:
    file = conf(
        tmp_path,
        "SchedulerParameters=bf_interval=30,bf_continue,bf_yield_interval=60\n"
        "PriorityWeightQOS=10\nPreemptType=preempt/qos\n",
    )
    with pytest.warns(HpcgymWarning) as caught:
        find_scheduler(file)
    said = str(caught[0].message)
    for name in ("bf_continue", "bf_yield_interval", "PriorityWeightQOS", "PreemptType"):
        assert name in said
    assert "bf_interval" not in said


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("SchedulerType=sched/wiki\n", "line 3: SchedulerType=sched/wiki: known are"),
        ("PriorityType=priority/mine\n", "line 3: PriorityType=priority/mine: known are"),
        (
            "PriorityWeightAge=much\n",
            "line 3: PriorityWeightAge must be a whole number of at least",
        ),
        ("PriorityWeightAge=-10\n", "line 3: PriorityWeightAge must .* of at least 0, not '-10'"),
        ("PriorityMaxAge=old\n", "line 3: PriorityMaxAge is 'old', no duration"),
        (
            "SchedulerParameters=bf_interval=often\n",
            "line 3: SchedulerParameters: bf_interval must be a whole number",
        ),
        ("PreemptMode=REQUE\n", "line 3: PreemptMode=reque: did you mean 'requeue'"),
        (
            "PreemptType=preempt/partition\n",
            "line 3: PreemptType=preempt/partition: did you mean 'preempt/partition_prio'",
        ),
        (
            "PartitionName=p Nodes=n1 PreemptMode=of\n",
            "partition 'p': PreemptMode=of: did you mean 'off'",
        ),
    ],
)
def test_what_is_wrong_counts_as_what_slurm_has(tmp_path: Path, text: str, words: str) -> None:
    with pytest.warns(HpcgymWarning, match=words) as caught:
        scheduler = find_scheduler(conf(tmp_path, text))
    (warning,) = [entry for entry in caught if "invalid values" in str(entry.message)]
    assert "slurm.conf: invalid values, replaced by Slurm's defaults: 1; " in str(warning.message)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert scheduler == find_scheduler(
            conf(tmp_path, text.startswith("Part") * "PartitionName=p Nodes=n1\n")
        )


def test_modes_of_partitions_count_only_where_partitions_stop_others(tmp_path: Path) -> None:
    """With preempt/qos Slurm does not go by them (its page, of PreemptMode of a partition)."""
    qos = tmp_path / "qos.txt"
    qos.write_text("Name|Preempt\nhigh|low\nlow|\n")
    text = "PreemptType=preempt/qos\nPreemptMode=CANCEL\n"
    file = conf(tmp_path, text + "PartitionName=a Nodes=n1 PreemptMode=OFF\n")
    with pytest.warns(HpcgymWarning, match="not followed: a: PreemptMode$"):
        assert str(find_scheduler(f"{file}:qos={qos}").preemption) == "qos:high>low,cancel"


PARTITIONS = (
    "PartitionName=batch Nodes=n[1-3] Default=YES PriorityJobFactor=1\n"
    "PartitionName=debug Nodes=n[3-4] PriorityTier=10 PriorityJobFactor=4\n"
    "PartitionName=low Nodes=ALL PriorityTier=0 PriorityJobFactor=0\n"
)


@pytest.mark.parametrize(
    ("text", "policy"),
    [
        (
            "PriorityType=priority/basic\n",
            "1 * (partition == 'batch') + 2 * (partition == 'debug')",
        ),
        (
            "PriorityWeightPartition=10\nPriorityWeightJobSize=5\n",
            "2147483676 * (partition == 'batch') + 4294967352 * (partition == 'debug')"
            " + max(2.5 * (partition == 'batch') + 10 * (partition == 'debug')"
            " + 5 * processors / 64 - nice, 1)",
        ),
    ],
)
def test_tiers_and_factors_of_partitions(tmp_path: Path, text: str, policy: str) -> None:
    scheduler = find_scheduler(conf(tmp_path, text + PARTITIONS))
    assert scheduler.policy == policy


def test_a_higher_tier_comes_first(tmp_path: Path) -> None:
    """By hand: of jobs that each want all of n3 the one in debug starts first, then batch."""
    file = conf(tmp_path, "SchedulerType=sched/builtin\n" + PARTITIONS)
    jobs = few_jobs(64, [0, 1, 2, 3], [10] * 4, [64, 64, 48, 32], partition=[3, 3, 1, 2])
    jobs = replace(jobs, header={"Partition": ["1 batch", "2 debug", "3 low"]})
    result = hpcgym.simulate(jobs, file, cluster=file)
    assert result.start.tolist() == [0, 30, 20, 10]
    hpcgym.validate_schedule(result)


PREEMPTS = "PreemptType=preempt/partition_prio\n"


@pytest.mark.parametrize(
    ("text", "preemption"),
    [
        ("PreemptMode=REQUEUE\n", "partition:debug>batch;debug>low;batch>low"),
        ("PreemptMode=CANCEL\n", "partition:debug>batch;debug>low;batch>low,cancel"),
        ("PreemptMode=SUSPEND,GANG\n", "partition:debug>batch;debug>low;batch>low,suspend"),
        ("PreemptMode=ON,GANG\n", "partition:debug>batch;debug>low;batch>low,suspend"),
        (
            "PreemptMode=Requeue\nSchedulerParameters=preempt_youngest_first\n"
            "PartitionName=safe Nodes=n1 PreemptMode=OFF\nPreemptExemptTime=-1\n",
            "partition:debug>batch;debug>low;batch>low;safe>low",
        ),
        (
            "PreemptMode=CANCEL\nPreemptExemptTime=00:10:00\n",
            "partition:debug>batch;debug>low;batch>low,cancel,exempt=600",
        ),
        (
            "PreemptMode=SUSPEND,GANG\nPreemptExemptTime=10\n",
            "partition:debug>batch;debug>low;batch>low,suspend",
        ),
        (
            "PreemptMode=REQUEUE\nPriorityWeightFairshare=9\nPriorityWeightAge=5\n",
            "partition:debug>batch;debug>low;batch>low",
        ),
    ],
)
def test_who_stops_whom(tmp_path: Path, text: str, preemption: str) -> None:
    """By hand; debug has the tier 10, batch and safe 1, low 0."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        scheduler = find_scheduler(conf(tmp_path, PREEMPTS + PARTITIONS + text))
    assert scheduler.describe()["preemption"] == preemption


@pytest.mark.parametrize(
    ("text", "named"),
    [
        (PREEMPTS + "PreemptMode=GANG\n", ["PreemptMode", "PreemptType"]),
        (PREEMPTS + "PreemptMode=REQUEUE,PRIORITY\n", ["PreemptMode", "PreemptType"]),
        ("PreemptMode=CLUSTER\n", ["PreemptMode"]),
        (PREEMPTS, ["PreemptType"]),
        ("PreemptType=preempt/qos\nPreemptMode=REQUEUE\n", ["PreemptMode", "PreemptType"]),
    ],
)
def test_what_of_preemption_is_not_followed(tmp_path: Path, text: str, named: list[str]) -> None:
    with pytest.warns(HpcgymWarning) as caught:
        scheduler = find_scheduler(conf(tmp_path, PARTITIONS + text))
    assert scheduler.preemption is None
    said = str(caught[0].message)
    assert all(said.count(name.partition(" ")[0]) == 1 for name in named)
    assert all(name in said for name in named)


QOS = "Name|Priority|GraceTime|Preempt|PreemptMode|PreemptExemptTime|MaxJobsPU|MaxWall\n"
QOS += "normal|20|00:00:00||cluster|||\n"
QOS += "high|80|00:00:00|normal,low|cluster||2|1-00:00:00\n"
QOS += "low|0|00:05:00||cluster|00:20:00||\n"
OF_QOS = "PreemptType=preempt/qos\nPreemptMode=CANCEL\nPreemptExemptTime=10\n"
OF_QOS += "PriorityType=priority/multifactor\nPriorityWeightQOS=1000\nPriorityWeightJobSize=8\n"


def test_a_file_of_qos_beside_the_slurm_conf(tmp_path: Path) -> None:
    """Its priorities, limits and who stops whom; mode and exempt time are those of the file."""
    file, qos = conf(tmp_path, OF_QOS), tmp_path / "qos.txt"
    qos.write_text(QOS)
    name = f"{file}:qos={qos}"
    assert is_scheduler(name)
    scheduler = find_scheduler(name)
    assert scheduler.policy == (
        "max(8 * processors / 64 + 250 * (queue == 'normal') + 1000 * (queue == 'high') - nice, 1)"
    )
    limits = "queue=high/user:jobs=2; queue=high/job:requested_time=86400"
    assert scheduler.describe()["quota"] == limits
    expected = "qos:high>normal;high>low,cancel,exempt=normal=600;low=1200,grace=low=300"
    assert str(scheduler.preemption) == expected
    hint = r"slurm.conf:qos=FILE takes what sacctmgr -P show qos printed$"
    told_of = f"not followed: .*PreemptType.*PriorityWeightQOS.*{hint}"
    with pytest.warns(HpcgymWarning, match=told_of):
        alone = find_scheduler(file)
    assert (alone.policy, alone.quota) == ("max(8 * processors / 64 - nice, 1)", ())
    assert alone.preemption is None
    # PreemptType is another: limits and priorities alone
    other = conf(tmp_path, OF_QOS.replace("preempt/qos", "preempt/none"))
    with pytest.warns(HpcgymWarning) as caught:
        scheduler = find_scheduler(f"{other}:qos={qos}")
    assert scheduler.preemption is None
    assert "high: Preempt" in str(caught[0].message)
    assert "no PreemptType=preempt/qos, so no job stops another" in str(caught[0].message)


@pytest.mark.parametrize(
    ("text", "limit", "backfill"),
    [
        (
            "PriorityType=priority/multifactor\nPriorityCalcPeriod=10\n",
            "cpu=9",
            "slurm:calc_period=600",
        ),
        ("PriorityType=priority/multifactor\n", "cpu=9", "slurm"),
        ("PriorityType=priority/basic\n", "cpu=9", "slurm:calc_period=0"),
        ("PriorityType=priority/basic\n", "", "slurm"),
    ],
)
def test_time_counts_as_the_file_says(tmp_path: Path, text: str, limit: str, backfill: str) -> None:
    """In limits of what running jobs still may use."""
    file, qos = conf(tmp_path, text), tmp_path / "qos.txt"
    qos.write_text(f"Name|GrpTRESRunMins\nq|{limit}\n")
    scheduler = find_scheduler(f"{file}:qos={qos}")
    assert scheduler.backfill == backfill
    assert scheduler.describe()["quota"] == ("queue=q:processor-minutes=9" if limit else None)


def test_a_qos_that_cancels_others_beside_one_that_bounds_submissions(tmp_path: Path) -> None:
    """By hand: at 5 s job 3 cancels jobs 1 and 2, and job 4 comes at 6 s, since user 1 has room."""
    text = "PreemptType=preempt/qos\nPreemptMode=CANCEL\nSchedulerType=sched/builtin\n"
    file, qos = conf(tmp_path, text), tmp_path / "qos.txt"
    qos.write_text("Name|Preempt|MaxSubmitPU|MaxJobsPA\nhigh|low||1\nlow||2|\n")
    jobs = few_jobs(
        *(64, [0, 1, 2, 5, 5], [100, 100, 10, 10, 10], [32, 32, 8, 64, 8]),
        **{"queue": [2, 2, 2, 1, 1], "user_id": [1, 1, 1, 2, 2], "job_number": [1, 2, 4, 3, 5]},
    )
    jobs = replace(jobs, header={"Queue": ["1 high", "2 low"]})
    result = hpcgym.simulate(jobs, f"{file}:qos={qos}", processors=64)
    begun = dict(zip(result.workload.job_number.tolist(), result.start.tolist(), strict=True))
    assert begun == {1: 0, 2: 1, 3: 5, 4: 15, 5: 15}
    came = dict(zip(result.workload.job_number.tolist(), result.workload.submit_time, strict=True))
    assert came[4] == 6
    assert result.cancelled.sum() == 2
    hpcgym.validate_schedule(result)


@pytest.mark.slow
def test_a_job_of_a_higher_qos_comes_first(tmp_path: Path) -> None:
    """By hand: job 0 has all nodes; of those that wait job 3 has the highest QOS, then job 2."""
    file = conf(tmp_path, "PriorityType=priority/multifactor\nPriorityWeightQOS=9\n")
    qos = tmp_path / "qos.txt"
    qos.write_text("Name|Priority\nnormal|1\nhigh|5\nlow|0\n")
    jobs = few_jobs(64, [0, 1, 2, 3], [10] * 4, [64] * 4, queue=[1, 3, 1, 2])
    jobs = replace(jobs, header={"Queue": ["1 normal", "2 high", "3 low"]})
    result = hpcgym.simulate(jobs, f"{file}:qos={qos}", cluster=file)
    assert np.argsort(result.start).tolist() == [0, 3, 2, 1]
    hpcgym.validate_schedule(result)


OF_PARTITIONS = "PartitionName=a Nodes=ALL QOS=Own\nPartitionName=b Nodes=ALL QOS=both\n"
OF_PARTITIONS += "PartitionName=c Nodes=ALL\nPartitionName=d Nodes=ALL QOS=both\n"


@pytest.mark.parametrize(
    ("rows", "quotas"),
    [
        ("own||5||\n", ["queue=own|partition=a:jobs=5"]),
        ("both|||3|\n", ["queue=both|partition=b|partition=d/user:jobs=3"]),
        # for the same limit the partition's QOS comes first; a job counts in both
        (
            "own||5||\nnormal||2|1|cpu=9\n",
            [
                "queue=own|partition=a:jobs=5",
                "queue=normal/user:jobs=1",
                "queue=normal/spares=partition=a:jobs=2",
                "queue=normal:processors=9",
            ],
        ),
        # unless the job's has a flag
        (
            "own||5||\nhigh|OverPartQOS|2|1|\n",
            [
                "queue=own|partition=a/spares=high:jobs=5",
                "queue=high/user:jobs=1",
                "queue=high:jobs=2",
            ],
        ),
        # a QOS of jobs and of partitions, beside another of both kinds
        (
            "own||5||\nboth||2||\n",
            [
                "queue=own|partition=a/spares=partition=b|partition=d:jobs=5",
                "queue=both|partition=b|partition=d/spares=partition=a:jobs=2",
            ],
        ),
    ],
)
def test_quotas_of_a_qos_of_partitions(tmp_path: Path, rows: str, quotas: list[str]) -> None:
    file, qos = conf(tmp_path, OF_PARTITIONS), tmp_path / "qos.txt"
    qos.write_text(f"Name|Flags|GrpJobs|MaxJobsPU|GrpTRES\n{rows}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HpcgymWarning)  # of the other QOS
        read = [str(quota) for quota in find_scheduler(f"{file}:qos={qos}").quota]
    assert sorted(read) == sorted(quotas)
    assert [str(Quota.parse(quota)) for quota in read] == read


def test_partitions_whose_qos_is_not_known(tmp_path: Path) -> None:
    file, qos = conf(tmp_path, OF_PARTITIONS), tmp_path / "qos.txt"
    with pytest.warns(
        HpcgymWarning, match=r"not followed: QOS of 3 nodes or partitions\. .*qos=FILE"
    ):
        find_scheduler(file)
    qos.write_text("Name|GrpJobs\nOWN|5\n")
    with pytest.warns(HpcgymWarning, match="not followed: QOS of 2 nodes or partitions$"):
        scheduler = find_scheduler(f"{file}:qos={qos}")
    assert [str(quota) for quota in scheduler.quota] == ["queue=OWN|partition=a:jobs=5"]


def test_a_limit_of_a_partition_stands_in_place_of_that_of_an_account(tmp_path: Path) -> None:
    file, qos, assoc = conf(tmp_path, OF_PARTITIONS), tmp_path / "qos.txt", tmp_path / "assoc.txt"
    qos.write_text("Name|GrpJobs|MaxJobsPU\nown|5|\nboth||1\n")
    assoc.write_text("Account|User|GrpJobs|MaxJobs\nroot||9|\n root|ann||4\n")
    read = find_scheduler(f"{file}:qos={qos}+assoc={assoc}").quota
    assert {str(quota) for quota in read[-2:]} == {
        "all/spares=own|partition=a:jobs=9",
        "group=root/group/user/spares=both|partition=b|partition=d:jobs=4",
    }


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("bf_resoluton=60", "bf_resoluton; did you mean 'bf_resolution'?"),
        ("bf_interval=60,nonsense", "SchedulerParameters nonsense"),
    ],
)
def test_parameters_that_slurm_does_not_have(tmp_path: Path, text: str, words: str) -> None:
    with pytest.warns(HpcgymWarning, match="does not have: 1; line 3: .*") as caught:
        find_scheduler(conf(tmp_path, f"SchedulerParameters={text}\n"))
    assert str(caught[0].message).endswith(words)


def test_names_of_parameters_are_the_same_in_any_case(tmp_path: Path) -> None:
    file = conf(tmp_path, "SchedulerParameters=BF_Interval=90\n")
    assert find_scheduler(file).backfill == "slurm:bf_interval=90"


COLUMNS = "Name|Preempt|PreemptMode|PreemptExemptTime\n"


@pytest.mark.parametrize(
    ("rows", "outcome"),
    [
        ("a|b||\nb||cancel|\n", "qos:a>b,cancel,exempt=600"),
        ("a|b||\nb||gang,suspend|\n", "qos:a>b,suspend"),
        ("a|b,c||\nb||cancel|\nc||OFF|\n", "qos:a>b,cancel,exempt=600"),
        ("a|b||\nb||cancel|00:01:00\n", "qos:a>b,cancel,exempt=60"),
        ("a|b||\nb||suspend|00:01:00\n", "qos:a>b,suspend"),
        ("a|b||\nb||cluster|\n", "qos:a>b,cancel,exempt=600"),
    ],
)
def test_how_qos_are_stopped(tmp_path: Path, rows: str, outcome: str) -> None:
    qos = tmp_path / "qos.txt"
    qos.write_text(COLUMNS + rows)
    name = f"{conf(tmp_path, OF_QOS)}:qos={qos}"
    assert str(find_scheduler(name).preemption) == outcome


def test_grace_times_of_partitions(tmp_path: Path) -> None:
    """Those of partitions whose jobs others stop, as Slurm has them; none beside SUSPEND."""
    parts = PARTITIONS.replace("PartitionName=low ", "PartitionName=low GraceTime=90 ")
    parts = parts.replace("PartitionName=debug ", "PartitionName=debug GraceTime=7 ")
    for mode, grace in {"REQUEUE": ",grace=low=90", "SUSPEND,GANG": ""}.items():
        text = f"{PREEMPTS}{parts}PreemptMode={mode}\n"
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            described = find_scheduler(conf(tmp_path, text)).describe()["preemption"]
        assert described.partition(",")[2] == (grace or ",suspend")[1:]
    text = PREEMPTS + parts.replace("GraceTime=90", "GraceTime=00:01") + "PreemptMode=REQUEUE\n"
    with pytest.warns(HpcgymWarning, match="invalid values") as caught:
        preemption = find_scheduler(conf(tmp_path, text)).preemption
    assert any(
        "'low': GraceTime=00:01: seconds must be" in str(warning.message) for warning in caught
    )
    assert (preemption.pairs, preemption.grace) == (
        (("debug", "batch"), ("debug", "low"), ("batch", "low")),
        (),
    )


def test_an_exempt_time_that_is_none(tmp_path: Path) -> None:
    text = PREEMPTS + "PreemptMode=REQUEUE\nPreemptExemptTime=soon\n" + PARTITIONS
    with pytest.warns(HpcgymWarning, match=r"line 5: PreemptExemptTime is 'soon', no duration"):
        preemption = find_scheduler(conf(tmp_path, text)).preemption
    assert preemption is not None
    assert not preemption.exempt


def test_a_hundred_partitions(tmp_path: Path) -> None:
    many = "".join(
        f"PartitionName=partition-{number} Nodes=n1 PriorityTier={number} PriorityJobFactor=3\n"
        for number in range(100)
    )
    scheduler = find_scheduler(conf(tmp_path, "PriorityWeightPartition=7\n" + many))
    assert scheduler.policy.count("partition ==") == 199  # the lowest tier adds nothing


def test_weights_of_amounts_in_priorities(tmp_path: Path) -> None:
    """Of processors, over those of the partition; a warning says which weights are left."""
    text = "PriorityWeightAge=10\nPriorityWeightTRES=CPU=1000,GRES/gpu=5,Node=3\n"
    with pytest.warns(HpcgymWarning, match="not followed: PriorityWeightTRES=GRES/gpu=5,Node=3$"):
        policy = find_scheduler(conf(tmp_path, text)).policy
    age = "10 * min(wait / 604800, 1)"
    assert policy == f"max({age} + 15.625 * processors - nice, 1)"  # of 64 processors
    parts = "NodeName=m[1-2] CPUs=8\nPartitionName=a Nodes=m1\nPartitionName=b Nodes=m[1-2]\n"
    both = find_scheduler(conf(tmp_path, f"PriorityWeightTRES=cpu=80\n{parts}"))
    assert both.policy == (
        "max(10 * (partition == 'a') * processors + 5 * (partition == 'b') * processors - nice, 1)"
    )
    with pytest.warns(HpcgymWarning, match="invalid values.*'x=1' is no weight of an amount"):
        assert find_scheduler(conf(tmp_path, "PriorityWeightTRES=x=1\n")).policy == "fcfs"


GPUS = """ClusterName=mine
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
GresTypes=gpu
NodeName=c[1-2] CPUs=8 RealMemory=4000
NodeName=g1 CPUs=8 RealMemory=8000 Gres=gpu:4
PartitionName=cpu Nodes=c[1-2] PriorityJobFactor=1
PartitionName=gpu Nodes=g1 Default=YES PriorityJobFactor=4
PartitionName=long Nodes=c[1-2]
Licenses=matlab:10
SchedulerType=sched/builtin
"""


def test_weights_of_all_amounts_of_a_partition(tmp_path: Path) -> None:
    """Each over what the partition has of it; partitions without it add nothing."""
    path = tmp_path / "slurm.conf"
    weights = "Mem=80,GRES/gpu=100,license/matlab=50"
    path.write_text(f"{GPUS}PriorityWeightTRES={weights}\n")
    assert find_scheduler(str(path)).policy == (
        "max(0.01 * asked('mem') + 25 * (partition == 'gpu') * asked('gpu')"
        " + 5 * asked('licence.matlab') - nice, 1)"
    )
    table = {"submit_time": [0, 1, 2, 3], "run_time": [10] * 4, "requested_time": [10] * 4}
    table |= {"core": [8, 8, 8, 8], "gpu": [0, 1, 4, 2], "mem": [80] * 4, "partition": ["gpu"] * 4}
    table |= {"licence.matlab": [0, 0, 0, 1]}
    jobs = hpcgym.load_workload(pd.DataFrame(table), cluster=str(path))
    for engine in (None, "reference"):
        result = hpcgym.simulate(jobs, str(path), cluster=str(path), engine=engine)
        assert result.start.tolist() == [0, 30, 10, 20]
    hpcgym.validate_schedule(result)


def test_factors_that_are_not_divided(tmp_path: Path) -> None:
    """By ``set_priority_factors`` of Slurm: the numbers themselves, times the weights."""
    path, qos = tmp_path / "slurm.conf", tmp_path / "qos.txt"
    qos.write_text("Name|Priority\nnormal|5\nurgent|20\n")
    weights = "PriorityWeightPartition=8\nPriorityWeightQOS=2\nPriorityWeightTRES=GRES/gpu=3\n"
    flags = "PriorityFlags=NO_NORMAL_PART,NO_NORMAL_QOS,NO_NORMAL_TRES"
    terms = {
        "": "2 * (partition == 'cpu') + 8 * (partition == 'gpu') + 2 * (partition == 'long')"
        " + 0.5 * (queue == 'normal') + 2 * (queue == 'urgent')"
        " + 0.75 * (partition == 'gpu') * asked('gpu')",
        flags: "8 * (partition == 'cpu') + 32 * (partition == 'gpu') + 8 * (partition == 'long')"
        " + 10 * (queue == 'normal') + 40 * (queue == 'urgent')"
        " + 3 * (partition == 'gpu') * asked('gpu')",
    }
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for text, expected in terms.items():
            path.write_text(f"{GPUS}{weights}{text}\n")
            assert find_scheduler(f"{path}:qos={qos}").policy == f"max({expected} - nice, 1)"
    path.write_text(f"{GPUS}{weights}{flags},INCR_ONLY\n")
    with pytest.warns(HpcgymWarning, match="not followed: PriorityFlags=INCR_ONLY$"):
        find_scheduler(f"{path}:qos={qos}")


def test_what_accounting_does_not_track_is_told(tmp_path: Path) -> None:
    path, qos = tmp_path / "slurm.conf", tmp_path / "qos.txt"
    nodes = "NodeName=g[1-2] CPUs=8 Gres=gpu:a100:4,fpga:1\nPartitionName=p Nodes=ALL"
    qos.write_text("Name|MaxTRESPU|MaxTRESPerNode\nq|gres/gpu=2,cpu=4,license/x=1|gres/fpga=1\n")
    path.write_text(f"{nodes} TRESBillingWeights=gres/gpu=4\n")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        find_scheduler(f"{path}:qos={qos}")  # the file does not say it
    with path.open("a") as file:
        file.write("AccountingStorageTRES=gres/gpu:a100\n")
    with pytest.warns(HpcgymWarning, match=r"does not track fpga, licence\.x: a dump may not tell"):
        find_scheduler(f"{path}:qos={qos}")


def test_qos(tmp_path: Path) -> None:
    path = tmp_path / "qos.txt"
    path.write_text(
        "Name|Priority|GraceTime|Preempt|Flags|GrpTRES|MaxTRES|MaxTRESPU|MaxJobsPU|MaxSubmitPU|"
        "MaxWall\n"
        "normal|0|00:00:00||||||||\n"
        "high|100|00:00:00|normal,low|DenyOnLimit|cpu=5000,mem=2T|cpu=64|gres/gpu=4|10|50|"
        "1-00:00:00\n"
    )
    normal, high = read_qos(path)
    assert (normal.name, normal.priority, normal.limits) == ("normal", 0, {})
    assert (high.priority, high.preempts) == (100, ("normal", "low"))
    assert high.limits == {
        "GrpTRES": {"cpu": 5_000, "mem": 2 * 1024**2},
        **{"MaxTRES": {"cpu": 64}, "MaxTRESPU": {"gres/gpu": 4}},
        **{"MaxJobsPU": {"jobs": 10}, "MaxSubmitPU": {"submitted": 50}},
        "MaxWall": {"requested_time": 86_400},
    }
    assert (high.grace_time, high.preempt_mode, high.others) == (
        "00:00:00", "", {"Flags": "DenyOnLimit"}
    )  # fmt: skip


def preemption_of(file: Path, qos: Path) -> object:
    return find_scheduler(f"{file}:qos={qos}").preemption


test_mistakes = mistakes_of(globals())


def test_a_job_without_a_licence_of_the_cluster_keeps_slurm_looking() -> None:
    """As the main scheduler notes a change when it meets one; a limit of users is passed over."""
    machine = Cluster(groups=(NodeGroup("n", 4, {"core": 4}),))
    told_apart = 0
    for seed in range(6):
        rng = np.random.default_rng(seed)
        run_time, core = rng.integers(10, 600, 25), rng.integers(1, 5, 25)
        table = {
            "submit_time": np.sort(rng.integers(0, 3000, 25)),
            "run_time": run_time,
            "requested_time": run_time + rng.integers(0, 600, 25),
            "units": np.minimum(rng.integers(1, 5, 25), 4 // core * 4),
            "core": core,
            "user_id": np.ones(25, np.int64),
            "licence.matlab": rng.integers(0, 3, 25),
        }
        jobs = load_workload(pd.DataFrame(table), cluster=machine)
        rules = {"cluster": machine, "backfill": "slurm:bf_interval=30"}
        of_all = {**rules, "quota": "all:licence.matlab=2"}
        result = hpcgym.simulate(jobs, **of_all)
        slow = hpcgym.simulate(jobs, engine="reference", **of_all)
        assert result.start.tolist() == slow.start.tolist()
        of_user = hpcgym.simulate(jobs, **rules, quota="user:licence.matlab=2")
        told_apart += result.start.tolist() != of_user.start.tolist()
    assert told_apart > 0


def test_nodes_reserved_without_a_job_put_off_the_next_look() -> None:
    """Job 3 is to start on two idle nodes and a busy one; all start at 40, before the next look.

    The look at 60 frees the nodes. So the first after 100 comes at 120, not at once.
    """
    machine = Cluster(
        groups=(NodeGroup("g", 2, {"core": 1, "gpu": 1}), NodeGroup("n", 3, {"core": 1}))
    )
    table = {
        "submit_time": [0, 0, 1, 1, 100, 100],
        "run_time": [40, 40, 1000, 60, 10, 10],
        "requested_time": [600, 300, 1000, 300, 10, 10],
        "units": [2, 1, 2, 3, 5, 1],
        "core": [1] * 6,
        "gpu": [1, 0, 1, 0, 0, 0],
    }
    jobs = load_workload(pd.DataFrame(table), cluster=machine)
    rules = {"cluster": machine, "backfill": "slurm:bf_interval=30"}
    result = hpcgym.simulate(jobs, **rules)
    assert result.start.tolist() == [0, 0, 40, 40, 1040, 120]
    slow = hpcgym.simulate(jobs, engine="reference", **rules)
    assert result.start.tolist() == slow.start.tolist()
