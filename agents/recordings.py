"""Recordings of what policies do: their fields, their files, and what is checked of them.

``recorder`` makes them. A file of one is a compressed ``.npz``; a folder is a data set as Minari
has them, which ``minari_files`` writes and reads.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcgym.errors import HpcgymError
from hpcgym.files import arrays_of, json_of, shaped
from hpcgym.files.writing import whole


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
        from hpcgym.agents.minari_files import read_minari

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
