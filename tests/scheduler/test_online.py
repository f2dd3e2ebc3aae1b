"""Predictions that are learned: against the slow ones, in whole seconds, by the protocol."""

from __future__ import annotations

import copy
import math
import pickle
from fractions import Fraction
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from drawing import event, given, settings
from drawing import strategies as st
from extract_strategies import usable
from few_jobs import few_jobs
from mistakes import mistakes_of
from pieces import same_in_pieces
from predictors import ELOSS, REGRESSIONS, CompiledRegression, Crooked, Told
from strategies import schedulers, workloads

from hpcgym import Scheduler, load_workload, simulate, validate_schedule
from hpcgym.reference.jobs import jobs_of
from hpcgym.reference.pool import PoolSimulation
from hpcgym.scheduler.estimates import JOB_FACTS, JOB_FEATURES, Regression, by_name
from hpcgym.workload.model import Workload

EASY = load_workload("lublin:jobs=250,processors=32,seed=2,load=1.3")
BUSY = load_workload("lublin:jobs=400,processors=64,seed=1,load=2")
FORMULAS = ("ave3", *by_name.FORMULAS)


def named(workload: Workload) -> Workload:
    """Return the jobs with numbers, from 1, by which predictors know them."""
    return workload.with_columns(job_number=np.arange(1, len(workload) + 1))


def assert_same(result: Any, slow: PoolSimulation) -> None:
    """Compare all that the oracle records of a schedule."""
    assert result.predicted_run_time.tolist() == [job.predicted for job in slow.jobs]
    if result.policy_run_time is not None:
        assert result.policy_run_time.tolist() == [job.policy_time for job in slow.jobs]
    assert result.start.tolist() == [job.start for job in slow.jobs]
    assert result.end.tolist() == [job.end for job in slow.jobs]
    assert result.backfilled.tolist() == [job.backfilled for job in slow.jobs]
    assert result.reserved_start.tolist() == [job.reserved_start for job in slow.jobs]


def oracle(workload: Workload, rules: dict[str, Any], before: Any = None) -> PoolSimulation:
    simulation = PoolSimulation(jobs_of(workload), workload.processors, **rules)
    if before is not None:
        simulation.go_on(before)
    simulation.run()
    return simulation


@pytest.mark.parametrize("estimate", [*FORMULAS, *map(str, REGRESSIONS)])
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
        both = {"estimate": estimate, "policy_estimate": estimate}
        result = same_in_pieces(7, partial(simulate, EASY, **rules, **both))
        assert len(set(result.predicted_run_time.tolist())) > 30
        assert_same(result, oracle(EASY, {**rules, "estimate": slow, "policy_estimate": slow}))


def crowd(n: int = 380) -> Workload:
    """A burst of jobs of a few users, behind one that is the last of nearly all orders."""
    rng = np.random.default_rng(0)
    run = np.ceil(rng.lognormal(4, 1.2, n)).astype(np.int64)
    share = np.array([1, 1.5, 3, 10])[rng.integers(0, 4, n)]
    users, submit = rng.integers(1, 6, n), np.sort(rng.integers(2, 60, n))
    wide = np.minimum(rng.geometric(0.3, n), 16)
    requested = np.ceil(run * share).astype(np.int64) + 5
    return named(
        few_jobs(
            16,
            [0, 1, *submit],
            [30, 50_000, *run],
            [16, 16, *wide],
            [40, 90_000, *requested],
            user_id=[1, 1, *users],
        )
    )


CROWD = crowd()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("policy", "order", "passes"),
    [("saf", "sjbf", "per-timestamp"), ("lexp", "spf", "per-event")],
)
@pytest.mark.parametrize("estimate", [*FORMULAS, "python", "e-loss"])
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


LEARNED = [
    *((name, name) for name in ("ave2", "user-ratio", "typical-ratio")),
    (Crooked(), Crooked()),
    *((rules, CompiledRegression(rules)) for rules in REGRESSIONS),
]
CORRECTIONS = ["requested", "incremental", "recursive-doubling", "predicted-again"]


