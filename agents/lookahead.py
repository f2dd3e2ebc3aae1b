"""Portfolio look-ahead: an agent that learns nothing beforehand, and plans at each pass.

At every scheduling pass at which some waiting job fits, the present queue is drained on estimated
run times, once for each weight vector of a portfolio, and the best vector is followed until the
next pass: `native/places/foresight.hpp`. All rules but the policy hold there. It only knows pools
of processors, and units that are single cores. ``docs/prediction.md`` has its results.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from hpcgym._engine import Features, Foresight
from hpcgym.baselines import find_scheduler
from hpcgym.baselines.policies import within_bounds
from hpcgym.errors import HpcgymError, WorkloadError, check_choice
from hpcgym.machine.pool import Cluster
from hpcgym.schedule.metrics import TAU_S, check_tau
from hpcgym.schedule.result import Result
from hpcgym.scheduler.asked_for import check_scheduler, check_weighed
from hpcgym.scheduler.policies.features import FEATURES, WEIGHTED_FEATURES, JobColumns, weighed
from hpcgym.scheduler.policies.index import POLICIES, PolicyLike, parse_policy, refuse_usage
from hpcgym.scheduler.rules import Rules, Scheduler
from hpcgym.scheduler.whole_nodes import check_power_rule
from hpcgym.simulation.driver import by_weights
from hpcgym.simulation.prepare import pool_of
from hpcgym.workload.checks import check_pool
from hpcgym.workload.load import machine_of
from hpcgym.workload.model import Workload

#: The twelve pure policies of Legrand et al. 2018. Of equally good vectors the first is followed.
PURE = ("saf", *(name for name in list(POLICIES)[:12] if name != "saf"))

#: Name -> the estimate of run times.
ESTIMATES = {
    "learned": "learned from the user's last jobs with the same request, and from others",
    "user-ratio": "the requested time x the mean of run / requested time of the user's ended jobs",
    "requested": "the requested time",
    "clairvoyant": "the actual run time, which no real scheduler knows",
}


class Lookahead:
    """Follow, at each pass, the best of some weight vectors for draining the present queue.

    Parameters
    ----------
    portfolio : policies to choose from: names, weights over the six features of Legrand 2018, or
        weights by feature. WFP3 is no weighted sum, and cannot be one.
    estimate : "learned", "user-ratio", "requested" or "clairvoyant"; see :data:`ESTIMATES`. Run
        times are only learned from the schedule that is being made.
    tau : [s] run times below this count as this in the bounded slowdowns of the drained queue.

    Attributes
    ----------
    weights : (n_vectors, n_features) float64, sizes up to 1.
    features : the features that they are for.
    env_id, env_options : the environment that it acts in: by default it is asked at each pass. In
        others it chooses at each of their decisions, and follows that vector up to the next.
    adapts : options of environments that need not be those.

    Raises
    ------
    HpcgymError : an empty portfolio, an unknown name, a policy that is no weighted sum, or a tau
        that is no number of seconds above 0.

    Examples
    --------
    >>> import hpcgym
    >>> from hpcgym.agents.lookahead import Lookahead
    >>> workload = hpcgym.load_workload("lublin:jobs=300,processors=64,seed=0")
    >>> Lookahead().run(workload).metrics["jobs"]
    300
    """

    name = "lookahead"
    env_id = "hpcgym/MixedPolicy-v2"
    adapts = ("window", "features", "observation", "scale")  # none of which it looks at

    def __init__(
        self,
        portfolio: Sequence[PolicyLike] = PURE,
        *,
        estimate: str = "learned",
        tau: float = TAU_S,
    ) -> None:
        if isinstance(portfolio, str | Mapping) or not len(portfolio):
            raise HpcgymError("portfolio must be a sequence of policies, at least one")
        check_choice("estimate", estimate, ESTIMATES)
        self.estimate, self.tau = estimate, check_tau(tau)
        used = {name for policy in portfolio for name in parse_policy(policy, "portfolio").weights}
        self.features = tuple(
            name for name in FEATURES if name in used or name in WEIGHTED_FEATURES
        )
        self.weights = np.array([_vector(policy, self.features) for policy in portfolio])
        self.env_options: dict[str, Any] = {
            "interval": "pass",
            "policy_features": self.features,
        }
        self._env: Any = None
        self._seen: tuple[Any, Foresight] | None = None

    def __repr__(self) -> str:
        return f"Lookahead({len(self.weights)} vectors, estimate={self.estimate!r})"

    # -- alone -------------------------------------------------------------------------------------

    def run(
        self,
        workload: Workload,
        scheduler: str | Scheduler | None = None,
        *,
        cluster: Cluster | None = None,
        processors: int | None = None,
        **rules: Unpack[Rules],
    ) -> Result:
        """Simulate a workload under look-ahead.

        Parameters
        ----------
        workload, cluster, processors : as for :func:`hpcgym.simulate`.
        scheduler : a name or a ``Scheduler``, whose policy does not matter; by default EASY that
            backfills by requested time. In MixedPolicy-v2 with the same rules look-ahead makes the
            same schedule.
        rules : rules that differ from the scheduler's, except ``policy``.

        Returns
        -------
        result : as an environment returns it: ``outside``, since no policy orders the queue, and
            with the ``scheduler``'s policy left at "fcfs".

        Raises
        ------
        HpcgymError : preemption, unknown rules, or jobs that ask for more
            of a machine's nodes than single cores.
        WorkloadError : a job that cannot be simulated.
        """
        if not isinstance(workload, Workload):
            raise WorkloadError(f"look-ahead takes a workload of load_workload, not {workload!r}")
        if "policy" in rules:
            raise HpcgymError("look-ahead has a portfolio in place of the rule policy")
        chosen = Scheduler() if scheduler is None else scheduler
        if not isinstance(chosen, Scheduler):
            chosen = find_scheduler(chosen)
        chosen = chosen.but(**rules).for_weights().but(policy="fcfs")
        check_power_rule(chosen, None)
        check_scheduler(chosen, "look-ahead")
        check_weighed(self.features, chosen)
        _check_estimates(chosen)
        machine = machine_of(workload, cluster, processors)
        check_pool(machine, workload, "look-ahead")
        run, _ = by_weights(workload, chosen, pool_of(workload, machine), self.features, asks=True)
        features = run.simulation.features
        assert features is not None
        run.simulation.native.look_ahead(self._foresight(workload, features))
        return run.finish(outside=True)

    def _features(self, workload: Workload, jobs: NDArray[np.void]) -> Features:
        """Return the features that the vectors weigh, as the engine takes them."""
        mixed = weighed(JobColumns(workload), self.features, len(workload))
        requested = np.ascontiguousarray(jobs["requested"])
        return Features(mixed.static, mixed.formulas, mixed.places, mixed.serial, requested)

    def _foresight(self, workload: Workload, features: Features) -> Foresight:
        """Return what look-ahead works with, before the first pass."""
        estimator = list(ESTIMATES).index(self.estimate)
        return Foresight(features, self.weights, _classes(workload), estimator, self.tau)

    # -- in an environment -------------------------------------------------------------------------

    def begin(self, env: Any) -> None:
        """Look at the jobs of an episode; to be called after each reset.

        Raises
        ------
        HpcgymError : an environment other than MixedPolicy, or one of other features.
        """
        env = getattr(env, "unwrapped", env)
        if env.action_kind != "weights":
            raise HpcgymError(f"look-ahead acts in {self.env_id}: its actions are weights")
        if tuple(env.policy_features) != self.features:
            raise HpcgymError(
                f"look-ahead has weights over {', '.join(self.features)}; give the environment "
                f"policy_features={self.features!r}"
            )
        check_scheduler(env.options.scheduler, "look-ahead")
        _check_estimates(env.options.scheduler)
        check_pool(env.options.cluster, env.episode_workload, "look-ahead")
        self._env = env
        simulations, workload = env.simulations, env.episode_workload
        look = self._foresight(workload, self._features(workload, simulations.jobs(0)))
        self._seen = simulations.simulation(0), look

    def act(self, observation: Any, info: Mapping[str, Any]) -> NDArray[np.float64]:
        """Return the weights to follow up to the next decision, (n_features,) float64.

        Parameters
        ----------
        observation, info : not used: the environment that ``begin`` was given knows all queued,
            running and ended jobs, not only those in the window.
        """
        if self._seen is None:
            raise HpcgymError("look-ahead: call begin(env) after the reset, then act")
        simulation = self._env.simulations.simulation(0)
        if self._seen[0] is not simulation:
            self.begin(self._env)  # a snapshot has been restored
        best = simulation.choose(self._seen[1])
        return within_bounds(self.weights[best].copy(), self._env.units)


def _check_estimates(scheduler: Scheduler) -> None:
    """Raise an HpcgymError for other run times at which its order of the queue would look."""
    if scheduler.describe()["policy_estimate"] != "requested":
        raise HpcgymError(
            "look-ahead learns run times itself, Lookahead(estimate='learned'): policy_estimate "
            "must be 'requested'"
        )


def _vector(policy: PolicyLike, features: tuple[str, ...]) -> NDArray[np.float64]:
    """Return a policy as weights that MixedPolicy takes as actions."""
    refuse_usage(policy, "portfolio")
    index = parse_policy(policy, "portfolio")
    if not index.is_weighted_sum:
        raise HpcgymError(f"portfolio: {policy!r} is no weighted sum of features")
    weights = np.array([index.weights.get(name, 0.0) for name in features])
    # weights are divided by their sum; a power of 2 leaves them exact
    return weights * 0.5 ** max(math.frexp(float(np.abs(weights).max()))[1], 0)


def _classes(workload: Workload) -> NDArray[np.int64]:
    """Return the classes of each job, (n_jobs, 3): all, its user's, those of the same request."""
    user, requested = workload.user_id, workload.requested_time
    classes = np.zeros((len(workload), 3), np.int64)
    for level, keys in enumerate(((user,), (user, requested)), 1):
        _, own = np.unique(np.stack(keys, axis=1), axis=0, return_inverse=True)
        classes[:, level] = classes.max(initial=0) + 1 + own.reshape(-1)
    return classes
