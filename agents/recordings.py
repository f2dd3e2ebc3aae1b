"""Recordings of what policies do: made, kept in files, and checked when they are read.

:func:`record` drives policies through an environment, and keeps what they saw, did and got. A file
of it is a compressed ``.npz``. A folder is a data set as Minari has them, in Parquet: of the folder
``mixed-v0``, ``data/metadata.json`` tells the environment and its spaces, and ``data/K/`` has
episode K: a table of its steps, and ``metadata.json`` with the seed of its reset. A table has a row
more than the episode has steps: the last one is what was observed at the end, with zeros in place
of action and reward. The layout is that of Minari 0.5.4, its format "parquet"; neither Minari nor
JAX is needed to write or read it, but pyarrow is.

>>> from hpcgym.agents.recordings import record
>>> done = record("saf", "lublin:jobs=600,processors=64", record_episodes=1, jobs=100)
>>> done.observations["jobs"].shape[1:], int(done.terminations.sum())
((128, 8), 1)
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Mapping
from copy import copy
from numbers import Real
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from hpcgym.agents.saved import OF_WORKLOADS, plain_options, settled_options
from hpcgym.agents.settings import RecordSettings, takes
from hpcgym.baselines import find_baseline
from hpcgym.baselines.chance import RandomActions
from hpcgym.envs import VERSIONS, any_version
from hpcgym.errors import HpcgymError, check_whole
from hpcgym.files import json_file, json_of, shaped
from hpcgym.files.tables import arrays_of, need_parquet, parquet_columns
from hpcgym.files.writing import whole, writing

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
    orders : (n, most) int32, places in the window in the order in which an expert served them, -1
        behind them; (n, 0) of policies that do not tell.
    bounds : (n,) what an expert has proved of its objective, nan where nothing.
    about : the environment with its arguments, and of each episode its name, the seed of its reset
        and its policy.
    """

    observations: dict[str, NDArray[Any]]
    actions: NDArray[Any]
    rewards: NDArray[np.float64]
    terminations: NDArray[np.bool_]
    truncations: NDArray[np.bool_]
    last: dict[str, NDArray[Any]]
    orders: NDArray[np.int32]
    bounds: NDArray[np.float64]
    about: dict[str, Any]

    @property
    def ends(self) -> NDArray[np.int64]:
        """The last transitions of the episodes, (episodes,)."""
        return np.flatnonzero(self.terminations | self.truncations)


class _Entry(NamedTuple):
    """What an array of a recording may be: kinds of NumPy's dtypes, numbers of axes, values."""

    kinds: str
    axes: tuple[int, ...]
    least: float = -np.inf
    most: float = np.inf
    finite: bool = True


_ENTRIES = {
    "actions": _Entry("iuf", (1, 2)),
    "rewards": _Entry("iuf", (1,)),
    "terminations": _Entry("b", (1,)),
    "truncations": _Entry("b", (1,)),
    "orders": _Entry("i", (2,), least=-1),
    "bounds": _Entry("f", (1,), finite=False),
}
#: Of a field of the observation: all spaces of observations are within these bounds.
_FIELD = _Entry("biuf", (2, 3, 4), -1.0, 1.0)

#: What a clone looks at: field -> its array. Its choices are places in the window.
_SEEN = {
    **dict.fromkeys(("cluster", "queue", "time"), _FIELD._replace(axes=(2,))),
    "jobs": _FIELD._replace(axes=(3,)),
    "mask": _FIELD._replace(axes=(2,), least=0.0),
}


#: What stands in front of the names of fields at the ends of episodes, in a file.
_LAST = "last."


def save_recording(path: str | Path, recording: Recording) -> None:
    """Write a recording as ``.npz``, whole or not at all.

    Raises
    ------
    HpcgymError : the file cannot be written.
    """
    entries: dict[str, Any] = {name: getattr(recording, name) for name in _ENTRIES}
    entries |= recording.observations
    entries |= {f"{_LAST}{name}": field for name, field in recording.last.items()}
    about = np.array(json.dumps(recording.about))
    # given a path, numpy would change its ending
    with whole(path, folders=True) as part, part.open("wb") as file:
        np.savez_compressed(file, **entries, about=about)


