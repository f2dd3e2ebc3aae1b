"""Masked PPO in one file: the agent selects the next job, or orders the queue.

Read :meth:`JobPpo.train` from top to bottom. What is drawn is an order of the visible jobs, one
after the other by the softmax of their scores (Plackett 1975, Luce 1959): the places of jobs sorted
by score plus Gumbel noise. In JobSelection only its first job says what happens; in QueueOrdering
those that start and the one behind them. Only the probability of these is learned from. Places
without a job are never drawn.

Schulman et al. 2017, arXiv:1707.06347, with generalised advantages (arXiv:1506.02438). An episode
that is truncated goes on in what its last state is worth. The network is in
:mod:`hpcgym.agents.job_network`.

>>> from hpcgym.agents.job_ppo import JobPpo
>>> from hpcgym.agents.practice import maker
>>> make = maker("lublin:jobs=600,processors=32,load=1.0", "hpcgym/JobSelection-v1", {"jobs": 20})
>>> agent = JobPpo(n_envs=2, n_steps=32, batch_size=32).train(make, seed=0, steps=128)
>>> agent.kind
'selection'
"""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from hpcgym.agents import job_view
from hpcgym.agents.declared import takes
from hpcgym.agents.job_network import (
    Batch,
    JobActor,
    JobNetwork,
    batch_of,
    in_environment,
    in_windows,
    loaded,
)
from hpcgym.agents.logs import Log
from hpcgym.agents.network_files import DIVERGED
from hpcgym.agents.practice import Make, Spending, judging
from hpcgym.agents.settings import JobPpoSettings
from hpcgym.errors import HpcgymError

NAME = "job-ppo"

Floats = NDArray[np.float32]


@takes(JobPpoSettings)
class JobPpo(JobActor):
    """An agent that PPO trains.

    Parameters
    ----------
    **settings : those of :class:`hpcgym.agents.settings.JobPpoSettings`.
    """

    name = NAME

    def __init__(self, **settings: Any) -> None:
        super().__init__()
        self.plan = JobPpoSettings.of("JobPpo", settings)

    def train(self, make: Make, seed: int, steps: int, log: Log | None = None) -> JobPpo:
        """Train; the same arguments give the same agent.

        Parameters
        ----------
        make : returns environments; see :mod:`hpcgym.agents.practice`.
        seed : of network, exploration and episodes.
        steps : of all environments together, those of the validation part too. The rollout and the
            choice that go on then are finished.
        log : is told how it goes.
        """
        plan, spent, begun = self.plan, Spending(steps), time.monotonic()
        torch.set_num_threads(1)
        torch.manual_seed(seed)
        rng = np.random.default_rng(seed)
        self.look_at(make())
        env = make(num_envs=plan.n_envs, reward=plan.reward, copy=False, threads=1)
        judge = judging(make, spent)

        # the best of the known orders is where learning begins, and what it has to be better than
        self.network = JobNetwork(plan.width)
        least = self.choose_order(judge, spent)
        self.best = copy.deepcopy(self.network)
        if log is not None:
            log(spent.done, {"validation/mean_bsld": least, "validation/least_mean_bsld": least})
        optimizer = torch.optim.Adam(self.network.parameters(), lr=plan.learning_rate, eps=1e-5)

        observation, _ = env.reset(seed=int(rng.integers(2**31)))
        resets = np.zeros(plan.n_envs, np.bool_)  # whether the next step only resets
        judged = spent.left
        while spent.left > 0:
            for group in optimizer.param_groups:
                group["lr"] = plan.learning_rate * spent.left

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
            told = {f"train/{name}": mean for name, mean in zip(names, means, strict=True)}
            told["train/mean_reward"] = float(rewards.sum() / max(over.sum(), 1))  # of an episode
            told["train/steps_per_s"] = spent.done / (time.monotonic() - begun)
            if judged - spent.left > plan.every or spent.left == 0:
                judged = spent.left
                value = judge(self.actions)
                if value < least:
                    least, self.best = value, copy.deepcopy(self.network)
                told |= {"validation/mean_bsld": value, "validation/least_mean_bsld": least}
            if log is not None:
                log(spent.done, told)
        self.keep_best()
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
            if self.kind == "ordering":
                counts = job_view.prefix(look, orders)
            given = torch.from_numpy(orders), torch.from_numpy(counts)
            log_probs = log_probabilities(scores, *given)[0].numpy()
        window = observation["mask"].shape[1]
        actions = in_environment(self.kind, np.where(look.mask, noisy, -1e6), window)
        every = np.tile(np.arange(window), (len(orders), 1))
        every[:, :most] = orders
        return _Step(look, batch.base.numpy(), values, every, counts, log_probs, actions)


def load(contents: Mapping[str, Any]) -> JobPpo:
    """Return the agent of a file's contents; :func:`hpcgym.agents.load` reads files."""
    return loaded(JobPpo(), contents)


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
