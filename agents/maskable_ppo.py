"""MaskablePPO on JobSelection: a small network looks at each visible job and gives it a score.

The same network scores every job, from its features and from what is known of cluster, queue and
time, so the order in which jobs stand in the window does not matter, and neither does their number.
The scores are the logits of the choice; places of the window without a job are masked.

>>> from hpcgym.agents.maskable_ppo import MaskablePpo
>>> from hpcgym.agents.practice import maker
>>> make = maker("lublin:jobs=600,processors=32,load=1.0", "hpcgym/JobSelection-v2", {"jobs": 20})
>>> MaskablePpo(n_envs=2, n_steps=64).train(make, seed=0, steps=128).name
'maskable-ppo'

:mod:`hpcgym.agents.behaviour_cloning` teaches the same network.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sb3_contrib import MaskablePPO
from sb3_contrib.common.maskable.policies import MaskableActorCriticPolicy
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from stable_baselines3.common.vec_env import VecEnvWrapper
from torch import nn

from hpcgym.agents import load as load_agent
from hpcgym.agents.network_files import DIVERGED, are_finite, weights_for, write
from hpcgym.agents.practice import Logger, Make, acting
from hpcgym.agents.saved import settled_options
from hpcgym.agents.settings import MaskablePpoSettings, takes
from hpcgym.envs.core.episodes import Episodes
from hpcgym.envs.sb3 import HpcVecEnv
from hpcgym.errors import HpcgymError, check_whole
from hpcgym.simulation.allowance import SpentError
from hpcgym.simulation.run import simulate

NAME = "maskable-ppo"
ENV_ID = "hpcgym/JobSelection-v2"

# --- How a network is trained ---------------------------------------------------------------------

# several threads are slower than one for networks this small, and may stall where cores are few
torch.set_num_threads(1)


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


def both_scales(jobs: torch.Tensor) -> torch.Tensor:
    """Return features as they are and on a logarithmic scale.

    A feature t / (t + 1 h) has the log-odds log(t / 1 h), in which orders such as shortest first or
    smallest area first are linear.
    """
    inside = jobs.clamp(1e-4, 1.0 - 1e-4)
    return torch.cat([jobs, torch.log(inside / (1.0 - inside)) / 4.0], dim=-1)


# --- The network ----------------------------------------------------------------------------------


class MaskedJobNetwork(nn.Module):
    """Scores of the visible jobs, and the value of the state.

    Parameters
    ----------
    n_features : columns of the window.
    n_context : numbers that describe the state beside the window.
    width : of the hidden layers.
    """

    def __init__(self, n_features: int, n_context: int, width: int = 32) -> None:
        super().__init__()
        self.of_job = nn.Linear(2 * n_features, width)
        self.of_context = nn.Linear(n_context, width, bias=False)
        self.score = nn.Sequential(nn.Tanh(), nn.Linear(width, width), nn.Tanh(), _near_zero(width))
        self.value_of_job = nn.Sequential(nn.Linear(2 * n_features, width), nn.Tanh())
        self.value = nn.Sequential(
            nn.Linear(2 * width + n_context, 2 * width), nn.Tanh(),
            nn.Linear(2 * width, 2 * width), nn.Tanh(),
        )  # fmt: skip

    def forward(self, observation: Mapping[str, torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor]:
        """Return what ``forward_actor`` and ``forward_critic`` do."""
        return self.forward_actor(observation), self.forward_critic(observation)

    def forward_actor(self, observation: Mapping[str, torch.Tensor]) -> torch.Tensor:
        """Return the scores, (batch, window); 0 where there is no job."""
        visible = observation["mask"] > 0.5
        context = self.of_context(_context(observation))
        # only visible jobs are computed: mostly they are few
        hidden = self.of_job(both_scales(observation["jobs"][visible]))
        hidden = hidden + context[visible.nonzero()[:, 0]]
        scores = torch.zeros_like(observation["mask"], dtype=hidden.dtype)
        scores[visible] = self.score(hidden).squeeze(-1)
        return scores

    def forward_critic(self, observation: Mapping[str, torch.Tensor]) -> torch.Tensor:
        """Return the last hidden layer of the value, (batch, 2 * width), from sums over jobs."""
        visible = observation["mask"] > 0.5
        hidden = self.value_of_job(both_scales(observation["jobs"][visible]))
        pooled = hidden.new_zeros(len(visible), hidden.shape[1])
        pooled.index_add_(0, visible.nonzero()[:, 0], hidden)
        number = visible.sum(dim=1, keepdim=True).clamp(min=1)
        parts = [pooled / number, pooled / 32.0, _context(observation)]
        hidden_value: torch.Tensor = self.value(torch.cat(parts, dim=1))
        return hidden_value


def _near_zero(width: int) -> nn.Linear:
    """Return a last layer that makes all choices about as likely at first."""
    layer = nn.Linear(width, 1)
    nn.init.normal_(layer.weight, std=0.01)
    nn.init.zeros_(layer.bias)
    return layer


def _context(observation: Mapping[str, torch.Tensor]) -> torch.Tensor:
    """Return what is known beside the window, (batch, n_context)."""
    return torch.cat([observation[name] for name in ("cluster", "queue", "time")], dim=1)


def sizes(observation_space: Any) -> tuple[int, int]:
    """Return the number of features of a job, and of numbers that describe the state beside."""
    fields = observation_space.spaces
    context = sum(fields[name].shape[0] for name in ("cluster", "queue", "time"))
    return fields["jobs"].shape[1], context


class Unchanged(BaseFeaturesExtractor):
    """Hands the fields of the observation to the network."""

    def __init__(self, observation_space: Any) -> None:
        super().__init__(observation_space, features_dim=1)

    def forward(self, observations: Any) -> Any:
        """Return the observation."""
        return observations


class JobPolicy(MaskableActorCriticPolicy):
    """The policy of sb3-contrib with :class:`MaskedJobNetwork` in it."""

    mlp_extractor: Any  # a JobNetwork, where the library has a network of its own

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


@takes(MaskablePpoSettings)
class MaskablePpo:
    """An agent that selects the job with the highest score.

    Parameters
    ----------
    **settings : those of :class:`hpcgym.agents.settings.MaskablePpoSettings`.

    Attributes
    ----------
    name : "maskable-ppo", or "clone" if its network was taught what another policy does.
    network : its network, after training.
    head : weights of the last layer of the value; None of a clone.
    env_id, env_options : the environment that it was trained for; after ``train``.
    """

    each_log = True  # the suite trains one for each

    def __init__(self, **settings: Any) -> None:
        self.plan = MaskablePpoSettings(**settings)
        self.name = NAME
        self.network: MaskedJobNetwork | None = None
        self.head: dict[str, torch.Tensor] | None = None
        self._model: Any = None  # while it is trained

    def __repr__(self) -> str:
        return f"MaskablePpo({self.name!r})"

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
            policy_kwargs={"width": width_of(before.network) if before else plan.width},
            seed=seed,
            device="cpu",
        )
        policy: Any = model.policy
        if before:
            policy.mlp_extractor.load_state_dict(before.network.state_dict())
            if before.head is not None:
                policy.value_net.load_state_dict(before.head)
        self._model = model
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
        self.keep_best()
        self._model = None
        return self

    def made_for(self, env_options: Mapping[str, Any]) -> None:
        """Take over what there is to know of the environment that it is to act in."""
        self.env_id, self.env_options = ENV_ID, dict(env_options)

    def keep_best(self) -> bool:
        """Be what a training has learned that was interrupted; tell whether there was anything."""
        if self._model is None or not self._model._n_updates:
            return False
        policy = self._model.policy
        self.network, self.head = policy.mlp_extractor.eval(), policy.value_net.state_dict()
        return True

    def check(self, env: Any) -> Any:
        """Return an environment itself; raise an HpcgymError if no such agent can act there."""
        world = acting(env, self.name, "select")
        if world.options.flat or world.action_space.n != world.options.window:
            raise HpcgymError(
                f"{self.name} scores jobs of observation='dict', and knows no shutdown_action"
            )
        return world

    def begin(self, env: Any) -> None:
        """Check that an environment is such as the agent was made for.

        Raises
        ------
        HpcgymError : it has other actions or features, or nothing has been learned.
        """
        if self.network is None:
            raise HpcgymError(f"{self.name}: nothing has been learned; call train first")
        _check_sizes(self.network, self.check(env).observation_space, self.name)

    def act(self, observation: Mapping[str, Any], info: Mapping[str, Any] | None = None) -> int:
        """Return the index of the visible job with the highest score, the first of equals."""
        assert self.network is not None
        names = ("cluster", "queue", "time", "jobs", "mask")
        tensors = {n: torch.as_tensor(np.asarray(observation[n])[None]).float() for n in names}
        with torch.no_grad():
            scores = self.network.forward_actor(tensors)[0].numpy()
        return int(np.argmax(np.where(observation["mask"] > 0, scores, -np.inf)))

    def save(self, path: str | Path) -> None:
        """Write the agent, in such a way that a reader never sees half of it."""
        assert self.network is not None
        contents: dict[str, Any] = {
            "agent": self.name,
            "env_id": ENV_ID,
            "env_options": self.env_options,
            "network": {
                "n_features": self.network.of_job.in_features // 2,
                "n_context": self.network.of_context.in_features,
                "width": width_of(self.network),
            },
            "weights": self.network.state_dict(),
        }
        write(path, contents if self.head is None else {**contents, "value": self.head})


def width_of(network: Any) -> int:
    """Return the units of each hidden layer of a network."""
    return int(network.of_job.out_features)


def _check_sizes(network: MaskedJobNetwork, observation_space: Any, name: str) -> None:
    """Raise an HpcgymError if a network was made for other observations."""
    features, context = sizes(observation_space)
    known = network.of_job.in_features // 2
    if features != known:
        raise HpcgymError(f"{name} knows {known} features of jobs, not {features}")
    if context != network.of_context.in_features:
        raise HpcgymError(f"{name} was made for other fields of the observation")


def _before(path: str | Path, observation_space: Any) -> Any:
    """Return the agent of a file that a training goes on from."""
    agent = load_agent(path)
    if not isinstance(agent, MaskablePpo) or agent.network is None:
        raise HpcgymError(f"{path} holds no {NAME}, and no clone")
    _check_sizes(agent.network, observation_space, str(path))
    return agent


def load(contents: Mapping[str, Any]) -> MaskablePpo:
    """Return the agent of a file's contents, which takes no more memory than its weights do."""
    agent = MaskablePpo()
    agent.name = contents["agent"]
    agent.made_for(contents["env_options"])
    with torch.device("meta"):
        network = MaskedJobNetwork(**contents["network"])
        head = nn.Linear(2 * width_of(network), 1)
    weights = weights_for("weights", contents["weights"], network.state_dict())
    network.load_state_dict(weights, assign=True)
    agent.network = network.eval()
    if "value" in contents:
        agent.head = weights_for("value", contents["value"], head.state_dict())
    return agent
