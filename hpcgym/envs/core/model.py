"""What the engine is told of the jobs of all episodes, and of their users; it takes parts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hpcgym._engine import Features, Model
from hpcgym.envs.core import arrays
from hpcgym.envs.core.episodes import Episodes
from hpcgym.envs.core.machines import Machines
from hpcgym.envs.core.options import Options
from hpcgym.scheduler import codes
from hpcgym.scheduler.estimates.by_name import predicted_run_times
from hpcgym.scheduler.estimates.learned import Estimators, Learner, told_of_learning
from hpcgym.scheduler.estimates.learning import asks_for_predictions
from hpcgym.scheduler.policies.features import JobColumns
from hpcgym.scheduler.policies.mixed import weighed
from hpcgym.scheduler.rules import Scheduler
from hpcgym.scheduler.usage import check_fair_share, counts_usage
from hpcgym.simulation.fair_share import Accounts, beginning_of, places_of_usage
from hpcgym.simulation.idle_shares import warn_of_weights
from hpcgym.simulation.orders import Order
from hpcgym.simulation.predictions import Learning
from hpcgym.simulation.prepare import Agent, Told, prepare
from hpcgym.workload.model import Workload

if TYPE_CHECKING:
    from hpcgym.envs.core.simulations import Simulations

# kinds in which single jobs are started from outside
_SELECTING = (arrays.SELECTION_KIND, arrays.PAIRS_KIND, arrays.PAIR_SCORES_KIND)


def told_of(
    workload: Workload,
    machines: Machines,
    kind: int,
    interval: str,
    *,
    counts: bool,
    keeps: bool,
    by_action: bool,
    orders: bool,
) -> Told:
    """Return what the engine is told of the jobs of all episodes, and of the rules.

    Parameters
    ----------
    kind, interval, keeps : as :class:`hpcgym.envs.core.simulations.Simulations` takes them.
    counts : whether somebody looks at what users have used.
    by_action : whether an action may switch idle processors off.
    orders : whether the agent says the order of the queue, by weights or otherwise.
    """
    scheduler = machines.rules
    asks = kind == arrays.ORDERING_KIND or (kind == arrays.WEIGHTS_KIND and interval == "pass")
    order: Order | None = Order(codes.SELECTION if kind in _SELECTING else codes.SCORED)
    if kind == arrays.ORDERING_KIND:  # before a decision
        order = Order(codes.SCORED, scores=np.tile([0.0, np.inf], (len(workload), 1)))
    if scheduler.moves_submissions and not orders:  # it is that of coming
        order = None
    return prepare(
        workload, scheduler, machines.cluster, machines.place, units=machines.units,
        agent=Agent(order, asks, keeps, by_action), counts=counts,
        logs_ends=scheduler.moves_submissions or "sharing" in machines.told, several=True,
    )  # fmt: skip


def learning_of(
    workload: Workload, scheduler: Scheduler, told: Told, kind: int
) -> tuple[Estimators, Learner] | None:
    """Return how run times are predicted, and what is known of them at first; None: they are not.

    ``kind``: what the agent says.
    """
    if not asks_for_predictions(scheduler):
        return None
    learning = Learning(workload, scheduler, told)
    if kind == arrays.WEIGHTS_KIND:
        learning.estimators.looks[0] = 1
    return learning.estimators, learning.learner


def ordered_by(options: Options, workload: Workload, jobs: NDArray[np.void]) -> NDArray[np.int64]:
    """Return what policies look at, (n_jobs,) [s], the requested time where it is learned."""
    run_time = np.minimum(workload.run_time, workload.requested_time)
    found = predicted_run_times(
        options.scheduler.policy_estimate, run_time, workload, "policy_estimate"
    )
    return np.array(jobs["requested"] if found is None else found)


def features_of(
    workload: Workload,
    features: tuple[str, ...],
    seconds: NDArray[np.int64],
    usage: Usage | None,
) -> dict[str, Any]:
    """Return the features that are weighed, as arguments of ``Features``.

    ``seconds``: what policies look at.
    """
    parts = weighed(JobColumns(workload, seconds), features, len(workload))
    return {
        "parts": parts.static,
        "formulas": parts.formulas,
        "places": parts.places,
        "serial": parts.serial,
        "seconds": seconds,
        "by_usage": (-1, -1) if usage is None else usage.places,
    }


def model_of(simulations: Simulations) -> Model:
    """Return the model of all episodes."""
    machines, usage, learning = simulations.machines, simulations.usage, simulations.learning
    more = dict(machines.told)
    if "nodes" in more:
        more["nodes"] = more["nodes"].layout
    if simulations.features is not None:
        more["features"] = Features(**simulations.features)
    if usage is not None:
        more["accounts"] = usage.whole
    if learning is not None:
        more["learning"] = told_of_learning(*learning)
    more["expressions"] = simulations.expressions
    told = simulations.told.arguments()
    return Model(**told, **more, ticks=machines.units.ticks, several=True)


def arrays_in(told: Any) -> Iterator[NDArray[Any]]:
    """Return all arrays and numbers in what is told, in their order."""
    if isinstance(told, Mapping):
        told = tuple(told.values())
    if isinstance(told, tuple | list):
        for one in told:
            yield from arrays_in(one)
    elif told is not None:
        yield np.asarray(told)


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
    warn_of_weights([episodes.workload], options.scheduler, features)
    return Usage(options, features, episodes)