def load_recording(path: str | Path) -> Recording:
    """Return a recording: of the file that ``record`` wrote, or of a folder of Minari's.

    Raises
    ------
    HpcgymError : no recording, or one with an impossible value; the message names the entry.
    """
    if Path(path).is_dir():
        return read_minari(path)
    arrays = arrays_of(path)
    with shaped(path, "a recording"):
        about = json_of(str(arrays.pop("about")), f"{path}, 'about'", finite=False)
        if not isinstance(about["env_id"], str) or not isinstance(about["env_options"], dict):
            raise TypeError
        if "truncations" not in arrays:
            raise HpcgymError("an older hpcgym has written it, without truncations: record it anew")
        others = {name: arrays.pop(name) for name in _ENTRIES}
        names = [name for name in arrays if name.startswith(_LAST)]
        last = {name.removeprefix(_LAST): arrays.pop(name) for name in names}
        recording = Recording(arrays, **others, last=last, about=about)
        check_recording(recording)
    return recording


def check_recording(recording: Recording) -> None:
    """Raise an error if an array of a recording cannot have been recorded.

    Raises
    ------
    HpcgymError : no transitions or observations, or an array with another dtype, number of axes or
        length, or values that cannot be; it is named.
    """
    number = len(recording.actions) if np.ndim(recording.actions) else 0
    if number == 0 or not recording.observations:
        raise HpcgymError("it has no transitions, or none with observations")
    for name, entry in _ENTRIES.items():
        _check(name, getattr(recording, name), entry, number)
    for name, field in recording.observations.items():
        _check(name, field, _FIELD, number)
    ends = recording.ends
    if not len(ends) or ends[-1] != number - 1:
        raise HpcgymError("its last episode does not end")
    named = recording.about["episodes"]
    is_list = isinstance(named, list) and all(isinstance(name, str) for name in named)
    if not is_list or len(named) != len(ends):
        raise HpcgymError(f"'about' does not name its {len(ends)} episodes")
    for name in sorted({*recording.observations, *recording.last}):
        _check_last(name, recording, len(ends))


def _check_last(name: str, recording: Recording, episodes: int) -> None:
    """Raise an error if a field is not the same at the ends of episodes as before actions."""
    if name not in recording.observations:
        raise HpcgymError(f"{name!r} is missing")
    if name not in recording.last:
        raise HpcgymError(f"{name!r} at the ends of episodes is missing")
    field, last = recording.observations[name], recording.last[name]
    _check(f"{_LAST}{name}", last, _FIELD, episodes)
    if field.shape[1:] != last.shape[1:]:
        raise HpcgymError(f"{name!r} has the shape {field.shape}, at the ends {last.shape}")


def load_selections(recording: str | Path | Recording) -> Recording:
    """Return a recording, of a file or as it is, checked to be one to learn selections from.

    Raises
    ------
    HpcgymError : as of :func:`load_recording` and :func:`check_selections`; also for another
        environment.
    """
    source = "recording"
    if not isinstance(recording, Recording):
        source, recording = str(recording), load_recording(recording)
    with shaped(source, "a recording"):
        known = ("hpcgym/JobSelection-v0", "hpcgym/JobSelection-v1")
        if recording.about["env_id"] not in known or "observation" in recording.observations:
            raise HpcgymError(
                "only what was done in hpcgym/JobSelection-v0 or -v1 with observation='dict' can be"
                " learned from"
            )
        check_selections(recording)
    return recording


def check_selections(recording: Recording) -> None:
    """Raise an error if a recording is not of jobs that were selected from a window.

    Raises
    ------
    HpcgymError : as of :func:`check_recording`; also for a field that is missing, and actions that
        are no visible job. What is wrong is named.
    """
    check_recording(recording)
    fields, actions = recording.observations, recording.actions
    for name, entry in _SEEN.items():
        if name not in fields:
            raise HpcgymError(f"{name!r} is missing")
        _check(name, fields[name], entry, len(actions))
    mask = fields["mask"]
    if mask.shape != fields["jobs"].shape[:2]:
        raise HpcgymError("'mask' and 'jobs' are of windows of different sizes")
    _check("actions", actions, _Entry("iu", (1,), 0, mask.shape[1] - 1), len(actions))
    wrong = np.flatnonzero(mask[np.arange(len(actions)), actions.astype(np.int64)] < 0.5)
    if len(wrong):
        raise HpcgymError(f"actions[{wrong[0]}] is a place of the window without a job")


