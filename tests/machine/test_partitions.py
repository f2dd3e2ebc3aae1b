"""Partitions of machines, and failures of their nodes."""

from __future__ import annotations

import dataclasses
import math
from contextlib import nullcontext, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from drawing import given
from drawing import strategies as st
from few_jobs import few_jobs
from mistakes import mistakes_of
from node_strategies import partitioned_cases

import hpcgym
from hpcgym.errors import WorkloadError, WorkloadWarning
from hpcgym.machine import (
    Cluster,
    Failures,
    NodeGroup,
    Partition,
    cluster_toml,
    failures_of,
    find_cluster,
    read_cluster,
)
from hpcgym.machine.partitions import names_of_nodes, nodes_of_text, text_of_nodes
from hpcgym.workload.io.swf_header import partitions_of
from hpcgym.workload.model import Workload
from hpcgym.workload.needs import fitting, needs_of
from hpcgym.workload.partitions import check_limits, machine_of_partitions

GROUPS = (NodeGroup("thin", 3, {"core": 4}), NodeGroup("gpu", 2, {"core": 2, "gpu": 1}))
BATCH, DEBUG = Partition("batch", (0, 1, 2)), Partition("debug", (2, 3), priority_tier=10)
CLUSTER = Cluster(groups=GROUPS, partitions=(BATCH, DEBUG, Partition("all", tuple(range(5)))))


def jobs_in(*partitions: int, names: bool = True, **columns: Any) -> Workload:
    """Return a job of 10 s in each partition, all submitted at once: 1 batch, 2 debug, 3 all."""
    n = len(partitions)
    given = {name: [10] * n for name in ("run_time", "requested_time")}
    workload = Workload.from_columns(
        {
            "submit_time": [0] * n,
            "requested_processors": [4] * n,
            "partition": list(partitions),
            **given,
            **columns,
        },
        processors=16,
    )
    header = {"Partition": ["1 batch", "2 debug", "3 all"]} if names else {}
    return dataclasses.replace(workload, header=header)


@given(st.sets(st.integers(0, 60)))
def test_numbers_of_nodes_as_text_and_back(nodes: set[int]) -> None:
    text = text_of_nodes(sorted(nodes))
    assert sorted(nodes_of_text(text, [("a", 61)], "here")) == sorted(nodes)


def test_groups_by_name() -> None:
    assert nodes_of_text("gpu, 0-1", [("thin", 3), ("gpu", 2)], "here") == [3, 4, 0, 1]
    slurm = [("n[01-03]", 3), ("login", 1), ("gpu[1,3]", 2)]
    assert nodes_of_text("gpu3,n[02-03],login, n01,0", slurm, "here") == [5, 1, 2, 3, 0, 0]
    assert nodes_of_text("gpu[1,3]", slurm, "here") == [4, 5]
    assert names_of_nodes(slurm) == ["n01", "n02", "n03", "login", "gpu1", "gpu3"]
    assert names_of_nodes([("thin", 2), ("fat", 1)]) == [0, 1, 2]
    assert names_of_nodes([("n[1", 2), ("m[1-2]", 2), ("o[1-2]", 3)]) == [0, 1, "m1", "m2", 4, 5, 6]


def test_files_hold_all_of_a_partition(tmp_path: Path) -> None:
    most = Partition(
        "most", (0, 1, 4), True, 7200, 60, 1, 2, 3, 900, "nodes=9", 5, 7,
        ("a", "b"), ("c",), ("q",), ("r",), "q", True, "drain", "cpu=1", True,
    )  # fmt: skip
    assert all(getattr(most, field.name) != field.default for field in dataclasses.fields(most))
    cluster = dataclasses.replace(CLUSTER, partitions=(*CLUSTER.partitions, most))
    (tmp_path / "mine.toml").write_text(cluster_toml(cluster))
    assert read_cluster(tmp_path / "mine.toml") == cluster


def test_what_units_ask_for() -> None:
    assert CLUSTER.node_resources == ("core", "gpu")
    assert CLUSTER.resources == ("core", "gpu", "partition batch", "partition debug")
    needs = needs_of(jobs_in(1, 2, 3, -1), CLUSTER.resources)
    assert needs[:, 3:-1].tolist() == [[1, 0], [0, 1], [0, 0], [0, 0]]
    assert (CLUSTER.capacity[:, 2:] > 0).tolist() == [
        [True, False], [True, False], [True, True], [False, True], [False, False],
    ]  # fmt: skip


