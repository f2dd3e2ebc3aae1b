"""Recording what policies do, and cloning them."""

from __future__ import annotations

import gymnasium
import numpy as np
import pytest
import torch

import hpcgym
from hpcgym.agents import behaviour_cloning as cloning
from hpcgym.agents import load, maskable_ppo
from hpcgym.agents.recordings import load_recording, record

pytestmark = pytest.mark.slow

WORKLOAD = "lublin:jobs=600,processors=32,seed=3,load=1.0"
SMALL = {"jobs": 40, "env_options": {"window": 32, "backfill": "none"}}


@pytest.fixture(scope="module")
def recording():
    return record("sjf", WORKLOAD, record_episodes=6, **SMALL)


@pytest.fixture(scope="module")
def clone(recording, tmp_path_factory):
    """A clone and its file."""
    path = tmp_path_factory.mktemp("agents") / "clone.pt"
    return cloning.train(recording=recording, steps=400, output=path), path


def weights(agent) -> dict[str, np.ndarray]:
    return {name: value.numpy().copy() for name, value in agent.network.state_dict().items()}


def same(one, other) -> bool:
    return all(np.array_equal(one[name], other[name]) for name in one)


def test_a_recording_is_what_happened(recording):
    n = len(recording.actions)
    assert recording.observations["jobs"].shape == (n, 32, 8)
    assert recording.terminations.sum() == len(recording.about["episodes"]) == 6
    assert recording.about["policy"] == "sjf"
    # shortest first, in what the observation shows
    requested = recording.observations["jobs"][:, :, 1]
    hidden = recording.observations["mask"] == 0
    shortest = np.where(hidden, np.inf, requested).min(axis=1)
    assert np.array_equal(requested[np.arange(n), recording.actions], shortest)
    # the rewards of an episode add up to what the same schedule has
    jobs = hpcgym.load_workload(WORKLOAD)
    start, stop = map(int, recording.about["episodes"][0].removeprefix("rows ").split(":"))
    result = hpcgym.simulate(jobs.take(slice(start, stop)), policy="sjf", backfill="none")
    first = int(np.flatnonzero(recording.terminations)[0])
    mean_bsld = -recording.rewards[: first + 1].sum()
    assert mean_bsld == pytest.approx(result.metrics["mean_bsld"])


def test_a_recording_is_written_and_read(recording, tmp_path):
    path = tmp_path / "new" / "sjf.npz"
    again = record("sjf", WORKLOAD, path, record_episodes=6, **SMALL)
    read = load_recording(path)
    for one in (again, read):
        assert one.about == recording.about
        assert np.array_equal(one.actions, recording.actions)
        assert np.array_equal(one.rewards, recording.rewards)
        for name, field in recording.observations.items():
            assert np.array_equal(one.observations[name], field)


@pytest.mark.parametrize("env_id", ["hpcgym/QueueOrdering-v0", "hpcgym/MixedPolicy-v0"])
@pytest.mark.parametrize("observation", ["dict", "flat"])
def test_any_environment_can_be_recorded(env_id, observation, tmp_path):
    path = tmp_path / "saf.npz"
    options = {"window": 16, "observation": observation}
    done = record(
        "saf", WORKLOAD, path, env_id=env_id, jobs=30, record_episodes=2, env_options=options
    )
    assert done.actions.ndim == 2
    assert len(done.actions) == len(done.rewards) == len(done.terminations)
    fields = {"observation"} if observation == "flat" else {"jobs", "mask"}
    assert fields <= set(load_recording(path).observations)
    with pytest.raises(hpcgym.HpcgymError, match="can be learned from"):
        cloning.train(recording=path, steps=1)


def test_rules_of_a_name_are_those_of_the_recording():
    done = record("easy-sjbf", WORKLOAD, jobs=20, record_episodes=1)
    assert done.about["env_options"]["backfill_order"] == "sjbf"


