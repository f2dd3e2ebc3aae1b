"""A scheduler is some rules, each checked when it is given and none changed afterwards."""

from __future__ import annotations

import pickle
from dataclasses import FrozenInstanceError
from typing import Any

import numpy as np
import pytest

import hpcgym
from hpcgym.errors import HpcgymError
from hpcgym.scheduler.policies import POLICIES
from hpcgym.scheduler.rules import Scheduler

EASY = {
    "policy": "fcfs",
    "backfill": "easy",
    "backfill_order": "fcfs",
    "estimate": "requested",
    "correction": "requested",
    "threshold": None,
    "hold": None,
    "quota": None,
    "maintenance": None,
    "preemption": None,
    "dependencies": "none",
    "passes": "per-timestamp",
    "policy_estimate": "requested",
    "allocation": "first-fit",
    "dispatcher": None,
    "dispatch_time": None,
    "fair_share": None,
    "power": "none",
    "partners": "fill",
    "pairs_above": None,
    "pair_estimate": "known",
}


def test_the_default_is_easy() -> None:
    assert Scheduler().describe() == EASY
    assert hpcgym.simulate(tiny(), Scheduler()).scheduler == Scheduler()


def tiny() -> hpcgym.Workload:
    return hpcgym.load_workload("lublin:jobs=20,processors=8,seed=1")


def test_but_changes_what_it_names_and_nothing_else() -> None:
    easy = Scheduler()
    other = easy.but(backfill_order="sjbf", threshold=60)
    assert other.describe() == {**EASY, "backfill_order": "sjbf", "threshold": 60}
    assert easy.describe() == EASY
    with pytest.raises(FrozenInstanceError):
        easy.policy = "saf"  # type: ignore[misc]


def test_the_usual_correction_goes_by_whether_there_is_a_dispatcher() -> None:
    assert Scheduler().but(dispatcher="prb").correction == "next-second"
    assert Scheduler(dispatcher="prb") == Scheduler(dispatcher="prb", correction="next-second")
    changed = Scheduler(dispatcher="prb").but(allocation="best-fit")
    assert changed.correction == "next-second"
    assert changed.but(dispatcher=None).correction == "requested"
    assert Scheduler().but(correction=None) == Scheduler()
    kept = pickle.loads(pickle.dumps(Scheduler()))
    assert kept.but(dispatcher="prb").correction == "next-second"


@pytest.mark.parametrize(
    ("policy", "order"),
    [
        ("fcfs", "fcfs"), (" fcfs ", "fcfs"), ("sjf", "spf"), ("lcfs", "spf"), ("wait", "spf"),
        ((0, 0, 1, 0, 0, 0), "spf"), ({"area": -1}, "spf"), (lambda view: view.wait, "spf"),
        ("fairshare", "fairshare"), ("fs+efs", "fs+efs"), ("fairshare + wait", "spf"),
        ("popularity", "fcfs"),
    ],
)  # fmt: skip
def test_a_policy_alone_brings_its_usual_backfill_order(policy: Any, order: str) -> None:
    for alone in (
        Scheduler(policy), Scheduler().but(policy=policy), Scheduler("saf").but(policy=policy),
        pickle.loads(pickle.dumps(Scheduler("saf"))).but(policy=policy),
        Scheduler(policy, backfill_order="sqf").but(backfill_order=None),
    ):  # fmt: skip
        assert alone.backfill_order == order
    for given in (
        Scheduler(policy, backfill_order="sqf"), Scheduler(backfill_order="sqf").but(policy=policy)
    ):  # fmt: skip
        assert given.backfill_order == "sqf"