def test_a_job_waits_for_its_own_nodes() -> None:
    """By hand: batch has 12 cores, debug 6, of which 4 are both's; each job asks for 4."""
    result = hpcgym.simulate(jobs_in(2, 2, 1, 1), "easy", cluster=CLUSTER)
    assert result.start.tolist() == [0, 10, 0, 0]
    hpcgym.validate_schedule(result)
    first = result.allocation.rows([0])
    assert first.node.tolist() == [2]


def outside_its_partition() -> None:
    """Prove a schedule in which a job has a node that is not of its partition."""
    result = hpcgym.simulate(jobs_in(1, 1), "easy", cluster=CLUSTER)
    node = result.allocation.node.copy()
    node[:] = np.where(node == 1, 3, node)
    wrong = dataclasses.replace(result, allocation=result.allocation._replace(node=node))
    hpcgym.validate_schedule(wrong)


def test_partitions_that_the_machine_lacks() -> None:
    strange = jobs_in(1, 9)
    names = [partition.name for partition in CLUSTER.partitions]
    kept = fitting(strange, CLUSTER.resources, CLUSTER.capacity, names)
    assert (len(kept), kept.cleaning["dropped: its partition is not of the machine"]) == (1, 1)
    with pytest.warns(WorkloadWarning, match="in none of the machine's partitions"):
        result = hpcgym.simulate(jobs_in(8, 9), cluster=CLUSTER)
    assert result.start.tolist() == [0, 0]


@pytest.mark.parametrize(
    ("named", "expected"),
    [
        (["", "", ""], ["batch", "batch", "batch"]),
        (["", "debug", ""], ["batch", "debug", "batch"]),
        (["batch", "", "debug"], ["batch", "batch", "debug"]),
        (["", "elsewhere", ""], ["", "elsewhere", ""]),  # none is of the machine
        (["debug", "elsewhere", ""], ["debug", "elsewhere", "batch"]),
    ],
)
def test_jobs_without_a_partition_are_in_the_default(
    named: list[str], expected: list[str], tmp_path: Path
) -> None:
    rows = [f"{10 * n},60,2,{name}" for n, name in enumerate(named)]
    head = "submit_time,run_time,requested_processors,partition"
    (tmp_path / "jobs.csv").write_text("\n".join([head, *rows, ""]))
    groups = (NodeGroup("n", 4, {"core": 4}),)
    parts = (Partition("debug", (0,)), Partition("batch", (1, 2, 3), default=True))
    machine = Cluster(groups=groups, partitions=parts)
    jobs = hpcgym.load_workload(tmp_path / "jobs.csv", cluster=machine)
    assert partitions_of(jobs).tolist() == expected
    reason = "repaired: partition taken to be the default of the machine"
    changed = sum(a != b for a, b in zip(named, expected, strict=True))
    assert jobs.cleaning.get(reason, 0) == changed
    none = Cluster(groups=groups, partitions=(Partition("batch", (1, 2, 3)),))
    same = hpcgym.load_workload(tmp_path / "jobs.csv", cluster=none)
    assert partitions_of(same).tolist() == named


def log_of(system: str, queues: list[str]) -> str:
    """Return a log of a job of two cores in each queue, a second after each other."""
    lines = []
    for at, queue in enumerate(queues, 1_500_000_000):
        if system == "pbs":
            entries = f"user=a queue={queue} ctime={at} start={at} end={at + 60} exec_host=n1/0*2"
            lines.append(f"07/14/2017 02:41:00;E;{at % 100}.s;{entries}")
        elif system == "lsf":
            first = ["JOB_FINISH", "10.1", at + 60, at % 100, 7, 0, 2, at, 0, 0, at, "a", queue]
            fields = [*first, *[""] * 8, "123.4", 0, 2, "n1", "n1", 64, 60.0, "x", "run"]
            fields += [*[0.5] * 19, "", "p", 0, 2, "", "", 0, 0, 0, "", ""]
            lines.append(" ".join(f'"{f}"' if isinstance(f, str) else str(f) for f in fields))
        elif system == "grid-engine":
            first = [queue, "n1", "g", "a", "run.sh", at % 100, "sge", 0, at, at, at + 60, 0, 0]
            rest = ["NONE", "d", "mpi", 2, 0, "0.3", "0.0", "0.4", "", "0.0", "NONE", "0.0"]
            lines.append(":".join(map(str, [*first, 50, *["0.1"] * 17, *rest])))
        else:
            lines.append(f"{at},60,2,{queue}")
    head = ["submit_time,run_time,requested_processors,queue_name"] * (system == "table")
    return "\n".join([*head, *lines, ""])


