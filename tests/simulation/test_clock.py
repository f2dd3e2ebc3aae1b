"""Where clocks begin, what is promised, and policies that are functions."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from drawing import given
from drawing import strategies as st
from few_jobs import few_jobs
from mistakes import mistakes_of
from strategies import EVERY_INTERVAL, cases

import hpcgym
from hpcgym import load_workload, simulate
from hpcgym.reference.jobs import jobs_of
from hpcgym.reference.pool import simulate_pool
from hpcgym.scheduler.dispatchers import PassView
from hpcgym.scheduler.estimates import Regression
from hpcgym.scheduler.policies.features import JobColumns
from hpcgym.scheduler.policies.index import rank
from hpcgym.units import WEEK_S
from hpcgym.validation.validate import validate_schedule
from hpcgym.workload import Workload, clean
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
    result = simulate(later(workload, shift), **rules)
    assert (result.start - shift).tolist() == expected.start.tolist()
    assert result.run_time.tolist() == expected.run_time.tolist()
    assert result.backfilled.tolist() == expected.backfilled.tolist()
    assert result.predicted_run_time.tolist() == expected.predicted_run_time.tolist()
    kept = np.where(expected.reserved_start >= 0, expected.reserved_start + shift, -1)
    assert result.reserved_start.tolist() == kept.tolist()


# --- Schedules ------------------------------------------------------------------------------------


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
    check_same(BUSY, EPOCHS[1], policy="fairshare", fair_share="half_life_s=86400")
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
            fast = simulate(part, **rules)
            assert fast.start.tolist() == [job.start for job in slow]
    other = replace(late, first_submit_s=int(late.submit_time[0]))
    scores = [rank(policy, JobColumns(part)).score for part in (late, other)]
    assert not np.array_equal(*scores)
    assert fingerprint([late]) != fingerprint([other])


# --- Broken promises, by hand -----------------------------------------------------------------


def jobs(rows: list[tuple[int, int]], run_time: list[int] | None = None) -> Workload:
    """Jobs (submit, requested time) that all need both processors of a machine."""
    submit, requested = zip(*rows, strict=True)
    return few_jobs(
        2, submit, run_time or requested, [2] * len(rows), requested, user_id=[1] * len(rows)
    )


def outcome(result: Any) -> tuple[list[int], list[int]]:
    return result.reserved_start.tolist(), result.start.tolist()


@pytest.mark.parametrize(
    ("rows", "rules", "expected"),
    [
        # submitted later, and first
        ([(0, 10), (1, 20), (2, 5)], {"policy": "spf"}, ([-1, 10, 10], [0, 15, 10])),
        # first because it has waited; nobody is submitted after the third was promised 10 s
        ([(0, 10), (1, 30), (2, 5)], {"policy": "spf"}, ([-1, 10, 10], [0, 15, 10])),
        (
            [(0, 10), (1, 30), (2, 5)],
            {"policy": "spf", "threshold": 5},
            ([-1, 10, 10], [0, 10, 40]),
        ),
        # the first runs longer than predicted
        ([(0, 10), (1, 30)], {"estimate": [5, 30]}, ([-1, 5], [0, 10])),
        ([(0, 10), (1, 30)], {"estimate": [5, 30], "backfill": "conservative"}, ([0, 5], [0, 10])),
    ],
)
def test_broken_promises(rows: Any, rules: dict[str, Any], expected: Any) -> None:
    result = simulate(jobs(rows), **{"backfill": "easy", **rules})
    came_out = outcome(result)
    assert (came_out[0][1:], came_out[1]) == (expected[0][1:], expected[1])
    validate_schedule(result)  # it is no mistake


def promised_too_early(**rules: str) -> Any:
    """Prove a schedule in which a job starts after the time that it was promised."""
    result = simulate(jobs([(0, 10), (1, 20), (2, 5)]), **rules, threshold=5)
    promises = result.reserved_start.copy()
    promises[1] = 9
    return validate_schedule(replace(result, reserved_start=promises))


JOBS = hpcgym.load_workload("lublin:jobs=300,processors=64,seed=3,load=1.5")


def least_area(view: PassView) -> Any:
    return -(view.requested * view.processors).astype(float)


def assert_same(first: hpcgym.Result, other: hpcgym.Result) -> None:
    assert first.start.tolist() == other.start.tolist()
    assert first.backfilled.tolist() == other.backfilled.tolist()


def test_the_page_has_the_expression_of_its_function() -> None:
    page = (Path(__file__).parents[2] / "docs" / "semantics.md").read_text()
    before, _, after = page.partition("def patient(view):")
    code = before.rpartition("```python")[2] + "def patient(view):" + after.partition("```")[0]
    there: dict[str, Any] = {}
    exec(compile(code, "semantics.md", "exec"), there)
    assert_same(there["same"], there["result"])
    fcfs = hpcgym.simulate(there["workload"], backfill_order="spf")
    assert fcfs.start.tolist() != there["same"].start.tolist()


def test_slurm_asks_between_events_too() -> None:
    """By hand: from 35 s on job 2 comes first; at 40 s, when nothing happens, it starts."""
    jobs = few_jobs(3, [0, 0, 0], [100, 50, 200], [2, 3, 1])
    asked = []

    def late(view: PassView) -> Any:
        asked.append(view.time)
        return (view.job == 2) & (view.time >= 35)

    result = hpcgym.simulate(jobs, policy=late, backfill="slurm:bf_interval=10")
    assert result.start.tolist() == [0, 240, 40]
    assert asked[:5] == [0, 10, 20, 30, 40]
    hpcgym.validate_schedule(result)


def test_it_is_asked_where_a_job_fits_and_told_when_it_begins() -> None:
    class Notes:
        begun = 0
        times: list[int]

        def begin(self) -> None:
            self.begun, self.times = self.begun + 1, []

        def __call__(self, view: PassView) -> Any:
            assert view.fits().any()
            assert view.total.tolist() == [64]
            assert view.free[0, 0] <= 64
            self.times.append(view.time)
            return np.zeros(len(view.job))

    notes = Notes()
    first = hpcgym.simulate(JOBS, policy=notes, backfill_order="fcfs")
    assert_same(first, hpcgym.simulate(JOBS, policy=notes, backfill_order="fcfs"))
    assert notes.begun == 2
    assert notes.times == sorted(set(notes.times))
    assert_same(first, hpcgym.simulate(JOBS, "easy"))


test_mistakes = mistakes_of(globals())
