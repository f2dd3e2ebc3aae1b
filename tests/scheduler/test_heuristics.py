"""The rules over a user's history, on histories whose predictions are worked out by hand."""

from __future__ import annotations

from typing import Any

import pytest
from few_jobs import few_jobs

import hpcgym
from hpcgym.scheduler.estimates import DataDriven


def job(code: Any = "run_1", **changes: Any) -> dict[str, Any]:
    """What a predictor is told of a job."""
    facts = {"user": 1, "queue": 2, "requested": 600.0, "processors": 4.0}
    return {**facts, "code": code, **changes}


#: Jobs for each rule, the most alike to ``job()`` first: each fits a later rule than the one
#: before it, and no earlier.
HISTORY = [
    (job(), 101.0),  # 1: same name, queue, requested time and processors
    (job("run_22"), 102.0),  # 2: name that begins alike
    (job(processors=8.0), 103.0),  # 3: other processors
    (job("run_22", processors=8.0), 104.0),  # 4: both
    (job(requested=900.0), 105.0),  # 5: another requested time
    (job("run_22", requested=900.0), 106.0),  # 5: that, and a name that begins alike
    (job("other"), 600.0),  # 6: nothing alike: the requested time
]


@pytest.mark.parametrize("rule", range(len(HISTORY)))
def test_the_first_rule_that_fits_counts(rule: int) -> None:
    """Later ends do not matter where an earlier rule fits."""
    for order in (HISTORY[rule:], HISTORY[rule:][::-1]):
        predictor = DataDriven()
        for x, run_time in order:
            predictor.learn_one(x, run_time)
        assert predictor.predict_one(job()) == HISTORY[rule][1]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"queue": 3}, 50.0),  # rule 5: the same name
        ({"queue": 3, "code": "run_9"}, 50.0),  # one that begins alike
        ({"code": "other"}, 600.0),
        ({"user": 2}, 600.0),
        ({"user": 2, "requested": 30.0}, 30.0),
    ],
)
def test_what_is_not_alike(changes: dict[str, Any], expected: float) -> None:
    predictor = DataDriven().learn_one(job(), 50.0)
    assert predictor.predict_one(job(**changes)) == expected


def test_the_last_end_of_a_rule_counts() -> None:
    predictor = DataDriven()
    for run_time in (7.0, 9.0, 8.0):
        predictor.learn_one(job(), run_time)
    assert predictor.predict_one(job()) == 8.0
    # of jobs whose names begin alike, too: this one ended last
    predictor.learn_one(job("run_2"), 5.0)
    assert predictor.predict_one(job("run_3")) == 5.0
    assert predictor.predict_one(job()) == 8.0


@pytest.mark.parametrize(
    ("name", "other", "alike"),
    [
        ("run_1", "run_12", True),
        ("run", "run7", True),
        ("7", "12", True),  # texts of nothing but a number
        ("run_1", "run1", False),
        ("1run", "2run", False),
        ("run_1b", "run_2b", False),
        (12, 12, True),
        (12, 13, False),  # numbers of the log name programs
        (1, 12, False),
        (-1, -1, True),  # unknown
    ],
)
def test_names_begin_alike_up_to_a_number(name: Any, other: Any, alike: bool) -> None:
    predictor = DataDriven().learn_one(job(name), 50.0)
    assert predictor.predict_one(job(other)) == (50.0 if alike else 600.0)


def test_in_a_simulation_it_is_told_of_the_log() -> None:
    # one after the other; who asks, in which queue, for how long, on how many, and ran how long
    rows = [
        # user, executable, queue, requested, processors, run -> predicted
        (1, 5, 1, 90, 2, 11, 90),  # nothing known
        (1, 5, 1, 90, 2, 12, 11),  # rule 1
        (1, 5, 1, 90, 4, 13, 12),  # rule 3
        (1, 5, 1, 80, 2, 14, 13),  # rule 5
        (1, 5, 1, 90, 2, 15, 12),  # rule 1, not the last
        (1, 6, 1, 90, 2, 16, 90),  # another program
        (2, 5, 1, 90, 2, 17, 90),  # another user
        (1, 5, 2, 10, 2, 9, 10),  # rule 5, cut at the requested time
    ]
    user, executable, queue, requested, processors, run, expected = zip(*rows, strict=True)
    workload = few_jobs(
        4,
        [100 * k for k in range(len(rows))],
        run,
        processors,
        requested,
        user_id=user,
        executable=executable,
        queue=queue,
    )
    result = hpcgym.simulate(workload, "easy", estimate="data-driven")
    assert result.predicted_run_time.tolist() == list(expected)
