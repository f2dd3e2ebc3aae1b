"""MaskablePPO of Stable-Baselines3 on JobSelection, with a network that scores each visible job.

    python examples/maskable_ppo.py KTH-SP2
    cd examples && hpcgym suite run --agent maskable_ppo:MaskablePpo --tasks select --output ppo

The network is that of :mod:`hpcgym.agents.behaviour_cloning`: its scores are the logits of the
choice, and places of the window without a job are masked. ``MaskablePpo(resume="clone.pt")`` goes
on from a clone of a known order (``hpcgym train clone``). What it writes is a file of such a clone,
which ``hpcgym evaluate`` takes. Needs ``pip install 'hpcgym[agents]'``.

This is an example of how to train with another library, and no good scheduler: of five trainings
on KTH-SP2 none was better than the order SAF (``benchmarks/suite/README.md``).
"""

from __future__ import annotations

import math
import sys
from collections import deque
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from sb3_contrib import MaskablePPO
from sb3_contrib.common.maskable.policies import MaskableActorCriticPolicy
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from stable_baselines3.common.vec_env import VecEnvWrapper
from torch import nn

from hpcgym.agents import load
from hpcgym.agents.behaviour_cloning import ENV_ID, Clone, MaskedJobNetwork, check_sizes, sizes
from hpcgym.agents.network_files import DIVERGED, are_finite
from hpcgym.agents.practice import Logger, Make, maker
from hpcgym.agents.saved import settled_options
from hpcgym.envs.core.episodes import Episodes
from hpcgym.envs.sb3 import HpcVecEnv
from hpcgym.errors import HpcgymError, check_whole
from hpcgym.simulation.allowance import SpentError
from hpcgym.simulation.run import simulate

# --- What it is told ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Settings:
    """How it is trained."""

    resume: str | None = None  # the file of a clone to go on from
    n_envs: int = 32  # environments side by side, in one batch
    reference: str = "sjf"  # policy by whose mean BSLD the rewards of an episode are divided
    power: float = 0.5  # of that mean, see RelativeRewards
    n_steps: int = 128  # of each environment in a rollout
    batch_size: int = 1024
    n_epochs: int = 4  # how often each rollout is learned from
    learning_rate: float = 1e-3  # at the beginning; it falls to 0
    gamma: float = 1.0
    gae_lambda: float = 0.97
    ent_coef: float = 0.0
    width: int = 32  # of each hidden layer


# --- How a network is trained ---------------------------------------------------------------------


class Telling(BaseCallback):
    """Tell a log how training goes, after each rollout: the mean BSLD of the last 200 episodes.

    In these the agent explored. Losses are those of the rollout before.
    """

    def __init__(self, log: Logger) -> None:
        super().__init__()
        self.log = log
        self.recent: deque[float] = deque(maxlen=200)

    def _on_step(self) -> bool:
        for info in self.locals["infos"]:
            if "episode_mean_bsld" in info:
                self.recent.append(info["episode_mean_bsld"])
        return True

    def _on_rollout_end(self) -> None:
        row = {"train/mean_bsld": sum(self.recent) / len(self.recent)} if self.recent else {}
        of_losses = self.logger.name_to_value.items()
        row |= {name: float(value) for name, value in of_losses if name.startswith("train/")}
        self.log(self.num_timesteps, row)


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
        self._known: dict[tuple[Episodes, str], float] = {}
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
        simulations = self._env.simulations
        for e in begun:
            key = simulations.world(e).episodes, simulations.names[e]
            if key not in self._known:
                self._known[key] = self._reach(*key)
            self._divisors[e] = self._known[key]

    def _reach(self, episodes: Episodes, name: str) -> float:
        jobs = episodes.workload_of(episodes.find({"slice": name}))
        rules = self._env.options.scheduler.but(policy=self.reference)
        bsld = float(simulate(jobs, rules).metrics["mean_bsld"])
        return math.pow(bsld, self.power)


class Unchanged(BaseFeaturesExtractor):
    """Hands the fields of the observation to the network."""

    def __init__(self, observation_space: Any) -> None:
        super().__init__(observation_space, features_dim=1)

    def forward(self, observations: Any) -> Any:
        """Return the observation."""
        return observations


