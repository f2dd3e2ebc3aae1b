"""What an environment is by its arguments, alone and in a vector: read once, for both classes."""

from __future__ import annotations

import inspect
import math
import operator
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from inspect import Parameter, Signature
from typing import Any, NamedTuple

import numpy as np
from gymnasium import spaces
from gymnasium.envs.registration import load_env_creator, registry
from numpy.typing import NDArray

from hpcgym.baselines.schedulers import find_scheduler
from hpcgym.envs.core.episodes import Episodes
from hpcgym.envs.core.observation import (
    OR_EXPRESSION,
    POWER_SIZE,
    USUAL_FEATURES,
    USUAL_WINDOW,
    Layout,
    PairLayout,
    read_features,
    read_split_window,
)
from hpcgym.envs.core.reward import ALONE, Reward, Rewards, read_rewards
from hpcgym.envs.core.shapes import Shapes
from hpcgym.envs.core.surroundings import NOTHING_AROUND
from hpcgym.envs.ids import successor
from hpcgym.errors import HpcgymError, check_choice, did_you_mean
from hpcgym.machine.pool import Cluster
from hpcgym.machine.speedups import Heatmap
from hpcgym.scheduler.allocations import check_allocation
from hpcgym.scheduler.asked_for import (
    OF_ENVIRONMENTS,
    OF_MACHINES,
    check_extract,
    check_scheduler,
    check_weighed,
    counts_usage,
    what_moves,
)
from hpcgym.scheduler.estimates.by_name import learns
from hpcgym.scheduler.limits import Limit
from hpcgym.scheduler.policies.expressions import (
    Expression,
    is_expression,
    read_expression,
    spread_of,
    weighted_sum,
)
from hpcgym.scheduler.policies.features import check_features, meanings, runs_looked_at, spread
from hpcgym.scheduler.rules import RULES, Scheduler, typed
from hpcgym.units import DAY_S, HOUR_S, WEEK_S, seconds_of
from hpcgym.workload.extracts import taken_over
from hpcgym.workload.load import jobs_and_machine
from hpcgym.workload.model import Workload
from hpcgym.workload.plain import from_plain

# kind; two where jobs share nodes, and two where a rule orders the queue
SELECTION_KIND, ORDERING_KIND, WEIGHTS_KIND, PAIRS_KIND, PAIR_SCORES_KIND = range(5)
CANDIDATES_KIND, PROPOSALS_KIND = 5, 6
SHAPES_KIND = 7  # a rule schedules, and an agent submits
PASSES_INTERVAL, SECONDS_INTERVAL, SUBMISSIONS_INTERVAL, EPISODE_INTERVAL = range(4)  # interval

# --- Arguments that environments share ------------------------------------------------------------


DEFAULT_WORKLOAD = "lublin:jobs=10000,processors=256,seed=0"

#: What is usual where an agent orders the queue of a log: slices of its first half that are played
#: on, from the machine as EASY left it, and rewards for which waiting costs at once. So policies
#: differ, and what gains in an episode gains in the long run; see the pages.
PLAYED_ON: Mapping[str, Any] = {
    "workload": "lublin:jobs=50000,processors=256,load=0.7,seed=0",
    "part": "train",
    "start": "warm",
    "arrivals": "continue",
    "horizon": "7d",
    "reward": "log_bsld/easy",
    "paid": "waiting",
    "backfill_order": "spf",
}


_MOST_SUBMISSIONS = 2**53  # in an interval
INTERVALS = {"hour": HOUR_S, "day": DAY_S, "week": WEEK_S}  # [s]


#: Rules that environments have beside their agents, and what they are where nobody says.
USUAL_RULES = Scheduler().given((*OF_ENVIRONMENTS, "power"))
BACKFILLS = ("easy", "until-shadow", "depth:K", "slurm", "conservative", "none")


@dataclass(frozen=True)
class Options:
    """The arguments that all environments share; :class:`hpcgym.envs.SchedulingEnv` explains them.

    Attributes
    ----------
    rewards : see :class:`hpcgym.envs.core.reward.Rewards`.
    split : whether the window shows the head and the tail of the queue.
    names : feature names of the window.
    own, expressions : of these, users' own functions, and expressions.
    """

    workload: Workload
    cluster: Cluster
    scheduler: Scheduler
    rewards: Rewards
    window: int
    names: tuple[str, ...]
    own: Mapping[str, Callable[[Any], Any]]
    expressions: Mapping[str, Expression]
    flat: bool
    split: bool = False

    @property
    def sees(self) -> frozenset[str]:
        """What expressions of the window name of the state, names of STATE."""
        return frozenset().union(*(expression.state for expression in self.expressions.values()))


