"""Accounts of users in the simulations of an environment, where an order looks at usage."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcgym.envs.core.episodes import Episodes
from hpcgym.envs.core.options import Options
from hpcgym.scheduler.usage import check_fair_share, counts_usage
from hpcgym.simulation.dependencies import check_moved
from hpcgym.simulation.fair_share import Accounts, beginning_of, places_of_usage
from hpcgym.simulation.idle_shares import warn_of_weights
from hpcgym.workload.model import Workload


class Usage:
    """The accounts of many simulations: each episode has those of its own users.

    Attributes
    ----------
    whole : the accounts of all jobs together.
    places : which weights are those of usage, -1: none.
    coming : those with which next episodes begin, by the simulation.

    Raises
    ------
    HpcgymError : an order by energy where there is no power.
    """

    def __init__(
        self,
        options: Options,
        features: tuple[str, ...],
        episodes: Episodes,
    ) -> None:
        self._given = options.scheduler, options.cluster, features
        self.whole = beginning_of(episodes.workload, *self._given)
        self.places = tuple(places_of_usage(features).tolist())
        self.coming: dict[int, Accounts] = {}

    @property
    def rules(self) -> tuple[NDArray[Any], ...]:
        """What differs where users, their shares or what orders make of usage do."""
        return (*self.whole.values(), np.array(self.places))

    def beginning(self, workload: Workload) -> Accounts:
        """Return the accounts with which an episode of these jobs begins."""
        return beginning_of(workload, *self._given)

    def set_next(self, e: int, workload: Workload) -> None:
        """Set the accounts of the next episode of simulation ``e``, which has these jobs."""
        self.coming[e] = self.beginning(workload)


def usage_of(options: Options, features: tuple[str, ...], episodes: Episodes) -> Usage | None:
    """Return the accounts of an environment's simulations; None where no order looks at usage.

    ``features``: that weights are for.

    Raises
    ------
    HpcgymError : shares of users where no order looks at usage.
    """
    counts = counts_usage(options.scheduler, features)
    check_fair_share(options.scheduler.fair_share, counts)
    if not counts:
        return None
    check_moved(options.scheduler, "environments", by_usage=True)
    warn_of_weights([episodes.workload], options.scheduler, features)
    return Usage(options, features, episodes)
