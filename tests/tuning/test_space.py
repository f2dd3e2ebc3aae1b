"""The rules that tuning searches: each combination is a scheduler that can be simulated."""

from __future__ import annotations

import json

import numpy as np
import pytest

from hpcgym import Scheduler, load_workload, simulate
from hpcgym.errors import HpcgymError
from hpcgym.scheduler.policies.features import spread
from hpcgym.tuning.space import WEIGHTS, Arm, Space

JOBS = "lublin:jobs=60,processors=16,seed=3,load=1.2"
ALL = Space(
    backfilling=("none", "easy", "until-shadow", "depth:4", "conservative"),
    estimates=("requested", "ave2", "typical-ratio"),
    orders=("fcfs", "saf", WEIGHTS),
)


def test_every_arm_is_a_scheduler_that_is_simulated() -> None:
    jobs, rng = load_workload(JOBS), np.random.default_rng(0)
    units = spread([jobs], ALL.features)
    arms = ALL.arms()
    assert len(arms) == len(set(arms)) > 300
    for number, arm in enumerate(arms):
        for numbers in (*ALL.starts(arm), rng.normal(size=ALL.numbers(arm))):
            rules = ALL.rules(arm, numbers, units)
            assert json.loads(json.dumps(rules)) == rules
            scheduler = Scheduler(**rules)
        assert ("threshold" in rules, "hold" in rules) == (arm.threshold, arm.hold)
        if number % 5 == 0:
            assert simulate(jobs, scheduler).metrics["jobs"] == 60


def test_numbers_go_to_the_ends_of_what_rules_may_be() -> None:
    space, arm = (
        Space(features="area,wait"),
        Arm(WEIGHTS, *["requested"] * 2, "easy", "same", True, True),
    )
    units = np.array([1000.0, 10.0])
    least = space.rules(arm, np.array([-9.0, 0.0, -1.0, -1.0, -1.0, -1.0]), units)
    assert least["policy"] == least["backfill_order"] == {"area": -1.0}
    assert least["threshold"] == 3600
    assert least["hold"] == {"share": 0.01, "from_s": 600, "erode_s": 3600, "by": "requested"}
    most = space.rules(arm, np.array([0.5, 1.0, 2.0, 1.0, 1.0, 1.0]), units)
    assert most["policy"] == {"area": 0.005, "wait": 1.0}  # 0.5 / 1000 beside 1 / 10
    assert most["threshold"] == 1_999_980  # whole minutes
    assert most["hold"]["share"] == 0.4
    nothing = space.rules(arm, np.zeros(6), units)
    assert nothing["policy"] == {"wait": 1.0}


def test_parts_by_hand() -> None:
    easy = {"policy": "fcfs", "backfill": "easy", "backfill_order": "fcfs", "estimate": "requested",
            "policy_estimate": "requested"}  # fmt: skip
    parts_of = ALL.parts_of
    assert parts_of(easy) == 0
    assert parts_of({**easy, "policy": "saf", "backfill_order": "saf"}) == 1
    assert parts_of({**easy, "policy": {"area": -1.0, "wait": 2.0}, "backfill_order": "saf"}) == 3
    assert parts_of({**easy, "threshold": 60, "hold": {"share": 0.1}, "estimate": "ave2"}) == 4


def test_features_without_the_usual_starts_begin_with_each_alone() -> None:
    space = Space(features="processors,ratio", orders=[WEIGHTS], levers=())
    arm = space.arms()[0]
    assert [start.tolist() for start in space.starts(arm)] == [[1, 0], [-1, 0], [0, 1], [0, -1]]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"orders": "saf,swf"}, "unknown orders 'swf'"),
        ({"orders": ""}, "unknown orders ''"),
        ({"orders": []}, "orders: there must be at least one"),
        ({"backfilling": "easy,easy"}, "twice"),
        ({"levers": "thresold"}, "did you mean 'threshold'"),
        ({"estimates": "ave"}, "estimate"),
        ({"features": "area,size"}, "size"),
        ({"backfill_orders": "sjbf"}, "unknown backfill_orders 'sjbf'"),
    ],
)
def test_what_is_no_space(given: dict[str, object], said: str) -> None:
    with pytest.raises(HpcgymError, match=said):
        Space(**given)  # type: ignore[arg-type]
