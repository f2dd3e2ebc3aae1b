"""Load files of ELiSE: measured run times of parallel codes, alone and side by side.

A load is an object of JSON, or a text that is one: its name, its processes, its run times on whole
nodes and, for each other load, its run times on half sockets beside it::

    {"machine": ..., "suite": ..., "loads": [
        {"load_name": "lu.D.64", "num_of_processes": 64, "compact_timelogs": [280.5, 281.0],
         "coscheduled_timelogs": {"mg.E.128": [[301.0, 299.5], [302.0]]}}, ...]}

Runs of a pair are lists of lists, one for each time that the pair was started: a load that ends
before its neighbour is started again and again.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from hpcgym.errors import HpcgymError
from hpcgym.files import json_of
from hpcgym.speedups.checks import positive, unknown_pairs
from hpcgym.speedups.heatmap import UNKNOWN_PROCESSES, Heatmap

LOADS = "loads"

_NAME, _PROCESSES = "load_name", "num_of_processes"
_COMPACT, _BESIDE = "compact_timelogs", "coscheduled_timelogs"


def heatmap_of_loads(where: str, loads: Sequence[Any]) -> Heatmap:
    """Return the heatmap of loads: mean compact time over the mean of all times beside another.

    Times beside a load that is not among ``loads`` are left out; ``dropped`` counts these pairs.

    Raises
    ------
    HpcgymError : a load that is none, without times, or with one that is not above 0; the message
        begins with ``where`` and names the load.
    """
    found: dict[str, Mapping[str, Any]] = {}
    for number, given in enumerate(loads, 1):
        load = _load(f"{where}, load {number}", given)
        if load[_NAME] in found:
            raise HpcgymError(f"{where}, load {number}: {load[_NAME]!r} stands there twice")
        found[load[_NAME]] = load
    rows = {name: row for row, name in enumerate(found)}
    speedup = unknown_pairs(where, len(rows))
    compact_s = np.full(len(rows), np.nan)
    dropped = 0
    for name, load in found.items():
        row, what = rows[name], f"{where}, load {name!r}"
        compact_s[row] = _mean(f"{what}, compact", load[_COMPACT])
        for other, times in load[_BESIDE].items():
            beside_s = _mean(f"{what} beside {other!r}", times)
            if other in rows:
                speedup[row, rows[other]] = compact_s[row] / beside_s
            else:
                dropped += 1
    processes: Any = [load.get(_PROCESSES, UNKNOWN_PROCESSES) for load in found.values()]
    return Heatmap(
        tuple(rows),
        speedup,
        compact_s=compact_s,
        processes=processes,
        source=where,
        dropped=dropped,
    )


def _load(where: str, given: Any) -> Mapping[str, Any]:
    """Return a load as an object with all that is needed of it."""
    if isinstance(given, str):
        given = json_of(given, where, finite=False)
    if not isinstance(given, dict):
        raise HpcgymError(f"{where} is no object")
    for key, kind in ((_NAME, str), (_COMPACT, list), (_BESIDE, dict)):
        if not isinstance(given.get(key), kind):
            raise HpcgymError(f"{where} has no {key!r} that is of kind {kind.__name__}")
    if not isinstance(given.get(_PROCESSES, 1), int):
        raise HpcgymError(f"{where}: {_PROCESSES!r} must be a whole number")
    return given


def _mean(what: str, times: Any) -> float:
    """Return the mean of all times [s], which may be in lists of lists."""
    if not isinstance(times, list):
        raise HpcgymError(f"{what}: times must be a list")
    flat = [time for part in times for time in (part if isinstance(part, list) else [part])]
    if not flat:
        raise HpcgymError(f"{what}: there is no time")
    return math.fsum(positive(f"{what}: a time", time) for time in flat) / len(flat)
