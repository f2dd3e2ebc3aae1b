"""All that the guard knows of hpcgym: where public names change, change them here and nowhere else.

The words of the guard (factors, values, facts) stay as they are, or the names of cases would change
and nothing could be compared. ``RENAMED`` says what the library calls them now.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np

import hpcgym
from hpcgym import Cluster, Heatmap, HpcgymError, Workload, continued, generate_speedups
from hpcgym.agents.lookahead import Lookahead
from hpcgym.baselines import SCHEDULERS, find_baseline
from hpcgym.baselines.dispatchers import DISPATCHERS
from hpcgym.baselines.schedulers import COSCHEDULERS
from hpcgym.cluster import Failures, Level, NodeGroup, NodePower, find_cluster
from hpcgym.cluster.power_plans import greatest_w, idle_w
from hpcgym.errors import ApartError
from hpcgym.evaluation import evaluate
from hpcgym.schedule.signals import bill, read_signal
from hpcgym.scheduler.allocations import ALLOCATIONS
from hpcgym.scheduler.backfilling import BACKFILL
from hpcgym.scheduler.estimates import CORRECTIONS, ESTIMATES, DataDriven, Regression
from hpcgym.scheduler.limits import EnergyBudget, PowerCap
from hpcgym.scheduler.policies import FEATURES, POLICIES, USER_FEATURES, FairShare
from hpcgym.scheduler.rules import PARTNERS, PASSES, POWER, Scheduler
from hpcgym.simulation.run import learn_before
from hpcgym.speedups import LearnedSpeedups
from hpcgym.sweep import BatchSimulator, read_table, run_experiment
from hpcgym.sweep.batch import METRICS as BATCH_METRICS
from hpcgym.validation.validate import ScheduleError
from hpcgym.workload import assign_codes, shuffled, with_codes

__all__ = [
    "ALLOCATIONS",
    "BACKFILL",
    "BATCH_METRICS",
    "CORRECTIONS",
    "COSCHEDULERS",
    "DISPATCHERS",
    "ESTIMATES",
    "FEATURES",
    "PARTNERS",
    "PASSES",
    "POLICIES",
    "POWER",
    "SCHEDULERS",
    "USER_FEATURES",
    "BatchSimulator",
    "Cluster",
    "DataDriven",
    "EnergyBudget",
    "Failures",
    "FairShare",
    "Heatmap",
    "HpcgymError",
    "LearnedSpeedups",
    "Level",
    "Lookahead",
    "NodeGroup",
    "NodePower",
    "PowerCap",
    "Regression",
    "Scheduler",
    "Workload",
    "assign_codes",
    "bill",
    "continued",
    "evaluate",
    "find_baseline",
    "find_cluster",
    "generate_speedups",
    "greatest_w",
    "idle_w",
    "learn_before",
    "read_signal",
    "read_table",
    "run_experiment",
    "shuffled",
    "with_codes",
]

#: The guard's word for an argument, a rule or a metric -> the library's, where that is another one.
RENAMED: dict[str, str] = {}

#: The guard's word for the value of an argument -> the library's: {"backfill": {"easy": ...}}.
RENAMED_VALUES: dict[str, dict[Any, Any]] = {}

#: The guard's name of an environment -> its id.
ENVIRONMENTS = {
    name: f"hpcgym/{name}-v0"
    for name in (
        "JobSelection",
        "QueueOrdering",
        "MixedPolicy",
        "PowerCap",
        "EnergyBudget",
        "CoSchedule",
    )
}

#: What is hashed of a schedule, by name. What a result has not, is None.
RESULT: dict[str, Callable[[Any], Any]] = {
    "start": lambda result: result.start,
    "end": lambda result: result.end,
    "run_time": lambda result: result.run_time,
    "predicted": lambda result: result.predicted_run_time,
    "policy_predicted": lambda result: result.policy_run_time,
    "reserved_start": lambda result: result.reserved_start,
    "backfilled": lambda result: result.backfilled,
    "killed": lambda result: result.killed,
    "decided": lambda result: result.decided,
    "nodes": lambda result: result.allocation,
    "levels": lambda result: result.frequency,
    "node_states": lambda result: None if result.node_states is None else vars(result.node_states),
    "idle_seconds": lambda result: result.idle_seconds,
    "coschedule": lambda result: _coschedule(result),
    "metrics": lambda result: metrics_of(result.metrics),
    "energy": lambda result: _energy(result),
    "power": lambda result: result.power,
    "validated": lambda result: _validated(result),
}


def renamed(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return arguments by the library's names, with the library's values."""
    return {RENAMED.get(name, name): _value(name, value) for name, value in arguments.items()}


