"""A kind of machine, and a restriction, are each added in one place: a struct."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from drawing import given, settings
from drawing import strategies as st
from few_jobs import few_jobs
from strategies import workloads

from hpcgym import Cluster, simulate
from hpcgym.machine import NodeGroup
from hpcgym.workload.model import Workload

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++"),
]
ROOT = Path(__file__).parents[2]
DEPTHS = {"none": 0, "easy": 1}
NUMBERS = np.ctypeslib.ndpointer(np.int64, flags="C")


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., None]:
    """The function of ``added_machine.cpp``."""
    source, library = Path(__file__).with_name("added_machine.cpp"), tmp_path_factory.mktemp("cpp")
    flags = ["-std=c++20", "-O1", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"]
    name = str(library / "islands.so")
    command = ["g++", *flags, "-I", str(ROOT / "native"), str(source), "-o", name]
    subprocess.run(command, check=True)
    function: Any = ctypes.CDLL(name).simulate_on_islands
    number = ctypes.c_int64
    function.argtypes = (*(NUMBERS, NUMBERS, number), *(NUMBERS, *[number] * 3), NUMBERS)
    function.restype = None
    return function  # type: ignore[no-any-return]


def on_islands(
    compiled: Callable[..., None], workload: Workload, islands: list[int], rules: dict[str, Any]
) -> tuple[list[int], list[int]]:
    """Return the starts and the promises of all jobs [s]."""
    names = ("submit_time", "run_time", "requested_time", "requested_processors", "submit_time")
    jobs = np.column_stack([workload.columns[name] for name in names]).astype(np.int64)
    keys, out = np.arange(len(jobs)), np.zeros((len(jobs), 2), np.int64)
    if rules["policy"] == "saf":
        keys[np.argsort(jobs[:, 2] * jobs[:, 3], kind="stable")] = np.arange(len(jobs))
    threshold = -1 if rules["threshold"] is None else rules["threshold"]
    told = DEPTHS[rules["backfill"]], threshold
    compiled(jobs, keys, len(jobs), np.array(islands), len(islands), *told, out)
    return out[:, 0].tolist(), out[:, 1].tolist()


@settings(max_examples=300)
@given(
    workloads(),
    st.lists(st.integers(1, 9), min_size=1, max_size=5),
    st.fixed_dictionaries(
        {
            "policy": st.sampled_from(["fcfs", "saf"]),
            "backfill": st.sampled_from(["none", "easy", "easy"]),
            "threshold": st.sampled_from([None, None, 0, 5, 100, 2000]),
        }
    ),
)
def test_islands_give_the_schedules_of_nodes(
    compiled: Callable[..., None], workload: Workload, islands: list[int], rules: dict[str, Any]
) -> None:
    most = np.minimum(workload.requested_processors, max(islands))
    run = np.minimum(workload.run_time, workload.requested_time)  # who runs on would be killed
    columns = {**workload.columns, "requested_processors": most, "run_time": run}
    workload = Workload.from_columns(columns, processors=sum(islands), per_unit={"core": most})
    groups = [NodeGroup(f"island{i}", 1, {"core": n}) for i, n in enumerate(islands)]
    cluster = Cluster(groups=tuple(groups))
    rules = {**rules, "backfill_order": rules["policy"]}
    expected = simulate(workload, cluster=cluster, allocation="first-fit", **rules)
    start, promised = on_islands(compiled, workload, islands, rules)
    assert start == expected.start.tolist()
    assert promised == expected.reserved_start.tolist()


def test_islands_by_hand(compiled: Callable[..., None]) -> None:
    """Islands of four and two: a job of three waits for the first island, though three are free."""
    workload = few_jobs(6, [0, 1, 2, 3], [10, 10, 5, 20], [3, 3, 1, 2])
    rules: dict[str, Any] = {"policy": "fcfs", "threshold": None}
    alone, _ = on_islands(compiled, workload, [4, 2], {**rules, "backfill": "none"})
    assert alone == [0, 10, 10, 10]
    # the third runs on the first island beside the first job, the fourth has the second to itself
    start, promised = on_islands(compiled, workload, [4, 2], {**rules, "backfill": "easy"})
    assert start == [0, 10, 2, 3]
    assert promised == [-1, 10, -1, -1]


NAMES = ("submit_time", "run_time", "requested_time", "requested_processors", "submit_time")


@pytest.fixture(scope="module")
def compiled_few(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., None]:
    """The function of ``added_restriction.cpp``."""
    source = Path(__file__).with_name("added_restriction.cpp")
    name = str(tmp_path_factory.mktemp("cpp") / "few.so")
    flags = ["-std=c++20", "-O1", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"]
    command = ["g++", *flags, "-I", str(ROOT / "native"), str(source), "-o", name]
    subprocess.run(command, check=True)
    function: Any = ctypes.CDLL(name).simulate_few
    number = ctypes.c_int64
    function.argtypes = *[NUMBERS] * 3, number, *[NUMBERS] * 2, *[number] * 4, NUMBERS
    function.restype = None
    return function  # type: ignore[no-any-return]


@settings(max_examples=400)
@given(
    workloads(),
    st.lists(st.integers(2, 9), max_size=4),
    st.integers(1, 4),
    st.integers(0, 4),
    st.sampled_from(["fcfs", "saf"]),
)
def test_few_jobs_of_a_user_give_the_schedules_of_quotas(
    compiled_few: Callable[..., None],
    workload: Workload,
    nodes: list[int],
    most: int,
    depth: int,
    policy: str,
) -> None:
    """Without nodes on a pool; with any way to back-fill, whose reservations are not kept."""
    run = np.minimum(workload.run_time, workload.requested_time)  # who runs on would be killed
    columns, cluster = {**workload.columns, "run_time": run}, None
    units = np.minimum(workload.requested_processors, sum(n // 2 for n in nodes))  # of two cores
    if nodes:
        columns["requested_processors"] = 2 * units
        groups = [NodeGroup(f"node{i}", 1, {"core": n}) for i, n in enumerate(nodes)]
        cluster = Cluster(groups=tuple(groups))
        two = {"core": np.full(len(units), 2)}
        workload = Workload.from_columns(columns, processors=sum(nodes), units=units, per_unit=two)
    else:
        workload = Workload.from_columns(columns, processors=workload.processors)
    jobs = np.column_stack([workload.columns[name] for name in NAMES]).astype(np.int64)
    keys, out = np.arange(len(jobs)), np.zeros((len(jobs), 2), np.int64)
    if policy == "saf":
        keys[np.argsort(jobs[:, 2] * jobs[:, 3], kind="stable")] = np.arange(len(jobs))
    users = np.unique(workload.user_id, return_inverse=True)[1].astype(np.int64)
    needs = np.column_stack([units, np.full(len(units), 2)])
    machine = needs, np.array(nodes, np.int64), len(nodes), workload.processors
    compiled_few(jobs, keys, users, len(jobs), *machine, most, depth, out)
    backfill = ["none", "easy", "depth:2", "depth:3", "depth:4"][depth]
    rules: dict[str, Any] = {"policy": policy, "backfill": backfill, "backfill_order": policy}
    expected = simulate(workload, cluster=cluster, quota=f"user:jobs={most}", **rules)
    assert out[:, 0].tolist() == expected.start.tolist()
    assert out[:, 1].tolist() == expected.reserved_start.tolist()
