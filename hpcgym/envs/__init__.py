"""Gymnasium environments over the simulator; importing hpcgym registers them."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

import gymnasium

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

# imported when first used: they need numba
_HOMES = {
    "CoSchedule": "co_schedule",
    "CoScheduleVector": "co_schedule",
    "EnergyBudgetEnv": "power_limits",
    "EnergyBudgetVector": "power_limits",
    "JobSelection": "job_selection",
    "JobSelectionVector": "job_selection",
    "MixedPolicy": "mixed_policy",
    "MixedPolicyVector": "mixed_policy",
    "PowerCapEnv": "power_limits",
    "PowerCapVector": "power_limits",
    "QueueOrdering": "queue_ordering",
    "QueueOrderingVector": "queue_ordering",
    "SchedulingEnv": "single",
    "SchedulingVectorEnv": "vector",
    "StepView": "single",
}

#: Name with Gymnasium -> where the class is. The vector environment of X or XEnv is XVector.
IDS = {
    f"hpcgym/{name.removesuffix('Env')}-v0": f"hpcgym.envs.{_HOMES[name]}:{name}"
    for name in (
        "JobSelection",
        "QueueOrdering",
        "MixedPolicy",
        "PowerCapEnv",
        "EnergyBudgetEnv",
        "CoSchedule",
    )
}


def register() -> None:
    """Register the environments with Gymnasium, once."""
    for name, entry_point in IDS.items():
        if name not in gymnasium.registry:
            gymnasium.register(
                name,
                entry_point=entry_point,
                vector_entry_point=f"{entry_point.removesuffix('Env')}Vector",
                # the tests check them; at each step that would cost more than the step
                disable_env_checker=True,
            )


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'hpcgym.envs' has no attribute {name!r}")
    return getattr(import_module(f"hpcgym.envs.{_HOMES[name]}"), name)
