"""Double DQN in one file: the agent selects the next job, and learns from what it did long ago.

Read :meth:`JobDqn.train` from top to bottom. Each visible job has a value Q, of the same small
network for all; places without a job have none, so none is ever chosen. van Hasselt et al. 2016,
arXiv:1509.06461: the network says which job would be next, another one, which follows it slowly,
what that is worth. Q(s, j) = V(s) + c (score_j - max score), as of dueling networks
(arXiv:1511.06581, equation 8), with a small c: the score begins as that of a known order, in
:mod:`hpcgym.agents.job_network`.

>>> from hpcgym.agents.job_dqn import JobDqn
>>> from hpcgym.agents.practice import maker
>>> make = maker("lublin:jobs=600,processors=32,load=1.0", "hpcgym/JobSelection-v1", {"jobs": 20})
>>> agent = JobDqn(n_envs=2, learning_starts=16).train(make, seed=0, steps=128)
>>> agent.kind
'selection'
"""

from __future__ import annotations

import copy
import math
import time
from collections import deque
from collections.abc import Mapping, Sequence
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
    base_of,
    in_windows,
    loaded,
)
from hpcgym.agents.logs import Log
from hpcgym.agents.network_files import DIVERGED
from hpcgym.agents.practice import Make, Spending, judging
from hpcgym.agents.settings import JobDqnSettings
from hpcgym.errors import HpcgymError

NAME = "job-dqn"

_SCALE = 1e-3  # c: of what a choice is worth beside V, in rewards of an episode

Floats = NDArray[np.float32]


@takes(JobDqnSettings)
class JobDqn(JobActor):
    """An agent that double DQN trains.

    Parameters
    ----------
    **settings : those of :class:`hpcgym.agents.settings.JobDqnSettings`.
    """

    name = NAME
    kinds = ("selection",)

    def __init__(self, **settings: Any) -> None:
        super().__init__()
        self.plan = JobDqnSettings.of("JobDqn", settings)

    def train(self, make: Make, seed: int, steps: int, log: Log | None = None) -> JobDqn:
        """Train; the same arguments give the same agent.

        Parameters
        ----------
        make : returns environments; see :mod:`hpcgym.agents.practice`.
        seed : of network, exploration and episodes.
        steps : of all environments together, those of the validation part too. The choice that goes
            on then is finished.
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
        slow = copy.deepcopy(self.network)
        optimizer = torch.optim.Adam(self.network.parameters(), lr=plan.learning_rate)

        observation, _ = env.reset(seed=int(rng.integers(2**31)))
        look = self._look(observation)
        replay: deque[_Step] = deque(maxlen=max(plan.replay // plan.n_envs, 2))
        resets = np.zeros(plan.n_envs, np.bool_)  # whether the next step only resets
        gained, over, losses, judged, loops = 0.0, 0, [], spent.left, 0
        while spent.left > 0:
            loops += 1
            # --- act: by the network, or at random ---
            chance = max(plan.exploration * (2.0 * spent.left - 1.0), 0.0) + 0.01
            with torch.no_grad():
                scores = _in_windows(look, self.network).numpy()
            actions = scores.argmax(axis=1)
            anything = np.where(look.mask, rng.random(look.mask.shape), -1.0).argmax(axis=1)
            actions = np.where(rng.random(plan.n_envs) < chance, anything, actions)
            observation, rewards, terminated, truncated, _ = env.step(actions)
            spent.done += plan.n_envs
            valid = ~resets & look.mask.any(axis=1)
            after = self._look(observation)
            replay.append(
                _Step(look, actions, rewards.astype(np.float32), after, terminated, valid)
            )
            look, resets = after, terminated | truncated
            gained, over = gained + float(rewards.sum()), over + int(resets.sum())

            # --- learn from steps of any time ---
            begun_to = loops * plan.n_envs >= plan.learning_starts and len(replay) > 1
            if begun_to and loops % plan.train_every == 0:
                loss = self._loss([replay[k] for k in rng.integers(len(replay), size=8)], slow)
                if not math.isfinite(loss.item()):
                    raise HpcgymError(DIVERGED)
                optimizer.zero_grad()
                loss.backward()
                torch.nn.utils.clip_grad_norm_(self.network.parameters(), 0.5)
                optimizer.step()
                losses.append(loss.item())
                with torch.no_grad():
                    for theirs, ours in zip(
                        slow.parameters(), self.network.parameters(), strict=True
                    ):
                        theirs.lerp_(ours, plan.follow)

            # --- what has come of it ---
            if judged - spent.left > plan.every or spent.left == 0:
                judged = spent.left
                value = judge(self.actions)
                if value < least:
                    least, self.best = value, copy.deepcopy(self.network)
                if log is not None:
                    told = {
                        "train/loss": float(np.mean(losses)) if losses else 0.0,
                        "train/mean_reward": gained / max(over, 1),  # of an episode
                        "train/steps_per_s": spent.done / (time.monotonic() - begun),
                        "validation/mean_bsld": value,
                        "validation/least_mean_bsld": least,
                    }
                    log(spent.done, told)
                gained, over, losses = 0.0, 0, []
        self.keep_best()
        env.close()
        return self

    def _look(self, observation: Mapping[str, Any]) -> _Look:
        look = job_view.seen(observation)
        return _Look(
            look.jobs, look.state, base_of(look, self.order), look.owner, look.place, look.mask
        )

    def _loss(self, steps: Sequence[_Step], slow: JobNetwork) -> torch.Tensor:
        """Return how far the values of what was done are from what came of it."""
        gamma, valid = self.plan.gamma, np.concatenate([step.valid for step in steps])
        actions = torch.from_numpy(np.concatenate([step.actions for step in steps]))
        rewards = torch.from_numpy(np.concatenate([step.rewards for step in steps]))
        ends = torch.from_numpy(np.concatenate([step.terminated for step in steps]))
        before = _together([step.before for step in steps])
        after = _together([step.after for step in steps])
        with torch.no_grad():
            chosen = _in_windows(after, self.network).argmax(dim=1)
            # an episode that is truncated goes on in what its last state is worth
            worth = _worth(after, slow, chosen)
            target = rewards + gamma * worth * ~ends
        error = torch.nn.functional.smooth_l1_loss(
            _worth(before, self.network, actions), target, reduction="none", beta=0.1
        )
        # all of the steps may be such that begin episodes, of which nothing is learned
        return (error * torch.from_numpy(valid)).sum() / max(int(valid.sum()), 1)


def load(contents: Mapping[str, Any]) -> JobDqn:
    """Return the agent of a file's contents; :func:`hpcgym.agents.load` reads files."""
    return loaded(JobDqn(), contents)


