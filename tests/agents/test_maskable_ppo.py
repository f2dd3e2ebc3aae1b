"""MaskablePPO on JobSelection: the network, training, files."""

from __future__ import annotations

import gymnasium
import numpy as np
import pytest
import torch

import hpcgym
from hpcgym.agents import load, maskable_ppo
from hpcgym.agents.maskable_ppo import JobAgent, JobNetwork
from hpcgym.envs.core.observation import CLUSTER_SIZE, QUEUE_SIZE, TIME_SIZE

WORKLOAD = "lublin:jobs=600,processors=32,seed=3,load=1.0"
SMALL = {
    "jobs": 20,
    "steps": 128,
    "n_envs": 2,
    "n_steps": 32,
    "batch_size": 32,
    "n_epochs": 2,
    "width": 8,
    "env_options": {"window": 16, "backfill": "none"},
}


def some_observation(rng, window: int = 12, visible: int = 7):
    """Return an observation as tensors, with jobs in the first places."""
    jobs = np.zeros((1, window, 8), np.float32)
    jobs[0, :visible] = rng.random((visible, 8))
    parts = {"cluster": CLUSTER_SIZE, "queue": QUEUE_SIZE, "time": TIME_SIZE}
    fields = {name: rng.random((1, size)).astype(np.float32) for name, size in parts.items()}
    mask = (np.arange(window) < visible)[None].astype(np.float32)
    return {name: torch.as_tensor(v) for name, v in {**fields, "jobs": jobs, "mask": mask}.items()}


def trained_network() -> JobNetwork:
    """Return a network whose last layer is not near 0, as after training."""
    torch.manual_seed(0)
    network = JobNetwork(8, CLUSTER_SIZE + QUEUE_SIZE + TIME_SIZE, 16)
    torch.nn.init.normal_(network.score[-1].weight)
    return network


def weights(agent) -> dict[str, np.ndarray]:
    return {name: value.numpy().copy() for name, value in agent.network.state_dict().items()}


def same(one, other) -> bool:
    return all(np.array_equal(one[name], other[name]) for name in one)


def play(agent, **options) -> list[int]:
    """Return the actions of an episode."""
    env = gymnasium.make(
        agent.env_id, workload=WORKLOAD, jobs=20, part="test", **{**agent.env_options, **options}
    )
    observation, info = env.reset(seed=0)
    agent.begin(env.unwrapped)
    actions, over = [], False
    while not over:
        actions.append(agent.act(observation, info))
        assert info["action_mask"][actions[-1]] == 1
        observation, _, over, _, info = env.step(actions[-1])
    return actions


@pytest.fixture(scope="module")
def agent(tmp_path_factory):
    """An agent that was trained for a moment, and its file."""
    path = tmp_path_factory.mktemp("agents") / "agent.pt"
    return maskable_ppo.train(WORKLOAD, seed=1, output=path, **SMALL), path


def test_permuting_the_jobs_permutes_the_scores_and_leaves_the_value():
    rng, network = np.random.default_rng(0), trained_network()
    before = some_observation(rng)
    order = torch.as_tensor(rng.permutation(12))  # places without a job move, too
    after = {**before, "jobs": before["jobs"][:, order], "mask": before["mask"][:, order]}
    with torch.no_grad():
        scores, value = network(before)
        moved, same_value = network(after)
    visible = before["mask"][0] > 0.5
    assert scores[0][visible].std() > 0.01
    assert torch.allclose(moved, scores[:, order], atol=1e-6)
    assert torch.allclose(value, same_value, atol=1e-5)


def test_places_without_a_job_change_nothing():
    rng, network = np.random.default_rng(1), trained_network()
    one = some_observation(rng)
    other = {**one, "jobs": one["jobs"].clone()}
    other["jobs"][0, 7:] = 0.7
    empty = some_observation(rng, visible=0)
    batch = {name: torch.cat([part[name] for part in (other, empty)]) for name in one}
    with torch.no_grad():
        for a, b in zip(network(one), network(other), strict=True):
            assert torch.equal(a, b)
        together, values = network(batch)  # whatever stands beside an observation
        assert torch.allclose(together[0], network(one)[0][0], atol=1e-6)
        assert torch.isfinite(values).all()


