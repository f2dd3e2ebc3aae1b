"""Rules that are functions and classes of the user's own, by ``module:name``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from copy import deepcopy
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hpcgym.errors import ApartError, HpcgymError, reworded

if TYPE_CHECKING:
    from hpcgym.scheduler.rules import Scheduler

#: Rules that may be of the user's own.
_RULES = ("policy", "backfill_order")

_REFUSED = ContextVar("whether no code of the user's is run", default=False)


@contextmanager
def no_own_code() -> Iterator[None]:
    """Refuse all code meanwhile: the names are from a file, which may be anybody's."""
    before = _REFUSED.set(True)
    try:
        yield
    finally:
        _REFUSED.reset(before)


@contextmanager
def failures_in_a_line(scheduler: Scheduler) -> Iterator[None]:
    """Turn what the user's own rules of a scheduler raise into an error of one line.

    Raises
    ------
    HpcgymError : they raised something; it names the rule, the file and the line.
    """
    from hpcgym.scheduler.own_code import called, failure, own_rules, place_in

    try:
        yield
    except HpcgymError:
        raise
    except Exception as error:  # whatever the user's code does
        for rule, own in own_rules(scheduler).items():
            if place_in(own, error):
                said = f"{rule.replace('_', ' ')} {called(own)} failed: {failure(error, own)}"
                raise HpcgymError(said) from error
        raise


@contextmanager
def own_hold_told(name: str) -> Iterator[None]:
    """Say of what does not go with hold that a scheduler has it by its name, and how to lift it.

    Its user gave no such rule, and needs not know it.
    """
    from hpcgym.baselines import SCHEDULERS
    from hpcgym.scheduler.capabilities import FEATURES

    try:
        yield
    except ApartError as error:
        known, hold = SCHEDULERS.get(name), FEATURES["hold"]
        if known is None or known.hold is None or f"{hold} and " not in str(error):
            raise
        lifted = f"{name} has {hold} by itself; {name}:{hold}=none has not"
        raise reworded(error, f"{error} ({lifted})") from None


def with_own_rules(rules: Mapping[str, Any]) -> dict[str, Any]:
    """Return rules with the functions that ``module:name`` stands for, each of them anew.

    Modules are looked for in the current folder first, as those of an experiment in its folder.

    Raises
    ------
    HpcgymError : as of :func:`hpcgym.scheduler.own_code.own_rule`.
    """
    from hpcgym.scheduler.own_code import names_code

    return {
        rule: own_object(value) if rule in _RULES and names_code(value) else value
        for rule, value in rules.items()
    }


def is_own(name: str) -> bool:
    """Tell whether the name of a scheduler is ``module:name``, and no variant of a known one."""
    from hpcgym.baselines.dispatchers import DISPATCHERS
    from hpcgym.baselines.schedulers import is_scheduler
    from hpcgym.scheduler.own_code import names_code

    return names_code(name) and not is_scheduler(name) and name.partition(":")[0] not in DISPATCHERS


def own_scheduler(name: str) -> Any:
    """Return what ``module:name`` stands for as a scheduler: a dispatcher, or a ``Scheduler``.

    A dispatcher is a function, or an object of that class, made anew. Of a ``Scheduler`` this is a
    copy, with the objects in it.

    Raises
    ------
    HpcgymError : as of :func:`hpcgym.scheduler.own_code.own_rule`, or within :func:`no_own_code`.
    """
    from hpcgym.scheduler.own_code import named_object
    from hpcgym.scheduler.rules import Scheduler

    _check_allowed(name)
    found = named_object(name, Path.cwd())
    return deepcopy(found) if isinstance(found, Scheduler) else own_object(name)


def own_object(name: str) -> Any:
    """Return the function of ``module:name``, or an object of that class, made anew.

    Raises
    ------
    HpcgymError : as of :func:`hpcgym.scheduler.own_code.own_rule`, or within :func:`no_own_code`.
    """
    from hpcgym.scheduler.own_code import own_rule

    _check_allowed(name)
    return own_rule(name, Path.cwd())


def _check_allowed(name: str) -> None:
    """Raise an HpcgymError within :func:`no_own_code`."""
    if _REFUSED.get():
        raise HpcgymError(
            f"it was made with code of its maker, {name}, which is not run here: run its command"
            " again, and compare"
        )
