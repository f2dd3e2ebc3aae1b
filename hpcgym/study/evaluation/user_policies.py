"""What users bring to an evaluation: objects, classes, functions, modules and files that act."""

from __future__ import annotations

import inspect
import os
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from hpcgym.errors import HpcgymError
from hpcgym.own_code import named_object, refusal
from hpcgym.scheduler.rules import Scheduler

#: Methods of policies that act -> their arguments, in words and as a number.
_METHODS = {"act": ("two arguments, (observation, info)", 2), "begin": ("one, (env)", 1)}


#: How a policy says which environment it was trained in.
REMEDY = (
    "say what it was trained in: by the attributes env_id and env_options of your policy, or beside"
    " a model by hpcgym.agents.save_spec"
)


def acts(policy: Any) -> bool:
    """Tell whether this is a policy that acts in environments."""
    return callable(getattr(policy, "act", None))


def as_policy(policy: Any, seed: int | None = None) -> Any:
    """Return a policy that acts, if the user's object is one, after a check of its methods.

    A class with ``act`` is made without arguments, except a ``seed`` if there is one and the class
    takes it; a function of an observation and an info acts. Any other object is returned as it is,
    also functions of one argument, which are dispatchers.

    Raises
    ------
    HpcgymError : an ``act`` or a ``begin`` that takes other arguments, a class that cannot be made,
        or a function that is neither a policy nor a dispatcher.
    """
    if isinstance(policy, type):
        if not acts(policy):
            return policy
        policy = _made(policy, seed)
    if acts(policy):
        for method, (words, number) in _METHODS.items():
            function = getattr(policy, method, None)
            if function is not None and refusal(function, *range(number)):
                wrong = f"{method}{inspect.signature(function)}"
                raise HpcgymError(f"{own_name(policy)}: {method} must take {words}; it is {wrong}")
        options = getattr(policy, "env_options", None)
        if not isinstance(options, Mapping | None):
            wrong = f"arguments of its environment by name, not {options!r}"
            raise HpcgymError(f"{own_name(policy)}: env_options must be {wrong}")
        return policy
    if not callable(policy) or not refusal(policy, 0):
        return policy
    name = own_name(policy)
    if refusal(policy, 0, 1):
        raise HpcgymError(
            f"{name} must take one argument, as a dispatcher (the view of a pass), or two, as a"
            f" policy that acts (observation, info); it is {name}{inspect.signature(policy)}"
        )
    own = {key: getattr(policy, key) for key in ("env_id", "env_options") if hasattr(policy, key)}
    return as_policy(SimpleNamespace(act=policy, name=name, **own))


def own_name(policy: Any) -> str:
    """Return what an object or a function is called."""
    name = getattr(policy, "name", None) or getattr(policy, "__name__", None)
    return str(name or type(policy).__name__.lower())


def imported(text: str, seed: int | None = None) -> Any:
    """Return the policy, dispatcher or scheduler that ``package.module:name`` names.

    Modules are found as Python finds them; the command line looks in the current folder first.

    Raises
    ------
    HpcgymError : there is no such module, importing it fails, or it has no such name; as of
        :func:`brought`.
    """
    return brought(named_object(text), text, seed)


def brought(given: Any, text: str, seed: int | None = None) -> Any:
    """Return the policy, dispatcher or scheduler that an object or a class is, called ``text``.

    Raises
    ------
    HpcgymError : its kind is not one of these, or :func:`as_policy` refuses it.
    """
    if isinstance(given, Scheduler):
        return given
    if not callable(given) and not acts(given):
        raise HpcgymError(
            f"{text} is no policy: it is of the type {type(given).__name__}, and has no act"
        )
    try:
        return as_policy(_made(given, seed) if isinstance(given, type) else given)
    except HpcgymError as error:
        raise HpcgymError(f"{text}: {error}") from None


def load_agent(path: str | Path) -> Any:
    """Return a saved agent.

    Raises
    ------
    HpcgymError : there is no such file, it holds no agent, or what agents need is not installed.
    """
    try:
        from hpcgym.agents import is_rlscheduler, load

        if not (is_rlscheduler(path) or os.path.exists(path)):
            raise HpcgymError(f"{path}: there is no such file")
        return load(path)
    except ImportError as error:
        raise HpcgymError(f"{path}: {error}") from None


def check_spaces(name: str, policy: Any, env: Any) -> None:
    """Raise an HpcgymError if a policy was trained with other spaces than an environment has.

    Parameters
    ----------
    name : of the policy.
    policy : with ``observation_space`` and ``action_space`` of what it was trained in, or without.
    env : a single environment.
    """
    differing = []
    for what, space in (("observations", "observation_space"), ("actions", "action_space")):
        theirs, here = getattr(policy, space, None), getattr(env, space, None)
        if theirs is not None and here is not None and theirs != _known_to(theirs, here):
            differing.append(f"its {what} are {_shape(theirs)}, not {_shape(here)}")
    if differing:
        raise HpcgymError(
            f"{name} was trained in another environment than this: {'; '.join(differing)}; {REMEDY}"
        )


def _known_to(theirs: Any, here: Any) -> Any:
    """Return a space without the fields that others do not know, which are not shown to them."""
    if not (hasattr(theirs, "spaces") and hasattr(here, "spaces")):
        return here
    return type(here)({name: here[name] for name in theirs.spaces if name in here.spaces})


def _shape(space: Any) -> str:
    """Return a space in a few words; one of the same size may differ in its bounds."""
    if hasattr(space, "spaces"):
        return f"Dict({', '.join(f'{name} {_shape(part)}' for name, part in space.spaces.items())})"
    if getattr(space, "shape", None):
        return f"{type(space).__name__}{tuple(space.shape)}"
    return str(space)


def _made(kind: type, seed: int | None) -> Any:
    """Return an object of a user's class, with this seed if it takes one."""
    name = kind.__name__
    called = any("__call__" in vars(base) for base in kind.__mro__)  # as a dispatcher is
    if not (acts(kind) or called):
        raise HpcgymError(f"the class {name} is no policy: it has no act(observation, info)")
    more = {} if seed is None or refusal(kind, seed=seed) else {"seed": seed}
    if why := refusal(kind, **more):
        raise HpcgymError(
            f"the class {name} cannot be made without arguments ({why}): give defaults, or name a"
            " function or an object"
        )
    try:
        return kind(**more)
    except Exception as error:  # whatever a user's class does
        said = f"{type(error).__name__}: {error}"
        raise HpcgymError(f"the class {name} cannot be made: {said}") from None
