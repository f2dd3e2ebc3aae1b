"""Promises to heads of a queue that follow from starts: by hand, and as the engine made them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from drawing import given
from drawing import strategies as st
from few_jobs import few_jobs
from strategies import workloads

from hpcgym.simulation.run import simulate
from hpcgym.validation.promises import promises_to_heads
from hpcgym.workload.model import Workload

#: Jobs of three processors for 10 s, then the head, then one that may start before the head does.
A, HEAD, CANDIDATE = 0, 1, 2


@pytest.mark.parametrize(
    ("wide", "run", "requested", "head_starts", "delays", "broken"),
    [
        (4, 8, 8, 10, False, 0.0),  # it ends as the head may start
        (4, 8, 9, 10, True, 0.0),  # it may not have: no matter that it did
        (4, 9, 9, 11, True, 1.0),
        (3, 99, 99, 10, False, 0.0),  # there is room beside the head
    ],
)
def test_who_starts_before_a_head_by_hand(
    wide: int, run: int, requested: int, head_starts: int, delays: bool, broken: float
) -> None:
    jobs = few_jobs(4, [0, 1, 2], [10, 5, run], [3, wide, 1], [10, 5, requested])
    result = replace(simulate(jobs, "fcfs"), start=np.array([0, head_starts, 2]))
    promises = promises_to_heads(result)
    assert promises.promised.tolist() == [-1, 10, -1]
    assert promises.delays.tolist() == [False, False, delays]
    every = np.ones(3, np.bool_)
    assert promises.broken(result.start, every) == broken
    every[HEAD] = False
    assert promises.broken(result.start, every) == 0


def test_two_that_take_the_same_room_delay_the_head_together() -> None:
    """Each by itself would fit beside the head, whatever the order in which they were tried.

    Once one of them runs, the other delays a head that could start at once.
    """
    jobs = few_jobs(5, [0, 1, 2, 2], [10, 5, 99, 99], [3, 4, 1, 1])
    for last, delays in ((2, [False, False, True, True]), (20, [False, False, False, True])):
        result = replace(simulate(jobs, "fcfs"), start=np.array([0, 101, 2, last]))
        assert promises_to_heads(result).delays.tolist() == delays


@given(workloads(), st.sampled_from(["fcfs", "saf", "laf", "spf"]))
def test_they_are_those_that_the_engine_made(jobs: Workload, order: str) -> None:
    result = simulate(jobs, "easy", backfill_order=order)
    promises = promises_to_heads(result)
    assert promises.promised.tolist() == result.reserved_start.tolist()
    assert not promises.delays.any()
    every = np.ones(len(jobs), np.bool_)
    assert promises.broken(result.start, every) == 0
