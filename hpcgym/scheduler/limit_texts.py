"""Limits as texts, such as ``percent=60,start=90000,end=93600``: of options and of experiments."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from hpcgym.errors import HpcgymError, check_choice
from hpcgym.scheduler.limits import EnergyBudget, Limit, PowerCap

if TYPE_CHECKING:
    from hpcgym.cluster.pool import Cluster

_KEYS = {
    PowerCap: ("watts", "percent", "start", "end", "announced", "kills"),
    EnergyBudget: ("joules", "percent", "start", "end", "period", "shutdown", "off_as_idle"),
}
_FLAGS = ("kills", "shutdown", "off_as_idle")
_NUMBERS = {
    "watts": "a number",
    "joules": "a number",
    "percent": "a number",
    "swing": "a number from 0 to 1",
}
#: What a limit may follow -> the metric whose signal that is.
FOLLOWED = {"price": "cost", "carbon": "carbon_g"}


def read_limits(
    machine: Cluster, caps: Iterable[str], budgets: Iterable[str], where: str = ""
) -> tuple[Limit, ...]:
    """Return the limits that texts describe, caps first. None follows a signal.

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

    def read(made: type[PowerCap | EnergyBudget], at: str, text: str) -> Limit:
        return _limit(made, at, text, machine, _values(at, text, _KEYS[made]))

    return (
        *(read(PowerCap, f"{where}cap", text) for text in caps),
        *(read(EnergyBudget, f"{where}budget", text) for text in budgets),
    )


def read_limit(
    machine: Cluster, made: type[PowerCap | EnergyBudget], text: str, where: str
) -> tuple[Limit, str, float]:
    """Return the limit that one text describes, what it is to follow, and how far.

    Parameters
    ----------
    machine, text : as :func:`read_limits` takes them; two more keys are ``follow``, one of
        :data:`FOLLOWED`, and ``swing``, a number from 0 to 1: both or neither.
    made : what it describes.
    where : what messages begin with.

    Returns
    -------
    The limit, with its mean if it is to follow anything; what it follows, "" if nothing; and its
    swing, then 0. :func:`hpcgym.schedule.following.follow` makes of these what is kept, and says
    which swings cannot be.

    Raises
    ------
    HpcgymError : an unknown key, or a value that cannot be.
    """
    given = _values(where, text, (*_KEYS[made], "follow", "swing"))
    if ("follow" in given) != ("swing" in given):
        raise HpcgymError(f"{where} {text}: following a signal needs both follow and swing")
    follow, swing = given.pop("follow", ""), given.pop("swing", 0.0)
    return _limit(made, where, text, machine, given), follow, swing


def _values(where: str, text: str, keys: tuple[str, ...]) -> dict[str, Any]:
    """Return key -> value of a text."""
    given: dict[str, Any] = {}
    for part in text.split(","):
        key, equals, value = (word.strip() for word in part.partition("="))
        check_choice(f"{where}: key", key, keys)
        if key in given:
            raise HpcgymError(f"{where} {text}: {key} is there twice")
        given[key] = True if key in _FLAGS and not equals else _value(where, key, value)
    return given


def _limit(
    made: type[PowerCap | EnergyBudget],
    where: str,
    text: str,
    machine: Cluster,
    given: dict[str, Any],
) -> Limit:
    """Return one limit with these values."""
    amount = _KEYS[made][0]
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


def _value(where: str, key: str, value: str) -> float | int | bool | str:
    """Return the value of a key: a number, whole where it is a time."""
    if key == "follow":
        if value not in FOLLOWED:
            raise HpcgymError(f"{where}: follow must be {' or '.join(FOLLOWED)}, not {value!r}")
        return value
    if key in _FLAGS:
        if value.lower() in ("yes", "no", "true", "false"):
            return value.lower() in ("yes", "true")
        raise HpcgymError(f"{where}: {key} is yes or no, not {value!r}")
    try:
        return float(value) if key in _NUMBERS else int(value)
    except ValueError:
        kind = _NUMBERS.get(key, "a whole number")
        raise HpcgymError(f"{where}: {key} must be {kind}, not {value!r}") from None
