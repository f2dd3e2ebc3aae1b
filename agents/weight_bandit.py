"""A bandit over weights that forgets: how much waiting counts beside size, anew each day.

A few orders of the queue are given, each a vector of weights. For each the mean slowdown of the
jobs is remembered that were submitted while it held; older jobs count less and less, for what was
good in spring need not be in autumn. The one is taken that may still be the best: the mean less
what is not known of it (discounted UCB: Kocsis and Szepesvári 2006; Garivier and Moulines, On
upper-confidence bound policies for switching bandit problems, ALT 2011, whose rewards are our
slowdowns with the sign changed).

    hpcgym.study.prequential("weight-bandit", "KTH-SP2").table

It learns while it schedules, on one pass, and is never trained before; see docs/agents.md. It needs
nothing but numpy. To make one of your own, copy :class:`WeightBandit`: a :class:`Learner` has
``act``, ``observe`` and ``features``, and nothing else is asked of it.
:func:`hpcgym.study.prequential` lets learners go through a whole trace once.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hpcgym import elementary
from hpcgym.errors import HpcgymError, is_number

Numbers = NDArray[np.int64]  # (n_ended,)


class Ended(NamedTuple):
    """The jobs that have ended since the decision before; (n_ended,) each, in order of submission.

    Attributes
    ----------
    row : int64, their rows in the stream, as in ``info["window"]``.
    submit_time_s, wait_s, run_time_s, requested_time_s : int64 [s]; start and end times follow from
        them.
    processors, user : int64, requested processors, and the user's number (-1: not known).
    bsld : float64, bounded slowdowns.
    """

    row: Numbers
    submit_time_s: Numbers
    wait_s: Numbers
    run_time_s: Numbers
    requested_time_s: Numbers
    processors: Numbers
    user: Numbers
    bsld: NDArray[np.float64]


class Learner(Protocol):
    """An agent that learns while it schedules: ``act`` and ``observe`` are called in turns.

    It may have an attribute ``features``, names of :data:`hpcgym.scheduler.policies.FEATURES` that
    its actions weigh. By default these are the six of Legrand et al. 2018,
    :data:`hpcgym.scheduler.policies.WEIGHTED_FEATURES`.
    """

    def act(self, observation: dict[str, NDArray[Any]], info: dict[str, Any]) -> Any:
        """Return the weights that order the queue until the next decision, (n_features,).

        Parameters
        ----------
        observation : of :class:`hpcgym.envs.MixedPolicy`, with its usual arguments.
        info : "time_s", the time now [s]; "window", the rows of the visible jobs in the stream.
            Other entries of the environment are left out: they tell run times of jobs that run.
        """
        ...

    def observe(self, observation: dict[str, NDArray[Any]], reward: float, ended: Ended) -> None:
        """Learn from the outcome of the decisions so far. A learner may lack this method.

        It is called at the end of each stretch of time, before the next call of :meth:`act`, and
        once after the last job has ended.

        Parameters
        ----------
        observation : at the end of the stretch; the same as :meth:`act` sees next.
        reward : minus the sum of the bounded slowdowns of the jobs that have ended in the stretch,
            whenever they were submitted or started. The environment's own reward is paid when jobs
            start, and would tell how long they will run; this one is paid when they have ended.
        ended : these jobs.
        """
        ...


# --- The bandit -----------------------------------------------------------------------------------

#: Weighed features: requested time x processors, requested time, waiting time, in seconds.
FEATURES = ("area", "requested", "wait")

#: Orders to choose from. The first is SAF; in the second and third each second of waiting counts as
#: 1, or 10, processor seconds less of area. The others do the same for shortest job first.
ORDERS = (
    (-1.0, 0.0, 0.0),
    (-1.0, 0.0, 1.0),
    (-1.0, 0.0, 10.0),
    (0.0, -1.0, 0.0),
    (0.0, -1.0, 0.1),
    (0.0, -1.0, 1.0),
)

#: Jobs of a day are alike: so many of them tell as much as one independent job. (An assumption.)
ALIKE = 100.0


class WeightBandit:
    """Chooses among vectors of weights.

    Parameters
    ----------
    orders : (n_orders, 3) weights of :data:`FEATURES`, two orders or more.
    discount : factor on the weight of past jobs at each decision, above 0, at most 1.
    width : the optimism about an order, in logarithms of slowdowns below its mean, when the past
        jobs under it are worth one independent job: with 0 a failed order is never tried again.

    Attributes
    ----------
    features : of the environment.
    chosen : the orders that were chosen so far, by their numbers.

    Raises
    ------
    HpcgymError : orders of another shape, or numbers out of range.
    """

    name = "weight-bandit"
    features = FEATURES

    def __init__(
        self, orders: ArrayLike = ORDERS, discount: float = 0.98, width: float = 0.5
    ) -> None:
        self.orders = np.asarray(orders, np.float64)
        if self.orders.ndim != 2 or self.orders.shape[1] != len(FEATURES) or len(self.orders) < 2:
            raise HpcgymError(
                f"orders must be weights of {', '.join(FEATURES)}, two orders or more, not of shape"
                f" {self.orders.shape}"
            )
        if not is_number(discount) or not 0 < discount <= 1:
            raise HpcgymError(f"discount must be above 0 and at most 1, not {discount!r}")
        if not is_number(width) or not width >= 0:
            raise HpcgymError(f"width must be at least 0, not {width!r}")
        self.discount, self.width = discount, width
        self.chosen: list[int] = []
        self._when: list[int] = []  # decisions were made
        self._known = np.zeros(len(self.orders))  # how many independent jobs, the old ones less
        self._sums = np.zeros(len(self.orders))  # of logarithms of slowdowns, likewise

    def act(
        self, observation: dict[str, NDArray[Any]], info: dict[str, Any]
    ) -> NDArray[np.float64]:
        """Return the weights that may still be the best."""
        if self._when and info["time_s"] < self._when[-1]:  # another pass: what is known is kept
            self._when, self.chosen = [], []
        order = int(self._at_best().argmin())
        self.chosen.append(order)
        self._when.append(info["time_s"])
        weights: NDArray[np.float64] = self.orders[order]
        return weights

    def observe(self, observation: dict[str, NDArray[Any]], reward: float, ended: Ended) -> None:
        """Learn how slowed down the jobs were that have ended.

        That is held for, or against, the order in force when a job was *submitted*. What counts is
        the logarithm, lest a day with one slowdown of 1,000 say more than all others.
        """
        decisions = np.searchsorted(self._when, ended.submit_time_s, side="right") - 1
        orders = np.array(self.chosen)[decisions]
        n, slowdowns = len(self.orders), elementary.log(ended.bsld)
        self._known = self.discount * self._known + np.bincount(orders, minlength=n) / ALIKE
        self._sums = self.discount * self._sums + np.bincount(orders, slowdowns, n) / ALIKE

    def _at_best(self) -> NDArray[np.float64]:
        """Return how small the mean logarithm of each order's slowdowns may be, (n_orders,)."""
        # e at least, so that the logarithm is no less than 1
        total = max(float(self._known.sum()), math.e)
        # an order that was never tried, or long ago, comes first; of several the first of them
        known = np.maximum(self._known, 1e-9)
        at_best: NDArray[np.float64] = self._sums / known - self.width * np.sqrt(
            2 * elementary.log(total) / known
        )
        return at_best
