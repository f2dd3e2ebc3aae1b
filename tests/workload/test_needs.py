"""What jobs need: units, whole nodes, and what partitions let them ask for."""

from __future__ import annotations

import warnings
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from drawing import given, settings
from drawing import strategies as st
from mistakes import mistakes_of
from strategies import workloads

import hpcgym
from hpcgym.errors import WorkloadError, WorkloadWarning
from hpcgym.machine import Cluster, NodeGroup, Partition
from hpcgym.machine.pool import ANY_NUMBER as ANY
from hpcgym.reference.jobs import node_jobs_of
from hpcgym.reference.nodes import simulate_nodes
from hpcgym.workload import (
    Workload,
    check_fits,
    expected_waits,
    fitting,
    needs_of,
    with_whole_nodes,
    within_limits,
)
from hpcgym.workload.needs import fewest_nodes, most_nodes, units_held
from hpcgym.workload.partitions import OVER_LIMITS

RESOURCES = ("core", "mem", "gpu")
CAPACITY = np.array([[4, 1000, 0]] * 3 + [[8, 4000, 2]])


def make(units=None, per_unit=None, header=None, **columns):
    n = len(next(iter(columns.values()), units))
    columns = {"submit_time": np.arange(n), "job_number": np.arange(n) + 10, **columns}
    return Workload.from_columns(
        columns, processors=20, name="log", units=units, per_unit=per_unit, header=header
    )


def test_jobs_with_units():
    demands = {"gpu": [1, 0], "core": [2, 3]}
    workload = make(units=[3, 1], per_unit=demands)
    assert needs_of(workload, RESOURCES).tolist() == [[3, 2, 0, 1, ANY], [1, 3, 0, 0, ANY]]
    assert needs_of(workload, ("core", "gpu")).tolist() == [[3, 2, 1, ANY], [1, 3, 0, ANY]]


def test_processors_are_units_of_one_core():
    workload = make(requested_processors=[3, 1, 2], requested_memory=[1000, -1, 1001])
    needs = needs_of(workload, RESOURCES)
    assert needs.tolist() == [[3, 1, 1, 0, ANY], [1, 1, 0, 0, ANY], [2, 1, 2, 0, ANY]]
    assert needs_of(workload, ("core",)).tolist() == [[3, 1, ANY], [1, 1, ANY], [2, 1, ANY]]


def test_a_resource_that_the_machine_lacks_is_none_if_nobody_asks_for_it():
    workload = make(units=[1, 1, 1], per_unit={"mic": [0, 0, 2]})
    assert needs_of(workload.take(slice(0, 2)), RESOURCES)[:, :2].tolist() == [[1, 1]] * 2


def test_a_machine_without_memory_does_not_count_it():
    """As one of Slurm with CR_Core; its jobs have memory in dumps all the same."""
    workload = make(units=[1, 2, 1], per_unit={"mem": [500, 0, 700]})
    assert needs_of(workload, ("core",)).tolist() == [[1, 1, ANY], [2, 1, ANY], [1, 1, ANY]]
    kept = fitting(workload, ("core",), np.full((2, 1), 4))
    assert len(kept) == 3
    assert needs_of(workload, ("core", "mem"))[:, 2].tolist() == [500, 0, 700]


def test_units_that_the_empty_machine_holds():
    demands = [[1, 0, 0], [3, 0, 0], [1, 600, 0], [1, 0, 1], [9, 0, 0]]
    needs = np.array([[1, *demand, ANY] for demand in demands])
    assert units_held(needs, CAPACITY).tolist() == [20, 3 + 2, 3 + 6, 2, 0]
    needs[:, -1] = 1  # one on each node that has room for one
    assert units_held(needs, CAPACITY).tolist() == [4, 4, 4, 1, 0]


THREE = make(units=[5, 6, 1], per_unit={"core": [3, 3, 8]})


def test_units_are_not_spread_over_nodes():
    check_fits(THREE.take([0, 2]), needs_of(THREE, RESOURCES)[[0, 2]], CAPACITY)


