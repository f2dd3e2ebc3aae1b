"""Gymnasium environments over the simulator; importing hpcgym registers them."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hpcgym.envs.co_schedule import CoSchedule, CoScheduleVector
    from hpcgym.envs.job_selection import JobSelection, JobSelectionVector
    from hpcgym.envs.mixed_policy import MixedPolicy, MixedPolicyVector
    from hpcgym.envs.power_limits import (
        EnergyBudgetEnv,
        EnergyBudgetVector,
        PowerCapEnv,
        PowerCapVector,
    )
    from hpcgym.envs.queue_ordering import QueueOrdering, QueueOrderingVector
    from hpcgym.envs.single import SchedulingEnv, StepView
    from hpcgym.envs.vector import SchedulingVectorEnv

__all__ = [
    "CoSchedule",
    "CoScheduleVector",
    "EnergyBudgetEnv",
    "EnergyBudgetVector",
    "JobSelection",
    "JobSelectionVector",
    "MixedPolicy",
    "MixedPolicyVector",
    "PowerCapEnv",
    "PowerCapVector",
    "QueueOrdering",
    "QueueOrderingVector",
    "SchedulingEnv",
    "SchedulingVectorEnv",
    "StepView",
]

# imported when first used: Gymnasium takes its time; module -> what is in it
_HOMES = {
    name: module
    for module, names in {
        "job_selection": ("JobSelection", "JobSelectionVector"),
        "queue_ordering": ("QueueOrdering", "QueueOrderingVector"),
        "mixed_policy": ("MixedPolicy", "MixedPolicyVector"),
        "power_limits": ("PowerCapEnv", "EnergyBudgetEnv", "PowerCapVector", "EnergyBudgetVector"),
        "co_schedule": ("CoSchedule", "CoScheduleVector"),
        "single": ("SchedulingEnv", "StepView"),
        "vector": ("SchedulingVectorEnv",),
    }.items()
    for name in names
}

#: Name with Gymnasium -> where the class is. The vector environment of X or XEnv is XVector.
IDS = {
    f"hpcgym/{name.removesuffix('Env')}-v0": f"hpcgym.envs.{module}:{name}"
    for name, module in _HOMES.items()
    if module not in ("single", "vector") and not name.endswith("Vector")
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
                kwargs=dict(VERSIONS.get(name, {})),
                # the tests check them; at each step that would cost more than the step
                disable_env_checker=True,
            )


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'hpcgym.envs' has no attribute {name!r}")
    return getattr(import_module(f"hpcgym.envs.{_HOMES[name]}"), name)
