"""The best weights that never change: a random search on training slices only."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hpcgym.agents.xnes import Xnes
from hpcgym.scheduler import Scheduler
from hpcgym.workload import Workload

Weights = dict[str, float]


def best_static(
    training: Sequence[Workload],
    features: Sequence[str],
    scheduler: Scheduler,
    budget: int,
    seed: int,
    step: Callable[[str], None],
) -> Weights:
    """Return the weights with the least mean BSLD over slices, the first tried of equals.

    Parameters
    ----------
    training : slices to choose by.
    features : names of :data:`hpcgym.policy.FEATURES`.
    scheduler : all rules but the policy.
    budget : number of vectors tried, see :func:`hpcgym.agents.search.candidates`; each is simulated
        on every slice.
    seed : of the random vectors.
    step : called for each vector.
    """
    shown = 0

    def progress(done: int, best: float) -> None:
        nonlocal shown
        for number in range(shown + 1, done + 1):
            step(f"choosing static weights, {number} of {budget}")
        shown = done

    search = Xnes(features, method="random", budget=budget, seed=seed, scheduler=scheduler)
    weights: Weights = search.fit(training, progress=progress).weights_
    return {name: weight for name, weight in weights.items() if weight}
