"""Options for limits of power and energy, and for carbon intensities and prices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from hpcgym.cli.options import given_rules
from hpcgym.errors import HpcgymError, reworded

if TYPE_CHECKING:
    from hpcgym.cluster import Cluster
    from hpcgym.schedule.result import Result
    from hpcgym.schedule.signals import Signal
    from hpcgym.scheduler.limits import Limit
    from hpcgym.scheduler.rules import Scheduler
    from hpcgym.workload import Workload


# --- Options for limits of power and energy -------------------------------------------------------


class Asked(NamedTuple):
    """A limit of the options, and what it follows.

    Attributes
    ----------
    limit, follow, swing : as :func:`hpcgym.scheduler.limits.read_limit` returns them.
    text : as it was given, with its option, for messages.
    """

    limit: Limit
    follow: str
    swing: float
    text: str


@dataclass(frozen=True)
class LimitOptions:
    """Limits of power and energy, and how they are kept.

    Power
    -----
    cap KEY=VALUE,... : A limit of power, on a machine of --cluster, such as
        percent=60,start=90000,end=93600. watts, or percent of the power with all nodes busy; start
        and end, seconds of the workload; announced, the time from which it is known; kills, if jobs
        are killed for it. follow=price or follow=carbon, with swing from 0 to 1: the limit is
        higher when the signal of --price or --carbon is lower, with the same mean. May be repeated.
    budget KEY=VALUE,... : A limit of energy, such as percent=60,start=86400,end=345600,shutdown.
        joules, or percent of the energy with all nodes busy; start and end; period, the seconds
        between two readings of the meter; shutdown, if idle nodes are switched off; off_as_idle, if
        nodes that are off count as idle until the meter is read. follow and swing work as in --cap.
        May be repeated.
    power none|shut|dvfs|mix|powercap|reduce-pc|energy-bud : How limits are kept: nodes are switched
        off (shut), jobs are slowed down (dvfs), both (mix), or neither; under budgets powercap,
        reduce-pc or energy-bud. Each job then has nodes of its own.
    """

    cap: list[str] | None = None
    budget: list[str] | None = None
    power: str | None = None

    def given(self) -> dict[str, Any]:
        """Return the rules of schedulers that were given."""
        return given_rules(power=self.power)

    def read(self, machine: Cluster | None) -> tuple[Asked, ...] | None:
        """Return the limits; None without any of these options.

        Raises
        ------
        HpcgymError : limits without a machine, a rule for limits without any, an unknown key, or a
            value that cannot be; the message names the option.
        """
        given = self.cap or self.budget
        if not given and self.power is None:
            return None
        if not given and self.power != "none":
            raise HpcgymError(
                f"--power {self.power} says how limits are kept, and there are none: give --cap or"
                " --budget"
            )
        if machine is None or not machine.groups:
            raise HpcgymError(
                "--cap, --budget and --power are for machines whose nodes have a power; --cluster"
                " says which"
            )
        from hpcgym.scheduler.limits import EnergyBudget, PowerCap, read_limit

        return tuple(
            Asked(*read_limit(machine, made, text, option), f"{option} {text}")
            for option, made, texts in (
                ("--cap", PowerCap, self.cap),
                ("--budget", EnergyBudget, self.budget),
            )
            for text in texts or ()
        )


def check(asked: Sequence[Asked] | None, schedulers: Mapping[str, Scheduler]) -> None:
    """Say before the work which schedulers do not go with the limits, or with none.

    Parameters
    ----------
    asked : what :meth:`LimitOptions.read` returns.
    schedulers : name -> rules that are to be simulated.
    """
    from hpcgym.simulation.limited import check_for_limits, check_power_rule

    for name, scheduler in schedulers.items():
        try:
            check_power_rule(scheduler, asked)
            if asked is not None:
                check_for_limits(scheduler)
        except HpcgymError as error:
            raise reworded(error, f"{name}: {error}") from None


def following(
    asked: Sequence[Asked] | None, signals: Mapping[str, Signal], machine: Cluster | None
) -> tuple[Limit, ...] | None:
    """Return the limits that a simulation keeps: what follows a signal as many.

    Parameters
    ----------
    asked : what :meth:`LimitOptions.read` returns.
    signals : metric -> signal, of ``--price`` and ``--carbon``.
    machine : that of ``--cluster``.

    Raises
    ------
    HpcgymError : a signal that was not given, or that the limit cannot follow.
    """
    if asked is None:
        return None
    from hpcgym.schedule.signals import follow
    from hpcgym.scheduler.limits import FOLLOWED

    found: list[Limit] = []
    for one in asked:
        if not one.follow:
            found.append(one.limit)
            continue
        signal = signals.get(FOLLOWED[one.follow])
        if signal is None or machine is None:
            raise HpcgymError(f"{one.text}: it needs --{one.follow} FILE")
        try:
            found += follow(one.limit, signal, one.swing, machine)
        except HpcgymError as error:
            raise HpcgymError(f"{one.text}: {error}") from None
    return tuple(found)


#: Options of commands that are arguments of one environment or the other.
_OF_ENVIRONMENTS = {
    "share": ("hpcgym/EnergyBudget-v0", "hpcgym/PowerCap-v0"),
    "shutdown": ("hpcgym/EnergyBudget-v0",),
}


def of_environment(env: str | None, share: float | None, shutdown: bool | None) -> dict[str, Any]:
    """Return what was given of an environment's limits.

    Raises
    ------
    HpcgymError : an option of another environment.
    """
    given: dict[str, Any] = {} if share is None else {"share": share}
    given |= {} if shutdown is None else {"shutdown": shutdown}
    for name in given:
        if env is not None and env not in _OF_ENVIRONMENTS[name]:
            raise HpcgymError(f"--{name} is for {' and '.join(_OF_ENVIRONMENTS[name])}, not {env}")
    return given


# --- Options for carbon intensities and prices ----------------------------------------------------


@dataclass(frozen=True)
class SignalOptions:
    """What energy costs, and how much carbon it stands for, over time.

    Power
    -----
    carbon FILE : CSV file with the carbon intensity over time, such as the columns time_s and
        g_per_kwh: adds the metric carbon_g.
    price FILE : CSV file with the price of energy over time, such as the columns datetime and
        eur_per_mwh: adds the metric cost.
    time_zero DATE : The date of the workload's second 0, such as 2024-01-01T00:00Z, for --carbon
        and --price with date-times; by default the date in its header.
    repeat day|week : Repeat the first day or week of --carbon and --price before and after it.
    """

    carbon: Path | None = None
    price: Path | None = None
    time_zero: str | None = None
    repeat: str | None = None

    def read(self, jobs: Workload, machine: Cluster | None) -> dict[str, Signal]:
        """Return the signals by the metric that they make."""
        if self.carbon is None and self.price is None:
            if self.time_zero is not None or self.repeat is not None:
                raise HpcgymError("--time-zero and --repeat are for --carbon and --price")
            return {}
        from hpcgym.schedule.metrics import watts_given
        from hpcgym.schedule.signals import read_signal, zero_of

        if not watts_given(machine, jobs):
            raise HpcgymError(
                "--carbon and --price need watts, and nobody gave any: name a machine with powers,"
                " such as --cluster taurus, or a TOML file with idle_power_w and busy_power_w"
            )
        zero = zero_of(jobs.header) if self.time_zero is None else self.time_zero
        found = {}
        for metric, path in (("carbon_g", self.carbon), ("cost", self.price)):
            if path is None:
                continue
            signal = read_signal(path, time_zero=zero, repeat=self.repeat)
            if (signal.unit == "g") != (metric == "carbon_g"):
                wanted = "grams" if metric == "carbon_g" else "money"
                raise HpcgymError(f"{path} tells {signal.unit}, not {wanted}, for its energy")
            found[metric] = signal
        return found


def add_metrics(result: Result, signals: Mapping[str, Signal]) -> None:
    """Add to a result's metrics what its energy comes to."""
    if not signals:
        return
    from hpcgym.schedule.signals import total_of

    for metric, signal in signals.items():
        result.metrics[metric] = total_of(result, signal)
