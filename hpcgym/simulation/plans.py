"""When waiting jobs start by the plan of a pass, where passes plan the starts of all of them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from hpcgym.errors import HpcgymError
from hpcgym.simulation.driver import Simulation, new_simulation
from hpcgym.simulation.nodes import place_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from hpcgym.machine.pool import Cluster
    from hpcgym.scheduler.rules import Scheduler
    from hpcgym.workload.model import Workload


def with_whole_plans(simulation: Simulation) -> Simulation:
    """Return a simulation, before its first event, whose passes plan all jobs, not some of them.

    It has the same schedule. Only Slurm's rules on a pool leave out what has no effect.
    """
    rules = simulation.told.rules
    if not rules.get("every"):
        return simulation
    return replace(simulation, told=replace(simulation.told, rules={**rules, "reserves_all": 1}))


def planned_starts(workload: Workload, scheduler: Scheduler, cluster: Cluster) -> NDArray[np.int64]:
    """Return when the jobs of an extract start by a pass at its beginning, (n_jobs,) int64 [s].

    Of jobs that this pass starts it is that time; -1 of jobs that run, and of those without a
    reservation.

    Raises
    ------
    HpcgymError : rules by which passes do not plan the starts of all waiting jobs.
    WorkloadError : jobs that cannot be simulated.
    """
    place = place_of(workload, scheduler, cluster)
    simulation = with_whole_plans(new_simulation(workload, scheduler, place))
    begins = simulation.beginning
    assert begins is not None
    simulation.beginning = begins._replace(due=True)  # whenever the next pass would come
    simulation.drive(begins.time, passes=1)
    native = simulation.native
    reserved, started = native.reserved(), native.schedule()["start"]
    if not reserved:
        raise HpcgymError(
            f"plan: the passes of {scheduler} plan the starts of few jobs or none; those of"
            " backfill='slurm' and of 'conservative' without restrictions plan all"
        )
    of_waiting = reserved["planned"] if "planned" in reserved else reserved["reserved"]
    planned = np.where(started < 0, of_waiting, started)
    planned[begins.running] = -1
    return planned
