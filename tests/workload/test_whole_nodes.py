"""Jobs of exclusive partitions: by hand, and beside a slow simulator."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from drawing import given, settings
from drawing import strategies as st
from strategies import workloads

import hpcgym
from hpcgym.cluster import Cluster, NodeGroup, Partition
from hpcgym.errors import WorkloadError, WorkloadWarning
from hpcgym.reference.jobs import node_jobs_of
from hpcgym.reference.nodes import simulate_nodes
from hpcgym.workload import partition_limits, with_whole_nodes
from hpcgym.workload.model import Workload

RAISED = "repaired: processors raised to those of whole nodes, since its partition is exclusive"
CONF = """\
NodeName=a[1-4] CPUs=8 RealMemory=1000 Gres=gpu:2
NodeName=b1 CPUs=4 RealMemory=1000
SelectTypeParameters=CR_Core_Memory
PartitionName=some Nodes=a[1-4]
PartitionName=whole Nodes=a[1-3] OverSubscribe=EXCLUSIVE
PartitionName=wide Nodes=a[1-4] OverSubscribe=EXCLUSIVE MinNodes=2
PartitionName=mixed Nodes=a4,b1 Shared=EXCLUSIVE
"""


def machine(folder: Path) -> str:
    (folder / "slurm.conf").write_text(CONF)
    return str(folder / "slurm.conf")


def load(folder: Path, head: str, *rows: str, clean: str = "default") -> Workload:
    (folder / "jobs.csv").write_text("\n".join([head, *rows]) + "\n")
    return hpcgym.load_workload(folder / "jobs.csv", clean, cluster=machine(folder))


def needs(workload: Workload) -> list[tuple[int, ...]]:
    """Units of each job, and what each asks for: cores, MB, GPUs."""
    assert workload.units is not None
    nothing = np.zeros(len(workload), np.int64)
    amounts = [workload.per_unit.get(name, nothing) for name in ("core", "mem", "gpu")]
    return [*zip(*(a.tolist() for a in (workload.units, *amounts)), strict=True)]


HEAD = "submit_time,partition_name,requested_processors,requested_memory,run_time"


def test_processors_become_nodes(tmp_path: Path) -> None:
    """By hand: 3 cores are of one node, 9 of two, one of which has 5; 125 MB a core; wide has 2."""
    jobs = load(
        tmp_path, HEAD, "0,some,3,,9", "1,whole,3,125000,9", "2,whole,9,125000,9", "3,wide,2,,9"
    )
    assert needs(jobs) == [(3, 1, 0, 0), (1, 8, 375, 2), (2, 8, 625, 2), (2, 8, 0, 2)]
    assert jobs.requested_processors.tolist() == [3, 8, 16, 16]
    assert jobs.cleaning[RAISED] == 3
    found = hpcgym.cluster.find_cluster(machine(tmp_path))
    assert with_whole_nodes(jobs, found) is jobs
    hpcgym.validate_schedule(hpcgym.simulate(jobs, "easy", cluster=found))


def test_units_share_nodes_of_the_job(tmp_path: Path) -> None:
    """By hand: memory lets a node hold 2 of the units of the first job, GPUs 1 of the second's."""
    head = "submit_time,partition_name,units,core,mem,gpu,run_time"
    jobs = load(tmp_path, head, "0,whole,3,2,400,,9", "1,whole,2,1,,2,9", "2,some,1,1,,1,9")
    assert needs(jobs) == [(2, 8, 800, 2), (2, 8, 0, 2), (1, 1, 0, 1)]


def test_jobs_that_do_not_fit_stay_as_they_are(tmp_path: Path) -> None:
    jobs = load(tmp_path, HEAD, "0,whole,25,,9", "1,whole,1,2000000,9", "2,whole,1,,9")
    assert needs(jobs) == [(25, 1, 0, 0), (1, 1, 2000, 0), (1, 8, 0, 2)]
    with pytest.raises(
        WorkloadError, match="job 1 asks for 25 units of 1 core, in partition whole"
    ):
        hpcgym.simulate(jobs, cluster=machine(tmp_path))


