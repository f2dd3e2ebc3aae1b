"""Discrete CQL: learn to select jobs from recordings alone, better than who was recorded.

Conservative Q-learning (Kumar et al. 2020, "Conservative Q-Learning for Offline Reinforcement
Learning", section 3.2, the form CQL(H) for discrete actions). The network of MaskablePPO gives each
visible job a score and the state a value; together they are the action value,
Q(s, a) = V(s) + score(s, a). What is minimised is

    mean (Q(s, a) - y)^2 + alpha * mean (log sum_b exp Q(s, b) - Q(s, a)),

with sums over visible jobs. The first part is n-step double Q-learning (van Hasselt et al. 2016,
Hessel et al. 2018): y has the rewards of the next n steps, and behind them a slow copy's Q of the
job that the network prefers there. The second part lowers the scores of jobs that no policy
selected: nothing is known of what comes of them. V cancels out of it, so that it is behaviour
cloning: with a large alpha the agent is a clone.

>>> from hpcgym.agents import cql
>>> from hpcgym.agents.recorder import record
>>> jobs = "lublin:jobs=2000,processors=64"
>>> agent = cql.train(record(["random", "saf"], jobs, record_episodes=2, jobs=64), steps=20)
>>> agent.name
'cql'
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from hpcgym.agents.common import Budget, keeping
from hpcgym.agents.declared import takes
from hpcgym.agents.fitting import contents_of, descend, in_batches, network_for
from hpcgym.agents.maskable_ppo import ENV_ID, JobAgent, JobNetwork, shape_of
from hpcgym.agents.network_files import DIVERGED, adam_state, read_before, weights_for, write
from hpcgym.agents.recordings import Recording, load_selections
from hpcgym.agents.settings import CqlSettings
from hpcgym.errors import HpcgymError
from hpcgym.files import shaped

NAME = "cql"

_HIDDEN = -1e8  # the score of a place of the window without a job


class ActionValues(nn.Module):
    """Q of all jobs of the window: the value of the state, and a score for each job.

    Parameters
    ----------
    network : of scores, and of what the value is made of.
    """

    def __init__(self, network: JobNetwork) -> None:
        super().__init__()
        self.network = network
        self.value = nn.Linear(2 * shape_of(network)["width"], 1)

    def forward(self, seen: Mapping[str, torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the scores, (batch, window), 0 where there is no job, and the values, (batch,)."""
        scores, hidden = self.network(seen)
        return scores, self.value(hidden).squeeze(-1)


class Backups(NamedTuple):
    """What transitions are backed up by, (n,) each.

    Attributes
    ----------
    rewards : of the next steps, discounted.
    following : the state behind them, as a row of the observations with those of ends behind them.
    discounts : what its value is multiplied by; 0 where the episode has ended.
    """

    rewards: NDArray[np.float64]
    following: NDArray[np.int64]
    discounts: NDArray[np.float64]


@takes(CqlSettings)
def train(
    recording: str | Path | Recording,
    *,
    minutes: float | None = None,
    steps: int | None = None,
    output: str | Path | None = None,
    resume: str | Path | None = None,
    tensorboard: str | Path | None = None,
    checkpoint_s: float = 120.0,
    show: Callable[[str], None] | None = None,
    **settings: Any,
) -> JobAgent:
    """Train a network to select jobs, from what policies have done in JobSelection.

    The same arguments give the same agent, if ``steps`` says how long.

    Parameters
    ----------
    recording : the file or the folder that ``record`` wrote, or what it returned. It is best of
        several policies on the same episodes, random choices among them.
    minutes, steps : how long; whichever is over first. A step is one batch.
    output : file of the agent, written at each checkpoint and at the end.
    resume : file of an agent of this kind to go on with, or of a clone as a start.
    tensorboard : folder for TensorBoard's logs.
    checkpoint_s : time between checkpoints [s].
    show : is given a line on the progress every few seconds.
    **settings : those of :class:`hpcgym.agents.settings.CqlSettings`.

    Raises
    ------
    HpcgymError : a recording that cannot be learned from, or a training that went wrong.
    """
    how = CqlSettings.of("train", settings)
    before = read_before(resume, ENV_ID, NAME, "clone")
    data = load_selections(recording)
    budget = Budget(steps, minutes, before.get("steps", 0))
    torch.manual_seed(how.seed)
    with shaped(resume, f"the file of a {NAME}"):
        unfit = "it was made for other features than the recording has"
        values = ActionValues(network_for(data, before, how.width, unfit))
        optimizer = torch.optim.Adam(values.parameters(), lr=how.learning_rate)
        if "value" in before:  # which a clone has not
            head = weights_for("value", before["value"], values.value.state_dict())
            values.value.load_state_dict(head)
            optimizer.load_state_dict(adam_state(before["optimizer"], optimizer))

    def save() -> None:
        if output is not None:
            contents = contents_of(NAME, data, values.network, optimizer, budget.done, how.seed)
            write(output, contents | {"value": values.value.state_dict()})

    with keeping(save, lambda: budget.done > budget.first, values):
        in_batches(
            NAME,
            _learner(values, optimizer, data, budget, how),
            budget,
            "error of values {error:.3g}",
            tensorboard=tensorboard,
            save=save,
            checkpoint_s=checkpoint_s,
            show=show,
        )
    return JobAgent(values.network, data.about["env_options"], NAME)


