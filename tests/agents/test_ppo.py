"""PPO on MixedPolicy: training and files."""

from __future__ import annotations

import gymnasium
import numpy as np
import pytest
import torch

import hpcgym
from hpcgym.agents import load, maskable_ppo, ppo
from hpcgym.envs.core.episodes import Episodes

WORKLOAD = "lublin:jobs=600,processors=32,seed=3,load=1.0"
SMALL = {
    "jobs": 40,
    "steps": 64,
    "n_envs": 2,
    "n_steps": 16,
    "batch_size": 16,
    "n_epochs": 2,
    "width": 8,
    "env_options": {"window": 16, "interval": 5},
}


def weights(agent) -> dict[str, np.ndarray]:
    return {name: value.numpy().copy() for name, value in agent.policy.state_dict().items()}


def same(one, other) -> bool:
    return all(np.array_equal(one[name], other[name]) for name in one)


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
def agent(tmp_path_factory):
    """An agent that was trained for a moment, and its file."""
    path = tmp_path_factory.mktemp("agents") / "agent.pt"
    return ppo.train(WORKLOAD, seed=1, output=path, **SMALL), path


def test_the_same_seed_trains_the_same_policy(agent):
    again = ppo.train(WORKLOAD, seed=1, **SMALL)
    other = ppo.train(WORKLOAD, seed=2, **SMALL)
    assert same(weights(agent[0]), weights(again))
    assert not same(weights(agent[0]), weights(other))


def test_it_is_saved_and_loaded(agent):
    trained, path = agent
    loaded = load(path)
    assert (loaded.name, loaded.env_id) == ("ppo", "hpcgym/MixedPolicy-v0")
    assert loaded.env_options["interval"] == 5
    actions = play(loaded)
    assert np.array_equal(actions, play(trained))
    assert np.ptp(actions, axis=0).max() > 0  # the state matters


def test_training_goes_on_from_a_file(agent, tmp_path):
    trained, path = agent
    kept = {name: value for name, value in SMALL.items() if name not in ("env_options", "width")}
    output = tmp_path / "more.pt"
    more = ppo.train(WORKLOAD, resume=path, output=output, **kept)
    assert not same(weights(more), weights(trained))
    assert torch.load(output, weights_only=True)["steps"] == 128
    still = ppo.train(WORKLOAD, resume=path, **{**kept, "learning_rate": 0.0})
    assert same(weights(still), weights(trained))
    assert np.array_equal(still.units, trained.units)


def test_logs(tmp_path):
    ppo.train(WORKLOAD, tensorboard=tmp_path, **SMALL)
    assert list(tmp_path.rglob("events.out.tfevents*"))


def test_units_are_means_over_the_jobs_of_the_part():
    workload = hpcgym.load_workload(WORKLOAD)
    part = Episodes(workload, "windows", 300, "train")
    names = ("processors", "area", "wait", "expansion", "fairshare")
    units = ppo.mean_features(part, names)
    q = workload.requested_processors[:300].astype(float)
    p = workload.requested_time[:300].astype(float)
    expected = [q.mean(), (p * q).mean(), 3600.0, (1 + 3600 / p).mean(), 1.0]
    assert units == pytest.approx(expected)


def test_weights_keep_their_proportions():
    units = np.array([1.0, 100.0])
    assert ppo.in_own_units([0.5, 1.0], units) == pytest.approx([1.0, 0.02])
    assert ppo.in_own_units([[0.0, -1.0], [0.0, 0.0]], units).tolist() == [[0, -1], [0, 0]]


def test_other_environments_are_refused(agent):
    trained, _ = agent
    for env_id, options, message in (
        ("hpcgym/QueueOrdering-v0", {}, "acts in hpcgym/MixedPolicy-v0"),
        (ppo.ENV_ID, {"observation": "flat"}, "observation='dict'"),
        (ppo.ENV_ID, {"policy_features": ["area"]}, "weighs processors, requested"),
        (ppo.ENV_ID, {"features": ["wait"]}, "knows 8 features"),
    ):
        env = gymnasium.make(env_id, workload=WORKLOAD, jobs=20, **options)
        with pytest.raises(hpcgym.HpcgymError, match=message):
            trained.begin(env)


def test_files_of_other_agents_are_refused(agent, tmp_path):
    path = tmp_path / "other.pt"
    maskable_ppo.train(
        WORKLOAD, jobs=20, steps=16, n_envs=2, n_steps=8, batch_size=8, width=4, output=path
    )
    with pytest.raises(hpcgym.HpcgymError, match="holds no ppo"):
        ppo.train(WORKLOAD, resume=path, **SMALL)
    narrow = {"features": ["wait", "area"]}
    with pytest.raises(hpcgym.HpcgymError, match="other fields of the observation"):
        ppo.train(WORKLOAD, resume=agent[1], **{**SMALL, "env_options": narrow})
    options = {"policy_features": ["area"]}
    with pytest.raises(hpcgym.HpcgymError, match="other policy_features"):
        ppo.train(WORKLOAD, resume=agent[1], **{**SMALL, "env_options": options})
