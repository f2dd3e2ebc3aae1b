"""What an environment is by its arguments, alone and in a vector: read once, for both classes."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping
from dataclasses import fields
from importlib.util import find_spec
from inspect import Parameter, Signature
from typing import Any, NamedTuple

from gymnasium import spaces
from gymnasium.envs.registration import EnvSpec
from numpy.typing import NDArray

from hpcgym.envs.core.episodes import Episodes
from hpcgym.envs.core.machines import Corun, Limited
from hpcgym.envs.core.options import Options, read_options
from hpcgym.errors import HpcgymError, nearest
from hpcgym.scheduler.asked_for import OF_MACHINES, counts_usage
from hpcgym.scheduler.estimates.learning import asks_for_predictions
from hpcgym.simulation.warm_start import check_extract

#: Kinds of actions of environments that begin with an empty machine -> what they simulate.
_EMPTY_AT_FIRST = {"controls": "environments under limits", "pairs": "shared nodes"}


#: Arguments of an environment that say what its episodes are.
EPISODE_ARGUMENTS = (
    "episodes", "jobs", "part", "train_share", "start", "warmup", "arrivals", "horizon",
    "sampler",
)  # fmt: skip


class Definition(NamedTuple):
    """What an environment is by its arguments.

    Attributes
    ----------
    kind : one of the kinds of :mod:`hpcgym.envs.core.arrays`.
    options : what all environments share.
    action_space : of one environment: a number of an action, or an array of numbers.
    attributes : of the environment, for its users.
    order : where the numbers that simulations take stand in an action, an index of numpy's.
    units : (n_numbers,) what an action is multiplied by; None: it is taken as it is.
    keeps : whether a selected job that does not fit stays selected.
    shutdown_action : whether an action may be to switch idle processors off.
    skips : whether decisions with one action are not asked for.
    features, interval : that weights are for, and what weights and controls hold for.
    limited : of environments under limits; None of others, even where jobs have nodes of their own.
    corun : of environments in which jobs share nodes; None of others.
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
    features: tuple[str, ...] = ()
    interval: tuple[str, int] = ("pass", 0)
    limited: Limited | None = None
    corun: Corun | None = None

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
    return Episodes(
        options.workload,
        **given,
        cluster=options.cluster,
        keeps_past=asks_for_predictions(scheduler) or counts_usage(scheduler, features),
        rules=kept,
    )


def signature_of(constructor: Callable[..., Any], read: Callable[..., Definition]) -> Signature:
    """Return all that a class of environments takes: its constructor, and what reads the rest.

    Parameters
    ----------
    constructor : its ``__init__``; it hands on what it does not name itself.
    read : reads that; what it does not name in turn is for ``read_options``.
    """
    own = inspect.signature(read).parameters.values()
    others = [one for one in own if one.kind is Parameter.VAR_KEYWORD]
    functions = (constructor, read, read_options) if others else (constructor, read)
    parameters: dict[str, Parameter] = {}
    for function in functions:
        for name, parameter in inspect.signature(function).parameters.items():
            if parameter.kind is not Parameter.VAR_KEYWORD and name != "self":
                parameters.setdefault(name, parameter)
        if function is constructor:
            of_episodes = inspect.signature(Episodes).parameters
            for name in EPISODE_ARGUMENTS:
                parameters[name] = of_episodes[name].replace(kind=Parameter.KEYWORD_ONLY)
    for parameter in own:
        if parameter.name == "workload":  # the constructors of all classes have None for the usual
            parameters["workload"] = parameters["workload"].replace(default=parameter.default)
    return Signature(sorted(parameters.values(), key=lambda parameter: parameter.kind))


def define(
    cls: Any, base: Any, workload: Any, arguments: Mapping[str, Any]
) -> tuple[Definition, Episodes]:
    """Return what an environment is by its arguments, and its episodes.

    Parameters
    ----------
    cls, base : its class, and that whose constructor calls this.
    workload : None: the usual one of the environment.
    arguments : those that the constructor does not name itself.

    Raises
    ------
    TypeError : an argument that is not known. It has the words of Python's own, which libraries
        look for: they try arguments and leave out those that are refused so.
    HpcgymError, WorkloadError : a value that cannot be.
    """
    known = list(signature_of(base.__init__, cls.read_arguments).parameters)
    for name in arguments:
        if name not in known:
            raise TypeError(
                f"{cls.__name__}() got an unexpected keyword argument {name!r};"
                f" {nearest(name, known)}"
            )
    of_episodes = {name: arguments[name] for name in arguments if name in EPISODE_ARGUMENTS}
    given = {name: arguments[name] for name in arguments if name not in EPISODE_ARGUMENTS}
    if workload is not None:
        given["workload"] = workload
    definition: Definition = cls.read_arguments(**given)
    if cls.action_kind in _EMPTY_AT_FIRST:  # before episodes are cut, which would say how
        check_extract(definition.options.workload, _EMPTY_AT_FIRST[cls.action_kind])
    return definition, episodes_of(definition, of_episodes)


def set_signature(cls: Any, base: Any) -> None:
    """Let a class of environments show all its arguments, unless it has a constructor of its own.

    Parameters
    ----------
    base : the class whose constructor it has.
    """
    plain = "__init__" not in vars(cls) and hasattr(cls, "read_arguments")
    cls.__signature__ = signature_of(base.__init__, cls.read_arguments) if plain else None


class Spec(EnvSpec):
    """Gymnasium's description of an environment, which says what of it JSON cannot hold."""

    def to_json(self) -> str:
        """Return the description as JSON.

        What ``EnvSpec.from_json`` makes of it makes the same environment. It is not equal where an
        argument is a tuple, such as ``hours``: JSON has lists in their place.

        Raises
        ------
        HpcgymError : an argument that is an object, such as a ``Workload``, a ``Cluster`` or a
            function. What was given by its name, or as the path of a file, can be written.
        """
        for name, value in self.kwargs.items():
            try:
                json.dumps(value)
            except (TypeError, ValueError):
                raise HpcgymError(
                    f"{name} is a {type(value).__name__}, which JSON cannot hold: make the"
                    " environment with a text in its place, a name or a path, where it takes one"
                ) from None
        return super().to_json()


def spec_of(given: EnvSpec | None) -> Spec | None:
    """Return the same description as a :class:`Spec`."""
    if given is None:
        return None
    return Spec(**{each.name: getattr(given, each.name) for each in fields(given) if each.init})


def has_matplotlib() -> bool:
    """Return whether matplotlib can be found; it is not imported."""
    try:
        return find_spec("matplotlib") is not None
    except ImportError:
        return False
