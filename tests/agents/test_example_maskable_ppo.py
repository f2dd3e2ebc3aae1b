"""The example with MaskablePPO on JobSelection: the network, and its training."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import plain_envs
import pytest
import torch
from maskable_ppo import MaskablePpo, RelativeRewards
from mistakes import mistakes_of
from plain_envs import plain

import hpcgym
from hpcgym.agents import load
from hpcgym.agents.behaviour_cloning import MaskedJobNetwork, both_scales
from hpcgym.agents.practice import maker
from hpcgym.agents.xnes import Xnes
from hpcgym.envs.core.observation import CLUSTER_SIZE, QUEUE_SIZE, TIME_SIZE
from hpcgym.envs.sb3 import HpcVecEnv
from hpcgym.errors import HpcgymError

WORKLOAD = "lublin:jobs=600,processors=32,seed=3,load=1.0"
SMALL: dict[str, Any] = {
    "n_envs": 2, "n_steps": 32, "batch_size": 32, "n_epochs": 2, "width": 8
}  # fmt: skip
OPTIONS = {"jobs": 20, "window": 16, "backfill": "none"}


def some_observation(rng: Any, window: int = 12, visible: int = 7) -> dict[str, torch.Tensor]:
    """Return an observation as tensors, with jobs in the first places."""
    jobs = np.zeros((1, window, 8), np.float32)
    jobs[0, :visible] = rng.random((visible, 8))
    parts = {"cluster": CLUSTER_SIZE, "queue": QUEUE_SIZE, "time": TIME_SIZE}
    fields = {name: rng.random((1, size)).astype(np.float32) for name, size in parts.items()}
    mask = (np.arange(window) < visible)[None].astype(np.float32)
    return {name: torch.as_tensor(v) for name, v in {**fields, "jobs": jobs, "mask": mask}.items()}


def trained_network() -> MaskedJobNetwork:
    """Return a network whose last layer is not near 0, as after training."""
    torch.manual_seed(0)
    network = MaskedJobNetwork(8, CLUSTER_SIZE + QUEUE_SIZE + TIME_SIZE, 16)
    torch.nn.init.normal_(network.score[-1].weight)
    return network


def make_of(**options: Any) -> Any:
    return maker(WORKLOAD, "hpcgym/JobSelection-v2", plain("JobSelection", OPTIONS | options))


def trained(seed: int = 1, log: Any = None, **settings: Any) -> MaskablePpo:
    return MaskablePpo(**{**SMALL, **settings}).train(make_of(), seed, 128, log)


def weights(agent: Any) -> torch.Tensor:
    return torch.cat([weight.flatten() for weight in agent.network.state_dict().values()])


def play(agent: Any, **options: Any) -> list[int]:
    """Return the actions of an episode, each possible."""
    given = {**agent.env_options, **options}
    env = plain_envs.make(agent.env_id, workload=WORKLOAD, jobs=20, part="test", **given)
    observation, info = env.reset(seed=0)
    agent.begin(env)
    actions, over = [], False
    while not over:
        actions.append(agent.act(observation, info))
        assert info["action_mask"][actions[-1]] == 1
        observation, _, over, _, info = env.step(actions[-1])
    return actions


@pytest.fixture(scope="module")
def agent() -> MaskablePpo:
    return trained()


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
    seen = some_observation(rng)
    other = {**seen, "jobs": seen["jobs"].clone()}
    other["jobs"][0, 7:] = 0.7
    empty = some_observation(rng, visible=0)
    batch = {name: torch.cat([part[name] for part in (other, empty)]) for name in seen}
    with torch.no_grad():
        for a, b in zip(network(seen), network(other), strict=True):
            assert torch.equal(a, b)
        together, values = network(batch)  # whatever stands beside an observation
        assert torch.allclose(together[0], network(seen)[0][0], atol=1e-6)
        assert torch.isfinite(values).all()


def test_both_scales_keep_the_order() -> None:
    hours = torch.tensor([[0.001, 0.5, 1.0, 30.0]])
    features = hours / (hours + 1)
    both = both_scales(features)
    assert torch.equal(both[:, :4], features)
    assert torch.allclose(both[:, 4:], torch.log(hours) / 4, atol=1e-3)
    assert torch.isfinite(both_scales(torch.tensor([[0.0, 1.0, -1.0]]))).all()


@pytest.mark.parametrize("power", [0.0, 0.5, 1.0])
def test_rewards_relative_to_a_reference(power: float) -> None:
    """The rewards of an episode add up to its mean BSLD over a power of the reference's.

    Two logs have slices of the same names.
    """
    jobs = hpcgym.load_workload(WORKLOAD)
    logs = [jobs, jobs.with_columns(run_time=jobs.run_time // 2 + 1)]
    given = plain("JobSelection", {"workload": logs, "jobs": 20, "backfill": "none"})
    own = HpcVecEnv("hpcgym/JobSelection-v2", 2, **given)
    envs = RelativeRewards(own, "saf", power)
    envs.seed(3)
    own.set_options({"start": 30, "jobs": 20})  # the first slice of both
    envs.reset()
    sums, ended = np.zeros(2), 0
    for _ in range(80):
        names = list(own.env.simulations.names)
        _, rewards, dones, infos = envs.step(np.zeros(2, np.int64))
        sums += rewards
        for e in np.flatnonzero(dones):
            ended += 1
            episodes = own.env.simulations.world(e).episodes
            jobs = episodes.workload_of(episodes.find({"slice": names[e]}))
            saf = hpcgym.simulate(jobs, policy="saf", backfill="none").metrics["mean_bsld"]
            expected = -infos[e]["episode_mean_bsld"] / saf**power
            assert sums[e] == pytest.approx(expected, rel=1e-4)
            sums[e] = 0.0
    assert ended > 2


def test_the_seed_decides_and_something_is_learned(agent: MaskablePpo) -> None:
    log: list[tuple[int, Any]] = []
    assert torch.equal(
        weights(trained(log=lambda *steps_and_values: log.append(steps_and_values))), weights(agent)
    )
    assert not torch.equal(weights(trained(seed=2)), weights(agent))
    assert not torch.equal(weights(trained(learning_rate=0.0)), weights(agent))
    assert torch.get_num_threads() == 1
    assert [steps for steps, _ in log] == [64, 128]
    assert log[-1][1]["train/mean_bsld"] >= 1
    assert log[-1][1]["train/learning_rate"] == pytest.approx(0.0005)  # it falls to 0


def test_it_is_saved_and_loaded(agent: MaskablePpo, tmp_path: Path) -> None:
    agent.save(tmp_path / "new" / "agent.pt")
    kept = load(tmp_path / "new" / "agent.pt")
    assert (kept.name, kept.env_id) == ("clone", "hpcgym/JobSelection-v2")
    assert kept.env_options.items() >= {"window": 16, "backfill": "none"}.items()
    assert kept.env_options["reservation"] == "revised"
    assert len(kept.env_options["features"]) == 14
    assert play(kept) == play(agent) == play(kept)
    with torch.no_grad():  # what all scores have in common decides nothing
        kept.network.score[-1].bias -= 9.0
    assert play(kept) == play(agent)
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["agent.pt"]


def test_training_goes_on_from_a_file(agent: MaskablePpo, tmp_path: Path) -> None:
    """With its width, and with what it knows."""
    agent.save(path := tmp_path / "agent.pt")
    still = trained(resume=str(path), learning_rate=0.0, width=3)
    assert torch.equal(weights(still), weights(agent))
    assert not torch.equal(weights(trained(resume=str(path))), weights(agent))


# --- A training that fails ------------------------------------------------------------------------


def stop_at(monkeypatch: pytest.MonkeyPatch, updates: int, error: BaseException) -> None:
    """Let optimisers raise an error in place of an update, after some."""
    step, count = torch.optim.Adam.step, [0]

    def counted(self: Any, *arguments: Any, **more: Any) -> Any:
        count[0] += 1
        if count[0] > updates:
            raise error
        return step(self, *arguments, **more)

    monkeypatch.setattr(torch.optim.Adam, "step", counted)


@pytest.mark.parametrize("validates", [True, False])
def test_a_training_without_numbers_is_said(validates: bool) -> None:
    """Also where some library has told torch not to look at what distributions are given."""
    before = torch.distributions.Distribution._validate_args
    torch.distributions.Distribution.set_default_validate_args(validates)
    try:
        with pytest.raises(HpcgymError, match="a lower learning_rate may help"):
            trained(learning_rate=math.inf)
    finally:
        torch.distributions.Distribution.set_default_validate_args(before)


def test_a_mistake_in_a_value_stays_what_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only a network without numbers explains that a value was refused."""
    stop_at(monkeypatch, 1, ValueError("other"))
    with pytest.raises(ValueError, match="other"):
        trained()


test_mistakes = mistakes_of(globals(), Xnes, fixtures=("agent",))
