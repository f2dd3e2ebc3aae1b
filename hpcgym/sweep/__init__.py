"""Many simulations: batches of weights in this process, sweeps of tasks on any executor."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hpcgym.sweep.batch import BatchSimulator as BatchSimulator
    from hpcgym.sweep.executors import EXECUTORS as EXECUTORS
    from hpcgym.sweep.executors import open_executor as open_executor
    from hpcgym.sweep.experiment import Experiment as Experiment
    from hpcgym.sweep.experiment import load_experiment as load_experiment
    from hpcgym.sweep.records import read_failures as read_failures
    from hpcgym.sweep.records import read_results as read_results
    from hpcgym.sweep.run import read_table as read_table
    from hpcgym.sweep.run import resume as resume
    from hpcgym.sweep.run import run_experiment as run_experiment
    from hpcgym.sweep.run import status as status
    from hpcgym.sweep.tasks import Summary as Summary
    from hpcgym.sweep.tasks import run_tasks as run_tasks

#: Columns of the table of a sweep that say what schedulers are compared on.
OF_GROUPS = ("workload", "speedups", "limits")
#: Those that tell apart the simulations that are compared there.
OF_JOBS = ("slice", "seed", "shuffle")

# imported when first used: workers that run other tasks need no simulator
_MODULES = {
    "batch": ("BatchSimulator",),
    "executors": ("EXECUTORS", "open_executor"),
    "experiment": ("Experiment", "load_experiment"),
    "records": ("read_failures", "read_results"),
    "run": ("read_table", "resume", "run_experiment", "status"),
    "tasks": ("Summary", "run_tasks"),
}
_HOMES = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'hpcgym.sweep' has no attribute {name!r}")
    value = getattr(import_module(f"hpcgym.sweep.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(_HOMES)
