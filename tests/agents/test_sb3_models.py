"""Models of Stable-Baselines3 as agents, and the environment that is written beside them."""

from __future__ import annotations

import json
import zipfile
from copy import deepcopy
from pathlib import Path
from typing import Any

import gymnasium
import gymnasium.wrappers.vector as vector
import numpy as np
import plain_envs
import pytest
from mistakes import mistakes_of
from plain_envs import USUAL, plain

from hpcgym.agents import load, save_spec
from hpcgym.agents.saved import read_spec
from hpcgym.errors import TrainingWarning
from hpcgym.study import evaluate
from hpcgym.workload import load_workload

pytest.importorskip("sb3_contrib")

from maskable_ppo import RelativeRewards
from sb3_contrib import QRDQN, MaskablePPO, RecurrentPPO
from stable_baselines3 import A2C, DQN, PPO, SAC, TD3
from stable_baselines3.common.vec_env import DummyVecEnv, VecMonitor, VecNormalize

from hpcgym.envs.sb3 import HpcVecEnv

WORKLOAD = "lublin:jobs=1200,processors=64,load=3"
JOBS: dict[str, Any] = {"workload": WORKLOAD, "jobs": 40, "window": 8, "part": "train"}
FEW: dict[str, Any] = {"jobs": 40, "n": 3, "budget": 0, "resamples": 50}
#: In vectors for Stable-Baselines3, too.
EMPTY: dict[str, Any] = {
    name: USUAL["JobSelection"][name] for name in ("start", "arrivals", "horizon", "skip_forced")
}

SELECTION = ("hpcgym/JobSelection-v2", {"backfill_order": "spf"})
ORDERING = ("hpcgym/QueueOrdering-v2", {"observation": "flat"})
WEIGHTS = ("hpcgym/MixedPolicy-v2", {"interval": 5, "policy_features": ["wait", "area"]})

SMALL = {"policy_kwargs": {"net_arch": [8]}, "seed": 1, "device": "cpu"}
ON = {**SMALL, "n_steps": 8}
OFF = {**SMALL, "buffer_size": 20, "learning_starts": 1}
MODELS: dict[str, Any] = {
    "maskable": (MaskablePPO, SELECTION, {**ON, "batch_size": 8}),
    "ppo": (PPO, WEIGHTS, {**ON, "batch_size": 8}),
    "ppo-selection": (PPO, SELECTION, {**ON, "batch_size": 8}),
    "ppo-sde": (PPO, ORDERING, {**ON, "batch_size": 8, "use_sde": True}),
    "a2c": (A2C, WEIGHTS, ON),
    "dqn": (DQN, SELECTION, OFF),
    "qr-dqn": (QRDQN, SELECTION, OFF),
    "sac": (SAC, ORDERING, OFF),
    "td3": (TD3, ORDERING, OFF),
}


def made(kind: str) -> tuple[Any, Any]:
    """A model that has learned nothing, and its environment."""
    algorithm, (env_id, options), arguments = MODELS[kind]
    env = plain_envs.make(env_id, **JOBS, **options)
    flat = options.get("observation") == "flat"
    policy = "MlpPolicy" if flat else "MultiInputPolicy"
    return algorithm(policy, env, **deepcopy(arguments)), env  # which it may change


@pytest.mark.parametrize("kind", MODELS)
def test_a_loaded_model_does_what_the_model_does(kind: str, tmp_path: Path) -> None:
    model, env = made(kind)
    model.save(tmp_path / "model")
    assert save_spec(env, tmp_path / "model") == tmp_path / "model.env.json"
    agent = load(tmp_path / "model.zip")
    observation, info = env.reset(seed=3)
    agent.begin(env)
    ended, steps = False, 0
    while not ended:
        masks = {"action_masks": info["action_mask"] > 0} if kind == "maskable" else {}
        expected, _ = model.predict(observation, deterministic=True, **masks)
        action = agent.act(observation, info)
        assert np.array_equal(action, expected)
        observation, _, ended, _, info = env.step(action)
        steps += 1
    assert steps > 5
    board = evaluate(tmp_path / "model.zip", WORKLOAD, **FEW)
    assert not board.failures
    assert board.by_slice[str(tmp_path / "model.zip")].notna().all()


