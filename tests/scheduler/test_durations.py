"""Durations are seconds or texts such as "2h", wherever there is one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from mistakes import mistakes_of, why_not

from hpcgym import Workload, load_workload, simulate
from hpcgym.baselines.schedulers import find_scheduler
from hpcgym.explanation.watching import time_of
from hpcgym.machine import Cluster
from hpcgym.scheduler.backfilling import Hold
from hpcgym.scheduler.limits import EnergyBudget, PowerCap
from hpcgym.scheduler.policies.fair_share import FairShare
from hpcgym.scheduler.restrictions import Preemption, Window
from hpcgym.scheduler.rules import Scheduler
from hpcgym.units import whole_seconds

#: What takes a duration: a value -> the seconds that are kept of it.
TAKEN: dict[str, Callable[[Any], Any]] = {
    "threshold": lambda t: Scheduler(threshold=t).threshold,
    "threshold of a name": lambda t: find_scheduler(f"saf:threshold={t}").threshold,
    "dispatch_time": lambda t: Scheduler(dispatcher="prb", dispatch_time=t).dispatch_time,
    "hold from_s": lambda t: Hold(0.1, from_s=t).from_s,
    "hold erode_s": lambda t: Hold(0.1, erode_s=t).erode_s,
    "hold of a name": lambda t: find_scheduler(f"saf:hold=0.1,from_s={t}").hold.from_s,
    "half_life_s": lambda t: FairShare(half_life_s=t).half_life_s,
    "half_life_s in a text": lambda t: FairShare.parse(f"half_life_s={t}").half_life_s,
    "exempt": lambda t: Preemption.parse(f"partition:a>b,exempt={t}").exempt[0][1],
    "grace": lambda t: Preemption("partition", (("a", "b"),), grace=(("b", t),)).grace[0][1],
    "maintenance": lambda t: Window(t, "3h").begin,
    "maintenance in a text": lambda t: Window.parse(f"{t}/3h").begin,
    "cap start": lambda t: PowerCap(1.0, start=t).start,
    "cap end": lambda t: PowerCap(1.0, end=t).end,
    "cap announced": lambda t: PowerCap(1.0, start="3h", announced=t).announced,
    "budget start": lambda t: EnergyBudget(1.0, start=t, end="3h").start,
    "budget period": lambda t: EnergyBudget(1.0, start=0, end="3h", period=t).period,
    "shutdown_after_s": lambda t: Cluster(4, shutdown_after_s=t).shutdown_after_s,
    "boot_time_s": lambda t: Cluster(4, boot_time_s=t).boot_time_s,
    "warmup, horizon": lambda t: whole_seconds("warmup", t),
    "seconds of explain": time_of,
}


@pytest.mark.parametrize("taken", TAKEN.values(), ids=TAKEN)
def test_a_text_is_the_same_as_its_seconds(taken: Callable[[Any], Any]) -> None:
    for text in ("2h", "120min", "1h 60m", "2:00:00", "7200"):
        assert taken(text) == taken(7200) == 7200
    assert all(why_not(taken, wrong) for wrong in ("soon", "2 fortnights"))


def test_seconds_of_a_rule_may_be_any_number() -> None:
    assert find_scheduler("saf:threshold=7.2e3").threshold == 7200
    assert find_scheduler("saf:threshold=inf").threshold == float("inf")


def recorded() -> Workload:
    return simulate(load_workload("lublin:jobs=40,processors=16,seed=2"), "easy").as_workload()


def test_extracts_begin_at_texts_too() -> None:
    past = recorded()
    assert past.extract("2h", "9h").submit_time.tolist() == (
        past.extract(7200, 32400).submit_time.tolist()
    )
    assert past.extract("2h").name == f"{past.name} from 2 h"
    assert past.extract(7225).name == f"{past.name} from 7225 s"


def test_a_half_life_may_be_infinite() -> None:
    assert FairShare.parse("half_life_s=inf").half_life_s == float("inf")


test_mistakes = mistakes_of(globals())
