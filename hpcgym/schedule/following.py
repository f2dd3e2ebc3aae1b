"""Limits that follow a price or a carbon intensity: more power where energy is cheap or clean.

Glesser 2016, section 8.2, names budgets that follow the price of energy, or what of it is green, as
future work; it gives no rule. The one here is the simplest that keeps the mean.
"""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from hpcgym.cluster.numbers import real
from hpcgym.cluster.pool import Cluster
from hpcgym.cluster.power_plans import greatest_w
from hpcgym.errors import HpcgymError
from hpcgym.schedule.signals import Signal
from hpcgym.scheduler.limits import EnergyBudget, Limit, PowerCap

#: Limits that one may become: each costs every pass a little.
MOST = 100_000
_ROUNDING = 1e-9


def follow(limit: Limit, signal: Signal, swing: float, cluster: Cluster) -> tuple[Limit, ...]:
    """Return limits of the same mean power in place of one, higher where a signal is lower.

    There is one for each step of the signal, in order. With the mean power W of the limit [W], the
    mean m of the signal while it holds, and d, how far the signal is from m at most, a step of
    value v has the power ::

        W (1 + swing (m - v) / d)

    whose mean over time is W: the joules of budgets add up to those of the limit, but for rounding.
    A signal that does not change gives W throughout. What a budget leaves does not go over to the
    next.

    Parameters
    ----------
    limit : a budget, or a cap that has an end and is announced by its start.
    signal : such as a price or a carbon intensity; its steps begin at the nearest whole seconds.
    swing : from 0, all steps alike, to 1, where the step that is farthest from the mean has twice
        the mean power, or none.
    cluster : the machine; no step may have more power than it can draw.

    Raises
    ------
    HpcgymError : a swing out of range, or so large that a step has more power than the machine can
        draw; a cap without an end, or announced after its start; a signal that does not cover the
        limit, or has more than 100,000 steps while it holds.

    Examples
    --------
    >>> import numpy as np
    >>> from hpcgym.cluster import find_cluster
    >>> from hpcgym.schedule.signals import Signal
    >>> from hpcgym.scheduler.limits import EnergyBudget
    >>> price = Signal(np.array([0.0, 3600.0, 7200.0]), np.array([30.0, 90.0]), "EUR")
    >>> taurus = find_cluster("taurus")
    >>> [one.joules for one in follow(EnergyBudget(1e7, 0, 7200), price, 0.5, taurus)]
    [7500000.0, 2500000.0]
    """
    settled = real(swing)
    if not 0 <= settled <= 1:
        raise HpcgymError(f"swing must be a number from 0 to 1, not {swing!r}")
    start, end = _window(limit)
    at = _steps(signal, start, end)
    lengths = np.diff(at)
    value = signal.integral(at[:-1], at[1:]) / lengths
    mean = float((value * lengths).sum() / (end - start))
    apart = mean - value
    greatest = float(np.abs(apart).max())
    # that of a signal which does not change is but rounding
    if greatest <= _ROUNDING * abs(mean):
        apart, greatest = np.zeros(len(value)), 1.0
    factor = np.maximum(1 + settled * apart / greatest, 0.0)
    watts = limit.watts if isinstance(limit, PowerCap) else limit.joules / (end - start)
    _check_power(float(factor.max()), watts, float(apart.max() / greatest), cluster)
    windows = list(pairwise(at.astype(int).tolist()))
    if isinstance(limit, PowerCap):
        return tuple(
            replace(limit, watts=watts * float(f), start=begin, end=until)
            for f, (begin, until) in zip(factor, windows, strict=True)
        )
    joules = limit.joules * (lengths / (end - start)) * factor
    return tuple(
        replace(limit, joules=float(j), start=begin, end=until)
        for j, (begin, until) in zip(joules, windows, strict=True)
    )


def _window(limit: Limit) -> tuple[int, int]:
    """Return when a limit holds, or say why it cannot follow anything."""
    if isinstance(limit, EnergyBudget):
        return limit.start, limit.end
    if limit.end is None:
        raise HpcgymError("a cap that follows a signal needs an end")
    if limit.announced is not None and limit.announced > limit.start:
        raise HpcgymError(
            f"a cap that follows a signal must be announced by its start, {limit.start} s, not at"
            f" {limit.announced} s"
        )
    return limit.start, limit.end


def _steps(signal: Signal, start: int, end: int) -> NDArray[np.float64]:
    """Return when the steps of a signal begin in a window, and its end; whole seconds."""
    times = signal.time
    if signal.period is None and not times[0] <= start < end <= times[-1]:
        raise HpcgymError(
            f"{signal.source} tells of {times[0]:,.0f} s to {times[-1]:,.0f} s only, and the limit"
            f" holds from {start:,} s to {end:,} s; times are those of the workload, and a signal"
            " may be repeated by day or week"
        )
    if signal.period is not None:
        first = math.floor((start - times[0]) / signal.period)
        turns = math.ceil((end - times[0]) / signal.period) - first
        _check_number(turns * len(signal.value))
        begins = times[0] + signal.period * (first + np.arange(turns))
        times = (begins[:, None] + (times[:-1] - times[0])[None, :]).ravel()
    inside = np.rint(times[(start < times) & (times < end)])
    at = np.unique(np.concatenate([[start], inside, [end]]))
    _check_number(len(at) - 1)
    return at


def _check_number(steps: int) -> None:
    if steps > MOST:
        raise HpcgymError(
            f"the signal has {steps:,} steps while the limit holds, of which {MOST:,} may be"
        )


def _check_power(factor: float, watts: float, above: float, cluster: Cluster) -> None:
    """Raise an HpcgymError for more power than the machine can draw: it could not be spent.

    Parameters
    ----------
    factor : the greatest power over the mean.
    watts : the mean.
    above : how far the signal's least value is below its mean, over its greatest distance.
    cluster : the machine.
    """
    most = greatest_w(cluster)
    if factor > 1 and factor * watts > most * (1 + _ROUNDING):
        can = max((most / watts - 1) / above, 0.0)
        raise HpcgymError(
            f"at the signal's least value the limit would be {factor * watts:,.0f} W, and the"
            f" machine can draw {most:,.0f} W: with a mean of {watts:,.0f} W, swing may be up to"
            f" {math.floor(1000 * can + 1e-6) / 1000:g}"
        )