def test_a_model_of_the_last_version_goes_on(tmp_path: Path) -> None:
    """It sees the fields of a dict that it knows."""
    given = {**plain("JobSelection", JOBS), "backfill_order": "spf"}
    env: Any = gymnasium.make("hpcgym/JobSelection-v2", **given)
    known = [name for name in env.observation_space if name != "progress"]
    bare = gymnasium.wrappers.FilterObservation(env, known)
    model = PPO("MultiInputPolicy", bare, **ON, batch_size=8)
    model.save(tmp_path / "dict")
    path = save_spec(env, tmp_path / "dict")
    spec = json.loads(path.read_text())
    path.write_text(json.dumps({**spec, "env_id": "hpcgym/JobSelection-v1"}))
    assert not evaluate(tmp_path / "dict.zip", WORKLOAD, **FEW).failures
    seen, info = bare.reset(seed=1)
    agent = load(tmp_path / "dict.zip")
    agent.begin(env)
    expected = int(model.predict(seen, deterministic=True)[0])
    assert agent.act(env.reset(seed=1)[0], info) == expected


def test_a_model_with_a_memory_forgets_between_episodes(tmp_path: Path) -> None:
    env = plain_envs.make(SELECTION[0], **JOBS, observation="flat")
    model = RecurrentPPO("MlpLstmPolicy", env, n_steps=8, batch_size=8, seed=0, device="cpu")
    model.save(tmp_path / "model.zip")
    save_spec(env, tmp_path / "model.zip")
    agent = load(tmp_path / "model.zip")
    played = []
    for _ in range(2):
        observation, info = env.reset(seed=1)
        agent.begin(env)
        state, first, actions = None, np.array([True]), []
        for _ in range(8):
            expected, state = model.predict(observation, state, first, deterministic=True)
            actions.append(agent.act(observation, info))
            assert actions[-1] == int(expected)
            first = np.array([False])
            observation, _, ended, _, info = env.step(actions[-1])
            if ended:
                break
        played.append(actions)
    assert played[0] == played[1]


def test_the_environment_is_that_of_the_training(tmp_path: Path) -> None:
    model, _ = made("maskable")
    model.save(tmp_path / "model")
    envs = HpcVecEnv(SELECTION[0], 2, **JOBS, **EMPTY, **SELECTION[1], reward="wait")
    spec = json.loads(save_spec(VecMonitor(envs), tmp_path / "model.zip").read_text())
    assert spec.keys() == {"format", "env_id", "env_options", "trained_on"}
    jobs = load_workload(WORKLOAD)
    submit = jobs.submit_time[: jobs.row_at(0.5)]
    seen = {
        "workload": "lublin-64 seed 0 load 3", "part": "train",
        "first_s": submit[0], "last_s": submit[-1],
    }  # fmt: skip
    assert spec["trained_on"] == [seen]
    assert spec["env_options"] == {
        "backfill": "easy", "backfill_order": "spf", "estimate": "requested",
        "correction": "requested", "passes": "per-timestamp", "window": 8,
        "features": list(envs.env.options.names), "observation": "dict", "reservation": "revised",
        "reward": "wait", "warmup": None, **EMPTY,
    }  # fmt: skip
    board = evaluate([tmp_path / "model.zip", "saf"], WORKLOAD, **FEW)
    assert board.schedulers["saf"].backfill_order == "spf"  # as the model's environment has it
    # one made by Gymnasium, alone or as Stable-Baselines3 wraps it, says the same
    alone = plain_envs.make(SELECTION[0], **JOBS, **SELECTION[1], reward="wait")
    for env in (alone, DummyVecEnv([lambda: alone]), model.get_env()):
        again = json.loads(save_spec(env, tmp_path / "other").read_text())["env_options"]
        assert spec["env_options"].items() <= {**again, "reward": "wait"}.items()