class _Look(NamedTuple):
    """What is kept of observations; see :class:`hpcgym.agents.job_view.Seen`."""

    jobs: Floats
    state: Floats
    base: Floats
    owner: NDArray[np.int64]
    place: NDArray[np.int64]
    mask: NDArray[np.bool_]


class _Step(NamedTuple):
    """A step of all environments, and what it led to."""

    before: _Look
    actions: NDArray[np.int64]
    rewards: Floats
    after: _Look
    terminated: NDArray[np.bool_]
    valid: NDArray[np.bool_]


def _together(looks: Sequence[_Look]) -> _Look:
    """Return several looks as one, their environments one behind the other."""
    most = max(look.mask.shape[1] for look in looks)
    firsts = np.cumsum([0, *(len(look.state) for look in looks)])
    owners = [look.owner + first for look, first in zip(looks, firsts, strict=False)]
    masks = [np.pad(look.mask, ((0, 0), (0, most - look.mask.shape[1]))) for look in looks]
    jobs, state, base, place = (
        np.concatenate([getattr(look, name) for look in looks])
        for name in ("jobs", "state", "base", "place")
    )
    return _Look(jobs, state, base, np.concatenate(owners), place, np.concatenate(masks))


def _in_windows(look: _Look, network: JobNetwork) -> torch.Tensor:
    """Return the scores of jobs by their places, (B, most); none without a job is the highest."""
    batch = Batch.of(*look[:5])
    return in_windows(batch, network.scores(batch), look.mask.shape[1])


def _worth(look: _Look, network: JobNetwork, actions: torch.Tensor) -> torch.Tensor:
    """Return Q(s, action) = V(s) + c (score - max score), (B,)."""
    batch = Batch.of(*look[:5])
    scores = in_windows(batch, network.scores(batch), look.mask.shape[1])
    beside = scores.gather(1, actions[:, None]).squeeze(1) - scores.max(dim=1).values
    return network.values(batch) + _SCALE * beside