def test_fitting_drops_and_counts():
    workload = make(units=[5, 6, 1, 1], per_unit={"core": [3, 3, 8, 1], "mic": [0, 0, 0, 1]})
    kept = fitting(workload, RESOURCES, CAPACITY)
    assert kept.job_number.tolist() == [10, 12]
    assert kept.cleaning == {"dropped: fits no empty machine": 2}
    check_fits(kept, needs_of(kept, RESOURCES), CAPACITY)
    assert fitting(kept, RESOURCES, CAPACITY).cleaning == kept.cleaning


def test_expected_waits_by_the_names_of_queues():
    header = {"Queue": ["1 Debug", " 2  parallel jobs of 6 h ", "3 long", "none", "4"]}
    workload = make(queue=[1, 2, 3, 4, -1], header=header)
    queues = {"debug": 60, "parallel": 7200, "other": 600}
    strange = (
        "queues that the machine does not have, 'long', 4: .* is expected of them, 7200 s; SWF"
    )
    with pytest.warns(WorkloadWarning, match=strange):
        waits = expected_waits(workload, queues)
    assert waits.tolist() == [60, 7200, 7200, 7200, 7200]
    strange = (
        r"does not have, 'Debug', 4: the longest wait of its own \(parallel jobs of 6 h, LONG\)"
    )
    with pytest.warns(WorkloadWarning, match=strange):
        waits = expected_waits(workload, {"parallel jobs of 6 h": 5, "LONG": 1})
    assert waits.tolist() == [5, 5, 1, 5, 5]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        known = make(queue=[1, -1], header={"Queue": ["1 debug"]})
        assert expected_waits(known, {"debug": 60, "long": 600}).tolist() == [60, 600]
        assert expected_waits(known, {}).tolist() == [1.0] * 2


# --- Whole nodes ----------------------------------------------------------------------------------


def site(folder: Path, conf: str, head: str, *rows: str) -> tuple[str, str]:
    """Return files of jobs, submitted a second after each other, and of a machine."""
    lines = [f"submit_time,{head}", *(f"{place},{row}" for place, row in enumerate(rows))]
    (folder / "jobs.csv").write_text("\n".join(lines) + "\n")
    (folder / "slurm.conf").write_text(conf)
    return str(folder / "jobs.csv"), str(folder / "slurm.conf")


RAISED = "repaired: processors raised to those of whole nodes, since its partition is exclusive"
CONF = """\
NodeName=a[1-4] CPUs=8 RealMemory=1000 Gres=gpu:2
NodeName=b1 CPUs=4 RealMemory=1000
SelectTypeParameters=CR_Core_Memory
PartitionName=some Nodes=a[1-4]
PartitionName=whole Nodes=a[1-3] OverSubscribe=EXCLUSIVE
PartitionName=wide Nodes=a[1-4] OverSubscribe=EXCLUSIVE MinNodes=2
"""
HEAD = "run_time,partition_name,requested_processors,requested_memory"
UNITS = "run_time,partition_name,units,core,mem,gpu"


@pytest.mark.parametrize(
    ("head", "rows", "needs"),
    [
        # 3 cores are of one node, 9 of two, one of which has 5; 125 MB a core; wide has 2 nodes
        (
            HEAD,
            ["9,some,3,", "9,whole,3,125000", "9,whole,9,125000", "9,wide,2,"],
            [(3, 1, 0, 0), (1, 8, 375, 2), (2, 8, 625, 2), (2, 8, 0, 2)],
        ),
        # memory lets a node hold 2 of the units of the first job, GPUs 1 of the second's
        (
            UNITS,
            ["9,whole,3,2,400,", "9,whole,2,1,,2", "9,some,1,1,,1"],
            [(2, 8, 800, 2), (2, 8, 0, 2), (1, 1, 0, 1)],
        ),
        # what does not fit stays as it is
        (
            HEAD,
            ["9,whole,25,", "9,whole,1,2000000", "9,whole,1,"],
            [(25, 1, 0, 0), (1, 1, 2000, 0), (1, 8, 0, 2)],
        ),
    ],
)
def test_jobs_get_whole_nodes(
    tmp_path: Path, head: str, rows: list[str], needs: list[tuple[int, ...]]
) -> None:
    """By hand: units of each job, and what each asks for: cores, MB, GPUs."""
    path, machine = site(tmp_path, CONF, head, *rows)
    jobs = hpcgym.load_workload(path, cluster=machine)
    assert jobs.units is not None
    nothing = np.zeros(len(jobs), np.int64)
    amounts = [jobs.units, *(jobs.per_unit.get(name, nothing) for name in RESOURCES)]
    assert [*zip(*(a.tolist() for a in amounts), strict=True)] == needs
    assert jobs.requested_processors.tolist() == [units * cores for units, cores, *_ in needs]
    assert jobs.cleaning[RAISED] == sum(gpus == 2 for *_, gpus in needs)
    cluster = hpcgym.machine.find_cluster(machine)
    assert with_whole_nodes(jobs, cluster) is jobs
    kept = fitting(jobs, cluster.resources, cluster.capacity)
    hpcgym.validate_schedule(hpcgym.simulate(kept, "easy", cluster=cluster))
    alone = fitting(hpcgym.load_workload(path, processors=36), cluster.resources, cluster.capacity)
    with pytest.warns(WorkloadWarning, match="jobs share nodes of partitions that give whole ones"):
        hpcgym.simulate(alone, cluster=cluster)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        hpcgym.simulate(alone, cluster=cluster)  # it has been looked at