def test_a_model_is_evaluated_in_the_version_that_it_was_trained_in(tmp_path: Path) -> None:
    around = {"start": "warm", "arrivals": "continue", "horizon": "1d"}
    everything = {**JOBS, **around, "part": "all"}
    env = plain_envs.make("hpcgym/JobSelection-v2", **everything, observation="flat")
    model = PPO("MlpPolicy", env, **ON, batch_size=8)
    model.save(tmp_path / "model")
    save_spec(env, tmp_path / "model")
    with pytest.warns(TrainingWarning, match="part='all' on lublin-64 seed 0 load 3, and has"):
        board = evaluate(tmp_path / "model.zip", WORKLOAD, **{**FEW, "n": 1})
    assert board.around == {**around, "warmup": None}
    assert not board.failures


def test_rewards_may_be_scaled(tmp_path: Path) -> None:
    envs = HpcVecEnv(SELECTION[0], 2, **plain("JobSelection", JOBS))
    same = save_spec(envs, tmp_path / "plain").read_text()
    scaled = VecNormalize(VecMonitor(envs), norm_obs=False)
    assert save_spec(scaled, tmp_path / "scaled").read_text() == same
    relative = RelativeRewards(envs)
    assert save_spec(relative, tmp_path / "relative").read_text() == same
    both = plain_envs.make_vec(SELECTION[0], num_envs=2, **JOBS)
    for wrapper in (vector.NormalizeReward, vector.RecordEpisodeStatistics):
        both = wrapper(both)
    both = vector.TransformReward(both, lambda reward: reward / 2)
    assert save_spec(both, tmp_path / "vector").read_text() == same


def of_ppo(folder: Path) -> Path:
    """The file of a model, without its environment."""
    model, _ = made("ppo")
    model.save(folder / "model.zip")
    return folder / "model.zip"


def damaged(path: Path, member: str) -> Path:
    """Write a model of which one member is damaged; return where it is."""
    other = path.with_name("damaged.zip")
    with zipfile.ZipFile(path) as whole, zipfile.ZipFile(other, "w") as broken:
        for name in whole.namelist():
            broken.writestr(name, b"no" if name == member else whole.read(name))
    return other


def test_a_model_without_its_environment(tmp_path: Path) -> None:
    path = of_ppo(tmp_path)
    options = {"window": 8, **WEIGHTS[1]}
    board = evaluate(path, WORKLOAD, env=WEIGHTS[0], env_options=options, **FEW)
    assert not board.failures


@pytest.mark.slow
def test_a_jobs_sharing_environment_keeps_its_machine(tmp_path: Path) -> None:
    jobs = {"workload": "codes:jobs=300,processes=96,processors=768", "jobs": 40}
    env = plain_envs.make("hpcgym/CoSchedule-v1", **jobs, cluster="16x2x24", window=8)
    model = MaskablePPO("MultiInputPolicy", env, n_steps=8, batch_size=8, device="cpu")
    model.save(tmp_path / "model")
    save_spec(env, tmp_path / "model")
    options = json.loads((tmp_path / "model.env.json").read_text())["env_options"]
    assert options == {"cluster": "16x2x24", "window": 8}
    board = evaluate(str(tmp_path / "model.zip"), jobs["workload"], **{**FEW, "n": 2})
    assert not board.failures
    assert "filler-co" in board.by_slice


def test_older_files_say_one_log_or_none(tmp_path: Path) -> None:
    path, spec = tmp_path / "model.zip", {"format": 1, "env_id": "x", "env_options": {}}
    seen = {"workload": "pool", "part": "train", "first_s": 0, "last_s": 90}
    for older, logs in (({}, []), ({"trained_on": {}}, []), ({"trained_on": seen}, [seen])):
        (tmp_path / "model.env.json").write_text(json.dumps(spec | older))
        assert read_spec(path)["trained_on"] == logs


test_mistakes = mistakes_of(globals())
