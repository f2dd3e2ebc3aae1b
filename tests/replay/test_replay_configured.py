"""Replays by a slurm.conf of the user: partitions, priorities, parameters."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from mistakes import mistakes_of
from slurm_here import needs_slurm

import hpcgym
from hpcgym.cli import app
from hpcgym.errors import HpcgymError
from hpcgym.machine import Cluster, NodeGroup, Partition
from hpcgym.machine.slurm import read_slurm_conf
from hpcgym.replay import facts_of, replay_on_slurm
from hpcgym.replay.configuration import (
    PrivateNodes,
    needs_accounts,
    nodes_of,
    settings_of,
    slurm_conf,
)
from hpcgym.workload import Workload

#: Partitions overlap; "2" comes first, and has a factor.
CONF = """
NodeName=n[01-08] CPUs=1
PartitionName=1 Nodes=n[01-06] Default=YES
PartitionName=2 Nodes=n[05-08] PriorityTier=3 PriorityJobFactor=5
SchedulerType=sched/backfill
SchedulerParameters=bf_interval=60,bf_resolution=120
PriorityType=priority/multifactor
PriorityWeightJobSize=300
PriorityWeightPartition=200
"""
AGE = "PriorityWeightAge=1000\nPriorityMaxAge=1-0\n"


def conf_in(folder: Path, text: str = CONF) -> Path:
    path = folder / "site.conf"
    path.write_text(text)
    return path


def in_partitions() -> Workload:
    """Jobs of which the short ones are in partition 2."""
    jobs = hpcgym.load_workload("lublin:jobs=60,processors=8,load=3,seed=2")
    jobs = jobs.take(jobs.requested_processors <= 6)
    short = (jobs.requested_time <= 3600) & (jobs.requested_processors <= 4)
    return jobs.with_columns(partition=1 + short)


def test_slurm_is_given_what_the_file_says(tmp_path: Path) -> None:
    settings = settings_of(read_slurm_conf(conf_in(tmp_path)))
    parameters = settings.pop("SchedulerParameters").split(",")
    assert {"bf_interval=60", "bf_resolution=120", "batch_sched_delay=0"} <= {*parameters}
    assert len(parameters) == len({parameter.partition("=")[0] for parameter in parameters})
    by_name = {name.casefold(): value for name, value in settings.items()}
    # Slurm takes half of the share of nodes, and jobs ask for none
    assert by_name.pop("priorityweightjobsize") == "600"
    assert by_name == {
        "prioritytype": "priority/multifactor",
        "schedulertype": "sched/backfill",
        "priorityweightpartition": "200",
    }


def test_ages_and_shares_need_accounts(tmp_path: Path) -> None:
    assert not needs_accounts(read_slurm_conf(conf_in(tmp_path)))
    for more in (AGE, "PriorityWeightFairshare=5\nPriorityFlags=NO_FAIR_TREE\n"):
        conf = read_slurm_conf(conf_in(tmp_path, CONF + more))
        assert needs_accounts(conf)
        by_name = {name.casefold(): value for name, value in settings_of(conf).items()}
        settings = dict(line.casefold().split("=") for line in more.splitlines())
        assert {name: by_name[name].casefold() for name in settings} == settings
    basic = conf.scheduling | {"prioritytype": "priority/basic"}
    assert not needs_accounts(replace(conf, scheduling=basic))


def test_partitions_are_written_as_they_were_read(tmp_path: Path) -> None:
    conf = read_slurm_conf(conf_in(tmp_path))
    machine = PrivateNodes(nodes_of(conf.cluster), 12_345, conf.cluster.partitions)
    text = slurm_conf(tmp_path, machine, "me", settings_of(conf))
    partitions = read_slurm_conf(conf_in(tmp_path, text)).cluster.partitions
    own = [
        (partition.nodes, partition.priority_tier, partition.priority_factor)
        for partition in partitions
    ]
    assert own == [((*range(6),), 1, 1), ((4, 5, 6, 7), 3, 5), ((*range(8),), 1, 0)]
    assert [partition.name for partition in partitions[:2]] == ["1", "2"]
    assert [partition.default for partition in partitions] == [False, False, True]


@pytest.mark.filterwarnings("ignore:.*follow")
def test_all_that_is_refused_is_told_at_once(tmp_path: Path) -> None:
    """Four things that the file, its neighbours, the jobs and the machine ask for."""
    parameters = "bf_max_job_user=3,bf_interval=60"
    stops = "PreemptType=preempt/partition_prio\nPreemptMode=REQUEUE\n"
    text = CONF.replace("bf_interval=60", parameters) + f"PriorityWeightFairshare=5\n{stops}"
    conf_in(tmp_path, f"ClusterName=linux\n{text}")
    assoc = tmp_path / "assoc.txt"
    assoc.write_text("Cluster|Account|User|Share\nlinux|root||1\nlinux|root|ann|parent\n")
    jobs = in_partitions().with_columns(user_id=[1, 2] + [1] * (len(in_partitions()) - 2))
    with pytest.raises(HpcgymError, match="refuses 4 things") as caught:
        replay_on_slurm(jobs, f"{tmp_path / 'site.conf'}:assoc={assoc}", cluster="8x1x1")
    for number, part in enumerate(
        (
            "machine of that file",
            "no preemption",
            "one user",
            "share of the account above",
        ),
        1,
    ):
        assert f"({number}) " in str(caught.value)
        assert part in str(caught.value)


def test_help_offers_no_extract() -> None:
    shown = CliRunner().invoke(app, ["replay", "--help"]).output
    assert "--week" in shown
    assert "--from" not in shown


def test_the_command_refuses_what_is_not_of_the_file(tmp_path: Path) -> None:
    words = ["lublin:jobs=9,processors=8", "--scheduler", str(conf_in(tmp_path)), "--on", "slurm"]
    result = CliRunner().invoke(
        app, ["replay", *words, "--cluster", "8x1x1", "--allocation", "best-fit"]
    )
    assert result.exit_code == 1
    assert "cannot follow allocation; it follows" in result.stderr


@needs_slurm
@pytest.mark.filterwarnings("ignore:.*follow")
@pytest.mark.parametrize("more", ["", AGE], ids=["without age", "with age"])
def test_partitions_and_priorities_are_those_of_the_simulator(more: str, tmp_path: Path) -> None:
    path = str(conf_in(tmp_path, CONF.replace(",bf_resolution=120", "") + more))
    jobs = in_partitions()
    # by 40 no job loses all, and by 10,000 each does
    nice = [(0, 0, 40, 0, 10_000, -60, -1)[number % 7] for number in range(len(jobs))]
    jobs = jobs.with_columns(nice=nice)
    replayed = replay_on_slurm(jobs, path)
    facts = facts_of(replayed)
    assert facts["close_starts"] >= 0.95, facts
    assert abs(facts["mean_bsld_ratio"] - 1) <= 0.03
    had = replayed.replayed.allocation
    assert had is not None
    for row, partition in enumerate(jobs.partition):
        nodes = {*had.node[had.first[row] : had.first[row + 1]].tolist()}
        assert nodes <= ({*range(6)} if partition == 1 else {4, 5, 6, 7})
        assert len(nodes) == jobs.requested_processors[row]
    unordered = hpcgym.simulate(jobs, backfill="slurm", cluster=path)
    assert (unordered.start != replayed.simulated.start).mean() > 0.1  # priorities do matter here
    alike = hpcgym.simulate(jobs.with_columns(nice=[0] * len(jobs)), path, cluster=path)
    assert (alike.start != replayed.simulated.start).mean() > 0.1  # and so does nice


#: QOS of jobs, and QOS of partitions; "normal" is both.
QOS = """Name|Flags|GrpJobs|GrpTRES|MaxTRESPU
normal||1|cpu=4|
high|OverPartQOS|3|cpu=8|
part_long||2|cpu=6|
part_short||||cpu=2
"""


@needs_slurm
def test_a_qos_of_a_partition_holds_as_in_slurm(tmp_path: Path) -> None:
    """Its limits hold for all jobs there, but those whose own QOS has the same and OverPartQOS."""
    text = "NodeName=n[01-12] CPUs=1\nPriorityType=priority/basic\n"
    for name, own in (
        ("long", "QOS=Part_Long"),
        ("short", "QOS=part_short"),
        ("more", "QOS=normal"),
    ):
        text += f"PartitionName={name} Nodes=ALL {own}\n"
    path, qos = conf_in(tmp_path, text), tmp_path / "qos.txt"
    qos.write_text(QOS)
    jobs = hpcgym.load_workload("lublin:jobs=70,processors=12,load=3,seed=1")
    jobs = jobs.take(jobs.requested_processors <= 2)
    turns = np.random.default_rng(0).integers(1, 4, (3, len(jobs)))
    names = {"Queue": ["1 normal", "2 high"], "Partition": ["1 long", "2 short", "3 more"]}
    jobs = jobs.with_columns(queue=np.minimum(turns[0], 2), partition=turns[1], user_id=turns[2])
    jobs = replace(jobs, header={**jobs.header, **names})
    replayed = replay_on_slurm(jobs, f"{path}:qos={qos}")
    assert facts_of(replayed)["close_starts"] >= 0.98
    quotas = [str(quota) for quota in replayed.simulated.scheduler.quota]
    assert quotas == [
        "queue=normal|partition=more/spares=high|partition=long:jobs=1+processors=4",
        "queue=high:jobs=3+processors=8",
        "queue=part_long|partition=long/spares=high|partition=more:jobs=2+processors=6",
        "queue=part_short|partition=short/user:processors=2",
    ]
    # each partition's QOS matters here, and whose limit stands in place of whose
    others = [";".join(quotas[:2]), re.sub("/spares=[^:/]*", "", ";".join(quotas))]
    for other in (*others, "queue=normal:jobs=1+processors=4;queue=high:jobs=3+processors=8"):
        rules = replayed.simulated.scheduler.but(quota=other)
        apart = hpcgym.simulate(jobs, rules, cluster=str(path)).start != replayed.simulated.start
        assert apart.mean() > 0.1, other


test_mistakes = mistakes_of(globals(), Cluster, NodeGroup, Partition)


@needs_slurm
def test_constraints_are_those_of_slurm(tmp_path: Path) -> None:
    """Jobs get nodes with their features, read from left to right, when Slurm gives them."""
    text = CONF.replace("NodeName=n[01-08] CPUs=1", "NodeName=n[01-03] CPUs=1 Features=a,ib")
    text += "NodeName=n[04-06] CPUs=1 Feature=b\nNodeName=n[07-08] CPUs=1 Feature=b,ib\n"
    path = str(conf_in(tmp_path, text.replace(",bf_resolution=120", "")))
    jobs = in_partitions()
    constraints = {
        "a": {0, 1, 2},
        "a|b&ib": {0, 1, 2, 6, 7},
        "b&(a|ib)": {6, 7},
        "a|b": {*range(8)},
    }
    parts = {1: {*range(6)}, 2: {4, 5, 6, 7}}
    header = {"Constraint": [f"{k} {text}" for k, text in enumerate(constraints, 1)]}
    asked = [-1] * len(jobs)
    for row, (wide, part) in enumerate(
        zip(jobs.requested_processors.tolist(), jobs.partition.tolist(), strict=True)
    ):
        fits = [
            k for k, own in enumerate(constraints.values(), 1) if len(own & parts[part]) >= wide
        ]
        if fits and row % 4:
            asked[row] = fits[row % len(fits)]
    jobs = replace(jobs.with_columns(constraint=asked), header=header)
    assert {*asked} == {-1, 1, 2, 3, 4}
    replayed = replay_on_slurm(jobs, path)
    facts = facts_of(replayed)
    assert facts["close_starts"] >= 0.95, facts
    had = replayed.replayed.allocation
    assert had is not None
    for row, constraint in enumerate(asked):
        nodes = {*had.node[had.first[row] : had.first[row + 1]].tolist()}
        assert constraint < 0 or nodes <= [*constraints.values()][constraint - 1]
    free = hpcgym.simulate(jobs.with_columns(constraint=[-1] * len(jobs)), path, cluster=path)
    assert (free.start != replayed.simulated.start).mean() > 0.1  # constraints do matter here
