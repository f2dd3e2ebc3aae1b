"""The search for controls and for pairs: vectors play episodes, others held back choose."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from hpcgym.envs.core.cutting import Episode

Numbers = NDArray[np.float64]

_FINALISTS = 10  # vectors that the episodes held back choose from, beside the first and the last


def search(
    play: Callable[[Numbers, Sequence[Episode]], Numbers],
    first: Numbers,
    optimiser: Any,
    episodes: Sequence[Episode],
    budget: int,
    population: int,
    show: Callable[[int, float], None] | None,
    told: Mapping[str, Any],
) -> tuple[Numbers, dict[str, Any]]:
    """Return the vector of least value, and how it was found.

    Parameters
    ----------
    play : vectors (n, size) and episodes -> value of each vector, (n,) float64, less is better.
    first : (size,) where the search begins; it is a finalist too.
    optimiser : of ``cmaes``, with ``ask`` and ``tell``.
    episodes : every other one is searched by; the others choose among the finalists.
    budget, population : vectors to try, and how many at a time.
    show : called with the number tried and the least value so far; None: nobody looks.
    told : what is to stand in what is found, such as the seed.

    Returns
    -------
    vector, found : (size,), and what agents keep of the search.
    """
    fitted, held = episodes[0::2], episodes[1::2]
    best: list[tuple[float, int, Numbers]] = []
    tried = 0
    while tried < budget:
        vectors = np.array([optimiser.ask() for _ in range(population)])
        values = play(vectors, fitted)
        optimiser.tell(list(zip(vectors, values.tolist(), strict=True)))
        ranked = zip(values.tolist(), range(tried, tried + population), vectors, strict=True)
        best = sorted([*best, *ranked], key=lambda one: one[:2])[:_FINALISTS]
        tried += population
        if show is not None:
            show(tried, best[0][0])
    finalists = np.array([first, vectors.mean(axis=0), *(vector for _, _, vector in best)])
    values = play(finalists, held)
    place = int(values.argmin())
    found = {
        "value": float(values[place]),
        "value_of_the_beginning": float(values[0]),
        "tried": tried,
        **told,
        "fitted_on": [one.name for one in fitted],
        "chosen_on": [one.name for one in held],
    }
    return finalists[place], found
