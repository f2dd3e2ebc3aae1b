"""Schedulers with other rules behind a colon, wherever a scheduler is named."""

from __future__ import annotations

from typing import Any

import pytest
from mistakes import mistakes_of

import hpcgym
from hpcgym.baselines import SCHEDULERS, find_baseline, find_scheduler
from hpcgym.envs import QueueOrdering
from hpcgym.scheduler.backfilling import Hold
from hpcgym.study import evaluate

OF_TYPICAL = {"backfill": "easy", "backfill_order": "spf", "policy_estimate": "typical-ratio"}
JOBS = "lublin:jobs=200,processors=32,seed=1,load=1.5"


@pytest.mark.parametrize(
    ("name", "rules"),
    [
        ("saf:threshold=18000", {"threshold": 18000}),
        ("saf:threshold=0.5,hold=0.1", {"threshold": 0.5, "hold": 0.1}),
        ("saf:hold=0.1,from_s=600,by=both", {"hold": Hold(0.1, 600, by="both")}),
        ("saf:hold=0.1,from_s=600,threshold=7", {"hold": Hold(0.1, 600), "threshold": 7}),
        ("saf : backfill = until-shadow", {"backfill": "until-shadow"}),
        ("saf:from_s=600,hold=0.1", {"hold": Hold(0.1, 600)}),
        ("saf:backfill_order=sjbf,estimate=ave2", {"backfill_order": "sjbf", "estimate": "ave2"}),
        ("saf:allocation=random:7", {"allocation": "random:7"}),
        ("saf-typical-80h:threshold=none", {"threshold": None}),
        ("saf:policy=20 * wait - area", {"policy": "20 * wait - area"}),
        ("evolved:backfill_order=evolved", {"backfill_order": SCHEDULERS["evolved"].policy}),
        (
            "easy:backfill_order=saf-typical,policy_estimate=typical-ratio",
            {"backfill_order": "saf", "policy_estimate": "typical-ratio"},
        ),
    ],
)
def test_a_variant_is_the_scheduler_with_rules_changed(name: str, rules: dict[str, Any]) -> None:
    begin = name.partition(":")[0].strip()
    assert find_scheduler(name) == SCHEDULERS[begin].but(**rules)


def test_simulate_and_evaluate_take_variants() -> None:
    jobs = hpcgym.load_workload(JOBS)
    result = hpcgym.simulate(jobs, "saf:threshold=600")
    assert result.start.tolist() == hpcgym.simulate(jobs, "saf", threshold=600).start.tolist()
    name = SCHEDULERS["evolved"].policy
    by_name, other = (
        hpcgym.simulate(jobs, "evolved", backfill_order=order) for order in ("evolved", name)
    )
    assert by_name.start.tolist() == other.start.tolist()
    board = evaluate(["saf", "saf:threshold=600"], JOBS, slices="all", episodes="whole")
    means = board.by_slice.mean()
    assert means["saf:threshold=600"] == pytest.approx(result.metrics["mean_bsld"])
    assert means["saf"] != means["saf:threshold=600"]


@pytest.mark.parametrize(
    ("name", "rules"),
    [
        ("easy:backfill=none", {"backfill": "none", "backfill_order": "fcfs"}),
        ("saf:threshold=600", {"threshold": 600}),
        ("easy-sjbf:policy=wfp3", {"backfill": "easy", "backfill_order": "sjbf"}),
        ("aged:threshold=600", OF_TYPICAL | {"threshold": 600}),
        ("evolved:hold=0.1", OF_TYPICAL | {"threshold": 288_000, "hold": "0.1"}),
        (
            "evolved:backfill_order=evolved",
            OF_TYPICAL | {"threshold": 288_000, "backfill_order": SCHEDULERS["evolved"].policy},
        ),
    ],
)
def test_a_variant_drives_an_environment_that_has_its_rules(
    name: str, rules: dict[str, Any]
) -> None:
    jobs, baseline = hpcgym.load_workload(JOBS), find_baseline(name)
    assert (baseline.name, baseline.rules) == (name, rules)
    env = QueueOrdering(jobs, episodes="whole", **rules)
    observation, info = env.reset()
    baseline.begin(env)
    over = False
    while not over:
        observation, _, over, _, info = env.step(baseline.act(observation, info))
    given = env.scheduler_rules | {"policy": find_scheduler(name).policy}
    assert env.result().start.tolist() == hpcgym.simulate(jobs, **given).start.tolist()


@pytest.mark.slow
@pytest.mark.parametrize("backfill", ["depth:4", "4", "slurm"])
def test_several_reservations_are_evaluated_by_name(backfill: str) -> None:
    whole: dict[str, Any] = {"slices": "all", "episodes": "whole", "budget": 0}
    name = f"easy:backfill={backfill}"
    slowdowns = evaluate([name], JOBS, **whole).by_slice[name]
    board = evaluate(["saf"], JOBS, backfill=backfill, **whole)
    among = [row for row in board.by_slice if row.startswith("easy:backfill=")]
    assert len(among) == 1  # the order of submission is among the references then
    assert board.by_slice[among[0]].equals(slowdowns)


test_mistakes = mistakes_of(globals())
