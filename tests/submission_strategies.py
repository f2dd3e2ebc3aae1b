"""Random jobs that follow others; rules that go with that."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from drawing import strategies as st

from hpcgym.workload.model import Workload, pairs_of

COUNTS = st.sampled_from([1, 1, 2, 3, 5])  # of the jobs that one follows
Follows = dict[int, tuple[list[int], int, int]]


@st.composite
def chains(draw: st.DrawFn, workload: Workload) -> tuple[Workload, str, Follows]:
    """Let some jobs follow one or more others, also later ones; as the oracle has it, too."""
    n = len(workload)
    order = draw(st.permutations(range(n))) if draw(st.booleans()) else list(range(n))
    think = draw(st.lists(st.sampled_from([-1, 0, 0, 1, 7, 60, 5000]), min_size=n, max_size=n))
    wait = draw(st.lists(st.sampled_from([-1, 0, 5, 600]), min_size=n, max_size=n))
    preceding = [-1] * n
    dependencies = draw(st.sampled_from(["after", "closed-loop"]))
    follows, more = {}, []
    submit, run = workload.submit_time.tolist(), workload.run_time.tolist()
    for place in range(1, n):
        if draw(st.booleans()):
            job = order[place]
            others = [order[draw(st.integers(0, place - 1))] for _ in range(draw(COUNTS))]
            preceding[job] = others[0] + 1
            more += [(job + 1, other + 1) for other in others[1:]]
            time = max(think[job], 0)
            all_waits_known = all(wait[other] >= 0 for other in others)
            if dependencies == "closed-loop" and think[job] < 0 and all_waits_known:
                ended = max(submit[other] + wait[other] + run[other] for other in others)
                time = max(submit[job] - ended, 0)
            follows[job] = (others, time, submit[job] if dependencies == "after" else 0)
    columns = {"preceding_job": preceding, "think_time": think, "wait_time": wait}
    changed = workload.with_columns(job_number=list(range(1, n + 1)), **columns)
    return replace(changed, more_preceding=pairs_of(more, "")), dependencies, follows


def fitted(rules: dict[str, Any], alone: bool = False) -> dict[str, Any]:
    """Return rules that go with submissions that the schedule makes.

    With quotas, windows and preemption as well, unless these are ``alone``.
    """
    changes: dict[str, Any] = {}
    if not alone:
        changes["hold"] = None
        if rules["backfill"] == "conservative":
            changes["backfill"] = "easy"
        if isinstance(rules["estimate"], str) and rules["estimate"] == "ave2":
            changes["estimate"] = "requested"
    for rule in ("policy", "backfill_order"):
        order = rules[rule]
        named = isinstance(order, str) and order in ("lcfs", "f1", "f2", "f3", "f4")
        weighed = not isinstance(order, str) and order[2] < 0 and not any((*order[:2], *order[3:]))
        if named or weighed:
            changes[rule] = "saf"
    return {**rules, **changes}
