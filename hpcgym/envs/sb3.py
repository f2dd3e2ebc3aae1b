"""The bridge to Stable-Baselines3: its vector interface over a vector environment of this library.

Needs Stable-Baselines3, which is in the extra ``agents``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode
from numpy.typing import NDArray

from hpcgym.envs.core.infos import end_of
from hpcgym.envs.vector import SchedulingVectorEnv
from hpcgym.errors import HpcgymError, installing

try:
    from stable_baselines3.common.vec_env import VecEnv
except ImportError as error:
    raise ImportError(
        f"hpcgym.envs.sb3 needs Stable-Baselines3: {installing('agents')} ({error})"
    ) from error


class HpcVecEnv(VecEnv):
    """A vector environment of this library as Stable-Baselines3 wants one.

    The whole batch advances in one call, in this process. ``infos[i]`` is empty but at the
    end of an episode, when it has

    - ``"terminal_observation"``, the last observation of the episode;
    - ``"TimeLimit.truncated"``, whether ``max_episode_steps`` ended it;
    - ``"episode_mean_bsld"``, ``"episode_mean_wait_s"`` and ``"episode_energy_j"``, of the jobs of
      the episode that have started, and where jobs share nodes ``"episode_makespan_s"``; not where
      ``max_episode_steps`` ended it.

    ``info["episode"]`` is that of SB3's ``VecMonitor``, if this is wrapped in one. MaskablePPO of
    sb3-contrib finds the masks of ``JobSelection`` by itself. ``unwrapped.env`` is the vector
    environment itself: its ``result(i)`` is the schedule of environment i, and after a step that
    has ended an episode there, the whole one of this episode.

    Parameters
    ----------
    env : a vector environment with ``autoreset_mode="SameStep"``, or the id of one.
    num_envs, arguments : number of environments and arguments of the environment, for an id.

    Raises
    ------
    HpcgymError : another environment, or one that does not reset itself in the same step.

    Examples
    --------
    >>> from stable_baselines3.common.vec_env import VecMonitor
    >>> envs = VecMonitor(HpcVecEnv("hpcgym/JobSelection-v2", num_envs=8, jobs=64))
    >>> envs.reset()["jobs"].shape
    (8, 128, 14)
    >>> envs.unwrapped.env.result(7).cluster.processors
    256
    """

    def __init__(self, env: Any, num_envs: int | None = None, **arguments: Any) -> None:
        if isinstance(env, str):
            env = _make(env, 1 if num_envs is None else num_envs, arguments)
        elif num_envs is not None or arguments:
            raise HpcgymError("num_envs and arguments are for the id of an environment")
        if not isinstance(env, SchedulingVectorEnv):
            raise HpcgymError(f"env must be a vector environment of hpcgym or its id, not {env!r}")
        if len(env.options.rewards.weights) > 1:
            raise HpcgymError("reward: SB3 learns from one number; give a name, or weights by name")
        if env.metadata["autoreset_mode"] != AutoresetMode.SAME_STEP:
            raise HpcgymError("env must be made with autoreset_mode='SameStep'")
        if not env.copy:
            raise HpcgymError("env must be made with copy=True: SB3 keeps observations")
        self.env = env
        self._actions: NDArray[Any] = np.zeros(0)
        super().__init__(env.num_envs, env.single_observation_space, env.single_action_space)

    def __repr__(self) -> str:
        return f"HpcVecEnv({type(self.env).__name__}, num_envs={self.num_envs})"

    # -- what SB3 calls ----------------------------------------------------------------------------

    def reset(self) -> Any:
        """Begin an episode in all environments, with the seeds and options that were set."""
        observations: Any = None
        first = self._options[0]
        if all(options == first for options in self._options):
            observations, info = self.env.reset(seed=self._seeds, options=first or None)
        else:
            for e, options in enumerate(self._options):
                only = np.arange(self.num_envs) == e
                observations, info = self.env.reset(
                    seed=self._seeds, options={**options, "reset_mask": only}
                )
        self.reset_infos = [{"time_s": time} for time in info["time_s"]]
        self._reset_seeds()
        self._reset_options()
        return observations

    def step_async(self, actions: NDArray[Any]) -> None:
        """Take the actions; they are done in ``step_wait``."""
        self._actions = actions

    def step_wait(self) -> Any:
        """Do one action in each environment; return observations, rewards, dones and infos."""
        observations, rewards, terminated, truncated, info = self.env.step(self._actions)
        dones = terminated | truncated
        infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        ends = self.env.ends
        if ends is None:
            return observations, rewards.astype(np.float32), dones, infos
        for k, e in enumerate(ends.those.tolist()):
            infos[e] = {
                "terminal_observation": info["final_obs"][e],
                "TimeLimit.truncated": bool(truncated[e] and not terminated[e]),
                **(end_of(ends.states[k]) if ends.over[k] else {}),
            }
        return observations, rewards.astype(np.float32), dones, infos

    def close(self) -> None:
        """Close the environment."""
        self.env.close()

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        """Return an attribute of the vector environment, which all environments share."""
        value = getattr(self.env, attr_name)
        return [value for _ in self._get_indices(indices)]

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        """Set an attribute of the vector environment, which all environments share.

        Raises
        ------
        HpcgymError : only some of the environments are meant.
        """
        if len(set(self._get_indices(indices))) < self.num_envs:
            raise HpcgymError(f"indices: all environments share {attr_name!r}; set it for all")
        setattr(self.env, attr_name, value)

    def env_method(
        self, method_name: str, *method_args: Any, indices: Any = None, **method_kwargs: Any
    ) -> list[Any]:
        """Call a method of the vector environment, once; return what it says of each environment.

        Raises
        ------
        HpcgymError : its answer is not one for each environment.
        """
        answers = getattr(self.env, method_name)(*method_args, **method_kwargs)
        if answers is None:
            answers = [None] * self.num_envs
        if not isinstance(answers, (Sequence, np.ndarray)) or len(answers) != self.num_envs:
            raise HpcgymError(f"method_name: {method_name!r} has no answer for each environment")
        return [answers[e] for e in self._get_indices(indices)]

    def env_is_wrapped(self, wrapper_class: Any, indices: Any = None) -> list[bool]:
        """Say that no environment is wrapped by itself."""
        return [False for _ in self._get_indices(indices)]


def _make(env_id: str, num_envs: int, arguments: dict[str, Any]) -> Any:
    """Return a vector environment that resets itself in the same step."""
    # one thread: the others are PyTorch's
    given = {"threads": 1, "autoreset_mode": AutoresetMode.SAME_STEP, **arguments}
    try:
        return gymnasium.make_vec(
            env_id, num_envs=num_envs, vectorization_mode="vector_entry_point", **given
        )
    except gymnasium.error.Error as error:
        raise HpcgymError(f"env {env_id!r}: {error}") from None
