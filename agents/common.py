"""What the learning agents share: how long to train, progress, checkpoints."""

from __future__ import annotations

import math
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.vec_env import VecEnvWrapper

from hpcgym.agents.logs import Log
from hpcgym.agents.network_files import DIVERGED, are_finite
from hpcgym.errors import HpcgymError
from hpcgym.progress import SHOW_S
from hpcgym.simulation.run import simulate

# several threads are slower than one for networks this small, and may stall where cores are few
torch.set_num_threads(1)


@contextmanager
def keeping(
    save: Callable[[], None], learned: Callable[[], bool], network: torch.nn.Module
) -> Iterator[None]:
    """Save what is trained when the training ends.

    After an error what was there stays: the last checkpoint, or the agent of an earlier training.
    So it does where a training is interrupted that has learned nothing yet.

    Parameters
    ----------
    save : writes the file.
    learned : tells whether the network has changed.
    network : what is trained.

    Raises
    ------
    HpcgymError : the weights of the network are no numbers any more.
    """
    try:
        yield
    except KeyboardInterrupt:
        if learned():
            save()
        raise
    # of torch's distributions, which refuse what is no number; of what draws from them, or of the
    # environment, where some library has told them not to
    except (ValueError, RuntimeError):
        if are_finite(network.parameters()):
            raise
        raise HpcgymError(DIVERGED) from None
    save()


class Budget:
    """How long to train: a number of steps, of minutes, or whichever is over first.

    Parameters
    ----------
    steps, minutes : None: no such limit; one of them must be given.
    done : steps that were done before.
    """

    def __init__(self, steps: int | None, minutes: float | None, done: int = 0) -> None:
        if steps is None and minutes is None:
            raise HpcgymError("give steps=..., minutes=... or both")
        if steps is not None and steps < 1:
            raise HpcgymError(f"steps must be at least 1, not {steps}")
        if minutes is not None and not minutes > 0:
            raise HpcgymError(f"minutes must be more than 0, not {minutes}")
        self.steps, self.minutes, self.first, self.done = steps, minutes, done, done
        self.started = time.monotonic()

    @property
    def spent_s(self) -> float:
        """Time since the training began [s]."""
        return time.monotonic() - self.started

    @property
    def left(self) -> float:
        """The share that is left, from 1 to 0; learning rates follow it."""
        shares = [1.0]
        if self.steps is not None:
            shares.append(1.0 - (self.done - self.first) / self.steps)
        if self.minutes is not None:
            shares.append(1.0 - self.spent_s / (60.0 * self.minutes))
        return max(min(shares), 0.0)

    @property
    def last_step(self) -> int:
        """The number of steps to stop at."""
        return sys.maxsize if self.steps is None else self.first + self.steps


class Progress(BaseCallback):
    """Show how training goes, write checkpoints, and stop when the time is over.

    Parameters
    ----------
    budget : how long to train.
    save : writes a checkpoint; None: there are none.
    every_s : time between checkpoints [s].
    show : is given a line of text now and then; None: silence.
    log : is told the mean BSLD after each rollout.
    """

    def __init__(
        self,
        budget: Budget,
        save: Callable[[], None] | None = None,
        every_s: float = 120.0,
        show: Callable[[str], None] | None = None,
        log: Log | None = None,
    ) -> None:
        super().__init__()
        self.budget, self.save, self.every_s, self.show = budget, save, every_s, show
        self.log = log
        self.recent: deque[float] = deque(maxlen=200)
        self.saved_s = self.shown_s = 0.0

    def _on_step(self) -> bool:
        self.budget.done = self.num_timesteps
        for info in self.locals["infos"]:
            if "metrics" in info:
                self.recent.append(info["metrics"]["mean_bsld"])
        return self.budget.left > 0 or self.num_timesteps >= self.budget.last_step

    def _on_rollout_end(self) -> None:
        self.logger.record("schedule/mean_bsld", self.mean_bsld)
        if self.log is not None and self.recent:
            self.log(self.num_timesteps, {"train/mean_bsld": self.mean_bsld})
        spent = self.budget.spent_s
        if self.save is not None and spent - self.saved_s > self.every_s:
            self.saved_s = spent
            self.save()
        if self.show is not None and spent - self.shown_s > SHOW_S:
            self.shown_s = spent
            self.show(self.line())

    def _on_training_end(self) -> None:
        if self.show is not None:
            self.show(self.line())

    @property
    def mean_bsld(self) -> float:
        """Mean BSLD of the last 200 episodes, in which the agent explored."""
        return sum(self.recent) / len(self.recent) if self.recent else math.nan

    def line(self) -> str:
        """Return how far the training is, in one line."""
        spent = self.budget.spent_s
        speed = (self.budget.done - self.budget.first) / max(spent, 1e-9)
        return (
            f"{1 - self.budget.left:4.0%}  {spent / 60:5.1f} min  {self.budget.done:,} steps  "
            f"{speed:,.0f} steps/s  mean BSLD {self.mean_bsld:.1f}"
        )


class RelativeRewards(VecEnvWrapper):
    """Divide the rewards of an episode by what a reference reaches on the same jobs.

    Slowdowns have a heavy tail: a crowded episode has a hundred times the mean BSLD of a quiet one,
    and would drown it. Divided by the whole mean BSLD of the reference (``power`` 1) all episodes
    weigh the same; divided by its root (1/2) crowded ones still weigh more, as they do in a mean.
    This is for learning only; what is reported is the mean BSLD itself.

    Parameters
    ----------
    venv : an ``HpcVecEnv``.
    reference : a scheduler's policy, simulated with the rules of the environment.
    power : between 0 (no division) and 1.
    """

    def __init__(self, venv: Any, reference: str = "sjf", power: float = 0.5) -> None:
        super().__init__(venv)
        self.reference, self.power = reference, power
        self._env = venv.unwrapped.env
        self._known: dict[str, float] = {}
        self._divisors = np.ones(self.num_envs, np.float32)

    def reset(self) -> Any:
        """Begin an episode in all environments."""
        observations = self.venv.reset()
        self._look(range(self.num_envs))
        return observations

    def step_wait(self) -> Any:
        """Finish a step."""
        observations, rewards, dones, infos = self.venv.step_wait()
        rewards = rewards / self._divisors
        self._look(np.flatnonzero(dones).tolist())
        return observations, rewards, dones, infos

    def _look(self, begun: Any) -> None:
        names = self._env.simulations.names
        for e in begun:
            if names[e] not in self._known:
                self._known[names[e]] = self._reach(names[e])
            self._divisors[e] = self._known[names[e]]

    def _reach(self, name: str) -> float:
        episodes = self._env.episodes
        jobs = episodes.workload_of(episodes.find({"slice": name}))
        rules = self._env.options.scheduler.but(policy=self.reference)
        bsld = float(simulate(jobs, rules).metrics["mean_bsld"])
        return math.pow(bsld, self.power)


def both_scales(jobs: torch.Tensor) -> torch.Tensor:
    """Return features as they are and on a logarithmic scale.

    A feature t / (t + 1 h) has the log-odds log(t / 1 h), in which orders such as shortest first or
    smallest area first are linear.
    """
    inside = jobs.clamp(1e-4, 1.0 - 1e-4)
    return torch.cat([jobs, torch.log(inside / (1.0 - inside)) / 4.0], dim=-1)
