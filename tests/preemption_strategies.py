"""Random preemption for random workloads."""

from __future__ import annotations

from typing import Any

import numpy as np
from drawing import strategies as st

from hpcgym.workload.model import Workload

Slow = tuple[list[Any], set[tuple[Any, Any]], str, dict[Any, int], dict[Any, int]]
CLOSE = st.sampled_from([0, 1, 2, 4])  # shares, as of :func:`crowded`
#: Who may stop whom: chains and others, of three queues.
WHO = ("1>2", "2>1", "1>2>3", "3>1;2>1", "2>1;2>3", "1>2;2>3", "3>2")


def crowded(workload: Workload, share: int) -> Workload:
    """Return the jobs so close to each other that they stop others; as they are where it is 0.

    ``share``: how many of them come, one after the other, in the median run time.
    """
    if share == 0:
        return workload
    gap = max(int(np.median(workload.run_time)) // share, 1)
    return workload.with_columns(submit_time=np.arange(len(workload)) * gap)


@st.composite
def preemptions(draw: st.DrawFn, workload: Workload) -> tuple[str, Slow]:
    """One of queues, as a text and as the oracle has it."""
    who, mode = draw(st.sampled_from(WHO)), draw(st.sampled_from(["requeue", "cancel", "suspend"]))
    pairs = set()
    for chain in who.split(";"):
        names = chain.split(">")
        pairs |= {(a, b) for i, a in enumerate(names) for b in names[i + 1 :]}
    groups = [str(queue) for queue in workload.queue.tolist()]
    text = draw(st.sampled_from(["queue", "qos"])) + f":{who}"
    if mode != "requeue" or draw(st.booleans()):
        text += f",{mode}"
    stopped = sorted({b for _, b in pairs})
    kinds = () if mode == "suspend" else ("exempt", "grace")
    times = {kind: draw(times_of(stopped)) for kind in kinds}
    for kind, given in times.items():
        if given:
            text += f",{kind}={';'.join(f'{name}={seconds}' for name, seconds in given.items())}"
    return text, (groups, pairs, mode, times.get("exempt", {}), times.get("grace", {}))


def times_of(names: list[str]) -> st.SearchStrategy[dict[str, int]]:
    """Exempt or grace times of those that may be stopped, or of some of them [s]."""
    some = st.dictionaries(st.sampled_from(names), st.sampled_from([1, 3, 7, 20, 600, 5000]))
    return st.one_of(st.just({}), some)


def urgent(**columns: list[int]) -> Workload:
    """Return jobs of 10 s of queue 1 on 4 processors, and one of queue 2 that comes at 2 s."""
    given = {
        "submit_time": [0, 0, 1, 2],
        "run_time": [10, 10, 10, 5],
        "requested_time": [10, 10, 10, 5],
        "requested_processors": [1, 2, 1, 3],
        "queue": [1, 1, 1, 2],
    }
    return Workload.from_columns({**given, **columns}, processors=4)
