"""Actions, rewards, shares and options of a reset, checked."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcgym.errors import HpcgymError


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
    """Return the first number that is none, or far too large, and where it stands."""
    where = tuple(np.argwhere(~(np.abs(numbers) < 1e30))[0].tolist())
    return f"{numbers[where]} at {list(where)}"


def read_index(action: Any, number: int) -> int:
    """Return an action as one of that many indices, or raise an error if it is none."""
    try:
        index = operator.index(action.item() if isinstance(action, np.ndarray) else action)
    except (TypeError, ValueError):
        index = -1
    if not 0 <= index < number:
        several = isinstance(action, np.ndarray) and action.size > 1
        told = f"an array of shape {action.shape}" if several else repr(action)
        raise HpcgymError(f"action must be an index from 0 to {number - 1}, not {told}")
    return index


def read_indices(actions: Any, num_envs: int, number: int) -> NDArray[np.int64]:
    """Return actions, one for each environment, of that many indices, or say that they are none."""
    given = np.asarray(actions)
    if given.shape != (num_envs,) or given.dtype.kind not in "iu":
        raise HpcgymError(
            f"actions must be {num_envs} whole numbers, one for each environment, "
            f"not an array of {given.dtype} of shape {given.shape}"
        )
    indices = given.astype(np.int64, copy=False)
    # of whole numbers without a sign: negative ones are very large
    if indices.view(np.uint64).max() >= number:
        raise HpcgymError(f"actions must be indices from 0 to {number - 1}")
    return indices


def read_reward(value: Any) -> float:
    """Return what a user's reward function has returned as a number, or say that it is none."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = float("nan")
    if not np.isfinite(number):
        raise HpcgymError(f"reward: the function must return a finite number, not {value!r}")
    return number


def read_share(name: str, value: Any) -> float:
    """Return a share of a whole, more than 0 and less than 1, or say that it is none."""
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
