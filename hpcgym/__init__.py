"""hpcgym: exact, very fast simulation of the batch scheduling of high-performance computers.

>>> import hpcgym
>>> workload = hpcgym.load_workload("lublin:jobs=1000,processors=128,seed=0")
>>> result = hpcgym.simulate(workload, "easy")
>>> result.metrics["jobs"]
1000
"""

from __future__ import annotations

import time
from importlib import import_module
from typing import TYPE_CHECKING

from hpcgym.envs import register
from hpcgym.errors import HpcgymError, WorkloadError
from hpcgym.version import __version__

# before all that is compiled: what is written later may or may not be what this process has
_imported_at = time.time()  # [s] since 1970

if TYPE_CHECKING:
    from hpcgym.cluster.pool import Cluster
    from hpcgym.continuation import continued
    from hpcgym.coscheduling import Heatmap, generate_speedups, read_speedups
    from hpcgym.result import Result
    from hpcgym.scheduler import Scheduler
    from hpcgym.simulation import simulate
    from hpcgym.validation import validate_schedule
    from hpcgym.workload.load import load_workload
    from hpcgym.workload.model import Workload

__all__ = [
    "Cluster",
    "Heatmap",
    "HpcgymError",
    "Result",
    "Scheduler",
    "Workload",
    "WorkloadError",
    "__version__",
    "continued",
    "generate_speedups",
    "load_workload",
    "read_speedups",
    "simulate",
    "validate_schedule",
]

# imported when first used, so that `import hpcgym` itself costs next to nothing
_HOMES = {
    "Cluster": "hpcgym.cluster.pool",
    "Heatmap": "hpcgym.coscheduling",
    "Result": "hpcgym.result",
    "Scheduler": "hpcgym.scheduler",
    "Workload": "hpcgym.workload.model",
    "continued": "hpcgym.continuation",
    "generate_speedups": "hpcgym.coscheduling",
    "load_workload": "hpcgym.workload.load",
    "read_speedups": "hpcgym.coscheduling",
    "simulate": "hpcgym.simulation",
    "validate_schedule": "hpcgym.validation",
}

register()


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'hpcgym' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
