"""What a view by hand is made of: its fields as arrays, or which argument is wrong and how."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcgym.errors import HpcgymError, unknown

Ints = NDArray[np.int64]

_OF_QUEUE = ("submit", "duration", "units", "per_unit")
_MORE_OF_QUEUE = (
    "job", "requested", "user", "queue", "expected_wait", "allowed", "held_back",
)  # fmt: skip
_OF_RUNNING = ("start", "end", "per_unit", "first", "node", "units")
_NOTHING_RUNS = {**dict.fromkeys(_OF_RUNNING, ()), "first": (0,)}


def machine(resources: Any, capacity: Any) -> tuple[tuple[str, ...], Ints]:
    """Return the names of the resources, and the (N, R) amounts of the nodes, checked."""
    names = () if isinstance(resources, str) else tuple(resources)
    if not names or len(set(names)) < len(names) or not all(isinstance(n, str) for n in names):
        raise HpcgymError(f"resources must be different names, not {resources!r}")
    nodes = _length("capacity", capacity)
    if not nodes:
        raise HpcgymError("capacity must have a row for each node, and there is none")
    return names, whole("capacity", capacity, (nodes, len(names)), 0)


def queued(queue: Any, time: int, types: int) -> dict[str, Any]:
    """Return the fields of a view about the queued jobs; see ``PassView.of``."""
    _check_keys("queue", queue, _OF_QUEUE, _MORE_OF_QUEUE)
    n = _length("queue['submit']", queue["submit"])

    def numbers(key: str, least: int | None, usual: Any = None, most: int | None = None) -> Ints:
        return whole(f"queue[{key!r}]", queue.get(key, usual), (n,), least, most)

    submit = numbers("submit", None, most=time)
    unknown_number = np.full(n, -1)
    waits = _waits("queue['expected_wait']", queue.get("expected_wait", np.ones(n)), n)
    allowed = array("queue['allowed']", queue.get("allowed", np.ones(n, np.bool_)))
    flags = allowed.astype(np.int64) if allowed.dtype.kind == "b" else allowed
    return {
        "job": numbers("job", 0, np.arange(n)),
        "submit": submit,
        "wait": time - submit,
        "duration": numbers("duration", 0),
        "requested": numbers("requested", 0, queue["duration"]),
        "units": numbers("units", 1),
        "per_unit": _demands("queue['per_unit']", queue["per_unit"], (n, types)),
        "user": numbers("user", None, unknown_number),
        "queue": numbers("queue", None, unknown_number),
        "expected_wait": waits,
        "max_expected_wait": float(waits.max(initial=1.0)),
        "allowed": whole("queue['allowed']", flags, (n,), 0, 1).astype(np.bool_),
        "held_back": numbers("held_back", 0, np.zeros(n, np.int64)),
    }


def running(given: Any, time: int, nodes: int, types: int, queue: int) -> dict[str, Any]:
    """Return the fields of a view about the running jobs, beside so many that are queued."""
    parts = _NOTHING_RUNS if given is None or given == {} else given
    _check_keys("running", parts, _OF_RUNNING, ("job",))
    n = _length("running['start']", parts["start"])
    cells = _length("running['node']", parts["node"])
    first = whole("running['first']", parts["first"], (n + 1,))
    if first[0] != 0 or first[-1] != cells or (np.diff(first) < 0).any():
        raise HpcgymError(
            f"running['first'] must rise from 0 to {cells}, the length of running['node'], not"
            f" {first.tolist()}"
        )
    node = whole("running['node']", parts["node"], (cells,), 0, nodes - 1)
    _check_once(first, node)
    end = whole("running['end']", parts["end"], (n,))
    return {
        "running_job": whole("running['job']", parts.get("job", queue + np.arange(n)), (n,), 0),
        "running_start": whole("running['start']", parts["start"], (n,), most=time),
        "running_end": np.maximum(end, time + 1),
        "running_per_unit": _demands("running['per_unit']", parts["per_unit"], (n, types)),
        "running_first": first,
        "running_node": node,
        "running_units": whole("running['units']", parts["units"], (cells,), 1),
    }


def _demands(name: str, values: Any, shape: tuple[int, int]) -> Ints:
    """Return what units take, (n, R), checked: each takes a core at least."""
    demands = whole(name, values, shape, 0)
    for job in np.flatnonzero(demands[:, 0] == 0)[:1].tolist():
        raise HpcgymError(f"{name} must have a core for each unit, and [{job}] has none")
    return demands


def _check_once(first: Ints, node: Ints) -> None:
    """Raise an HpcgymError for a running job that has a node twice."""
    for job, (begin, end) in enumerate(pairwise(first.tolist())):
        distinct, times = np.unique(node[begin:end], return_counts=True)
        for twice in distinct[times > 1][:1].tolist():
            raise HpcgymError(
                f"running['node'] must have each node of a job once, and job {job} has node {twice}"
                " twice; units says how many are there"
            )


def free_beside(
    names: Sequence[str], capacity: Ints, first: Ints, node: Ints, units: Ints, per_unit: Ints
) -> Ints:
    """Return what the nodes have free beside the running jobs, (N, R).

    Raises
    ------
    HpcgymError : they take more of a node than it has.
    """
    owner = np.repeat(np.arange(len(first) - 1), np.diff(first))
    free = capacity.copy()
    np.subtract.at(free, node, units[:, None] * per_unit[owner])
    if (free < 0).any():
        n, r = np.argwhere(free < 0)[0].tolist()
        has = capacity[n, r]
        raise HpcgymError(
            f"running: the jobs on node {n} take {has - free[n, r]} {names[r]} of its {has}"
        )
    return free


def whole(
    name: str,
    values: Any,
    shape: tuple[int, ...],
    least: int | None = None,
    most: int | None = None,
) -> Ints:
    """Return whole numbers as an array of one's own, int64.

    Raises
    ------
    HpcgymError : another shape, other numbers, or one below ``least`` or above ``most``.
    """
    given = array(name, values)
    if given.size == 0 and 0 in shape:
        return np.zeros(shape, np.int64)
    if given.shape != shape:
        raise HpcgymError(f"{name} must have the shape {shape}, not {given.shape}")
    if given.dtype.kind not in "iu":
        kind = "whole numbers" if shape else "a whole number"
        raise HpcgymError(f"{name} must be {kind}, not {given.dtype}: {values!r}")
    if least is not None and given.min() < least:
        raise HpcgymError(f"{name} must be at least {least}, not {given.min()}")
    if most is not None and given.max() > most:
        raise HpcgymError(f"{name} must be at most {most}, not {given.max()}")
    return given.astype(np.int64)


def _waits(name: str, values: Any, number: int) -> NDArray[np.float64]:
    """Return expected waits [s], (number,) float64, checked to be above 0."""
    given = array(name, values)
    if given.shape != (number,):
        raise HpcgymError(f"{name} must have the shape {(number,)}, not {given.shape}")
    if given.size and given.dtype.kind not in "iuf":
        raise HpcgymError(f"{name} must be numbers, not {given.dtype}: {values!r}")
    waits = given.astype(np.float64)
    if not ((waits > 0) & (waits < np.inf)).all():
        raise HpcgymError(f"{name} must be above 0 s: {values!r}")
    return waits


def _length(name: str, values: Any) -> int:
    """Return how many rows or numbers are given, one after the other."""
    given = array(name, values)
    if given.ndim == 0:
        raise HpcgymError(f"{name} must be a list, not {values!r}")
    return len(given)


def _check_keys(name: str, given: Any, needed: Sequence[str], more: Sequence[str]) -> None:
    """Raise an HpcgymError unless a mapping has all that is needed, and nothing unknown."""
    if not isinstance(given, Mapping):
        raise HpcgymError(f"{name} must be a mapping of arrays, not {given!r}")
    for key in given:
        if key not in (*needed, *more):
            raise HpcgymError(unknown(f"key of {name}", key, (*needed, *more)))
    for key in needed:
        if key not in given:
            raise HpcgymError(f"{name} lacks {key!r}; it needs {', '.join(needed)}")


def array(name: str, values: Any) -> NDArray[Any]:
    """Return values as an array."""
    try:
        return np.asarray(values)
    except ValueError:  # lists of different lengths
        raise HpcgymError(f"{name} has parts of different lengths") from None
