"""The best weights that never change: a random search on training slices only."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from hpcgym.agents import search
from hpcgym.agents.xnes import Xnes
from hpcgym.cluster import Cluster
from hpcgym.evaluation.limited import Limits
from hpcgym.scheduler.policies.spread import spread
from hpcgym.scheduler.rules import Scheduler
from hpcgym.simulation.run import simulate
from hpcgym.workload import Workload

Weights = dict[str, float]


def best_static(
    training: Sequence[Workload],
    features: Sequence[str],
    scheduler: Scheduler,
    budget: int,
    seed: int,
    step: Callable[[str], None],
    cluster: Cluster | None = None,
    limits: Limits | None = None,
) -> Weights:
    """Return the weights with the least mean BSLD over slices, the first tried of equals.

    Parameters
    ----------
    training : slices to choose by.
    features : names of :data:`hpcgym.scheduler.policies.FEATURES`.
    scheduler : all rules but the policy.
    budget : number of vectors tried, see :func:`hpcgym.agents.search.candidates`; each is simulated
        on every slice.
    seed : of the random vectors.
    step : called for each vector.
    cluster : the machine; by default as many processors as the workload's had. Any other is
        simulated slice by slice, which takes some thirty times as long.
    limits : of power and energy; with them slices are simulated one by one, too.
    """
    pool = cluster is None or cluster == Cluster(training[0].processors)
    if limits is None and pool:
        return _of_batches(training, features, scheduler, budget, seed, step)
    vectors = search.candidates(np.random.default_rng(seed), len(features), budget)
    rows = search.normalised(vectors / spread(training, features)).tolist()
    best, least = Weights(), np.inf
    for number, row in enumerate(rows, 1):
        step(f"choosing static weights, {number} of {budget}")
        weights = {name: weight for name, weight in zip(features, row, strict=True) if weight}
        policy = scheduler.but(policy=weights)
        values = []
        for jobs in training:
            held = None if limits is None else limits.of(jobs)
            result = simulate(jobs, policy, cluster=cluster, limits=held)
            values.append(result.metrics["mean_bsld"])
        value = float(search.rounded(np.mean(values, keepdims=True))[0])
        if value < least:
            best, least = weights, value
    return best


def _of_batches(
    training: Sequence[Workload],
    features: Sequence[str],
    scheduler: Scheduler,
    budget: int,
    seed: int,
    step: Callable[[str], None],
) -> Weights:
    """Return the same for as many processors as the workload's machine had."""
    shown = 0

    def progress(done: int, best: float) -> None:
        nonlocal shown
        for number in range(shown + 1, done + 1):
            step(f"choosing static weights, {number} of {budget}")
        shown = done

    agent = Xnes(features, method="random", budget=budget, seed=seed, scheduler=scheduler)
    weights: Weights = agent.fit(training, progress=progress).weights_
    return {name: weight for name, weight in weights.items() if weight}