@pytest.mark.parametrize("system", ["pbs", "lsf", "grid-engine", "table"])
@pytest.mark.parametrize(
    ("queues", "default", "expected", "message"),
    [
        (["batch", "debug"], "", ["batch", "debug"], ""),
        (["debug", "old", "all.q"], "", ["debug", "", ""], "they may have any nodes"),
        (["debug", "old", "all.q"], "batch", ["debug", "batch", "batch"], "its default, 'batch'"),
        (["old", "all.q"], "batch", ["batch", "batch"], "2 of 2 jobs are in queues that are no"),
        (["old", "all.q"], "", ["", ""], ""),  # which is told where jobs are looked at
    ],
)
@pytest.mark.filterwarnings("error::hpcgym.errors.WorkloadWarning")
def test_queues_that_are_called_as_partitions(
    system: str, queues: list[str], default: str, expected: list[str], message: str, tmp_path: Path
) -> None:
    path = tmp_path / ("jobs.csv" if system == "table" else "jobs")
    path.write_text(log_of(system, queues))
    parts = [
        Partition(name, (place,), default=name == default)
        for place, name in enumerate(("debug", "batch"))
    ]
    machine = Cluster(groups=(NodeGroup("n", 2, {"core": 4}),), partitions=parts)
    with pytest.warns(WorkloadWarning, match=message) if message else nullcontext():
        jobs = hpcgym.load_workload(path, cluster=machine)
    assert partitions_of(jobs).tolist() == expected
    by_queue = "repaired: missing partition taken to be the one that is called as its queue"
    named = sum(queue in ("debug", "batch") for queue in queues)
    assert jobs.cleaning.get(by_queue, 0) == named
    named_so = [replace(partition, allow_qos=("normal",)) for partition in parts]
    if not message:  # a queue that is a partition is no QOS
        check_limits(jobs, replace(machine, partitions=named_so))
    if named == len(queues):
        first, node, _ = hpcgym.simulate(jobs, cluster=machine).allocation
        assert node[first[:-1]].tolist() == [1, 0]


def test_a_qos_is_no_queue(tmp_path: Path) -> None:
    """So a dump of sacct without partitions has none."""
    times = "2024-03-01T12:00:00|2024-03-01T12:00:00|60|1"
    (tmp_path / "jobs").write_text(
        f"JobID|Submit|Start|ElapsedRaw|TimelimitRaw|AllocCPUS|QOS\n1|{times}|2|debug\n"
    )
    jobs = hpcgym.load_workload(tmp_path / "jobs", cluster=CLUSTER)
    assert partitions_of(jobs).tolist() == [""]


def test_a_machine_of_a_log() -> None:
    """By hand: in partition 7 two jobs of 4 overlapped, in 9 a job of 5 ran alone."""
    jobs = few_jobs(
        100,
        [0, 0, 0, 0],
        [10, 10, 10, 10],
        [4, 4, 5, 3],
        wait_time=[0, 5, 0, 20],
        partition=[7, 7, 9, 9],
    )
    machine = machine_of_partitions(jobs)
    assert machine.capacity[:, 0].tolist() == [8, 5]
    assert [partition.name for partition in machine.partitions] == ["7", "9"]
    assert hpcgym.simulate(jobs, cluster=machine).start.tolist() == [0, 0, 0, 10]
    asking = replace(
        jobs,
        units=np.ones(4, np.int64),
        per_unit={"core": jobs.requested_processors, "gpu": np.array([2, 1, 0, 4])},
    )
    machine = machine_of_partitions(asking)  # in 7 both overlapped; in 9 the last had four
    assert machine.resources == ("core", "gpu", "partition 7", "partition 9")
    assert machine.capacity[:, :2].tolist() == [[8, 3], [5, 4]]


NODES = Cluster(groups=(NodeGroup("a", 4, {"core": 2}),))


