"""Many runs, compared: sweeps, leaderboards, the benchmark suite and tuning.

``sweep`` simulates many schedulers on any executor, ``evaluation`` compares policies on the same
unseen slices of a workload, ``suite`` is a benchmark of frozen tasks whose submissions others can
prove, ``tuning`` searches a scheduler for one's own log, ``calibration`` settings that explain
that log's past. Sweeps and tuning share ``executors``, all share ``intervals``.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hpcgym.study.calibration import calibrate as calibrate
    from hpcgym.study.evaluation.figures import draw_profiles as draw_profiles
    from hpcgym.study.evaluation.leaderboard import Leaderboard as Leaderboard
    from hpcgym.study.evaluation.online import Prequential as Prequential
    from hpcgym.study.evaluation.online import prequential as prequential
    from hpcgym.study.evaluation.run import evaluate as evaluate
    from hpcgym.study.executors import EXECUTORS as EXECUTORS
    from hpcgym.study.executors import open_executor as open_executor
    from hpcgym.study.intervals import summary as summary
    from hpcgym.study.sweep.experiment import Experiment as Experiment
    from hpcgym.study.sweep.experiment import load_experiment as load_experiment
    from hpcgym.study.sweep.records import read_failures as read_failures
    from hpcgym.study.sweep.records import read_results as read_results
    from hpcgym.study.sweep.run import read_table as read_table
    from hpcgym.study.sweep.run import resume as resume
    from hpcgym.study.sweep.run import run_experiment as run_experiment
    from hpcgym.study.sweep.run import status as status
    from hpcgym.study.sweep.tasks import Summary as Summary
    from hpcgym.study.sweep.tasks import run_tasks as run_tasks
    from hpcgym.study.tuning.space import SharedSpace as SharedSpace
    from hpcgym.study.tuning.space import Space as Space
    from hpcgym.study.tuning.trials import USUAL_BOUNDS as USUAL_BOUNDS
    from hpcgym.study.tuning.trials import Bound as Bound
    from hpcgym.study.tuning.tune import Plan as Plan
    from hpcgym.study.tuning.tune import Tuned as Tuned
    from hpcgym.study.tuning.tune import tune as tune

# imported when first used: workers that run other tasks need no simulator
_MODULES = {
    "calibration": ("calibrate",),
    "evaluation.figures": ("draw_profiles",),
    "evaluation.leaderboard": ("Leaderboard",),
    "evaluation.online": ("Prequential", "prequential"),
    "evaluation.run": ("evaluate",),
    "executors": ("EXECUTORS", "open_executor"),
    "intervals": ("summary",),
    "sweep.experiment": ("Experiment", "load_experiment"),
    "sweep.records": ("read_failures", "read_results"),
    "sweep.run": ("read_table", "resume", "run_experiment", "status"),
    "sweep.tasks": ("Summary", "run_tasks"),
    "tuning.space": ("SharedSpace", "Space"),
    "tuning.trials": ("USUAL_BOUNDS", "Bound"),
    "tuning.tune": ("Plan", "Tuned", "tune"),
}
_HOMES = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'hpcgym.study' has no attribute {name!r}")
    value = getattr(import_module(f"hpcgym.study.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(_HOMES)
