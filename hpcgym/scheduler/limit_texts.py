"""Limits as texts, such as ``percent=60,start=90000,end=93600``: of options and of experiments."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from hpcgym.errors import HpcgymError, check_choice
from hpcgym.scheduler.limits import EnergyBudget, Limit, PowerCap

if TYPE_CHECKING:
    from hpcgym.cluster.pool import Cluster

_CAP = ("watts", "percent", "start", "end", "announced", "kills")
_BUDGET = ("joules", "percent", "start", "end", "period", "shutdown", "off_as_idle")
_FLAGS = ("kills", "shutdown", "off_as_idle")


def read_limits(
    machine: Cluster, caps: Iterable[str], budgets: Iterable[str], where: str = ""
) -> tuple[Limit, ...]:
    """Return the limits that texts describe, caps first.

    Parameters
    ----------
    machine : of which percents are: of its power [W], or energy [J], with all nodes busy.
    caps, budgets : of each a text ``KEY=VALUE,...``. The keys are the arguments of
        :class:`~hpcgym.scheduler.limits.PowerCap` and
        :class:`~hpcgym.scheduler.limits.EnergyBudget`, or ``percent`` in place of the first. The
        key of a flag may stand alone.
    where : what messages put before ``cap`` or ``budget``.

    Raises
    ------
    HpcgymError : an unknown key, or a value that cannot be.
    """
    return (
        *(_limit(PowerCap, f"{where}cap", text, machine, _CAP) for text in caps),
        *(_limit(EnergyBudget, f"{where}budget", text, machine, _BUDGET) for text in budgets),
    )


def _limit(
    made: type[PowerCap | EnergyBudget],
    where: str,
    text: str,
    machine: Cluster,
    keys: tuple[str, ...],
) -> Limit:
    """Return one limit."""
    amount = keys[0]
    given: dict[str, Any] = {}
    for part in text.split(","):
        key, equals, value = (word.strip() for word in part.partition("="))
        check_choice(f"{where}: key", key, keys)
        if key in given:
            raise HpcgymError(f"{where} {text}: {key} is there twice")
        given[key] = True if key in _FLAGS and not equals else _value(where, key, value)
    if (amount in given) == ("percent" in given):
        raise HpcgymError(f"{where} {text}: it needs either {amount} or percent")
    if made is EnergyBudget and not {"start", "end"} <= set(given):
        raise HpcgymError(f"{where} {text}: it needs start and end")
    try:
        if "percent" not in given:
            return made(**given)
        share, start = given.pop("percent") / 100, given.pop("start", 0)
        return made.of(machine, share, start, **given)
    except HpcgymError as error:
        raise HpcgymError(f"{where} {text}: {error}") from None


def _value(where: str, key: str, value: str) -> float | int | bool:
    """Return the value of a key: a number, whole where it is a time."""
    if key in _FLAGS:
        if value.lower() in ("yes", "no", "true", "false"):
            return value.lower() in ("yes", "true")
        raise HpcgymError(f"{where}: {key} is yes or no, not {value!r}")
    try:
        return float(value) if key in ("watts", "joules", "percent") else int(value)
    except ValueError:
        kind = "a number" if key in ("watts", "joules", "percent") else "a whole number"
        raise HpcgymError(f"{where}: {key} must be {kind}, not {value!r}") from None
