"""A restriction is added in one place: a struct around a machine that says who may not start now.

``added_restriction.cpp`` lets so many jobs of a user run at once. hpcgym's quotas can say that too;
the two share no code.
"""

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
from strategies import workloads

from hpcgym import simulate
from hpcgym.workload.model import Workload

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++"),
]
ROOT = Path(__file__).parents[2]
NUMBERS = np.ctypeslib.ndpointer(np.int64, flags="C")
NAMES = ("submit_time", "run_time", "requested_time", "requested_processors", "submit_time")


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., None]:
    """The function of ``added_restriction.cpp``."""
    source = Path(__file__).with_name("added_restriction.cpp")
    name = str(tmp_path_factory.mktemp("cpp") / "few.so")
    flags = ["-std=c++20", "-O1", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"]
    command = ["g++", *flags, "-I", str(ROOT / "native"), str(source), "-o", name]
    subprocess.run(command, check=True)
    function: Any = ctypes.CDLL(name).simulate_few
    function.argtypes = (NUMBERS, NUMBERS, NUMBERS, *[ctypes.c_int64] * 4, NUMBERS)
    function.restype = None
    return function  # type: ignore[no-any-return]


@settings(max_examples=300)
@given(workloads(), st.integers(1, 4), st.integers(1, 4), st.sampled_from(["fcfs", "saf"]))
def test_few_jobs_of_a_user_give_the_schedules_of_quotas(
    compiled: Callable[..., None], workload: Workload, most: int, depth: int, policy: str
) -> None:
    run = np.minimum(workload.run_time, workload.requested_time)  # who runs on would be killed
    workload = workload.with_columns(run_time=run)
    jobs = np.column_stack([workload.columns[name] for name in NAMES]).astype(np.int64)
    keys, out = np.arange(len(jobs)), np.zeros((len(jobs), 2), np.int64)
    if policy == "saf":
        keys[np.argsort(jobs[:, 2] * jobs[:, 3], kind="stable")] = np.arange(len(jobs))
    users = np.unique(workload.user_id, return_inverse=True)[1].astype(np.int64)
    size = len(jobs), workload.processors
    compiled(jobs, keys, users, *size, most, depth, out)
    rules: dict[str, Any] = {"policy": policy, "backfill_order": policy}
    quota = f"user:jobs={most}"
    expected = simulate(workload, backfill=f"depth:{depth}", quota=quota, **rules)
    assert out[:, 0].tolist() == expected.start.tolist()
    assert out[:, 1].tolist() == expected.reserved_start.tolist()