def test_the_same_seed_trains_the_same_policy(agent):
    again = maskable_ppo.train(WORKLOAD, seed=1, **SMALL)
    other = maskable_ppo.train(WORKLOAD, seed=2, **SMALL)
    assert same(weights(agent[0]), weights(again))
    assert not same(weights(agent[0]), weights(other))


def test_training_changes_the_network_and_not_the_threads(agent):
    untrained = maskable_ppo.train(WORKLOAD, seed=1, **{**SMALL, "learning_rate": 0.0})
    assert not same(weights(agent[0]), weights(untrained))
    assert torch.get_num_threads() == 1


def test_it_is_saved_and_loaded(agent):
    trained, path = agent
    loaded = load(path)
    assert isinstance(loaded, JobAgent)
    assert (loaded.name, loaded.env_id) == ("maskable-ppo", "hpcgym/JobSelection-v0")
    assert loaded.env_options.items() >= {"window": 16, "backfill": "none"}.items()
    assert loaded.env_options["reservation"] == "revised"
    assert len(loaded.env_options["features"]) == 8
    assert play(loaded) == play(trained) == play(loaded)


def test_training_goes_on_from_a_file(agent, tmp_path):
    trained, path = agent
    output = tmp_path / "more.pt"
    kept = {name: value for name, value in SMALL.items() if name not in ("env_options", "width")}
    more = maskable_ppo.train(WORKLOAD, resume=path, output=output, seed=3, **kept)
    assert more.env_options == trained.env_options
    assert not same(weights(more), weights(trained))
    contents = torch.load(output, weights_only=True)
    assert contents["steps"] == 256
    still = maskable_ppo.train(WORKLOAD, resume=path, **{**kept, "learning_rate": 0.0})
    assert same(weights(still), weights(trained))


def test_checkpoints_and_logs_and_lines(tmp_path):
    lines: list[str] = []
    output, logs = tmp_path / "new" / "agent.pt", tmp_path / "logs"
    maskable_ppo.train(
        WORKLOAD, output=output, tensorboard=logs, checkpoint_s=0.0, show=lines.append, **SMALL
    )
    assert load(output).name == "maskable-ppo"
    assert list(logs.rglob("events.out.tfevents*"))
    assert [p.name for p in output.parent.iterdir()] == ["agent.pt"]
    assert "128 steps" in lines[-1]
    assert "mean BSLD" in lines[-1]


def test_minutes_end_it():
    agent = maskable_ppo.train(WORKLOAD, **{**SMALL, "steps": None, "minutes": 0.02})
    assert play(agent)


def test_other_environments_are_refused(agent):
    trained, _ = agent
    for env_id, options, message in (
        ("hpcgym/QueueOrdering-v0", {}, "acts in hpcgym/JobSelection-v0"),
        ("hpcgym/JobSelection-v0", {"observation": "flat"}, "observation='dict'"),
        ("hpcgym/JobSelection-v0", {"features": ["wait"]}, "knows 8 features"),
    ):
        env = gymnasium.make(env_id, workload=WORKLOAD, jobs=20, **options)
        with pytest.raises(hpcgym.HpcgymError, match=message):
            trained.begin(env)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"steps": None}, "give steps="),
        ({"steps": 0}, "steps must be at least 1"),
        ({"steps": None, "minutes": 0.0}, "minutes must be more than 0"),
        ({"env_options": {"features": {"own": lambda jobs: jobs.submit * 0}}}, "plain values"),
        ({"resume": "/nothing/here.pt"}, "/nothing/here.pt"),
    ],
)
def test_what_cannot_be_trained_is_said(arguments, message):
    with pytest.raises(hpcgym.HpcgymError, match=message):
        maskable_ppo.train(WORKLOAD, **{**SMALL, **arguments})


def test_a_file_of_another_shape_is_refused(agent):
    options = {"features": ["wait", "requested"]}
    with pytest.raises(hpcgym.HpcgymError, match="same actions and features"):
        maskable_ppo.train(WORKLOAD, resume=agent[1], **{**SMALL, "env_options": options})
