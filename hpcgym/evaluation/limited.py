"""Evaluations under limits of power and energy: which baselines there are, and what is measured."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from hpcgym.baselines import SCHEDULERS
from hpcgym.errors import HpcgymError
from hpcgym.schedule.result import Result
from hpcgym.scheduler.limits import EnergyBudget, Limit
from hpcgym.scheduler.rules import POWER, Scheduler
from hpcgym.simulation.limited import check_for_limits
from hpcgym.workload import Workload

#: Metrics of a schedule under limits that have intervals of their own [J].
ENERGIES = ("energy_j", "limited_energy_j")

#: The rule that all are compared with where there are budgets: the plainest of those made for them.
REFERENCE = "powercap"

_FOR_BUDGETS = ("powercap", "reduce-pc", "energy-bud")
_FOR_CAPS = ("shut", "dvfs", "mix")


class Limits(NamedTuple):
    """The limits that an environment sets, and how it keeps them.

    Attributes
    ----------
    of : returns the limits of an episode's jobs, in seconds of their clock.
    power : a name of :data:`hpcgym.scheduler.rules.POWER`.
    """

    of: Callable[[Workload], tuple[Limit, ...]]
    power: str


def limits_of(env: Any) -> Limits | None:
    """Return the limits of an environment; None if it has none."""
    from hpcgym.envs import SchedulingEnv  # takes long to import

    limits = env.simulations.machines.limits_of if isinstance(env, SchedulingEnv) else None
    return None if limits is None else Limits(limits, env.options.scheduler.power)


def ruled(name: str) -> tuple[str, str] | None:
    """Return the rule and the scheduler of a row such as "powercap" or "reduce-pc+saf".

    A rule alone stands for EASY under it. None: the name is of another kind.
    """
    rule, plus, order = name.partition("+")
    if rule not in POWER or (plus and order not in SCHEDULERS):
        return None
    return rule, order if plus else "easy"


def check_rows(
    lineup: Mapping[str, Any], limits: Limits | None, slices: Sequence[Workload]
) -> None:
    """Raise an HpcgymError for rows that keep no limits, or keep such as there are not.

    Parameters
    ----------
    lineup : name of each row -> its scheduler, or what acts.
    limits : of the environment.
    slices : the jobs of each slice.
    """
    found = {isinstance(one, EnergyBudget) for jobs in slices for one in _of(limits, jobs)}
    for name, scheduler in lineup.items():
        if not isinstance(scheduler, Scheduler):
            continue
        rule = scheduler.power
        if limits is None and (rule != "none" or ruled(name) is not None):
            raise HpcgymError(
                f"{name} keeps limits, and there are none: give env='hpcgym/EnergyBudget-v0'"
                " (--env EnergyBudget), or a saved agent of such an environment"
            )
        if limits is None:
            continue
        try:
            check_for_limits(scheduler)
        except HpcgymError as error:
            raise HpcgymError(f"{name} keeps no limits of power and energy: {error}") from None
        if rule in _FOR_BUDGETS and True not in found:
            raise HpcgymError(f"{name} is for budgets, and the environment has none")
        if rule in _FOR_CAPS and rule != limits.power and False not in found:
            raise HpcgymError(f"{name} is for caps, and the environment has none")


def _of(limits: Limits | None, jobs: Workload) -> tuple[Limit, ...]:
    return () if limits is None else limits.of(jobs)


def references(limits: Limits | None, slices: Sequence[Workload]) -> tuple[str, ...]:
    """Return the rules that are always among the rows."""
    budgets = any(isinstance(one, EnergyBudget) for jobs in slices for one in _of(limits, jobs))
    return (REFERENCE,) if budgets else ()


def measured(result: Result) -> dict[str, float]:
    """Return the energy of a schedule: all of it, and that while limits hold [J].

    A second in which several limits hold counts once.
    """
    books = result.books
    used, done, last = 0.0, 0, int(books.time[-1])
    windows = [(one.start, last if one.end is None else one.end) for one in result.limits or ()]
    for start, end in sorted(windows):
        begin = max(start, done)
        if end <= begin:
            continue
        used += books.joules(begin, end)
        done = end
    return {"energy_j": float(result.metrics["energy_j"]), "limited_energy_j": used}


def same_limits(one: Limits | None, other: Limits | None, slices: Sequence[Workload]) -> bool:
    """Tell whether two environments set the same limits to the same slices, and keep them alike."""
    if one is None or other is None:
        return one is other
    return one.power == other.power and all(one.of(jobs) == other.of(jobs) for jobs in slices)
