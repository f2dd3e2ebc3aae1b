"""Masked PPO in one file: the agent selects the next job, or orders the queue.

    python examples/job_ppo.py KTH-SP2 QueueOrdering
    cd examples && hpcgym suite run --agent job_ppo:JobPpo --tasks order --output ppo

Read :meth:`JobPpo.train` from top to bottom. What is drawn is an order of the visible jobs, one
after the other by the softmax of their scores (Plackett 1975, Luce 1959): the places of jobs sorted
by score plus Gumbel noise. In JobSelection only its first job says what happens; in QueueOrdering
those that start and the one behind them. Only the probability of these is learned from. Places
without a job are never drawn.

Schulman et al. 2017, arXiv:1707.06347, with generalised advantages (arXiv:1506.02438). An episode
that is truncated goes on in what its last state is worth.

The same small network looks at each visible job, at what :mod:`job_view` makes of it and of the
state, so neither the order of jobs in the window nor their number matters. What it says is added to
the score of a known order, and is 0 at first: learning goes on from that order. Needs PyTorch.

This is an example of how to learn on the vector environments, and no good scheduler: of five
trainings on KTH-SP2 none was better than the order SAF (``benchmarks/suite/README.md``).
"""

from __future__ import annotations

import copy
import math
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import job_view
import numpy as np
import torch
from job_view import JOB, ORDERS, Seen
from numpy.typing import NDArray
from torch import nn

from hpcgym.agents.network_files import DIVERGED
from hpcgym.agents.practice import Logger, Make, Spending, maker
from hpcgym.agents.saved import settled_options
from hpcgym.envs.core.observation import CLUSTER_SIZE, QUEUE_SIZE, TIME_SIZE
from hpcgym.errors import HpcgymError

NAME = "job-ppo"
KINDS = ("select", "order")

Floats = NDArray[np.float32]

STATE_SIZE = CLUSTER_SIZE + QUEUE_SIZE + TIME_SIZE

#: Observations of a vector environment -> its actions.
Act = Callable[[Any], Any]

_SHARP = 8.0  # how sure the order to begin with is: its factor in scores, which are logits


class Batch(NamedTuple):
    """Decisions of any number B, with the n jobs that are seen in them.

    Attributes
    ----------
    jobs : (n, len(JOB)) float32, as of :class:`job_view.Seen`, as the next.
    state : (B, STATE_SIZE) float32.
    base : (n,) float32, scores of the order to begin with.
    owner : (n,) int64, the decision of a job.
    place : (n,) int64, its place in the window.
    """

    jobs: torch.Tensor
    state: torch.Tensor
    base: torch.Tensor
    owner: torch.Tensor
    place: torch.Tensor

    @classmethod
    def of(cls, *arrays: NDArray[Any]) -> Batch:
        """Return one of arrays."""
        return cls(*(torch.from_numpy(array) for array in arrays))


class JobNetwork(nn.Module):
    """Scores of jobs, and the value of the state.

    Parameters
    ----------
    width : of the hidden layers.
    """

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.of_job, self.of_state = nn.Linear(len(JOB), width), nn.Linear(STATE_SIZE, width)
        self.score = nn.Sequential(nn.Tanh(), nn.Linear(width, width), nn.Tanh(), _zero(width))
        self.value_of_job = nn.Sequential(nn.Linear(len(JOB), width), nn.Tanh())
        self.value = nn.Sequential(
            nn.Linear(2 * width + STATE_SIZE, width), nn.Tanh(), _zero(width)
        )

    def scores(self, batch: Batch) -> torch.Tensor:
        """Return a score for each job, (n,)."""
        hidden = self.of_job(batch.jobs) + self.of_state(batch.state)[batch.owner]
        scores: torch.Tensor = self.score(hidden).squeeze(1)
        return batch.base + scores

    def values(self, batch: Batch) -> torch.Tensor:
        """Return the value of each decision's state, (B,), from sums and means over its jobs."""
        hidden = self.value_of_job(batch.jobs)
        sums = hidden.new_zeros(len(batch.state), hidden.shape[1])
        sums.index_add_(0, batch.owner, hidden)
        counts = torch.bincount(batch.owner, minlength=len(sums)).clamp(min=1)[:, None]
        parts = [sums / counts, sums / 32.0, batch.state]
        values: torch.Tensor = self.value(torch.cat(parts, dim=1)).squeeze(1)
        return values


