"""What a case says: all of a schedule, and hashes that are the same for the same values."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from functools import partial
from operator import attrgetter
from typing import Any

import gymnasium
import numpy as np

import hpcgym
from hpcgym.errors import ApartError, HpcgymError
from hpcgym.validation.validate import ScheduleError


def hashed(value: Any) -> str:
    """Return the SHA-256 of a value: an array, a table, a number, a text, or several of these."""
    return hashlib.sha256(_encoded(value)).hexdigest()


def _encoded(value: Any) -> bytes:
    """Return bytes that are the same for the same value, and others for others."""
    items = _items(value)
    if items is not None:
        rows = [f"{key} {hashed(part)}" for key, part in items]
        return "\n".join([f"{len(rows)} parts", *rows]).encode()
    if isinstance(value, np.ndarray):
        array = np.ascontiguousarray(value)
        if array.dtype.kind == "f":
            array = np.where(np.isnan(array), array.dtype.type(np.nan), array)  # one nan for all
        array = array.astype(array.dtype.newbyteorder("<"), copy=False)
        return f"array {array.dtype.str} {value.shape} ".encode() + array.tobytes()
    return f"{type(value).__name__} {_text(value)}".encode()


def _items(value: Any) -> list[tuple[str, Any]] | None:
    """Return the named parts of a value, None of one that has none."""
    if isinstance(value, Mapping):
        return sorted((str(key), part) for key, part in _simple(value.items()))
    if hasattr(value, "_asdict"):
        return [(str(key), part) for key, part in _simple(value._asdict().items())]
    if hasattr(value, "columns") and hasattr(value, "to_numpy"):  # a table of pandas
        return [(str(name), _column(value[name].to_numpy())) for name in value.columns]
    if isinstance(value, list | tuple) or (isinstance(value, np.ndarray) and value.dtype == object):
        listed = value.reshape(-1).tolist() if isinstance(value, np.ndarray) else value
        return [(str(place), part) for place, part in _simple(enumerate(listed))]
    return None


def _simple(pairs: Any) -> list[tuple[Any, Any]]:
    """Return pairs whose values are Python's own numbers where they are single ones of numpy."""
    return [(key, part.item() if isinstance(part, np.generic) else part) for key, part in pairs]


def _column(column: Any) -> Any:
    """Return a column of a table: texts as a list, whatever kind of text pandas has."""
    return column if column.dtype.kind in "biuf" else [str(value) for value in column]


def _text(value: Any) -> str:
    """Return a number, exactly, a text or None as text."""
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, float):
        return "nan" if value != value else value.hex()
    if value is None or isinstance(value, str | int | bool):
        return repr(value)
    raise TypeError(f"the guard knows no hash of a {type(value).__name__}: {value!r}")


# --- Schedules ------------------------------------------------------------------------------------

_SAME = "start end run_time reserved_start backfilled killed decided idle_seconds metrics power"
#: What is hashed of a schedule, by name.
_RESULT: dict[str, Callable[[Any], Any]] = {
    **{name: attrgetter(name) for name in _SAME.split()},
    "predicted": attrgetter("predicted_run_time"),
    "policy_predicted": attrgetter("policy_run_time"),
    "nodes": attrgetter("allocation"),
    "levels": attrgetter("frequency"),
    "node_states": lambda result: None if result.node_states is None else vars(result.node_states),
    "coschedule": lambda result: _coschedule(result),
    "energy": lambda result: _fields(result.energy, "by_state", "by_user", "by_job", "by_node"),
    "validated": lambda result: _validated(result),
}


def facts_of(result: Any) -> dict[str, Any]:
    """Return what is hashed of a schedule."""
    return {name: attempt(partial(read, result)) for name, read in _RESULT.items()}


def attempt(function: Callable[[], Any]) -> Any:
    """Return what a function returns, or that it is refused or fails, by which kind of error."""
    try:
        return function()
    except Exception as error:  # whatever it is, it is a part of what is hashed
        refused = isinstance(error, HpcgymError | gymnasium.error.Error)
        kind = HpcgymError if isinstance(error, ApartError) else type(error)
        return f"{'refused' if refused else 'failed'}:{kind.__name__}"


def _fields(value: Any, *names: str) -> dict[str, Any]:
    return {name: getattr(value, name) for name in names}


def _coschedule(result: Any) -> Any:
    """Return what is to be said of a schedule on shared nodes."""
    shared = result.coschedule
    if shared is None:
        return None
    believed = np.array(shared.pairs.matrix()) if hasattr(shared.pairs, "matrix") else None
    ticks = ("ticks", "start_ticks", "end_ticks", "promised_ticks")
    facts = _fields(shared, *ticks, "compact_s", "shape", "code", "parts")
    return {**facts, "job_speedup": result.job_speedup, "believed": believed}


def _validated(result: Any) -> list[str] | str:
    """Return what is proved of a schedule, or how many rules it breaks."""
    try:
        return list(hpcgym.validate_schedule(result))
    except ScheduleError as error:
        return f"breaks {len(error.violations)} rules"
