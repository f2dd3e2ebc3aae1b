"""What users bring to an evaluation: saved agents, objects and functions of their own, and modules.

Everything here is checked before anything is simulated.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from hpcgym.errors import HpcgymError
from hpcgym.scheduler.own_code import named_object
from hpcgym.scheduler.rules import Scheduler

#: Files of agents.
ENDINGS = (".json", ".pt", ".zip")


def acts(policy: Any) -> bool:
    """Tell whether this is a policy that acts in environments."""
    return callable(getattr(policy, "act", None))


def as_policy(policy: Any) -> Any:
    """Return a policy that acts where something of the user's is one, with what it must take.

    A class with ``act`` is made without arguments; a function of an observation and an info acts.
    Anything else is returned as it is, among it functions that can be called with one argument,
    which are dispatchers.

    Raises
    ------
    HpcgymError : an ``act`` or a ``begin`` that takes other arguments, a class that cannot be made,
        or a function that is neither a policy nor a dispatcher.
    """
    if isinstance(policy, type):
        if not acts(policy):
            return policy
        policy = _made(policy)
    if acts(policy):
        _check_methods(policy)
        return policy
    if not callable(policy) or _takes(policy, 1):
        return policy
    name = own_name(policy)
    if not _takes(policy, 2):
        raise HpcgymError(
            f"{name} must take one argument, as a dispatcher (the view of a pass), or two, as a"
            f" policy that acts (observation, info); it is {name}{inspect.signature(policy)}"
        )
    return SimpleNamespace(act=policy, name=name)


def own_name(policy: Any) -> str:
    """Return what an object or a function is called."""
    told = getattr(policy, "name", None) or getattr(policy, "__name__", None)
    return str(told or type(policy).__name__.lower())


def imported(text: str) -> Any:
    """Return the policy, dispatcher or scheduler that ``package.module:name`` names.

    Modules are found as Python finds them; the command line looks in the current folder first.

    Raises
    ------
    HpcgymError : there is no such module, importing it fails, or it has no such name; what has the
        name is none, as of :func:`as_policy`.
    """
    found = named_object(text)
    if isinstance(found, Scheduler):
        return found
    if not (acts(found) or callable(found)):
        raise HpcgymError(
            f"{text} is no policy: it is of the type {type(found).__name__}, and has no act"
        )
    try:
        return as_policy(_made(found) if isinstance(found, type) else found)
    except HpcgymError as error:
        raise HpcgymError(f"{text}: {error}") from None


def load_agent(path: str | Path) -> Any:
    """Return a saved agent.

    Raises
    ------
    HpcgymError : there is no such file, it holds no agent, or what agents need is not installed.
    """
    try:
        from hpcgym.agents import load
        from hpcgym.agents.released import is_released

        if not is_released(path) and not os.path.exists(path):
            raise HpcgymError(f"{path}: there is no such file")
        return load(path)
    except ImportError as error:
        raise HpcgymError(f"{path}: {error}") from None


def misfit_of_spaces(policy: Any, env: Any) -> str:
    """Return how a policy's spaces differ from an environment's, in a few words; "" if they do not.

    Parameters
    ----------
    policy : with ``observation_space`` and ``action_space`` of what it was trained in, or without.
    env : a single environment.
    """
    found = []
    for what, space in (("observations", "observation_space"), ("actions", "action_space")):
        theirs, here = getattr(policy, space, None), getattr(env, space, None)
        if theirs is None or here is None or theirs == here:
            continue
        if not (hasattr(theirs, "spaces") and hasattr(here, "spaces")):
            found.append(f"its {what} are {_shape(theirs)}, not {_shape(here)}")
            continue
        fields = [
            (name, theirs.spaces.get(name), here.spaces.get(name))
            for name in {**theirs.spaces, **here.spaces}
        ]
        differ = [
            f"{name} is {_shape(one)}, not {_shape(other)}"
            for name, one, other in fields
            if one != other
        ]
        found.append(f"in its {what} {', '.join(differ)}")
    return "; ".join(found)


def _shape(space: Any) -> str:
    """Return a space in a few words; one of the same size may differ in its bounds."""
    if space is None:
        return "none"
    if hasattr(space, "spaces"):
        return f"Dict({', '.join(space.spaces)})"
    if getattr(space, "shape", None):
        return f"{type(space).__name__}{tuple(space.shape)}"
    return str(space)


def _made(kind: type) -> Any:
    """Return an object of a user's class."""
    name = kind.__name__
    called = any("__call__" in vars(base) for base in kind.__mro__)  # as a dispatcher is
    if not (acts(kind) or called):
        raise HpcgymError(f"the class {name} is no policy: it has no act(observation, info)")
    try:
        inspect.signature(kind).bind()
    except TypeError as error:
        raise HpcgymError(
            f"the class {name} cannot be made without arguments ({error}): give defaults, or name a"
            " function or an object"
        ) from None
    except ValueError:  # of some compiled ones nothing is known
        pass
    try:
        return kind()
    except Exception as error:  # whatever a user's class does
        said = f"{type(error).__name__}: {error}"
        raise HpcgymError(f"the class {name} cannot be made: {said}") from None


def _check_methods(policy: Any) -> None:
    """Raise an HpcgymError for an ``act`` or a ``begin`` that takes other arguments."""
    wanted = {"act": ("two arguments, (observation, info)", 2), "begin": ("one, (env)", 1)}
    for method, (words, number) in wanted.items():
        function = getattr(policy, method, None)
        if function is not None and not _takes(function, number):
            told = inspect.signature(function)
            raise HpcgymError(
                f"{own_name(policy)}: {method} must take {words}; it is {method}{told}"
            )


def _takes(function: Callable[..., Any], number: int) -> bool:
    """Tell whether a function can be called with so many arguments, as far as it tells."""
    try:
        inspect.signature(function).bind(*range(number))
    except TypeError:
        return False
    except ValueError:  # of some compiled ones nothing is known
        pass
    return True
