"""Baselines that act as agents do: any policy or EASY variant can drive any environment.

A baseline sees more than an agent: exact submit times, requested times and processors, where an
observation holds rounded ones. It sees nothing that a scheduler could not know.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hpcgym._engine import values_of
from hpcgym.baselines.dispatchers import DISPATCHERS, Dispatcher, find_dispatcher
from hpcgym.baselines.schedulers import SCHEDULERS, find_scheduler, is_variant, read_variant
from hpcgym.errors import HpcgymError, unknown
from hpcgym.own_code import others, sources
from hpcgym.scheduler.orders import columns_of
from hpcgym.scheduler.policies.expressions import Expression, is_expression, read_expression
from hpcgym.scheduler.policies.features import FEATURES, STATE_OF_USERS, runs_looked_at
from hpcgym.scheduler.policies.index import (
    POLICIES,
    PolicyLike,
    Ranking,
    parse_policy,
    rank,
    refuse_usage,
    weight_text,
)
from hpcgym.scheduler.policies.networks import Network, is_network
from hpcgym.scheduler.rules import Scheduler

if TYPE_CHECKING:
    from hpcgym.scheduler.dispatchers.view import PassView


# --- Dispatchers that act in environments ---------------------------------------------------------


class Expert:
    """A dispatcher with the interface of an agent, for JobSelection and QueueOrdering.

    The dispatcher sees the visible jobs as the queue. Actions put the jobs that it starts first,
    then a job that does not fit beside them, which ends the pass, then the others by submission. So
    without backfilling an environment starts the same jobs as the dispatcher, on nodes of the
    environment's own choice; only if all others fit too, one more job starts. In JobSelection this
    holds with ``reservation="revised"``. Expected ends are corrected by the environment's rule,
    which is "requested" by default, and never "next-second".

    Parameters
    ----------
    dispatcher : a callable, as :func:`hpcgym.simulate` takes it. If it names nodes, these are only
        checked to be free.
    name : its name; by default that of the callable.

    Attributes
    ----------
    order : (k,) int64, the places in the window in the order of the last action.
    rules : rules that the environment must have.

    Raises
    ------
    HpcgymError : no callable, or a class.

    Examples
    --------
    >>> from hpcgym.baselines.policies import Expert
    >>> def widest(view):
    ...     return view.in_order((-view.units).argsort(kind="stable"))
    >>> Expert(widest)
    Expert('widest')
    """

    def __init__(self, dispatcher: Dispatcher, name: str | None = None) -> None:
        Scheduler(dispatcher=dispatcher)  # which says what is invalid
        own_name = getattr(dispatcher, "name", None) or getattr(dispatcher, "__name__", None)
        self.dispatcher = dispatcher
        self.name = name or str(own_name or type(dispatcher).__name__)
        self.rules = {"backfill": "none"}
        self.order: NDArray[np.int64] = np.zeros(0, np.int64)
        self._env: Any = None

    def __repr__(self) -> str:
        return f"Expert({self.name!r})"

    def begin(self, env: Any) -> None:
        """Look at an environment; to be called after each reset.

        The dispatcher is told as by :func:`hpcgym.simulate`: its ``begin()`` is called, if any.

        Raises
        ------
        HpcgymError : it backfills, its actions are weights, or it keeps selected jobs selected.
        """
        env = getattr(env, "unwrapped", env)
        if env.action_kind not in ("select", "order"):
            raise HpcgymError(f"expert {self.name!r} says what starts, and this action is weights")
        if env.scheduler_rules["backfill"] != "none":
            raise HpcgymError(f"expert {self.name!r} needs an environment with backfill='none'")
        if env.scheduler_rules["quota"] is not None:
            raise HpcgymError(
                f"expert {self.name!r} is not told of quotas, and this environment has some"
            )
        if env.keeps_selected:
            needed = "an environment with reservation='revised'"
            raise HpcgymError(f"expert {self.name!r} needs {needed}")
        from hpcgym.scheduler.dispatchers.asking import begin

        begin(self.dispatcher)
        self._env = env

    def act(self, observation: Any, info: Mapping[str, Any]) -> Any:
        """Return the action: see :meth:`hpcgym.baselines.policies.Baseline.act`.

        Parameters
        ----------
        observation : not used.
        info : of the same reset or step; its ``window`` names the visible jobs.

        Raises
        ------
        HpcgymError : a wrong answer of the dispatcher, as by :func:`hpcgym.simulate`; and that it
            starts nothing while nothing runs, also where jobs are still to come.
        """
        if self._env is None:
            raise HpcgymError(f"expert {self.name!r}: call begin(env) after the reset, then act")
        visible = info["window"][info["window"] >= 0]
        self.order = self._ranked(self._env.pass_view(visible))
        if self._env.action_kind == "select":
            return int(self.order[0])
        size = int(self._env.action_space.shape[0])
        action = np.full(size, -1.0, np.float32)
        action[self.order] = np.linspace(1.0, -1.0, size, dtype=np.float32)[: len(self.order)]
        return action

    def _ranked(self, view: PassView) -> NDArray[np.int64]:
        """Return all places of the view, those that start first."""
        from hpcgym.scheduler.dispatchers.asking import ask, check_fits, check_starts

        answer = ask(self.dispatcher, view)
        check_fits(self.dispatcher, view, answer)
        check_starts(self.dispatcher, view, answer)
        starts = np.array([start.place for start in answer], np.int64)
        others = np.setdiff1d(np.arange(len(view.job)), starts)
        # with all that starts tried before it, what does not follow does not fit beside it
        begun = len(view.in_order(starts))
        blocked = (p for p in others if len(view.in_order([*starts, p])) == begun)
        first = np.array(list(islice(blocked, 1)), np.int64)
        return np.concatenate([starts, first, np.setdiff1d(others, first)])


# --- Baselines that act as agents do --------------------------------------------------------------

Action = int | NDArray[np.float32] | NDArray[np.float64]

_NO_ENVIRONMENT = Ranking(None, None)

#: Schedulers that an environment can be: those of no reservation, or one.
_VARIANTS = {
    name: scheduler
    for name, scheduler in SCHEDULERS.items()
    if name not in POLICIES and scheduler.reserve.kind == "easy"
}

#: Names of all baselines: the orders of :data:`hpcgym.scheduler.policies.POLICIES`, but for those
#: by usage, and EASY's variants.
BASELINES = (*(name for name in POLICIES if not POLICIES[name].looks_at_usage), *_VARIANTS)


class Baseline:
    """A policy that does not learn, with the interface of an agent.

    In an environment with the same rules it makes exactly the schedule of
    ``simulate(workload, policy=..., **rules)``, for ``JobSelection`` with
    ``reservation="revised"``. Where more jobs wait than the window shows, the others come after
    those, as for any agent. MixedPolicy divides weights by the sum of their sizes, and those of the
    scale "spread" by a unit each: its schedule is that of the weights divided so, which are the
    same policy but for rounding.

    Parameters
    ----------
    policy : what :class:`hpcgym.scheduler.rules.Scheduler` takes: a name, six weights, or weights
        by feature.
    name : what it is called; by default the policy's name or its weights.
    rules : rules that the environment must have, because the name stands for them: those of
        ``Scheduler``, such as ``{"backfill": "easy", "backfill_order": "sjbf"}``. To be handed to
        the environment when it is made.

    Raises
    ------
    HpcgymError : no policy, or a rule that there is not.

    Examples
    --------
    >>> from hpcgym.baselines import find_baseline
    >>> find_baseline("easy-sjbf").rules
    {'backfill': 'easy', 'backfill_order': 'sjbf'}
    """

    def __init__(
        self,
        policy: PolicyLike,
        name: str | None = None,
        rules: Mapping[str, Any] | None = None,
    ) -> None:
        checked = Scheduler(policy=policy)
        if checked.order.function is not None:
            raise HpcgymError("a policy that is a function is asked by simulate(), no environment")
        self.policy = checked.policy  # a copy
        self.rules: dict[str, Any] = dict(rules or {})
        Scheduler().but(**self.rules)
        self.name = _name(self.policy) if name is None else name
        self._ranking = _NO_ENVIRONMENT
        self._expressed: dict[str, NDArray[Any]] | None = None
        self._env: Any = None  # where it works the policy out
        self._pass: tuple[int, NDArray[np.float64]] | None = None  # when it began, scores of then
        self._within = False  # whether it looks at the state, and is asked several times in a pass
        self._submit = np.zeros(0)
        self._moving: Any = None  # the environment, where its schedule says when jobs come
        self._weights = np.zeros(0)
        self._answer: Callable[[Any], Action] | None = None
        self._begun: tuple[Any, str] | None = None  # the environment, and its episode of then
        self._size = 0

    def __repr__(self) -> str:
        return f"Baseline({self.name!r})"

    def begin(self, env: Any) -> None:
        """Look at the jobs of an episode; to be called after each reset.

        Parameters
        ----------
        env : the environment; of a wrapped one its ``unwrapped``.

        Raises
        ------
        HpcgymError : the environment has other rules than this baseline's name stands for, the
            policy cannot be given as weights over its features, or is no expression and is to look
            at predictions that only the environment has; where actions are no weights, one that
            looks at usage, at the state where it is asked after others have started, or at run
            times of users that the environment does not keep.
        """
        env = getattr(env, "unwrapped", env)
        self._check_rules(env.scheduler_rules)
        if env.action_kind == "weights":
            weights = self._weights_over(tuple(env.policy_features))
            self._weights = within_bounds(weights, env.units)
            self._answer, self._begun = self._weigh, None  # the same in all episodes
            return
        if parse_policy(self.policy).looks_at_usage:
            raise HpcgymError(self._not_by_usage())
        refuse_usage(self.policy, "baseline")
        rules = Scheduler().but(**env.scheduler_rules)
        looked_at = rules.describe()["policy_estimate"]
        expression = self._as_expression(looked_at != "requested")
        if looked_at != "requested" and expression is None:
            raise HpcgymError(
                f"baseline {self.name!r} looks at requested times here, and this environment has "
                f"policy_estimate={looked_at!r}; in hpcgym/MixedPolicy-v2 it looks at those"
            )
        columns = columns_of(env.episode_workload, rules)
        self._begun = env.simulations, env.simulations.names[0]
        self._ranking = rank(self.policy, columns)
        self._env, self._expressed, self._pass, self._within = None, None, None, False
        if expression is not None and expression.state:
            self._check_state(env, expression.state, rules)
            self._within = bool(env.action_kind == "select")
        if expression is not None and (expression.state or looked_at != "requested"):
            self._env, self._expressed = env, expression.program(columns)
        elif expression is not None and expression.general:
            self._expressed = expression.program(columns)
        self._submit = columns.submit
        self._moving = env if rules.moves_submissions else None
        if env.action_kind == "select":
            self._answer = self._select
        elif env.action_kind == "backfill":
            self._answer = self._pick
        elif env.action_kind == "order":
            self._size = int(env.action_space.shape[0])
            self._answer = self._order
        else:
            raise HpcgymError(f"no baseline knows actions of the kind {env.action_kind!r}")

    def _as_expression(self, learned: bool) -> Expression | None:
        """Return this policy as an expression that the engine works out; None: it is no expression.

        ``learned``: also of a weighted sum that waiting does not change, which looks at other times
        than the requested ones.
        """
        index = parse_policy(self.policy)
        waits = any(FEATURES[name].patience for name in index.weights if name in FEATURES)
        if index.expression is not None or not (learned and index.is_weighted_sum) or waits:
            return index.expression
        names = [name for name in FEATURES if name in index.weights]
        return read_expression(" + ".join(f"{index.weights[name]!r} * {name}" for name in names))

    def _check_state(self, env: Any, state: frozenset[str], rules: Scheduler) -> None:
        """Raise unless the state can be read as simulations do: as a pass begins."""
        why = ""
        if env.action_kind == "backfill":
            why = "which Backfill asks for after others have started: have it as backfill_order"
        elif env.action_kind == "select" and (
            rules.passes != "per-timestamp" or rules.threshold is not None
        ):
            why = "as a pass begins; with passes='per-event' or a threshold act in QueueOrdering"
        elif runs_looked_at(state) > env.simulations.world(0).told.kept or (
            STATE_OF_USERS & state and not env.simulations.world(0).told.n_users
        ):
            why = "and the environment keeps nothing of users: give it features that name the same"
        if why:
            raise HpcgymError(
                f"baseline {self.name!r} looks at the state of the machine, the queue and users,"
                f" {why}"
            )

    def _not_by_usage(self) -> str:
        """Return why this policy cannot act where actions are no weights, and an alternative."""
        weights = parse_policy(self.policy).weights
        act = f"act in hpcgym/MixedPolicy-v2 with policy_features={[*weights]}, or "
        return (
            f"baseline {self.name!r} depends on what users have used, which is not counted here:"
            f" {act if weights else ''}simulate(workload, {self.policy!r})"
        )

    def act(self, observation: Any, info: Mapping[str, Any]) -> Action:
        """Return the action of this policy.

        Parameters
        ----------
        observation : not used.
        info : of the same reset or step: ``window``, the rows of the visible jobs in the episode's
            workload with -1 behind them, and ``time`` [s].

        Returns
        -------
        action : JobSelection: place in the window of the job that is first in the queue. Backfill:
            of the first of the candidates, 0 without any.
            QueueOrdering: (window,) float32 from 1, the first in the queue, down to -1.
            MixedPolicy: (n_features,) float64, the weights; where one is beyond [-1, 1], all of
            them divided by a power of 2.

        Raises
        ------
        HpcgymError : ``begin`` was not called, or not since the environment's last reset.
        """
        stale = self._begun is not None and self._begun[0].names[0] != self._begun[1]
        if self._answer is None or stale:
            raise HpcgymError(f"baseline {self.name!r}: call begin(env) after each reset, then act")
        return self._answer(info)

    def _scores(self, rows: NDArray[np.int64], time: int) -> NDArray[np.float64]:
        """Return the scores of jobs, to the last bit those by which the simulator compares."""
        ranking = self._ranking
        if self._expressed is not None and self._env is None:
            waits = self._waits(rows, time).astype(np.float64)
            return values_of(self._expressed, len(self._submit), rows, waits)
        if self._expressed is not None:
            # the state is that before any job starts, which a question within a pass follows
            if self._pass is None or self._pass[0] != time or not self._within:
                waiting = np.array(self._env.queued(), np.int64)
                scores = np.full(len(self._submit), -np.inf)
                scores[waiting] = self._env.simulations.simulation(0).values_of(
                    self._expressed, len(self._submit), waiting
                )
                self._pass = time, scores
            return self._pass[1][rows]
        score = np.zeros(len(rows)) if ranking.score is None else ranking.score[rows]
        if ranking.patience is None:
            return score
        x = self._waits(rows, time) / ranking.patience[rows]
        return score * (x * x * x) if ranking.cubed else score + x

    def _waits(self, rows: NDArray[np.int64], time: int) -> NDArray[Any]:
        """Return how long jobs have waited, (n,) [s]."""
        submit = self._submit if self._moving is None else self._moving.submit_times()
        waits: NDArray[Any] = time - submit[rows]
        return waits

    # the window is in order of submission, so that the first of equals is the one to take

    def _select(self, info: Mapping[str, Any]) -> int:
        rows, mask = _visible(info), info.get("action_mask")
        scores = self._scores(rows, info["time_s"])
        if mask is not None:  # quotas may keep some back
            scores = np.where(mask[: len(rows)] > 0, scores, -np.inf)
        return int(np.argmax(scores)) if len(rows) else 0  # a threshold may leave nothing to ask

    def _pick(self, info: Mapping[str, Any]) -> int:
        rows = _visible(info)[1:]  # behind the head
        return 1 + int(np.argmax(self._scores(rows, info["time_s"]))) if len(rows) else 0

    def _order(self, info: Mapping[str, Any]) -> NDArray[np.float32]:
        places = np.argsort(-self._scores(_visible(info), info["time_s"]), kind="stable")
        ranks = np.linspace(1.0, -1.0, self._size, dtype=np.float32)
        action = np.full(self._size, -1.0, np.float32)
        action[places] = ranks[: len(places)]
        return action

    def _weigh(self, info: Mapping[str, Any]) -> NDArray[np.float64]:
        return self._weights.copy()

    def _weights_over(self, features: tuple[str, ...]) -> NDArray[np.float64]:
        """Return the weights of this policy over the features of an environment."""
        index = parse_policy(self.policy)
        if index.expression is not None and index.expression.text in features:
            return np.array([float(index.expression.text == feature) for feature in features])
        if not index.is_weighted_sum:
            raise HpcgymError(f"baseline {self.name!r} is no weighted sum of features")
        if dict(index.weights) == {"wait": 1.0} and "wait" not in features:
            return np.zeros(len(features))  # which stands for the order of submission
        missing = [feature for feature in index.weights if feature not in features]
        if missing:
            raise HpcgymError(
                f"baseline {self.name!r} needs the feature {missing[0]!r}, and this environment has"
                f" weights over {', '.join(features)}; give it policy_features="
                f"{(*features, *missing)!r}"
            )
        return np.array([index.weights.get(feature, 0.0) for feature in features])

    def _check_rules(self, given: Mapping[str, Any]) -> None:
        """Raise if an environment has other rules than the name stands for."""
        wanted = Scheduler().but(**self.rules).describe()
        there = Scheduler().but(**given).describe()
        wrong = [rule for rule in self.rules if wanted[rule] != there[rule]]
        if wrong:
            needed = ", ".join(f"{rule}={self.rules[rule]!r}" for rule in self.rules)
            raise HpcgymError(
                f"baseline {self.name!r} needs an environment with {needed}; this one has"
                f" {', '.join(f'{rule}={there[rule]!r}' for rule in wrong)}"
            )


def within_bounds(
    weights: NDArray[np.float64], units: NDArray[np.float64] | None
) -> NDArray[np.float64]:
    """Return the action of MixedPolicy that stands for weights of features as they are.

    Parameters
    ----------
    weights : (n_features,) of any size.
    units : of the environment: what it multiplies actions by, or None.

    Returns
    -------
    action : (n_features,) float64, from -1 to 1.
    """
    action = weights if units is None else weights / units
    largest = float(np.abs(action).max())
    # the environment divides them by their sum; here a power of 2 leaves them exact
    return action if largest <= 1 else action * 0.5 ** math.frexp(largest)[1]


def _visible(info: Mapping[str, Any]) -> NDArray[np.int64]:
    """Return the rows of the visible jobs."""
    rows: NDArray[np.int64] = info["window"]
    return rows[rows >= 0]


def find_baseline(name: PolicyLike | Dispatcher) -> Baseline | Expert:
    """Return a baseline by name, or of a dispatcher; call its ``begin(env)`` after each reset.

    A policy's name ("fcfs", "saf", "f1", ...) is that order of the queue, with the backfilling of
    the environment; so are an expression ("20 * wait - area"), six weights
    ("0.1,-0.2,0,0,0,0.7") or weights by feature. "easy",
    "easy-sjbf" and "easy++" are the order of submission, and demand of the environment the rules
    that the name stands for. Rules behind a colon, as in "saf:threshold=18000", are demanded, too;
    see :func:`~hpcgym.baselines.schedulers.find_scheduler`. A dispatcher's name ("prb", "pcp20",
    ...), or a dispatcher of one's own, is that dispatcher as an
    :class:`~hpcgym.baselines.policies.Expert`.

    Raises
    ------
    HpcgymError : an unknown name; the message has the nearest known ones. Or a dispatcher that
        solves a model, and there is no OR-Tools.
    """
    if isinstance(name, str) and name in DISPATCHERS:
        return Expert(find_dispatcher(name), name)
    if callable(name):
        return Expert(name)
    if is_variant(name):
        begin, demanded = read_variant(str(name))
        of = find_baseline(begin)
        assert isinstance(of, Baseline)
        demanded = of.rules | demanded
        return Baseline(demanded.pop("policy", of.policy), str(name), demanded)
    if isinstance(name, str) and (is_network(name) or name in _VARIANTS):
        of_name = find_scheduler(name) if is_network(name) else _VARIANTS[name]
        scheduler, plain = of_name.given(), Scheduler().given()
        policy = scheduler.pop("policy")
        needed = {
            rule: value
            for rule, value in scheduler.items()
            if rule in ("backfill", "backfill_order") or value != plain[rule]
        }
        return Baseline(policy, name, needed)
    if isinstance(name, str) and name in SCHEDULERS and name not in POLICIES:
        raise HpcgymError(
            f"{name!r} cannot drive an environment, which has one reservation at most; simulate it"
        )
    if isinstance(name, str) and not (name in POLICIES or "," in name or is_expression(name)):
        if name in others("policies"):
            return Baseline(name)
        weights = "six weights, or an expression such as '20 * wait - requested * processors'"
        names, more = [*BASELINES, *DISPATCHERS], sources("policies", POLICIES)
        raise HpcgymError(unknown("baseline", name, names, weights, more))
    return Baseline(name)


def _name(policy: PolicyLike) -> str:
    """Return what a policy without a name is called."""
    if isinstance(policy, str):
        return policy
    if isinstance(policy, Network):
        return policy.name
    if isinstance(policy, Mapping):
        return " ".join(f"{weight_text(weight)}*{feature}" for feature, weight in policy.items())
    return ",".join(map(weight_text, policy))  # type: ignore[arg-type]  # no function