def _check(name: str, array: NDArray[Any], entry: _Entry, number: int) -> None:
    """Raise an error if an array is not such as its entry says, of so many transitions."""
    if not isinstance(array, np.ndarray) or array.dtype.kind not in entry.kinds:
        raise HpcgymError(f"{name!r} has values of a kind that cannot be there")
    if array.ndim not in entry.axes or len(array) != number:
        what = "episodes" if name.startswith(_LAST) else "transitions"
        raise HpcgymError(f"{name!r} has the shape {array.shape}, with {number} {what}")
    if 0 in array.shape and name != "orders":
        raise HpcgymError(f"{name!r} is empty")
    right = (array >= entry.least) & (array <= entry.most) & np.isfinite(array) | (not entry.finite)
    if not right.all():
        place = tuple(map(int, np.argwhere(~right)[0]))
        raise HpcgymError(
            f"{name}[{', '.join(map(str, place))}] is {array[place]}, which cannot be there"
        )


# --- Recording ------------------------------------------------------------------------------------

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
    for name, value in spec.kwargs.items():
        try:
            json.dumps(value)
        except (TypeError, ValueError):
            raise HpcgymError(
                f"{name} is a {type(value).__name__}, which JSON cannot hold: make the environment"
                " with a text in its place, a name or a path, where it takes one"
            ) from None
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


# --- Data sets of Minari --------------------------------------------------------------------------

VERSION = "0.5.4"  # of Minari, whose layout it is

_ID = re.compile(r"[-\w]+-v[0-9]+")
_MOST_STEPS = 2**17 - 1  # of an episode: Minari takes a longer one for two
_KIND = "a data set of Minari"
_FLAT = "observation"  # what the field of flat observations is called in recordings
_DONE = ("rewards", "terminations", "truncations")


def is_minari_name(path: str | Path) -> bool:
    """Return whether a folder can be a data set: its name ends in a version, as ``mixed-v0``."""
    return _ID.fullmatch(Path(path).name) is not None


def write_minari(
    path: str | Path,
    recording: Recording,
    observation_space: spaces.Space[Any],
    action_space: spaces.Space[Any],
    env_spec: str,
) -> None:
    """Write a recording as a data set, whole or not at all; what there is is never replaced.

    Orders and bounds of experts have no place in it.

    Parameters
    ----------
    path : of the folder. In Minari's own folder (``MINARI_DATASETS_PATH``, or
        ``~/.minari/datasets``) the names on the way are the namespace.
    recording : what to write.
    observation_space, action_space : of the environment.
    env_spec : how it is made, as ``EnvSpec.to_json`` has it.

    Raises
    ------
    HpcgymError : no pyarrow, a name without a version, a folder that is there or cannot be written,
        or an episode that is too long.
    """
    check_target(path)
    path, about = Path(path), recording.about
    begin, part = 0, path.with_name(f"{path.name}.{os.urandom(4).hex()}.part")
    with writing(path):
        try:
            (part / "data").mkdir(parents=True)
            for number, end in enumerate(recording.ends.tolist()):
                _write_episode(part / "data", recording, number, slice(begin, end + 1))
                begin = end + 1
            size = sum(file.stat().st_size for file in part.glob("**/*"))
            _write(part / "data" / "metadata.json", {
                "total_episodes": len(recording.ends), "total_steps": len(recording.actions),
                "data_format": "parquet", "jpeg_encoding": False, "env_spec": env_spec,
                "observation_space": json.dumps(_space(observation_space)),
                "action_space": json.dumps(_space(action_space)),
                "dataset_id": _id(path), "minari_version": VERSION,
                "algorithm_name": about["policy"], "seed": about["seed"],
                "description": f"{about['policy']} in {about['env_id']}, recorded by hpcgym",
                "dataset_size": round(size / 1e6, 1),
            })  # fmt: skip
            part.rename(path)
        finally:
            shutil.rmtree(part, ignore_errors=True)


