"""Logs that a function makes at each reset, and specs that hold the jobs of a log."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import gymnasium
import numpy as np
import plain_envs
import pytest
from driving import BUSY, CHASSIS, EVERY, SINGLE, assert_same, from_the_middle, play, visible_acts
from gymnasium.envs.registration import EnvSpec
from gymnasium.utils.env_checker import check_env
from mistakes import mistakes_of

import hpcgym
from hpcgym.envs.ids import id_of
from hpcgym.workload import Workload

pytestmark = pytest.mark.filterwarnings("ignore::hpcgym.errors.HpcgymWarning")


def fresh(rng: np.random.Generator) -> Workload:
    processors = int(rng.choice([32, 64]))
    seed = int(rng.integers(2**31))
    return hpcgym.load_workload(f"lublin:jobs=60,processors={processors},seed={seed},load=2")


def named(rng: np.random.Generator) -> str:
    return f"codes:jobs=40,processes=96,processors=768,seed={rng.integers(2**31)}"


def arguments_of(name: str) -> dict[str, Any]:
    if name == "CoSchedule":
        return {"workload": named, "jobs": 12, "window": 6}
    more = {"cluster": CHASSIS} if name in ("PowerCap", "EnergyBudget") else {}
    return {"workload": fresh, "jobs": 12, **more}


@pytest.mark.parametrize("name", EVERY)
def test_each_reset_has_a_log_of_its_own(name: str) -> None:
    """The same seed, the same log, episode, and steps, whatever was played before."""
    env, other = (SINGLE[name](**arguments_of(name)) for _ in range(2))
    logs, seen = [], []
    for seed in (1, None, 2, 1, None):
        acts = visible_acts(env, 3)
        seen.append(play(env, acts, seed=seed))
        logs.append(env.options.workload.name)
    assert logs[:2] == logs[3:]
    assert len(set(logs)) == 3
    assert_same(seen[:2], seen[3:])
    play(other, visible_acts(other, 0), seed=9)
    assert_same(play(other, visible_acts(other, 3), seed=1), seen[0])


@pytest.mark.parametrize("name", EVERY)
def test_gymnasium_takes_it(name: str) -> None:
    env = plain_envs.make(id_of(name), **arguments_of(name))
    check_env(env.unwrapped, skip_render_check=True)
    envs = gymnasium.make_vec(
        id_of(name), num_envs=3, vectorization_mode="sync",
        **plain_envs.plain(name, arguments_of(name)),
    )  # fmt: skip
    envs.reset(seed=4)
    names = [env_of_vector.unwrapped.options.workload.name for env_of_vector in envs.envs]
    assert len(set(names)) == 3
    env.reset(seed=6)
    assert env.unwrapped.options.workload.name == names[2]


def test_machines_may_differ() -> None:
    env = SINGLE["JobSelection"](fresh, jobs=12)
    sizes = set()
    for seed in range(8):
        env.reset(seed=seed)
        result = env.result()
        sizes.add(result.cluster.processors)
        assert env.episodes.workload is env.options.workload
    assert sizes == {32, 64}


def later(workload: Any) -> Any:
    """An environment whose next episode is of what this function returns."""
    turns = iter([BUSY, BUSY])
    env = SINGLE["JobSelection"](lambda rng: next(turns, None) or workload(rng), jobs=12)
    env.reset(seed=0)
    return env


def test_without_a_log_there_is_no_episode() -> None:
    env = later(lambda rng: None)
    for call in (env.reset, partial(env.step, 0)):
        with pytest.raises((hpcgym.HpcgymError, gymnasium.error.ResetNeeded)):
            call()


# --- Specs ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["JobSelection", "QueueOrdering", "MixedPolicy", "Backfill"])
def test_a_spec_with_jobs_goes_through_json(name: str) -> None:
    """It makes the same environment, also in a vector, and of several logs."""
    made = plain_envs.make(id_of(name), workload=BUSY, jobs=12, max_episode_steps=5)
    assert isinstance(made.spec, EnvSpec)
    spec = EnvSpec.from_json(made.spec.to_json())
    assert set(spec.kwargs["workload"]["columns"]) < set(BUSY.columns)
    again = gymnasium.make(spec)
    assert again.spec is not None
    assert again.spec.max_episode_steps == 5
    assert json.loads(again.spec.to_json()) == json.loads(made.spec.to_json())
    assert again.unwrapped.simulations.fingerprint(0) == made.unwrapped.simulations.fingerprint(0)
    acts = visible_acts(made, 1)
    assert_same(play(again, acts, seed=3), play(made, acts, seed=3))
    logs = [BUSY, BUSY.take(slice(50, 200))]
    many = plain_envs.make_vec(id_of(name), 2, workload=logs, jobs=12)
    spec_of_both = EnvSpec.from_json(many.spec.to_json())
    assert [len(log["columns"]["submit_time"]) for log in spec_of_both.kwargs["workload"]] == [
        300,
        150,
    ]


def test_a_spec_is_what_gymnasium_reads() -> None:
    made = gymnasium.make("hpcgym/JobSelection-v2", workload="lublin:jobs=900,processors=32")
    spec = made.unwrapped.spec
    read = EnvSpec.from_json(spec.to_json())
    assert spec == read
    assert read == spec
    assert spec != EnvSpec.from_json(spec.to_json().replace("jobs=900", "jobs=901"))


test_mistakes = mistakes_of(globals(), from_the_middle)
