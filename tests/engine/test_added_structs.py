"""A kind of machine, and a restriction, are each added in one place: a struct."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from drawing import given, settings
from drawing import strategies as st
from strategies import workloads

from hpcgym import Cluster, simulate
from hpcgym.machine import NodeGroup
from hpcgym.workload.model import Workload

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++"),
]
ROOT = Path(__file__).parents[2]
NUMBERS = np.ctypeslib.ndpointer(np.int64, flags="C")


def compiled(
    name: str, function: str, folder: Path, arguments: tuple[Any, ...], level: str = "-O1"
) -> Any:
    """Return a function of C++ that stands beside this file."""
    flags = ["-std=c++20", level, "-Wall", "-Wextra", "-Werror", "-fopenmp-simd"]
    flags += ["-shared", "-fPIC"]
    source, library = Path(__file__).with_name(name), folder / "added.so"
    command = ["g++", *flags, "-I", ROOT / "native", source, "-o", library]
    subprocess.run(list(map(str, command)), check=True)
    made: Any = getattr(ctypes.CDLL(str(library)), function)
    made.argtypes, made.restype = arguments, None
    return made


NUMBER = ctypes.c_int64


@pytest.fixture(scope="module")
def islands_of(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The function of ``added_machine.cpp``."""
    arguments = (*(NUMBERS, NUMBERS, NUMBER), *(NUMBERS, *[NUMBER] * 3), NUMBERS)
    folder = tmp_path_factory.mktemp("cpp")
    return compiled("added_machine.cpp", "simulate_on_islands", folder, arguments)


@pytest.fixture(scope="module")
def few_of(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The function of ``added_restriction.cpp``."""
    arguments = (*[NUMBERS] * 3, NUMBER, *[NUMBERS] * 2, *[NUMBER] * 4, NUMBERS)
    return compiled(
        "added_restriction.cpp", "simulate_few", tmp_path_factory.mktemp("cpp"), arguments
    )


def jobs_and_keys(workload: Workload, policy: str) -> tuple[Any, Any, Any]:
    """Return the jobs as the engine has them, their keys, and a table for what comes out."""
    names = ("submit_time", "run_time", "requested_time", "requested_processors", "submit_time")
    jobs = np.column_stack([workload.columns[name] for name in names]).astype(np.int64)
    keys = np.arange(len(jobs))
    if policy == "saf":
        keys[np.argsort(jobs[:, 2] * jobs[:, 3], kind="stable")] = np.arange(len(jobs))
    return jobs, keys, np.zeros((len(jobs), 2), np.int64)


def assert_same(out: Any, workload: Workload, cluster: Cluster | None, **rules: Any) -> None:
    """Compare the starts and the promises of all jobs [s]."""
    rules["backfill_order"] = rules["policy"]
    expected = simulate(workload, cluster=cluster, **rules)
    assert out[:, 0].tolist() == expected.start.tolist()
    assert out[:, 1].tolist() == expected.reserved_start.tolist()


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
    islands_of: Any, workload: Workload, islands: list[int], rules: dict[str, Any]
) -> None:
    most = np.minimum(workload.requested_processors, max(islands))
    run = np.minimum(workload.run_time, workload.requested_time)  # who runs on would be killed
    columns = {**workload.columns, "requested_processors": most, "run_time": run}
    workload = Workload.from_columns(columns, processors=sum(islands), per_unit={"core": most})
    groups = [NodeGroup(f"island{i}", 1, {"core": n}) for i, n in enumerate(islands)]
    jobs, keys, out = jobs_and_keys(workload, rules["policy"])
    threshold = -1 if rules["threshold"] is None else rules["threshold"]
    codes = ["none", "easy"].index(rules["backfill"]), threshold
    islands_of(jobs, keys, len(jobs), np.array(islands), len(islands), *codes, out)
    assert_same(out, workload, Cluster(groups=tuple(groups)), allocation="first-fit", **rules)


@settings(max_examples=400)
@given(
    workloads(),
    st.lists(st.integers(2, 9), max_size=4),
    st.integers(1, 4),
    st.integers(0, 4),
    st.sampled_from(["fcfs", "saf"]),
)
def test_few_jobs_of_a_user_give_the_schedules_of_quotas(
    few_of: Any, workload: Workload, nodes: list[int], most: int, depth: int, policy: str
) -> None:
    """Without nodes on a pool; with any way to backfill, whose reservations are not kept."""
    run = np.minimum(workload.run_time, workload.requested_time)  # who runs on would be killed
    columns, cluster = {**workload.columns, "run_time": run}, None
    units = np.minimum(workload.requested_processors, sum(n // 2 for n in nodes))  # of two cores
    more: dict[str, Any] = {"processors": sum(nodes) or workload.processors}
    if nodes:
        columns["requested_processors"] = 2 * units
        groups = [NodeGroup(f"node{i}", 1, {"core": n}) for i, n in enumerate(nodes)]
        cluster = Cluster(groups=tuple(groups))
        more |= {"units": units, "per_unit": {"core": np.full(len(units), 2)}}
    workload = Workload.from_columns(columns, **more)
    jobs, keys, out = jobs_and_keys(workload, policy)
    users = np.unique(workload.user_id, return_inverse=True)[1].astype(np.int64)
    any_number = 1 << 40  # of units on a node, as native/machines/nodes/layout.hpp has it
    needs = np.column_stack([units, np.full(len(units), 2), np.full(len(units), any_number)])
    machine = needs, np.array(nodes, np.int64), len(nodes), workload.processors
    few_of(jobs, keys, users, len(jobs), *machine, most, depth, out)
    backfill = ["none", "easy", "depth:2", "depth:3", "depth:4"][depth]
    assert_same(out, workload, cluster, policy=policy, backfill=backfill, quota=f"user:jobs={most}")