@pytest.mark.parametrize("given", ["requested", "incremental", "kill"])
def test_a_correction_that_is_given_is_kept(given: str) -> None:
    for begin in (Scheduler(correction=given), Scheduler().but(correction=given)):
        assert begin.but(dispatcher="prb").correction == given
        assert begin.but(dispatcher="prb").but(dispatcher=None).correction == given
    assert Scheduler(dispatcher="prb", correction=given).correction == given
    assert Scheduler(dispatcher="prb").but(correction=given).correction == given


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ({"backfill": "eazy"}, "unknown backfill 'eazy'; did you mean 'easy'? known are none, ea"),
        ({"backfill": None}, "unknown backfill None"),
        ({"backfill": ["easy"]}, "unknown backfill ['easy']"),
        ({"correction": "zzz"}, "unknown correction 'zzz'; known are requested, incremental, rec"),
        ({"correction": "doubling"}, "did you mean 'recursive-doubling'"),
        ({"passes": "per_event"}, "unknown passes 'per_event'; did you mean 'per-event'"),
        (
            {"backfill_order": "sjbg"},
            "unknown backfill_order 'sjbg'; did you mean 'sjbf'? known are",
        ),
        ({"backfill_order": "zzz"}, "unknown backfill_order 'zzz'; known are sjbf, fcfs, lcfs"),
        ({"backfill_order": (1, 2)}, "backfill_order: a policy has 6 weights"),
        ({"backfill_order": {"q": 1}}, "unknown feature in backfill_order 'q'; known are proces"),
        ({"backfill_order": np.zeros(6)}, "backfill_order: a policy needs a weight other than 0"),
        ({"backfill_order": 3}, "backfill_order must be a name, six weights or weights by fe"),
        ({"policy": "sjbf"}, "unknown policy 'sjbf'; did you mean 'sjf'"),
        ({"estimate": "guess"}, "unknown estimate 'guess'"),
        ({"threshold": -1}, "threshold must be a number of at least 0 s, not -1"),
        ({"threshold": float("nan")}, "threshold must be a number of at least 0 s, not nan"),
        ({"threshold": "soon"}, "threshold must be a number of at least 0 s, or a time such as"),
        ({"threshold": "-5h"}, "or a time such as '5h' or '2d', not '-5h'"),
        ({"threshold": np.array([1.0])}, "threshold must be a number of at least 0 s"),
        ({"backfil": "easy"}, "unknown rule 'backfil'; did you mean 'backfill'"),
        ({"depth": 1}, "unknown rule 'depth'; known are policy, backfill, backfill_order"),
    ],
)
def test_wrong_rules_are_named(rules: dict[str, Any], message: str) -> None:
    for make in (Scheduler().but, lambda **words: hpcgym.simulate(tiny(), "easy", **words)):
        with pytest.raises(HpcgymError) as caught:
            make(**rules)
        assert message in str(caught.value)
        assert "\n" not in str(caught.value)


def test_descriptions_are_exact() -> None:
    """Two schedulers that differ have descriptions that differ, and weights can be read back."""
    weights = (0.1, 1 / 3, -1e-17, 0, 12345678.9, 2.0)
    text = Scheduler(policy=weights).describe()["policy"]
    assert text == "0.1,0.3333333333333333,-1e-17,0,12345678.9,2"
    assert isinstance(text, str)
    assert Scheduler(policy=tuple(map(float, text.split(",")))) == Scheduler(policy=weights)
    named = Scheduler(backfill_order={"wait": 1 / 3, "f1": -2})
    assert named.describe()["backfill_order"] == "wait=0.3333333333333333, f1=-2"
    assert Scheduler(estimate=[1, 2]).describe()["estimate"] == "given"
    assert Scheduler(threshold=np.int64(60)).describe()["threshold"] == 60  # type: ignore[arg-type]
    assert Scheduler(threshold="80h").describe()["threshold"] == 288_000  # type: ignore[arg-type]


def test_what_the_caller_changes_later_does_not_change_the_scheduler() -> None:
    weights, named = np.ones(6), {"wait": 1.0}
    scheduler = Scheduler(policy=weights, backfill_order=named)
    weights[0] = named["wait"] = 9
    assert scheduler.policy == (1.0,) * 6
    assert scheduler.backfill_order == {"wait": 1.0}


def test_numpy_and_python_numbers_make_one_scheduler() -> None:
    assert Scheduler(policy=np.arange(6), threshold=np.float32(1.5)) == Scheduler(  # type: ignore[arg-type]
        policy=[0, 1, 2, 3, 4, 5], threshold=1.5
    )


@pytest.mark.parametrize("threshold", [0, 0.5, 10**30, float("inf")])
def test_any_threshold_from_0_on(threshold: float) -> None:
    workload = hpcgym.load_workload("lublin:jobs=300,processors=32,seed=2,load=1.5")
    result = hpcgym.simulate(workload, "saf", threshold=threshold)
    hpcgym.validate_schedule(result)
    first_come = hpcgym.simulate(workload, "easy", backfill_order="spf")
    never = hpcgym.simulate(workload, "saf")
    # waits are whole seconds: longer than half a second is longer than none
    same = first_come if threshold < 1 else never
    assert result.start.tolist() == same.start.tolist()
    assert never.start.tolist() != first_come.start.tolist()


def test_every_policy_orders_queue_and_backfilling() -> None:
    for name in POLICIES:
        scheduler = Scheduler(policy=name, backfill_order=name)
        assert hpcgym.simulate(tiny(), scheduler).scheduler.describe()["policy"] == name