def test_a_clone_does_what_the_policy_does(clone):
    agent, _ = clone
    fresh = record("sjf", WORKLOAD, record_episodes=4, seed=9, part="test", **SMALL)
    chosen = []
    for k in range(len(fresh.actions)):
        observation = {name: field[k] for name, field in fresh.observations.items()}
        chosen.append(agent.act(observation))
    assert np.mean(np.array(chosen) == fresh.actions) > 0.85


def test_it_is_saved_loaded_and_the_same_for_the_same_seed(clone, recording):
    agent, path = clone
    loaded = load(path)
    assert (loaded.name, loaded.env_options["backfill"]) == ("clone", "none")
    assert same(weights(loaded), weights(agent))
    assert same(weights(cloning.train(recording=recording, steps=400)), weights(agent))
    assert not same(weights(cloning.train(recording=recording, steps=400, seed=1)), weights(agent))


def test_training_goes_on_from_a_file(clone, recording, tmp_path):
    agent, path = clone
    output = tmp_path / "more.pt"
    lines: list[str] = []
    more = cloning.train(
        recording=recording, steps=10, resume=path, output=output, tensorboard=tmp_path,
        show=lines.append,
    )  # fmt: skip
    assert not same(weights(more), weights(agent))
    assert torch.load(output, weights_only=True)["steps"] == 410
    assert "the same choice" in lines[-1]
    assert list(tmp_path.rglob("events.out.tfevents*"))


def test_maskable_ppo_starts_from_a_clone(clone):
    agent, path = clone
    small = {"jobs": 20, "steps": 32, "n_envs": 2, "n_steps": 16, "batch_size": 16}
    still = maskable_ppo.train(WORKLOAD, resume=path, learning_rate=0.0, **small)
    assert still.name == "maskable-ppo"
    assert still.env_options.items() >= SMALL["env_options"].items()
    scores = {name: value for name, value in weights(agent).items() if "value" not in name}
    assert same(scores, weights(still))


def test_a_policy_of_ones_own_is_recorded():
    class First:
        def act(self, observation, info):
            return 0

    done = record(First(), WORKLOAD, record_episodes=1, **SMALL)
    assert done.about["policy"] == "First"
    assert set(done.actions.tolist()) == {0}

    def first(view):
        return view.in_order(range(len(view.job)))

    done = record(first, WORKLOAD, record_episodes=1, **SMALL)
    assert done.about["policy"] == "first"
    assert (done.orders[:, 0] >= 0).all()


def test_what_does_not_fit_is_said(tmp_path, clone):
    nonsense = tmp_path / "nonsense.npz"
    nonsense.write_text("nothing")
    for arguments, message in (
        ({"recording": tmp_path / "missing.npz"}, "no such file"),
        ({"recording": nonsense}, "is no archive of arrays"),
        ({}, "give either a workload to record on or a recording"),
        ({"workload": WORKLOAD, "recording": nonsense}, "give either a workload"),
    ):
        with pytest.raises(hpcgym.HpcgymError, match=message):
            cloning.train(steps=1, **arguments)
    with pytest.raises(hpcgym.HpcgymError, match="record_episodes"):
        record("sjf", WORKLOAD, record_episodes=0)
    with pytest.raises(hpcgym.HpcgymError, match="unknown baseline"):
        record("sfj", WORKLOAD)
    assert gymnasium.make(clone[0].env_id) is not None


def test_an_expert_leaves_its_orders():
    """Of a dispatcher by name: who is served first, and who after them; and no bound."""
    done = record("sjf-list", WORKLOAD, jobs=40, record_episodes=2)
    assert done.about["env_options"]["backfill"] == "none"
    visible = done.observations["mask"].sum(axis=1).astype(int)
    assert done.orders.shape == (len(done.actions), visible.max())
    assert np.array_equal(done.orders[:, 0], done.actions)
    assert np.array_equal((done.orders >= 0).sum(axis=1), visible)
    assert np.isnan(done.bounds).all()
    agent = cloning.train(recording=done, steps=5)
    assert agent.env_options["backfill"] == "none"
