"""Simulations that stop anywhere, and go on as copies: to the last bit as in one piece."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
from drawing import given, settings
from drawing import strategies as st
from extract_strategies import usable
from pieces import native_of, same_in_pieces
from restrictions import DRAWN
from strategies import cases
from test_crowds import crowd

import hpcgym
from hpcgym.workload.model import Workload

pytestmark = [
    *DRAWN,
    pytest.mark.filterwarnings("ignore:.*its jobs are in none of the machine's partitions"),
    pytest.mark.filterwarnings("ignore:.*no failure is between"),
]
SEEDS = st.integers(0, 10**6)


@settings(max_examples=100)
@given(st.data(), cases())
def test_a_run_to_some_time_starts_what_starts_by_then(
    data: st.DataObject, case: tuple[Workload, dict[str, Any]]
) -> None:
    simulate = partial(hpcgym.simulate, case[0], **usable(case[1]))
    start, simulation = simulate().start, native_of(simulate)
    moments = st.one_of(st.sampled_from(start.tolist()), st.integers(-1, int(start.max()) + 1))
    for moment in sorted(data.draw(st.lists(moments, max_size=12))):
        simulation.run(until=moment)
        np.testing.assert_array_equal(
            simulation.schedule()["start"], np.where(start <= moment, start, -1)
        )


@pytest.mark.parametrize("policy", ["fcfs", "saf", "lexp"])
@pytest.mark.parametrize("passes", ["per-timestamp", "per-event"])
def test_queues_of_many_blocks_with_a_reservation_for_each(policy: str, passes: str) -> None:
    """Only in long queues it is noted who may find an earlier place."""
    rules = {"policy": policy, "passes": passes, "backfill": "conservative"}
    for seed in range(2):
        workload = hpcgym.load_workload(f"lublin:jobs=400,processors=64,load=200,seed={seed}")
        for more in ({}, {"estimate": "ave2", "correction": "incremental"}):
            same_in_pieces(seed, partial(hpcgym.simulate, workload, **rules, **more))


@settings(max_examples=20)
@given(st.data(), SEEDS)
def test_long_queues_on_nodes(data: st.DataObject, seed: int) -> None:
    """Lists of several blocks."""
    cluster, workload = crowd(seed, jobs=data.draw(st.sampled_from([80, 400])))
    backfill = data.draw(st.sampled_from(["easy", "conservative", "depth:5"]))
    rules = {"cluster": cluster, "backfill": backfill, "policy": "saf"}
    same_in_pieces(seed, partial(hpcgym.simulate, workload, **rules))


@pytest.mark.parametrize("backfill", ["none", "easy", "conservative"])
def test_no_pass_allowed_is_no_pass_done(backfill: str) -> None:
    workload = hpcgym.load_workload("lublin:jobs=50,processors=16")
    simulation = native_of(partial(hpcgym.simulate, workload, backfill=backfill))
    assert simulation.run(passes=0) == simulation.run(until=-1) == 0
    assert (simulation.schedule()["start"] == -1).all()
