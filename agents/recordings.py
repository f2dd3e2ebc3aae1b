"""Recordings of what policies do: made, kept as data sets of Minari, and checked.

:func:`record` drives policies through an environment, and keeps what they saw, did and got. A file
of it is a data set of Minari (https://minari.farama.org), a folder such as ``mixed-v0``, which
Minari writes and reads: it has to be installed, with pyarrow. The episodes are told by the seeds of
their resets, so that each can be played again.

>>> from hpcgym.agents.recordings import record
>>> done = record("saf", "lublin:jobs=600,processors=64", record_episodes=1, jobs=100)
>>> done.observations["jobs"].shape[1:], int(done.terminations.sum())
((128, 14), 1)
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import fields
from importlib import import_module
from numbers import Real
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium
import numpy as np
from numpy.typing import NDArray

from hpcgym.agents.saved import OF_WORKLOADS, is_plain, plain_options, settled_options
from hpcgym.agents.settings import RecordSettings, takes
from hpcgym.baselines import find_baseline
from hpcgym.baselines.chance import RandomActions
from hpcgym.envs.core.base import settings_in
from hpcgym.envs.ids import successor
from hpcgym.errors import HpcgymError, installing, unknown
from hpcgym.files import MOST_JSON, bytes_of, json_of, open_file, shaped
from hpcgym.files.tables import check_parquet
from hpcgym.files.writing import writing

ENV_ID = "hpcgym/JobSelection-v2"

# --- What a recording has -------------------------------------------------------------------------


class Recording(NamedTuple):
    """What policies did; an entry a transition, one episode after the other.

    Attributes
    ----------
    observations : field -> (n, ...), before the action; "observation" if they are flat.
    actions : (n,) or (n, size).
    rewards : (n,).
    terminations : (n,) whether the episode ended with the transition.
    truncations : (n,) whether it was cut there, as by ``horizon``.
    last : field -> (episodes, ...), what was observed at the end of each episode.
    about : the environment with its arguments, and of each episode its name, the seed of its reset
        and its policy.
    """

    observations: dict[str, NDArray[Any]]
    actions: NDArray[Any]
    rewards: NDArray[np.float64]
    terminations: NDArray[np.bool_]
    truncations: NDArray[np.bool_]
    last: dict[str, NDArray[Any]]
    about: dict[str, Any]

    @property
    def ends(self) -> NDArray[np.int64]:
        """The last transitions of the episodes, (episodes,)."""
        return np.flatnonzero(self.terminations | self.truncations)


#: What a clone looks at. Its choices are places in the window.
_SEEN = ("cluster", "queue", "time", "jobs", "mask")


def load_selections(recording: str | Path | Recording) -> Recording:
    """Return a recording, of a file or as it is, checked to be one to learn selections from.

    Raises
    ------
    HpcgymError : as of :func:`load_recording`; also for another environment, a field that is
        missing, numbers that cannot be there, and actions that are no visible job.
    """
    source = "recording"
    if not isinstance(recording, Recording):
        source, recording = str(recording), load_recording(recording)
    with shaped(source, "a recording"):
        if (
            successor(recording.about["env_id"]) != ENV_ID
            or "observation" in recording.observations
        ):
            raise HpcgymError(
                f"only what was done in {ENV_ID} with observation='dict' can be learned from"
            )
        _check_selections(recording.observations, recording.actions)
    return recording


def _check_selections(fields: Mapping[str, NDArray[Any]], actions: NDArray[Any]) -> None:
    """Raise an error if a clone cannot learn from observations and actions."""
    for name in _SEEN:
        if name not in fields:
            raise HpcgymError(f"{name!r} is missing")
        # all spaces of observations are within these bounds, and what is no number is not
        right = (fields[name] >= -1.0) & (fields[name] <= 1.0)
        if not right.all():
            place = tuple(map(int, np.argwhere(~right)[0]))
            raise HpcgymError(f"{name}{[*place]} is {fields[name][place]}, which cannot be there")
    rows = np.arange(len(fields["mask"]))
    if actions.shape != rows.shape or actions.dtype.kind not in "iu":
        raise HpcgymError("'actions' are no places of the window")
    there = (actions >= 0) & (actions < fields["mask"].shape[1])
    there &= fields["mask"][rows, np.where(there, actions, 0)] > 0.5
    if not there.all():
        row = int(there.argmin())
        raise HpcgymError(f"actions[{row}] is {actions[row]}: no job is there in the window")


# --- Recording ------------------------------------------------------------------------------------

#: What is kept of a transition: the observation before the action, then these.
Transition = tuple[Any, Any, float, bool, bool]
_DONE = ("actions", "rewards", "terminations", "truncations")


@takes(RecordSettings)
def record(
    policy: Any,
    workload: Any,
    output: str | Path | None = None,
    *,
    env_id: str = ENV_ID,
    cluster: Any = None,
    env_options: Mapping[str, Any] | None = None,
    replace: bool = False,
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
    output : folder such as ``mixed-v0``, with a name that ends in a version: a data set of Minari.
        Its ``recover_environment`` needs a workload and a machine that were given by their names.
    env_id, env_options : the environment; its ``scheduler`` and other rules are of the options.
    replace : write in place of a data set that is there.
    **settings : those of :class:`hpcgym.agents.settings.RecordSettings`.

    Raises
    ------
    HpcgymError : arguments that cannot be, policies that need other rules than one another, a
        folder that is there or cannot be written, or no Minari.
    """
    known = [setting.name for setting in fields(RecordSettings)]
    for name in settings.keys() - known:
        also = "arguments of the environment in env_options"
        raise HpcgymError(unknown("argument", name, known, also))
    how = RecordSettings(**settings)
    if output is not None:
        _check_target(Path(output), replace)
    for name in OF_WORKLOADS:
        if name in (env_options or {}):
            raise HpcgymError(f"env_options: {name} is for the recording or the workload")
    actors = [_actor(player, how.seed) for player in _several(policy)]
    rules = {k: rule for actor in actors for k, rule in getattr(actor, "rules", {}).items()}
    given = settings_in(env_id, env_options or {})
    options = plain_options({**rules, **given})
    if isinstance(workload, str | Path) and Path(workload).is_file():
        workload = str(Path(workload).resolve())  # the environment may be made again elsewhere
    try:
        env = gymnasium.make(
            env_id, disable_env_checker=True, workload=workload, cluster=cluster,
            **how.of_episodes(), **options,
        )  # fmt: skip
    except gymnasium.error.Error as error:
        raise HpcgymError(f"env_id {env_id!r}: {error}") from None
    options = settled_options(env.unwrapped, options)
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
    }
    last = []
    for actor in actors:
        for seed in seeds:
            end, name = _play(env, actor, seed, rows)
            last.append(end)
            about["episodes"].append(name)
    seen, *done = zip(*rows, strict=True)
    columns: Any = dict(zip(_DONE, map(np.array, done), strict=True))
    recording = Recording(observations=_fields(seen), last=_fields(last), about=about, **columns)
    if output is not None:
        _write(Path(output), recording, env, options)
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


