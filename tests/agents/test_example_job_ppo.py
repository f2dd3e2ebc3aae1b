"""The example of PPO in one file: what it learns by, and that seeds make it."""

from __future__ import annotations

import itertools
import math

import gymnasium
import job_ppo
import numpy as np
import pytest
import torch
from job_ppo import (
    JobNetwork,
    JobPpo,
    batch_of,
    generalised_advantages,
    in_windows,
    judging,
    log_probabilities,
)
from job_view import ORDERS, seen
from mistakes import mistakes_of

from hpcgym.agents.practice import Spending, maker
from hpcgym.envs.core.observation import CLUSTER_SIZE

pytestmark = pytest.mark.slow

WORKLOAD = "lublin:jobs=600,processors=32,seed=3,load=0.8"
OPTIONS = {"jobs": 40, "window": 16, "horizon": "1d"}
SMALL = {"n_envs": 3, "n_steps": 16, "batch_size": 24, "width": 4}
PLACES = ("JobSelection", "QueueOrdering")


def make_of(place: str):
    return maker(WORKLOAD, f"hpcgym/{place}-v2", OPTIONS, 1.0)


def trained(place: str, seed: int = 0, show=None):
    return JobPpo(**SMALL).train(make_of(place), seed, 3000, show)


def numbers(agent) -> np.ndarray:
    return np.concatenate(
        [weight.numpy().ravel() for weight in agent.network.state_dict().values()]
    )


def play(agent, place: str) -> list:
    """The actions of an episode, each possible."""
    env = make_of(place)("validation")
    observation, info = env.reset(seed=1)
    agent.begin(env)
    actions, over = [], False
    while not over:
        actions.append(agent.act(observation, info))
        if place == "JobSelection":
            assert info["action_mask"][actions[-1]] == 1
        observation, _, terminated, truncated, info = env.step(actions[-1])
        over = terminated or truncated
    return [np.asarray(action).tolist() for action in actions]


@pytest.fixture(scope="module")
def training_log():
    """What was told while the agents were trained."""
    return {place: [] for place in PLACES}


@pytest.fixture(scope="module")
def agents(training_log):
    return {
        place: trained(place, show=lambda _, told, place=place: training_log[place].append(told))
        for place in PLACES
    }


@pytest.mark.parametrize("place", PLACES)
def test_the_same_seed_trains_the_same_agent_which_acts(agents, place: str) -> None:
    again = trained(place)
    assert np.array_equal(numbers(agents[place]), numbers(again))
    assert play(agents[place], place) == play(again, place)


@pytest.mark.parametrize("place", PLACES)
def test_it_is_never_worse_than_its_beginning_on_validation(
    agents, training_log, place: str
) -> None:
    """Beginnings are the known orders."""
    told = training_log[place]
    values = [entry["validation/mean_bsld"] for entry in told if "validation/mean_bsld" in entry]
    agent, judge = agents[place], judging(make_of(place), Spending(1))
    assert (
        judge(agent.actions) == pytest.approx(min(values)) == told[-1]["validation/least_mean_bsld"]
    )
    for order in ORDERS:
        fresh = JobPpo()
        fresh.look_at(make_of(place)())
        fresh.order = order
        assert min(values) <= judge(fresh.actions)


# --- PPO ------------------------------------------------------------------------------------------


def test_advantages_by_hand() -> None:
    """An episode that is truncated goes on in the value of its last state, one that ends does not.

    delta: 1 + 0.9 x 0.6 - 0.5 = 1.04, 2 + 0.9 x 0.7 - 0.6 = 2.03, 3 + 0.9 x 0.8 - 0.7 = 3.02; if
    the second one terminates, 2 - 0.6 = 1.4. Behind the end nothing flows back.
    """
    rewards, values = np.array([[1.0], [2.0], [3.0]]), np.array([[0.5], [0.6], [0.7]])
    over = np.array([[False], [True], [False]])
    for terminated, middle in ((over & False, 2.03), (over, 1.4)):
        advantages = generalised_advantages(
            rewards, values, np.array([0.8]), terminated, over, 0.9, 0.8
        )
        assert advantages.ravel() == pytest.approx([1.04 + 0.72 * middle, middle, 3.02])


def test_probabilities_of_orders_sum_to_one_and_are_those_of_draws() -> None:
    """Of all prefixes of two jobs out of three; a place without a job is never one of them."""
    scores = torch.tensor([[0.3, -0.5, 1.1, -1e9]])
    total = 0.0
    for order in itertools.permutations(range(3)):
        given = torch.tensor([[*order, 3]])
        log_prob = float(log_probabilities(scores, given, torch.tensor([2]))[0])
        e = torch.exp(scores[0, :3]).tolist()
        first, second = order[:2]
        by_hand = e[first] / sum(e) * e[second] / (sum(e) - e[first])
        assert math.exp(log_prob) == pytest.approx(by_hand, rel=1e-5)
        total += math.exp(log_prob)
    assert total == pytest.approx(1.0, rel=1e-5)
    share = torch.softmax(scores[0, :3], 0)
    entropy = float(log_probabilities(scores, given, torch.tensor([1]))[1])
    assert entropy == pytest.approx(float(-(share * share.log()).sum()), rel=1e-4)
    assert float(log_probabilities(scores, given, torch.tensor([0]))[0]) == 0.0