def read_options(
    workload: Any = DEFAULT_WORKLOAD,
    *,
    processors: int | None = None,
    cluster: Cluster | str | int | os.PathLike[str] | None = None,
    reward: Reward = "bsld",
    paid: str = "start",
    window: int | str = USUAL_WINDOW,
    features: Sequence[str] | Mapping[str, Callable[[Any], Any] | None] = USUAL_FEATURES,
    observation: str = "dict",
    **rules: Any,
) -> Options:
    """Return the arguments, checked.

    ``rules``: those of OF_ENVIRONMENTS, and ``power``; where they are not given as of a Scheduler.

    Raises
    ------
    HpcgymError : an argument with a value that it cannot have; it is named.
    """
    given = {**USUAL_RULES, **rules}
    workload, machine = jobs_and_machine(workload, cluster, processors)
    if workload.initial is not None:
        workload = taken_over(workload)  # by the agent: no scheduler goes on with it
    if not str(given["backfill"]).startswith(("depth:", "slurm:")):
        check_choice("backfill", given["backfill"], BACKFILLS)
    check_choice("observation", observation, ("dict", "flat"))
    visible, split = read_split_window(window)
    scheduler = Scheduler(**given)
    check_allocation(scheduler.allocation, machine)
    check_scheduler(scheduler, "environments")
    names, own, expressions = read_features(features, workload, machine, scheduler.quota or ())
    rewards = read_rewards(reward, ALONE, paid)
    return Options(
        workload, machine, scheduler, rewards, visible, names, own, expressions,
        observation == "flat", split,
    )  # fmt: skip


def read_interval(interval: Any) -> tuple[str, int]:
    """Return what weights hold for: ("pass" | "seconds" | "submissions" | "episode", length)."""
    whole = isinstance(interval, int) and not isinstance(interval, bool)
    if whole and 1 <= interval <= _MOST_SUBMISSIONS:
        return "submissions", interval
    if isinstance(interval, str):
        if interval in ("pass", "episode"):
            return interval, 0
        if interval in INTERVALS:
            return "seconds", INTERVALS[interval]
        seconds = seconds_of(interval) if interval.endswith("h") else None
        if seconds is not None and seconds % HOUR_S == 0 and 1 <= seconds // HOUR_S <= 10**6:
            return "seconds", int(seconds)
    raise HpcgymError(
        f"interval must be 'pass', 'hour', '6h', 'day', 'week', 'episode' or a number of "
        f"submissions, not {interval!r}"
    )


def check_moving(interval: Any, features: Sequence[str], scheduler: Scheduler) -> None:
    """Raise an HpcgymError for what does not go with submissions that the schedule makes.

    ``interval`` as it was given, and ``features`` that are weighed.
    """
    check_weighed(features, scheduler)
    if read_interval(interval)[0] == "submissions" and scheduler.moves_submissions:
        raise HpcgymError(
            f"interval={interval!r} does not go with {what_moves(scheduler)}: it goes by"
            " submissions that are known before"
        )


def read_policy_features(names: Any, expressions: bool = False) -> tuple[str, ...]:
    """Return the features that weights are for, checked; with ``expressions`` some may be such."""
    if isinstance(names, str) or not isinstance(names, Sequence) or not names:
        raise HpcgymError(f"policy_features must be names of features, not {names!r}")
    others = [name for name in names if not (expressions and _is_no_feature(name))]
    check_features("policy_features", others, usage=True, also=OR_EXPRESSION if expressions else "")
    if len(set(names)) < len(names):
        raise HpcgymError("policy_features: a feature is named twice")
    return tuple(names)


def _is_no_feature(name: Any) -> bool:
    """Return whether a name is meant as an expression, and is no feature in the engine's table."""
    return isinstance(name, str) and name not in meanings(usage=True) and is_expression(name)


