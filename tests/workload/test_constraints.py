"""Constraints of jobs by features of nodes: what they mean, where they are told, who waits."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from mistakes import mistakes_of

import hpcgym
from hpcgym.envs import JobSelection
from hpcgym.errors import WorkloadError
from hpcgym.machine import Cluster, NodeGroup, cluster_toml, read_cluster
from hpcgym.machine.constraints import constraint_of, followed
from hpcgym.simulation.batch import BatchSimulator
from hpcgym.workload.constraints import constraints_of, machine_for
from hpcgym.workload.model import Workload
from hpcgym.workload.needs import fitting

test_mistakes = mistakes_of(globals())

CONF = """\
ClusterName=f
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
NodeName=a1 CPUs=16 Feature=intel,avx512
NodeName=b1 CPUs=16 Features=amd
NodeName=c1 CPUs=16
PartitionName=batch Nodes=a1,b1,c1 Default=YES MaxTime=1-0
"""
HEAD = "JobID|User|Partition|State|Submit|Start|ElapsedRaw|TimelimitRaw|AllocTRES"
MACHINE = Cluster(
    groups=tuple(
        NodeGroup(name, 1, {"core": 16}, features=features)
        for name, features in (("a", ("intel", "avx512")), ("b", ("amd",)), ("c", ()))
    )
)


def dump(folder: Path, *constraints: str, field: str = "Constraints") -> tuple[Path, str]:
    """Write jobs of 16 cores on one node for an hour, a second apart; return them and a machine."""
    day, rows = "2024-03-01T12:00:0", [f"{HEAD}|{field}"]
    for number, text in enumerate(constraints):
        times = f"{day}{number}|{day}{number}|3600|90"
        rows.append(f"{number + 1}|u|batch|COMPLETED|{times}|cpu=16,node=1|{text}")
    (folder / "jobs.txt").write_text("\n".join([*rows, ""]))
    (folder / "slurm.conf").write_text(CONF)
    return folder / "jobs.txt", str(folder / "slurm.conf")


def jobs_with(*constraints: str, nodes: int = 1) -> Workload:
    """Return jobs of whole nodes of 16 cores with constraints, all submitted at once."""
    n = len(constraints)
    table = {"submit_time": [0] * n, "run_time": [10] * n, "requested_time": [10] * n}
    table |= {"units": [nodes] * n, "core": [16] * n, "constraint": list(constraints)}
    return hpcgym.load_workload(pd.DataFrame(table), processors=48)


@pytest.mark.parametrize(
    ("text", "features", "met"),
    [
        ("a", "a", True),
        ("a&b", "a", False),
        ("a,b", "ab", True),
        ("a|b", "b", True),
        ("a|b&c", "a", False),  # from left to right: b is no node's, as c is all's
        ("a|(b&c)", "a", True),
        ("a&b|c", "c", True),
        ("a&(b|c)", "ac", True),
        ("[a|b]", "b", True),
        (" a & b ", "ab", True),
    ],
)
def test_which_nodes_meet_a_constraint(text: str, features: str, met: bool) -> None:
    """The examples of the man page sbatch, for nodes with one-letter features."""
    assert constraint_of(text).met_by({*features}) is met


@pytest.mark.parametrize(
    ("text", "nodes", "expected", "whole"),
    [
        ("[b|a]", 1, "a|b", True),
        ("[b|a]", 2, "a|b", False),
        ("a*4", 4, "a", True),
        ("a*4", 16, "None", False),
        ("[a*2&b*4]", 6, "a|b", False),
        ("[a*2&b*4]", 7, "None", False),
        ("ib&[(a|b)*1&c*2]", 3, "(a|b|c)&ib", False),
        ("ib&a*2", 4, "ib", False),
        ("ib|a*2", 4, "None", False),
    ],
)
def test_what_of_a_constraint_is_followed(
    text: str, nodes: int, expected: str, whole: bool
) -> None:
    known, all_of_it = followed(constraint_of(text), nodes)
    assert (str(known), all_of_it) == (expected, whole)


def test_only_one_node_has_the_feature(tmp_path: Path) -> None:
    """So the second job waits for the first, though two nodes are free."""
    path, conf = dump(tmp_path, "avx512", "avx512&intel", "amd|avx512", "")
    for scheduler in ("easy", conf, "conservative"):
        jobs = hpcgym.load_workload(path, cluster=conf)
        result = hpcgym.simulate(jobs, scheduler, cluster=conf)
        assert result.wait.tolist()[:2] == [0, 3599]
        # in Slurm others of the partition start with the next backfilling
        assert (result.wait[2:] <= (30 if scheduler == conf else 0)).all()
        hpcgym.validate_schedule(result)
        again = hpcgym.simulate(jobs, scheduler, cluster=conf, engine="reference")
        assert again.start.tolist() == result.start.tolist()


def test_the_command_tells_it_where_the_field_does_not(tmp_path: Path) -> None:
    lines = ("sbatch -C avx512 run.sh", "srun --constraint=avx512|amd a.sh", "sbatch run.sh -C x")
    path, conf = dump(tmp_path, *lines, field="SubmitLine")
    jobs = hpcgym.load_workload(path, cluster=conf)
    assert constraints_of(jobs)[0].tolist() == ["avx512", "amd|avx512", ""]


def test_what_is_not_followed_is_counted(tmp_path: Path) -> None:
    path, conf = dump(tmp_path, "intel", "[intel|amd]", "intel&&", "amd*1")
    jobs = hpcgym.load_workload(path, cluster=conf)
    counted = {reason: n for reason, n in jobs.cleaning.items() if "not used" in reason}
    assert counted == {"not used: Constraints that are none of Slurm": 1}
    assert hpcgym.load_workload(path, processors=48).cleaning["not used: Constraints"] == 3
    several = jobs_with("[intel|amd]", "amd*1", nodes=2)
    assert constraints_of(several)[1].tolist() == [True, True]


def test_no_node_with_a_feature_of_a_job() -> None:
    jobs = jobs_with("amd", "intel&amd", "intel&amd")
    with pytest.raises(WorkloadError) as caught:
        hpcgym.simulate(jobs, cluster=MACHINE)
    said = "job 2 asks for 1 unit of 16 core, on nodes with features amd&intel; the empty"
    assert said in str(caught.value)
    assert "2 of 3 jobs" in str(caught.value)
    machine = machine_for(jobs, MACHINE)
    assert len(fitting(jobs, machine.resources, machine.capacity)) == 1


def test_constraints_do_not_count_where_no_node_has_features() -> None:
    plain = Cluster(groups=tuple(replace(group, features=()) for group in MACHINE.groups))
    assert hpcgym.simulate(jobs_with("amd", "none"), cluster=plain).wait.tolist() == [0, 0]


def test_batches_and_environments_heed_constraints() -> None:
    """An agent's choice waits for the node, too; a slice of a batch has constraints of its own."""
    jobs = jobs_with("amd", "amd", "intel")
    one, two = hpcgym.simulate(jobs, cluster=MACHINE), jobs_with("intel", "intel", "amd")
    batch = BatchSimulator([jobs, two], ["wait"], "easy", cluster=MACHINE)
    assert one.wait.tolist() == [0, 10, 0]
    assert batch.run([[1.0]], "max_wait_s").tolist() == [[10.0, 10.0]]
    env = JobSelection(jobs, episodes="whole", cluster=MACHINE)
    _, info = env.reset()
    ended = False
    while not ended:
        _, _, ended, _, info = env.step(int(np.flatnonzero(info["action_mask"])[0]))
    assert env.result().wait.tolist() == [0, 10, 0]


def test_explained_by_features() -> None:
    result = hpcgym.simulate(jobs_with("amd", "amd", "intel"), cluster=MACHINE)
    assert "had the features that it needs" in str(hpcgym.explain(result, 2))


def test_features_and_constraints_in_files(tmp_path: Path) -> None:
    (tmp_path / "m.toml").write_text(cluster_toml(MACHINE))
    assert read_cluster(tmp_path / "m.toml").groups == MACHINE.groups
    jobs = jobs_with("amd", "intel&(avx512|ib)", "")
    for ending in ("csv", "parquet"):
        hpcgym.workload.write_table(jobs, tmp_path / f"j.{ending}")
        again = hpcgym.load_workload(tmp_path / f"j.{ending}", processors=48)
        assert constraints_of(again)[0].tolist() == ["amd", "(avx512|ib)&intel", ""]