def _play(env: Any, actor: Any, seed: int, rows: list[Transition]) -> tuple[Any, str]:
    """Play an episode, and append its transitions; return its last observation and its name."""
    observation, info = env.reset(seed=seed)
    if hasattr(actor, "begin"):
        actor.begin(env.unwrapped)
    terminated = truncated = False
    while not (terminated or truncated):
        action = actor.act(observation, info)
        if env.action_space.shape:  # numbers, kept as exactly as they are acted by
            action = np.asarray(action, env.action_space.dtype)
        following, reward, terminated, truncated, info = env.step(action)
        rows.append((observation, action, float(reward), terminated, truncated))
        observation = following
    return observation, env.unwrapped.episode_name


def _fields(observations: Sequence[Any]) -> dict[str, Any]:
    """Return observations as arrays, one for each field."""
    if not isinstance(observations[0], Mapping):
        return {_FLAT: np.stack(observations)}
    return {name: np.stack([shown[name] for shown in observations]) for name in observations[0]}


# --- Data sets of Minari --------------------------------------------------------------------------

_MOST_STEPS = 2**17 - 1  # of an episode: Minari takes a longer one for two
_FLAT = "observation"  # what the field of flat observations is called in recordings


def _minari() -> Any:
    """Return the class of Minari that writes and reads data sets.

    Raises
    ------
    HpcgymError : what it needs is not installed.
    """
    try:
        for needed in ("pyarrow.dataset", "PIL"):
            import_module(needed)
        return import_module("minari.dataset.minari_storage").MinariStorage
    except ImportError as error:
        raise HpcgymError(
            f"files of recordings need Minari: {installing('agents')} ({error})"
        ) from None


