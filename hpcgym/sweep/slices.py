"""The slices of a batch on the native engine: simulations before their first event."""

from __future__ import annotations

import warnings
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcgym._engine import Features
from hpcgym._engine import Simulation as Native
from hpcgym.cluster.pool import Cluster
from hpcgym.errors import RuleWarning
from hpcgym.scheduler.asked_for import check_scheduler
from hpcgym.scheduler.codes import SCORED
from hpcgym.scheduler.estimates.by_name import predicted_run_times
from hpcgym.scheduler.policies.features import JobColumns
from hpcgym.scheduler.policies.mixed import weighed
from hpcgym.scheduler.rules import Scheduler
from hpcgym.scheduler.usage import check_fair_share, counts_usage
from hpcgym.simulation.driver import Simulation, new_simulation
from hpcgym.simulation.fair_share import places_of_usage
from hpcgym.simulation.idle_shares import warn_of_weights
from hpcgym.simulation.nodes import as_on_pool, needs_on, nodes_for
from hpcgym.simulation.orders import Order
from hpcgym.simulation.prepare import Agent
from hpcgym.simulation.restricted import warn_of_unused
from hpcgym.simulation.warm_start import taken_over
from hpcgym.workload.model import Workload


class Slices(NamedTuple):
    """What weights order: a simulation of each slice, and how large scores may become."""

    simulations: list[Native]
    largest: NDArray[np.float64]  # (n,) of features of the jobs of all slices, and 1 at least
    places: NDArray[np.int64]  # (n,) which weight is theirs


def slices_of(
    parts: list[Workload], features: tuple[str, ...], rules: Scheduler, machine: Cluster
) -> Slices:
    """Return the slices of a batch; weights say the order of the queue.

    Raises
    ------
    HpcgymError, WorkloadError : what cannot be simulated.

    Warns
    -----
    RuleWarning : what is of no job of any slice.
    """
    check_fair_share(rules.fair_share, counts_usage(rules, features))
    # the simulations are to have what any weights look at
    rules = rules.but(policy=dict.fromkeys(features, 1.0))
    made = [weighed(_columns(part, rules), features, len(part)) for part in parts]
    usage = places_of_usage(features).tolist()
    simulations = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuleWarning)  # told of all slices together
        for part, own in zip(parts, made, strict=True):
            simulation = _simulation(part, rules, machine)
            seconds = _columns(part, rules).requested.astype(np.int64)
            told = own.static, own.formulas, own.places, own.serial, seconds, usage
            simulation.features = Features(*told)
            simulations.append(simulation.native)
    warn_of_unused(parts, [rules], machine)
    warn_of_weights(parts, rules, features)
    largest = [np.abs(own.static).max(axis=0, initial=1.0) for own in made]
    return Slices(simulations, np.max(largest, axis=0), made[0].places)


def _columns(part: Workload, rules: Scheduler) -> JobColumns:
    run_time = np.minimum(part.run_time, part.requested_time)
    times = predicted_run_times(rules.policy_estimate, run_time, part, "policy_estimate")
    return JobColumns(part, times)  # where they are learned, requested times hold their places


def _simulation(part: Workload, rules: Scheduler, machine: Cluster) -> Simulation:
    """Return what the native engine is told of a slice."""
    nodes = None
    if machine.groups:
        needs = needs_on(part, machine)
        if not as_on_pool(needs, rules):
            asleep = ["shutdown"] * (machine.shutdown_after_s is not None)
            check_scheduler(rules, "nodes", "batches on nodes", *asleep)
            nodes = nodes_for(part, needs, machine, rules)
    agent = Agent(Order(SCORED))
    simulation = new_simulation(taken_over(part), rules, machine, nodes, agent=agent)
    if simulation.learning is not None:
        simulation.learning.estimators.looks[0] = 1
    return simulation
