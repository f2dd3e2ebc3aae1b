"""Estimates that are known before a simulation, and rules over a user's history, by hand."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from few_jobs import few_jobs
from mistakes import mistakes_of
from predictors import Told

import hpcgym
from hpcgym.scheduler.estimates import JOB_FEATURES, DataDriven, Regression
from hpcgym.scheduler.estimates.by_name import ESTIMATES, check_estimate, predicted_run_times
from hpcgym.scheduler.rules import Scheduler
from hpcgym.workload.model import Workload


@pytest.fixture
def workload() -> Workload:
    return jobs()


def jobs() -> Workload:
    return few_jobs(4, [0, 0, 5], [10, 90, 1], [1, 2, 1], [20, 60, 30], user_id=[1, 1, 2])


def predicted(workload: Workload, estimate: Any) -> list[int]:
    return hpcgym.simulate(workload, "easy", estimate=estimate).predicted_run_time.tolist()


def test_named_estimates(workload: Workload) -> None:
    assert predicted(workload, "requested") == [20, 60, 30]
    assert predicted(workload, "double-requested") == [40, 120, 60]
    assert predicted(workload, "clairvoyant") == [10, 60, 1]
    assert predicted(workload, "ave2") == [20, 60, 30]  # no user has two ended jobs
    assert predicted_run_times("ave2", workload.run_time, workload) is None


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ([5, 200, 7], [5, 200, 7]),
        ((0, 0.9, 1), [1, 1, 1]),
        ([2.9, 0.5, 60.0], [2, 1, 60]),
        (np.array([1, 127, 5], np.int8), [1, 127, 5]),
        (np.array([2**53, 3, 2**53 - 1], np.uint64), [2**53, 3, 2**53 - 1]),
    ],
)
def test_given_predictions(workload: Workload, given: Any, expected: list[int]) -> None:
    assert predicted(workload, given) == expected
    hpcgym.validate_schedule(hpcgym.simulate(workload, "easy", estimate=given))


def test_predictions_are_the_schedulers_own() -> None:
    given = np.array([1, 2, 3])
    scheduler = Scheduler(estimate=given)
    given[0] = 99
    kept = scheduler.estimate
    assert isinstance(kept, np.ndarray)
    assert kept.tolist() == [1, 2, 3]
    assert not kept.flags.writeable
    assert check_estimate(kept) is kept


def test_every_estimate_is_explained() -> None:
    for name, estimate in ESTIMATES.items():
        assert check_estimate(name) == name
        assert estimate.meaning


def job(name: Any = "run_1", **changes: Any) -> dict[str, Any]:
    """What a predictor is told of a job."""
    facts = {"user": 1, "queue": 2, "requested": 600.0, "request": (4, 1, 0, 0)}
    return {**facts, "name": name, **changes}


#: Jobs for each rule, the most alike to ``job()`` first: each fits a later rule than the one
#: before it, and no earlier.
HISTORY = [
    (job(), 101.0),  # 1: same name, queue, requested time and request
    (job("run_22"), 102.0),  # 2: a prefix in common
    (job("rest"), 108.0),  # 2: a shorter one
    (job(request=(4, 1, 1, 0)), 103.0),  # 3: with a GPU
    (job("run_22", request=(2, 2, 0, 0)), 104.0),  # 4: other nodes and cores of each, and a prefix
    (job("r", request=(2, 2, 0, 0)), 109.0),  # 4: a shorter one
    (job(requested=900.0), 105.0),  # 5: another requested time
    (job("run_22", requested=900.0), 106.0),  # 5: that, and a prefix in common
    (job("rum", queue=3), 107.0),  # 5: a shorter one
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
        ({"queue": 3, "name": "run_9"}, 50.0),  # one that begins alike
        ({"name": "other"}, 600.0),
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
    # of jobs with as long a prefix in common, too: this one ended last
    predictor.learn_one(job("run_2"), 5.0)
    assert predictor.predict_one(job("run_3")) == 5.0
    assert predictor.predict_one(job()) == 8.0


@pytest.mark.parametrize(
    ("name", "other", "alike"),
    [
        ("run_1", "run_12", True),
        ("run", "run7", True),
        ("run7", "run", True),
        ("run_1b", "run_2b", True),
        ("run_1", "rerun", True),
        ("7", "12", False),
        ("run_1", "my_run_1", False),
        (12, 12, True),
        (12, 13, False),  # numbers of the log name programs
        (1, 12, False),
        (-1, -1, True),  # unknown
    ],
)
def test_names_with_a_prefix_in_common(name: Any, other: Any, alike: bool) -> None:
    predictor = DataDriven().learn_one(job(name), 50.0)
    assert predictor.predict_one(job(other)) == (50.0 if alike else 600.0)


def test_rules_against_a_slow_search_of_all_past_jobs() -> None:
    """The six rules of Remediani 2017, section 3.1.2, read off a list of all that have ended."""
    rng = random.Random(5)
    words = ["a", "ab", "abc", "abd", "b", "ba", "a1", "a12", "b_1", "b_2"]
    predictor, past = DataDriven(), []
    for number in range(400):
        x = {
            "user": rng.randrange(2), "name": rng.choice(words), "queue": rng.randrange(2),
            "requested": rng.choice([100.0, 200.0]), "request": (rng.randrange(1, 3), 1),
        }  # fmt: skip
        mine = [(past_job, y) for past_job, y in past if past_job["user"] == x["user"]]
        expected = x["requested"]
        rules = [("queue", "requested", "request"), ("queue", "requested"), ()]
        ranked = []
        for place, (past_job, y) in enumerate(mine):
            same = [a == b for a, b in zip(past_job["name"], x["name"], strict=False)]
            common = [*same, False].index(False)
            for rule, keys in enumerate(rules):
                if all(past_job[key] == x[key] for key in keys):
                    if past_job["name"] == x["name"]:
                        ranked.append((-rule, 1, 0, place, y))
                    elif common:
                        ranked.append((-rule, 0, common, place, y))
        if ranked:
            expected = max(ranked)[-1]
        assert predictor.predict_one(x) == expected
        predictor.learn_one(x, float(number))
        past.append((x, float(number)))


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


# --- Regressions as texts ------------------------------------------------------------------------


def test_the_usual_values_are_those_of_the_published_campaign() -> None:
    usual = Regression()
    assert (usual.over_scale, usual.under_scale, usual.threshold) == (1.0, 1.0, 0.0)
    assert (usual.eta, usual.l2, usual.degree) == (5000.0, 4e9, 2)
    assert usual.features == tuple(JOB_FEATURES)


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"over": "absolute", "under": "exponential"}, "over=absolute,under=exponential,weight=1"),
        ({"weight": "wide"}, "over=squared,under=squared,weight=wide"),
        (
            {"over_scale": 0.25, "threshold": 60},
            "over=squared,under=squared,over_scale=0.25,threshold=60,weight=1",
        ),
        (
            {"under_scale": 1e-7, "eta": 2.5, "l2": 0, "degree": 1},
            "over=squared,under=squared,under_scale=1e-07,weight=1,eta=2.5,l2=0,degree=1",
        ),
        (
            {"features": ["requested", "ave2"], "l2": 1e30},
            "over=squared,under=squared,weight=1,l2=1e+30,features=requested+ave2",
        ),
        ({"features": ("week_sin",)}, "over=squared,under=squared,weight=1,features=week_sin"),
    ],
)
def test_a_text_says_all_of_a_regression(given: dict[str, Any], text: str) -> None:
    regression = Regression(**given)
    assert str(regression) == f"regression:{text}"
    assert Regression.parse(f"regression:{text}") == regression
    assert check_estimate(regression) == check_estimate(str(regression)) == str(regression)


test_mistakes = mistakes_of(globals(), Told)
