"""What agents say of their training: what was around episodes, and which jobs they have seen."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from hpcgym.envs import VERSIONS
from hpcgym.envs.core.cutting import USUAL_START
from hpcgym.envs.core.episodes import Episodes
from hpcgym.errors import HpcgymError, TrainingWarning, warn_caller
from hpcgym.naming import seconds_of
from hpcgym.workload import Workload

#: What is around slices, if nobody says.
PLAIN: dict[str, Any] = {"start": "empty", "warmup": None, "arrivals": "stop", "horizon": None}


def around_of(
    given: Mapping[str, Any],
    env: Any,
    env_options: Mapping[str, Any] | None,
    acting: Mapping[str, Any],
) -> dict[str, Any]:
    """Return what is around the slices of an evaluation.

    Parameters
    ----------
    given : the four arguments of :data:`PLAIN`; None: as environments have it.
    env, env_options : as :func:`hpcgym.evaluation.evaluate` takes them.
    acting : the policies that act.

    Raises
    ------
    HpcgymError : environments that differ in what is not given.
    """
    around = dict(PLAIN)
    told: dict[str, str] = {}  # by whom
    for name, theirs in _environments(env, env_options or {}, acting):
        for key in PLAIN:
            if given[key] is not None or key not in theirs:
                continue
            if key not in told:
                around[key], told[key] = theirs[key], name
            elif _meant(around[key]) != _meant(theirs[key]):
                raise HpcgymError(
                    f"the environment of {name} has {key}={theirs[key]!r}, and that of {told[key]}"
                    f" {around[key]!r}; give {key} (--{key}), or evaluate apart"
                )
    for key, value in given.items():
        if value is not None:
            around[key] = PLAIN[key] if value == "none" and PLAIN[key] is None else value
    return around


def _environments(
    env: Any, env_options: Mapping[str, Any], acting: Mapping[str, Any]
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Return the arguments of each environment of an evaluation, as far as they are told."""
    if env is not None and not isinstance(env, str):
        episodes = getattr(getattr(env, "unwrapped", None), "episodes", None)
        yield "env", getattr(episodes, "around", {})
        return
    if env is not None:
        yield env, {**VERSIONS.get(env, {}), **env_options}
    for name, policy in acting.items():
        own = getattr(policy, "env_id", None)
        if own is not None and env in (None, own):
            yield name, {**VERSIONS.get(own, {}), **options_of(policy), **env_options}


def options_of(policy: Any) -> Mapping[str, Any]:
    """Return the arguments of the environment that a policy was made for, as far as it has any."""
    return getattr(policy, "env_options", None) or {}


def _meant(value: Any) -> Any:
    """Return a value that is equal for all ways to write the same."""
    if value == "warm":
        return USUAL_START
    seconds = seconds_of(value) if isinstance(value, str) else None
    return value if seconds is None else seconds


def warn_of_seen(acting: Mapping[str, Any], whole: Workload, part: Episodes) -> None:
    """Say which policies have been trained on jobs of the slices; not if these are "train".

    The same log is known by its name, and by the seconds in which the first and the last job of the
    training were submitted.

    Warns
    -----
    TrainingWarning : for each of them.
    """
    first, last = part.submitted
    for name, policy in acting.items():
        seen = getattr(policy, "trained_on", None)
        if not seen or part.part == "train" or seen["workload"] != whole.name:
            continue
        span = seen["first_s"], seen["last_s"]
        overlaps = span[0] < last and first < span[1]
        if overlaps and np.isin(span, whole.submit_time).all():
            where = "the whole workload" if part.part == "all" else f"the {part.part} part"
            warn_caller(
                f"{name} was trained with part={seen['part']!r} on {whole.name}, and has seen jobs"
                f" of {where}: its row tells nothing of new jobs; train with part='train'",
                TrainingWarning,
            )
