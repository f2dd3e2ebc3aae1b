"""Cloning what policies do."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from maskable_ppo import MaskablePpo
from mistakes import mistakes_of
from plain_envs import plain

from hpcgym.agents import behaviour_cloning as cloning
from hpcgym.agents import load
from hpcgym.agents.behaviour_cloning import Clone
from hpcgym.agents.practice import maker
from hpcgym.agents.recordings import Recording, record

pytestmark = pytest.mark.slow

WORKLOAD = "lublin:jobs=600,processors=32,seed=3,load=1.0"
_OPTIONS = plain("JobSelection", {"window": 32, "backfill": "none"})
SMALL: dict[str, Any] = {
    "jobs": 40,
    "env_options": {name: value for name, value in _OPTIONS.items() if name != "part"},
}


@pytest.fixture(scope="module")
def recording() -> Recording:
    return record("sjf", WORKLOAD, record_episodes=6, **SMALL)


@pytest.fixture(scope="module")
def clone(recording: Recording) -> Clone:
    return cloning.train(recording, steps=800)


def weights(agent: Any) -> torch.Tensor:
    return torch.cat([weight.flatten() for weight in agent.network.state_dict().values()])


def test_it_does_what_the_policy_does(clone: Clone) -> None:
    fresh = record("sjf", WORKLOAD, record_episodes=4, seed=9, part="test", **SMALL)
    chosen = [
        clone.act({name: field[k] for name, field in fresh.observations.items()})
        for k in range(len(fresh.actions))
    ]
    assert np.mean(np.array(chosen) == fresh.actions) > 0.85


def test_it_is_the_same_for_the_same_seed_and_kept(
    clone: Clone, recording: Recording, tmp_path: Path
) -> None:
    assert torch.equal(weights(cloning.train(recording, steps=800)), weights(clone))
    assert not torch.equal(weights(cloning.train(recording, steps=800, seed=1)), weights(clone))
    clone.save(tmp_path / "clone.pt")
    kept = load(tmp_path / "clone.pt")
    assert (kept.name, kept.env_options["backfill"]) == ("clone", "none")
    assert torch.equal(weights(kept), weights(clone))


def test_a_data_set_teaches_the_same(recording: Recording, tmp_path: Path) -> None:
    pytest.importorskip("minari")
    record("sjf", WORKLOAD, tmp_path / "sjf-v0", record_episodes=6, **SMALL)
    agent, other = (cloning.train(each, steps=5) for each in (recording, tmp_path / "sjf-v0"))
    assert torch.equal(weights(agent), weights(other))


def test_a_log_is_told(recording: Recording) -> None:
    log: list[tuple[int, Any]] = []
    cloning.train(recording, steps=45, log=lambda *steps_and_values: log.append(steps_and_values))
    assert [steps for steps, _ in log] == [20, 40, 45]
    assert log[0][1]["train/loss"] > log[-1][1]["train/loss"] > 0
    assert 0 < log[-1][1]["train/agreement"] <= 1
    assert log[-1][1]["train/learning_rate"] == pytest.approx(3e-3 / 45)  # it falls to 0


def test_maskable_ppo_begins_with_a_clone(clone: Clone, tmp_path: Path) -> None:
    clone.save(tmp_path / "clone.pt")
    make = maker(WORKLOAD, "hpcgym/JobSelection-v2", {"jobs": 20, "window": 16})
    agent = MaskablePpo(resume=str(tmp_path / "clone.pt"), learning_rate=0.0, n_envs=2, n_steps=16)
    still = agent.train(make, 0, 32)
    assert still.name == "maskable-ppo"
    assert torch.equal(weights(still), weights(clone))


def test_a_cut_episode_is_learned_from_too() -> None:
    """Of v1, with a horizon of two hours, in which not all jobs can have ended."""
    options = {"window": 16, "horizon": "2h"}
    done = record(
        "saf", WORKLOAD, env_id="hpcgym/JobSelection-v2", jobs=30, record_episodes=2,
        env_options=options,
    )  # fmt: skip
    assert done.truncations.sum() == 2
    assert not done.terminations.any()
    assert done.about["env_options"]["skip_forced"] is True
    assert cloning.train(done, steps=3).env_options["horizon"] == "2h"


test_mistakes = mistakes_of(globals(), math, fixtures=("recording",))
