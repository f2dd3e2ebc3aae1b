"""The arguments of the environments, checked, and what they say of reward and interval."""

from __future__ import annotations

import operator
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcgym.baselines.schedulers import find_scheduler
from hpcgym.cluster.pool import Cluster
from hpcgym.envs.core.arrays import LOG, PLAIN
from hpcgym.errors import HpcgymError, WorkloadWarning, check_choice, unknown, warn_caller
from hpcgym.naming import WITH_QOS
from hpcgym.scheduler.asked_for import check_scheduler
from hpcgym.scheduler.policies.features import JobColumns, check_features
from hpcgym.scheduler.rules import Scheduler
from hpcgym.simulation.prepare import check_allocation, machine_of
from hpcgym.simulation.restricted import check_weighed, what_moves
from hpcgym.simulation.warm_start import taken_over
from hpcgym.workload.load import load_workload
from hpcgym.workload.model import Workload

# --- What an environment rewards, and when --------------------------------------------------------

#: Rewards by name, in the order of the terms of :mod:`hpcgym.envs.core.arrays`: where jobs have
#: processors of their own, and where they share nodes.
ALONE = ("bsld", "wait", "energy", "", "max_wait")
SHARED = ("bsld", "wait", "energy", "throughput", "")

#: When slowdowns and waits are paid, in the order of their codes.
PAID = ("start", "end", "waiting")

#: A reward that is paid where an episode ends, whatever ``paid`` is: the 99th percentile of waits.
#: It is known of the whole schedule alone, which steps do not keep in order.
TAIL = "p99_wait"

_LOG = "log_"
_IN_LOGS = ("bsld", "wait")
_MOST_WEIGHT = 1e12  # of a reward: sums of many stay finite

Reward = str | Mapping[str, float] | Sequence[str] | Callable[[Any], float]


class Rewards(NamedTuple):
    """What a step is rewarded with.

    Attributes
    ----------
    weights : a row for each reward, its weights of the terms; all 0 for a function.
    shapes : PLAIN or LOG, one for each reward.
    references : the scheduler whose mean slowdown divides a reward; None: it is not divided.
    function : the user's own, or None.
    paid : when, a place in PAID.
    tails : weight of TAIL [1/h], one for each reward.
    """

    weights: tuple[tuple[float, ...], ...]
    shapes: tuple[int, ...]
    references: tuple[Scheduler | None, ...]
    function: Callable[[Any], float] | None = None
    paid: int = 0
    tails: tuple[float, ...] = (0.0,)


def read_rewards(reward: Any, terms: Sequence[str], paid: str = "start") -> Rewards:
    """Return the rewards that an argument asks for.

    Parameters
    ----------
    reward : a name, weights by name, names, or a function.
    terms : the names that there are, in the order of the terms.
    paid : one of PAID.

    Raises
    ------
    HpcgymError : no such name or scheduler, or a weight that is no number.
    """
    when = PAID.index(check_choice("paid", paid, PAID))
    if callable(reward):
        return Rewards(((0.0,) * len(ALONE),), (PLAIN,), (None,), reward, when)
    if isinstance(reward, Mapping):
        return Rewards((_mix(reward, terms),), (PLAIN,), (None,), None, when, (_tail(reward),))
    given = [reward] if isinstance(reward, str) else reward
    if not (isinstance(given, Sequence) and given and all(isinstance(one, str) for one in given)):
        raise HpcgymError(
            f"reward must be a name, weights by name, names or a function, not {reward!r}"
        )
    weights, shapes, references = zip(*(_read_name(name, terms) for name in given), strict=True)
    tails = tuple(float(name == TAIL) for name in given)
    return Rewards(weights, shapes, references, None, when, tails)


def _tail(weights: Mapping[str, float]) -> float:
    return float(weights.get(TAIL, 0.0))


def _read_name(name: str, terms: Sequence[str]) -> tuple[tuple[float, ...], int, Scheduler | None]:
    """Return the weights, the shape and the reference of a reward by its name."""
    divided, slash, by = name.partition("/")
    if slash and "throughput" not in terms:
        if divided != "bsld":
            raise HpcgymError(f"reward {name!r}: only bsld can be divided by a scheduler's")
        return _mix({"bsld": 1.0}, terms), PLAIN, find_scheduler(by)
    plain = name.removeprefix(_LOG)
    if plain != name and plain in _IN_LOGS:
        return _mix({plain: 1.0}, terms), LOG, None
    return _mix({name: 1.0}, terms), PLAIN, None


