"""MaskablePPO on JobSelection: a small network looks at each visible job and gives it a score.

The same network scores every job, from its features and from what is known of cluster, queue and
time, so the order in which jobs stand in the window does not matter, and neither does their number.
The scores are the logits of the choice; places of the window without a job are masked.

>>> from hpcgym.agents import maskable_ppo
>>> agent = maskable_ppo.train("lublin:jobs=2000,processors=64", steps=512, n_envs=2, n_steps=64)
>>> agent.name
'maskable-ppo'

What trains it (how long, with what progress and checkpoints, by which rewards) is here, too;
:mod:`hpcgym.agents.behaviour_cloning` teaches the same network.
"""

from __future__ import annotations

import math
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from sb3_contrib import MaskablePPO
from sb3_contrib.common.maskable.policies import MaskableActorCriticPolicy
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from stable_baselines3.common.vec_env import VecEnvWrapper
from torch import nn

from hpcgym.agents.network_files import (
    DIVERGED,
    adam_state,
    are_finite,
    read_before,
    weights_for,
    write,
)
from hpcgym.agents.practice import Log, Make, acting
from hpcgym.agents.saved import plain_options, settled_options
from hpcgym.agents.settings import EpisodeSettings, MaskablePpoSettings, takes
from hpcgym.envs.sb3 import HpcVecEnv
from hpcgym.errors import HpcgymError
from hpcgym.files import shaped
from hpcgym.files.writing import whole
from hpcgym.progress import SHOW_S
from hpcgym.simulation.run import simulate

NAME = "maskable-ppo"
ENV_ID = "hpcgym/JobSelection-v0"

# --- How a network is trained ---------------------------------------------------------------------

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
    save : writes a checkpoint. With None no checkpoint is written.
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


# --- The network ----------------------------------------------------------------------------------


class JobNetwork(nn.Module):
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
    """The policy of sb3-contrib with :class:`JobNetwork` in it."""

    mlp_extractor: Any  # a JobNetwork, where the library has a network of its own

    def __init__(
        self, seen: Any, acted: Any, lr_schedule: Any, *, width: int = 32, **more: Any
    ) -> None:
        self.width = width
        super().__init__(seen, acted, lr_schedule, features_extractor_class=Unchanged, **more)

    def _build(self, lr_schedule: Callable[[float], float]) -> None:
        self.mlp_extractor = JobNetwork(*sizes(self.observation_space), self.width)
        self.action_net = nn.Identity()  # the network's scores are the logits
        self.value_net = nn.Linear(2 * self.width, 1)
        optimizer: Callable[..., torch.optim.Optimizer] = self.optimizer_class
        self.optimizer = optimizer(self.parameters(), lr=lr_schedule(1), **self.optimizer_kwargs)


class JobAgent:
    """A trained network that selects the job with the highest score.

    Attributes
    ----------
    name : "maskable-ppo", or that of the agent which the network was trained by.
    env_id, env_options : the environment that it was trained for.
    """

    env_id = ENV_ID

    def __init__(
        self, network: JobNetwork, env_options: Mapping[str, Any], name: str = NAME
    ) -> None:
        self.network, self.env_options, self.name = network.eval(), dict(env_options), name

    def __repr__(self) -> str:
        return f"JobAgent({self.name!r})"

    def begin(self, env: Any) -> None:
        """Check that an environment is such as the agent was made for.

        Raises
        ------
        HpcgymError : it has other actions or features.
        """
        env = getattr(env, "unwrapped", env)
        if env.action_kind != "selection" or env.options.flat:
            raise HpcgymError(f"{self.name} acts in {ENV_ID} with observation='dict'")
        features, context = sizes(env.observation_space)
        if features != self.network.of_job.in_features // 2:
            known = self.network.of_job.in_features // 2
            raise HpcgymError(f"{self.name} knows {known} features of jobs, not {features}")
        if context != self.network.of_context.in_features:
            raise HpcgymError(f"{self.name} was made for other fields of the observation")

    def act(self, observation: Mapping[str, Any], info: Mapping[str, Any] | None = None) -> int:
        """Return the index of the visible job with the highest score, the first of equals."""
        names = ("cluster", "queue", "time", "jobs", "mask")
        tensors = {n: torch.as_tensor(np.asarray(observation[n])[None]).float() for n in names}
        with torch.no_grad():
            scores = self.network.forward_actor(tensors)[0].numpy()
        return int(np.argmax(np.where(observation["mask"] > 0, scores, -np.inf)))


def load(contents: Mapping[str, Any]) -> JobAgent:
    """Return the agent of a file's contents; :func:`hpcgym.agents.load` reads files."""
    return JobAgent(network_of(contents), contents["env_options"], contents["agent"])


def network_of(contents: Mapping[str, Any]) -> JobNetwork:
    """Return the network of a file's contents, which takes no more memory than its weights do."""
    with torch.device("meta"):
        network = JobNetwork(**contents["network"])
    weights = weights_for("weights", contents["weights"], network.state_dict())
    network.load_state_dict(weights, assign=True)
    return network