@pytest.mark.parametrize("place", PLACES)
def test_masked_places_are_never_drawn(place: str) -> None:
    agent, rng = JobPpo(width=4), np.random.default_rng(0)
    make = make_of(place)
    agent.look_at(make())
    agent.network = JobNetwork(4)
    env = make(num_envs=4)
    observation, _ = env.reset(seed=0)
    for _ in range(60):
        step = agent._drawn(observation, rng)
        number = observation["mask"].sum(axis=1)
        first = np.arange(step.orders.shape[1]) < number[:, None]
        assert (step.orders[first] < np.repeat(number, number)).all()
        assert (step.counts <= number).all()
        if place == "JobSelection":
            assert (step.actions < np.maximum(number, 1)).all()
        observation, *_ = env.step(step.actions)


# --- the network ----------------------------------------------------------------------------------


def test_the_network_begins_as_the_order_does_and_jobs_may_change_places() -> None:
    env = make_of("JobSelection")(num_envs=3)
    observation, _ = env.reset(seed=0)
    for _ in range(40):
        observation, *_ = env.step(np.zeros(3, np.int64))
    look = seen(observation)
    batch, network = batch_of(look, "saf"), JobNetwork(8)
    assert torch.equal(network.scores(batch), batch.base)
    torch.nn.init.normal_(network.score[-1].weight)
    torch.nn.init.normal_(network.value[-1].weight)
    order = torch.randperm(len(batch.jobs))
    moved = batch._replace(
        jobs=batch.jobs[order], base=batch.base[order], owner=batch.owner[order],
        place=batch.place[order],
    )  # fmt: skip
    with torch.no_grad():
        assert torch.allclose(network.scores(moved), network.scores(batch)[order], atol=1e-5)
        assert torch.allclose(network.values(moved), network.values(batch), atol=1e-5)
        wide = in_windows(batch, network.scores(batch), look.mask.shape[1])
        assert (wide.argmax(dim=1).numpy() < look.mask.sum(axis=1)).all()


class Bandit(gymnasium.vector.VectorEnv):
    """One decision an episode: it pays for the job that requests most of four.

    As environments that reset themselves in the next step: every other step is none.
    """

    num_envs = 8

    def __init__(self) -> None:
        self.rng, self.ended = np.random.default_rng(0), False

    def reset(self, *, seed=None, options=None):
        jobs = np.zeros((8, 6, 8), np.float32)
        jobs[:, :4, 1] = self.rng.random((8, 4))
        jobs[:, :4, 3] = 0.1
        mask = np.broadcast_to(np.arange(6) < 4, (8, 6)).astype(np.int8)
        fields = {
            "cluster": np.ones((8, CLUSTER_SIZE)),
            "queue": np.zeros((8, 6)),
            "time": np.zeros((8, 4)),
        }
        self.seen = {n: v.astype(np.float32) for n, v in fields.items()}
        self.seen |= {"jobs": jobs, "mask": mask}
        return self.seen, {}

    def step(self, actions):
        best = self.seen["jobs"][:, :4, 1].argmax(axis=1)
        rewards = 0.01 * (actions == best) * (not self.ended)
        self.ended = not self.ended
        self.reset()
        never = np.zeros(8, bool)
        return self.seen, rewards, never | self.ended, never, {}


def test_a_tiny_task_is_learned(monkeypatch) -> None:
    """Which is the contrary of the order that it begins with, so something must be learned."""
    agent = JobPpo(n_envs=8, n_steps=64, batch_size=128, learning_rate=0.02)
    log: list[dict] = []
    monkeypatch.setattr(agent, "look_at", lambda env: setattr(agent, "kind", "select"))

    def judge(act) -> float:
        env = Bandit()
        return 2.0 - 200 * float(np.mean([env.step(act(env.reset()[0]))[1] for _ in range(40)]))

    monkeypatch.setattr(job_ppo, "judging", lambda make, spent: judge)
    agent.train(lambda **given: Bandit(), 0, 16_000, lambda steps, values: log.append(values))
    values = [entry["validation/mean_bsld"] for entry in log if "validation/mean_bsld" in entry]
    assert values[0] > 1.5
    assert judge(agent.actions) == min(values) < 1.15


test_mistakes = mistakes_of(globals(), fixtures=("agents",))