def weighed_of(names: Sequence[str], scheduler: Scheduler) -> Expression | None:
    """Return the sum of features times weights; None where the engine has all of them in a table.

    Raises
    ------
    HpcgymError : an expression that looks at usage, or does not go with rules of the scheduler.
    """
    if not any(map(_is_no_feature, names)):
        return None
    parts = [read_expression(name, "policy_features") for name in names]
    usage = [part.text for part in parts if part.usage]
    if usage or scheduler.usage_orders[1]:
        looks = repr(usage[0]) if usage else scheduler.said("backfill_order")
        raise HpcgymError(f"policy_features: expressions do not go with usage, as of {looks}")
    if scheduler.moves_submissions:
        raise HpcgymError(f"policy_features: expressions do not go with {what_moves(scheduler)}")
    return weighted_sum(parts)


def spreads_of(names: Sequence[str], jobs: Workload) -> NDArray[np.float64]:
    """Return how much features that are weighed differ between jobs, (n_features,)."""
    return np.array(
        [
            spread_of(read_expression(name, "policy_features"), jobs)
            if _is_no_feature(name)
            else spread([jobs], [name])[0]
            for name in names
        ]
    )


def read_skips(skip_forced: Any) -> bool:
    """Return whether decisions with one action are not asked for, checked."""
    if not isinstance(skip_forced, bool):
        raise HpcgymError(f"skip_forced must be True or False, not {skip_forced!r}")
    return skip_forced


def read_numbers(name: str, action: Any, shape: tuple[int, ...]) -> NDArray[Any]:
    """Return an action as an array of numbers, or say what is wrong with it."""
    try:
        numbers = np.asarray(action)
    except ValueError:  # lists of unequal length
        numbers = np.asarray(None)
    if numbers.shape != shape or numbers.dtype.kind not in "fiu":
        raise HpcgymError(
            f"{name} must be numbers of shape {shape}, "
            f"not an array of {numbers.dtype} of shape {numbers.shape}"
        )
    if not (np.abs(numbers) < 1e30).all():
        raise HpcgymError(
            f"{name} must be numbers between -1e30 and 1e30, and has {_first_bad(numbers)}"
        )
    return numbers


def _first_bad(numbers: NDArray[Any]) -> str:
    """Return the first value that is not a number, or is far too large, and its place."""
    where = tuple(np.argwhere(~(np.abs(numbers) < 1e30))[0].tolist())
    return f"{numbers[where]} at {list(where)}"


def read_index(action: Any, number: int) -> int:
    """Return an action as an index below that number, or raise an error."""
    try:
        index = operator.index(action.item() if isinstance(action, np.ndarray) else action)
    except (TypeError, ValueError):
        index = -1
    if not 0 <= index < number:
        several = isinstance(action, np.ndarray) and action.size > 1
        shown = f"an array of shape {action.shape}" if several else repr(action)
        raise HpcgymError(f"action must be an index from 0 to {number - 1}, not {shown}")
    return index


def read_indices(actions: Any, num_envs: int) -> NDArray[np.int64]:
    """Return one whole number for each environment, or raise an error."""
    given = np.asarray(actions)
    if given.shape != (num_envs,) or given.dtype.kind not in "iu":
        raise HpcgymError(
            f"actions must be {num_envs} whole numbers, one for each environment, "
            f"not an array of {given.dtype} of shape {given.shape}"
        )
    return np.ascontiguousarray(given, np.int64)


def read_options_of_reset(options: Any) -> Mapping[str, Any]:
    """Return the options of a reset, empty if they are missing."""
    if options is None or isinstance(options, Mapping):
        return options or {}
    raise HpcgymError(f"options must be a dict, not {options!r}")


# --- What an environment is -----------------------------------------------------------------------


#: What an agent may set of a machine under limits.
CONTROLS = ("frequency", "nodes", "power")


class Limited(NamedTuple):
    """What an environment says of a machine whose jobs have nodes of their own.

    Attributes
    ----------
    controls : names of CONTROLS, in the order of the action.
    limits_of : returns the limits of an episode's jobs, in seconds of their clock; None: it has
        none, and nothing is said of power.
    switches : whether nodes may be switched off at all.
    """

    controls: tuple[str, ...]
    limits_of: Callable[[Workload], tuple[Limit, ...]] | None
    switches: bool


@dataclass(frozen=True)
class Corun:
    """What an environment says of nodes that jobs share.

    Attributes
    ----------
    speedups : the true ones, which the scheduler knows.
    neighbours : M, how many running jobs are listed.
    """

    speedups: Heatmap
    neighbours: int


