"""Predictions that are learned, against the slow ones."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest
from drawing import given, settings
from drawing import strategies as st
from online import (
    BUSY,
    EASY,
    ELOSS,
    FORMULAS,
    REGRESSIONS,
    assert_same,
    assert_same_log,
    cases,
    named,
    oracle,
)
from predictors import CompiledRegression, Crooked, PlainRegression

from hpcgym import HpcgymError, Scheduler, simulate
from hpcgym.scheduler.estimates import Regression
from hpcgym.scheduler.estimates.by_name import KNOWN
from hpcgym.workload.model import Workload


@settings(max_examples=500)
@given(cases())
def test_random_cases(case: tuple[Workload, dict[str, Any], dict[str, Any]]) -> None:
    workload, fast, slow = case
    result = simulate(workload, **fast)
    assert_same(result, oracle(workload, slow))
    for rule in ("estimate", "policy_estimate"):
        if isinstance(fast[rule], Crooked):
            assert_same_log(fast[rule].log, slow[rule].log)


@pytest.mark.parametrize("estimate", [*FORMULAS[1:], *map(str, REGRESSIONS)])
def test_each_estimate_for_hundreds_of_jobs(estimate: str) -> None:
    slow: Any = estimate
    if estimate.startswith("regression"):
        slow = CompiledRegression(Regression.parse(estimate))
    common = {"policy": "saf", "backfill": "easy", "backfill_order": "sjbf", "threshold": None}
    for more in (
        {"correction": "predicted-again", "passes": "per-timestamp"},
        {"correction": "incremental", "passes": "per-event", "backfill": "conservative"},
    ):
        rules = {**common, **more}
        result = simulate(EASY, **rules, estimate=estimate, policy_estimate=estimate)
        assert len(set(result.predicted_run_time.tolist())) > 30
        assert_same(result, oracle(EASY, {**rules, "estimate": slow, "policy_estimate": slow}))


def crowd(n: int = 380) -> Workload:
    """A burst of jobs of a few users, behind one that is the last of nearly all orders."""
    rng = np.random.default_rng(0)
    run = np.ceil(rng.lognormal(4, 1.2, n)).astype(np.int64)
    share = np.array([1, 1.5, 3, 10])[rng.integers(0, 4, n)]
    columns = {
        "submit_time": np.sort(rng.integers(2, 60, n)),
        "run_time": run,
        "requested_time": np.ceil(run * share).astype(np.int64) + 5,
        "requested_processors": np.minimum(rng.geometric(0.3, n), 16),
        "user_id": rng.integers(1, 6, n),
    }
    first = {
        "submit_time": [0, 1],
        "run_time": [30, 50_000],
        "requested_time": [40, 90_000],
        "requested_processors": [16, 16],
        "user_id": [1, 1],
    }
    joined = {name: np.concatenate([first[name], columns[name]]) for name in columns}
    return named(Workload.from_columns(joined, processors=16))


CROWD = crowd()


@pytest.mark.slow
@pytest.mark.parametrize("passes", ["per-timestamp", "per-event"])
@pytest.mark.parametrize(("policy", "order"), [("saf", "sjbf"), ("lexp", "spf"), ("wfp3", "saf")])
@pytest.mark.parametrize("estimate", [*FORMULAS[1:], "python", "e-loss"])
def test_hundreds_of_jobs_wait_while_predictions_are_renewed(
    estimate: str, policy: str, order: str, passes: str
) -> None:
    """The lists of the queue have several blocks, and the job that waits longest does not start."""
    fast: Any = {"python": Crooked()}.get(estimate, estimate)
    slow: Any = {"python": Crooked(), "e-loss": CompiledRegression(ELOSS)}.get(estimate, estimate)
    rules = {"policy": policy, "backfill": "easy", "backfill_order": order, "threshold": None}
    rules |= {"estimate": "requested", "correction": "requested", "passes": passes}
    result = simulate(CROWD, **rules, policy_estimate=fast)
    expected = oracle(CROWD, {**rules, "policy_estimate": slow})
    assert_same(result, expected)
    at_most = max(int((result.start > time).sum()) for time in (59, 60, 61))
    assert at_most > 300
    if policy == "saf":
        assert result.start[1] > np.quantile(result.start, 0.9)
    # nobody had so many ended jobs while jobs were submitted
    assert max(job.knows for job in expected.jobs) > 30


# --- Going on with what has been learned ------------------------------------------------------


@settings(max_examples=100)
@given(cases(), st.integers(0, 20), st.integers(0, 20))
def test_one_goes_on_where_the_other_ended(
    case: tuple[Workload, dict[str, Any], dict[str, Any]], first: int, second: int
) -> None:
    workload, fast, slow = case
    for rules in (fast, slow):
        for rule in ("estimate", "policy_estimate"):
            if isinstance(rules[rule], list) or rules[rule] in KNOWN:
                rules[rule] = "user-ratio" if rule == "estimate" else "ave2"
    cuts = sorted({0, min(first, len(workload)), min(first + second, len(workload))})
    learned, before = None, None
    for start, stop in zip(cuts, [*cuts[1:], len(workload)], strict=True):
        part = workload.take(slice(start, stop))
        if not len(part):
            continue
        result = simulate(part, **fast, learned=learned)
        before = oracle(part, slow, before)
        assert_same(result, before)
        learned = result.learned


def test_another_estimates_learning_is_refused() -> None:
    learned = simulate(EASY, estimate="e-loss").learned
    message = "learned: it was learned for the estimates regression:.* and requested, not for .*"
    for rules in ({"estimate": "user-ratio"}, {"policy_estimate": "e-loss"}):
        with pytest.raises(HpcgymError, match=message):
            simulate(EASY, **rules, learned=learned)
    with pytest.raises(HpcgymError, match="learned: no estimate of this scheduler learns"):
        simulate(EASY, learned=learned)


def test_what_was_learned_is_not_changed_by_going_on() -> None:
    learned = simulate(EASY, estimate="e-loss", policy_estimate=Crooked()).learned
    assert learned is not None
    rules = Scheduler(estimate="e-loss", policy_estimate=Crooked())
    saved = copy.deepcopy(learned)
    one, other = (simulate(EASY, rules, learned=learned) for _ in range(2))
    assert one.predicted_run_time.tolist() == other.predicted_run_time.tolist()
    assert learned.model.tobytes() == saved.model.tobytes()
    assert pickle.dumps(learned.memory) == pickle.dumps(saved.memory)


# --- Compiled and in Python -------------------------------------------------------------------


@pytest.mark.parametrize("weight", ["1", "long", "wide", "small", "large"])
def test_the_compiled_regression_is_that_of_plain_numpy(weight: str) -> None:
    for rules in (
        Regression("squared", "absolute", weight=weight),
        Regression("absolute", "squared", 3, 0.5, weight=weight, eta=50, l2=10, threshold=60),
    ):
        kept: list[float] = []

        class Kept(PlainRegression):
            def predict_one(self, x: dict[str, Any], kept: list[float] = kept) -> float:
                kept.append(super().predict_one(x))
                return kept[-1]

        fast = simulate(BUSY, "easy++", estimate=rules)
        slow = simulate(BUSY, "easy++", estimate=Kept(rules))
        assert fast.start.tolist() == slow.start.tolist()
        assert fast.predicted_run_time.tolist() == slow.predicted_run_time.tolist()
        assert len(set(kept)) > 300
        # the compiled sums are another order of the same: the model, not only whole seconds
        assert fast.learned is not None
        assert slow.learned is not None
        model = slow.learned.predictors[0]
        assert isinstance(model, PlainRegression)
        np.testing.assert_allclose(fast.learned.model[0, 0], model.w, rtol=1e-6)
        np.testing.assert_allclose(fast.learned.model_sums[0, 0], model.norm, rtol=1e-6)
