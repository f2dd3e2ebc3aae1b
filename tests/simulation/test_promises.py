"""Rule 16 of ``docs/semantics.md``: who is promised a start, and where promises are kept."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from drawing import event, given, settings
from drawing import strategies as st
from few_jobs import few_jobs
from strategies import schedulers, workloads

from hpcgym import simulate
from hpcgym.reference.orders import POLICIES, changes_with_time, looks_at_times
from hpcgym.validation.validate import ScheduleError, validate_schedule
from hpcgym.workload.model import Workload

LEARNED = ("ave2", "user-ratio", "typical-ratio")
STATIC = sorted(name for name in POLICIES if not changes_with_time(name))
ENOUGH = st.sampled_from(["requested", "clairvoyant", "double-requested"])  # nobody outlives these


def promised(result: Any) -> Any:
    """Which jobs have a promise."""
    return result.reserved_start != -1


def assert_kept(result: Any) -> None:
    late = promised(result) & (result.start > result.reserved_start)
    assert not late.any()


@settings(max_examples=300)
@given(st.data(), workloads(max_jobs=30))
def test_kept_promises(data: st.DataObject, workload: Workload) -> None:
    rules = data.draw(schedulers(workload))
    rules["policy_estimate"] = data.draw(st.sampled_from(["requested", "clairvoyant", *LEARNED]))
    rules["backfill"] = data.draw(st.sampled_from(["easy", "conservative"]))
    if rules["backfill"] == "easy":
        rules["policy"] = "fcfs"
    # where what is held back may grow as a job waits, no promise is kept
    learned = rules["policy_estimate"] in LEARNED
    if rules["backfill"] == "conservative" or (learned and rules["hold"]):
        rules["hold"] = None
    for rule in ("policy", "backfill_order"):
        if not isinstance(rules[rule], str) and not any(rules[rule]):
            rules[rule] = "fcfs"
    rules["estimate"] = data.draw(ENOUGH)
    if data.draw(st.booleans()):
        rules |= {"estimate": data.draw(st.sampled_from(LEARNED)), "correction": "kill"}
    result = simulate(workload, **rules)
    assert_kept(result)
    validate_schedule(result)
    # a single submission leads to no pass if the job does not fit: see below
    if rules["passes"] == "per-timestamp" and (result.start > workload.submit_time).any():
        event("jobs waited")
        assert promised(result).any()


def test_who_waits_without_a_pass_has_no_promise() -> None:
    """One processor: the second job comes while the first runs, and starts when that ends."""
    columns = {"submit_time": [0, 0], "run_time": [1, 1], "requested_time": [1, 1]}
    workload = Workload.from_columns({**columns, "requested_processors": [1, 1]}, processors=1)
    for passes, reserved in (("per-event", [-1, -1]), ("per-timestamp", [-1, 1])):
        result = simulate(workload, "easy", passes=passes)
        assert result.start.tolist() == [0, 1]
        assert result.reserved_start.tolist() == reserved


@settings(max_examples=200)
@given(workloads(max_jobs=30), st.sampled_from(STATIC), ENOUGH, st.sampled_from(["sjbf", "fcfs"]))
def test_nothing_else_breaks_promises_of_easy(
    workload: Workload, policy: str, estimate: str, order: str
) -> None:
    """Nobody is submitted later, and there is no threshold."""
    workload = workload.with_columns(submit_time=np.zeros_like(workload.submit_time))
    rules = {"backfill": "easy", "backfill_order": order, "estimate": estimate}
    result = simulate(workload, policy=policy, **rules)
    assert_kept(result)
    assert promised(result).any() == (result.start > 0).any()


@settings(max_examples=200)
@given(workloads(max_jobs=30), st.sampled_from(sorted(POLICIES)), st.sampled_from(LEARNED))
def test_no_promises_where_the_next_pass_may_have_another_order(
    workload: Workload, policy: str, learned: str
) -> None:
    for estimate in ("requested", learned):
        result = simulate(workload, policy=policy, backfill="easy", policy_estimate=estimate)
        changes = changes_with_time(policy) or (estimate == learned and looks_at_times(policy))
        waited = (result.start > workload.submit_time).any()
        assert promised(result).any() == (waited and not changes)


# --- Broken promises, by hand -----------------------------------------------------------------


def jobs(rows: list[tuple[int, int]], run_time: list[int] | None = None) -> Workload:
    """Jobs (submit, requested time) that all need both processors of a machine."""
    submit, requested = zip(*rows, strict=True)
    return few_jobs(
        2, submit, run_time or requested, [2] * len(rows), requested, user_id=[1] * len(rows)
    )


def outcome(result: Any) -> tuple[list[int], list[int]]:
    return result.reserved_start.tolist(), result.start.tolist()


def test_a_job_that_is_submitted_later_and_comes_first() -> None:
    result = simulate(jobs([(0, 10), (1, 20), (2, 5)]), policy="spf", backfill="easy")
    assert outcome(result) == ([-1, 10, 10], [0, 15, 10])
    validate_schedule(result)  # it is no mistake


def test_a_job_that_comes_first_because_it_has_waited() -> None:
    """Nobody is submitted after the third job was promised 10 s, which the second takes."""
    workload = jobs([(0, 10), (1, 30), (2, 5)])
    usual = simulate(workload, policy="spf", backfill="easy")
    assert outcome(usual) == ([-1, 10, 10], [0, 15, 10])
    result = simulate(workload, policy="spf", backfill="easy", threshold=5)
    assert outcome(result) == ([-1, 10, 10], [0, 10, 40])
    validate_schedule(result)


@pytest.mark.parametrize("threshold", [None, 5])
def test_conservative_promises_outlast_both(threshold: int | None) -> None:
    """The second job's reservation stands; the third is promised what comes after it."""
    workload = jobs([(0, 10), (1, 30), (2, 5)])
    for estimate in ("requested", "user-ratio"):
        rules = {"backfill": "conservative", "threshold": threshold, "policy_estimate": estimate}
        result = simulate(workload, policy="spf", **rules)
        assert outcome(result) == ([0, 10, 40], [0, 10, 40])


@pytest.mark.parametrize("rules", [{"backfill": "conservative"}, {"backfill": "easy"}])
def test_a_job_that_runs_longer_than_predicted(rules: dict[str, Any]) -> None:
    result = simulate(jobs([(0, 10), (1, 30)]), **rules, estimate=[5, 30])
    assert outcome(result)[0][1] == 5
    assert outcome(result)[1] == [0, 10]
    validate_schedule(result)


def test_what_has_to_be_kept_is_checked() -> None:
    for rules in ({"backfill": "conservative", "policy": "saf"}, {"backfill": "easy"}):
        result = simulate(jobs([(0, 10), (1, 20), (2, 5)]), **rules, threshold=5)
        promises = result.reserved_start.copy()
        promises[1] = 9
        broken = replace(result, reserved_start=promises)
        with pytest.raises(ScheduleError, match="job 1 starts at 10 s although it was promised 9"):
            validate_schedule(broken)