def test_jobs_that_share_exclusive_nodes_are_told(tmp_path: Path) -> None:
    (tmp_path / "jobs.csv").write_text(f"{HEAD}\n0,some,3,,9\n1,whole,3,,9\n")
    alone = hpcgym.load_workload(tmp_path / "jobs.csv", processors=36)
    with pytest.warns(WorkloadWarning, match="jobs share nodes of partitions with OverSubscribe"):
        hpcgym.simulate(alone, cluster=machine(tmp_path))


def test_nodes_that_differ_are_told(tmp_path: Path) -> None:
    with pytest.warns(WorkloadWarning, match="'mixed': OverSubscribe=EXCLUSIVE is not followed"):
        jobs = load(tmp_path, HEAD, "0,mixed,3,,9", "1,some,2,,9")
    assert jobs.units is None
    assert RAISED not in jobs.cleaning


def test_many_simulations_look_and_tell_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = hpcgym.cluster.find_cluster(machine(tmp_path))
    (tmp_path / "jobs.csv").write_text(f"{HEAD}\n0,mixed,3,,9\n1,some,3,,9\n")
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        jobs = hpcgym.load_workload(tmp_path / "jobs.csv", cluster=found)
        looked = []
        whole = partition_limits.with_whole_nodes
        monkeypatch.setattr(
            partition_limits, "with_whole_nodes", lambda *given: looked.append(1) or whole(*given)
        )
        for scheduler in ("easy", "fcfs"):
            hpcgym.simulate(jobs, scheduler, cluster=found)
    assert len(looked) <= 1
    assert sum("is not followed" in str(one.message) for one in told) == 1


def test_unknown_processors_change_nothing(tmp_path: Path) -> None:
    jobs = load(tmp_path, HEAD, "0,whole,3,,9", "1,whole,,,9", clean="none")
    assert jobs.units is None


def test_single_cores_are_whole_nodes_as_they_are() -> None:
    nodes = NodeGroup("n", 4, {"core": 1})
    cluster = Cluster(groups=(nodes,), partitions=(Partition("1", (0, 1), exclusive=True),))
    jobs = hpcgym.load_workload("lublin:jobs=9,processors=4").with_columns(partition=[1] * 9)
    assert with_whole_nodes(jobs, cluster) is jobs


@settings(max_examples=100)
@given(workloads(), st.integers(2, 4), st.sampled_from(["none", "easy"]), st.data())
def test_as_if_their_users_had_asked_for_nodes(
    workload: Workload, cores: int, backfill: str, data: st.DataObject
) -> None:
    """Partition 1 has the first nodes and shares them; 2 has all but the first, and is exclusive.

    The slow simulator is given nodes that are counted here; and nobody is beside a job of 2.
    """
    n, count = len(workload), -(-workload.processors // cores) + 1
    partition = data.draw(st.lists(st.sampled_from([1, 2]), min_size=n, max_size=n))
    of_two = Partition("2", tuple(range(1, count)), exclusive=True)
    cluster = Cluster(
        groups=(NodeGroup("n", count, {"core": cores}),),
        partitions=(Partition("1", tuple(range(count - 1))), of_two),
    )
    jobs = with_whole_nodes(workload.with_columns(partition=partition), cluster)
    result = hpcgym.simulate(jobs, cluster=cluster, backfill=backfill)
    hpcgym.validate_schedule(result)
    may_have = [frozenset(cluster.partitions[of - 1].nodes) for of in partition]
    asked: list[Any] = node_jobs_of(workload, ["core"], may_have)
    for job, of in zip(asked, partition, strict=True):
        if of == 2:
            job.units, job.demand = -(-job.units // cores), (cores,)
    expected = simulate_nodes(asked, [[cores]] * count, backfill=backfill)
    assert result.start.tolist() == [job.start for job in expected]