@settings(max_examples=100)
@given(st.data(), workloads(max_jobs=30), st.lists(st.integers(0, 30), max_size=2))
def test_one_goes_on_where_the_other_ended(
    data: st.DataObject, workload: Workload, cuts: list[int]
) -> None:
    workload = named(workload)
    rules = usable(data.draw(schedulers(workload)))
    rules |= {"correction": data.draw(st.sampled_from(CORRECTIONS))}
    pairs = [data.draw(st.sampled_from(LEARNED)) for _ in range(2)]
    fast, slow = ({**rules, "estimate": estimate, "policy_estimate": other}
                  for estimate, other in zip(*pairs, strict=True))  # fmt: skip
    ends = sorted({0, len(workload), *(min(cut, len(workload)) for cut in cuts)})
    learned, before = None, None
    for start, stop in pairwise(ends):
        part = workload.take(slice(start, stop))
        result = simulate(part, **fast, learned=learned)
        before = oracle(part, slow, before)
        assert_same(result, before)
        learned = result.learned


def test_what_was_learned_is_not_changed_by_going_on() -> None:
    learned = simulate(EASY, estimate="e-loss", policy_estimate=Crooked()).learned
    assert learned is not None
    rules = Scheduler(estimate="e-loss", policy_estimate=Crooked())
    saved = copy.deepcopy(learned)
    first, other = (simulate(EASY, rules, learned=learned) for _ in range(2))
    assert first.predicted_run_time.tolist() == other.predicted_run_time.tolist()
    assert learned.model.tobytes() == saved.model.tobytes()
    assert pickle.dumps(dict(learned.memory)) == pickle.dumps(dict(saved.memory))


# --- Whole seconds ----------------------------------------------------------------------------


RULES = {
    "policy": "fcfs",
    "backfill": "easy",
    "backfill_order": "fcfs",
    "correction": "requested",
    "threshold": None,
    "passes": "per-timestamp",
}


def in_a_row(times: list[tuple[int, int]]) -> Workload:
    """Jobs of one user on a machine of 8 processors, each submitted when the last has ended."""
    return named(
        few_jobs(
            8,
            np.cumsum([0, *[run for run, _ in times]])[:-1],
            [run for run, _ in times],
            [8] * len(times),
            [requested for _, requested in times],
            user_id=[1] * len(times),
        )
    )


def predicted(workload: Workload, estimate: Any) -> list[int]:
    """What two simulators predict, the same."""
    result = simulate(workload, **RULES, estimate=estimate)
    assert_same(result, oracle(workload, RULES | {"estimate": estimate}))
    return result.predicted_run_time.tolist()


def test_a_mean_that_is_whole_on_paper_is_whole() -> None:
    """60 s x (2/3 + 1) / 2 = 50 s, which floating point has as 49.99999999999999."""
    workload = in_a_row([(2, 3), (2, 2), (60, 60)])
    assert predicted(workload, "user-ratio") == [3, 1, 50]
    assert 60 * ((2 / 3 + 1) / 2) < 50


def test_a_geometric_mean_that_is_whole_on_paper_is_whole() -> None:
    """One job's ratio is all that is known: 60 s x 19/60, floating point has 18.999999999999996."""
    workload = in_a_row([(19, 60), (60, 60)])
    assert predicted(workload, "typical-ratio") == [60, 19]
    assert 60 * math.exp(math.log(19 / 60)) < 19


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        (49.9999995, 50),
        (49.999998, 49),
        (-49.9999995, 50),
        (0.9999999, 1),
        (1e-9, 1),
        (59.9999995, 60),
        (60.0000005, 60),
        (math.nan, 60),
    ],
)
def test_predictors_and_arrays_are_rounded_by_the_same_rule(seconds: float, expected: int) -> None:
    workload = in_a_row([(1, 60)])
    result = simulate(workload, estimate=Told(lambda x: seconds), policy_estimate="user-ratio")
    assert result.predicted_run_time.tolist() == [expected]
    if seconds >= 0:
        assert predicted(workload, [seconds]) == [expected]
        validate_schedule(simulate(workload, estimate=[seconds]))


RATIOS = st.tuples(st.integers(1, 12), st.integers(1, 12)).map(sorted)


@settings(max_examples=300)
@given(st.lists(RATIOS, min_size=1, max_size=8), st.integers(1, 5), st.sampled_from([1, 60, 27720]))
def test_means_of_ratios_are_those_of_fractions(
    ratios: list[list[int]], least: int, request: int
) -> None:
    """Few small ratios have means that are whole now and then."""
    times = [(run * least, requested * least) for run, requested in ratios]
    exact = sum(Fraction(*ratio) for ratio in ratios) / len(ratios) * request
    predictions = predicted(in_a_row([*times, (1, request)]), "user-ratio")
    assert predictions[-1] == max(math.floor(exact + Fraction(1, 10**6)), 1)
    if exact.denominator == 1:
        event("whole")
        assert predictions[-1] == exact


