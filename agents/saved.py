"""The environment that an agent was made for.

Agents of this package keep ``env_id`` and ``env_options`` in their own files. A model of another
library has the same two in a small file of JSON beside it: ``model.env.json`` beside ``model.zip``.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hpcgym.errors import HpcgymError
from hpcgym.files import json_file
from hpcgym.files.writing import whole_json

# --- The environment that an agent was made for ---------------------------------------------------

FORMAT = 1

#: Arguments of environments that choose the jobs, and do not matter to an agent.
OF_WORKLOADS = ("workload", "processors", "cluster", "episodes", "jobs", "part", "train_share")

#: Arguments about how an environment is run or shown.
_OF_RUNS = (
    "num_envs", "vectorization_mode", "autoreset_mode", "copy", "threads", "render_mode",
    "max_episode_steps",
)  # fmt: skip

_SHARED = "hpcgym/CoSchedule-v1"

#: Facts that are kept about the training jobs of each log; times are of submissions [s].
_SEEN = {"workload": str, "part": str, "first_s": int, "last_s": int}

#: Names of vector wrappers that pass observations and actions on unchanged; some change rewards.
_PLAIN_WRAPPERS = (
    "VecMonitor", "VecCheckNan", "RelativeRewards", "NormalizeReward", "RecordEpisodeStatistics",
)  # fmt: skip


def save_spec(env: Any, path: str | Path) -> Path:
    """Write the environment of a model's training beside it, for ``hpcgym evaluate``.

    Parameters
    ----------
    env : the environment: of ``gymnasium.make`` or ``make_vec``, an
        :class:`hpcgym.envs.sb3.HpcVecEnv`, or these in what Stable-Baselines3 puts around them.
        Its jobs are not written, as a model is evaluated on others; but which part of which log
        they are, so that an evaluation on the same jobs can say so.
    path : of the model: ``"model"`` or ``"model.zip"``, as it is given to ``model.save``, or
        ``"model.onnx"``.

    Returns
    -------
    path : of the file, ``model.env.json``.

    Raises
    ------
    HpcgymError : no environment of hpcgym that was made by its id; one in a wrapper that changes
        observations or actions, which an evaluation has not (rewards may be changed, as
        ``VecNormalize(norm_obs=False)`` does); or an argument that JSON cannot hold, such as a
        function.
    """
    if not isinstance(path, (str, os.PathLike)):
        raise HpcgymError(f"path must be that of the model, such as 'model.zip', not {path!r}")
    env = _bare(env)
    spec = getattr(env, "spec", None)
    if spec is None or not spec.id.startswith("hpcgym/"):
        raise HpcgymError(
            f"env must be an environment of hpcgym made by its id, such as"
            f" gymnasium.make('hpcgym/JobSelection-v2'), not {env!r}"
        )
    given = {name: value for name, value in spec.kwargs.items() if name not in _OF_RUNS}
    if spec.id == _SHARED:  # pairs depend on machine and speedups
        options = plain_options(given, but=("cluster",))
    else:
        options = settled_options(env, given)
    about = {"format": FORMAT, "env_id": spec.id, "env_options": options}
    whole_json(target := spec_path(path), {**about, "trained_on": _seen_in(env)})
    return target


def spec_path(model: str | Path) -> Path:
    """Return where the environment of a model is written: ``model.env.json`` for ``model.zip``."""
    return Path(f"{os.fspath(model).removesuffix('.zip').removesuffix('.onnx')}.env.json")


def read_spec(model: str | Path) -> dict[str, Any]:
    """Return ``env_id``, ``env_options`` and ``trained_on`` of a model; {} if it has no such file.

    ``trained_on`` is a list of logs, see :data:`_SEEN`. Older files have one by itself, or none.

    Raises
    ------
    HpcgymError : a file that is no such file.
    """
    path = spec_path(model)
    if not path.exists():
        return {}
    spec = json_file(path)
    kinds = {"format": int, "env_id": str, "env_options": dict, "trained_on": list}
    if isinstance(spec, dict):
        seen = spec.setdefault("trained_on", {})
        spec["trained_on"] = [seen] * bool(seen) if isinstance(seen, dict) else seen
    if not isinstance(spec, dict) or spec.get("format") != FORMAT or spec.keys() != kinds.keys():
        raise HpcgymError(f"{path} is no environment that hpcgym.agents.save_spec has written")
    for key, kind in kinds.items():
        if not isinstance(spec[key], kind):
            raise HpcgymError(f"{path}: {key!r} is of another kind")
    if not _are_seen(spec["trained_on"]):
        raise HpcgymError(f"{path}: 'trained_on' is of another kind")
    del spec["format"]
    return spec


def seen_by(policy: Any) -> list[dict[str, Any]]:
    """Return which jobs a saved model was trained on, see :data:`_SEEN`; [] of other policies."""
    logs = getattr(policy, "trained_on", [])
    return logs if isinstance(logs, list) and _are_seen(logs) else []


def _are_seen(logs: list[Any]) -> bool:
    return all(
        isinstance(log, dict) and {key: type(value) for key, value in log.items()} == _SEEN
        for log in logs
    )


def plain_options(options: Mapping[str, Any], but: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return the arguments of an environment that belong to an agent, checked to be plain values.

    Parameters
    ----------
    options : of the environment.
    but : arguments about jobs and machine that belong to this agent all the same.

    Raises
    ------
    HpcgymError : a value that cannot be written to a file, such as a function.
    """
    left_out = {*OF_WORKLOADS} - {*but}
    kept = {name: value for name, value in options.items() if name not in left_out}
    for name, value in kept.items():
        if not is_plain(value):
            raise HpcgymError(f"{name}: an agent that is to be saved needs plain values")
    return kept


