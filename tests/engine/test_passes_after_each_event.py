"""Restrictions where each event has a pass of its own: by hand, beside passes per timestamp."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

import hpcgym
from hpcgym.workload.model import Workload


class Case(NamedTuple):
    """Jobs, what restricts them, and when they start with passes per timestamp, and after events.

    ``jobs``: submission, run time, as requested, and processors of each; ``more``: columns.
    """

    processors: int
    jobs: list[tuple[int, int, int]]
    more: dict[str, list[int]]
    rules: dict[str, Any]
    together: list[int]
    apart: list[int]


FOUR = [(0, 10, 1), (0, 10, 1), (1, 5, 2), (2, 3, 2)]
CASES = {
    # at 10 s job 0 counts until its end is handled, though its processor counts as free
    "quota": Case(
        1,
        [(0, 10, 1), (10, 5, 1), (10, 5, 1)],
        {"user_id": [1, 1, 2]},
        {"quota": "user:jobs=1", "backfill": "none"},
        [0, 10, 15],
        [0, 15, 10],
    ),
    # at 10 s job 2 comes as soon as job 0 has ended, and starts before job 1 ends and job 3 comes
    "submitted": Case(
        2,
        FOUR,
        {"user_id": [1, 2, 1, 2]},
        {"quota": "user:submitted=1", "policy": "spf"},
        [0, 0, 13, 10],
        [0, 0, 10, 15],
    ),
    "dependencies": Case(
        2,
        FOUR,
        {"preceding_job": [-1, -1, 1, 2]},
        {"dependencies": "after", "policy": "spf"},
        [0, 0, 13, 10],
        [0, 0, 10, 15],
    ),
    # when the window ends at 10 s, job 1 comes and starts before job 2 comes
    "maintenance": Case(
        1,
        [(3, 5, 1), (10, 3, 1), (10, 1, 1)],
        {},
        {"maintenance": "5/10", "policy": "spf"},
        [14, 11, 10],
        [14, 10, 13],
    ),
    # no job is stopped in the second of its start, as job 0, or of its end, as job 1
    "preemption": Case(
        1,
        [(0, 10, 1), (0, 5, 1), (6, 2, 1)],
        {"queue": [1, 2, 3], "requested_time": [10, 9, 2]},
        {"preemption": "queue:3>2>1", "backfill": "none"},
        [8, 0, 6],
        [8, 1, 6],
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_by_hand(case: Case) -> None:
    submit, run, processors = map(list, zip(*case.jobs, strict=True))
    columns = {
        "job_number": list(range(1, len(run) + 1)),
        "submit_time": submit,
        "run_time": run,
        "requested_time": run,
        "requested_processors": processors,
        **case.more,
    }
    jobs = Workload.from_columns(columns, processors=case.processors)
    for passes, starts in (("per-timestamp", case.together), ("per-event", case.apart)):
        result = hpcgym.simulate(jobs, passes=passes, **case.rules)
        slow = hpcgym.simulate(jobs, passes=passes, engine="reference", **case.rules)
        order = result.workload.job_number.argsort()
        assert result.start[order].tolist() == starts
        assert slow.start.tolist() == result.start.tolist()
        assert slow.restarts.tolist() == result.restarts.tolist()
        hpcgym.validate_schedule(result)