def test_they_are_kept_by_time_then_node() -> None:
    failures = Failures([2, 1, 0, 0], [50, 10, 20, 10], [60, 50, 30, 20])
    columns = (failures.node, failures.time, failures.repaired)
    expected = [[0, 10, 20], [1, 10, 50], [0, 20, 30], [2, 50, 60]]  # 0 fails when it is repaired
    assert np.transpose(columns).tolist() == expected
    assert repr(failures) == "Failures(4 of 3 nodes)"
    assert not failures.time.flags.writeable


def test_a_file_is_read_as_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / "failures.csv"
    Failures([2, 1], [50, 10], [60, 50]).write(path)
    assert path.read_text() == "node,time,repaired\n1,10,50\n2,50,60\n"
    again = Failures.read(path)
    assert (again.node.tolist(), again.time.tolist()) == ([1, 2], [10, 50])
    path.write_text("Time , node,repaired\n\n10,1,50\n")  # any order of columns
    assert Failures.read(path).node.tolist() == [1]
    path.write_text("node,time,repaired\n")
    assert len(Failures.read(path)) == 0


# --- Drawn ------------------------------------------------------------------------------------


def test_times_have_the_means_and_the_shape_that_were_asked_for() -> None:
    many = Cluster(groups=(NodeGroup("a", 50, {"core": 1}),))
    failures = failures_of(many, 10**9, mtbf=10**5, repair=5000, seed=3)
    order = np.lexsort((failures.time, failures.node))
    node, time, repaired = (
        column[order] for column in (failures.node, failures.time, failures.repaired)
    )
    up, down = (time[1:] - repaired[:-1])[np.diff(node) == 0], repaired - time
    assert len(up) > 300_000
    assert up.mean() == pytest.approx(10**5, rel=0.02)
    assert down.mean() == pytest.approx(5000, rel=0.02)
    # of a Weibull distribution of shape 0.7: the standard deviation over the mean
    first, second = math.gamma(1 + 1 / 0.7), math.gamma(1 + 2 / 0.7)
    assert up.std() / up.mean() == pytest.approx(math.sqrt(second / first**2 - 1), rel=0.03)
    assert np.log(down).std() == pytest.approx(1.0, rel=0.02)


def test_draws_that_cannot_be() -> None:
    # by the mean each node would fail once
    late = failures_of(NODES, 2**53, mtbf=2.0**52, repair=2.0**52, seed=1)
    assert late.repaired.max() <= 2**53


def test_they_lie_between_begin_and_until_and_depend_on_the_seed() -> None:
    words: dict[str, Any] = {"mtbf": 1000, "repair": 100, "begin": 5000}
    failures = failures_of(NODES, 50_000, seed=1, **words)
    assert failures.time.min() > 5000
    assert failures.time.max() < 50_000
    assert set(failures.node.tolist()) == {0, 1, 2, 3}
    same, other = (failures_of(NODES, 50_000, seed=seed, **words) for seed in (1, 2))
    assert failures.time.tolist() == same.time.tolist()
    assert failures.time.tolist() != other.time.tolist()
    assert len(failures_of(NODES, 5000, **words)) == 0
    alike = failures_of(NODES, 50_000, mtbf=1000, repair=99.5, repair_sigma=0)
    assert set((alike.repaired - alike.time).tolist()) == {100}


@pytest.mark.parametrize("engine", [None, "reference"])
def test_a_job_that_does_not_fit_stops_its_own_partition_in_slurm(engine: str | None) -> None:
    """Others go on without its nodes; a backfill pass, at 30 s, would be the next to look."""
    machine = Cluster(
        groups=(NodeGroup("thin", 4, {"core": 1}),),
        partitions=(Partition("1", (0, 1)), Partition("2", (2,)), Partition("3", (1, 2, 3))),
    )
    partition, wide = [1, 1, 2, 3, 3], [1, 2, 1, 1, 1]
    jobs = few_jobs(4, [0, 1, 2, 3, 4], [100] * 5, wide, partition=partition)
    result = hpcgym.simulate(jobs, backfill="slurm", cluster=machine, engine=engine)
    # the second needs both nodes of 1; the last would fit on node 1, which is one of them
    assert result.start[[0, 2, 3]].tolist() == [0, 2, 3]
    assert result.start[[1, 4]].min() >= 30
    assert result.backfilled[:4].tolist() == [False, False, True, True]
    had = result.allocation
    assert had is not None
    assert had.node[had.first[[2, 3]]].tolist() == [2, 3]


