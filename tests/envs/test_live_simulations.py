"""What an environment does is a simulation, as others are."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from driving import NAMES, VECTOR

from hpcgym._engine import Simulation

SOME = {"jobs": 40, "window": 8, "threads": 1}


def made(name: str, number: int, **more: Any) -> Any:
    """Return environments that ask often."""
    often = {"interval": "pass"} if name == "MixedPolicy" else {}
    return VECTOR[name](number, **{**SOME, **often, **more})


def stepper_of(env: Any) -> Any:
    """Return what steps an environment."""
    return env.simulations.steps._stepper


def schedules(env: Any) -> list[dict[str, Any]]:
    """Return what has become of the jobs of each episode."""
    return [stepper_of(env).simulation(e).schedule() for e in range(env.num_envs)]


def steps(env: Any, first: int, number: int) -> list[Any]:
    """Do the same steps whenever it is called with the same numbers."""
    seen = []
    for k in range(first, first + number):
        env.action_space.seed(k)
        seen.append(env.step(env.action_space.sample())[:4])
    return seen


@pytest.mark.parametrize("name", NAMES)
def test_a_simulation_goes_on_with_its_environment(name: str) -> None:
    env = made(name, 2)
    with pytest.raises(ValueError, match="no episode has begun"):
        stepper_of(env).simulation(0)
    env.reset(seed=1)
    live = stepper_of(env).simulation(1)
    assert isinstance(live, Simulation)
    before = live.time
    steps(env, 0, 6)
    assert live is stepper_of(env).simulation(1)
    assert live.time > before
    del env
    assert len(live.schedule()["start"]) == 40  # what it looks at is there as long as it is


@pytest.mark.parametrize("name", NAMES)
def test_an_environment_goes_on_from_a_copy(name: str) -> None:
    env = made(name, 2)
    env.reset(seed=1)
    steps(env, 0, 6)
    copies = [stepper_of(env).simulation(e).copy() for e in range(2)]
    rows = [array.copy() for array in stepper_rows(env).values()]
    first, there = steps(env, 6, 9), schedules(env)
    for array, row in zip(stepper_rows(env).values(), rows, strict=True):
        array[...] = row
    for e, copy in enumerate(copies):
        stepper_of(env).put(e, copy)
    again = steps(env, 6, 9)
    for one, other in zip(first, again, strict=True):
        for a, b in zip(one, other, strict=True):
            np.testing.assert_equal(a, b)
    np.testing.assert_equal(schedules(env), there)
    other = made(name, 1, jobs=39)
    other.reset(seed=1)
    theirs = stepper_of(other).simulation(0)
    with pytest.raises(ValueError, match="of another machine"):
        stepper_of(env).put(0, theirs)


def stepper_rows(env: Any) -> Any:
    """Return what steps write of episodes."""
    return env.simulations.steps._rows


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("hide", [False, True], ids=["whole", "hidden"])
@pytest.mark.parametrize(
    "rules", [{}, {"estimate": "e-loss", "policy_estimate": "typical-ratio"}], ids=["", "learned"]
)
def test_a_snapshot_goes_on_alike_after_a_pickle(
    name: str, hide: bool, rules: dict[str, Any]
) -> None:
    env, other = made(name, 2, **rules), made(name, 2, **rules)
    env.reset(seed=1)
    steps(env, 0, 20)
    saved = env.snapshot(hide=hide)
    bytes_ = pickle.dumps(saved)
    seen = [env.restore(saved), *steps(env, 20, 9)]
    again = env.snapshot()
    seen += steps(env, 29, 60)
    there = [other.restore(pickle.loads(bytes_)), *steps(other, 20, 9)]
    other.restore(pickle.loads(pickle.dumps(again)))
    there += steps(other, 29, 60)
    for one, two in zip(seen, there, strict=True):
        for a, b in zip(one, two, strict=False):
            np.testing.assert_equal(a, b)
    np.testing.assert_equal(schedules(other), schedules(env))
