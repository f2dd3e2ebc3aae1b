"""The kernels can stop and go on anywhere, and a copied state is a simulation of its own."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest
from drawing import given, settings
from drawing import strategies as st
from strategies import cases

import hpcgym
from hpcgym.engine.machines import kinds
from hpcgym.engine.state import FOREVER, UNLIMITED, Prepared
from hpcgym.scheduler.rules import Scheduler
from hpcgym.simulation.prepare import prepare
from hpcgym.workload.model import Workload

ORDERS = ("policy", "backfill_order")
Case = tuple[Workload, dict[str, Any]]
#: Six weights of 0 are no order.
CASES = cases().filter(
    lambda case: all(isinstance(p, str) or any(p) for p in (case[1][r] for r in ORDERS))
)


def prepared(case: Case) -> tuple[Any, Prepared]:
    """Return the kernel and its arrays before the first event."""
    workload, rules = case
    arrays = prepare(workload, Scheduler(**rules), hpcgym.Cluster(workload.processors))
    return kinds.POOL.loop_of(arrays.sim), arrays


def copied(arrays: Prepared) -> Prepared:
    return Prepared(*(array.copy() for array in arrays))


def outcome(arrays: Prepared) -> list[Any]:
    """Return what has become of each job; where it is not used, ``reserved`` has no value."""
    rows: list[Any] = arrays.progress[["start", "predicted", "promised", "marks"]].tolist()
    return rows


def in_one_go(case: Case) -> tuple[Prepared, int]:
    """Return the arrays after the last event, and the number of passes."""
    run, arrays = prepared(case)
    passes = run(*arrays, (), FOREVER, UNLIMITED)
    assert (arrays.progress["start"] >= 0).all()
    return arrays, passes


@settings(max_examples=100)
@given(CASES, st.integers(1, 3))
def test_pass_by_pass(case: Case, at_once: int) -> None:
    expected, all_passes = in_one_go(case)
    run, arrays = prepared(case)
    passes = []
    while not passes or passes[-1] == at_once:
        passes.append(run(*arrays, (), FOREVER, at_once))
        assert 0 <= passes[-1] <= at_once
    assert sum(passes) == all_passes
    assert outcome(arrays) == outcome(expected)
    assert run(*arrays, (), FOREVER, UNLIMITED) == 0  # there is nothing left to do


@settings(max_examples=100)
@given(CASES, st.data())
def test_from_time_to_time(case: Case, data: st.DataObject) -> None:
    """A run to some time starts exactly the jobs that start by then."""
    expected, all_passes = in_one_go(case)
    start = expected.progress["start"]
    run, arrays = prepared(case)
    moments = st.one_of(st.sampled_from(start.tolist()), st.integers(-1, int(start.max()) + 1))
    passes = 0
    for moment in sorted(data.draw(st.lists(moments, max_size=12))):
        passes += run(*arrays, (), moment, UNLIMITED)
        due = start <= moment
        np.testing.assert_array_equal(arrays.progress["start"] >= 0, due)
        np.testing.assert_array_equal(arrays.progress["start"][due], start[due])
    passes += run(*arrays, (), FOREVER, UNLIMITED)
    assert passes == all_passes
    assert outcome(arrays) == outcome(expected)


@settings(max_examples=100)
@given(CASES, st.integers(0, 60))
def test_a_copy_goes_on_by_itself(case: Case, passes: int) -> None:
    expected, _ = in_one_go(case)
    run, first = prepared(case)
    run(*first, (), FOREVER, passes)
    second, untouched = copied(first), copied(first)
    run(*first, (), FOREVER, UNLIMITED)
    for name, array in zip(Prepared._fields, untouched, strict=True):
        assert getattr(second, name).tobytes() == array.tobytes(), name
    run(*second, (), FOREVER, UNLIMITED)
    assert outcome(first) == outcome(second) == outcome(expected)


@pytest.mark.parametrize("backfill", ["none", "easy", "conservative"])
def test_no_pass_allowed_is_no_pass_done(backfill: str) -> None:
    workload = hpcgym.load_workload("lublin:jobs=50,processors=16")
    rules = {"policy": "fcfs", "backfill_order": "fcfs", "backfill": backfill}
    run, arrays = prepared((workload, rules))
    assert run(*arrays, (), FOREVER, 0) == 0
    assert run(*arrays, (), -1, UNLIMITED) == 0
    assert (arrays.progress["start"] == -1).all()


@pytest.mark.parametrize("kind", [kinds.POOL, kinds.NODES, kinds.LIMITED, kinds.CORUN])
def test_loops_take_what_is_prepared_in_its_order(kind: kinds.Kind) -> None:
    """Arrays are handed over by place: none may stand where another does."""
    behind = ("machine", "stop_time", "max_passes")
    for run in (kind.easy, kind.conservative):
        if run is not None:
            names = inspect.signature(getattr(run, "py_func", run)).parameters
            assert tuple(names) == (*Prepared._fields, *behind)
