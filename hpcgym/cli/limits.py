"""Options for limits of power and energy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hpcgym.errors import HpcgymError

if TYPE_CHECKING:
    from hpcgym.cluster import Cluster
    from hpcgym.scheduler.limits import Limit


@dataclass(frozen=True)
class LimitOptions:
    """Limits of power and energy, and how they are kept."""

    cap: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY=VALUE,...",
            help="A limit of power, on a machine of --cluster: watts, or percent of all nodes"
            " busy; start and end, seconds of the workload; announced, from when on it is known;"
            " kills, if jobs are killed for it. Such as percent=60,start=90000,end=93600. May be"
            " repeated.",
            show_default=False,
        ),
    ] = None
    budget: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY=VALUE,...",
            help="A limit of energy: joules, or percent of all nodes busy; start and end; period,"
            " the seconds between two looks at the meter; shutdown, if idle nodes are switched"
            " off; off_as_idle, if nodes that are off are reckoned as idle until the meter tells."
            " Such as percent=60,start=86400,end=345600,shutdown. May be repeated.",
            show_default=False,
        ),
    ] = None
    power: Annotated[
        str | None,
        typer.Option(
            metavar="none|shut|dvfs|mix|powercap|reduce-pc|energy-bud",
            help="How limits are kept: nodes are switched off (shut), jobs are slowed down (dvfs),"
            " both (mix), or neither; under budgets powercap, reduce-pc or energy-bud. Each job"
            " has nodes of its own then.",
            show_default=False,
        ),
    ] = None

    def read(self, machine: Cluster | None) -> tuple[Limit, ...] | None:
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
        from hpcgym.scheduler.limit_texts import read_limits

        return read_limits(machine, self.cap or (), self.budget or (), where="--")


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