class JobPolicy(MaskableActorCriticPolicy):
    """The policy of sb3-contrib with :class:`MaskedJobNetwork` in it."""

    mlp_extractor: Any  # a MaskedJobNetwork, where the library has a network of its own

    def __init__(
        self, seen: Any, acted: Any, lr_schedule: Any, *, width: int = 32, **more: Any
    ) -> None:
        self.width = width
        super().__init__(seen, acted, lr_schedule, features_extractor_class=Unchanged, **more)

    def _build(self, lr_schedule: Callable[[float], float]) -> None:
        self.mlp_extractor = MaskedJobNetwork(*sizes(self.observation_space), self.width)
        self.action_net = nn.Identity()  # the network's scores are the logits
        self.value_net = nn.Linear(2 * self.width, 1)
        optimizer: Callable[..., torch.optim.Optimizer] = self.optimizer_class
        self.optimizer = optimizer(self.parameters(), lr=lr_schedule(1), **self.optimizer_kwargs)


# --- The agent ------------------------------------------------------------------------------------


class MaskablePpo(Clone):
    """An agent that selects the job with the highest score; settings are those of Settings."""

    name = "maskable-ppo"
    each_log = True  # the suite trains one for each

    def __init__(self, **settings: Any) -> None:
        super().__init__()
        self.plan = Settings(**settings)

    def train(self, make: Make, seed: int, steps: int, log: Logger | None = None) -> MaskablePpo:
        """Train; the same arguments give the same agent.

        Parameters
        ----------
        make : returns environments; see :mod:`hpcgym.agents.practice`.
        seed : of network, exploration and episodes.
        steps : of all environments together, rounded up to whole rollouts; if the jobs and steps of
            its training are counted, it ends with the last rollout that they pay for.
        log : is told the mean BSLD of the last 200 episodes, and losses, after each rollout.

        Raises
        ------
        HpcgymError : an environment that it cannot act in, a file to go on from that is of another
            agent or of other features, or a training that leads to weights that are no numbers.
        """
        plan, steps = self.plan, check_whole("steps", steps, 1)
        env = make()
        self.check(env)
        given = dict(env.spec.kwargs)
        env.close()
        envs = HpcVecEnv(ENV_ID, plan.n_envs, threads=1, **given)
        self.made_for(settled_options(envs.env, given))
        before = None if plan.resume is None else _before(plan.resume, envs.observation_space)
        model = MaskablePPO(
            JobPolicy,
            RelativeRewards(envs, plan.reference, plan.power),
            learning_rate=lambda left: plan.learning_rate * max(left, 1e-3),
            n_steps=plan.n_steps,
            batch_size=min(plan.batch_size, plan.n_envs * plan.n_steps),
            n_epochs=plan.n_epochs,
            gamma=plan.gamma,
            gae_lambda=plan.gae_lambda,
            ent_coef=plan.ent_coef,
            policy_kwargs={"width": before.of_job.out_features if before else plan.width},
            seed=seed,
            device="cpu",
        )
        policy: Any = model.policy
        if before:
            policy.mlp_extractor.load_state_dict(before.state_dict())
        try:
            with closing(envs):
                model.learn(steps, None if log is None else Telling(log))
        except SpentError:
            if not model._n_updates:
                raise
        # of torch's distributions, which refuse what is no number; of what draws from them, or of
        # the environment, where some library has told them not to
        except (ValueError, RuntimeError):
            if are_finite(policy.parameters()):
                raise
        if not are_finite(policy.parameters()):
            raise HpcgymError(DIVERGED)
        self.network = policy.mlp_extractor.eval()
        return self


def _before(path: str, observation_space: Any) -> MaskedJobNetwork:
    """Return the network of a file that a training goes on from."""
    agent = load(path)
    if not isinstance(agent, Clone) or agent.network is None:
        raise HpcgymError(f"{path} holds no clone")
    check_sizes(agent.network, observation_space, path)
    return agent.network


def main(workload: str, steps: str = "500000") -> None:
    """Train on the first half of a workload, and compare on slices of the second."""
    from hpcgym.study import evaluate

    make = maker(workload, ENV_ID, {"jobs": 256})
    agent = MaskablePpo().train(make, 0, int(steps), lambda done, told: print(done, dict(told)))
    agent.save("maskable-ppo.pt")
    print(evaluate(["maskable-ppo.pt", "saf"], workload).table)


if __name__ == "__main__":
    main(*sys.argv[1:])
