"""The file of a manifest: with a checksum, and checked to the last entry when it is read.

A folder with a sweep comes from elsewhere, or is old, or was edited by hand: whatever is not what a
manifest has is told here, in one line, before tasks are made of it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from hpcgym.errors import HpcgymError
from hpcgym.files import json_file
from hpcgym.naming import MOST_OF_LIST, name_problem
from hpcgym.schedule.groups import GROUPED_BY
from hpcgym.sweep.experiment import MOST_SHUFFLES
from hpcgym.sweep.manifest import MOST_TASKS, Manifest, Tasks

_MOST_BYTES = 256 << 20  # there is a line for each slice
_CHECKSUM = "manifest_sha256"

_Check = Callable[[Any], bool]


def as_text(manifest: Manifest) -> str:
    """Return a manifest as it is written: with a checksum."""
    return json.dumps({**manifest, _CHECKSUM: _checksum(manifest)}, indent=2) + "\n"


def read(path: Path) -> Manifest:
    """Return the manifest that a file holds: one from which tasks can be made.

    One of earlier versions has no checksum.

    Raises
    ------
    HpcgymError : it holds none, or not what was written; the message names the file.
    """
    given = json_file(path, _MOST_BYTES)
    if not isinstance(given, dict) or "versions" not in given:
        raise HpcgymError(f"{path} is not the manifest of a sweep")
    manifest = {key: value for key, value in given.items() if key != _CHECKSUM}
    if given.get(_CHECKSUM, checksum := _checksum(manifest)) != checksum:
        raise HpcgymError(f"{path} is damaged: it is not what was written, its checksum differs")
    if wrong := _first_wrong(manifest, _ENTRIES, _MAY_HAVE):
        raise HpcgymError(f"{path} is not the manifest of a sweep, or damaged: {wrong}")
    if manifest["tasks"] > MOST_TASKS:
        raise HpcgymError(f"{path} has {manifest['tasks']:,} tasks, at most {MOST_TASKS:,}")
    if len(Tasks(manifest)) != manifest["tasks"]:
        raise HpcgymError(f"{path} is damaged: it does not have as many tasks as it tells")
    return manifest


def _checksum(manifest: Manifest) -> str:
    """Return the SHA-256 of all entries."""
    return hashlib.sha256(json.dumps(manifest, sort_keys=True).encode()).hexdigest()


def _first_wrong(
    given: Mapping[str, Any], must: Mapping[str, _Check], may: Mapping[str, _Check]
) -> str:
    """Return what is wrong with the first entry that is, the empty text if all are right."""
    for key in [*must, *given]:
        check = must.get(key) or may.get(key)
        if check is None:
            return f"it has the unknown entry {key!r}"
        if key not in given or not check(given[key]):
            return f"the entry {key!r} is not what it should be"
    return ""


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_name(value: Any) -> bool:
    return not name_problem(value, MOST_OF_LIST)


def _is_number(value: Any) -> bool:
    return type(value) is int and value >= 0


def _or_none(check: _Check) -> _Check:
    return lambda value: value is None or check(value)


def _list_of(check: _Check, most: float = float("inf")) -> _Check:
    return lambda value: isinstance(value, list) and len(value) <= most and all(map(check, value))


def _some_of(check: _Check, most: float = float("inf")) -> _Check:
    return lambda value: _list_of(check, most)(value) and bool(value)


def _table_of(check: _Check) -> _Check:
    return lambda value: isinstance(value, dict) and all(map(check, value.values()))


def _has_versions(value: Any) -> bool:
    return _table_of(_is_text)(value) and "hpcgym" in value


def _is_workload(value: Any) -> bool:
    return isinstance(value, dict) and not _first_wrong(value, _OF_WORKLOAD, _OF_SOME_WORKLOADS)


def _has_source(value: Any) -> bool:
    return isinstance(value, dict) and _is_name(value.get("source"))


def _is_limits(value: Any) -> bool:
    return isinstance(value, dict) and not _first_wrong(value, _OF_LIMITS, {})


def _has_rules(value: Any) -> bool:
    return isinstance(value, dict) and _is_text(value.get("backfill"))


def _is_grouping(value: Any) -> bool:
    return isinstance(value, str) and value in GROUPED_BY


def _are_schedulers(value: Any) -> bool:
    return _table_of(_has_rules)(value) and bool(value) and all(map(_is_name, value))


#: The entries of a workload: those that all have, and others.
_OF_WORKLOAD: dict[str, _Check] = {
    "workload": _is_name,
    "source": _is_name,
    "clean": _is_text,
    "processors": _or_none(_is_number),
    "errors": _is_text,
    "slices": _is_text,
    "seed": _or_none(_is_number),
    "slice_names": _some_of(_is_name),
}
_OF_SOME_WORKLOADS: dict[str, _Check] = {"cluster": _is_text, "codes": _is_number, "tz": _is_text}

#: The entries of a set of limits.
_OF_LIMITS: dict[str, _Check] = {
    "name": _is_name,
    "cap": _list_of(_is_text),
    "budget": _list_of(_is_text),
}

#: The entries of a manifest: those that all have, and others.
_ENTRIES: dict[str, _Check] = {
    "versions": _has_versions,
    "experiment_sha256": _is_text,
    "inputs_sha256": _table_of(_is_text),
    "seeds": _list_of(_is_number),
    "workloads": _some_of(_is_workload),
    "schedulers": _are_schedulers,
    "metrics": _list_of(_is_text),
    "tasks": _is_number,
    "tasks_sha256": _is_text,
}
_MAY_HAVE: dict[str, _Check] = {
    "speedups": _some_of(_has_source),
    "limits": _some_of(_is_limits),
    "shuffles": _some_of(_is_number, MOST_SHUFFLES),
    "by": _some_of(_is_grouping),
}