def _zero(width: int) -> nn.Linear:
    """Return a last layer that says 0 whatever it sees."""
    layer = nn.Linear(width, 1)
    nn.init.zeros_(layer.weight)
    nn.init.zeros_(layer.bias)
    return layer


def in_windows(batch: Batch, values: torch.Tensor, most: int) -> torch.Tensor:
    """Return numbers of jobs by their places, (B, most); far below all others without a job."""
    wide = values.new_full((len(batch.state), most), -1e9)
    return wide.index_put((batch.owner, batch.place), values)


def base_of(look: Seen, order: str) -> NDArray[np.float32]:
    """Return the scores of a known order that backfills as EASY does, (n,)."""
    weights = _SHARP * job_view.weights_of(order)
    scores = job_view.placed(look, look.jobs @ weights)
    scores = job_view.backfilled(look, scores, job_view.EASY)
    base: NDArray[np.float32] = scores[look.owner, look.place]
    return base


def batch_of(look: Seen, order: str) -> Batch:
    """Return what the network is given of observations."""
    return Batch.of(look.jobs, look.state, base_of(look, order), look.owner, look.place)


def in_environment(kind: str, scores: NDArray[Any], window: int) -> NDArray[Any]:
    """Return actions by scores (B, most): places (B,), or scores (B, window)."""
    if kind == "select":
        return np.asarray(scores.argmax(axis=1))
    actions = np.zeros((len(scores), window), np.float32)
    actions[:, : scores.shape[1]] = scores
    return actions


_MOST_SLICES = 64  # of the validation part that are played
_JUDGED = 20  # a part of the steps is for playing these once
_CHOICE = 1.25  # a choice takes no more than so many times the longest before


# --- The agent ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Settings:
    """How it is trained."""

    n_envs: int = 64  # environments side by side, in one batch
    n_steps: int = 64  # of each environment in a rollout
    batch_size: int = 1024
    n_epochs: int = 6  # how often each rollout is learned from
    learning_rate: float = 5e-3  # at the beginning; it falls to 0
    gamma: float = 0.999
    gae_lambda: float = 0.97
    clip: float = 0.2  # how far probabilities may move in a rollout
    ent_coef: float = 0.0
    width: int = 32  # of each hidden layer
    reward: str = "bsld/easy"
    every: float = 0.08  # share of the steps between two choices by validation


