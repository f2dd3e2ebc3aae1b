"""hpcgym: exact, very fast simulation of the batch scheduling of high-performance computers.

>>> import hpcgym
>>> workload = hpcgym.load_workload("lublin:jobs=1000,processors=128,seed=0")
>>> result = hpcgym.simulate(workload, "easy")
>>> result.metrics["jobs"]
1000
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import find_spec
from types import ModuleType
from typing import TYPE_CHECKING, Any

from hpcgym.envs import register
from hpcgym.errors import HpcgymError, WorkloadError
from hpcgym.version import __version__

if TYPE_CHECKING:
    from hpcgym.explanation.explain import explain
    from hpcgym.explore import show
    from hpcgym.machine.pool import Cluster
    from hpcgym.machine.speedups import Heatmap, generate_speedups, read_speedups
    from hpcgym.schedule.result import Result, recorded
    from hpcgym.scheduler.rules import Scheduler
    from hpcgym.simulation.continued import continued
    from hpcgym.simulation.run import simulate
    from hpcgym.validation.validate import ScheduleError, validate_schedule
    from hpcgym.workload.load import load_workload
    from hpcgym.workload.model import Workload

__all__ = [
    "Cluster",
    "Heatmap",
    "HpcgymError",
    "Result",
    "ScheduleError",
    "Scheduler",
    "Workload",
    "WorkloadError",
    "__version__",
    "continued",
    "explain",
    "generate_speedups",
    "load_workload",
    "read_speedups",
    "recorded",
    "show",
    "simulate",
    "validate_schedule",
]

# imported when first used, so that `import hpcgym` itself costs next to nothing
_HOMES = {
    "Cluster": "hpcgym.machine.pool",
    "Heatmap": "hpcgym.machine.speedups",
    "Result": "hpcgym.schedule.result",
    "ScheduleError": "hpcgym.validation.validate",
    "Scheduler": "hpcgym.scheduler.rules",
    "Workload": "hpcgym.workload.model",
    "continued": "hpcgym.simulation.continued",
    "explain": "hpcgym.explanation",
    "generate_speedups": "hpcgym.machine.speedups",
    "load_workload": "hpcgym.workload.load",
    "read_speedups": "hpcgym.machine.speedups",
    "recorded": "hpcgym.schedule.result",
    "show": "hpcgym.explore",
    "simulate": "hpcgym.simulation.run",
    "validate_schedule": "hpcgym.validation.validate",
}

_FOLDER = os.path.dirname(os.path.abspath(__file__))
_CLONE = os.path.dirname(_FOLDER)


class _InClone:
    """Finds what a clone has beside this folder, or nowhere, and what is installed has in it.

    Python finds the clone's package, and no other, where it runs in the folder of a clone.
    """

    def find_spec(self, name: str, *more: Any) -> ModuleSpec | None:
        """Return where agents, baselines, a study or the engine are; all else is nobody's."""
        if name == "hpcgym._engine":  # that of the same version, if one is installed
            return PathFinder.find_spec(name, [os.path.join(path, "hpcgym") for path in sys.path])
        above, _, last = name.rpartition(".")
        if above == "hpcgym" and last in ("agents", "baselines"):
            return PathFinder.find_spec(name, [_CLONE])
        if above == "hpcgym.benchmarks":
            return PathFinder.find_spec(name, [os.path.join(_CLONE, "benchmarks")])
        return None


if not os.path.isdir(os.path.join(_FOLDER, "baselines")):
    sys.meta_path.append(_InClone())


class _AfterGymnasium:
    """Registers the environments once Gymnasium is imported, which takes as long as numpy does."""

    def find_spec(self, name: str, *more: Any) -> ModuleSpec | None:
        """Return where Gymnasium is, with a loader that registers them; all else is nobody's."""
        if name != "gymnasium":
            return None
        sys.meta_path.remove(self)
        spec = find_spec(name)
        if spec is not None and spec.loader is not None:
            usual = spec.loader.exec_module

            def exec_module(module: ModuleType) -> None:
                usual(module)
                register()

            spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


if "gymnasium" in sys.modules:
    register()
else:
    sys.meta_path.insert(0, _AfterGymnasium())


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'hpcgym' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