#: Kinds of actions of environments that begin with an empty machine -> what they simulate.
_EMPTY_AT_FIRST = {"power": "environments under limits", "pairs": "shared nodes"}


#: Arguments of an environment that say what its episodes are.
EPISODE_ARGUMENTS = (
    "episodes", "jobs", "part", "train_share", "start", "warmup", "arrivals", "horizon",
    "sampler",
)  # fmt: skip


class Value(NamedTuple):
    """An argument that is several settings, each of which may be given by its own name, too.

    Attributes
    ----------
    settings : their names.
    key : what a mapping calls the one that has the name of the argument; "": no other name.
    """

    settings: tuple[str, ...]
    key: str = ""


#: Arguments that are several settings: ``observation={"window": 64}`` is ``window=64``.
VALUES = {
    "scheduler": Value((*OF_ENVIRONMENTS, "policy", "power", "partners")),
    "cluster": Value(("processors",)),
    "episodes": Value(EPISODE_ARGUMENTS[1:], "kind"),
    "observation": Value(("window", "features", "neighbours"), "form"),
    "limits": Value(("share", "hours", "period", "shutdown")),
}
#: Setting -> the argument that it is of.
OF_VALUES = {name: value for value, entry in VALUES.items() for name in entry.settings}


class Definition(NamedTuple):
    """What an environment is by its arguments.

    Attributes
    ----------
    kind : one of the kinds above, such as SELECTION_KIND.
    options : what all environments share.
    action_space : of one environment: a number of an action, or an array of numbers.
    attributes : of the environment, for its users.
    order : where the numbers that simulations take stand in an action, an index of numpy's.
    units : (n_numbers,) what an action is multiplied by; None: it is taken as it is. In a vector
        environment of several logs (num_envs, n_numbers).
    keeps : whether a selected job that does not fit stays selected.
    shutdown_action : whether an action may be to switch idle processors off.
    skips : whether decisions with one action are not asked for.
    puts_off : if jobs that are to start may be put off: how often each, and how long at most [s].
    breaks_s : up to which wait of the head picked jobs may break what was promised to it [s].
    features, interval : that weights are for, and what weights and controls hold for.
    weighed : the sum of these, where some are expressions; else the engine has a table of them.
    limited : of environments under limits; None of others, even where jobs have nodes of their own.
    corun : of environments in which jobs share nodes; None of others.
    shapes : of environments in which an agent submits jobs; None of others.
    """

    kind: int
    options: Options
    action_space: spaces.Discrete | spaces.Box
    attributes: Mapping[str, Any] = {}
    order: Any = ...
    units: Any = None
    keeps: bool = False
    shutdown_action: bool = False
    skips: bool = False
    puts_off: tuple[int, int] | None = None
    breaks_s: int = 0
    features: tuple[str, ...] = ()
    interval: tuple[str, int] = ("pass", 0)
    weighed: Expression | None = None
    limited: Limited | None = None
    corun: Corun | None = None
    shapes: Shapes | None = None

    @property
    def sees(self) -> frozenset[str]:
        """What the window and weights look at of the state, names of STATE."""
        own = frozenset() if self.weighed is None else self.weighed.state
        return self.options.sees | own

    @property
    def by_name(self) -> tuple[str, ...]:
        """The features that are weighed, where the engine has all of them in a table."""
        return self.features if self.weighed is None else ()

    @property
    def layout(self) -> Layout:
        """The layout of observations."""
        options = self.options
        if self.corun is not None:
            return PairLayout(options.window, self.corun.neighbours, options.flat)
        extra = POWER_SIZE if self.has_limits else 0
        shapes = 0 if self.shapes is None else self.shapes.number
        return Layout(options.window, len(options.names), options.flat, extra, shapes)

    @property
    def has_limits(self) -> bool:
        """Whether limits of power or energy may hold."""
        return self.limited is not None and self.limited.limits_of is not None

    def numbers(self, given: NDArray[Any]) -> NDArray[Any]:
        """Return actions, (..., n_numbers), as the simulations take them."""
        scaled = given if self.units is None else given * self.units
        ordered: NDArray[Any] = scaled[..., self.order] if self.order is not ... else scaled
        return ordered