def _check_target(path: Path, replace: bool) -> None:
    """Say before the work that a folder cannot become a data set.

    Raises
    ------
    HpcgymError : no Minari, a name without a version, or something that is there and is not to be
        replaced, or is no data set.
    """
    _minari()
    if not re.fullmatch(r"[-\w]+-v[0-9]+", path.name):
        raise HpcgymError(f"{path}: the name of a data set of Minari ends in -v0, -v1, ...")
    if path.exists() and not replace:
        raise HpcgymError(
            f"{path} is there already: take another version, or replace=True (--force)"
        )
    if path.exists() and not (path / "data" / "metadata.json").is_file():
        raise HpcgymError(f"{path} is no data set: nothing replaces it")


def _write(path: Path, recording: Recording, env: Any, options: Mapping[str, Any]) -> None:
    """Write a recording as a data set, whole or not at all."""
    minari, about, path = _minari(), recording.about, path.absolute()  # others it writes wrongly
    part, before = (
        path.with_name(f"{path.name}.{os.urandom(4).hex()}.{e}") for e in ("part", "old")
    )
    with writing(path):
        try:
            part.mkdir(parents=True)
            storage = minari.new(
                part / "data", env.observation_space, env.action_space, _spec(env, options),
                "parquet", jpeg_encoding=False,
            )  # fmt: skip
            storage.update_episodes(_episodes(recording))
            names = zip(about["episodes"], about["policies"], strict=True)
            storage.update_episode_metadata([{"episode": e, "policy": p} for e, p in names])
            storage.update_metadata({
                "dataset_id": _id(path), "algorithm_name": about["policy"],
                "minari_version": import_module("minari").__version__,
                "description": f"{about['policy']} in {about['env_id']}, recorded by hpcgym",
            })  # fmt: skip
            if path.exists():
                path.rename(before)
            part.rename(path)
            shutil.rmtree(before, ignore_errors=True)
        finally:
            shutil.rmtree(part, ignore_errors=True)


def _spec(env: Any, options: Mapping[str, Any]) -> Any:
    """Return how an environment is made, with what it has where nothing was given.

    What JSON cannot hold, such as a workload or a machine that is an object, is left out, and the
    workload with it: then Minari cannot recover an environment, rather than recover another one.
    """
    spec = copy(env.unwrapped.spec)
    spec.kwargs = {**spec.kwargs, **options}
    plain = {name: value for name, value in spec.kwargs.items() if is_plain(value)}
    if len(plain) < len(spec.kwargs):
        plain.pop("workload", None)
    spec.kwargs = plain
    return spec


def _episodes(recording: Recording) -> Iterator[Any]:
    """Return the episodes of a recording as Minari takes them."""
    buffer_of = import_module("minari.data_collector").EpisodeBuffer
    begin = 0
    for number, end in enumerate(recording.ends.tolist()):
        steps, begin = slice(begin, end + 1), end + 1
        if begin - steps.start > _MOST_STEPS:
            raise HpcgymError(
                f"episode {number} has {begin - steps.start:,} steps; Minari takes {_MOST_STEPS:,}"
            )
        seen = {
            name: np.concatenate([field[steps], recording.last[name][number, None]])
            for name, field in recording.observations.items()
        }
        done = {name: getattr(recording, name)[steps] for name in _DONE}
        seed = recording.about["seeds"][number]
        yield buffer_of(seed=seed, observations=seen.get(_FLAT, seen), **done)


