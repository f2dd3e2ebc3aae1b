"""What simulations of an evaluation run on: a machine, its limits, how fast codes run there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcgym.machine import Cluster
from hpcgym.machine.speedups import Heatmap
from hpcgym.schedule.result import Result
from hpcgym.scheduler.estimates.learning import Learned
from hpcgym.scheduler.limits import Limit
from hpcgym.scheduler.rules import Scheduler
from hpcgym.simulation.run import simulate
from hpcgym.workload import Workload


class EnvironmentLimits(NamedTuple):
    """The limits that an environment sets, and how it keeps them.

    Attributes
    ----------
    of : returns the limits of an episode's jobs, in seconds of their clock.
    power : a name of :data:`hpcgym.scheduler.rules.POWER`.
    """

    of: Callable[[Workload], tuple[Limit, ...]]
    power: str


class Platform(NamedTuple):
    """What simulations run on.

    Attributes
    ----------
    cluster : the machine; None: as many processors as the workload's had.
    limits : of power and energy; None: no limits.
    speedups : of codes beside one another, where jobs share nodes.
    """

    cluster: Cluster | None = None
    limits: EnvironmentLimits | None = None
    speedups: Heatmap | None = None

    def simulate(
        self,
        jobs: Workload,
        scheduler: Scheduler,
        rows: slice | NDArray[np.int64] = slice(None),
        learned: Learned | None = None,
    ) -> Result:
        """Return the schedule of jobs.

        Parameters
        ----------
        rows : which they are of those that a random order is of.
        learned : what is known of run times before.
        """
        if isinstance(scheduler.policy_estimate, np.ndarray):
            scheduler = scheduler.but(policy_estimate=scheduler.policy_estimate[rows])
        return simulate(
            jobs, scheduler, cluster=self.cluster, learned=learned, speedups=self.speedups,
            limits=None if self.limits is None else self.limits.of(jobs),
        )  # fmt: skip

    def is_like(self, other: Platform, slices: Sequence[Workload]) -> bool:
        """Tell whether another has the same machine, and the same limits to the same slices."""
        mine, two = (
            each.limits and (each.limits.power, [each.limits.of(jobs) for jobs in slices])
            for each in (self, other)
        )
        digests = {getattr(each.speedups, "digest", None) for each in (self, other)}
        return mine == two and len(digests) == 1 and self.cluster == other.cluster


def platform_of(env: Any) -> Platform:
    """Return what an environment of hpcgym runs on; of any other nothing is known."""
    from hpcgym.envs import SchedulingEnv  # takes long to import

    if not isinstance(env, SchedulingEnv):
        return Platform()
    limits = None
    if env.limits_of is not None:
        limits = EnvironmentLimits(env.limits_of, env.options.scheduler.power)
    return Platform(env.options.cluster, limits, getattr(env, "speedups", None))


#: Metrics of a schedule under limits that have intervals of their own [J].
ENERGIES = ("energy_j", "limited_energy_j")


def energies(result: Result) -> dict[str, float]:
    """Return the energy of a schedule: all of it, and that while limits hold [J].

    A second in which several limits hold counts once.
    """
    books = result.books
    used, done, last = 0.0, 0, int(books.time[-1])
    windows = [
        (limit.start, last if limit.end is None else limit.end) for limit in result.limits or ()
    ]
    for start, end in sorted(windows):
        begin = max(start, done)
        if end > begin:
            used += books.joules(begin, end)
            done = end
    return {"energy_j": float(result.metrics["energy_j"]), "limited_energy_j": used}
