"""Environments as most tests take them: begun with an empty machine, ended by their own jobs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import gymnasium

from hpcgym import envs

_PLAIN: dict[str, Any] = {
    "part": "all", "start": "empty", "arrivals": "stop", "horizon": None, "reward": "bsld",
    "paid": "start", "backfill_order": "fcfs", "window": 128,
}  # fmt: skip
#: Name -> its arguments, unless others are given.
USUAL: dict[str, dict[str, Any]] = {
    "JobSelection": {**_PLAIN, "skip_forced": False},
    "QueueOrdering": {**_PLAIN, "skip_forced": False},
    "MixedPolicy": {**_PLAIN, "backfill_order": "spf", "scale": "none", "skip_forced": False},
    "Backfill": _PLAIN,
    "Inspector": {name: value for name, value in _PLAIN.items() if name != "backfill_order"},
}


def plain(name: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of an environment by its name, as tests take it."""
    usual = dict(USUAL.get(name.removesuffix("Vector"), {}))
    if given.get("scheduler") is not None:
        usual.pop("backfill_order", None)
    for value in ("episodes", "observation"):
        if isinstance(given.get(value), Mapping):
            usual = {
                setting: usual_value
                for setting, usual_value in usual.items()
                if setting not in given[value]
            }
    return {**usual, **given}


def maker(name: str) -> Callable[..., Any]:
    """Return what makes environments of a class by its name."""
    return lambda *first, **given: getattr(envs, name)(*first, **plain(name, given))


JobSelection, JobSelectionVector = maker("JobSelection"), maker("JobSelectionVector")
QueueOrdering, QueueOrderingVector = maker("QueueOrdering"), maker("QueueOrderingVector")
MixedPolicy, MixedPolicyVector = maker("MixedPolicy"), maker("MixedPolicyVector")


def make(env_id: str, **given: Any) -> Any:
    """Return the same by its id, from Gymnasium."""
    return gymnasium.make(env_id, **plain(_name_of(env_id), given))


def make_vec(env_id: str, num_envs: int = 1, **given: Any) -> Any:
    """Return many in one by their id, from Gymnasium."""
    given = {"vectorization_mode": "vector_entry_point", **plain(_name_of(env_id), given)}
    return gymnasium.make_vec(env_id, num_envs, **given)


def _name_of(env_id: str) -> str:
    return env_id.partition("/")[2].partition("-")[0]
