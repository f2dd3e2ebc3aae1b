"""The arguments of environments in which jobs share nodes, checked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from gymnasium import spaces

from hpcgym.envs.core import arrays
from hpcgym.envs.core.corun_layout import PairLayout
from hpcgym.envs.core.definition import Definition
from hpcgym.envs.core.options import Options, read_window
from hpcgym.envs.core.rewards import SHARED, Reward, read_rewards
from hpcgym.errors import check_choice
from hpcgym.scheduler.asked_for import check_scheduler
from hpcgym.scheduler.rules import Scheduler
from hpcgym.simulation.corun import check_machine, check_shared
from hpcgym.simulation.prepare import machine_of
from hpcgym.speedups import Heatmap, find_speedups
from hpcgym.workload.load import load_workload
from hpcgym.workload.model import Workload

DEFAULT_SPEEDUPS = "generated:codes=16,mean=1.1,spread=0.1,seed=0"
#: Jobs of the codes that generated speedups name, a little more than the machine can do.
DEFAULT_CODES = "codes:jobs=2000,processes=96,processors=768,arrivals=poisson,interval=420,seed=0"
DEFAULT_CLUSTER = "16x2x24"
ACTIONS = ("pair", "scores")


@dataclass(frozen=True)
class Corun:
    """What an environment says of nodes that jobs share.

    Attributes
    ----------
    speedups : the true ones, which the scheduler knows.
    neighbours : M, how many running jobs are listed.
    """

    speedups: Heatmap
    neighbours: int


def read_pair_options(
    workload: Any = DEFAULT_CODES,
    *,
    action: str = "pair",
    speedups: Any = DEFAULT_SPEEDUPS,
    cluster: Any = DEFAULT_CLUSTER,
    allocation: str = "half-socket",
    partners: str = "best",
    estimate: str = "requested",
    reward: Reward = "bsld",
    window: int = 16,
    neighbours: int = 16,
    observation: str = "dict",
) -> Definition:
    """Return what the environment is by its arguments.

    Raises
    ------
    HpcgymError : an argument with a value that it cannot have; it is named.
    WorkloadError : a workload that cannot be read.
    """
    if not isinstance(workload, Workload):
        workload = load_workload(workload)
    machine = machine_of(workload, cluster, None)
    scheduler = Scheduler(
        allocation=allocation, partners=partners, estimate=estimate, backfill="none"
    )
    check_shared(scheduler)
    check_scheduler(scheduler, "environments")
    check_machine(machine)
    check_choice("observation", observation, ("dict", "flat"))
    options = Options(
        workload, machine, scheduler, read_rewards(reward, SHARED),
        read_window("window", window), (), {}, observation == "flat",
    )  # fmt: skip
    corun = Corun(find_speedups(speedups), read_window("neighbours", neighbours))
    layout = PairLayout(window, neighbours, options.flat)
    attributes = {"action": action, "speedups": corun.speedups, "neighbours": neighbours}
    space: spaces.Discrete | spaces.Box
    if check_choice("action", action, ACTIONS) == "pair":
        kind, space = arrays.PAIRS_KIND, spaces.Discrete(layout.actions)
    else:
        kind = arrays.PAIR_SCORES_KIND
        space = spaces.Box(-1.0, 1.0, (layout.scores,), np.float32)
    return Definition(kind, options, space, {"corun": corun}, attributes)
