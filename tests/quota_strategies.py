"""Random quotas for random workloads, and rules that go with them."""

from __future__ import annotations

import math
from typing import Any

from drawing import strategies as st

from hpcgym.workload.model import Workload

COLUMNS = {"user": "user_id", "group": "group_id", "queue": "queue", "array": "array"}
Slow = tuple[list[Any], float, float]


@st.composite
def quotas(draw: st.DrawFn, workload: Workload) -> tuple[str, list[Slow]]:
    """One to three quotas that no job exceeds by itself, as a text and as the oracle has them."""
    texts, slow = [], []
    for _ in range(draw(st.integers(1, 3))):
        each = draw(st.lists(st.sampled_from(list(COLUMNS)), max_size=2, unique=True))
        only = draw(st.sampled_from([None, 1, 2]))
        columns = [workload.columns[COLUMNS[name]].tolist() for name in each]
        rows: list[Any] = [tuple(column[row] for column in columns) for row in range(len(workload))]
        if "array" in each:
            rows = [
                None if array < 0 else key
                for key, array in zip(rows, workload.array.tolist(), strict=True)
            ]
        keys = [
            key if only is None or queue == only else None
            for key, queue in zip(rows, workload.queue.tolist(), strict=True)
        ]
        widths = workload.requested_processors.tolist()
        widest = max((w for w, key in zip(widths, keys, strict=True) if key is not None), default=1)
        jobs = draw(st.sampled_from([None, 1, 2, 3]))
        processors = draw(st.integers(widest, 2 * widest)) if jobs is None else None
        parts = ([] if only is None else [f"queue={only}"]) + each or ["all"]
        bound = f"jobs={jobs}" if jobs else f"processors={processors}"
        texts.append(f"{'/'.join(parts)}:{bound}")
        slow.append((keys, jobs or math.inf, processors or math.inf))
    return "; ".join(texts), slow


def with_queues(workload: Workload, queues: list[int]) -> Workload:
    """Return the jobs with those queues in turn, two groups, and arrays of three between others."""
    n = len(workload)
    arrays = [row // 5 if row % 5 < 3 else -1 for row in range(n)]
    return workload.with_columns(
        queue=(queues * n)[:n], group_id=[1 + row % 2 for row in range(n)], array=arrays
    )


def fitted(rules: dict[str, Any], holds: bool = False) -> dict[str, Any]:
    """Return rules that go with quotas and, unless ``holds``, with preemption."""
    changes = {"hold": rules["hold"] if holds else None}
    if rules["backfill"] == "conservative":
        changes["backfill"] = "easy"
    return {**rules, **changes}


@st.composite
def shared_quotas(draw: st.DrawFn, parts: list[Workload]) -> tuple[str, list[list[Slow]]]:
    """Quotas that no job of any slice exceeds by itself: a text, and those of each slice slowly."""
    texts: list[str] = []
    slow: list[list[Slow]] = [[] for _ in parts]
    most = max(int(part.requested_processors.max()) for part in parts)
    for each in draw(st.lists(st.sampled_from(["", *COLUMNS]), min_size=1, max_size=3)):
        jobs = draw(st.sampled_from([None, 1, 2, 3]))
        processors = None if jobs else draw(st.integers(most, 2 * most))
        bound = f"jobs={jobs}" if jobs else f"processors={processors}"
        texts.append(f"{each or 'all'}:{bound}")
        for part, found in zip(parts, slow, strict=True):
            keys = part.columns[COLUMNS[each]].tolist() if each else [0] * len(part)
            if each == "array":
                keys = [None if key < 0 else key for key in keys]
            found.append((keys, jobs or math.inf, processors or math.inf))
    return "; ".join(texts), slow
