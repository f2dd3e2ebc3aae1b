"""Estimates that are known before the simulation, and those that are refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from few_jobs import few_jobs
from predictors import Told

import hpcgym
from hpcgym.scheduler.estimates import Regression
from hpcgym.scheduler.estimates.by_name import ESTIMATES, check_estimate, predicted_run_times
from hpcgym.scheduler.rules import Scheduler
from hpcgym.workload.model import Workload


@pytest.fixture
def workload() -> Workload:
    return few_jobs(4, [0, 0, 5], [10, 90, 1], [1, 2, 1], [20, 60, 30], user_id=[1, 1, 2])


def predicted(workload: Workload, estimate: Any) -> list[int]:
    return hpcgym.simulate(workload, "easy", estimate=estimate).predicted_run_time.tolist()


def test_named_estimates(workload: Workload) -> None:
    assert predicted(workload, "requested") == [20, 60, 30]
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
        (np.array([2**63, 3, 2**53 - 1], np.uint64), [2**53, 3, 2**53 - 1]),
        (np.array([2**62, 3, 0]), [2**53, 3, 1]),
    ],
)
def test_given_predictions(workload: Workload, given: Any, expected: list[int]) -> None:
    assert predicted(workload, given) == expected
    hpcgym.validate_schedule(hpcgym.simulate(workload, "easy", estimate=given))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("guess", "unknown estimate 'guess'; known are requested, double-requested, clairv"),
        ("Requested", "did you mean 'requested'"),
        ([1, float("nan"), 3], "estimate must hold finite numbers"),
        ([1, float("inf"), 3], "estimate must hold finite numbers"),
        (["1", "2", "3"], "estimate must hold finite numbers"),
        ([True, False, True], "estimate must hold finite numbers"),
        ([1j, 2, 3], "estimate must hold finite numbers"),
        ([[1, 2, 3]], "estimate must be a name, an array of one number"),
        ([[1], [2, 3]], "estimate must be a name, an array of one number"),
        (None, "estimate must be a name, an array of one number"),
        (7, "estimate must be a name, an array of one number"),
        ([1, 2], "estimate has 2 predictions, the workload 3 jobs"),
        ([], "estimate has 0 predictions, the workload 3 jobs"),
    ],
)
def test_wrong_estimates(workload: Workload, given: Any, message: str) -> None:
    with pytest.raises(hpcgym.HpcgymError) as caught:
        hpcgym.simulate(workload, "easy", estimate=given)
    assert message in str(caught.value)


def test_the_argument_that_is_wrong_is_named(workload: Workload) -> None:
    with pytest.raises(hpcgym.HpcgymError, match=r"^policy_estimate has 2 predictions, the worklo"):
        hpcgym.simulate(workload, "saf", policy_estimate=np.ones(2))
    with pytest.raises(hpcgym.HpcgymError, match=r"^policy_estimate must hold finite numbers"):
        Scheduler(policy_estimate=[np.nan])


@pytest.mark.parametrize("given", [Told, Regression])
@pytest.mark.parametrize("argument", ["estimate", "policy_estimate"])
def test_a_class_is_no_predictor(argument: str, given: type) -> None:
    name = given.__name__
    message = rf"^{argument} must be a predictor, not the class {name}; give {name}\(\)$"
    with pytest.raises(hpcgym.HpcgymError, match=message):
        Scheduler(**{argument: given})


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


def test_negative_predictions_are_refused() -> None:
    with pytest.raises(hpcgym.HpcgymError, match="negative"):
        check_estimate([5, -1, 7])
