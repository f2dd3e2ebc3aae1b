"""What PPO of Stable-Baselines3 has learned in the suite: agents that act, read from files.

A network sees the state in a few dozen numbers: cluster, queue and time, and what the waiting jobs
are like on average. Its actions are weights in units of their features. Nothing trains such agents
any more; ``rule-es`` finds a formula that depends on the state.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn.functional import linear

from hpcgym.agents.maskable_ppo import both_scales
from hpcgym.agents.network_files import weights_for
from hpcgym.agents.practice import acting
from hpcgym.envs.core.observation import CLUSTER_SIZE, QUEUE_SIZE, TIME_SIZE
from hpcgym.errors import HpcgymError

NAME = "ppo"
ENV_ID = "hpcgym/MixedPolicy-v2"

_CONTEXT = CLUSTER_SIZE + QUEUE_SIZE + TIME_SIZE
_LAYERS = ("mlp_extractor.policy_net.0", "mlp_extractor.policy_net.2", "action_net")


class WeightsAgent:
    """A trained network that sets weights; it takes the mean of its distribution.

    Parameters
    ----------
    weights : of its three layers, by the names of Stable-Baselines3.
    units : (n_features,) what its weights are divided by.
    env_options : of the environment that it was trained for.
    """

    name, env_id = NAME, ENV_ID

    def __init__(
        self,
        weights: Mapping[str, torch.Tensor],
        units: NDArray[np.float64],
        env_options: Mapping[str, Any],
    ) -> None:
        self.weights, self.units, self.env_options = weights, units, dict(env_options)
        self.policy_features = tuple(self.env_options["policy_features"])

    def __repr__(self) -> str:
        return f"WeightsAgent({self.name!r})"

    def begin(self, env: Any) -> None:
        """Check that an environment is such as the agent was made for.

        Raises
        ------
        HpcgymError : it has other actions or features.
        """
        world = acting(env, self.name, "weights")
        if world.options.flat:
            raise HpcgymError(f"{self.name} acts in {ENV_ID} with observation='dict'")
        if tuple(world.policy_features) != self.policy_features:
            raise HpcgymError(f"{self.name} weighs {', '.join(self.policy_features)}")
        known = self.weights[f"{_LAYERS[0]}.weight"].shape[1]
        if _CONTEXT + 2 * len(world.options.names) != known:
            raise HpcgymError(f"{self.name} knows {(known - _CONTEXT) // 2} features of jobs")

    def act(
        self, observation: Mapping[str, Any], info: Mapping[str, Any] | None = None
    ) -> NDArray[np.float64]:
        """Return the weights, (n_features,) float64; the largest has the size 1."""
        given = {n: torch.as_tensor(np.asarray(v)).float() for n, v in observation.items()}
        jobs = both_scales(given["jobs"][given["mask"] > 0.5])
        # one after the other, as a batch was summed in training: to the last bit
        sums = jobs.new_zeros(1, jobs.shape[1])
        sums.index_add_(0, torch.zeros(len(jobs), dtype=torch.long), jobs)
        context = torch.cat([given["cluster"], given["queue"], given["time"]])[None]
        seen = torch.cat([context, sums / max(len(jobs), 1)], dim=1)
        first, second, last = (
            (self.weights[f"{layer}.weight"], self.weights[f"{layer}.bias"]) for layer in _LAYERS
        )
        hidden = torch.tanh(linear(torch.tanh(linear(seen, *first)), *second))
        weights = linear(hidden, *last)[0].numpy().astype(np.float64)
        return in_own_units(np.clip(weights, -1.0, 1.0), self.units)


def in_own_units(weights: Any, units: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return weights that are divided by units; the largest becomes 1, the proportions stay."""
    divided: NDArray[np.float64] = np.asarray(weights, np.float64) / units
    return divided / (np.abs(divided).max() or 1.0)


def load(contents: Mapping[str, Any]) -> WeightsAgent:
    """Return the agent of a file's contents; :func:`hpcgym.agents.load` reads files."""
    options, given = contents["env_options"], contents["weights"]
    n_features, width = len(options["policy_features"]), contents["width"]
    seen = given[f"{_LAYERS[0]}.weight"].shape[1]
    sizes = ((width, seen), (width, width), (n_features, width))
    wanted = {}
    for layer, shape in zip(_LAYERS, sizes, strict=True):
        wanted[f"{layer}.weight"] = torch.empty(shape, device="meta")
        wanted[f"{layer}.bias"] = torch.empty(shape[:1], device="meta")
    weights = weights_for("weights", {name: given[name] for name in wanted}, wanted)
    units = np.array(contents["units"], np.float64)
    if units.shape != (n_features,):
        raise HpcgymError("'units' must have a number for each of policy_features")
    if not (np.isfinite(units) & (units > 0)).all():
        raise HpcgymError("'units' must be numbers above 0")
    return WeightsAgent(weights, units, options)
