"""PPO on MixedPolicy: a network sets the weights of the policy that orders the queue.

The network sees the state in a few dozen numbers: cluster, queue and time, and what the waiting
jobs are like on average. Its actions are weights in units of their features: each is divided by the
mean of its feature over the training jobs, as an area has a million processor seconds where there
are ten processors, and no other weight would ever matter. Where the environment has units itself
(``scale="spread"``), these are enough.

>>> from hpcgym.agents import ppo
>>> agent = ppo.train("lublin:jobs=2000,processors=64", steps=64, n_envs=2, n_steps=16)
>>> agent.name
'ppo'
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from stable_baselines3 import PPO
from stable_baselines3.common.policies import ActorCriticPolicy, MultiInputActorCriticPolicy
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from stable_baselines3.common.vec_env import VecEnvWrapper

from hpcgym.agents.common import (
    Budget,
    Progress,
    RelativeRewards,
    both_scales,
    keeping,
)
from hpcgym.agents.declared import takes
from hpcgym.agents.logs import Log
from hpcgym.agents.network_files import adam_state, read_before, small_envs, weights_for, write
from hpcgym.agents.settings import PpoSettings
from hpcgym.agents.specs import plain_options, settled_options
from hpcgym.envs.core.episodes import Episodes
from hpcgym.envs.mixed_policy import MixedPolicyVector
from hpcgym.envs.sb3 import HpcVecEnv
from hpcgym.errors import HpcgymError
from hpcgym.files import shaped
from hpcgym.scheduler.policies.features import FEATURES, USER_FEATURES, JobColumns

NAME = "ppo"
ENV_ID = "hpcgym/MixedPolicy-v0"

_MOST_LOG = 80  # of a standard deviation: that is neither 0 nor infinite in float32


class Summary(BaseFeaturesExtractor):
    """The state in a few numbers: cluster, queue, time, and means over the visible jobs."""

    def __init__(self, observation_space: Any) -> None:
        sizes = {name: space.shape for name, space in observation_space.spaces.items()}
        n_context = sum(sizes[name][0] for name in ("cluster", "queue", "time"))
        super().__init__(observation_space, features_dim=n_context + 2 * sizes["jobs"][1])

    def forward(self, observations: Mapping[str, torch.Tensor]) -> torch.Tensor:
        """Return the numbers, (batch, features_dim)."""
        visible = observations["mask"] > 0.5
        # only visible jobs are computed: mostly they are few
        jobs = both_scales(observations["jobs"][visible])
        sums = jobs.new_zeros(len(visible), jobs.shape[1])
        sums.index_add_(0, visible.nonzero()[:, 0], jobs)
        means = sums / visible.sum(dim=1, keepdim=True).clamp(min=1)
        context = [observations[name] for name in ("cluster", "queue", "time")]
        return torch.cat([*context, means], dim=1)


class ScaledWeights(VecEnvWrapper):
    """Take weights in units of their features, and hand them to the environment in its own."""

    def __init__(self, venv: Any, units: NDArray[np.float64]) -> None:
        super().__init__(venv)
        self.units = units

    def reset(self) -> Any:
        """Begin an episode in all environments."""
        return self.venv.reset()

    def step_async(self, actions: Any) -> None:
        """Take the actions."""
        self.venv.step_async(in_own_units(actions, self.units))

    def step_wait(self) -> Any:
        """Finish a step."""
        return self.venv.step_wait()


def in_own_units(actions: Any, units: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return weights that are divided by units; the largest becomes 1, the proportions stay."""
    weights = np.asarray(actions, np.float64) / units
    largest = np.abs(weights).max(axis=-1, keepdims=True)
    scaled: NDArray[np.float64] = weights / np.where(largest > 0, largest, 1.0)
    return scaled