@pytest.mark.parametrize("rule", ["", "SelectType=select/linear\n"])
def test_whole_nodes_of_unlike_ones_with_as_many_cores(tmp_path: Path, rule: str) -> None:
    """By hand: a has little memory, b GPUs of another type than c."""
    conf = (
        "SelectTypeParameters=CR_Core_Memory\nNodeName=DEFAULT CPUs=4\n"
        "NodeName=a[1-2] RealMemory=100\nNodeName=b1 RealMemory=900 Gres=gpu:v100:2\n"
        "NodeName=c1 RealMemory=900 Gres=gpu:a100:2\nPartitionName=all Nodes=ALL"
    )
    shared = "" if rule else " OverSubscribe=EXCLUSIVE"
    head = "run_time,partition_name,units,core,mem,gpu,gpu-a100"
    rows = [
        "9,all,2,1,40,,",  # one node of any
        "9,all,3,1,40,,",  # one with more memory: no two of a hold all, if both have as many
        "9,all,1,1,,1,1",
        "9,all,8,1,40,,",  # two nodes of four units, which only b and c hold
        "9,all,9,1,40,,",  # three nodes have no room for equal parts, nor have four
    ]
    path, machine = site(tmp_path, f"{rule}{conf}{shared}\n", head, *rows)
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message=".*whole")
        jobs = hpcgym.load_workload(path, cluster=machine)
        assert jobs.units is not None
        assert jobs.units.tolist() == [1, 1, 1, 2, 9]
        assert jobs.per_unit["core"].tolist() == [4, 4, 4, 4, 1]
        assert jobs.per_unit["mem"].tolist() == [80, 120, 0, 160, 40]
        assert jobs.per_unit["gpu"].tolist() == [0, 0, 1, 0, 0]
        first, node, _ = hpcgym.simulate(jobs.take([0, 1, 2]), cluster=machine).allocation
    assert node[first[:-1]].tolist() == [0, 2, 3]


def test_jobs_that_get_no_whole_nodes(tmp_path: Path) -> None:
    path, machine = site(tmp_path, CONF, HEAD, "9,whole,3,", "9,whole,,")
    assert hpcgym.load_workload(path, "none", cluster=machine).units is None
    mixed = f"{CONF}PartitionName=mixed Nodes=a4,b1 Shared=EXCLUSIVE\n"
    path, machine = site(tmp_path, mixed, HEAD, "9,mixed,3,", "9,some,2,")
    with pytest.warns(WorkloadWarning, match="1 job of partition mixed may share nodes"):
        jobs = hpcgym.load_workload(path, cluster=machine)
    assert jobs.units is None
    assert RAISED not in jobs.cleaning
    nodes = NodeGroup("n", 4, {"core": 1})
    cluster = Cluster(groups=(nodes,), partitions=(Partition("1", (0, 1), exclusive=True),))
    jobs = hpcgym.load_workload("lublin:jobs=9,processors=4").with_columns(partition=[1] * 9)
    assert with_whole_nodes(jobs, cluster) is jobs  # single cores are whole nodes as they are
    larger = Cluster(groups=(NodeGroup("n", 4, {"core": 4}),), partitions=cluster.partitions)
    for memory in ([-1], [5000]):  # which the machine has not
        asked = make(requested_processors=[3], partition=[1], requested_memory=memory)
        per_unit = with_whole_nodes(asked, larger).per_unit
        assert {name: amount.tolist() for name, amount in per_unit.items()} == {"core": [4]}


