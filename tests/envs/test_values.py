"""Arguments that are several settings: as one value, or each setting by its own name."""

from __future__ import annotations

import inspect
from functools import partial
from typing import Any

import gymnasium
import pytest
from driving import BUSY, CLASSES, EVERY, LIMITED, NAMES, SINGLE, VECTOR
from gymnasium.envs.registration import EnvSpec
from mistakes import mistakes_of

from hpcgym import Scheduler
from hpcgym.envs.core.base import OF_VALUES

OWN = {"estimate": "ave2", "correction": "incremental", "backfill_order": "saf"}
#: As one value, and setting by setting; of all but CoSchedule.
SAME: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"episodes": "whole"}, {"episodes": {"kind": "whole"}}),
    ({"jobs": 30, "part": "train", "train_share": 0.4},
     {"episodes": {"jobs": 30, "part": "train", "train_share": 0.4}}),
    ({"observation": "flat"}, {"observation": {"form": "flat"}}),
    ({"observation": "flat", "window": 16}, {"observation": {"form": "flat", "window": 16}}),
    ({"window": 16, "features": ["wait", "area"]},
     {"observation": {"window": 16, "features": ["wait", "area"]}}),
    ({"processors": 128}, {"cluster": 128}),
    (OWN, {"scheduler": OWN}),
    (OWN, {"scheduler": Scheduler(**OWN)}),
    (OWN, {"scheduler": Scheduler("wfp3", **OWN)}),
    ({"backfill_order": "sjbf"}, {"scheduler": "easy-sjbf"}),
    ({**OWN, "estimate": "e-loss"}, {"scheduler": Scheduler(**OWN), "estimate": "e-loss"}),
    # also where it is as by default
    ({**OWN, "estimate": "requested"}, {"scheduler": Scheduler(**OWN), "estimate": "requested"}),
    ({**OWN, "backfill": "none"}, {"scheduler": Scheduler(**OWN), "backfill": "none"}),
]  # fmt: skip


def settings_told(env: Any) -> dict[str, Any]:
    """All that an environment has been told."""
    options, episodes = env.options, env.episodes
    return {
        "fingerprint": env.simulations.world(0).fingerprint, "rules": options.scheduler,
        "machine": options.cluster, "window": options.window, "names": options.names,
        "flat": options.flat, "around": episodes.around, "kind": episodes.kind,
        "part": episodes.part, "share": episodes.train_share, "listing": episodes.listing,
    }  # fmt: skip


@pytest.mark.parametrize("classes", [SINGLE, VECTOR], ids=["single", "vector"])
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("alone", "values"), SAME, ids=lambda arguments: str(sorted(arguments)))
def test_a_value_is_its_settings(
    name: str, alone: dict[str, Any], values: dict[str, Any], classes: dict[str, Any]
) -> None:
    assert settings_told(classes[name](workload=BUSY, **alone)) == settings_told(
        classes[name](workload=BUSY, **values)
    )
    if "jobs" not in alone and "episodes" not in alone:
        assert settings_told(classes[name](workload=BUSY)) != settings_told(
            classes[name](workload=BUSY, **alone)
        )


@pytest.mark.parametrize("name", LIMITED)
def test_limits_are_a_value(name: str) -> None:
    own = {"PowerCap": {"hours": (0, 24)}, "EnergyBudget": {"period": 60, "shutdown": True}}[name]
    given: dict[str, Any] = {"workload": BUSY, "episodes": "whole"}
    by_arguments = SINGLE[name](**given, share=0.8, **own, scheduler={"power": "none"})
    other = SINGLE[name](**given, limits={"share": 0.8, **own}, power="none")
    usual = SINGLE[name](**given)
    for env in (by_arguments, other, usual):
        env.reset(seed=3)
    assert by_arguments.result().limits == other.result().limits != usual.result().limits
    assert settings_told(by_arguments) == settings_told(other)


def test_pairs_have_values_too() -> None:
    cls = CLASSES["CoSchedule"]
    by_arguments = cls(allocation="spread", partners="best", neighbours=4, window=8)
    other = cls(
        scheduler={"allocation": "spread", "partners": "best"},
        observation={"neighbours": 4, "window": 8},
    )
    assert settings_told(by_arguments) == settings_told(other)


def test_values_change_what_is_usual() -> None:
    env = CLASSES["JobSelection"](
        BUSY, scheduler="easy-sjbf", episodes={"horizon": "3h", "jobs": 9}
    )
    assert env.options.scheduler.backfill_order == "sjbf"
    assert CLASSES["JobSelection"](BUSY, jobs=9).options.scheduler.backfill_order == "spf"
    assert env.options.scheduler.backfill == "easy"
    assert env.episodes.around == {
        "start": "warm", "warmup": None, "arrivals": "continue", "horizon": "3h"
    }  # fmt: skip


def test_a_scheduler_leaves_what_makes_an_environment() -> None:
    """Else none would share nodes, and dvfs would not keep caps, only since a name is given."""
    pairs = SINGLE["CoSchedule"](scheduler="saf").options.scheduler
    assert (pairs.allocation, pairs.partners) == ("half-socket", "best")
    assert SINGLE["PowerCap"](BUSY, scheduler="saf").options.scheduler.power == "dvfs"
    assert SINGLE["PowerCap"](BUSY, scheduler="saf", power="none").options.scheduler.power == "none"


@pytest.mark.parametrize("make", [gymnasium.make, partial(gymnasium.make_vec, num_envs=2)])
def test_environments_with_a_scheduler_are_made_again_from_their_spec(make: Any) -> None:
    rules = Scheduler(backfill="none", estimate="ave2", quota="user:jobs=3")
    given = {"workload": "lublin:jobs=300,processors=64", "scheduler": rules, "jobs": 100}
    first = make("hpcgym/JobSelection-v2", **given)
    again = make(EnvSpec.from_json(first.spec.to_json()))
    assert again.unwrapped.options.scheduler == first.unwrapped.options.scheduler
    assert again.spec.kwargs == first.spec.kwargs


def test_the_machine_is_found_as_a_scheduler_left_it_or_one_of_that_name() -> None:
    rules = Scheduler("saf", backfill_order="fcfs", estimate="ave2")
    name, rows = "saf:backfill_order=fcfs,estimate=ave2", "lublin:jobs=900,processors=64,load=1"
    histories = []
    given: dict[str, Any]
    for given in (
        {"start": rules}, {"episodes": {"start": rules}}, {"start": name}, {"start": "warm"}
    ):  # fmt: skip
        env = gymnasium.make("hpcgym/JobSelection-v2", workload=rows, jobs=100, **given)
        again = gymnasium.make(EnvSpec.from_json(env.spec.to_json()))
        for env_so in (env, again):
            env_so.reset(options={"slice": "window 0001"})
            jobs = env_so.unwrapped.episode_workload
            assert jobs.initial is not None
            histories.append((jobs.submit_time.tolist(), jobs.wait_time.tolist()))
    assert histories[:6] == [histories[0]] * 6
    assert histories[6] == histories[7] != histories[0]


@pytest.mark.parametrize("name", EVERY)
def test_few_arguments_are_shown(name: str) -> None:
    shown = inspect.signature(CLASSES[name]).parameters
    assert len(shown) - 1 <= 13
    assert shown["settings"].kind is inspect.Parameter.VAR_KEYWORD
    assert not OF_VALUES.keys() & shown.keys()


test_mistakes = mistakes_of(globals())
