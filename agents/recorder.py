"""Recording: drive policies through an environment, and keep what they saw, did and got.

>>> from hpcgym.agents.recorder import record
>>> done = record("saf", "lublin:jobs=600,processors=64", record_episodes=1, jobs=100)
>>> done.observations["jobs"].shape[1:], int(done.terminations.sum())
((128, 8), 1)
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from numbers import Real
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np

from hpcgym.agents.declared import takes
from hpcgym.agents.minari_files import check_target, is_minari_name, write_minari
from hpcgym.agents.recordings import Recording, save_recording
from hpcgym.agents.settings import RecordSettings
from hpcgym.agents.specs import OF_WORKLOADS, plain_options, settled_options
from hpcgym.baselines import find_baseline
from hpcgym.baselines.chance import RandomActions
from hpcgym.envs import VERSIONS, any_version
from hpcgym.errors import HpcgymError

ENV_ID = "hpcgym/JobSelection-v0"

#: What is kept of a transition: before the action the observation, and so on.
Transition = tuple[Any, Any, float, bool, bool, Any, float]


@takes(RecordSettings)
def record(
    policy: Any,
    workload: Any,
    output: str | Path | None = None,
    *,
    env_id: str = ENV_ID,
    cluster: Any = None,
    env_options: Mapping[str, Any] | None = None,
    **settings: Any,
) -> Recording:
    """Drive policies through an environment, and return (and write) their transitions.

    Parameters
    ----------
    policy : what :func:`hpcgym.baselines.find_baseline` takes, "random", or an object with
        ``act(observation, info)`` and maybe ``begin(env)``; or a list of such, of which each plays
        the same episodes, one policy after the other.
    workload : what to run, as for :func:`hpcgym.load_workload`.
    cluster : the machine, as :func:`hpcgym.simulate` takes it.
    output : file, a compressed ``.npz`` with the fields of :class:`Recording`: observations under
        their own names, and ``about`` as JSON. Or a folder such as ``mixed-v0``, with a name that
        ends in a version: a data set of Minari, which needs workload and machine by their names.
    env_id, env_options : the environment.
    **settings : those of :class:`hpcgym.agents.settings.RecordSettings`.

    Raises
    ------
    HpcgymError : arguments that cannot be, policies that need other rules than one another, a file
        that cannot be written, or for Minari an environment that JSON cannot describe.
    """
    how = RecordSettings.of("record", settings)
    to_minari = output is not None and is_minari_name(output)
    if output is not None and to_minari:
        check_target(output)
    for name in OF_WORKLOADS:
        if name in (env_options or {}):
            raise HpcgymError(f"env_options: {name} is for the recording or the workload")
    actors = [_actor(one, how.seed) for one in _several(policy)]
    rules = {k: rule for actor in actors for k, rule in getattr(actor, "rules", {}).items()}
    options = plain_options({**VERSIONS.get(env_id, {}), **rules, **(env_options or {})})
    if isinstance(workload, str | Path) and Path(workload).is_file():
        workload = str(Path(workload).resolve())  # who makes the environment again may be elsewhere
    try:
        with any_version():
            env = gymnasium.make(
                env_id, disable_env_checker=True, workload=workload, cluster=cluster,
                **how.of_episodes(), **options,
            )  # fmt: skip
    except gymnasium.error.Error as error:
        raise HpcgymError(f"env_id {env_id!r}: {error}") from None
    options = settled_options(env.unwrapped, options)
    spec = _spec(env, options) if to_minari else None  # what it cannot hold is said before the work
    # a seed for each episode, by which it can be played again
    seeds = np.random.SeedSequence(how.seed).generate_state(how.record_episodes).tolist()
    rows: list[Transition] = []
    about: dict[str, Any] = {
        "policy": ", ".join(map(_name, actors)),
        "env_id": env_id,
        "env_options": options,
        "episodes": [],
        "seeds": seeds * len(actors),
        "policies": [_name(actor) for actor in actors for _ in seeds],
        "seed": how.seed,
    }
    last = []
    for actor in actors:
        for seed in seeds:
            end, name = _play(env, actor, seed, rows)
            last.append(end)
            about["episodes"].append(name)
    recording = _stacked(rows, last, about)
    if output is not None and to_minari:
        assert spec is not None
        write_minari(output, recording, env.observation_space, env.action_space, spec)
    elif output is not None:
        save_recording(output, recording)
    env.close()
    return recording


def _several(policy: Any) -> list[Any]:
    """Return policies as a list; numbers are the weights of one."""
    is_list = isinstance(policy, list | tuple) and not all(isinstance(w, Real) for w in policy)
    return list(policy) if is_list else [policy]


def _actor(policy: Any, seed: int) -> Any:
    """Return what acts."""
    if hasattr(policy, "act"):
        return policy
    return RandomActions(seed) if policy == "random" else find_baseline(policy)


def _name(actor: Any) -> str:
    return str(getattr(actor, "name", type(actor).__name__))


def _spec(env: Any, options: Mapping[str, Any]) -> str:
    """Return how an environment is made, as JSON, with what it has where nothing was given."""
    spec = copy(env.unwrapped.spec)
    spec.kwargs = {**spec.kwargs, **options}
    return str(spec.to_json())


def _play(env: Any, actor: Any, seed: int, rows: list[Transition]) -> tuple[Any, str]:
    """Play an episode, and append its transitions; return its last observation and its name."""
    observation, info = env.reset(seed=seed)
    if hasattr(actor, "begin"):
        actor.begin(env.unwrapped)
    terminated = truncated = False
    while not (terminated or truncated):
        action = actor.act(observation, info)
        following, reward, terminated, truncated, info = env.step(action)
        order, bound = getattr(actor, "order", ()), getattr(actor, "bound", np.nan)
        rows.append((observation, action, float(reward), terminated, truncated, order, bound))
        observation = following
    return observation, info["episode_name"]


def _stacked(rows: list[Transition], last: list[Any], about: dict[str, Any]) -> Recording:
    """Return transitions as arrays."""
    observations, actions, rewards, terminations, truncations, served, bounds = zip(
        *rows, strict=True
    )
    orders = np.full((len(rows), max(map(len, served))), -1, np.int32)
    for row, order in zip(orders, served, strict=True):
        row[: len(order)] = order
    return Recording(
        _fields(observations),
        np.stack(actions),
        np.array(rewards),
        np.array(terminations),
        np.array(truncations),
        _fields(last),
        orders,
        np.array(bounds, np.float64),
        about,
    )


def _fields(observations: Any) -> dict[str, Any]:
    """Return observations as arrays, one for each field."""
    if not isinstance(observations[0], Mapping):
        return {"observation": np.stack(observations)}
    return {name: np.stack([one[name] for one in observations]) for name in observations[0]}
