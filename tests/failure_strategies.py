"""Random failures of small machines, that look for trouble: ties with all that happens."""

from __future__ import annotations

from typing import Any

from drawing import strategies as st
from node_strategies import machines, node_schedulers, workloads_for

from hpcgym.machine import Cluster, Failures
from hpcgym.workload.model import Workload

Failure = tuple[int, int, int]


@st.composite
def failures_for(draw: st.DrawFn, cluster: Cluster, workload: Workload) -> list[Failure]:
    """Failures at times of submissions, ends and repairs, or near; of one node or of all."""
    submits = workload.submit_time.tolist()
    lengths = sorted({*workload.run_time.tolist(), *workload.requested_time.tolist()})
    moment = st.builds(
        lambda begin, length, more: max(begin + length + more, 0),
        st.sampled_from(submits),
        st.sampled_from([0, *lengths]),
        st.sampled_from([-1, 0, 0, 0, 1, 5]),
    )
    lasts = st.sampled_from([1, 2, 7, *lengths])
    free = [0] * cluster.nodes
    failures: list[Failure] = []
    for time in sorted(draw(st.lists(moment, max_size=12))):
        length = draw(lasts)
        some = st.sampled_from([[draw(st.integers(0, cluster.nodes - 1))], range(cluster.nodes)])
        for node in draw(some):
            begin = max(time, free[node])  # also in the second of the last repair
            free[node] = begin + length
            failures.append((node, begin, free[node]))
    return failures


def table_of(failures: list[Failure]) -> Failures:
    """Return failures as hpcgym takes them."""
    columns: Any = zip(*failures, strict=True) if failures else ([], [], [])
    return Failures(*(list(column) for column in columns))


@st.composite
def failing_cases(
    draw: st.DrawFn, max_jobs: int = 25
) -> tuple[Cluster, Workload, dict[str, Any], list[Failure]]:
    """A machine, a workload for it, a scheduler, and failures."""
    cluster = draw(machines())
    workload = draw(workloads_for(cluster, max_jobs))
    rules = draw(node_schedulers(workload))
    return cluster, workload, rules, draw(failures_for(cluster, workload))
