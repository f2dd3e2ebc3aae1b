"""Many simulations: batches of weights in this process, sweeps of tasks on any executor."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hpcgym.sweep.batch import BatchSimulator
    from hpcgym.sweep.executors import EXECUTORS, open_executor
    from hpcgym.sweep.experiment import Experiment, load_experiment
    from hpcgym.sweep.records import read_failures, read_results
    from hpcgym.sweep.run import read_table, resume, run_experiment, status
    from hpcgym.sweep.tasks import Summary, run_tasks

__all__ = [
    "EXECUTORS",
    "BatchSimulator",
    "Experiment",
    "Summary",
    "load_experiment",
    "open_executor",
    "read_failures",
    "read_results",
    "read_table",
    "resume",
    "run_experiment",
    "run_tasks",
    "status",
]

# imported when first used: workers that run other tasks need no simulator
_HOMES = {
    "BatchSimulator": "batch",
    "EXECUTORS": "executors",
    "open_executor": "executors",
    "Experiment": "experiment",
    "load_experiment": "experiment",
    "read_table": "run",
    "resume": "run",
    "run_experiment": "run",
    "status": "run",
    "Summary": "tasks",
    "read_failures": "records",
    "read_results": "records",
    "run_tasks": "tasks",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'hpcgym.sweep' has no attribute {name!r}")
    value = getattr(import_module(f"hpcgym.sweep.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
