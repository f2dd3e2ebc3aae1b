"""Experiments under limits of power and energy: sets of limits, and what goes with them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hpcgym.errors import HpcgymError
from hpcgym.scheduler.limit_texts import read_limits
from hpcgym.scheduler.limits import PowerCap, check_limits
from hpcgym.simulation.limited import check_for_limits, check_power_rule
from hpcgym.simulation.limited_machine import (
    check_off_as_idle,
    may_switch,
    node_power,
    nodes_off,
)
from hpcgym.sweep.corun import at, machine_of

if TYPE_CHECKING:
    from hpcgym.scheduler.rules import Scheduler
    from hpcgym.sweep.source import Source


@dataclass(frozen=True)
class LimitSet:
    """Limits that hold in the same simulations; none: jobs have nodes of their own all the same.

    Attributes
    ----------
    name : what it is called in tables.
    cap, budget : texts, as :func:`hpcgym.scheduler.limit_texts.read_limits` takes them.
    """

    name: str
    cap: tuple[str, ...] = ()
    budget: tuple[str, ...] = ()

    def describe(self) -> dict[str, Any]:
        """Return what a manifest has of it."""
        return {key: list(v) if isinstance(v, tuple) else v for key, v in asdict(self).items()}


def check_limited(
    workloads: Sequence[Source],
    schedulers: Mapping[str, Scheduler],
    sets: Sequence[LimitSet],
    folder: Path,
) -> None:
    """Raise an HpcgymError unless machines, schedulers and limits go together.

    Parameters
    ----------
    workloads, schedulers, sets : of the experiment.
    folder : what names of files are relative to.
    """
    for place, scheduler in enumerate(schedulers.values()):
        if sets:
            at(f"schedulers[{place}]", check_for_limits, scheduler)
        else:
            at(f"schedulers[{place}]", check_power_rule, scheduler, None)
    needed = any(one.cap or one.budget for one in sets)
    for number, source in enumerate(workloads if sets else ()):
        where = f"workloads[{number}].cluster"
        if source.cluster is None:
            raise HpcgymError(
                f"{where} is missing: limits are of machines whose nodes have a power, such as"
                " 'taurus'"
            )
        machine = at(where, machine_of, source.cluster, folder)
        power = at(where, node_power, machine, needed)
        for place, one in enumerate(sets):
            found = read_limits(machine, one.cap, one.budget, f"limits[{place}].")
            at(f"limits[{place}]", check_limits, found)
            caps = [limit for limit in found if isinstance(limit, PowerCap)]
            for rank, scheduler in enumerate(schedulers.values()):
                pair = f"schedulers[{rank}] under limits[{place}] on workloads[{number}]"
                at(pair, check_off_as_idle, found, may_switch(scheduler, machine, found))
                for cap in caps:
                    at(pair, nodes_off, machine, power, cap, scheduler.power)
