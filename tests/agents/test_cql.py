"""CQL on recordings: what is backed up by what, what is learned, files."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from drawing import given
from drawing import strategies as st

import hpcgym
from hpcgym.agents import behaviour_cloning, cql, load, maskable_ppo
from hpcgym.agents.recorder import record
from hpcgym.agents.recordings import Recording
from hpcgym.evaluation import evaluate

WORKLOAD = "lublin:jobs=600,processors=32,seed=3,load=1.0"
SMALL = {"jobs": 30, "env_options": {"window": 16, "backfill": "none"}}


@pytest.fixture(scope="module")
def recording():
    return record(["random", "fcfs", "sjf"], WORKLOAD, record_episodes=4, **SMALL)


def of_rewards(rewards, ends, cut, names=None) -> Recording:
    """A recording of which only rewards and ends count."""
    n = len(rewards)
    over = np.isin(np.arange(n), ends)
    truncated = over & np.isin(np.arange(n), [e for e, c in zip(ends, cut, strict=True) if c])
    about = {"episodes": names or [str(k) for k in range(len(ends))]}
    return Recording(
        {}, np.zeros(n, int), np.array(rewards, float), over & ~truncated, truncated, {},
        np.zeros((n, 0), np.int32), np.zeros(n), about,
    )  # fmt: skip


def slow_backups(recording, gamma, steps):
    """The same, step by step through each episode."""
    n, found = len(recording.rewards), []
    for place in range(n):
        total, k, row = 0.0, 0, place
        while True:
            total += gamma**k * recording.rewards[row]
            k += 1
            if recording.terminations[row]:
                episode = int(np.sum((recording.terminations | recording.truncations)[:row]))
                found.append((total, n + episode, 0.0))
                break
            if recording.truncations[row]:
                episode = int(np.sum((recording.terminations | recording.truncations)[:row]))
                found.append((total, n + episode, gamma**k))
                break
            row += 1
            if k == steps:
                found.append((total, row, gamma**k))
                break
    return found


@given(st.data())
def test_backups_are_those_of_the_slow_one(data):
    lengths = data.draw(st.lists(st.integers(1, 6), min_size=1, max_size=5))
    ends = (np.cumsum(lengths) - 1).tolist()
    cut = data.draw(st.lists(st.booleans(), min_size=len(ends), max_size=len(ends)))
    numbers = st.floats(-5, 0)
    rewards = data.draw(st.lists(numbers, min_size=sum(lengths), max_size=sum(lengths)))
    made = of_rewards(rewards, ends, cut)
    gamma, steps = data.draw(st.sampled_from([0.5, 0.9, 1.0])), data.draw(st.integers(1, 8))
    found = cql.backups(made, made.rewards, gamma, steps)
    wanted = slow_backups(made, gamma, steps)
    assert found.following.tolist() == [one[1] for one in wanted]
    np.testing.assert_allclose(found.rewards, [one[0] for one in wanted], atol=1e-12)
    np.testing.assert_allclose(found.discounts, [one[2] for one in wanted])


def test_rewards_are_divided_by_what_is_usual_on_the_same_jobs():
    """Two policies on week 1 with returns -2 and -6, one on week 2 with -9: by 4 and 9."""
    names = ["week 1", "week 2", "week 1"]
    made = of_rewards([-1, -1, -9, -2, -4], [1, 2, 4], [False] * 3, names)
    assert cql.scaled_rewards(made, 1.0).tolist() == [-0.25, -0.25, -1.0, -0.5, -1.0]
    assert cql.scaled_rewards(made, 0.5).tolist() == [-0.5, -0.5, -3.0, -1.0, -2.0]
    assert cql.scaled_rewards(made, 0.0).tolist() == made.rewards.tolist()
    unnamed = of_rewards([-1, -1, -9], [1, 2], [False] * 2, ["", ""])
    assert cql.scaled_rewards(unnamed, 1.0).tolist() == [-0.5, -0.5, -1.0]
    nothing = of_rewards([0, 0], [1], [False])
    assert cql.scaled_rewards(nothing, 1.0).tolist() == [0, 0]


@pytest.mark.slow
def test_it_learns_which_recorded_choices_were_good():
    """Of choices at random a clone learns nothing; with rewards they tell that short is best."""
    chance = record("random", WORKLOAD, record_episodes=12, **SMALL)
    fields = {n: torch.as_tensor(f).float() for n, f in chance.observations.items()}
    requested = np.where(
        chance.observations["mask"] > 0, chance.observations["jobs"][:, :, 1], np.inf
    )
    shortest = requested.min(axis=1)
    rows = np.arange(len(requested))
    wrong = requested[rows, chance.actions] > shortest
    made = chance._replace(rewards=-wrong.astype(float))
    many = chance.observations["mask"].sum(axis=1) > 1

    def right(agent) -> float:
        with torch.no_grad():
            scores = agent.network.forward_actor(fields)
        scores[fields["mask"] < 0.5] = -1e8
        return float((requested[rows, scores.argmax(1).numpy()] == shortest)[many].mean())

    given = {"steps": 600, "gamma": 0.0, "power": 0.0, "learning_rate": 3e-3}
    assert right(cql.train(made, alpha=0.01, **given)) > 0.9
    assert right(behaviour_cloning.train(recording=made, steps=600)) < 0.7


@pytest.mark.slow
def test_on_mixed_data_it_beats_a_clone_of_the_same():
    """On unseen slices: the clone does what is done most often, in the order of submission."""
    jobs = "lublin:jobs=4000,processors=256,seed=0"
    mixed = record(
        ["random", "easy", "saf"], jobs, record_episodes=10, jobs=128, env_options={"window": 32}
    )
    agents = {
        "clone": behaviour_cloning.train(recording=mixed, steps=400),
        "cql": cql.train(mixed, steps=400),
    }
    found = evaluate(agents, jobs, n=30, jobs=128, budget=0, seed=0).table["mean_bsld"]
    assert found["cql"] < 0.5 * found["clone"]


@pytest.mark.slow
def test_with_a_large_alpha_it_is_a_clone():
    done = record("sjf", WORKLOAD, record_episodes=6, **SMALL)
    agent = cql.train(done, steps=500, alpha=100.0, learning_rate=3e-3)
    fields = {n: torch.as_tensor(f).float() for n, f in done.observations.items()}
    with torch.no_grad():
        scores = agent.network.forward_actor(fields)
    scores[fields["mask"] < 0.5] = -1e8
    assert (scores.argmax(1).numpy() == done.actions).mean() > 0.85


def weights(agent) -> dict[str, np.ndarray]:
    return {name: value.numpy().copy() for name, value in agent.network.state_dict().items()}


def same(one, other) -> bool:
    return all(np.array_equal(one[name], other[name]) for name in one)


@pytest.mark.slow
def test_it_is_saved_loaded_and_goes_on(recording, tmp_path):
    path, lines = tmp_path / "cql.pt", []
    agent = cql.train(recording, steps=30, output=path, tensorboard=tmp_path, show=lines.append)
    loaded = load(path)
    assert (loaded.name, loaded.env_id) == ("cql", "hpcgym/JobSelection-v0")
    assert loaded.env_options["backfill"] == "none"
    assert same(weights(loaded), weights(agent))
    assert same(weights(cql.train(recording, steps=30)), weights(agent))
    assert not same(weights(cql.train(recording, steps=30, seed=1)), weights(agent))
    assert "error of values" in lines[-1]
    assert list(tmp_path.rglob("events.out.tfevents*"))
    more = cql.train(recording, steps=10, resume=path, output=tmp_path / "more.pt")
    assert not same(weights(more), weights(agent))
    assert torch.load(tmp_path / "more.pt", weights_only=True)["steps"] == 40
    still = cql.train(recording, steps=5, resume=path, learning_rate=0.0)
    assert same(weights(still), weights(agent))


@pytest.mark.slow
def test_it_goes_on_from_a_clone(recording, tmp_path):
    path = tmp_path / "clone.pt"
    clone = behaviour_cloning.train(recording=recording, steps=20, output=path)
    still = cql.train(recording, steps=5, resume=path, learning_rate=0.0)
    assert same(weights(still), weights(clone))
    other = tmp_path / "ppo.pt"
    small = {"jobs": 20, "steps": 32, "n_envs": 2, "n_steps": 16, "batch_size": 16}
    maskable_ppo.train(WORKLOAD, output=other, **small)
    with pytest.raises(hpcgym.HpcgymError, match="holds no cql or clone"):
        cql.train(recording, steps=1, resume=other)


def test_what_does_not_fit_is_said(recording, tmp_path):
    narrow = record("sjf", WORKLOAD, record_episodes=1, jobs=20, env_options={"features": ["wait"]})
    path = tmp_path / "narrow.pt"
    cql.train(narrow, steps=1, output=path)
    with pytest.raises(hpcgym.HpcgymError, match="made for other features") as caught:
        cql.train(recording, steps=1, resume=path)
    assert str(path) in str(caught.value)
    for settings, message in (
        ({"gamma": 1.5}, "gamma must be a number from 0 to 1, not 1.5"),
        ({"n_steps": 0}, "n_steps must be a whole number of at least 1"),
        ({"alpha": -1}, "alpha must be a number of at least 0"),
        ({"steps": None}, "give steps"),
    ):
        with pytest.raises(hpcgym.HpcgymError, match=message):
            cql.train(recording, **{"steps": 1, **settings})
