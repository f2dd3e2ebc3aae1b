"""The nice of jobs in Slurm's priorities: beside slow ones, and by hand."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from drawing import given, settings
from drawing import strategies as st
from strategies import workloads

import hpcgym
from hpcgym.baselines.schedulers import find_scheduler
from hpcgym.names import MOST_NICE
from hpcgym.reference.jobs import jobs_of
from hpcgym.reference.orders import MultifactorPriority
from hpcgym.reference.pool import simulate_pool
from hpcgym.workload.model import Workload

NICES = st.sampled_from([-1, 0, 0, 1, 3, 50, 100, 5_000, MOST_NICE, -2, -70, -MOST_NICE])
#: Weights of age, job size and partition; some are 0, but not all: then no nice counts.
WEIGHTS = st.tuples(*[st.sampled_from([0, 8, 64, 1000])] * 3).filter(any)


@settings(max_examples=200)
@given(st.data(), workloads(), WEIGHTS, st.sampled_from(["none", "easy"]))
def test_priorities_are_those_that_slurm_works_out(
    tmp_path_factory: pytest.TempPathFactory,
    data: st.DataObject,
    workload: Workload,
    weights: tuple[int, int, int],
    backfill: str,
) -> None:
    """Ages are in 64ths and sizes in 16ths, so that what is equal is equal in double precision."""
    n = len(workload)
    kind = st.sampled_from([(1, 1), (1, 4), (5, 0), (9, 2)])
    kinds = data.draw(st.lists(kind, min_size=1, max_size=3))
    partition = data.draw(st.lists(st.integers(0, len(kinds) - 1), min_size=n, max_size=n))
    nice = data.draw(st.lists(NICES, min_size=n, max_size=n))
    workload = replace(workload, processors=16).with_columns(partition=partition, nice=nice)
    age, size, of_partition = weights
    lines = [
        f"PriorityWeightAge={age}\nPriorityWeightJobSize={size}\nPriorityMaxAge=1:04\n"
        f"PriorityWeightPartition={of_partition}\nNodeName=n[1-16]"
    ]
    lines += [
        f"PartitionName={k} Nodes=ALL PriorityTier={tier} PriorityJobFactor={factor}"
        for k, (tier, factor) in enumerate(kinds)
    ]
    file = tmp_path_factory.mktemp("conf") / "slurm.conf"
    file.write_text("\n".join(lines) + "\n")
    result = hpcgym.simulate(workload, str(file), backfill=backfill)
    order = MultifactorPriority(weights, 64, 16, kinds, partition, nice)
    expected = simulate_pool(jobs_of(workload), 16, policy=order, backfill=backfill)
    assert result.start.tolist() == [job.start for job in expected]
    hpcgym.validate_schedule(result)


def served(
    folder: Path, text: str, nice: list[int], first_s: int = 100, **columns: list[int]
) -> list[int]:
    """Return the jobs behind job 0, which has the machine, in the order in which they are served.

    Each needs all of it, and they come a second after each other.
    """
    file = folder / "slurm.conf"
    file.write_text(f"NodeName=n[1-4]\nSchedulerType=sched/builtin\n{text}")
    n = len(nice) + 1
    jobs = Workload.from_columns(
        {
            "submit_time": list(range(n)),
            "run_time": [first_s] + [100] * (n - 1),
            "requested_time": [first_s] + [100] * (n - 1),
            "requested_processors": [4] * n,
            "nice": [-1, *nice],
            **{name: [0, *values] for name, values in columns.items()},
        },
        processors=4,
    )
    result = hpcgym.simulate(jobs, str(file))
    return np.argsort(result.start).tolist()[1:]


def test_who_is_nice_lets_younger_jobs_pass(tmp_path: Path) -> None:
    """By hand: a job gains 1 in each 10 s, and so job 1 loses 500 s, job 2 150 s, job 4 none."""
    text = "PriorityWeightAge=1000\nPriorityMaxAge=2:46:40\nPriorityWeightJobSize=100\n"
    assert served(tmp_path, text, [50, 15, 0, -1]) == [3, 4, 2, 1]
    assert served(tmp_path, text, [0, 0, 0, -20]) == [4, 1, 2, 3]


def test_who_loses_all_is_served_by_submission(tmp_path: Path) -> None:
    """By hand: 1 and 2 have the priority 1 for ever, since no job can have more than 30."""
    text = "PriorityWeightAge=30\nPriorityMaxAge=1\n"
    assert served(tmp_path, text, [9_000, 50, 0]) == [3, 1, 2]


def test_without_weights_nobody_can_lose(tmp_path: Path) -> None:
    assert served(tmp_path, "", [9_000, 50, 0]) == [1, 2, 3]


def test_a_weight_that_adds_nothing(tmp_path: Path) -> None:
    """By hand: all have 0 of it, and 3 is the only one above the least priority, 1."""
    text = "PriorityWeightPartition=64\nPartitionName=1 Nodes=ALL PriorityJobFactor=0\n"
    assert served(tmp_path, text, [0, 0, -60], partition=[1, 1, 1]) == [3, 1, 2]


def test_no_nice_leaves_a_tier(tmp_path: Path) -> None:
    """By hand: 2 and 4 are in the high tier."""
    text = "PriorityWeightJobSize=10\nPartitionName=1 Nodes=ALL\n"
    text += "PartitionName=2 Nodes=ALL PriorityTier=2\n"
    nice = [-MOST_NICE, MOST_NICE, 0, 0]
    assert served(tmp_path, text, nice, partition=[1, 2, 1, 2]) == [4, 2, 1, 3]


@pytest.mark.parametrize("formula", ["", "PriorityFlags=NO_FAIR_TREE\n"])
def test_beside_fair_share(tmp_path: Path, formula: str) -> None:
    """By hand: 2 and 3 are of a user who has used nothing, which is worth more than the nice of 2
    and less than that of 3. Job 0 ends as usage counts."""
    text = f"PriorityWeightFairshare=1000\n{formula}PartitionName=1 Nodes=ALL\n"
    text += "PartitionName=2 Nodes=ALL PriorityTier=2\n"
    nice = [0, 10, MOST_NICE, MOST_NICE]
    users = [0, 1, 1, 2]
    assert served(tmp_path, text, nice, 300, user_id=users, partition=[1, 1, 1, 2]) == [4, 2, 1, 3]
    policy = find_scheduler(str(tmp_path / "slurm.conf")).policy
    assert policy == "2147485646 * (partition == '2') + 1000 * fairshare - min(nice, 1000)"


def test_an_expression_may_name_it() -> None:
    jobs = hpcgym.load_workload("lublin:jobs=60,processors=16,load=2,seed=1")
    nice = [k * 7 % 20 - 1 for k in range(60)]
    by_name = hpcgym.simulate(jobs.with_columns(nice=nice), policy="-nice").start
    # -1 is an unknown one
    as_user = jobs.with_columns(user_id=[max(adjustment, 0) for adjustment in nice])
    assert by_name.tolist() == hpcgym.simulate(as_user, policy="-user").start.tolist()