def check_target(path: str | Path) -> None:
    """Say before the work that a folder cannot become a data set.

    Raises
    ------
    HpcgymError : no pyarrow, a name without a version, or a folder that is there.
    """
    need_parquet(_KIND, HpcgymError)
    if not is_minari_name(path):
        raise HpcgymError(f"{path}: the name of {_KIND} ends in -v0, -v1, ...")
    if Path(path).exists():
        raise HpcgymError(
            f"{path} is there already, and is not replaced: take another version, or remove it"
        )


def _write_episode(data: Path, recording: Recording, number: int, steps: slice) -> None:
    """Write an episode, which has these transitions."""
    import pyarrow as pa
    from pyarrow import parquet

    length = steps.stop - steps.start
    if length > _MOST_STEPS:
        raise HpcgymError(f"episode {number} has {length:,} steps; Minari takes {_MOST_STEPS:,}")
    folder = data / str(number)
    folder.mkdir()
    parquet.write_table(_table(pa, recording, steps, number), folder / "part-0.parquet")
    told = {"seed": "seeds", "policy": "policies", "episode": "episodes"}
    of_episode = {name: recording.about[many][number] for name, many in told.items()}
    _write(folder / "metadata.json", {"id": number, "total_steps": length, **of_episode})


def read_minari(path: str | Path) -> Recording:
    """Return a data set in Parquet, of :func:`write_minari` or of Minari's own ``DataCollector``.

    Raises
    ------
    HpcgymError : no pyarrow, or a folder that holds none, one in another format, or one that is
        damaged; the file is named.
    """
    need_parquet(_KIND, HpcgymError)
    data = Path(path) / "data"
    place = data / "metadata.json"
    if not place.exists():
        raise HpcgymError(f"{path} is a folder, and not {_KIND}: it has no data/metadata.json")
    told = json_file(place)
    with shaped(place, f"that of {_KIND}"):
        if told["data_format"] != "parquet":
            raise HpcgymError(
                f"its format is {told['data_format']!r}; of Minari's, hpcgym reads 'parquet'"
                " (DataCollector(..., data_format='parquet'))"
            )
        episodes = check_whole("total_episodes", told["total_episodes"], 1)
        about, shapes = _about(told), _shapes(told)
    parts: dict[str, list[NDArray[Any]]] = {name: [] for name in (*shapes, *_DONE)}
    for number in range(episodes):
        folder = data / str(number)
        for name, column in _episode(folder, shapes).items():
            parts[name].append(column)
        of_episode = json_file(folder / "metadata.json")
        with shaped(folder / "metadata.json", f"that of an episode of {_KIND}"):
            about["episodes"].append(str(of_episode.get("episode", "")))
            about["policies"].append(str(of_episode.get("policy", about["policy"])))
            about["seeds"].append(of_episode.get("seed"))
    with shaped(path, _KIND):
        recording = _joined(parts, about)
        check_recording(recording)
        if len(recording.ends) != episodes:
            raise HpcgymError(f"{episodes} episodes, with {len(recording.ends)} ends")
    return recording