@pytest.mark.parametrize("engine", [None, "reference"])
def test_cores_that_a_partition_may_have_of_a_node(engine: str | None) -> None:
    """By hand: jobs of ``cpu`` have 6 of the 8 cores of a node, as ``job_test.c`` of Slurm has it.

    Two of 4 cores run on a node each, so the third waits for an end; one of ``gpu`` starts beside.
    """
    parts = Partition("cpu", (0, 1), max_cores_per_node=6), Partition("gpu", (0, 1))
    machine = Cluster(groups=(NodeGroup("n", 2, {"core": 8, "gpu": 4}),), partitions=parts)
    cores = [4, 4, 4, 4, 2]
    units = {"units": [1] * 5, "per_unit": {"core": cores}, "partition": [1, 1, 1, 2, 1]}
    jobs = few_jobs(16, [0, 1, 2, 3, 4], [100] * 5, cores, job_number=[1, 2, 3, 4, 5], **units)
    jobs = replace(jobs, header={**jobs.header, "Partition": ["1 cpu", "2 gpu"]})
    result = hpcgym.simulate(jobs, "easy", cluster=machine, engine=engine)
    assert result.start.tolist() == [0, 1, 100, 3, 4]
    hpcgym.validate_schedule(result)
    assert "were open to its partition" in str(hpcgym.explain(result, 3))
    none = replace(machine, partitions=(replace(parts[0], max_cores_per_node=3), parts[1]))
    with pytest.raises(WorkloadError, match="asks for 1 unit of 4 core, in partition cpu"):
        hpcgym.simulate(jobs, "easy", cluster=none)


@given(partitioned_cases(), st.integers(1, 4))
def test_the_reference_caps_partitions_alike(
    case: tuple[Cluster, Workload, dict[str, Any]], most: int
) -> None:
    cluster, workload, rules = case
    capped = [replace(part, max_cores_per_node=most) for part in cluster.partitions]
    cluster = replace(cluster, partitions=tuple(capped))
    with suppress(WorkloadError):
        results = [
            hpcgym.simulate(workload, **rules, cluster=cluster, engine=engine)
            for engine in (None, "reference")
        ]
        assert results[0].start.tolist() == results[1].start.tolist()
        hpcgym.validate_schedule(results[0])


@pytest.mark.parametrize(
    ("settings", "of_partition", "memory"),
    [
        ("DefMemPerCPU=1000", "", [4000, 16_000]),
        ("DefMemPerCPU=1000", "DefMemPerCPU=500", [2000, 8000]),
        ("DefMemPerCPU=1000", "DefMemPerNode=6000", [6000, 12_000]),
        ("DefMemPerNode=6000", "DefMemPerGPU=4000", [4000, 16_000]),
        ("", "", [0, 0]),
    ],
)
def test_memory_of_jobs_that_tell_none(
    tmp_path: Path, settings: str, of_partition: str, memory: list[int]
) -> None:
    """By hand: 4 cores and 1 GPU on one node, 16 and 4 on two; the third tells 7,000 MB."""
    conf, log = tmp_path / "slurm.conf", tmp_path / "jobs.txt"
    conf.write_text(
        "SelectType=select/cons_tres\nSelectTypeParameters=CR_Core_Memory\nGresTypes=gpu\n"
        f"{settings}\nNodeName=g[1-2] CPUs=8 RealMemory=20000 Gres=gpu:4\n"
        f"PartitionName=p Nodes=ALL Default=YES {of_partition} MaxMemPerNode=7000\n"
    )
    ran = "COMPLETED|2024-03-01T12:00:00|2024-03-01T12:00:00|60|2"
    asked = ["cpu=4,node=1,gres/gpu=1", "cpu=16,node=2,gres/gpu=4", "cpu=1,node=1,mem=7000M"]
    lines = [f"{number}|{ran}|{tres}" for number, tres in enumerate(asked, 1)]
    log.write_text(
        "\n".join(["JobID|State|Submit|Start|ElapsedRaw|TimelimitRaw|AllocTRES", *lines])
    )
    jobs = hpcgym.load_workload(str(log), cluster=str(conf))
    assert jobs.units is not None
    assert (jobs.units * jobs.per_unit["mem"]).tolist() == [*memory, 7000]
    over = memory[1] > 14_000
    with pytest.raises(WorkloadError, match="MaxMemPerNode") if over else nullcontext():
        check_limits(jobs, find_cluster(str(conf)))


test_mistakes = mistakes_of(globals())