def _mix(weights: Mapping[str, float], terms: Sequence[str]) -> tuple[float, ...]:
    """Return the weights of the terms, 0 where none is given."""
    known = [*(term for term in terms if term), *([TAIL] if "throughput" not in terms else [])]
    for name, weight in weights.items():
        if name not in known:
            logs = [f"{_LOG}{one}" for one in _IN_LOGS if one in known]
            also = "bsld/NAME of a scheduler" if "bsld" in known else ""
            raise HpcgymError(unknown("reward", name, [*known, *logs], also))
        if not isinstance(weight, (int, float)) or not abs(weight) <= _MOST_WEIGHT:
            raise HpcgymError(
                f"reward: the weight of {name!r} must be a number, of at most {_MOST_WEIGHT:g} in"
                f" size, not {weight!r}"
            )
    if not weights:
        raise HpcgymError("reward: no weights are given")
    row = [float(weights.get(name, 0.0)) if name else 0.0 for name in terms]
    return (*row, *[0.0] * (len(ALONE) - len(row)))


# --- The arguments of the environments ------------------------------------------------------------

USUAL_WINDOW = 128
DEFAULT_WORKLOAD = "lublin:jobs=10000,processors=256,seed=0"

#: Features of a visible job, in the order of their codes.
WINDOW_FEATURES = {
    "wait": "waiting time, t / (t + 1 h)",
    "requested": "requested time, t / (t + 1 h)",
    "predicted": "predicted run time, t / (t + 1 h)",
    "processors": "processors, as a share of the machine",
    "area": "a / (a + machine for 1 h), with a = requested time x processors",
    "expansion": "w / (w + p): waiting time w, requested time p; 1 - 1 / expansion factor",
    "fits": "1 if there are enough free processors now, else 0",
    "leaves": "share of the machine that stays free if the job starts, 0 if it does not fit",
    "policy_time": "run time that policies look at (`policy_estimate`), t / (t + 1 h)",
    "within_quota": "1 if its quotas let it start now, else 0",
}
#: Those that there are by default.
USUAL_FEATURES = tuple(
    name for name in WINDOW_FEATURES if name not in ("policy_time", "within_quota")
)

_MOST_SUBMISSIONS = 2**53  # in an interval
INTERVALS = {"hour": 3600, "day": 86_400, "week": 604_800}  # [s]


@dataclass(frozen=True)
class Options:
    """The arguments that all environments share; :class:`hpcgym.envs.SchedulingEnv` explains them.

    Attributes
    ----------
    rewards : see :class:`hpcgym.envs.core.options.Rewards`.
    split : whether the window shows the head and the tail of the queue.
    names : feature names of the window, users' own behind the known ones.
    """

    workload: Workload
    cluster: Cluster
    scheduler: Scheduler
    rewards: Rewards
    window: int
    names: tuple[str, ...]
    own: Mapping[str, Callable[[Any], Any]]
    flat: bool
    split: bool = False


def read_options(
    workload: Any = DEFAULT_WORKLOAD,
    *,
    processors: int | None = None,
    cluster: Cluster | str | os.PathLike[str] | None = None,
    backfill: str = "easy",
    backfill_order: Any = "fcfs",
    estimate: Any = "requested",
    policy_estimate: Any = "requested",
    correction: str = "requested",
    passes: str = "per-timestamp",
    allocation: str = "first-fit",
    power: str = "none",
    threshold: float | None = None,
    hold: Any = None,
    fair_share: Any = None,
    quota: Any = None,
    maintenance: Any = None,
    preemption: Any = None,
    dependencies: str = "none",
    reward: Reward = "bsld",
    paid: str = "start",
    window: int | str = USUAL_WINDOW,
    features: Sequence[str] | Mapping[str, Callable[[Any], Any] | None] = USUAL_FEATURES,
    observation: str = "dict",
) -> Options:
    """Return the arguments, checked.

    Raises
    ------
    HpcgymError : an argument with a value that it cannot have; it is named.
    """
    if not isinstance(workload, Workload):
        workload = load_workload(workload, processors=processors, cluster=cluster)
    workload = taken_over(workload)  # by the agent: no scheduler goes on with it
    cluster = machine_of(workload, cluster, processors)
    if not str(backfill).startswith(("depth:", "slurm:")):
        check_choice("backfill", backfill, ("easy", "until-shadow", "depth:K", "slurm", "none"))
    check_choice("observation", observation, ("dict", "flat"))
    visible, split = read_split_window(window)
    scheduler = Scheduler(
        backfill=backfill,
        backfill_order=backfill_order,
        estimate=estimate,
        policy_estimate=policy_estimate,
        correction=correction,
        passes=passes,
        allocation=allocation,
        power=power,
        threshold=threshold,
        hold=hold,
        fair_share=fair_share,
        quota=quota,
        maintenance=maintenance,
        preemption=preemption,
        dependencies=dependencies,
    )
    check_allocation(allocation, cluster)
    check_scheduler(scheduler, "environments")
    names, own = _features(features)
    rewards = read_rewards(reward, ALONE, paid)
    return Options(
        workload, cluster, scheduler, rewards, visible, names, own, observation == "flat", split
    )


