"""For whom a job was suspended."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hpcgym
from hpcgym.explanation.reasons import suspended_for
from hpcgym.explanation.story import _for_whom


@given(seed=st.integers(0, 50), machine=st.sampled_from([None, "6x1x2"]))
def test_someone_who_may_stop_it_started_then(seed: int, machine: str | None) -> None:
    jobs = hpcgym.load_workload(f"lublin:jobs=60,processors=12,seed={seed}")
    rng = np.random.default_rng(seed)
    gap = max(int(np.median(jobs.run_time)) // 2, 1)
    jobs = jobs.with_columns(
        submit_time=np.arange(len(jobs)) * gap, queue=rng.integers(1, 4, len(jobs))
    )
    place: dict[str, Any] = {} if machine is None else {"cluster": machine}
    result = hpcgym.simulate(jobs, preemption="queue:3>2>1,suspend", **place)
    assert result.pieces is not None
    row = {number: place for place, number in enumerate(jobs.job_number.tolist())}
    for job in np.unique(result.pieces.job).tolist():
        times = result.pieces.end[result.pieces.job == job].tolist()
        for time, numbers in zip(times, suspended_for(result, job), strict=True):
            assert numbers
            for one in (row[number] for number in numbers):
                assert result.start[one] == time
                assert jobs.queue[one] > jobs.queue[job]
    never = np.setdiff1d(np.arange(len(jobs)), result.pieces.job)
    assert all(suspended_for(result, job) == [] for job in never.tolist())


def test_who_took_its_node_is_named_and_nobody_else() -> None:
    """By hand: two urgent jobs start at 5 s, each on the node of one of two jobs that run."""
    jobs = hpcgym.Workload.from_columns(
        {
            "job_number": [1, 2, 3, 4],
            "submit_time": [0, 0, 5, 5],
            "run_time": [20, 20, 5, 5],
            "requested_time": [20, 20, 5, 5],
            "requested_processors": [1, 1, 1, 1],
            "queue": [1, 1, 2, 2],
        },
        processors=2,
    )
    result = hpcgym.simulate(jobs, cluster="2x1x1", preemption="queue:2>1,suspend")
    assert result.allocation is not None
    assert result.allocation.node.tolist() == [0, 1, 1, 0]
    assert [suspended_for(result, job) for job in (0, 1)] == [[[4]], [[3]]]
    pool = hpcgym.simulate(jobs, preemption="queue:2>1,suspend")
    assert suspended_for(pool, 0) == [[3, 4]]


@pytest.mark.parametrize(
    ("jobs", "words"),
    [
        ([[17]], "for job 17"),
        ([[17, 18], [17, 18]], "for job 17 or 18"),
        ([[17], [18, 19]], "for job 17, then for job 18 or 19"),
        (
            [[n] for n in range(7)],
            "for job 0, then for job 1, then for job 2, then for job 3, then for job 4 and 2 times"
            " more",
        ),
    ],
)
def test_words(jobs: list[list[int]], words: str) -> None:
    assert _for_whom(jobs) == words
