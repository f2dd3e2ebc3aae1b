"""Rules that are functions and classes of the user's own, by ``module:name``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from hpcgym.errors import HpcgymError

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


def is_own_dispatcher(name: str) -> bool:
    """Tell whether the name of a scheduler is ``module:name``, and no variant of a known one."""
    from hpcgym.baselines.dispatchers import DISPATCHERS
    from hpcgym.baselines.schedulers import is_scheduler
    from hpcgym.scheduler.own_code import names_code

    return names_code(name) and not is_scheduler(name) and name.partition(":")[0] not in DISPATCHERS


def own_object(name: str) -> Any:
    """Return the function of ``module:name``, or an object of that class, made anew.

    Raises
    ------
    HpcgymError : as of :func:`hpcgym.scheduler.own_code.own_rule`, or within :func:`no_own_code`.
    """
    from hpcgym.scheduler.own_code import own_rule

    if _REFUSED.get():
        raise HpcgymError(
            f"it was made with code of its maker, {name}, which is not run here: run its command"
            " again, and compare"
        )
    return own_rule(name, Path.cwd())
