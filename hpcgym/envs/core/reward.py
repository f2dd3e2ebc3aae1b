"""What a step is rewarded with, as it is given and as the engine takes it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from gymnasium import spaces

from hpcgym.baselines.schedulers import find_scheduler
from hpcgym.errors import HpcgymError, check_choice, unknown
from hpcgym.own_code import check_takes
from hpcgym.scheduler.rules import Scheduler

# Terms, summed over the jobs that started in a step; ELAPSED where jobs share nodes, in its place
# turnaround where an agent submits jobs, MAX_WAIT where jobs do not share nodes: what the longest
# wait has grown by
BSLD, WAIT, ENERGY, ELAPSED, MAX_WAIT = range(5)
N_TERMS = 5
PLAIN, LOG = range(2)  # shape of a reward
PAID_AT_START, PAID_AT_END, PAID_WHILE_WAITING = range(3)  # slowdowns and waits, `paid`

#: Rewards by name, in the order of the terms: where jobs have processors of their own, where an
#: agent submits some of these, and where jobs share nodes.
ALONE = ("bsld", "wait", "energy", "", "max_wait")
SUBMITTED = ("bsld", "wait", "energy", "turnaround", "max_wait")
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
    references : the scheduler whose mean slowdown divides that of a reward; None: nothing does.
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


def space_of_rewards(rewards: Rewards) -> spaces.Box | None:
    """Return the space of a reward that is an array, as of a list of names; None of a number."""
    number = len(rewards.weights)
    return spaces.Box(-np.inf, np.inf, (number,), np.float64) if number > 1 else None


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
        check_takes("reward", reward, "the StepView of a step")
        return Rewards(((0.0,) * len(ALONE),), (PLAIN,), (None,), reward, when)
    if isinstance(reward, Mapping):
        for name in reward:
            if str(name).startswith(_LOG) or "/" in str(name):
                raise HpcgymError(
                    f"reward {name!r} is no part of a sum: give it alone, or in a list"
                )
        return Rewards((_mix(reward, terms),), (PLAIN,), (None,), None, when, (_tail(reward),))
    given = [reward] if isinstance(reward, str) else reward
    if not (isinstance(given, Sequence) and given and all(isinstance(name, str) for name in given)):
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
        if divided not in ("bsld", f"{_LOG}bsld"):
            raise HpcgymError(
                f"reward {name!r}: only bsld and log_bsld can be divided by a scheduler's"
            )
        shape = PLAIN if divided == "bsld" else LOG
        return _mix({"bsld": 1.0}, terms), shape, find_scheduler(by)
    plain = name.removeprefix(_LOG)
    if plain != name and plain in _IN_LOGS:
        return _mix({plain: 1.0}, terms), LOG, None
    return _mix({name: 1.0}, terms), PLAIN, None


def _mix(weights: Mapping[str, float], terms: Sequence[str]) -> tuple[float, ...]:
    """Return the weights of the terms, 0 where none is given."""
    known = [*(term for term in terms if term), *([TAIL] if "throughput" not in terms else [])]
    for name, weight in weights.items():
        if name not in known:
            logs = [f"{_LOG}{name}" for name in _IN_LOGS if name in known]
            also = "bsld/NAME or log_bsld/NAME of a scheduler" if "bsld" in known else ""
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


def read_reward(value: Any) -> float:
    """Return what a user's reward function has returned as a number, or raise an error."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = float("nan")
    if not np.isfinite(number):
        raise HpcgymError(f"reward: the function must return a finite number, not {value!r}")
    return number
