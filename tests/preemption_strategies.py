"""Random preemption for random workloads."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from hpcgym.workload.model import Workload

Slow = tuple[list[Any], set[tuple[Any, Any]], str]
#: Who may stop whom: chains and others, of three queues.
WHO = ("1>2", "2>1", "1>2>3", "3>1;2>1", "2>1;2>3", "1>2;2>3", "3>2")


@st.composite
def preemptions(draw: st.DrawFn, workload: Workload) -> tuple[str, Slow]:
    """One of queues, as a text and as the oracle has it."""
    who, mode = draw(st.sampled_from(WHO)), draw(st.sampled_from(["requeue", "cancel"]))
    pairs = set()
    for chain in who.split(";"):
        names = chain.split(">")
        pairs |= {(a, b) for i, a in enumerate(names) for b in names[i + 1 :]}
    groups = [str(queue) for queue in workload.queue.tolist()]
    text = draw(st.sampled_from(["queue", "qos"])) + f":{who}"
    if mode == "cancel" or draw(st.booleans()):
        text += f",{mode}"
    return text, (groups, pairs, mode)
