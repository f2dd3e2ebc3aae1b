"""What is said of weeks: which jobs are in no slice, and that the last one is short."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from hpcgym.errors import WorkloadWarning
from hpcgym.evaluation import evaluate
from hpcgym.workload import Workload

DAY = 86_400


def log(last_day: float) -> Workload:
    """Return a job a day for three weeks, the last week up to a day of it; two jobs cross."""
    days = np.arange(0.0, 14 + last_day, 1)
    run = np.full(len(days), 3600)
    run[[6, 13]] = 2 * DAY  # of the last days of weeks 0 and 1
    columns = {
        "submit_time": (days * DAY).astype(np.int64),
        "wait_time": np.zeros(len(days), np.int64),
        "run_time": run,
        "requested_time": run,
        "requested_processors": np.ones(len(days), np.int64),
    }
    return Workload.from_columns(columns, processors=4, name="three weeks")


def test_jobs_that_cross_the_end_of_a_week_are_counted() -> None:
    weeks = {"slices": "all", "episodes": "weeks", "budget": 0}
    assert evaluate([], log(7), **weeks).left_out == 1  # that of week 0 is in no week here
    assert evaluate([], log(7), **weeks).facts()["left_out"] == 1
    assert evaluate([], log(7), slices="all", episodes="whole", budget=0).left_out == 0
    assert evaluate([], log(7), **weeks, arrivals="continue", horizon="7d").left_out == 0


@pytest.mark.parametrize(("days", "said"), [(3, True), (6, False)])
def test_a_last_week_that_has_hardly_begun_is_said_once(days: int, said: bool) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        evaluate([], log(days), slices="all", episodes="weeks", budget=0)
    texts = [str(one.message) for one in caught if issubclass(one.category, WorkloadWarning)]
    short = "three weeks: the last week, 2, ends after 2 d; it counts as much as a whole"
    assert texts == ([f"{short} week"] if said else [])
