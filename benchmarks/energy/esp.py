"""Section 6.3.2: three users of Light-ESP on a machine of Curie's size."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hpcgym.benchmarks.energy.shares import stretches
from hpcgym.scheduler.rules import Scheduler
from hpcgym.simulation.run import simulate
from hpcgym.workload.generators.light_esp import light_esp

#: What the thesis calls the policies -> what they are called here.
POLICIES = {
    "FIFO": "fcfs",
    "FS": "fairshare",
    "EFS": "energy-fairshare",
    "FS+EFS": "fs+efs",
}
PROCESSORS = 80_640
REPEAT = 4
USERS = (1, 2, 3)
SEEDS, QUICK_SEEDS = 20, 3
#: How fast jobs come, which the thesis does not tell: as fast as they can run, or faster.
LOADS = (1.0, 1.2)


@dataclass(frozen=True)
class Experiment:
    """What the three users differ in."""

    heading: str
    spread: float
    unequal: int


EFFICIENCY = Experiment("the same jobs, other efficiency (figure 6.2)", 0.3, 0)
WORKLOAD = Experiment("other jobs, the same efficiency (figure 6.3)", 0.0, 1)


@dataclass(frozen=True)
class Outcome:
    """Of an experiment: policy -> a row for each seed."""

    experiment: Experiment
    load: float
    stretch: dict[str, NDArray[np.float64]]  # (seeds, users) mean stretch of the user's jobs
    utilisation: dict[str, NDArray[np.float64]]  # (seeds,)


def run(experiment: Experiment, load: float, seeds: int) -> Outcome:
    """Simulate an experiment with that many orders of the jobs, under each policy.

    Jobs are back-filled in the order of the queue, as Slurm does.
    """
    stretch: dict[str, list[list[float]]] = {name: [] for name in POLICIES}
    utilisation: dict[str, list[float]] = {name: [] for name in POLICIES}
    for seed in range(seeds):
        workload = light_esp(
            PROCESSORS,
            repeat=REPEAT,
            seed=seed,
            load=load,
            users=len(USERS),
            unequal=experiment.unequal,
            spread=experiment.spread,
        )
        for name, policy in POLICIES.items():
            result = simulate(workload, Scheduler(policy, backfill_order=policy))
            each = stretches(result)
            stretch[name].append([float(each[workload.user_id == user].mean()) for user in USERS])
            utilisation[name].append(float(result.metrics["utilization"]))
    return Outcome(
        experiment,
        load,
        {name: np.array(rows) for name, rows in stretch.items()},
        {name: np.array(rows) for name, rows in utilisation.items()},
    )