def is_plain(value: Any) -> bool:
    """Return whether JSON can hold a value."""
    try:
        json.dumps(value)
    except (TypeError, ValueError):
        return False
    return True


def settled_options(env: Any, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of an agent with what an environment has where none is given.

    With them in its file, an agent meets the same rules again, whatever the defaults become.
    """
    of_training = ("workload", "part", "reward", "paid")
    options = {name: value for name, value in type(env).usual.items() if name not in of_training}
    rules = ("backfill", "backfill_order", "estimate", "correction", "passes")
    options |= {rule: getattr(env.options.scheduler, rule) for rule in rules}
    options |= {"window": env.options.window, "features": list(env.options.names)}
    options |= {"observation": "flat" if env.options.flat else "dict"}
    options |= env.episodes.around
    options |= {
        name: getattr(env, name) for name in ("interval", "reservation") if hasattr(env, name)
    }
    if hasattr(env, "policy_features"):
        options["policy_features"] = list(env.policy_features)
    from hpcgym.envs.core.base import arguments_of, plain_settings_of  # Gymnasium takes its time

    takes = arguments_of(type(env))
    given = plain_settings_of(type(env), given)
    return plain_options({**{n: value for n, value in options.items() if n in takes}, **given})


def _seen_in(env: Any) -> list[dict[str, Any]]:
    """Return which jobs are learned from in an environment, as :data:`_SEEN` has it of each log."""
    logs = []
    for world in env.simulations.worlds:
        name, episodes = world.definition.options.workload.name, world.episodes
        logs.append(dict(zip(_SEEN, (name, episodes.part, *episodes.submitted), strict=True)))
    return logs


def _bare(env: Any) -> Any:
    """Return the environment in wrappers of Gymnasium and Stable-Baselines3.

    Raises
    ------
    HpcgymError : a wrapper that changes what an agent sees or does.
    """
    import gymnasium

    while True:
        if hasattr(env, "venv"):  # a wrapper of Stable-Baselines3
            scales_rewards = type(env).__name__ == "VecNormalize" and not env.norm_obs
            if not scales_rewards and type(env).__name__ not in _PLAIN_WRAPPERS:
                raise _changes(env)
            env = env.venv
        elif isinstance(env, gymnasium.vector.VectorWrapper):
            of_rewards = isinstance(env, gymnasium.vector.VectorRewardWrapper)
            if not of_rewards and type(env).__name__ not in _PLAIN_WRAPPERS:
                raise _changes(env)
            env = env.env
        elif hasattr(env, "envs"):  # its DummyVecEnv, or Gymnasium's SyncVectorEnv
            env = env.envs[0]
        elif isinstance(env, gymnasium.Wrapper):
            inner = env.env
            same = all(
                getattr(env, space) == getattr(inner, space)
                for space in ("observation_space", "action_space")
            )
            changes = (gymnasium.ObservationWrapper, gymnasium.ActionWrapper)
            if not same or isinstance(env, changes):
                raise _changes(env)
            env = inner
        elif type(env).__name__ == "HpcVecEnv":
            return env.env
        else:
            return env


def _changes(wrapper: Any) -> HpcgymError:
    return HpcgymError(
        f"env: {type(wrapper).__name__} changes what an agent sees or does, and an evaluation has"
        " no such wrapper; evaluate an object with act that does the same"
    )