def test_an_exclusive_partition_may_have_lost_all_its_nodes() -> None:
    """By ``slurm.conf-2``, or as they are down; its jobs fit nowhere, and others are as before."""
    parts = (Partition("1", (), exclusive=True), Partition("2", (0,)))
    cluster = Cluster(groups=(NodeGroup("n", 1, {"core": 2}),), partitions=parts)
    jobs = make(requested_processors=[1, 1], partition=[1, 2])
    assert with_whole_nodes(jobs, cluster) is jobs
    assert fitting(jobs, cluster.resources, cluster.capacity).partition.tolist() == [2]


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


# --- What partitions let run ----------------------------------------------------------------------

CONF_PARTITIONS = """\
NodeName=a[1-4] CPUs=4
PartitionName=batch Nodes=a[1-4] MaxTime=60 DefaultTime=10 MaxNodes=2
PartitionName=long Nodes=a[1-4] MaxTime=100
PartitionName=free Nodes=a[1-4]
"""
ASKED = "partition_name,requested_processors,run_time,requested_time"
ROWS = ["batch,8,60,3600", "batch,1,60,3601", "long,9,60,6000", "batch,9,60,60", "free,16,60,99999"]
OWNERS = "partition_name,group,queue_name,requested_processors,run_time"
#: The fourth is of an unknown account and QOS; the fifth is in another partition.
OWNED = ["some,a,low,1,9", "some,b,high,1,9", "some,c,low,1,9", "some,,,1,9", "free,c,low,1,9"]


def limited(folder: Path, limits: str, head: str, *rows: str) -> tuple[Workload, Cluster]:
    """Return jobs, and a machine of which one partition has limits."""
    conf = f"{CONF_PARTITIONS}PartitionName=some Nodes=a[1-4] {limits}\n"
    path, machine = site(folder, conf, head, *rows)
    return hpcgym.load_workload(path, cluster=machine), hpcgym.machine.find_cluster(machine)


def started(workload: Workload, machine: Cluster) -> None:
    hpcgym.simulate(workload, "easy", cluster=machine)


@pytest.mark.parametrize(
    ("limits", "head", "rows", "refused"),
    [
        ("", ASKED, ROWS, [2, 4]),
        ("", ASKED, ROWS[2:], [2]),
        ("MinNodes=3", ASKED, ["some,3,9,9", "some,2,9,9"], [2]),
        ("AllowAccounts=a,b", OWNERS, OWNED, [3]),
        ("DenyAccounts=b,c", OWNERS, OWNED, [2, 3]),
        ("AllowAccounts=a DenyAccounts=a", OWNERS, OWNED, [2, 3]),
        ("AllowQos=high", OWNERS, OWNED, [1, 3]),
        ("DenyQos=low", OWNERS, OWNED, [1, 3]),
        ("AllowQos=low DenyQos=low", OWNERS, OWNED, [2]),
        ("AllowAccounts=ALL AllowQos=ALL", OWNERS, OWNED, []),
        ("State=DOWN", OWNERS, OWNED, [1, 2, 3, 4]),
        ("State=DRAIN", OWNERS, OWNED, [1, 2, 3, 4]),
        ("State=INACTIVE", OWNERS, OWNED, [1, 2, 3, 4]),
        ("State=UP", OWNERS, OWNED, []),
    ],
)
def test_what_a_partition_refuses_can_be_dropped(
    tmp_path: Path, limits: str, head: str, rows: list[str], refused: list[int]
) -> None:
    workload, cluster = limited(tmp_path, limits, head, *rows)
    kept = within_limits(workload, cluster)
    numbers = range(1, len(rows) + 1)
    assert kept.job_number.tolist() == [number for number in numbers if number not in refused]
    assert within_limits(kept, cluster) is kept
    assert kept.cleaning.get(OVER_LIMITS, 0) == len(refused)


