"""No prediction knows what an on-line scheduler could not know.

Run times of jobs that have not ended, and all jobs not submitted yet, are altered so that the past
stays the same. All that was predicted up to then, and done by it, must stay the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from typing import Any

import numpy as np
import pytest
from drawing import given, settings
from drawing import strategies as st
from other_futures import altered
from predictors import Crooked
from strategies import workloads

from hpcgym import Scheduler, load_workload, simulate
from hpcgym.schedule.result import Result
from hpcgym.scheduler.estimates.by_name import FORMULAS
from hpcgym.simulation.run import learn_before
from hpcgym.workload.model import Workload

ESTIMATES = (
    "requested",
    "double-requested",
    "ave1",
    "ave5",
    *FORMULAS,
    "data-driven",
    "e-loss",
    "regression:over=absolute,under=squared,weight=small,eta=1,l2=0",
    "regression:over=exponential,under=exponential,over_scale=0.01,under_scale=0.01,eta=1,degree=1",
    "crooked",
)
#: Orders that look at all of the state that a pass finds.
OF_STATE = (
    "(free - free_1h) * area + queued * wait + fits * 99 - leaves * requested + hour + weekday",
    "last_run * user_waiting - mean_run * user_running - spread_run * known_runs",
)
CORRECTIONS = ("requested", "incremental", "recursive-doubling", "predicted-again")


@st.composite
def schedulers(draw: st.DrawFn) -> dict[str, Any]:
    """The rules of a scheduler that predicts."""
    names = {rule: draw(st.sampled_from(ESTIMATES)) for rule in ("estimate", "policy_estimate")}
    learned = names["estimate"] not in ESTIMATES[:2]
    backfill = draw(st.sampled_from(["none", "easy", "depth:3", "conservative"]))
    passes = ["per-timestamp"] if backfill == "depth:3" else ["per-timestamp", "per-event"]
    return {
        **{rule: Crooked() if name == "crooked" else name for rule, name in names.items()},
        "correction": draw(st.sampled_from(CORRECTIONS if learned else CORRECTIONS[:3])),
        "policy": draw(st.sampled_from(["fcfs", "saf", "lexp", "wfp3", "fairshare", *OF_STATE])),
        "backfill": backfill,
        "backfill_order": draw(st.sampled_from(["fcfs", "sjbf", "spf", "unicef", *OF_STATE])),
        "passes": draw(st.sampled_from(passes)),
    }


def known(result: Result, rules: dict[str, Any], n: int, now: int) -> list[Any]:
    """Return what there was to know at ``now`` [s], when ``n`` jobs had been submitted."""
    seen = [result.predicted_run_time[:n].tolist()]
    seen.append([start if start <= now else None for start in result.start[:n].tolist()])
    if result.policy_run_time is not None:  # the last ones of jobs that wait were made later
        seen.append(result.policy_run_time[result.start <= now].tolist())
    for rule in ("estimate", "policy_estimate"):
        if isinstance(rules[rule], Crooked):
            log = list(rules[rule].log)
            rules[rule].log.clear()
            asked = [x["job"] if what == "predict" else -1 for what, x, *_ in log]
            seen.append(log[: asked.index(n) + 1])
    return seen


def plain(value: Any) -> Any:
    """Return what has been learned as what ``==`` compares, without those of whom nothing was."""
    if isinstance(value, Crooked):
        return value.state
    if hasattr(value, "__dict__") and not isinstance(value, Mapping):
        value = vars(value)
    if isinstance(value, Mapping):
        rows = {key: plain(row) for key, row in value.items()}
        return {key: row for key, row in rows.items() if row != [0] * np.size(row)}
    if isinstance(value, tuple):
        return tuple(map(plain, value))
    return value.tolist() if isinstance(value, np.ndarray) else value


@settings(max_examples=500)
@given(workloads(max_jobs=25), schedulers(), st.integers(0, 60), st.integers(0, 2**16))
def test_another_future_changes_no_prediction(
    workload: Workload, rules: dict[str, Any], event: int, seed: int
) -> None:
    workload = workload.with_columns(job_number=np.arange(1, len(workload) + 1))
    result = simulate(workload, **rules)
    events = np.unique(np.concatenate([workload.submit_time, result.start, result.end]))
    now = int(events[event % len(events)])
    n = int((workload.submit_time <= now).sum())
    expected = known(result, rules, n, now)
    changed = altered(workload, result, now, seed)
    assert known(simulate(changed, **rules), rules, n, now) == expected
    learned = [learn_before(log, Scheduler(**rules), now + 1) for log in (workload, changed)]
    assert plain(learned[0]) == plain(learned[1])


def test_clairvoyance_is_seen() -> None:
    """The test above can fail."""
    columns = {"submit_time": [0], "requested_time": [100], "requested_processors": [1]}
    rules = {"estimate": "clairvoyant", "policy_estimate": "requested"}
    seen = []
    for run in (10, 20):
        workload = Workload.from_columns({**columns, "run_time": [run]}, processors=1)
        seen.append(known(simulate(workload, **rules), rules, 1, 0))
    assert seen[0] != seen[1]


# --- What is learned before a time ------------------------------------------------------------

CROWD = load_workload("lublin:jobs=300,processors=64,seed=1,load=2")


@pytest.mark.parametrize(
    ("backfill", "passes"),
    [
        ("depth:3", "per-timestamp"),
        *product(["easy", "conservative", "none"], ["per-timestamp", "per-event"]),
    ],
)
def test_what_has_ended_before_a_time_is_learned_and_no_more(backfill: str, passes: str) -> None:
    log: list[Any] = []
    rules = Scheduler("saf", backfill, estimate=Crooked(log), passes=passes)
    result = simulate(CROWD, rules)
    times = [0, *np.quantile(result.end, [0.1, 0.5]).astype(int).tolist(), int(result.end.max())]
    for time in (*times, times[-1] + 1, int(result.end[7]), int(result.end[7]) + 1):
        log.clear()
        learn_before(CROWD, rules, time)
        learned = [x["job"] for what, x, *_ in log if what == "learn"]
        assert sorted(learned) == CROWD.job_number[result.end < time].tolist()


@pytest.mark.parametrize("estimate", ["ave3", *FORMULAS, "e-loss"])
def test_what_has_ended_before_a_time_matters(estimate: str) -> None:
    """The property above can fail: the run time of the last job that has ended is seen."""
    rules = Scheduler("saf", estimate=estimate, policy_estimate=estimate)
    same = CROWD.with_columns(requested_time=CROWD.requested_time + 1)
    end = simulate(same, rules).end
    last = int(np.argsort(end)[50])
    run_time = CROWD.run_time.copy()
    run_time[last] += 1
    longer = same.with_columns(run_time=run_time)
    time = int(end[last]) + 2
    assert plain(learn_before(same, rules, time)) != plain(learn_before(longer, rules, time))


def test_nothing_is_learned_of_estimates_that_do_not_learn() -> None:
    for estimate in ("requested", "double-requested", "clairvoyant", CROWD.run_time):
        rules = Scheduler(estimate=estimate, policy_estimate=estimate)
        assert learn_before(CROWD, rules, 10**6) is None