def mean_features(part: Episodes, names: tuple[str, ...]) -> NDArray[np.float64]:
    """Return the mean size of each feature over the jobs of a part, as if each waited for 1 h.

    Priorities of users, which are from 0 to 1, count as 1.
    """
    first, stop = part.listing[0].start, part.listing[-1].stop
    columns = JobColumns(part.workload.take(slice(first, stop)))
    means = []
    for name in names:
        if name in USER_FEATURES:
            means.append(1.0)
            continue
        feature = FEATURES[name]
        value = np.zeros(stop - first)
        if feature.static is not None:
            value = value + feature.static(columns)
        if feature.patience is not None:
            value = value + np.minimum(3600.0 / feature.patience(columns), 1e6)
        means.append(max(float(np.abs(value).mean()), 1e-9))
    return np.array(means)


class WeightsAgent:
    """A trained network that sets weights; it takes the mean of its distribution.

    Attributes
    ----------
    name : "ppo".
    env_id, env_options : the environment that it was trained for.
    policy_features : what it weighs.
    """

    name, env_id = NAME, ENV_ID

    def __init__(
        self,
        policy: ActorCriticPolicy,
        units: NDArray[np.float64],
        env_options: Mapping[str, Any],
    ) -> None:
        self.policy, self.units, self.env_options = policy, units, dict(env_options)
        self.policy.set_training_mode(False)
        self.policy_features = tuple(self.env_options["policy_features"])

    def __repr__(self) -> str:
        return f"WeightsAgent({self.name!r})"

    def begin(self, env: Any) -> None:
        """Check that an environment is such as the agent was made for.

        Raises
        ------
        HpcgymError : it has other actions or features.
        """
        env = getattr(env, "unwrapped", env)
        if env.action_kind != "weights" or env.options.flat:
            raise HpcgymError(f"{self.name} acts in {ENV_ID} with observation='dict'")
        if tuple(env.policy_features) != self.policy_features:
            raise HpcgymError(f"{self.name} weighs {', '.join(self.policy_features)}")
        space: Any = self.policy.observation_space
        width = space["jobs"].shape[1]
        if len(env.options.names) != width:
            raise HpcgymError(f"{self.name} knows {width} features of jobs")

    def act(
        self, observation: Mapping[str, Any], info: Mapping[str, Any] | None = None
    ) -> NDArray[np.float64]:
        """Return the weights, (n_features,), between -1 and 1."""
        batch = {n: torch.as_tensor(np.asarray(v)[None]).float() for n, v in observation.items()}
        with torch.no_grad():
            weights = self.policy.get_distribution(batch).mode()[0].numpy()
        return in_own_units(np.clip(weights, -1.0, 1.0), self.units)


def load(contents: Mapping[str, Any]) -> WeightsAgent:
    """Return the agent of a file's contents; :func:`hpcgym.agents.load` reads files."""
    options, width = contents["env_options"], _width(contents)
    env = small_envs(ENV_ID, options)
    seen: Any = env.observation_space
    policy = MultiInputActorCriticPolicy(seen, env.action_space, lambda _: 0.0, **_shape(width))
    _take(policy, contents)
    return WeightsAgent(policy, _units(contents), options)


