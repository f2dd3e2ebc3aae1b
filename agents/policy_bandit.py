"""A contextual bandit: which policy orders the queue today, by what machine and queue are like.

Each policy has a regression of river, which says how slowed down jobs will be that are submitted in
the coming stretch if this policy orders the queue. It is told as jobs end. How sure a regression is
decides how often its policy is tried: a guess is drawn from each one's belief, and the policy with
the least guess is taken (Thompson sampling: Agrawal and Goyal, Thompson sampling for contextual
bandits with linear payoffs, ICML 2013).

    hpcgym evaluate policy-bandit --workload KTH-SP2 --protocol prequential

It learns while it schedules, on one pass, and is never trained before; see docs/online.md. To make
one of your own, copy this file: a learner has ``act``, ``observe`` and ``features``, and nothing
else is asked of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from river.linear_model import BayesianLinearRegression

from hpcgym.agents.learner import Ended
from hpcgym.errors import HpcgymError, check_whole, unknown
from hpcgym.scheduler.policies import POLICIES

Context = dict[str, float]

#: Jobs of a day are alike: so many of them tell as much as one that is independent of all others.
#: (An assumption. With 1 a day of jobs seems to prove everything, and nothing is tried again.)
ALIKE = 100.0

#: Policies that can be chosen: weighted sums of what is known of a job.
WEIGHED = tuple(
    name for name, one in POLICIES.items() if one.is_weighted_sum and not one.looks_at_usage
)


class PolicyBandit:
    """Chooses among policies by name.

    Parameters
    ----------
    policies : names of :data:`WEIGHED`; two or more.
    seed : of the guesses.

    Attributes
    ----------
    features : what the policies weigh, for the environment.
    chosen : the policies that were chosen so far.

    Raises
    ------
    HpcgymError : an unknown policy, or fewer than two.
    """

    name = "policy-bandit"

    def __init__(
        self, policies: Sequence[str] = ("saf", "spf", "f1", "fcfs"), seed: int = 0
    ) -> None:
        for policy in policies:
            if policy not in WEIGHED:
                raise HpcgymError(unknown("policy", policy, WEIGHED))
        if len(set(policies)) < 2:
            raise HpcgymError("policies: there must be two or more to choose from")
        self.features = tuple(dict.fromkeys(f for one in policies for f in POLICIES[one].weights))
        self.chosen: list[str] = []
        self._rng = np.random.default_rng(check_whole("seed", seed, 0))
        # A belief before anything is known: slowdowns of 1, whose logarithm is 0, but unsure. That
        # is better than any policy is, so each is tried.
        self._beliefs = {one: BayesianLinearRegression(beta=1 / ALIKE) for one in policies}
        self._when: list[int] = []  # decisions were made
        self._contexts: list[Context] = []  # what they were made by

    def act(
        self, observation: dict[str, NDArray[Any]], info: dict[str, Any]
    ) -> NDArray[np.float64]:
        """Return the weights of the policy with the least guess."""
        if self._when and info["time"] < self._when[-1]:  # another pass: what is known is kept
            self._when, self.chosen, self._contexts = [], [], []
        context = context_of(observation)
        guesses = {policy: self._guess(policy, context) for policy in self._beliefs}
        policy = min(guesses, key=lambda one: guesses[one])
        self.chosen.append(policy)
        self._when.append(info["time"])
        self._contexts.append(context)
        weights = POLICIES[policy].weights
        return np.array([weights.get(feature, 0.0) for feature in self.features])

    def observe(self, observation: dict[str, NDArray[Any]], reward: float, ended: Ended) -> None:
        """Learn how slowed down the jobs were that have ended.

        That is held for, or against, the policy in force when a job was *submitted*, in the context
        of then: a job that starts under another one has waited under this one. What counts is the
        logarithm, lest a day with one slowdown of 1,000 say more than all others.
        """
        decisions = np.searchsorted(self._when, ended.submit_time_s, side="right") - 1
        for decision, slowdown in zip(decisions.tolist(), np.log(ended.bsld).tolist(), strict=True):
            belief = self._beliefs[self.chosen[decision]]
            belief.learn_one(self._contexts[decision], slowdown)

    def _guess(self, policy: str, context: Context) -> float:
        """Draw the mean logarithm of slowdowns from what is believed of a policy."""
        belief = self._beliefs[policy].predict_one(context, with_dist=True)
        # what river tells is the spread of a job; that of the mean is without the job's own
        spread = max(belief.sigma**2 - ALIKE, 0.0) ** 0.5
        return float(self._rng.normal(belief.mu, spread))


def context_of(observation: dict[str, NDArray[Any]]) -> Context:
    """Return what is known at a decision, each about -1 to 1.

    The fields of observations are described in docs/environments/mixed-policy.md.
    """
    cluster, queue, time = observation["cluster"], observation["queue"], observation["time"]
    return {
        "always": 1.0,
        "load": 1.0 - float(cluster[0]),  # processors in use
        "queue": float(queue[0]),  # n / (n + 128), n jobs waiting
        "work": float(queue[3]),  # a / (a + 1 h of the machine), a what they request
        "oldest": float(queue[4]),  # t / (t + 1 h), t the longest wait
        "hour, sine": float(time[0]),
        "hour, cosine": float(time[1]),
        "weekday, sine": float(time[2]),
        "weekday, cosine": float(time[3]),
    }
