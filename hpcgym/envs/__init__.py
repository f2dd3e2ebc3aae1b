"""Gymnasium environments over the simulator; importing hpcgym registers them."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from hpcgym.envs.ids import IDS as IDS
from hpcgym.envs.ids import register as register

if TYPE_CHECKING:
    from hpcgym.envs.backfill import Backfill, BackfillVector
    from hpcgym.envs.co_schedule import CoSchedule, CoScheduleVector
    from hpcgym.envs.inspector import Inspector, InspectorVector
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
    "Backfill",
    "BackfillVector",
    "CoSchedule",
    "CoScheduleVector",
    "EnergyBudgetEnv",
    "EnergyBudgetVector",
    "Inspector",
    "InspectorVector",
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
        "backfill": ("Backfill", "BackfillVector"),
        "inspector": ("Inspector", "InspectorVector"),
        "co_schedule": ("CoSchedule", "CoScheduleVector"),
        "single": ("SchedulingEnv", "StepView"),
        "vector": ("SchedulingVectorEnv",),
    }.items()
    for name in names
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'hpcgym.envs' has no attribute {name!r}")
    return getattr(import_module(f"hpcgym.envs.{_HOMES[name]}"), name)