def load_recording(path: str | Path) -> Recording:
    """Return a data set of :func:`record`, or one that Minari itself has collected.

    Raises
    ------
    HpcgymError : no Minari, no data set, or a damaged one.
    """
    minari, place = _minari(), Path(path).absolute() / "data"
    try:
        _check_files(place)
        metadata = minari.read_raw_metadata(place)
        if not {"observation_space", "action_space", "env_spec"} <= metadata.keys():
            # Minari would make the environment for its spaces, and so run what the file names
            raise HpcgymError("it does not tell its environment and its spaces")
        storage, numbers = minari.read(place), range(metadata["total_episodes"])
        episodes = [*storage.get_episodes(numbers)]
        of_episodes = [*storage.get_episode_metadata(numbers)]
        recording = _joined(episodes, _about(metadata, of_episodes))
    except Exception as error:  # whatever Minari and what it reads with say
        problem = str(error).partition("\n")[0]
        raise HpcgymError(f"{path} cannot be read as a data set of Minari: {problem}") from None
    return recording


def _check_files(folder: Path) -> None:
    """Raise an HpcgymError for what Minari, which opens files by name, would not read to its end.

    These are pipes and devices, and files that hold more than they should.
    """
    for path in sorted(path for path in folder.rglob("*") if not path.is_dir()):
        if path.suffix == ".json":
            bytes_of(path, MOST_JSON, HpcgymError)
        elif path.suffix == ".parquet":
            check_parquet(path)
        else:
            with open_file(path):
                pass


def _about(about: Mapping[str, Any], of_episodes: list[dict[str, Any]]) -> dict[str, Any]:
    """Return what is known of a data set beside its arrays."""
    spec, policy = json_of(about["env_spec"], "'env_spec'"), str(about.get("algorithm_name", ""))
    return {
        "policy": policy,
        "env_id": str(spec["id"]),
        "env_options": {k: v for k, v in spec["kwargs"].items() if k not in OF_WORKLOADS},
        "episodes": [str(episode.get("episode", "")) for episode in of_episodes],
        "seeds": [episode.get("seed") for episode in of_episodes],
        "policies": [str(episode.get("policy", policy)) for episode in of_episodes],
    }


def _joined(episodes: list[dict[str, Any]], about: dict[str, Any]) -> Recording:
    """Return episodes of Minari as a recording."""
    seen = [episode["observations"] for episode in episodes]
    seen = [shown if isinstance(shown, dict) else {_FLAT: shown} for shown in seen]
    recording = Recording(
        observations={
            name: np.concatenate([shown[name][:-1] for shown in seen]) for name in seen[0]
        },
        last={name: np.stack([shown[name][-1] for shown in seen]) for name in seen[0]},
        about=about,
        **{name: np.concatenate([episode[name] for episode in episodes]) for name in _DONE},
    )
    # one that is too long for Minari is read as two, of which the first does not end
    lengths = [len(episode["actions"]) for episode in episodes]
    counted = len(lengths) == len(about["episodes"])  # a file that is missing is passed over
    if not counted or (recording.ends + 1).tolist() != np.cumsum(lengths).tolist():
        raise HpcgymError("its episodes do not end where they should")
    if not np.isfinite(recording.rewards).all():
        raise HpcgymError("it has rewards that are no numbers")
    return recording


def _id(path: Path) -> str:
    """Return the name that Minari knows a data set by: of its own folder, with those on the way."""
    usual = Path.home() / ".minari" / "datasets"
    root = Path(os.environ.get("MINARI_DATASETS_PATH") or usual).resolve()
    place = path.resolve()
    return place.relative_to(root).as_posix() if root in place.parents else path.name