def episodes_of(definition: Definition, given: Mapping[str, Any]) -> Episodes:
    """Return the episodes of an environment, by its arguments for them."""
    options, features = definition.options, definition.features
    scheduler = options.scheduler
    kept = {rule: getattr(scheduler, rule) for rule in OF_MACHINES}
    learning = learns(scheduler.estimate) or learns(scheduler.second_estimate)
    runs = max(scheduler.remembered, runs_looked_at(definition.sees))
    return Episodes(
        options.workload,
        **given,
        cluster=options.cluster,
        past_jobs=math.inf if learning or counts_usage(scheduler, features) else runs,
        rules=kept,
    )


def settings_of(cls: Any, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return an environment's arguments with each value as the settings that it has.

    Parameters
    ----------
    cls : its class.
    arguments : as the user gives them. What is given by its own name goes before what a scheduler
        says; ``power``, ``allocation`` and ``partners`` that it leaves as they are by default, it
        does not say.

    Raises
    ------
    HpcgymError : a key that is no setting, one that is given twice, or a scheduler with a rule that
        no environment of this kind has.
    """
    known = arguments_of(cls)
    settled = dict(arguments)
    settled = {**_rules_of(settled.pop("scheduler", None), known), **settled}
    for value, (settings, key) in VALUES.items():
        given = settled.get(value)
        names = [*([key] if key else []), *(name for name in settings if name in known)]
        if not isinstance(given, Mapping) or value not in known or not names:
            continue
        del settled[value]
        for name, setting in given.items():
            check_choice(f"key of {value}", name, names)
            if name in arguments and name != key:
                raise HpcgymError(f"{name} is given twice: by itself, and in {value}")
            settled[value if name == key else name] = setting
    return settled


def plain_settings_of(cls: Any, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the same with rules as users give them: texts, which JSON can hold."""
    settings = settings_of(cls, arguments)
    settings |= {rule: typed(settings[rule]) for rule in RULES if rule in settings}
    if isinstance(start := settings.get("start"), Scheduler):
        settings["start"] = start.given()
    return settings


def settings_in(env_id: str | None, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return arguments for an environment by its id as :func:`plain_settings_of` does.

    Those for other classes than hpcgym's, or for an id that nobody knows, are as they were.
    """
    cls = _class_of(env_id)
    return plain_settings_of(cls, arguments) if hasattr(cls, "read_arguments") else dict(arguments)


def usual_of(env_id: str | None) -> dict[str, Any]:
    """Return what an environment by its id has unless others are given, but for its jobs."""
    usual = getattr(_class_of(env_id), "usual", {})
    return {name: value for name, value in usual.items() if name not in ("workload", "part")}


def kind_of(env_id: str | None) -> str:
    """Return what an agent decides in an environment, its ``action_kind``; "" of one not known."""
    return getattr(_class_of(env_id), "action_kind", "")


def _class_of(env_id: str | None) -> Any:
    env_id = None if env_id is None else successor(env_id)
    entry = registry[env_id].entry_point if env_id in registry else None
    return load_env_creator(entry) if isinstance(entry, str) else entry


def _rules_of(scheduler: Any, known: Collection[str]) -> dict[str, Any]:
    """Return the rules of a scheduler that an environment follows beside its agent."""
    if scheduler is None:
        return {}
    names = [rule for rule in VALUES["scheduler"].settings if rule in known]
    if isinstance(scheduler, Mapping):
        for rule in scheduler:
            check_choice("rule of scheduler", rule, names)
        return dict(scheduler)
    followed = scheduler if isinstance(scheduler, Scheduler) else find_scheduler(scheduler)
    usual, agents = Scheduler(), ("policy", "backfill", "backfill_order")
    for rule in ("power", "allocation", "partners"):
        if rule in names and getattr(followed, rule) == getattr(usual, rule):
            names.remove(rule)
    for rule in RULES:
        if rule not in (*known, *agents) and getattr(followed, rule) != getattr(usual, rule):
            raise HpcgymError(f"scheduler: {followed.said(rule)} is no rule of this environment")
    return {name: getattr(followed, name) for name in names}


def own_name(cls: Any) -> str:
    """Return how ids and pages call a class of environments, single or vector."""
    return str(cls.__name__).removesuffix("Env").removesuffix("Vector")


def arguments_of(cls: Any) -> dict[str, Parameter]:
    """Return all arguments and settings that a class of environments takes, by name."""
    base = cls.base
    own = inspect.signature(cls.read_arguments).parameters
    functions = [base.__init__, cls.read_arguments]
    if any(parameter.kind is Parameter.VAR_KEYWORD for parameter in own.values()):
        functions += cls.passes_on
    parameters: dict[str, Parameter] = {}
    for function in functions:
        for name, parameter in inspect.signature(function).parameters.items():
            named = parameter.kind in (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)
            if named and name != "self":
                parameters.setdefault(name, parameter)
        if function is base.__init__:
            of_episodes = inspect.signature(Episodes).parameters
            for name in EPISODE_ARGUMENTS:
                parameters[name] = of_episodes[name].replace(kind=Parameter.KEYWORD_ONLY)
            parameters["scheduler"] = Parameter("scheduler", Parameter.KEYWORD_ONLY, default=None)
    if read_options in functions:
        for rule, usual_rule in USUAL_RULES.items():
            known = Parameter(rule, Parameter.KEYWORD_ONLY, default=usual_rule)
            parameters.setdefault(rule, known)
    # the constructors of all classes have None for the usual workload
    usual = {"workload": own["workload"].default, **cls.usual}
    return {
        name: parameter.replace(default=usual[name]) if name in usual else parameter
        for name, parameter in parameters.items()
    }


def define(cls: Any, workload: Any, arguments: Mapping[str, Any]) -> tuple[Definition, Episodes]:
    """Return what an environment is by its arguments, and its episodes.

    Parameters
    ----------
    cls : its class.
    workload : None: the usual one of the environment.
    arguments : those that the constructor does not name itself.

    Raises
    ------
    TypeError : an argument that is not known. It has the words of Python's own, which libraries
        look for: they try arguments and leave out those that are refused so.
    HpcgymError, WorkloadError : a value that cannot be.
    """
    known = arguments_of(cls)
    for name in arguments:
        if name not in known:
            raise TypeError(
                f"{cls.__name__}() got an unexpected keyword argument {name!r};"
                f" {did_you_mean(name, [*known])}"
            )
    if isinstance(workload, Mapping):  # as a spec has it
        workload = from_plain(workload)
    own = settings_of(cls, arguments)
    given = {**cls.usual, **own}
    of_episodes = {name: given.pop(name) for name in EPISODE_ARGUMENTS if name in given}
    if workload is not None:
        given["workload"] = workload
    definition: Definition = cls.read_arguments(**given)
    options = definition.options
    kind = of_episodes.get("episodes", "windows")
    for name in given_way(kind, options.workload, options.scheduler) - set(own):
        of_episodes.pop(name, None)
    if cls.action_kind in _EMPTY_AT_FIRST:  # before episodes are cut, which would say how
        check_extract(definition.options.workload, _EMPTY_AT_FIRST[cls.action_kind])
    return definition, episodes_of(definition, of_episodes)


def given_way(kind: Any, workload: Workload, scheduler: Scheduler) -> set[str]:
    """Return the arguments of episodes whose defaults give way to what the user asks for."""
    names: set[str] = set()
    is_whole = kind in ("whole", "stream") or workload.initial is not None
    moves = scheduler.moves_submissions or scheduler.preemption is not None
    if is_whole or moves:  # nothing is around these
        names |= {*NOTHING_AROUND}
    return names | ({"part"} if is_whole else set())


def set_signature(cls: Any, base: Any) -> None:
    """Let a class of environments show its arguments, unless it has a constructor of its own.

    Settings of :data:`VALUES` are behind ``**settings`` there.

    Parameters
    ----------
    base : the class whose constructor it has.
    """
    cls.base = base
    cls.__signature__ = None
    if "__init__" not in vars(cls) and hasattr(cls, "read_arguments"):
        shown = [
            parameter for name, parameter in arguments_of(cls).items() if name not in OF_VALUES
        ]
        settings = Parameter("settings", Parameter.VAR_KEYWORD, annotation=Any)
        ordered = sorted(shown, key=lambda parameter: parameter.kind)
        cls.__signature__ = Signature([*ordered, settings])


def has_matplotlib() -> bool:
    """Return whether matplotlib can be found; it is not imported."""
    try:
        return find_spec("matplotlib") is not None
    except ImportError:
        return False