@takes(MaskablePpoSettings)
def train(
    workload: Any,
    *,
    minutes: float | None = None,
    steps: int | None = None,
    output: str | Path | None = None,
    resume: str | Path | None = None,
    env_options: Mapping[str, Any] | None = None,
    tensorboard: str | Path | None = None,
    checkpoint_s: float = 120.0,
    show: Callable[[str], None] | None = None,
    log: Log | None = None,
    **settings: Any,
) -> JobAgent:
    """Train an agent; with ``steps`` only, the same arguments give the same agent.

    Parameters
    ----------
    workload : what to train on, as for :func:`hpcgym.load_workload`.
    minutes, steps : how long; whichever is over first. Steps are those of all environments
        together, rounded up to whole rollouts.
    output : file of the agent, written at each checkpoint and at the end.
    resume : file of an agent to go on with: one of this kind with its optimiser, or a clone of
        another policy as a start. Episodes are drawn anew, by ``seed``.
    env_options : further arguments of the environment, such as ``backfill``, ``reservation``
        (here "revised" if it is not given) or ``features``.
    tensorboard : folder for TensorBoard's logs.
    checkpoint_s : time between checkpoints [s].
    show : is given a line on the progress every few seconds.
    log : is told the mean BSLD of the last 200 episodes after each rollout.
    **settings : those of :class:`hpcgym.agents.settings.MaskablePpoSettings`.
    """
    how = MaskablePpoSettings.of("train", settings)
    before = read_before(resume, ENV_ID, NAME, "clone")
    options = plain_options({**before.get("env_options", {}), **(env_options or {})})
    if options.get("shutdown_action") or options.get("observation", "dict") != "dict":
        raise HpcgymError(
            "env_options: the network scores jobs of observation='dict', and no shutdown_action"
        )
    budget = Budget(steps, minutes, before.get("steps", 0))
    options.setdefault("reservation", "revised")
    envs = HpcVecEnv(
        ENV_ID, how.n_envs, threads=1, workload=workload, **how.of_episodes(), **options
    )
    options, width = settled_options(envs.env, options), how.width
    if before:
        with shaped(resume, f"the file of a {NAME}"):
            width = shape_of(network_of(before))["width"]
    model = MaskablePPO(
        JobPolicy,
        RelativeRewards(envs, how.reference, how.power),
        learning_rate=lambda _: how.learning_rate * max(budget.left, 1e-3),
        n_steps=how.n_steps,
        batch_size=min(how.batch_size, how.n_envs * how.n_steps),
        n_epochs=how.n_epochs,
        gamma=how.gamma,
        gae_lambda=how.gae_lambda,
        ent_coef=how.ent_coef,
        policy_kwargs={"width": width},
        tensorboard_log=None if tensorboard is None else str(tensorboard),
        seed=how.seed,
        device="cpu",
    )
    if before:
        with shaped(resume, f"the file of a {NAME}"):
            _go_on(model, before, resume)

    def save() -> None:
        if output is not None:
            write(output, _contents(model, options, budget, how.seed))

    progress = Progress(budget, save, checkpoint_s, show, log)
    last = budget.last_step
    kept = keeping(save, lambda: model._n_updates > 0, model.policy)
    with closing(envs), kept:
        model.learn(last - budget.first, progress, tb_log_name=NAME, reset_num_timesteps=False)
    return JobAgent(_network(model), options)


def _network(model: MaskablePPO) -> JobNetwork:
    """Return what a model learns."""
    policy: Any = model.policy
    assert isinstance(policy, JobPolicy)
    network: JobNetwork = policy.mlp_extractor
    return network


def _contents(
    model: MaskablePPO, options: Mapping[str, Any], budget: Budget, seed: int
) -> dict[str, Any]:
    """Return what the file of an agent has."""
    network = _network(model)
    return {
        "agent": NAME,
        "env_id": ENV_ID,
        "env_options": dict(options),
        "network": shape_of(network),
        "weights": network.state_dict(),
        "value": model.policy.value_net.state_dict(),
        "optimizer": model.policy.optimizer.state_dict(),
        "steps": budget.done,
        "seed": seed,
    }


def shape_of(network: JobNetwork) -> dict[str, int]:
    """Return the arguments that a network was made with."""
    return {
        "n_features": network.of_job.in_features // 2,
        "n_context": network.of_context.in_features,
        "width": network.of_job.out_features,
    }


def _go_on(model: MaskablePPO, before: Mapping[str, Any], path: Any) -> None:
    """Give a model what a file has."""
    network, head, optimizer = _network(model), model.policy.value_net, model.policy.optimizer
    if before["network"] != shape_of(network):
        raise HpcgymError(f"{path} is not an agent with the same actions and features")
    network.load_state_dict(weights_for("weights", before["weights"], network.state_dict()))
    if "value" in before:
        head.load_state_dict(weights_for("value", before["value"], head.state_dict()))
        optimizer.load_state_dict(adam_state(before["optimizer"], optimizer))
    model.num_timesteps = before["steps"]


class MaskablePpoTrainee:
    """The training as the suite asks for it: by ``train(make, seed, steps)``, on the train part."""

    name = NAME
    _agent: JobAgent
    _file: bytes

    def check(self, env: Any) -> Any:
        """Return an environment itself; raise an HpcgymError if the agent cannot act there."""
        return acting(env, NAME, "selection")

    def train(
        self, make: Make, seed: int, steps: int, log: Log | None = None
    ) -> MaskablePpoTrainee:
        """Train; steps are rounded up to whole rollouts. ``log``: the mean BSLD of episodes."""
        env = make()
        self.check(env)
        given = dict(env.spec.kwargs)
        env.close()
        names = vars(EpisodeSettings())
        settings = {name: given.pop(name) for name in names if name in given}
        with TemporaryDirectory() as folder:
            path = Path(folder) / "agent.pt"
            self._agent = train(
                given.pop("workload"), steps=steps, seed=seed, output=path, env_options=given,
                log=log, **settings,
            )  # fmt: skip
            self._file = path.read_bytes()
        return self

    def begin(self, env: Any) -> None:
        """Check that an environment is such as the agent was made for."""
        self._agent.begin(env)

    def act(self, observation: Any, info: Mapping[str, Any]) -> Any:
        """Return the action."""
        return self._agent.act(observation, info)

    def save(self, path: str | Path) -> None:
        """Write the agent's file."""
        with whole(path, folders=True) as part:
            part.write_bytes(self._file)