class JobPpo:
    """An agent that PPO trains; it serves jobs from the highest score to the lowest.

    Parameters
    ----------
    **settings : those of :class:`Settings`.

    Attributes
    ----------
    network : its network, after training.
    order : of :data:`job_view.ORDERS`, the one to begin with.
    kind : "select" or "order", what its actions are.
    env_id, env_options : the environment that it was trained for.
    """

    name = NAME
    each_log = True  # the suite trains one for each

    def __init__(self, **settings: Any) -> None:
        self.plan = Settings(**settings)
        self.kind, self.order = "", "saf"
        self.network = JobNetwork(1)

    def train(self, make: Make, seed: int, steps: int, log: Logger | None = None) -> JobPpo:
        """Train; the same arguments give the same agent.

        Parameters
        ----------
        make : returns environments; see :mod:`hpcgym.agents.practice`.
        seed : of network, exploration and episodes.
        steps : of all environments together, those of the validation part too. A rollout is not
            begun if it would exceed them with the choice behind it.
        log : is told how it goes.
        """
        plan, spent, begun = self.plan, Spending(steps), time.monotonic()
        torch.set_num_threads(1)
        torch.manual_seed(seed)
        rng = np.random.default_rng(seed)
        self.look_at(make())
        env = make(num_envs=plan.n_envs, reward=plan.reward, copy=False, threads=1)
        play, costs = judging(make, spent), []

        def judge(act: Act) -> float:
            before = spent.done
            value = play(act)
            costs.append(spent.done - before)
            return value

        # the best of the known orders is where learning begins, and what it has to be better than
        self.network = JobNetwork(plan.width)
        least = self.choose_order(judge, spent)
        best = copy.deepcopy(self.network)
        if log is not None:
            log(spent.done, {"validation/mean_bsld": least, "validation/least_mean_bsld": least})
        optimizer = torch.optim.Adam(self.network.parameters(), lr=plan.learning_rate, eps=1e-5)

        observation, _ = env.reset(seed=int(rng.integers(2**31)))
        resets = np.zeros(plan.n_envs, np.bool_)  # whether the next step only resets
        judged = _left(spent)

        def pays_another() -> bool:
            return spent.pays(plan.n_steps * plan.n_envs + _CHOICE * max(costs))

        while pays_another():
            for group in optimizer.param_groups:
                group["lr"] = plan.learning_rate * _left(spent)

            # --- what the agent does, (n_steps, n_envs) ---
            taken: list[_Step] = []
            rewards = np.zeros((plan.n_steps, plan.n_envs), np.float32)
            terminated, over, valid = (np.zeros(rewards.shape, np.bool_) for _ in range(3))
            for t in range(plan.n_steps):
                step = self._drawn(observation, rng)
                taken.append(step)
                valid[t] = ~resets & (step.counts > 0)
                observation, rewards[t], terminated[t], truncated, _ = env.step(step.actions)
                over[t] = resets = terminated[t] | truncated
                spent.done += plan.n_envs
            last = self._drawn(observation, rng).values

            # --- how much better it was than expected ---
            values = np.stack([step.values for step in taken])
            advantages = generalised_advantages(
                rewards, values, last, terminated, over, plan.gamma, plan.gae_lambda
            )
            returns = advantages + values

            # --- learning ---
            rollout = _Rollout.of(taken)
            samples = np.flatnonzero(valid.ravel())
            losses = []
            for _ in range(plan.n_epochs):
                rng.shuffle(samples)
                for those in np.array_split(samples, max(len(samples) // plan.batch_size, 1)):
                    batch, orders, counts, log_probs = rollout.take(those)
                    advantage = torch.from_numpy(advantages.ravel()[those])
                    if len(those) > 1:
                        advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
                    target = torch.from_numpy(returns.ravel()[those])
                    scores = in_windows(batch, self.network.scores(batch), orders.shape[1])
                    now, entropy = log_probabilities(scores, orders, counts)
                    ratio = (now - log_probs).exp()
                    clipped = ratio.clamp(1 - plan.clip, 1 + plan.clip)
                    policy_loss = -torch.min(ratio * advantage, clipped * advantage).mean()
                    value_loss = (self.network.values(batch) - target).pow(2).mean()
                    loss = policy_loss + 0.5 * value_loss - plan.ent_coef * entropy.mean()
                    if not math.isfinite(loss.item()):
                        raise HpcgymError(DIVERGED)
                    optimizer.zero_grad()
                    loss.backward()
                    torch.nn.utils.clip_grad_norm_(self.network.parameters(), 0.5)
                    optimizer.step()
                    losses.append([policy_loss.item(), value_loss.item(), entropy.mean().item()])

            # --- what has come of it ---
            names = ("policy_loss", "value_loss", "entropy")
            means = np.mean(losses, axis=0).tolist()
            row = {f"train/{name}": mean for name, mean in zip(names, means, strict=True)}
            row["train/mean_reward"] = float(rewards.sum() / max(over.sum(), 1))  # of an episode
            row["train/steps_per_s"] = spent.done / (time.monotonic() - begun)
            if judged - _left(spent) > plan.every or not pays_another():
                judged = _left(spent)
                value = judge(self.actions)
                if value < least:
                    least, best = value, copy.deepcopy(self.network)
                row |= {"validation/mean_bsld": value, "validation/least_mean_bsld": least}
            if log is not None:
                log(spent.done, row)
        self.network = best
        env.close()
        return self

    def _drawn(self, observation: Mapping[str, Any], rng: np.random.Generator) -> _Step:
        """Return an order that is drawn for each environment, and what is to be kept of it."""
        look = job_view.seen(observation)
        batch = batch_of(look, self.order)
        most = look.mask.shape[1]
        with torch.no_grad():
            scores = in_windows(batch, self.network.scores(batch), most)
            values = self.network.values(batch).numpy()
            noisy = scores.numpy() + rng.gumbel(size=scores.shape)
            orders = np.argsort(-noisy, axis=1)
            counts = np.minimum(look.mask.sum(axis=1), 1)
            if self.kind == "order":
                counts = job_view.prefix(look, orders)
            given = torch.from_numpy(orders), torch.from_numpy(counts)
            log_probs = log_probabilities(scores, *given)[0].numpy()
        window = observation["mask"].shape[1]
        actions = in_environment(self.kind, np.where(look.mask, noisy, -1e6), window)
        every = np.tile(np.arange(window), (len(orders), 1))
        every[:, :most] = orders
        return _Step(look, batch.base.numpy(), values, every, counts, log_probs, actions)

    def __repr__(self) -> str:
        return f"JobPpo({self.env_id!r})" if self.kind else "JobPpo()"

    def check(self, env: Any) -> Any:
        """Return an environment itself; raise an HpcgymError if no such agent can act there."""
        return job_view.check_sees(env, NAME, *KINDS)

    def look_at(self, env: Any) -> None:
        """Take over what there is to know of the environment that it is to act in."""
        world = self.check(env)
        self.kind, self.env_id = world.action_kind, env.spec.id
        self.env_options = settled_options(world, env.spec.kwargs)
        env.close()

    def choose_order(self, judge: Callable[[Any], float], spent: Spending) -> float:
        """Take the order that does best by itself; return its value, of which less is better.

        The first one is judged, and others as long as three quarters of the steps are left.
        """
        values: dict[str, float] = {}
        for self.order in ORDERS:
            if not values or _left(spent) > 0.75:
                values[self.order] = judge(self.actions)
        self.order = min(values, key=lambda order: values[order])
        return values[self.order]

    def actions(self, observation: Mapping[str, Any]) -> Any:
        """Return the best actions in a vector environment."""
        look = job_view.seen(observation)
        with torch.no_grad():
            batch = batch_of(look, self.order)
            scores = in_windows(batch, self.network.scores(batch), look.mask.shape[1]).numpy()
        return in_environment(self.kind, scores, observation["mask"].shape[1])

    def begin(self, env: Any) -> None:
        """Check that an environment is such as the agent was trained in.

        Raises
        ------
        HpcgymError : it has other actions or observations, or nothing has been learned.
        """
        if not self.kind:
            raise HpcgymError(f"{NAME}: nothing has been learned; call train first")
        torch.set_num_threads(1)  # several are slower for networks this small
        job_view.check_sees(env, NAME, self.kind)

    def act(self, observation: Mapping[str, Any], info: Mapping[str, Any] | None = None) -> Any:
        """Return the action: the place of a job, or a score for each place."""
        action = self.actions(job_view.one(observation))[0]
        return int(action) if self.kind == "select" else action


def generalised_advantages(
    rewards: Floats,
    values: Floats,
    last: Floats,
    terminated: NDArray[np.bool_],
    over: NDArray[np.bool_],
    gamma: float,
    gae_lambda: float,
) -> Floats:
    """Return the advantages of steps, (n_steps, n_envs).

    delta_t = r_t + gamma V_(t+1) - V_t, with V_(t+1) = 0 where the episode has terminated; A_t =
    delta_t + gamma lambda A_(t+1), without the second term where it is over. Environments reset
    themselves in the next step. So the state behind the last step of an episode is its last state:
    its value stands for the rest of a truncated episode. The step from there only resets the
    environment, and is not learned from.

    Parameters
    ----------
    rewards, values : (n_steps, n_envs), and V of the states in which the steps were made.
    last : (n_envs,) V of the state after the last step.
    terminated, over : whether the episode terminated in the step; whether it ended at all.
    """
    advantages = np.zeros_like(values)
    ahead, value = np.zeros_like(last), last
    for t in reversed(range(len(rewards))):
        delta = rewards[t] + gamma * value * ~terminated[t] - values[t]
        ahead = delta + gamma * gae_lambda * ahead * ~over[t]
        advantages[t], value = ahead, values[t]
    return advantages


def log_probabilities(
    scores: torch.Tensor, orders: torch.Tensor, counts: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the log-probability of the first jobs of orders, and the entropy of the very first.

    log p = sum over the first ``counts`` places i of s_i - log(sum over j >= i of exp(s_j)).

    Parameters
    ----------
    scores : (B, most), far below all others where there is no job.
    orders : (B, most) int64, places of the window, the first to be served first.
    counts : (B,) int64.
    """
    ordered = scores.gather(1, orders)
    left = torch.logcumsumexp(ordered.flip(1), dim=1).flip(1)
    first = torch.arange(scores.shape[1]) < counts[:, None]
    log_probs = ((ordered - left) * first).sum(dim=1)
    log_share = torch.log_softmax(scores, dim=1)
    entropy = -(log_share.exp() * log_share.clamp(min=-50.0)).sum(dim=1)
    return log_probs, entropy


class _Step(NamedTuple):
    """A step of all environments; log_probs, values and counts are (n_envs,)."""

    look: job_view.Seen
    base: Floats
    values: Floats
    orders: NDArray[np.int64]
    counts: NDArray[np.int64]
    log_probs: Floats
    actions: NDArray[Any]


class _Rollout(NamedTuple):
    """All steps one behind the other, with their jobs, those of sample i from first[i] on."""

    jobs: Floats
    base: Floats
    place: NDArray[np.int64]
    state: Floats
    first: NDArray[np.int64]
    visible: NDArray[np.int64]
    orders: NDArray[np.int64]
    counts: NDArray[np.int64]
    log_probs: Floats

    @classmethod
    def of(cls, taken: list[_Step]) -> _Rollout:
        looks = [step.look for step in taken]
        visible = np.concatenate([look.mask.sum(axis=1) for look in looks])
        return cls(
            np.concatenate([look.jobs for look in looks]),
            np.concatenate([step.base for step in taken]),
            np.concatenate([look.place for look in looks]),
            np.concatenate([look.state for look in looks]),
            np.cumsum(visible) - visible,
            visible,
            np.concatenate([step.orders for step in taken]),
            np.concatenate([step.counts for step in taken]),
            np.concatenate([step.log_probs for step in taken]),
        )

    def take(
        self, those: NDArray[np.int64]
    ) -> tuple[Batch, torch.Tensor, torch.Tensor, torch.Tensor]:
        """Return some samples: the batch, its orders, counts and log-probabilities."""
        number = self.visible[those]
        owner = np.repeat(np.arange(len(those)), number)
        within = np.arange(number.sum()) - np.repeat(np.cumsum(number) - number, number)
        rows = np.repeat(self.first[those], number) + within
        batch = Batch.of(
            self.jobs[rows], self.state[those], self.base[rows], owner, self.place[rows]
        )
        orders = torch.from_numpy(self.orders[those])
        kept = torch.from_numpy(self.counts[those]), torch.from_numpy(self.log_probs[those])
        return batch, orders, *kept


# --- What validation says -------------------------------------------------------------------------


def _left(spent: Spending) -> float:
    """Return the share of the steps that is left, from 1 to 0."""
    return max(1.0 - spent.done / spent.steps, 0.0)


def judging(make: Make, spent: Spending) -> Callable[[Act], float]:
    """Return what plays the validation part: the mean bounded slowdown over its slices.

    At most 64 slices are played, spread over the part; fewer where their jobs are more than a
    twentieth of the steps.
    """
    single = make("validation")
    listing = single.unwrapped.episodes.listing
    single.close()
    jobs = sum(part.stop - part.start for part in listing) / len(listing)
    most = min(len(listing), _MOST_SLICES, max(int(spent.steps / _JUDGED / jobs), 1))
    chosen = np.linspace(0, len(listing) - 1, most).astype(int)
    names = [listing[place].name for place in chosen.tolist()]
    env = make("validation", num_envs=len(names), reward="bsld", copy=False, threads=1)

    def value(act: Act) -> float:
        observation: Any = None
        for place, name in enumerate(names):
            mine = np.arange(len(names)) == place
            observation, _ = env.reset(seed=0, options={"slice": name, "reset_mask": mine})
        return -float(_played(env, act, observation, 1, spent).mean())

    return value


def _played(
    env: Any, act: Act, observation: Any, episodes: int, spent: Spending
) -> NDArray[np.float64]:
    gained = np.zeros((env.num_envs, episodes))
    over = np.zeros(env.num_envs, np.int64)
    while (over < episodes).any():
        alive = np.flatnonzero(over < episodes)
        observation, rewards, terminated, truncated, _ = env.step(act(observation))
        gained[alive, over[alive]] += rewards[alive]
        over += terminated | truncated
        spent.done += env.num_envs
    return gained


def main(workload: str, env: str = "JobSelection", steps: str = "500000") -> None:
    """Train on the first half of a workload, and compare on slices of the second."""
    from hpcgym.study import evaluate

    make = maker(workload, f"hpcgym/{env}-v2", {"jobs": 256})
    agent = JobPpo().train(make, 0, int(steps), lambda done, told: print(done, dict(told)))
    print(evaluate({"job-ppo": agent, "saf": "saf"}, workload).table)


if __name__ == "__main__":
    main(*sys.argv[1:])