def _features(features: Any) -> tuple[tuple[str, ...], dict[str, Callable[[Any], Any]]]:
    """Return the names of the window's columns, and the functions of those that are users' own."""
    if isinstance(features, str) or not isinstance(features, (Sequence, Mapping)):
        raise HpcgymError(f"features must be names of features, not {features!r}")
    if not all(isinstance(name, str) for name in features):
        raise HpcgymError(f"features must be names of features, not {features!r}")
    given = features if isinstance(features, Mapping) else dict.fromkeys(features)
    if len(given) < len(features):
        raise HpcgymError("features: a feature is named twice")
    own = {name: function for name, function in given.items() if function is not None}
    for name in given:
        if name not in WINDOW_FEATURES and name not in own:
            own[name] = _comparison(name)
    for name, function in own.items():
        if not callable(function):
            raise HpcgymError(f"features: {name!r} must be a function of job columns")
    if not given:
        raise HpcgymError("features must name at least one feature")
    return tuple(given), own


def _comparison(name: str) -> Callable[[Any], Any]:
    """Return the function of a feature such as ``queue=debug``."""
    word, sign, called = (part.strip() for part in name.partition("="))
    if not sign:
        raise HpcgymError(unknown("features", name, WINDOW_FEATURES))
    if not called:
        raise HpcgymError(f"features: {name!r} compares with no name: such as {word}=debug")
    column = WITH_QOS[check_choice("features", word, WITH_QOS)]
    return partial(_is_called, column=column, called=called)


def _is_called(jobs: JobColumns, column: str, called: str) -> Any:
    """Return whose number in a column is called so, (n_jobs,) bool.

    Warns
    -----
    WorkloadWarning : nobody's.
    """
    found = jobs.is_called(column, called)
    if not found.any():
        warn_caller(f"features: no job has {called!r} in {column}", WorkloadWarning)
    return found


def read_split_window(window: Any) -> tuple[int, bool]:
    """Return how many jobs are visible, and whether half of them are those that came last."""
    if isinstance(window, str):
        name, _, size = window.partition(":")
        if name == "split" and (not size or size.isdecimal()):
            visible = read_window("window", int(size) if size else USUAL_WINDOW)
            if visible > 1:
                return visible, True
        raise HpcgymError(
            f"window must be a number of jobs, 'split' or 'split:64' with such a number, not"
            f" {window!r}"
        )
    return read_window("window", window), False


def read_window(name: str, window: Any) -> int:
    """Return how many jobs are visible, checked."""
    if not isinstance(window, int) or isinstance(window, bool) or not 1 <= window <= 2**20:
        raise HpcgymError(f"{name} must be a whole number of at least 1 job, not {window!r}")
    return window


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
        hours = interval.removesuffix("h")
        if interval.endswith("h") and hours.isdecimal() and 1 <= int(hours) <= 10**6:
            return "seconds", 3600 * int(hours)
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


def read_policy_features(names: Any) -> tuple[str, ...]:
    """Return the features that MixedPolicy weighs, checked."""
    if isinstance(names, str) or not isinstance(names, Sequence) or not names:
        raise HpcgymError(f"policy_features must be names of features, not {names!r}")
    check_features("policy_features", names, usage=True)
    if len(set(names)) < len(names):
        raise HpcgymError("policy_features: a feature is named twice")
    return tuple(names)


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
        raise HpcgymError(f"{name} must be numbers from -1 to 1, and has {_first_bad(numbers)}")
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
        told = f"an array of shape {action.shape}" if several else repr(action)
        raise HpcgymError(f"action must be an index from 0 to {number - 1}, not {told}")
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


def read_reward(value: Any) -> float:
    """Return what a user's reward function has returned as a number, or raise an error."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = float("nan")
    if not np.isfinite(number):
        raise HpcgymError(f"reward: the function must return a finite number, not {value!r}")
    return number


def read_share(name: str, value: Any) -> float:
    """Return a share, a number above 0 and below 1, or raise an error."""
    try:
        share = float(value)
    except (TypeError, ValueError):
        share = -1.0
    if not 0 < share < 1:
        raise HpcgymError(f"{name} must be a number between 0 and 1, not {value!r}")
    return share


def read_options_of_reset(options: Any) -> Mapping[str, Any]:
    """Return the options of a reset, empty where there are none."""
    if options is None or isinstance(options, Mapping):
        return options or {}
    raise HpcgymError(f"options must be a dict, not {options!r}")
