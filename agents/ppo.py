"""What PPO of Stable-Baselines3 has learned in the suite: agents that act, read from files.

A network sees the state in a few dozen numbers: cluster, queue and time, and what the waiting jobs
are like on average. Its actions are weights in units of their features. Nothing trains such agents
any more; ``rule-es`` learns weights that depend on the state.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from stable_baselines3.common.policies import ActorCriticPolicy, MultiInputActorCriticPolicy
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor

from hpcgym.agents.maskable_ppo import both_scales
from hpcgym.agents.network_files import small_envs, weights_for
from hpcgym.errors import HpcgymError

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


def in_own_units(actions: Any, units: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return weights that are divided by units; the largest becomes 1, the proportions stay."""
    weights = np.asarray(actions, np.float64) / units
    largest = np.abs(weights).max(axis=-1, keepdims=True)
    scaled: NDArray[np.float64] = weights / np.where(largest > 0, largest, 1.0)
    return scaled


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