def _about(told: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is known of a data set beside its arrays, without that of its episodes."""
    spec = json_of(told["env_spec"], "'env_spec'")
    if not isinstance(spec["id"], str):
        raise TypeError
    return {
        "policy": told.get("algorithm_name", ""),
        "env_id": spec["id"],
        "env_options": {k: v for k, v in spec["kwargs"].items() if k not in OF_WORKLOADS},
        "episodes": [],
        "seeds": [],
        "policies": [],
        "seed": told.get("seed", 0),
    }


def _shapes(told: Mapping[str, Any]) -> dict[str, tuple[int, ...]]:
    """Return the columns of observations and actions, with the shape of an entry."""
    seen = json_of(told["observation_space"], "'observation_space'")
    shapes = {"actions": _shape(json_of(told["action_space"], "'action_space'"))}
    if seen["type"] != "Dict":
        return shapes | {"observations": _shape(seen)}
    return shapes | {f"observations.{k}": _shape(one) for k, one in seen["subspaces"].items()}


def _joined(parts: Mapping[str, list[NDArray[Any]]], about: dict[str, Any]) -> Recording:
    """Return episodes, each with a row for its end, as a recording."""
    joined = {name: np.concatenate([one[:-1] for one in each]) for name, each in parts.items()}
    fields = [name for name in parts if name.startswith("observations")]
    return Recording(
        {_field(name): joined[name] for name in fields},
        joined["actions"],
        joined["rewards"].astype(np.float64),
        joined["terminations"],
        joined["truncations"],
        {_field(name): np.stack([one[-1] for one in parts[name]]) for name in fields},
        np.zeros((len(joined["actions"]), 0), np.int32),
        np.full(len(joined["actions"]), np.nan),
        about,
    )


def _episode(folder: Path, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, NDArray[Any]]:
    """Return the columns of an episode, with a row for its end."""
    files = sorted(folder.glob("*.parquet")) if folder.is_dir() else []
    if len(files) != 1:
        raise HpcgymError(f"{folder} has {len(files)} files of Parquet; an episode has one")
    found = parquet_columns(files[0])
    with shaped(files[0], f"an episode of {_KIND}"):
        for name in (*shapes, *_DONE):
            if name not in found:
                raise HpcgymError(f"{name!r} is missing")
        rows = len(found["rewards"])
        if rows < 2:
            raise HpcgymError("it has no steps")
        return {
            name: found[name].reshape(rows, *shapes.get(name, ())) for name in (*shapes, *_DONE)
        }


def _table(pa: Any, recording: Recording, steps: slice, episode: int) -> Any:
    """Return an episode as Minari has it."""
    seen = {
        name: _column(pa, np.concatenate([field[steps], recording.last[name][episode, None]]))
        for name, field in recording.observations.items()
    }
    columns = {
        "observations": seen[_FLAT] if set(seen) == {_FLAT}
        else pa.StructArray.from_arrays(list(seen.values()), names=list(seen))
    }  # fmt: skip
    for name in ("actions", *_DONE):
        one = getattr(recording, name)[steps]
        columns[name] = _column(pa, np.concatenate([one, np.zeros_like(one[:1])]))
    return pa.table(columns)


def _column(pa: Any, array: NDArray[Any]) -> Any:
    """Return an array as a column: numbers, or lists of numbers of one length."""
    if array.ndim == 1:
        return pa.array(array)
    flat = array.reshape(len(array), -1)
    kind = pa.list_(pa.from_numpy_dtype(array.dtype), flat.shape[1])
    return pa.FixedSizeListArray.from_arrays(pa.array(flat.reshape(-1)), type=kind)


def _space(space: spaces.Space[Any]) -> dict[str, Any]:
    """Return a space as Minari writes it."""
    if isinstance(space, spaces.Dict):
        return {"type": "Dict", "subspaces": {k: _space(one) for k, one in space.spaces.items()}}
    if isinstance(space, spaces.Box):
        low, high = space.low.tolist(), space.high.tolist()
        told = {"dtype": str(space.dtype), "shape": list(space.shape), "low": low, "high": high}
        return {"type": "Box", **told}
    if isinstance(space, spaces.Discrete):
        told = {"dtype": "int64", "start": int(space.start), "n": int(space.n)}
        return {"type": "Discrete", **told}
    if isinstance(space, spaces.MultiBinary):
        return {"type": "MultiBinary", "n": int(np.prod(space.shape))}
    raise HpcgymError(f"no data set of Minari has such a space here: {space}")


def _shape(space: Mapping[str, Any]) -> tuple[int, ...]:
    """Return the shape of what is in a space that Minari has written."""
    if space["type"] == "MultiBinary":
        return (check_whole("n", space["n"], 1),)
    sizes = space["shape"] if space["type"] == "Box" else []
    return tuple(check_whole("shape", size, 1) for size in sizes)


def _field(name: str) -> str:
    """Return what a recording calls a column of observations."""
    return _FLAT if name == "observations" else name.removeprefix("observations.")


def _id(path: Path) -> str:
    """Return the name that Minari knows a data set by."""
    usual = Path.home() / ".minari" / "datasets"
    root = Path(os.environ.get("MINARI_DATASETS_PATH") or usual).resolve()
    place = path.resolve()
    return place.relative_to(root).as_posix() if root in place.parents else path.name


def _write(path: Path, told: Mapping[str, Any]) -> None:
    path.write_text(json.dumps(told), encoding="utf-8")
