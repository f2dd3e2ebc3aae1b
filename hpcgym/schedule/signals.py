"""Prices and carbon intensities over time, and limits that follow them.

Glesser 2016, section 8.2, names budgets that follow the price of energy, or what of it is green, as
future work; it gives no rule. The one here is the simplest that keeps the mean.
"""

from __future__ import annotations

import math
import os
import re
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hpcgym.dates import Clock
from hpcgym.errors import HpcgymError, real
from hpcgym.files.tables import csv_rows
from hpcgym.headers import header_number
from hpcgym.machine.pool import Cluster
from hpcgym.machine.power_plans import greatest_w
from hpcgym.scheduler.limits import EnergyBudget, Limit, PowerCap
from hpcgym.units import DAY_S, WEEK_S

if TYPE_CHECKING:
    import pandas as pd

    from hpcgym.schedule.result import Result


# --- Carbon intensities and prices over time ------------------------------------------------------
#
# A signal is a CSV file with a column of times and one of values, whose name ends in its unit::
#
#     time_s,carbon_g_per_kwh        datetime,price_eur_per_mwh
#     0,56.5                         2024-01-01T00:00Z,41.2
#     3600,61.0                      2024-01-01T01:00Z,38.9
#
# Each value holds up to the time of the next; the last one as long as the one before.

Floats = NDArray[np.float64]

JOULES = {"wh": 3.6e3, "kwh": 3.6e6, "mwh": 3.6e9}
#: What the name of a column ends in: such as g_per_kwh, gCO2eq/kWh (direct), EUR/MWh].
_UNIT = re.compile(r"([A-Za-z€$£][\w₂€$£]*?)(?:_per_|/| per )(k?wh|mwh)\b", re.IGNORECASE)
_MASS = re.compile(r"(g|kg|t)(co2(e|eq)?)?", re.IGNORECASE)
_GRAMS = {"g": 1.0, "kg": 1e3, "t": 1e6}
_TIME = re.compile(r"(date|time|timestamp)", re.IGNORECASE)

#: How a signal may be repeated -> its period [s].
PERIODS = {"day": DAY_S, "week": WEEK_S}


