"""Rules that mean nothing to the jobs of a workload are told, once for all slices."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
from few_jobs import few_jobs

import hpcgym
from hpcgym.errors import RuleWarning
from hpcgym.machine import Failures
from hpcgym.scheduler.policies import FairShare
from hpcgym.scheduler.rules import Scheduler
from hpcgym.scheduler.unused import warn_of_unused

#: Users 1 and 2 of group 5, queues 1 and 2; the second follows a job that is not there.
JOBS = few_jobs(
    4, [0, 10], [50, 90], [1, 2], user_id=[1, 2], group_id=[5, 5], queue=[1, 2],
    job_number=[1, 2], preceding_job=[-1, 77],
)  # fmt: skip
NOBODY = JOBS.with_columns(user_id=[-1, -1], preceding_job=[-1, -1])
ACCOUNTS = {1: "physics", 3: "biology", "physics": "science", "biology": "science"}
SPAN = "is between the first submission and when the last job may end"


def texts_of(*slices: Any, features: Any = (), failures: Any = None, **rules: Any) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warn_of_unused(slices, [Scheduler(**rules)], features, failures)
    assert {warning.category for warning in caught} <= {RuleWarning}
    return [str(warning.message).partition(": ")[2] for warning in caught]


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        ({}, []),
        ({"quota": "queue=1:jobs=1;queue=3:jobs=1"}, ["no job falls under these quotas: queue=3:"]),
        ({"maintenance": "100/101;101/102"}, [f"no window {SPAN}: 101/102"][:0]),
        ({"maintenance": "101/102;200/300"}, [f"no window {SPAN}: 101/102, 200/300"]),
        ({"preemption": "queue:1>2>3"}, ["preemption queue:1>2;1>3;2>3: there is no job of: 3"]),
        ({"dependencies": "after"}, ["jobs that follow only missing jobs come when"]),
        ({"failures": Failures([0], [100], [101])}, []),
        ({"failures": Failures([0], [101], [102])}, [f"no failure {SPAN}: they begin at 101 s"]),
        ({"policy": "fairshare"}, []),
        ({"policy": "fairshare", "fair_share": FairShare(shares={2: 3, 9: 2})}, ["no job of: 9"]),
        (
            {"features": ["fairshare"], "fair_share": FairShare(shares={9: 2})},
            ["fair share: there is no job of: 9"],
        ),
        (
            {
                "policy": "fairshare",
                "fair_share": FairShare(shares={"science": 2, "biology": 3}, accounts=ACCOUNTS),
            },
            ["fair share: there is no job of: biology"],
        ),
        (
            {
                "policy": "fairshare",
                "fair_share": FairShare(shares={"group:5": 2, "group:6": 2}, accounts="group"),
            },
            ["fair share: there is no job of: group:6"],
        ),
    ],
)
def test_what_is_of_no_job(rules: dict[str, Any], expected: list[str]) -> None:
    texts = texts_of(JOBS, **rules)
    assert len(texts) == len(expected)
    for text, part in zip(texts, expected, strict=True):
        assert part in text


def test_what_is_of_no_job_at_all() -> None:
    assert texts_of(NOBODY, dependencies="after") == [
        "no job follows another by its preceding_job: dependencies='after'"
    ]
    assert texts_of(NOBODY, policy="fairshare") == ["fair share: no job tells its: user_id"]
    named = FairShare(accounts={901: "a", 902: "a"})
    texts = texts_of(JOBS, policy="fairshare", fair_share=named)
    assert texts == ["fair share: there is no job of: 901, 902"]


def test_what_one_slice_has_is_not_told() -> None:
    others = JOBS.with_columns(queue=[3, 4], submit_time=[500, 510])
    assert not texts_of(JOBS, others, quota="queue=1:jobs=1;queue=3:jobs=1", maintenance="500/501")
    assert not texts_of(JOBS.take(slice(0)), quota="queue=9:jobs=1")
    (text,) = texts_of(JOBS, others, preemption="queue:1>3>9")
    assert text.endswith("there is no job of: 9")


def test_simulate_tells_it_at_the_line_that_calls() -> None:
    with pytest.warns(RuleWarning, match="workload: no job falls under these quotas") as caught:
        hpcgym.simulate(JOBS, quota="queue=9:jobs=1")
    assert [warning.filename for warning in caught] == [__file__]
