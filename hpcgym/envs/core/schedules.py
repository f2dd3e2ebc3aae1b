"""The schedule of a simulation, from copies of its arrays: so it can be made later, or never."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcgym.engine.state import FOREVER
from hpcgym.envs.core import arrays
from hpcgym.envs.core.simulations import Simulations
from hpcgym.envs.core.told import State
from hpcgym.schedule.result import Result
from hpcgym.schedule.within import metrics_within


def state_of(simulations: Simulations, e: int) -> State:
    """Return what the schedule of simulation ``e`` is made of, as it is now."""
    batch, machines = simulations.batch, simulations.machines
    episode: Any = batch.episode_state[e].copy()
    start, n = int(episode.start), int(episode.jobs)
    return State(
        simulations.names[e],
        simulations.episode(e) if simulations.hides(e) else None,
        episode,
        batch.totals[e].copy(),
        simulations.now(e),
        simulations.table.jobs[start : start + n],
        machines.row(e, start, n),
        simulations.stopped(e),
        machines.limits_now(e),
        bool(simulations.table.sim[0].managed),
        bool(simulations.episodes.beginnings),
    )


def means_of(simulations: Simulations, told: State) -> dict[str, float]:
    """Return the metrics that the sums give at once, of the jobs that count and have started."""
    now = told.episode_state
    first, last = int(now.counts_first), int(now.counting)
    paid = np.count_nonzero(told.now.schedule["start"][first:last] >= int(now.begin))
    if now.truncated:
        last = min(last, told.now.next)
        paid += np.count_nonzero(told.now.schedule["start"][first:last] < 0)
    jobs = max(int(paid), 1)
    found = {
        "mean_bsld": told.totals[arrays.BSLD] / jobs,
        "mean_wait_s": told.totals[arrays.WAIT] / jobs,
        "energy_j": told.totals[arrays.ENERGY],
    }
    if "elapsed_s" in simulations.machines.terms:
        found["makespan_s"] = told.totals[arrays.ELAPSED]
    return {name: float(value) for name, value in found.items()}


def jobs_before(start: NDArray[np.int64], episode_state: Any) -> int:
    """Return how many jobs ran when the episode began, as in an extract."""
    return int(np.count_nonzero((start >= 0) & (start < episode_state["begin"])))


def metrics_of(simulations: Simulations, told: State) -> dict[str, float | int]:
    """Return the metrics of an episode that has ended: of its slice, where it is more than that."""
    result, now = schedule_of(simulations, told), told.episode_state
    if now.of_slice == 0 and now.truncated == 0:
        return result.metrics
    end = None if now.until == FOREVER else int(now.until)
    return metrics_within(result, int(now.counts_first), int(now.counting), end)


def schedule_of(simulations: Simulations, told: State) -> Result:
    """Return the schedule of these simulations so far; jobs not started have start -1.

    Where run times are learned, the requested ones stand for jobs not submitted yet.
    """
    workload, jobs = told.workload, told.now.jobs(told.told_jobs)
    if workload is None:
        workload = simulations.episodes.workload_of(told.episode)
    return simulations.machines.schedule(told, workload, jobs, simulations.options)
