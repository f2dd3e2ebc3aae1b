"""Limits of power and energy, also as texts such as ``percent=60,start=90000,end=93600``."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from hpcgym.errors import HpcgymError, all_of, real, unknown
from hpcgym.machine.power_plans import greatest_w
from hpcgym.units import in_seconds, whole_seconds

if TYPE_CHECKING:
    from hpcgym.machine.pool import Cluster


# --- Limits of power and energy -------------------------------------------------------------------

LATEST = 2**53  # [s] the simulator's clock


@dataclass(frozen=True)
class PowerCap:
    """A limit of the power of the whole machine (Glesser 2016, chapter 4).

    Attributes
    ----------
    watts : the most that the machine may draw, with the devices above its nodes.
    start, end : from and up to which second of the workload's clock; None: for ever.
    announced : from which second on the scheduler knows of it; None: from the beginning.
    kills : whether jobs are killed, the last started first, if the power is above the cap when the
        cap begins, or when it is announced if that is later. Else nothing starts until the power
        has fallen below.

    Raises
    ------
    HpcgymError : no power of at least 0 W, times that are no whole seconds from 0 on, a cap that
        ends before it begins, or is announced after its end.
    """

    watts: float
    start: int = 0
    end: int | None = None
    announced: int | None = None
    kills: bool = False

    def __post_init__(self) -> None:
        where = "cap"
        object.__setattr__(self, "watts", _amount(where, "watts", self.watts))
        _window(self, where)
        if self.announced is not None:
            settled = whole_seconds(f"{where}: announced", self.announced, 0, LATEST)
            object.__setattr__(self, "announced", settled)
            if self.end is not None and settled >= self.end:
                raise HpcgymError(f"cap: it ends at {self.end} s, before it is announced")
        object.__setattr__(self, "kills", bool(self.kills))

    @classmethod
    def of(cls, cluster: Cluster, share: float, start: int = 0, **others: Any) -> PowerCap:
        """Return a cap at a share of what a machine draws when all its nodes are busy."""
        return cls(_share(share) * _greatest_w(cluster), start, **others)


@dataclass(frozen=True)
class EnergyBudget:
    """A limit of the energy of the whole machine in a period (Glesser 2016, chapter 5).

    Attributes
    ----------
    joules : the most that the machine may use in the period, with the devices above its nodes.
    start, end : from and up to which second of the workload's clock.
    period : [s] between two looks at the meter, the first at the start.
    shutdown : whether idle nodes are switched off during the period.
    free_node_w : what the rule ``power`` reckons a node without a job to draw [W], whether it is on
        or off, with the devices above it on (section 5.3.4: a fixed value). The meter sees what is
        really drawn; so what nodes save that are off becomes known at the next look. None: what a
        node draws in its state.

    Raises
    ------
    HpcgymError : no energy or power of at least 0, times that are no whole seconds from 0 on, a
        budget that ends before it begins, or a flag that is not True or False.
    """

    joules: float
    start: int
    end: int
    period: int = 600
    shutdown: bool = False
    free_node_w: float | None = None

    def __post_init__(self) -> None:
        where = "budget"
        object.__setattr__(self, "joules", _amount(where, "joules", self.joules))
        if self.end is None:
            raise HpcgymError("budget: it needs an end")
        _window(self, where)
        settled = whole_seconds(f"{where}: period", self.period, 1, LATEST)
        object.__setattr__(self, "period", settled)
        object.__setattr__(self, "shutdown", _flag(where, "shutdown", self.shutdown))
        if self.free_node_w is not None:
            watts = _amount(where, "free_node_w", self.free_node_w)
            object.__setattr__(self, "free_node_w", watts)

    @classmethod
    def of(
        cls, cluster: Cluster, share: float, start: int, end: int, **others: Any
    ) -> EnergyBudget:
        """Return a budget of a share of what a machine uses when all its nodes are busy."""
        start, end = in_seconds(start, "start"), in_seconds(end, "end")
        return cls(_share(share) * _greatest_w(cluster) * (end - start), start, end, **others)


Limit = PowerCap | EnergyBudget


def check_limits(limits: Any) -> tuple[Limit, ...]:
    """Return limits as a tuple, checked.

    Raises
    ------
    HpcgymError : something that is no limit, or budgets of which two periods overlap.
    """
    listed = [limits] if isinstance(limits, Limit) else limits
    if not isinstance(listed, Iterable) or isinstance(listed, str):
        raise HpcgymError(f"limits must be PowerCap and EnergyBudget, not {limits!r}")
    checked = tuple(listed)
    for limit in checked:
        if not isinstance(limit, Limit):
            raise HpcgymError(f"limits must be PowerCap and EnergyBudget, not {limit!r}")
    budgets = sorted(
        (budget.start, budget.end) for budget in checked if isinstance(budget, EnergyBudget)
    )
    for (_, end), (start, _) in pairwise(budgets):
        if start < end:
            raise HpcgymError(
                f"limits: two budgets hold at {start} s; their periods must not overlap"
            )
    return checked


def _window(limit: Any, where: str) -> None:
    """Settle start and end of a limit, or say what is wrong with them."""
    start = whole_seconds(f"{where}: start", limit.start, 0, LATEST)
    object.__setattr__(limit, "start", start)
    if limit.end is not None:
        end = whole_seconds(f"{where}: end", limit.end, 0, LATEST)
        object.__setattr__(limit, "end", end)
        if end <= start:
            raise HpcgymError(f"{where}: it ends at {end} s, not after its start at {start} s")


def _amount(where: str, name: str, amount: Any) -> float:
    """Return watts or joules as a float, or say that they are not."""
    number = real(amount)
    if not 0 <= number < math.inf:
        raise HpcgymError(f"{where}: {name} must be a number of at least 0, not {amount!r}")
    return number


def _flag(where: str, name: str, value: Any) -> bool:
    """Return a flag, or say that it is not one."""
    if not isinstance(value, bool | np.bool_):
        raise HpcgymError(f"{where}: {name} must be True or False, not {value!r}")
    return bool(value)


def _share(share: Any) -> float:
    """Return a share as a float, or say that it is not one."""
    number = real(share)
    if not 0 <= number <= 1:
        raise HpcgymError(
            f"share must be a number from 0 to 1, not {share!r}; 60 % is 0.6, or as a text"
            " percent=60. More than 100 % of what all busy nodes draw would limit nothing"
        )
    return number


def _greatest_w(cluster: Any) -> float:
    """Return what a machine draws when all its nodes are busy [W]."""
    if isinstance(cluster, str):
        raise HpcgymError(
            f"cluster must be a Cluster, not its name: hpcgym.machine.find_cluster({cluster!r})"
        )
    return greatest_w(cluster)


# --- Limits as texts, such as ``percent=60,start=90000,end=93600`` --------------------------------

_KEYS = {
    PowerCap: ("watts", "percent", "start", "end", "announced", "kills"),
    EnergyBudget: ("joules", "percent", "start", "end", "period", "shutdown", "free_node_w"),
}
_FLAGS = ("kills", "shutdown")
_NUMBERS = {
    "watts": "a number",
    "joules": "a number",
    "percent": "a number",
    "free_node_w": "a number",
    "swing": "a number from 0 to 1",
}
#: What a limit may follow -> the metric whose signal that is.
FOLLOWED = {"price": "cost", "carbon": "carbon_g"}


def read_limits(machine: Cluster, caps: Iterable[str], budgets: Iterable[str]) -> tuple[Limit, ...]:
    """Return the limits that texts describe, caps first. None follows a signal.

    Parameters
    ----------
    machine : percents are of its power [W], or energy [J], with all nodes busy.
    caps, budgets : of each a text ``KEY=VALUE,...``. The keys are the arguments of
        :class:`~hpcgym.scheduler.limits.PowerCap` and
        :class:`~hpcgym.scheduler.limits.EnergyBudget`, or ``percent`` in place of the first. The
        key of a flag may stand alone.

    Raises
    ------
    HpcgymError : an unknown key, or a value that cannot be.
    """

    def read(made: type[PowerCap | EnergyBudget], at: str, text: str) -> Limit:
        return _limit(made, at, text, machine, _values(at, text, _KEYS[made]))

    return (
        *(read(PowerCap, "cap", text) for text in caps),
        *(read(EnergyBudget, "budget", text) for text in budgets),
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
    The limit, with its mean if it is to follow a signal; the name of the signal, "" if none; and
    its swing, 0 if none. :func:`hpcgym.schedule.signals.follow` turns these into the limits that
    are kept, and refuses impossible swings.

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

    def read(part: str) -> None:
        key, equals, value = (word.strip() for word in part.partition("="))
        if key not in keys:
            raise HpcgymError(f"{where}: {unknown('key', key, keys)}")
        if key in given:
            raise HpcgymError(f"{where} {text}: {key} is there twice")
        given[key] = True if key in _FLAGS and not equals else _value(where, key, value)

    all_of(read, text.split(","))
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
        return float(value) if key in _NUMBERS else operator.index(in_seconds(value, key))
    except (TypeError, ValueError):
        kind = _NUMBERS.get(key, "whole seconds, or a duration such as 25h")
        dates = "; a limit knows no dates or hours of the day" if ":" in value else ""
        raise HpcgymError(f"{where}: {key} must be {kind}, not {value!r}{dates}") from None
