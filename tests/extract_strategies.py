"""Extracts of random workloads, with waiting times as a log has them."""

from __future__ import annotations

from typing import Any

import numpy as np
from drawing import strategies as st

from hpcgym.workload.model import Workload


def usable(rules: dict[str, Any]) -> dict[str, Any]:
    """The rules without orders of no weight, which are refused."""
    for rule in ("policy", "backfill_order"):
        if not isinstance(rules[rule], str) and not any(rules[rule]):
            rules[rule] = "fcfs"
    return rules


WAITS = st.sampled_from([-1, 0, 0, 1, 2, 5, 8, 30, 100])


def recorded(data: st.DataObject, workload: Workload) -> Workload:
    """The workload with waiting times as a log has them: some unknown, many impossible."""
    waits = data.draw(st.lists(WAITS, min_size=len(workload), max_size=len(workload)))
    unit = data.draw(st.sampled_from([1, 20, 600]))
    return workload.with_columns(wait_time=[wait * max(unit * (wait > 0), 1) for wait in waits])


def parts_of(
    data: st.DataObject, workload: Workload, rules: dict[str, Any], last: bool = True
) -> tuple[Workload | None, dict[str, Any], int, float]:
    """An extract, the rules for it, and from when to when it is; None if it cannot be."""
    started = workload.submit_time + np.maximum(workload.wait_time, 0)
    times = {*started.tolist(), *(started + workload.run_time).tolist()}
    near = sorted({time + more for time in times for more in (0, 1)})
    begin = data.draw(st.one_of(st.sampled_from(near), st.integers(0, near[-1])))
    end = data.draw(st.sampled_from([None, begin + 1, begin + 60])) if last else None
    before, known = workload.submit_time < begin, workload.wait_time >= 0
    run_time = np.minimum(workload.run_time, workload.requested_time)
    left = before & known & (started + run_time > begin)
    left |= ~before & (workload.submit_time < (np.inf if end is None else end))
    if not left.any() or (before.any() and not known[before].any()):
        return None, rules, begin, 0
    part = workload.extract(begin, end)
    if not isinstance(rules["estimate"], str):
        rules = rules | {"estimate": "clairvoyant"}
    return part, rules, begin, np.inf if end is None else end