@takes(PpoSettings)
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
) -> WeightsAgent:
    """Train an agent; with ``steps`` only, the same arguments give the same agent.

    Parameters
    ----------
    workload : what to train on, as for :func:`hpcgym.load_workload`.
    minutes, steps : how long; whichever is over first. Steps are those of all environments
        together, each an interval, rounded up to whole rollouts.
    output : file of the agent, written at each checkpoint and at the end.
    resume : file of an agent of this kind to go on with; episodes are drawn anew, by ``seed``.
    env_options : further arguments of the environment, such as ``policy_features`` or ``interval``
        (here "day" if it is not given).
    tensorboard : folder for TensorBoard's logs.
    checkpoint_s : time between checkpoints [s].
    show : is given a line on the progress every few seconds.
    log : is told the mean BSLD of the last 200 episodes after each rollout.
    **settings : those of :class:`hpcgym.agents.settings.PpoSettings`.
    """
    how = PpoSettings.of("train", settings)
    before = read_before(resume, ENV_ID, NAME)
    options = plain_options({**before.get("env_options", {}), **(env_options or {})})
    if options.get("observation", "dict") != "dict":
        raise HpcgymError("env_options: the network takes observation='dict'")
    budget = Budget(steps, minutes, before.get("steps", 0))
    options.setdefault("interval", "day")
    envs = HpcVecEnv(
        ENV_ID, how.n_envs, threads=1, workload=workload, **how.of_episodes(), **options
    )
    assert isinstance(envs.env, MixedPolicyVector)
    options["policy_features"] = list(envs.env.policy_features)
    options = settled_options(envs.env, options)
    units, width = np.ones(len(envs.env.policy_features)), how.width
    if envs.env.units is None:  # else the environment has units itself
        units = mean_features(envs.env.episodes, envs.env.policy_features)
    if before:
        with shaped(resume, f"the file of a {NAME}"):
            if before["env_options"]["policy_features"] != options["policy_features"]:
                raise HpcgymError("it weighs other policy_features")
            units, width = _units(before), _width(before)
    model = PPO(
        MultiInputActorCriticPolicy,
        ScaledWeights(RelativeRewards(envs, how.reference, how.power), units),
        learning_rate=lambda _: how.learning_rate * max(budget.left, 1e-3),
        n_steps=how.n_steps,
        batch_size=min(how.batch_size, how.n_envs * how.n_steps),
        n_epochs=how.n_epochs,
        gamma=how.gamma,
        gae_lambda=how.gae_lambda,
        ent_coef=how.ent_coef,
        policy_kwargs=_shape(width),
        tensorboard_log=None if tensorboard is None else str(tensorboard),
        seed=how.seed,
        device="cpu",
    )
    if before:
        with shaped(resume, f"the file of a {NAME}"):
            _take(model.policy, before)
            optimizer = model.policy.optimizer
            optimizer.load_state_dict(adam_state(before["optimizer"], optimizer))
            model.num_timesteps = before["steps"]

    def save() -> None:
        if output is not None:
            contents = {
                "agent": NAME,
                "env_id": ENV_ID,
                "env_options": options,
                "width": width,
                "units": units.tolist(),
                "weights": model.policy.state_dict(),
                "optimizer": model.policy.optimizer.state_dict(),
                "steps": budget.done,
                "seed": how.seed,
            }
            write(output, contents)

    progress = Progress(budget, save, checkpoint_s, show, log)
    last = budget.last_step
    kept = keeping(save, lambda: model._n_updates > 0, model.policy)
    with closing(envs), kept:
        model.learn(last - budget.first, progress, tb_log_name=NAME, reset_num_timesteps=False)
    return WeightsAgent(model.policy, units, options)


def _shape(width: int) -> dict[str, Any]:
    """Return the arguments of the policy: two small networks that share no layer."""
    layers = [width, width]
    return {"net_arch": {"pi": layers, "vf": layers}, "features_extractor_class": Summary}


def _width(contents: Mapping[str, Any]) -> int:
    """Return the width of a file's network, which takes no more memory than its weights do."""
    rows, columns = contents["weights"]["mlp_extractor.policy_net.2.weight"].shape
    if not contents["width"] == rows == columns:
        raise HpcgymError(f"this {NAME} has weights of another width")
    width: int = rows
    return width


def _units(contents: Mapping[str, Any]) -> NDArray[np.float64]:
    """Return what a file's weights are divided by, one number a feature."""
    units = np.array(contents["units"], np.float64)
    if units.shape != (len(contents["env_options"]["policy_features"]),):
        raise HpcgymError("'units' must have a number for each of policy_features")
    if not (np.isfinite(units) & (units > 0)).all():
        raise HpcgymError("'units' must be numbers above 0")
    return units


def _take(policy: ActorCriticPolicy, contents: Mapping[str, Any]) -> None:
    """Give a policy the weights of a file."""
    weights = weights_for("weights", contents["weights"], policy.state_dict())
    if (weights["log_std"].abs() > _MOST_LOG).any():
        raise HpcgymError(f"weights['log_std'] must be from {-_MOST_LOG} to {_MOST_LOG}")
    policy.load_state_dict(weights)
