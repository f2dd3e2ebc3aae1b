"""Where a log's clock begins changes nothing: the same jobs in seconds since 1970, say."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from drawing import given
from drawing import strategies as st
from few_jobs import few_jobs
from strategies import EVERY_INTERVAL, cases

import hpcgym
from hpcgym import load_workload, simulate
from hpcgym.baselines import find_scheduler
from hpcgym.envs import JobSelection, MixedPolicy
from hpcgym.reference.jobs import jobs_of
from hpcgym.reference.pool import simulate_pool
from hpcgym.scheduler.estimates import Regression
from hpcgym.scheduler.policies import FEATURES, POLICIES
from hpcgym.scheduler.policies.features import JobColumns
from hpcgym.scheduler.policies.index import rank
from hpcgym.sweep import BatchSimulator
from hpcgym.workload import Workload, clean
from hpcgym.workload.extracts import WEEK_S
from hpcgym.workload.fingerprint import fingerprint

BUSY = load_workload("lublin:jobs=300,processors=64,seed=1,load=2")
EPOCHS = (800_000_000, 1_700_000_000)
WEEKS = 1323 * WEEK_S  # whole weeks, to the year 1995
BY_SUBMISSION = ("f1", "f2", "f3", "f4")
LATE = {"wait": 1.0, "f1": -3.0, "f3": -1e-3, "expansion": 0.5}


def later(workload: Workload, shift: int) -> Workload:
    """The same jobs on another clock, as a log that is loaded."""
    columns = {**workload.columns, "submit_time": workload.submit_time + shift}
    return Workload.from_columns(
        columns, processors=workload.processors, name=workload.name, killed=workload.killed
    )


def check_same(workload: Workload, shift: int, **rules: Any) -> None:
    """Compare the schedules of the two."""
    expected = simulate(workload, **rules)
    found = simulate(later(workload, shift), **rules)
    assert (found.start - shift).tolist() == expected.start.tolist()
    assert found.run_time.tolist() == expected.run_time.tolist()
    assert found.backfilled.tolist() == expected.backfilled.tolist()
    assert found.predicted_run_time.tolist() == expected.predicted_run_time.tolist()
    kept = np.where(expected.reserved_start >= 0, expected.reserved_start + shift, -1)
    assert found.reserved_start.tolist() == kept.tolist()


# --- Schedules ------------------------------------------------------------------------------------


@pytest.mark.parametrize("shift", EPOCHS)
@pytest.mark.parametrize("policy", [*POLICIES, LATE, (0.5, -1e-3, 1, 2, -3, 1e-6)], ids=str)
def test_policies(policy: Any, shift: int) -> None:
    check_same(BUSY, shift, policy=policy, backfill="easy", backfill_order="spf")


@pytest.mark.parametrize("policy", BY_SUBMISSION)
def test_orders_of_backfilling(policy: str) -> None:
    for backfill in ("easy", "conservative"):
        orders = {"backfill_order": policy} if backfill == "easy" else {"policy": policy}
        check_same(BUSY, EPOCHS[1], backfill=backfill, passes="per-event", **orders)


@given(cases(), st.sampled_from([1, 12_345, *EPOCHS]))
def test_any_rules(case: tuple[Workload, dict[str, Any]], shift: int) -> None:
    if case[1]["backfill"].startswith("slurm"):  # passes are at multiples of so many seconds
        shift *= EVERY_INTERVAL
    check_same(case[0], shift, **case[1])


@pytest.mark.parametrize(
    "estimate", ["clairvoyant", "double-requested", "ave2", "user-ratio", "typical-ratio"]
)
def test_estimates(estimate: str) -> None:
    rules = {"backfill": "easy", "backfill_order": "sjbf", "correction": "incremental"}
    check_same(BUSY, EPOCHS[1], estimate=estimate, **rules)
    for policy in (*BY_SUBMISSION, LATE):  # where the formulas are compiled, if it learns
        check_same(BUSY, EPOCHS[1], policy=policy, policy_estimate=estimate, **rules)


def test_a_regression_looks_at_the_time_of_the_week() -> None:
    """So shifts by whole weeks alone change nothing."""
    names = ("requested", "last", "day_sin", "week_cos")
    eager = Regression(features=names, weight="long", eta=2, l2=0.0)
    rules = {"estimate": eager, "policy": "f3", "policy_estimate": "e-loss", "backfill": "easy"}
    check_same(BUSY, WEEKS, **rules)
    predicted = [
        simulate(log, **rules).predicted_run_time.tolist()
        for log in (BUSY, later(BUSY, 12_345))  # half a week only turns signs around
    ]
    assert predicted[0] != predicted[1]


def test_the_formulas_count_from_the_first_submission_by_hand() -> None:
    """By F1 job C (1,000 s after A) waits for D (2,000 s), which is as much smaller."""
    # log10(p) q + 870 log10(s): C 3 * 10 + 870 * 3 = 2640; D 1 * 1 + 870 * 3.301 = 2872.9
    # from a clock that begins in 1970: 30 + 870 * 9.2304 and 1 + 870 * 9.2304, so D first
    log = few_jobs(10, [0, 1000, 2000], [5000, 1000, 10], [10, 10, 1])
    for shift in (0, *EPOCHS):
        assert (simulate(later(log, shift), policy="f1").start - shift).tolist() == [0, 5000, 6000]


# --- Parts of a log -------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", BY_SUBMISSION)
def test_parts_count_from_the_beginning_of_the_whole(policy: str) -> None:
    """So does the oracle, whose jobs know when the first of the log came."""
    columns = {name: np.insert(v, 0, v[0]) for name, v in later(BUSY, 1000).columns.items()}
    columns["submit_time"][0] -= 50
    columns["run_time"][0] = 0
    log = Workload.from_columns(columns, processors=BUSY.processors)
    cleaned = clean(log)  # without the first job
    assert len(cleaned) == len(BUSY)
    late = cleaned.take(slice(100, 250))
    for part in (cleaned, late, late.take(range(3, 90, 2))):
        assert part.first_submit_s == 950 < part.submit_time[0]
        for estimate in ("requested", "ave2"):
            rules = {"policy": policy, "backfill": "easy", "policy_estimate": estimate}
            rules["backfill_order"] = "fcfs"
            slow = simulate_pool(jobs_of(part), 64, **rules)
            found = simulate(part, **rules)
            assert found.start.tolist() == [job.start for job in slow]
    other = replace(late, first_submit_s=int(late.submit_time[0]))
    scores = [rank(policy, JobColumns(part)).score for part in (late, other)]
    assert not np.array_equal(*scores)
    assert fingerprint([late]) != fingerprint([other])


@pytest.mark.parametrize("policy", [*BY_SUBMISSION, LATE], ids=str)
def test_what_is_continued_is_as_the_whole(policy: Any) -> None:
    for log in (BUSY, later(BUSY, EPOCHS[1])):
        whole = simulate(log, policy=policy, backfill="easy")
        begin = int(log.submit_time[150])
        part = hpcgym.continued(whole, begin)
        assert part.first_submit_s == log.first_submit_s < part.submit_time[0]
        found = simulate(part, policy=policy, backfill="easy")
        rows = np.searchsorted(log.job_number, part.job_number)
        assert found.start.tolist() == whole.start[rows].tolist()
        assert whole.as_workload().extract(begin).first_submit_s == log.first_submit_s


# --- Batches and environments ---------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("estimate", ["requested", "ave2"])
def test_batches(estimate: str) -> None:
    rules = find_scheduler("spf").but(policy_estimate=estimate)
    vectors = np.random.default_rng(0).uniform(-1, 1, (8, len(FEATURES)))
    vectors /= [1, 1e3, 1e3, 1e3, 1, 1e4, 1, 1e2, 1e3, 1e4, 1e4]
    values = []
    for shift in (0, *EPOCHS):
        log = later(BUSY, shift)
        slices = [log, log.take(slice(100, 300))]  # whose first job comes late in the log
        values.append(BatchSimulator(slices, tuple(FEATURES), rules).run(vectors).tolist())
        weights = dict(zip(FEATURES, vectors[0].tolist(), strict=True))
        expected = [simulate(part, rules, policy=weights).metrics["mean_bsld"] for part in slices]
        assert values[-1][0] == pytest.approx(expected, rel=1e-12)
    assert values[0] == values[1] == values[2]


def played(env: Any, act: Any) -> list[Any]:
    """All that an episode shows, without the clock."""
    observation, info = env.reset(seed=3)
    shown, ended = [], False
    while not ended:
        flat = {name: np.asarray(values).tolist() for name, values in observation.items()}
        shown.append((flat, info["window"].tolist()))
        observation, reward, ended, _, info = env.step(act(info))
        shown.append(reward)
    return [shown, env.unwrapped.result().wait.tolist()]


@pytest.mark.slow
def test_environments() -> None:
    weights = np.array([0.001, 0, 0.1, 0, 0.2, -1e-6, 0, -1, 0, -1e-4, 0])
    runs = []
    for shift in (0, WEEKS):  # whole weeks: agents see the time of the week
        log = later(BUSY, shift)
        mixed = MixedPolicy(log, jobs=100, policy_features=tuple(FEATURES), interval="pass")
        runs.append([played(mixed, lambda _: weights), played(JobSelection(log), lambda _: 0)])
    assert runs[0] == runs[1]