@pytest.mark.parametrize(
    ("state", "kept"), [("DOWN", [1]), ("INACTIVE", [1]), ("DRAIN", [1, 2]), ("UP", [1, 2, 3])]
)
def test_states_and_jobs_that_are_there(tmp_path: Path, state: str, kept: list[int]) -> None:
    """At second 5 job 1 runs, and goes on; job 2 waits, and starts where no new one may come."""
    conf = f"{CONF_PARTITIONS}PartitionName=some Nodes=a[1-4] State={state}\n"
    head = "wait_time,partition_name,requested_processors,run_time"
    path, machine = site(
        tmp_path, conf, head, "0,some,16,60", "59,some,16,60", "113,some,16,60", "172,free,16,60"
    )
    workload = hpcgym.load_workload(path, cluster=machine)
    part = workload.with_columns(submit_time=[0, 1, 7, 8]).extract(5)
    cluster = hpcgym.machine.find_cluster(machine)
    assert within_limits(part, cluster).job_number.tolist() == [*kept, 4]


def test_unknown_times_are_those_of_the_partition(tmp_path: Path) -> None:
    """One that ran for longer than DefaultTime asked for more, but for no more than MaxTime."""
    rows = ["batch,1,60,", "batch,1,700,", "long,1,60,", "free,1,60,", "batch,1,60,90"]
    path, machine = site(tmp_path, CONF_PARTITIONS, ASKED, *rows, "batch,1,3610,")
    with pytest.warns(WorkloadWarning, match="1 job without a told time limit, in partitions with"):
        workload = hpcgym.load_workload(path, cluster=machine)
    assert workload.requested_time.tolist() == [600, 700, 6000, 365 * 86_400, 90, 3600]
    assert workload.run_time.tolist() == [60, 700, 60, 60, 60, 3600]
    by_default = "requested_time taken from the DefaultTime or MaxTime of its partition"
    assert workload.cleaning == {
        "repaired: missing requested_time set to -1": 5,
        f"repaired: {by_default}": 3,
        "repaired: missing requested_time taken for 365 days: no MaxTime": 1,
        "repaired: requested_time taken from run_time": 1,
        "repaired: run_time cut at requested_time": 1,
    }
    assert hpcgym.load_workload(path, "none", cluster=machine).requested_time[0] == -1
    pool = hpcgym.load_workload(path, processors=16)
    assert pool.requested_time.tolist() == [60, 700, 60, 60, 90, 3610]


@given(
    st.lists(st.tuples(st.integers(1, 6), st.integers(0, 2)), min_size=1, max_size=5),
    st.lists(
        st.tuples(st.integers(1, 9), st.integers(1, 4), st.integers(0, 1)), min_size=1, max_size=5
    ),
)
def test_the_fewest_and_the_most_nodes(
    nodes: list[tuple[int, int]], jobs: list[tuple[int, int, int]]
) -> None:
    """Beside all sets of nodes that there are."""
    groups = [
        NodeGroup(f"n{place}", 1, {"core": cores, "gpu": gpus})
        for place, (cores, gpus) in enumerate(nodes)
    ]
    mine = Partition("1", tuple(range(len(nodes))))
    cluster = Cluster(groups=tuple(groups), partitions=(mine,))
    workload = Workload.from_columns(
        {"submit_time": [0] * len(jobs), "partition": [1] * len(jobs)},
        processors=cluster.processors,
        units=[units for units, _, _ in jobs],
        per_unit={"core": [core for _, core, _ in jobs], "gpu": [gpu for _, _, gpu in jobs]},
    )
    fewest, most = [], []
    for units, core, gpu in jobs:
        held = [min(c // core, g // gpu if gpu else c) for c, g in nodes]
        enough = [
            k
            for k in range(1, len(nodes) + 1)
            if any(sum(some) >= units for some in combinations(held, k))
        ]
        fewest.append(min(enough, default=len(nodes) + 1))
        possible = [
            k
            for k in range(min(units, len(nodes)) + 1)
            if any(0 not in some for some in combinations(held, k))
        ]
        most.append(max(possible))
    assert fewest_nodes(workload, cluster, mine).tolist() == fewest
    assert most_nodes(workload, cluster, mine).tolist() == most


test_mistakes = mistakes_of(globals(), errors=WorkloadError)
