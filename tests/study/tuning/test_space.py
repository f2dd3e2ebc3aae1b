"""The rules that tuning searches: each combination is a scheduler that can be simulated."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from mistakes import mistakes_of

from hpcgym import Scheduler, generate_speedups, load_workload, simulate
from hpcgym.baselines.schedulers import COSCHEDULERS
from hpcgym.study.tuning.space import WEIGHTS, Arm, SharedSpace, Space

ALL = Space(
    backfilling=("none", "easy", "until-shadow", "depth:4", "conservative"),
    estimates=("requested", "ave2", "typical-ratio"),
    orders=("fcfs", "saf", WEIGHTS),
)
SHARED = SharedSpace(
    orders=("fcfs", "sjf", "filler", "popularity-filler", WEIGHTS),
    backfilling=("none", "easy", "fill"),
    backfill_orders=("fcfs", "same"),
    allocations=("compact", "spread", "half-socket", "part:3"),
)
PAIRS = generate_speedups(codes=16, mean=1.1, spread=0.15, seed=0)
CODES = "codes:speedups=generated:codes=16,processes=256,jobs=40,arrivals=poisson,interval=2000"


@pytest.mark.parametrize(
    ("space", "least", "jobs", "machine"),
    [
        (ALL, 300, "lublin:jobs=60,processors=16,seed=3,load=1.2", {}),
        (SHARED, 90, CODES, {"cluster": "20x2x24", "speedups": PAIRS}),
    ],
)
def test_every_arm_is_a_scheduler_that_is_simulated(
    space: Any, least: int, jobs: str, machine: dict[str, Any]
) -> None:
    log, rng = load_workload(jobs), np.random.default_rng(0)
    units, arms = space.units([log]), space.arms()
    assert len(arms) == len(set(arms)) > least
    alone = [arm for arm in arms if arm.allocation in ("compact", "spread")]
    assert {(arm.partners, arm.pairs_above) for arm in alone} <= {("fill", False)}
    for number, arm in enumerate(arms):
        for numbers in (*space.starts(arm), rng.normal(size=space.numbers(arm))):
            assert len(numbers) == len(space.bounds(arm)) != 1  # which not all of cmaes can
            rules = space.rules(arm, numbers, units)
            assert json.loads(json.dumps(rules)) == rules
            scheduler = Scheduler(**rules)
        for lever in ("threshold", "hold", "pairs_above"):
            assert (lever in rules) == getattr(arm, lever, False)
        if number % 5 == 0:
            assert simulate(log, scheduler, **machine).metrics["jobs"] == len(log)


def test_each_coscheduler_is_an_arm() -> None:
    """Those of the same orders: all but the longest and the largest first."""
    space = SharedSpace(allocations=["half-socket", "spread"])
    started = []
    for arm in space.arms():
        for numbers in space.starts(arm):
            started.append(Scheduler(**space.rules(arm, numbers, space.units([]))))
    missing = {name for name, scheduler in COSCHEDULERS.items() if scheduler not in started}
    assert missing == {"ljf-co", "largest-co"}


def test_rules_of_numbers_by_hand() -> None:
    requested = "requested", "requested"
    rest = "easy", "fcfs", "best", False, False, True
    arm = Arm("half-socket", WEIGHTS, *requested, *rest)
    units = np.ones(3)
    rules = SHARED.rules(arm, np.array([0.5, -2.0, 0.25, 1.0]), units)
    assert rules["policy"] == {"fit": 0.5, "popularity": -1.0, "shortness": 0.25}
    assert rules["pairs_above"] == 1.4
    assert SHARED.parts_of(rules) == 3 + 1 + 1 + 1  # weights, nodes, partners, bound
    nothing = SHARED.rules(arm, np.array([0.0, 0.0, 0.0, -1.0]), units)
    assert (nothing["policy"], nothing["pairs_above"]) == ({"fit": 1.0}, 0.8)
    assert [numbers[-1] for numbers in SHARED.starts(arm)][:4:3] == pytest.approx([1 / 3, 0.5])
    easy = Arm("compact", "fcfs", *requested, "easy", "same", "fill", False, False, False)
    assert SHARED.parts_of(SHARED.rules(easy, np.zeros(0), units)) == 0


def test_numbers_go_to_the_ends_of_what_rules_may_be() -> None:
    space = Space(features="area,wait")
    arm = Arm("", WEIGHTS, *["requested"] * 2, "easy", "same", "", True, True, False)
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
    middle = space.rules(arm, np.array([0.0, 0.0, *[0.5] * 4]), units)
    assert middle["threshold"] == 84_840  # times by the same factor for each step
    assert middle["hold"] | {"by": ""} == {
        "share": 0.205, "from_s": 4648, "erode_s": 20_365, "by": ""
    }  # fmt: skip


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


test_mistakes = mistakes_of(globals())
