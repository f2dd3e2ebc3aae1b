"""Options for limits of power and energy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from hpcgym.errors import HpcgymError, check_choice

if TYPE_CHECKING:
    from hpcgym.cluster import Cluster
    from hpcgym.scheduler.limits import Limit

CapOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="KEY=VALUE,...",
        help="A limit of power, on a machine of --cluster: watts, or percent of all nodes busy;"
        " start and end, seconds of the workload; announced, from when on it is known; kills, if"
        " jobs are killed for it. Such as percent=60,start=90000,end=93600. May be repeated.",
        show_default=False,
    ),
]
BudgetOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="KEY=VALUE,...",
        help="A limit of energy: joules, or percent of all nodes busy; start and end; period, the"
        " seconds between two looks at the meter; shutdown, if idle nodes are switched off. Such as"
        " percent=60,start=86400,end=345600,shutdown. May be repeated.",
        show_default=False,
    ),
]
PowerOption = Annotated[
    str | None,
    typer.Option(
        metavar="none|shut|dvfs|mix|powercap|reduce-pc|energy-bud",
        help="How limits are kept: nodes are switched off (shut), jobs are slowed down (dvfs), both"
        " (mix), or neither; under budgets powercap, reduce-pc or energy-bud. Each job has nodes of"
        " its own then.",
        show_default=False,
    ),
]

_CAP = ("watts", "percent", "start", "end", "announced", "kills")
_BUDGET = ("joules", "percent", "start", "end", "period", "shutdown")
_FLAGS = ("kills", "shutdown")


def read(
    machine: Cluster | None, caps: list[str] | None, budgets: list[str] | None, power: str | None
) -> list[Limit] | None:
    """Return the limits of the options; None without any of them.

    Raises
    ------
    HpcgymError : limits without a machine, an unknown key, or a value that cannot be; the message
        names the option.
    """
    if not caps and not budgets and power is None:
        return None
    if machine is None or not machine.groups:
        raise HpcgymError(
            "--cap, --budget and --power are for machines whose nodes have a power; --cluster says"
            " which"
        )
    return [
        *(_limit("--cap", text, machine, _CAP) for text in caps or ()),
        *(_limit("--budget", text, machine, _BUDGET) for text in budgets or ()),
    ]


def _limit(option: str, text: str, machine: Cluster, keys: tuple[str, ...]) -> Limit:
    """Return one limit."""
    from hpcgym.scheduler.limits import EnergyBudget, PowerCap

    made: type[PowerCap | EnergyBudget] = PowerCap if option == "--cap" else EnergyBudget
    amount = keys[0]
    given: dict[str, Any] = {}
    for part in text.split(","):
        key, equals, value = (word.strip() for word in part.partition("="))
        check_choice(f"{option}: key", key, keys)
        given[key] = True if key in _FLAGS and not equals else _number(option, key, value)
    if (amount in given) == ("percent" in given):
        raise HpcgymError(f"{option} {text}: it needs either {amount} or percent")
    if option == "--budget" and not {"start", "end"} <= set(given):
        raise HpcgymError(f"{option} {text}: it needs start and end")
    try:
        if "percent" not in given:
            return made(**given)
        share, start = given.pop("percent") / 100, given.pop("start", 0)
        return made.of(machine, share, start, **given)
    except HpcgymError as error:
        raise HpcgymError(f"{option} {text}: {error}") from None


def _number(option: str, key: str, value: str) -> float | int | bool:
    """Return the value of a key: a number, whole where it is a time."""
    if key in _FLAGS:
        if value.lower() in ("yes", "no", "true", "false"):
            return value.lower() in ("yes", "true")
        raise HpcgymError(f"{option}: {key} is yes or no, not {value!r}")
    try:
        return float(value) if key in ("watts", "joules", "percent") else int(value)
    except ValueError:
        kind = "a number" if key in ("watts", "joules", "percent") else "a whole number"
        raise HpcgymError(f"{option}: {key} must be {kind}, not {value!r}") from None


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
