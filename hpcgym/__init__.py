"""hpcgym: exact, very fast simulation of the batch scheduling of high-performance computers.

>>> import hpcgym
>>> workload = hpcgym.load_workload("lublin:jobs=1000,processors=128,seed=0")
>>> result = hpcgym.simulate(workload, "easy")
>>> result.metrics["jobs"]
1000
"""

from __future__ import annotations

from hpcgym import starting as starting  # before all else

# isort: split

import os
import sys
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import find_spec
from types import ModuleType
from typing import TYPE_CHECKING, Any

import lazy_loader

from hpcgym.envs.ids import register

if TYPE_CHECKING:
    from hpcgym.errors import HpcgymError as HpcgymError
    from hpcgym.errors import WorkloadError as WorkloadError
    from hpcgym.explanation.explain import explain as explain
    from hpcgym.explore import show as show
    from hpcgym.forecasting import backtest as backtest
    from hpcgym.forecasting import forecast as forecast
    from hpcgym.forecasting import snapshot as snapshot
    from hpcgym.machine.pool import Cluster as Cluster
    from hpcgym.machine.speedups import Heatmap as Heatmap
    from hpcgym.machine.speedups import generate_speedups as generate_speedups
    from hpcgym.machine.speedups import read_speedups as read_speedups
    from hpcgym.schedule.result import Result as Result
    from hpcgym.schedule.result import recorded as recorded
    from hpcgym.scheduler.rules import Scheduler as Scheduler
    from hpcgym.simulation.continued import continued as continued
    from hpcgym.simulation.run import simulate as simulate
    from hpcgym.study.compared import Comparison as Comparison
    from hpcgym.study.compared import compare as compare
    from hpcgym.study.compared import paired as paired
    from hpcgym.validation.validate import ScheduleError as ScheduleError
    from hpcgym.validation.validate import validate_schedule as validate_schedule
    from hpcgym.version import __version__ as __version__
    from hpcgym.workload.load import load_workload as load_workload
    from hpcgym.workload.model import Workload as Workload

# imported when first used, so that `import hpcgym` itself costs next to nothing
__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "errors": ["HpcgymError", "WorkloadError"],
        "explanation": ["explain"],
        "explore": ["show"],
        "forecasting": ["backtest", "forecast", "snapshot"],
        "machine.pool": ["Cluster"],
        "machine.speedups": ["Heatmap", "generate_speedups", "read_speedups"],
        "schedule.result": ["Result", "recorded"],
        "scheduler.rules": ["Scheduler"],
        "simulation.continued": ["continued"],
        "simulation.run": ["simulate"],
        "study.compared": ["Comparison", "compare", "paired"],
        "validation.validate": ["ScheduleError", "validate_schedule"],
        "version": ["__version__"],
        "workload.load": ["load_workload"],
        "workload.model": ["Workload"],
    },
)

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
    """Registers the environments once Gymnasium is imported, which takes as long as numpy does.

    Gymnasium has no better place: since version 1.0 it loads no entry points of others, and its own
    way, ``hpcgym:`` before an id, would have to stand before each.
    """

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