def _value(name: str, value: Any) -> Any:
    """Return what the library calls a value."""
    if isinstance(value, str):
        return RENAMED_VALUES.get(name, {}).get(value, value)
    return value


def simulate(workload: Any, scheduler: Any = "easy", **arguments: Any) -> Any:
    """Return the result of a simulation."""
    return hpcgym.simulate(workload, scheduler, **renamed(arguments))


def load(source: str, **arguments: Any) -> Any:
    """Return a workload by name."""
    return hpcgym.load_workload(source, **renamed(arguments))


def workload_of(columns: Mapping[str, Any], processors: int, **others: Any) -> Any:
    """Return a workload of columns, by the names of the Standard Workload Format."""
    return Workload.from_columns(columns, processors=processors, name="guarded", **others)


def facts_of(result: Any) -> dict[str, Any]:
    """Return what is hashed of a schedule."""
    return {name: attempt(partial(read, result)) for name, read in RESULT.items()}


def metrics_of(metrics: Mapping[str, Any]) -> dict[str, Any]:
    """Return metrics by the guard's names."""
    words = {theirs: ours for ours, theirs in RENAMED.items()}
    return {words.get(name, name): value for name, value in metrics.items()}


def environment(name: str, **arguments: Any) -> Any:
    """Return a single environment, without Gymnasium's wrappers."""
    return gymnasium.make(ENVIRONMENTS[name], **renamed(arguments)).unwrapped


def vector_environment(name: str, number: int, **arguments: Any) -> Any:
    """Return a vector environment."""
    return gymnasium.make_vec(ENVIRONMENTS[name], num_envs=number, **renamed(arguments))


def attempt(function: Callable[[], Any]) -> Any:
    """Return what a function returns, or that it is refused or fails, by which kind of error."""
    try:
        return function()
    except Exception as error:  # whatever it is, it is to be compared
        return failure(error)


def failure(error: Exception) -> str:
    """Return the class of an error: "refused:..." if it is a line for users, else "failed:..."."""
    refused = isinstance(error, HpcgymError | gymnasium.error.Error)
    kind = HpcgymError if isinstance(error, ApartError) else type(error)  # it was once that
    return f"{'refused' if refused else 'failed'}:{kind.__name__}"


def library_folder() -> Path:
    """Return the folder of the repository that hpcgym is imported from."""
    return Path(hpcgym.__file__).parents[1]


def _coschedule(result: Any) -> Any:
    """Return what is to be said of a schedule on shared nodes."""
    found = result.coschedule
    if found is None:
        return None
    fields = ("ticks", "start_ticks", "end_ticks", "promised_ticks", "compact_s", "shape", "code")
    facts = {name: getattr(found, name) for name in (*fields, "parts")}
    believed = None
    if hasattr(found.pairs, "matrix"):
        believed = np.array(found.pairs.matrix())
    return {**facts, "job_speedup": result.job_speedup, "believed": believed}


def _energy(result: Any) -> dict[str, Any]:
    """Return the books: who is charged with how much."""
    tables = ("by_state", "by_user", "by_job", "by_node")
    return {name: getattr(result.energy, name) for name in tables}


def _validated(result: Any) -> list[str] | str:
    """Return what is proved of a schedule, or how many rules it breaks."""
    try:
        return list(hpcgym.validate_schedule(result))
    except ScheduleError as error:
        return f"breaks {len(error.violations)} rules"