def scaled_rewards(recording: Recording, power: float) -> NDArray[np.float64]:
    """Return the rewards, those of an episode divided by what is usual on its jobs, (n,).

    Slowdowns have a heavy tail: a crowded episode would drown a hundred quiet ones. What is usual
    is the mean size of the returns of all episodes of the same name, to a power: with 1 all jobs
    count the same. :class:`hpcgym.agents.common.RelativeRewards` does so where there is an
    environment to ask.
    """
    begins = np.concatenate([[0], recording.ends[:-1] + 1])
    sizes = np.abs(np.add.reduceat(recording.rewards, begins))
    names = recording.about["episodes"]
    if not all(names):  # another recorder has told none
        names = range(len(begins))
    _, of = np.unique(names, return_inverse=True)
    usual = np.bincount(of, sizes) / np.bincount(of)
    divisors = np.maximum(usual[of], 1e-9) ** power
    return recording.rewards / np.repeat(divisors, np.diff([*begins, len(recording.rewards)]))


def backups(
    recording: Recording, rewards: NDArray[np.float64], gamma: float, steps: int
) -> Backups:
    """Return what each transition is backed up by: so many steps, or those to the episode's end.

    Of an episode that was cut the value of its last observation stands for what would have come.
    """
    ends, places = recording.ends, np.arange(len(rewards))
    episode = np.searchsorted(ends, places)
    left = ends[episode] - places + 1
    number = np.minimum(left, steps)
    total = np.zeros(len(rewards))
    for k in range(int(number.max())):
        there = number > k
        total[there] += gamma**k * rewards[places[there] + k]
    over = number == left
    following = np.where(over, len(rewards) + episode, places + number)
    ended = over & recording.terminations[ends[episode]]
    return Backups(total, following, np.where(ended, 0.0, gamma**number))


def _learner(
    values: ActionValues,
    optimizer: torch.optim.Optimizer,
    recording: Recording,
    budget: Budget,
    how: CqlSettings,
) -> Callable[[], dict[str, float]]:
    """Return what learns the values of recorded choices from a batch, and keeps to such choices."""
    seen = {
        name: torch.as_tensor(np.concatenate([field, recording.last[name]]).astype(np.float32))
        for name, field in recording.observations.items()
    }
    actions = torch.as_tensor(recording.actions.astype(np.int64))
    found = backups(recording, scaled_rewards(recording, how.power), how.gamma, how.n_steps)
    rewards = torch.as_tensor(found.rewards.astype(np.float32))
    following = torch.as_tensor(found.following)
    discounts = torch.as_tensor(found.discounts.astype(np.float32))
    target = copy.deepcopy(values).requires_grad_(False)
    generator = torch.Generator().manual_seed(how.seed + budget.first)

    def learn() -> dict[str, float]:
        rows = torch.randint(len(actions), (how.batch_size,), generator=generator)
        observation = {name: field[rows] for name, field in seen.items()}
        scores, state = values(observation)
        chosen = scores.gather(1, actions[rows, None]).squeeze(1)

        with torch.no_grad():
            ahead = {name: field[following[rows]] for name, field in seen.items()}
            preferred = values(ahead)[0].masked_fill(ahead["mask"] < 0.5, _HIDDEN).argmax(1)
            slow_scores, slow_state = target(ahead)
            behind = slow_state + slow_scores.gather(1, preferred[:, None]).squeeze(1)
            wanted = rewards[rows] + discounts[rows] * behind

        error = nn.functional.mse_loss(state + chosen, wanted)
        visible = scores.masked_fill(observation["mask"] < 0.5, _HIDDEN)
        conservative = (visible.logsumexp(1) - chosen).mean()
        loss = error + how.alpha * conservative
        if not math.isfinite(float(loss.detach())):
            raise HpcgymError(DIVERGED)
        descend(optimizer, loss, how.learning_rate, budget.left)
        for slow, fast in zip(target.parameters(), values.parameters(), strict=True):
            slow.lerp_(fast.detach(), how.tau)
        return {
            "error": float(error.detach()),
            "conservative": float(conservative.detach()),
            "value": float(wanted.mean()),
        }

    return learn
