"""In which order a policy has the jobs that wait: by the engine's own scores."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hpcgym.cluster.pool import Cluster
from hpcgym.engine import state
from hpcgym.engine.answers.expressed import express_all
from hpcgym.errors import HpcgymError
from hpcgym.scheduler.policies.index import refuse_usage
from hpcgym.scheduler.rules import Scheduler
from hpcgym.simulation.driver import new_simulation
from hpcgym.workload.model import Workload

_LONG_S = 10 * 365 * 86_400


def order_rules(scheduler: Scheduler) -> Scheduler:
    """Return the rules of a scheduler that say in which order jobs wait, and no others.

    Raises
    ------
    HpcgymError : that order is not known of a queue alone.
    """
    if scheduler.dispatcher is not None or callable(scheduler.policy):
        raise HpcgymError(
            "to drive Slurm takes an order of the queue: a policy by name, an expression, weights"
            " or a scheduler with one, and no dispatcher or function"
        )
    refuse_usage(scheduler.policy)
    if scheduler.policy_estimate != "requested":
        raise HpcgymError(
            "to drive Slurm a policy must look at requested times, and not at policy_estimate"
            f" {scheduler.describe()['policy_estimate']!r}: what has run before is not known"
        )
    return Scheduler(policy=scheduler.policy, threshold=scheduler.threshold, backfill="none")


def order_of(jobs: Workload, rules: Scheduler, now: int) -> NDArray[np.int64]:
    """Return the rows of jobs that wait in the order of a policy, (n,) int64, the first first.

    They are simulated up to now behind a job that has the whole machine.

    Parameters
    ----------
    jobs : all that wait, in order of submission, none submitted at 0 s or later than now.
    rules : of :func:`order_rules`.
    now : [s] of the jobs' clock.
    """
    if not len(jobs):
        return np.zeros(0, np.int64)
    columns = {name: np.concatenate([one[:1], one]) for name, one in jobs.columns.items()}
    columns["submit_time"][0] -= 1
    columns["requested_processors"][0] = jobs.processors
    columns["run_time"][0] = columns["requested_time"][0] = _LONG_S
    behind = Workload.from_columns(
        columns,
        processors=jobs.processors,
        name=jobs.name,
        header=jobs.header,
        first_submit_s=jobs.first_submit_s,
    )
    simulation = new_simulation(behind, rules, Cluster(jobs.processors))
    simulation.drive(now)
    arrays = simulation.arrays
    arrays.sim.time = now
    if simulation.expressed is not None:
        looked_at = (
            getattr(arrays, name) for name in ("jobs", "scores", "sim", "blocks", "entries")
        )
        express_all(*looked_at, simulation.expressed, simulation.shares)
    rows = np.arange(int(arrays.sim.next))
    rows = rows[arrays.progress["start"][rows] < 0]
    return rows[np.lexsort(_place_keys(arrays, rows)[::-1])] - 1


def _place_keys(arrays: state.Prepared, rows: NDArray[np.int64]) -> list[NDArray[np.float64]]:
    """Return what queued jobs are ordered by, the most important first; less is earlier."""
    sim, jobs = arrays.sim, arrays.jobs
    waiting = (sim.time - jobs["submit"][rows]).astype(np.float64)
    keys: list[NDArray[np.float64]] = []
    if sim.threshold >= 0:
        starved = waiting > sim.threshold
        keys += [np.where(starved, 0.0, 1.0), np.where(starved, rows, 0.0)]
    if sim.primary == state.KEYED:
        keys.append(np.unique(arrays.keys[rows], return_inverse=True)[1].astype(np.float64))
    elif sim.primary >= state.SCORED:
        scores = arrays.scores[rows]
        x = waiting / scores["patience"]
        cubed = sim.primary == state.CUBED
        keys.append(-(scores["score"] * x**3 if cubed else scores["score"] + x))
    return [*keys, rows.astype(np.float64)]
