"""The bridge to Stable-Baselines3."""

from __future__ import annotations

import subprocess
import sys

import gymnasium
import numpy as np
import pytest
from mistakes import mistakes_of
from plain_envs import plain
from stable_baselines3.common.vec_env import VecMonitor

from hpcgym.envs.sb3 import HpcVecEnv

SELECTION = "hpcgym/JobSelection-v2"
SMALL = plain(
    "JobSelection",
    {"workload": "lublin:jobs=400,processors=32,seed=1,load=1.0", "jobs": 20, "window": 16},
)


def run(envs, number: int, seed: int = 0):
    """Return what some steps with random allowed actions give."""
    rng = np.random.default_rng(seed)
    envs.seed(seed)
    steps = [(envs.reset(), None, None, None)]
    for _ in range(number):
        masks = np.stack(envs.env_method("action_masks"))
        actions = np.array([rng.choice(np.flatnonzero(mask)) for mask in masks])
        steps.append(envs.step(actions))
    return steps


def test_it_goes_through_the_same_states_as_single_environments():
    number = 3
    envs = HpcVecEnv(SELECTION, num_envs=number, **SMALL)
    singles = [gymnasium.make(SELECTION, **SMALL) for _ in range(number)]
    assert (envs.observation_space, envs.action_space, envs.num_envs, envs.render_mode) == (
        singles[0].observation_space, singles[0].action_space, number, None,
    )  # fmt: skip
    seen = [env.reset(seed=5 + e)[0] for e, env in enumerate(singles)]
    envs.seed(5)
    batch = envs.reset()
    ends = 0
    for _ in range(60):
        for e in range(number):
            for name in seen[e]:
                assert np.array_equal(batch[name][e], seen[e][name]), name
        actions = np.array([int(observation_of["mask"].sum()) - 1 for observation_of in seen])
        batch, rewards, dones, infos = envs.step(actions)
        assert rewards.dtype == np.float32
        for e, env in enumerate(singles):
            observation, reward, terminated, _, info = env.step(int(actions[e]))
            assert rewards[e] == np.float32(reward)
            assert dones[e] == terminated
            if terminated:
                ends += 1
                last = infos[e]["terminal_observation"]
                assert all(np.array_equal(last[name], observation[name]) for name in observation)
                assert infos[e]["TimeLimit.truncated"] is False
                for name in ("episode_mean_bsld", "episode_mean_wait_s", "episode_energy_j"):
                    assert infos[e][name] == info[name]
                observation, _ = env.reset()
            else:
                assert infos[e] == {}
            seen[e] = observation
    assert ends >= number


def test_truncation_is_told_apart_from_the_end():
    envs = HpcVecEnv(SELECTION, num_envs=2, max_episode_steps=4, **SMALL)
    *_, dones, infos = run(envs, 4)[-1]
    assert dones.all()
    assert [info["TimeLimit.truncated"] for info in infos] == [True, True]
    assert all("terminal_observation" in info for info in infos)
    # the episodes are not over: their means would be of the jobs so far
    assert not any(key.startswith("episode_") for info in infos for key in info)


def test_the_monitor_adds_the_return_and_keeps_the_metrics():
    envs = VecMonitor(HpcVecEnv(SELECTION, num_envs=2, **SMALL))
    infos_at_ends = [info for *_, infos in run(envs, 60)[1:] for info in infos if "episode" in info]
    assert infos_at_ends
    for info in infos_at_ends:
        assert info["episode"]["r"] == pytest.approx(-info["episode_mean_bsld"], rel=1e-4)


def test_options_choose_the_episode_of_each_environment():
    envs = HpcVecEnv(SELECTION, num_envs=2, **SMALL)
    envs.set_options([{"slice": "rows 0:20"}, {"slice": "rows 40:60"}])
    envs.reset()
    assert envs.env.simulations.names == ["rows 0:20", "rows 40:60"]
    envs.set_options({"slice": "rows 7:27"})
    envs.reset()
    assert envs.env.simulations.names == ["rows 7:27"] * 2


def test_attributes_and_methods():
    envs = HpcVecEnv(SELECTION, num_envs=3, **SMALL)
    envs.reset()
    masks = envs.env_method("action_masks")
    assert len(masks) == 3
    assert all(mask.shape == (16,) and mask.any() for mask in masks)
    assert len(envs.env_method("action_masks", indices=[0, 2])) == 2
    assert envs.get_attr("num_envs") == [3, 3, 3]
    assert envs.get_attr("num_envs", indices=1) == [3]
    assert envs.has_attr("action_masks")
    assert not envs.has_attr("no_such_thing")
    envs.set_attr("colour", "blue")
    assert envs.get_attr("colour", indices=[1]) == ["blue"]
    assert envs.env_is_wrapped(gymnasium.Wrapper, indices=[0, 1]) == [False, False]
    envs.close()


def test_without_sb3_it_says_what_to_install():
    code = (
        "import sys; sys.modules['stable_baselines3'] = None\n"
        "try:\n    import hpcgym.envs.sb3\n"
        "except ImportError as error:\n    print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "pip install 'hpcgym[agents]'" in done.stdout


test_mistakes = mistakes_of(globals())
