"""Files of PPO on MixedPolicy, as the suite has released them: what they are, and how they act."""

from __future__ import annotations

import math

import gymnasium
import numpy as np
import pytest
import torch
from stable_baselines3.common.policies import MultiInputActorCriticPolicy

import hpcgym
from hpcgym.agents import load, ppo
from hpcgym.agents.network_files import small_envs, write
from hpcgym.study import evaluate

WORKLOAD = "lublin:jobs=600,processors=32,seed=3,load=1.0"
OPTIONS = {
    "window": 16, "interval": 5, "observation": "dict",
    "policy_features": ["processors", "requested", "wait", "ratio", "expansion", "area"],
}  # fmt: skip


def play(agent) -> np.ndarray:
    """Return the actions of an episode."""
    env = gymnasium.make(agent.env_id, workload=WORKLOAD, jobs=40, part="test", **agent.env_options)
    observation, info = env.reset(seed=0)
    agent.begin(env.unwrapped)
    actions, over = [], False
    while not over:
        actions.append(agent.act(observation, info))
        assert np.abs(actions[-1]).max() == pytest.approx(1.0)
        observation, _, over, _, info = env.step(actions[-1])
    return np.array(actions)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """The file of an agent whose weights look at the state."""
    torch.manual_seed(1)
    envs = small_envs(ppo.ENV_ID, OPTIONS)
    made = MultiInputActorCriticPolicy(
        envs.observation_space, envs.action_space, lambda _: 0.0, **ppo._shape(8)
    )
    torch.nn.init.normal_(made.action_net.weight)
    path = tmp_path_factory.mktemp("agents") / "agent.pt"
    about = {"agent": "ppo", "env_id": ppo.ENV_ID, "env_options": OPTIONS, "steps": 64, "seed": 1}
    write(path, {**about, "width": 8, "units": [1.0] * 5 + [1e6], "weights": made.state_dict()})
    return path


def test_it_is_loaded_and_acts_by_the_state(path):
    agent = load(path)
    assert (agent.name, agent.env_id) == ("ppo", "hpcgym/MixedPolicy-v0")
    actions = play(agent)
    assert np.array_equal(actions, play(load(path)))
    assert np.ptp(actions, axis=0).max() > 0
    board = evaluate([str(path)], WORKLOAD, jobs=20, n=1, budget=0)
    assert board.by_slice[str(path)].notna().all()


def test_weights_keep_their_proportions():
    units = np.array([1.0, 100.0])
    assert ppo.in_own_units([0.5, 1.0], units) == pytest.approx([1.0, 0.02])
    assert ppo.in_own_units([[0.0, -1.0], [0.0, 0.0]], units).tolist() == [[0, -1], [0, 0]]


def test_other_environments_are_refused(path):
    agent = load(path)
    for env_id, options, message in (
        ("hpcgym/QueueOrdering-v0", {}, "acts in hpcgym/MixedPolicy-v0"),
        (ppo.ENV_ID, {"observation": "flat"}, "observation='dict'"),
        (ppo.ENV_ID, {"policy_features": ["area"]}, "weighs processors, requested"),
        (ppo.ENV_ID, {"features": ["wait"]}, "knows 8 features"),
    ):
        env = gymnasium.make(env_id, workload=WORKLOAD, jobs=20, **options)
        with pytest.raises(hpcgym.HpcgymError, match=message):
            agent.begin(env)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"units": [0.0] * 6}, "'units' must be numbers above 0"),
        ({"units": [math.nan] * 6}, "'units' must be numbers above 0"),
        ({"units": [1.0]}, "'units' must have a number for each"),
        ({"units": ["x"] * 6}, "is not the file of a"),
        ({"width": 10**5}, "weights of another width"),
        ({"log_std": torch.full((6,), -200.0)}, "log_std'] must be from"),
        ({"action_net.weight": torch.zeros(6, 10**5)}, "has the shape"),
    ],
)
def test_what_a_file_cannot_have(change, message, path, tmp_path):
    contents = torch.load(path, weights_only=True)
    for name, value in change.items():
        place = contents if name in contents else contents["weights"]
        place[name] = value
    bad = tmp_path / "bad.pt"
    torch.save(contents, bad)
    with pytest.raises(hpcgym.HpcgymError, match=message) as caught:
        load(bad)
    assert str(bad) in str(caught.value)
