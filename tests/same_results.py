"""Whether two results are the same, though not the same engine made them."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np

import hpcgym

LISTS = ("start", "run_time", "predicted_run_time", "reserved_start", "backfilled", "suspended")


def plain(value: Any) -> Any:
    """Arrays as lists, and what has several of them as its parts."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return {name: plain(one) for name, one in value._asdict().items() if name != "failures"}
    return value


def cells(held: Any) -> Any:
    """The units of each job, or run, on each node, whatever their order."""
    if held is None:
        return None
    ends = zip(held.first[:-1], held.first[1:], strict=True)
    return [sorted(zip(held.node[a:b], held.units[a:b], strict=True)) for a, b in ends]


def assert_same_results(slow: hpcgym.Result, fast: hpcgym.Result) -> None:
    """All that a result tells is the same."""
    assert {field.name for field in fields(slow)} >= {*LISTS}
    for name in LISTS:
        assert plain(getattr(slow, name)) == plain(getattr(fast, name)), name
    for name in ("lost", "pieces"):
        one, other = getattr(slow, name), getattr(fast, name)
        assert cells(one) == cells(other)
        if one is not None:
            for column in ("job", "start", "end"):
                assert plain(getattr(one, column)) == plain(getattr(other, column)), (name, column)
    assert cells(slow.allocation) == cells(fast.allocation)
    assert slow.workload.job_number.tolist() == fast.workload.job_number.tolist()
    assert slow.workload.submit_time.tolist() == fast.workload.submit_time.tolist()
    assert (slow.given is None) == (fast.given is None)
    assert plain(slow.policy_run_time) == plain(fast.policy_run_time)
    assert slow.metrics == fast.metrics