@dataclass(frozen=True, eq=False)
class Signal:
    """A quantity for each unit of energy, as a step function of time.

    Attributes
    ----------
    time : (n + 1,) float64 [s], rising; value k holds from ``time[k]`` up to ``time[k + 1]``.
    value : (n,) float64, for each joule.
    unit : what it is counted in, such as "g" or "EUR".
    source : where it comes from, for messages.
    period : seconds after which it repeats; None: it does not.

    Raises
    ------
    HpcgymError : times that do not rise, a value that is no number, or a period that is longer than
        the signal.
    """

    time: Floats
    value: Floats
    unit: str
    source: str = "the signal"
    period: int | None = None

    def __post_init__(self) -> None:
        time, value = np.array(self.time, np.float64), np.array(self.value, np.float64)
        if value.ndim != 1 or time.shape != (len(value) + 1,) or not len(value):
            raise HpcgymError(f"{self.source}: n values need n + 1 times, and at least one")
        if not (np.diff(time) > 0).all() or not np.isfinite(value).all():
            raise HpcgymError(f"{self.source}: times must rise, and values be numbers")
        length = time[-1] - time[0]
        if self.period is not None and length < self.period:
            raise HpcgymError(
                f"{self.source} lasts {length:,.0f} s, less than the {self.period:,} s after which"
                " it is to be repeated"
            )
        if self.period is not None:  # exactly one period
            time, value = time[:-1], value[: int(np.searchsorted(time, time[0] + self.period))]
            time = np.append(time[: len(value)], time[0] + self.period)
        object.__setattr__(self, "time", time)
        object.__setattr__(self, "value", value)

    def integral(self, begin: Any, end: Any) -> Floats:
        """Return the integrals over intervals [s], (n,): watts times them are ``unit``.

        Raises
        ------
        HpcgymError : an interval that the signal does not cover.
        """
        begin, end = np.asarray(begin, np.float64), np.asarray(end, np.float64)
        first, last = begin.min(initial=np.inf), end.max(initial=-np.inf)
        covered = self.time[0] <= first and last <= self.time[-1]
        if self.period is None and not covered and begin.size:
            raise HpcgymError(
                f"{self.source} tells of {self.time[0]:,.0f} s to {self.time[-1]:,.0f} s only, and"
                f" the schedule goes from {first:,.0f} s to {last:,.0f} s; times are those of the"
                " workload, and a signal may be repeated by day or week"
            )
        # of steps apart: sums of whole steps are rounded to what they are of
        lengths = np.diff(self.time) * self.value
        sums = np.concatenate([[0.0], np.cumsum(lengths)])
        turns = np.zeros(begin.shape)
        if self.period is not None:
            of_begin, of_end = ((at - self.time[0]) // self.period for at in (begin, end))
            turns = of_end - of_begin
            begin, end = begin - of_begin * self.period, end - of_end * self.period
        last_step = len(self.value) - 1
        at, to = (
            np.clip(np.searchsorted(self.time, when, "right") - 1, 0, last_step)
            for when in (begin, end)
        )
        apart = (self.time[at + 1] - begin) * self.value[at]
        apart += (sums[to] - sums[at + 1]) + (end - self.time[to]) * self.value[to]
        apart += turns * sums[-1]
        together = (at == to) & (turns == 0)
        return np.asarray(np.where(together, (end - begin) * self.value[at], apart), np.float64)


@dataclass(frozen=True)
class Bill:
    """What the energy of a schedule comes to under a signal.

    Attributes
    ----------
    unit : of all amounts.
    total : of the machine, from the first submission to the last end.
    overhead : of it, what no job is charged with.
    by_job : DataFrame, one row a job: job_number, user_id, amount, with_overhead.
    by_user : DataFrame, one row a user: user_id, jobs, amount, with_overhead.
    """

    unit: str
    total: float
    overhead: float
    by_job: pd.DataFrame
    by_user: pd.DataFrame


def total_of(result: Result, signal: Signal) -> float:
    """Return the integral of power times a signal over the whole schedule.

    Raises
    ------
    HpcgymError : the signal does not cover the schedule, or the power over time is not known.
    """
    return _total(result, signal)[0]


def bill(result: Result, signal: Signal) -> Bill:
    """Return what a schedule, each of its jobs and each user emits or pays.

    Jobs are charged by the rule of :mod:`hpcgym.schedule.books`; ``with_overhead`` spreads what
    no job is charged with over them, in proportion to what they are.

    Raises
    ------
    HpcgymError : as of :func:`total_of`.
    """
    from hpcgym.schedule.energy import by_user, charges

    total, overhead = _total(result, signal)
    charged = result.books.by_job(signal.integral)
    jobs = charges(result, charged, overhead, ("amount", "with_overhead"))
    return Bill(signal.unit, total, overhead, jobs, by_user(jobs))


def _total(result: Result, signal: Signal) -> tuple[float, float]:
    """Return the integral of all power times a signal, and of what is overhead."""
    from hpcgym.schedule.books import OVERHEAD

    books = result.books
    steps = signal.integral(books.time[:-1], books.time[1:])
    parts = {state: math.fsum((watts * steps).tolist()) for state, watts in books.watts().items()}
    return math.fsum(parts.values()), math.fsum(parts[state] for state in OVERHEAD)


def read_signal(
    path: str | os.PathLike[str],
    *,
    time_zero: str | float | None = None,
    repeat: str | None = None,
) -> Signal:
    """Return the signal in a CSV file.

    The first column whose name begins with "time" or "date" is the time: seconds of the workload's
    clock, or ISO date-times, which are UTC unless they tell another zone. The only other column
    whose name has a unit, such as ``carbon_g_per_kwh``, ``gCO2eq/kWh`` or ``EUR/MWh``, is the
    value. Masses become grams.

    Parameters
    ----------
    path : of the file.
    time_zero : ISO date-time or seconds since 1970 of the workload's second 0; needed for
        date-times.
    repeat : "day" or "week": the signal's first day or week is repeated before and after it; None:
        it holds for its own times only.

    Raises
    ------
    HpcgymError : a file that cannot be read, columns that are missing, a time or a value that is
        none, times that do not rise; the message names file and line.
    """
    path = Path(path)
    if repeat is not None and repeat not in PERIODS:
        raise HpcgymError(f"repeat must be one of {', '.join(PERIODS)}, not {repeat!r}")
    rows = csv_rows(path, "a CSV file")
    if len(rows) < 2:
        raise HpcgymError(f"{path} has no values below a line with the names of its columns")
    at_time, at_value, unit, factor = _columns(str(path), rows[0][1])
    zero = None if time_zero is None else _zero(time_zero)
    times, values = [], []
    for number, row in rows[1:]:
        where = f"{path}, line {number}"
        if len(row) <= max(at_time, at_value):
            raise HpcgymError(f"{where}: {len(row)} columns, too few")
        times.append(_seconds(where, row[at_time].strip(), zero))
        values.append(real(row[at_value]) * factor)
        if not math.isfinite(values[-1]):
            raise HpcgymError(f"{where}: {row[at_value]!r} is no number")
        if len(times) > 1 and times[-1] <= times[-2]:
            raise HpcgymError(f"{where}: {row[at_time]} is not later than the time before")
    # the last one as long as the one before; one alone for ever
    times.append(2 * times[-1] - times[-2] if len(times) > 1 else math.inf)
    if len(times) == 2:
        return Signal(np.array([-(2.0**53), 2.0**53]), np.array(values), unit, str(path))
    return Signal(np.array(times), np.array(values), unit, str(path), PERIODS.get(repeat or ""))


def zero_of(header: Any) -> int | None:
    """Return when a workload's second 0 was, in seconds since 1970; None if unknown."""
    return header_number(header, "UnixStartTime")


def _columns(where: str, names: list[str]) -> tuple[int, int, str, float]:
    """Return the columns of times and values, the unit of these, and what makes them of joules."""
    times = [place for place, name in enumerate(names) if _TIME.match(name.strip())]
    units = {place: _UNIT.search(name) for place, name in enumerate(names)}
    values = [(place, unit) for place, unit in units.items() if unit and place not in times[:1]]
    if not times:
        raise HpcgymError(f"{where}: no column's name begins with time or date: {', '.join(names)}")
    if len(values) != 1:
        raise HpcgymError(
            f"{where}: one column's name must end in a unit such as g_per_kwh or eur_per_mwh, not"
            f" {len(values)} of {', '.join(names)}"
        )
    place, unit = values[0]
    quantity, joules = unit[1].rpartition("_")[2], JOULES[unit[2].casefold()]
    mass = _MASS.fullmatch(quantity.replace("₂", "2"))
    if mass:
        return times[0], place, "g", _GRAMS[mass[1].casefold()] / joules
    return times[0], place, quantity.upper(), 1 / joules


def _zero(time_zero: str | float) -> float:
    """Return the time of the workload's second 0 in seconds since 1970."""
    if isinstance(time_zero, str):
        return _date("time_zero", time_zero)
    seconds = real(time_zero)
    if not math.isfinite(seconds):
        raise HpcgymError(f"time_zero must be a date-time or seconds, not {time_zero!r}")
    return seconds


def _seconds(where: str, text: str, zero: float | None) -> float:
    """Return a time in seconds of the workload's clock."""
    seconds = real(text)
    if math.isfinite(seconds):
        return seconds
    date = _date(where, text)
    if zero is None:
        raise HpcgymError(
            f"{where}: {text} is a date-time, and when the workload's second 0 was is not known;"
            " time_zero, or --time-zero, tells it"
        )
    return date - zero


def _date(where: str, text: str) -> float:
    """Return a date-time in seconds since 1970; UTC unless it tells another zone."""
    try:
        return Clock(None).seconds(text)
    except ValueError:
        raise HpcgymError(
            f"{where}: {text!r} is no time in seconds, nor a date-time such as 2024-01-31T12:00Z"
        ) from None


# --- Limits that follow a price or a carbon intensity ---------------------------------------------

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
    >>> from hpcgym.machine import find_cluster
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
