"""What scored forecasts teach: where to look among futures, and how much to trust each method.

Both learn one forecast at a time, once its job has started, and can be kept as JSON:
:class:`Recalibration` the places of what happened among the futures (PIT: Dawid, "Statistical
theory: the prequential approach", JRSS A 1984), :class:`Pool` the weights of methods by their CRPS
(exponential weights, as of V'yugin and Trunov, "Online learning with continuous ranked probability
score", COPA 2019, over mixtures of quantiles).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np

from hpcgym.errors import HpcgymError
from hpcgym.forecasting.scores import LEVELS, Floats, crps, logs_of, waits_of

#: How many of the last places are kept; each older one counts so much of the next.
KEPT, OLDER = 2000, 0.999
#: Places that are supposed before there are any, evenly; and how many of a user's own count as
#: much as all. A user with fewer than the last number has those of all.
EVEN, OF_ALL, ENOUGH = 20, 60, 30
#: Weights are tried in steps of one part of so many.
PARTS = 5
#: How fast weights follow the CRPS, and how many forecasts they remember.
RATE, MEMORY = 8.0, 1000
#: Sum of CRPS by which others than the first method must be better before they count as much.
UNPROVEN = 1.0
_GRID = np.linspace(0, 1, 1001)


class Recalibration:
    """Levels at which to look among futures, by the places of what happened in past ones.

    Where 90 % of what happened lay below the level 0.8, that is the one for 0.9.
    """

    def __init__(self) -> None:
        self._places: list[tuple[float, int]] = []

    def learn(self, place: float, user: int) -> None:
        """Learn where what happened lay among the futures of a forecast.

        Parameters
        ----------
        place : from 0 to 1, as :func:`hpcgym.forecasting.scores.places` says it.
        user : whose job it was.
        """
        self._places.append((float(place), int(user)))
        del self._places[:-KEPT]

    def levels(self, user: int | None = None) -> Floats:
        """Return where to look for :data:`hpcgym.forecasting.scores.LEVELS`, (n_levels,).

        Parameters
        ----------
        user : whose forecasts count more, if enough of them are known.
        """
        place, users = np.array(self._places, np.float64).reshape(-1, 2).T
        age: Floats = OLDER ** np.arange(len(place), dtype=np.float64)[::-1]
        of_all = _share_below(place, age)
        own = users == user
        n = int(own.sum())
        if n >= ENOUGH:
            share = n / (n + OF_ALL)
            of_all = share * _share_below(place[own], age[own]) + (1 - share) * of_all
        levels: Floats = np.interp(LEVELS, of_all, _GRID)
        return levels

    def saved(self) -> dict[str, Any]:
        """Return what has been learned, as JSON has it."""
        return {"places": self._places}

    @classmethod
    def of(cls, saved: Mapping[str, Any]) -> Recalibration:
        """Return what :meth:`saved` has told."""
        again = cls()
        for place, user in saved["places"]:
            again.learn(place, user)
        return again


def _share_below(place: Floats, weight: Floats) -> Floats:
    """Return the share of places below each level of the grid, strictly rising."""
    order = place.argsort()
    below = np.concatenate([[0.0], weight[order].cumsum()])
    total: Floats = EVEN * _GRID + below[place[order].searchsorted(_GRID, "right")]
    total[-1] = EVEN + below[-1]
    total /= total[-1]
    return total


class Pool:
    """One forecast of several: their quantiles, weighed by how good each has been.

    A pool has the weighed means of the quantiles of log(1 + wait / 60 s) ("Vincentization").
    Weights that sum up to one are tried all, and each counts by its past CRPS: exp(-rate x sum).

    Parameters
    ----------
    methods : their names; the first is trusted until others have been better for a while.

    Raises
    ------
    HpcgymError : no method, or two of a name.
    """

    def __init__(self, methods: Sequence[str]) -> None:
        if not methods or len(set(methods)) < len(methods):
            raise HpcgymError(f"a pool has methods of different names, not {list(methods)}")
        self.methods = tuple(methods)
        self._loss = UNPROVEN * (1 - self._mixtures[:, 0])

    @cached_property
    def _mixtures(self) -> Floats:
        """All weights that are tried, (n, n_methods)."""
        parts = product(range(PARTS + 1), repeat=len(self.methods))
        return np.array([each for each in parts if sum(each) == PARTS]) / PARTS

    def learn(self, said: Mapping[str, Floats], wait: float) -> None:
        """Learn from a forecast whose job has started.

        Parameters
        ----------
        said : quantiles [s] by each method, at :data:`hpcgym.forecasting.scores.LEVELS`.
        wait : [s] for how long it has waited.
        """
        mixed = waits_of(self._mixtures @ self._logs(said))
        self._loss *= 1 - 1 / MEMORY
        self._loss += crps(mixed, np.full(len(mixed), float(wait)))

    @property
    def weights(self) -> dict[str, float]:
        """How much each method counts; they sum up to one."""
        chance = np.exp(-RATE * (self._loss - self._loss.min()))
        shares = chance @ self._mixtures / chance.sum()
        return dict(zip(self.methods, shares.tolist(), strict=True))

    def quantiles(self, said: Mapping[str, Floats]) -> Floats:
        """Return the forecast of the pool, (n_levels,) [s].

        Parameters
        ----------
        said : as of :meth:`learn`.
        """
        return waits_of(np.array([*self.weights.values()]) @ self._logs(said))

    def _logs(self, said: Mapping[str, Floats]) -> Floats:
        """Return log(1 + wait / 60 s) of the quantiles by each method, (n_methods, n_levels)."""
        return logs_of(np.array([said[name] for name in self.methods], np.float64))

    def saved(self) -> dict[str, Any]:
        """Return what has been learned, as JSON has it."""
        return {"methods": list(self.methods), "loss": self._loss.tolist()}

    @classmethod
    def of(cls, saved: Mapping[str, Any]) -> Pool:
        """Return what :meth:`saved` has told.

        Raises
        ------
        HpcgymError : it is of another version.
        """
        again = cls(saved["methods"])
        loss = np.array(saved["loss"], np.float64)
        if loss.shape != again._loss.shape:
            raise HpcgymError("a pool that was saved by another version: begin anew")
        again._loss = loss
        return again
