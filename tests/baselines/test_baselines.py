"""The named schedulers are those of the literature."""

from __future__ import annotations

import pytest
from mistakes import mistakes_of

import hpcgym
from hpcgym.baselines import SCHEDULERS, find_scheduler
from hpcgym.scheduler.policies import POLICIES
from hpcgym.scheduler.rules import Scheduler

EASY = {"policy": "fcfs", "backfill": "easy"}
PREDICTED = {**EASY, "backfill_order": "sjbf", "correction": "incremental"}
FAMILY = {
    "fcfs": {"policy": "fcfs", "backfill": "none"},
    "easy": {**EASY, "backfill_order": "fcfs"},
    "easy-sjbf": {**EASY, "backfill_order": "sjbf"},
    "easy++": {**PREDICTED, "estimate": "ave2"},
    "easy-e-loss": {**PREDICTED, "estimate": "e-loss"},
    "conservative": {"policy": "fcfs", "backfill": "conservative"},
}
#: Policies that look at predictions.
LEARNED = ("saf-typical", "saf-typical-80h", "saf-typical-20h-hold", "aged", "aged-safe", "evolved")
LEARNED += ("aged-hold", "evolved-hold")


def test_the_easy_family() -> None:
    for name, rules in FAMILY.items():
        assert SCHEDULERS[name] == Scheduler(**rules)
    typical = Scheduler("saf", backfill_order="spf", policy_estimate="typical-ratio")
    hold = {"share": 0.1, "by": "both"}
    assert [SCHEDULERS[name] for name in LEARNED[:3]] == [
        typical,
        typical.but(threshold=80 * 3600),
        typical.but(threshold=20 * 3600, hold=hold),
    ]


def test_orders_that_age_are_their_formulas() -> None:
    aged = "4*log(wait+72000)-log(max(requested,1))-0.2*log(processors)"
    safe = (
        "5*log(wait+50400)-0.6*log(max(requested,1))-0.4*log(max(time_limit,1))-0.1*log(processors)"
    )
    typical = find_scheduler("saf-typical")
    assert find_scheduler("aged") == typical.but(policy=aged)
    assert find_scheduler("aged-safe") == typical.but(policy=safe, hold="share=0.02,by=both")
    for name in ("aged", "evolved"):
        held = find_scheduler(name).but(hold="share=0.015,by=both")
        assert find_scheduler(f"{name}-hold") == held


def test_every_other_policy_is_a_scheduler_that_backfills_by_requested_time() -> None:
    assert set(SCHEDULERS) == set(FAMILY) | set(LEARNED) | set(POLICIES)
    for name in set(POLICIES) - {"fcfs"}:
        order = name if POLICIES[name].looks_at_usage else "spf"
        assert find_scheduler(name) == Scheduler(policy=name, backfill_order=order)


@pytest.mark.slow
def test_every_scheduler_makes_a_valid_schedule_of_its_own() -> None:
    workload = hpcgym.load_workload("lublin:jobs=1500,processors=64,seed=3,load=2")
    workload = workload.with_columns(
        power_w=100.0 + workload.user_id
    )  # or else by energy is by time
    names_of: dict[bytes, list[str]] = {}
    for name, scheduler in SCHEDULERS.items():
        result = hpcgym.simulate(workload, name)
        hpcgym.validate_schedule(result)
        assert result.scheduler is scheduler
        names_of.setdefault(result.start.tobytes(), []).append(name)
    # two names of one policy
    assert [names for names in names_of.values() if len(names) > 1] == [["spf", "sjf"]]


test_mistakes = mistakes_of(globals())
