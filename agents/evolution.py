"""Where a search on replays looks next: each asks for vectors, and is told what these are worth.

The same seed and values make a search go the same way again. More is better here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from cmaes import CMA
from numpy.typing import NDArray

Numbers = NDArray[np.float64]


class Evolution(Protocol):
    """A search by generations.

    Attributes
    ----------
    mean : (n,) float64, around which it looks.
    """

    mean: Numbers

    def ask(self) -> list[Numbers]:
        """Return the vectors of the next generation."""

    def tell(self, values: Sequence[float]) -> None:
        """Say what each of them is worth."""


class CmaEs:
    """CMA-ES (Hansen and Ostermeier 2001; Hansen 2016, arXiv:1604.00772), of the package ``cmaes``.

    Parameters
    ----------
    mean : (n,) where it begins.
    sigma : standard deviation of the first generation.
    population : vectors of a generation.
    """

    def __init__(self, mean: Numbers, sigma: float, population: int, seed: int) -> None:
        self._search = CMA(mean, sigma, population_size=population, seed=seed)
        self._population, self._asked = population, [mean]
        self.mean = mean.copy()

    def ask(self) -> list[Numbers]:
        """Return the vectors of the next generation."""
        self._asked = [self._search.ask() for _ in range(self._population)]
        return self._asked

    def tell(self, values: Sequence[float]) -> None:
        """Say what each of them is worth."""
        costs = [-value for value in values]
        self._search.tell([*zip(self._asked, costs, strict=True)])
        self.mean = self._search.mean.copy()


class PairedEs:
    """Evolution strategy by pairs of opposite moves, with steps of Adam.

    The gradient is that of Salimans et al. 2017 (arXiv:1703.03864), of ranks from -1/2 to 1/2 in
    place of values, and each move is tried forwards and backwards (Brockhoff et al. 2010). The step
    is that of Adam (Kingma and Ba 2015, arXiv:1412.6980).

    Parameters
    ----------
    mean : (n,) where it begins.
    sigma : standard deviation of the moves; it stays.
    population : vectors of a generation, an even number.
    step : how far each number moves in the first generation, and later at most, nearly.
    """

    def __init__(
        self, mean: Numbers, sigma: float, population: int, step: float, seed: int
    ) -> None:
        self.mean, self._sigma, self._step = mean.copy(), sigma, step
        self._pairs, self._rng = population // 2, np.random.default_rng(seed)
        self._moves = np.zeros((self._pairs, len(mean)))
        self._first, self._second = np.zeros(len(mean)), np.zeros(len(mean))
        self._told = 0

    def ask(self) -> list[Numbers]:
        """Return the vectors of the next generation, each move and then its opposite."""
        self._moves = self._rng.standard_normal((self._pairs, len(self.mean)))
        both = [sign * move for move in self._moves for sign in (1.0, -1.0)]
        return [self.mean + self._sigma * move for move in both]

    def tell(self, values: Sequence[float]) -> None:
        """Say what each of them is worth."""
        worth = np.asarray(values)
        # equal values have the same rank, so that what changes nothing moves nothing
        ranks = (worth[:, np.newaxis] > worth).sum(axis=1) + (worth[:, np.newaxis] >= worth).sum(
            axis=1
        )
        shares = (ranks - 1) / (2 * max(len(worth) - 1, 1)) - 0.5
        gradient = (shares[::2] - shares[1::2]) @ self._moves / len(worth)
        self._told += 1
        first, second = 0.9, 0.999
        self._first = first * self._first + (1 - first) * gradient
        self._second = second * self._second + (1 - second) * gradient**2
        mean = self._first / (1 - first**self._told)
        size = np.sqrt(self._second / (1 - second**self._told))
        self.mean = self.mean + self._step * mean / (size + 1e-12)
