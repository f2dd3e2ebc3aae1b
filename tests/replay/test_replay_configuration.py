"""The slurm.conf of a replay, read back by the reader of slurm.conf."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from mistakes import mistakes_of

from hpcgym.machine import Cluster, NodeGroup, find_cluster
from hpcgym.machine.slurm import read_slurm_conf
from hpcgym.replay.configuration import PrivateNodes, SlurmNode, nodes_of, scheduling_of, slurm_conf
from hpcgym.scheduler.rules import Scheduler
from hpcgym.scheduler.slurm_conf import scheduler_of_slurm


def written(folder: Path, scheduler: Scheduler, cores: tuple[int, ...] = (8,)) -> Path:
    path = folder / "slurm.conf"
    path.write_text(
        slurm_conf(
            folder, PrivateNodes((*map(SlurmNode, cores),), 12_345), "me", scheduling_of(scheduler)
        )
    )
    return path


@pytest.mark.parametrize(
    "backfill",
    [
        "slurm",
        "slurm:bf_interval=60+bf_max_job_test=7",
        "slurm:bf_resolution=120+bf_window_linear=9",
    ],
)
@pytest.mark.filterwarnings("ignore:.*not followed")
def test_slurm_is_set_to_what_the_scheduler_says(backfill: str, tmp_path: Path) -> None:
    rules = Scheduler(backfill=backfill)
    assert scheduler_of_slurm(written(tmp_path, rules)) == rules


@pytest.mark.filterwarnings("ignore:.*not followed")
def test_no_backfilling_is_slurms_builtin_scheduler(tmp_path: Path) -> None:
    """It serves each partition by itself; the machine that is written here has one."""
    scheduler = scheduler_of_slurm(written(tmp_path, Scheduler(backfill="none")))
    assert scheduler == Scheduler(backfill="slurm:bf_interval=-1+default_queue_depth=100000")


@pytest.mark.filterwarnings("ignore:.*not followed")
def test_until_shadow_is_one_reservation_made_each_second(tmp_path: Path) -> None:
    slurm = scheduler_of_slurm(written(tmp_path, Scheduler(backfill="until-shadow"))).reserve.slurm
    assert slurm is not None
    assert (slurm.bf_interval, slurm.reservations) == (1, 1)


def test_the_machine_is_on_loopback_and_all_files_are_in_the_folder(tmp_path: Path) -> None:
    path = written(tmp_path, Scheduler(backfill="none"), (1,) * 5)
    conf, lines = read_slurm_conf(path), path.read_text().splitlines()
    assert conf.cluster.processors == 5
    assert conf.node_names == ("n1", "n2", "n3", "n4", "n5")
    (partition,) = conf.cluster.partitions
    assert list(partition.nodes) == [0, 1, 2, 3, 4]
    settings = dict(line.split("=", 1) for line in lines)
    assert "NoCtldInAddrAny,NoInAddrAny" in settings["CommunicationParameters"]
    nodes = [line for line in lines if line.startswith("NodeName")]
    assert all("NodeAddr=127.0.0.1" in line for line in nodes)
    ports = [int(line.split("Port=")[1].split()[0]) for line in nodes]
    assert ports == list(range(12_346, 12_351))
    assert Path(settings.pop("Epilog")).exists()  # a program of the system
    paths = [value for value in settings.values() if value.startswith("/")]
    assert len(paths) == 7
    assert all(value.startswith(str(tmp_path)) for value in paths)


@pytest.mark.parametrize("backfill", ["none", "until-shadow", "slurm"])
@pytest.mark.parametrize("rules", [{"policy": "saf"}, {"threshold": 3600}, {"policy": "-area"}])
def test_who_is_driven_serves_by_priority_and_not_at_submission(
    rules: dict[str, Any], backfill: str
) -> None:
    order = rules.get("policy", "fcfs")
    settings = scheduling_of(Scheduler(**rules, backfill=backfill, backfill_order=order))
    assert settings["SchedulerType"] == "sched/backfill"  # the other serves by submission
    parameters = settings["SchedulerParameters"].split(",")
    assert "defer" in parameters
    assert ("bf_interval=-1" in parameters) == (backfill == "none")


def test_a_pool_is_one_node_and_nodes_have_cores_and_memory() -> None:
    assert nodes_of(Cluster(100)) == (SlurmNode(100),)
    assert nodes_of(find_cluster("2x2x4")) == (SlurmNode(8),) * 2
    thin, fat = NodeGroup("thin", 2, {"core": 4}), NodeGroup("fat", 1, {"core": 8, "mem": 64})
    expected = SlurmNode(4, 0), SlurmNode(4, 0), SlurmNode(8, 64)
    assert nodes_of(Cluster(groups=(thin, fat))) == expected


test_mistakes = mistakes_of(globals())
