"""Models of Stable-Baselines3 and sb3-contrib, as ``model.save`` writes them, as agents.

Whatever the algorithm (PPO, MaskablePPO, DQN, SAC, RecurrentPPO, ...), what acts is the policy of
the model: it is made anew from the file, and nothing of its training. It takes its best action, and
where it knows masks those of the environment.

Such a file holds pickled objects, and **reading it runs code of its author**: only load models that
you trust. Files of agents of this package run none.
"""

from __future__ import annotations

import inspect
import io
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from stable_baselines3.common.save_util import load_from_zip_file

from hpcgym.agents.saved import read_spec
from hpcgym.errors import HpcgymError
from hpcgym.files.tables import open_archive


class Sb3Model:
    """The policy of a model, with the interface of an agent.

    Parameters
    ----------
    policy : of Stable-Baselines3.
    name : what it is called.
    spec : ``env_id`` and ``env_options`` of the environment that it was trained in, if known.

    Attributes
    ----------
    observation_space, action_space : of the environment that it was trained in.
    """

    def __init__(self, policy: Any, name: str, spec: Mapping[str, Any]) -> None:
        self.policy, self.name = policy, name
        self.observation_space, self.action_space = policy.observation_space, policy.action_space
        vars(self).update(spec)
        self._masked = "action_masks" in inspect.signature(policy.predict).parameters
        self._state: Any = None
        self._first = True

    def __repr__(self) -> str:
        return f"Sb3Model({self.name!r})"

    def begin(self, env: Any) -> None:
        """Forget the last episode."""
        torch.set_num_threads(1)  # several are slower for networks this small
        self._state, self._first = None, True

    def act(self, observation: Any, info: Mapping[str, Any]) -> Any:
        """Return the model's best action: an int, or an array of numbers.

        Of a dict it sees the fields that it has been trained with.
        """
        if isinstance(self.observation_space, spaces.Dict):
            observation = {name: observation[name] for name in self.observation_space}
        masks = {"action_masks": info["action_mask"].astype(bool)} if self._masked else {}
        action, self._state = self.policy.predict(
            observation,
            state=self._state,
            episode_start=np.array([self._first]),
            deterministic=True,
            **masks,
        )
        self._first = False
        return int(action) if isinstance(self.action_space, spaces.Discrete) else action


def load(path: str | Path) -> Sb3Model:
    """Return the agent of a file; :func:`hpcgym.agents.load` calls this.

    Raises
    ------
    HpcgymError : no model, or one whose classes cannot be imported.
    """
    spec = read_spec(path)
    with open_archive(path) as (file, _):
        try:
            policy = _policy_of(file)
        except Exception as error:  # whatever what is pickled in it does
            raise HpcgymError(
                f"{path} cannot be read as a model of Stable-Baselines3: {type(error).__name__}:"
                f" {error}"
            ) from None
    return Sb3Model(policy, Path(path).stem, spec)


def _policy_of(file: io.BufferedReader[Any]) -> Any:
    """Return the policy of a model, as its algorithm makes it, with the weights of the file."""
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore"
        )  # of schedules that another Python has pickled: none is used
        data, parameters, _ = load_from_zip_file(file, device="cpu")
    if data is None:
        raise HpcgymError("it holds no data of a model")
    options = dict(data.get("policy_kwargs") or {})
    options.pop("device", None)  # of older versions, as the library's own load does
    if data.get("use_sde"):
        options["use_sde"] = True
    seen, acted = data["observation_space"], data["action_space"]
    policy = data["policy_class"](seen, acted, lambda _: 0.0, **options)
    policy.load_state_dict(parameters["policy"])
    policy.set_training_mode(False)
    return policy
