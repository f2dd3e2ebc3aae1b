"""Data sets as Minari has them, in Parquet: folders that ``minari.load_dataset`` reads.

Of the folder ``mixed-v0``, ``data/metadata.json`` tells the environment and its spaces, and
``data/K/`` has episode K: a table of its steps, and ``metadata.json`` with the seed of its reset.
A table has a row more than the episode has steps: the last one is what was observed at the end,
with zeros in place of action and reward. The layout is that of Minari 0.5.4, its format "parquet";
neither Minari nor JAX is needed to write or read it, but pyarrow is.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from hpcgym.agents.recordings import Recording, check_recording
from hpcgym.agents.specs import OF_WORKLOADS
from hpcgym.errors import HpcgymError, check_whole
from hpcgym.files import json_file, json_of, need_parquet, parquet_columns, shaped
from hpcgym.files.writing import writing

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
