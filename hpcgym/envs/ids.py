"""The ids of the environments with Gymnasium, and what their versions stand for."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from hpcgym.errors import HpcgymError, unknown

#: Name with Gymnasium -> where the class is. The vector environment of X or XEnv is XVector.
IDS = {
    "hpcgym/JobSelection-v0": "hpcgym.envs.job_selection:JobSelection",
    "hpcgym/QueueOrdering-v0": "hpcgym.envs.queue_ordering:QueueOrdering",
    "hpcgym/MixedPolicy-v0": "hpcgym.envs.mixed_policy:MixedPolicy",
    "hpcgym/PowerCap-v0": "hpcgym.envs.power_limits:PowerCapEnv",
    "hpcgym/EnergyBudget-v0": "hpcgym.envs.power_limits:EnergyBudgetEnv",
    "hpcgym/CoSchedule-v0": "hpcgym.envs.co_schedule:CoSchedule",
}

#: What v1 of an environment has in place of its defaults: a congested machine that is not empty at
#: first, jobs that go on to come, and rewards for which waiting costs at once. So policies differ,
#: and what gains in an episode gains in the long run; see the pages.
_HONEST = {
    "workload": "lublin:jobs=50000,processors=256,load=0.7,seed=0",
    "start": "warm",
    "arrivals": "continue",
    "horizon": "7d",
    "paid": "waiting",
}

#: Newer versions: name with Gymnasium -> the arguments that the class is given, unless others are.
VERSIONS: dict[str, dict[str, object]] = {
    "hpcgym/JobSelection-v1": {
        **_HONEST, "backfill": "none", "reservation": "kept", "skip_forced": True,
    },
    "hpcgym/QueueOrdering-v1": {**_HONEST, "backfill": "none"},
    "hpcgym/MixedPolicy-v1": {**_HONEST, "scale": "spread"},
}  # fmt: skip


def id_of(name: str) -> str:
    """Return the id of an environment that may be named without hpcgym/ and its version.

    Raises
    ------
    HpcgymError : no such environment.
    """
    for one in (name, f"hpcgym/{name}", f"hpcgym/{name}-v0"):
        if one in IDS or one in VERSIONS:
            return one
    raise HpcgymError(unknown("--env", name, [one[len("hpcgym/") : -len("-v0")] for one in IDS]))


@contextmanager
def any_version() -> Iterator[None]:
    """Let environments be made without being told that there are newer versions."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*is out of date", DeprecationWarning)
        yield


def register() -> None:
    """Register the environments with Gymnasium, once."""
    import gymnasium

    for name in (*IDS, *VERSIONS):
        entry_point = IDS[name.replace("-v1", "-v0")]
        if name not in gymnasium.registry:
            gymnasium.register(
                name,
                entry_point=entry_point,
                vector_entry_point=f"{entry_point.removesuffix('Env')}Vector",
                kwargs={"version": "v1"} if name in VERSIONS else {},
                # the tests check them; at each step that would cost more than the step
                disable_env_checker=True,
            )