@settings(max_examples=100)
@given(RATIOS, st.sampled_from([12, 60, 27720]), st.integers(1, 4))
def test_one_ratio_is_typical_whatever_it_is(ratio: list[int], request: int, jobs: int) -> None:
    """The geometric mean of equal ratios is that ratio, with any weights."""
    run, requested = ratio
    predictions = predicted(in_a_row([(run, requested)] * jobs + [(1, request)]), "typical-ratio")
    assert predictions[-1] == max(request * run // requested, 1)


# --- The protocol -----------------------------------------------------------------------------


@pytest.mark.parametrize("estimate", ["user-ratio", "typical-ratio"])
def test_an_end_renews_the_job_that_came_last(estimate: str) -> None:
    """By hand: 1 % of the request is run, so the last job, of the same user, is the shorter one."""
    jobs = few_jobs(
        4, [0, 1, 2], [100, 500, 100], [4, 4, 4], requested_time=[10_000, 1000, 2000],
        user_id=[0, 1, 0],
    )  # fmt: skip
    result = simulate(jobs, "easy", policy="spf", policy_estimate=estimate)
    assert result.start.tolist() == [0, 200, 100]


def test_the_same_twice_and_the_given_predictor_stays_as_it_was() -> None:
    for estimate in (
        "e-loss",
        "user-ratio",
        Told(lambda x: x["ave3"]),
        CompiledRegression(ELOSS),
    ):
        before = (
            pickle.dumps(estimate.__dict__) if isinstance(estimate, CompiledRegression) else b""
        )
        rules = Scheduler("saf", estimate=estimate, policy_estimate=estimate)
        first, other = (simulate(BUSY, rules) for _ in range(2))
        assert first.start.tolist() == other.start.tolist()
        assert first.predicted_run_time.tolist() == other.predicted_run_time.tolist()
        assert first.learned is not None
        assert other.learned is not None
        assert first.learned.model.tobytes() == other.learned.model.tobytes()
        assert pickle.dumps(first.learned.memory) == pickle.dumps(other.learned.memory)
        if before:
            assert pickle.dumps(estimate.__dict__) == before


def test_two_estimates_learn_apart() -> None:
    """The same predictor given twice is two."""
    predictor = Crooked()
    result = simulate(EASY, estimate=predictor, policy_estimate=predictor)
    assert result.learned is not None
    first, second = result.learned.predictors
    assert first is not second
    assert first is not predictor
    assert predictor.state == 0


def test_predictors_cannot_change_what_others_are_told() -> None:
    class Emptying(Told):
        def predict_one(self, x: dict[str, Any]) -> Any:
            return [x.pop("ave2"), x.clear()][0]

        def learn_one(self, x: dict[str, Any], y: float) -> None:
            assert x.pop("requested") >= y
            x.clear()

    names = {rule: Emptying(lambda x: 0) for rule in ("estimate", "policy_estimate")}
    usual = Told(lambda x: x["ave2"])
    rules = {"policy": "saf", "correction": "predicted-again"}
    expected = simulate(EASY, **rules, estimate=usual, policy_estimate=usual)
    assert simulate(EASY, **rules, **names).start.tolist() == expected.start.tolist()


# --- Predictions that are no usual numbers ----------------------------------------------------


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        (7.9, 7),
        (-7.9, 7),
        (0.0, 1),
        (-0.5, 1),
        (1e300, 100),
        (float("nan"), 100),
        (float("inf"), 100),
        (float("-inf"), 100),
        (np.float32(12.5), 12),
        (True, 1),
    ],
)
def test_predictions_are_cut(seconds: Any, expected: int) -> None:
    columns = {"submit_time": [0], "run_time": [50], "requested_time": [100]}
    workload = Workload.from_columns({**columns, "requested_processors": [1]}, processors=2)
    predictor = Told(lambda x: seconds)
    result = simulate(workload, estimate=predictor, policy_estimate=predictor)
    assert result.predicted_run_time.tolist() == [expected]
    assert result.policy_run_time is not None
    assert result.policy_run_time.tolist() == [expected]


# --- What policies look at --------------------------------------------------------------------


def test_features_are_those_of_the_table() -> None:
    log: list[Any] = []
    simulate(EASY, estimate=Crooked(log))
    assert set(log[0][1]) == {*JOB_FEATURES, *JOB_FACTS}


test_mistakes = mistakes_of(globals())
