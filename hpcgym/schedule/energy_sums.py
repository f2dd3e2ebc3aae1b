"""The energy of a schedule by what its machine does, and what was used beyond limits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from hpcgym.cluster.pool import Cluster
    from hpcgym.schedule.result import Result

_ROUNDING = 1e-12  # of sums of powers


def energies_of(result: Result, busy: float, span: float) -> dict[str, float]:
    """Return the energy by what processors or nodes do over the makespan ``span`` [J].

    ``busy`` are the processor seconds of jobs.
    """
    if result.keeps_books:
        return books_energies_j(result)
    idle = {"idle": result.cluster.processors * span - busy}
    return energies_j(result.cluster, {"busy": busy, **(result.idle_seconds or idle)})


def energies_j(cluster: Cluster, seconds: Mapping[str, float]) -> dict[str, float]:
    """Return the energy of processors by what they do [J], from processor seconds by the same."""
    off, on = seconds.get("switching_off", 0), seconds.get("switching_on", 0)
    return {
        "energy_busy_j": seconds["busy"] * cluster.busy_power_w,
        "energy_idle_j": seconds["idle"] * cluster.idle_power_w,
        "energy_off_j": seconds.get("off", 0) * cluster.off_power_w,
        "energy_switching_j": off * cluster.shutdown_w + on * cluster.boot_w,
    }


def books_energies_j(result: Result) -> dict[str, float]:
    """Return the energy by what nodes do, and of components where the machine has any [J]."""
    states = result.books.by_state
    busy = [joules for name, joules in states.items() if name.startswith("busy")]
    energies = {
        "energy_busy_j": sum(busy),
        "energy_idle_j": states["idle"],
        "energy_off_j": states["off"],
        "energy_switching_j": states["switching_off"] + states["switching_on"],
    }
    if result.cluster.levels:
        energies["energy_components_j"] = states["components"]
    return energies


def exceeded_s(result: Result) -> int:
    """Return how long the power was above a cap that held and was known [s]."""
    books = result.books
    caps = [limit for limit in result.limits or () if hasattr(limit, "watts")]
    return _exceeded_s(caps, books.time, books.total_w)


def exceeded_j(result: Result) -> float:
    """Return what was used beyond budgets [J]."""
    limits: tuple[Any, ...] = result.limits or ()
    excess = 0.0
    for budget in limits:
        if hasattr(budget, "joules"):
            used = result.books.joules(budget.start, budget.end)
            if used > budget.joules * (1 + _ROUNDING):
                excess += used - budget.joules
    return excess


def _exceeded_s(caps: list[Any], times: NDArray[np.int64], watts: NDArray[np.float64]) -> int:
    """Return how long the power is above any cap that is known [s]; each second counts once."""
    windows = [
        (max(cap.start, cap.announced or 0), times[-1] if cap.end is None else cap.end)
        for cap in caps
    ]
    moments = np.concatenate([times, np.clip(np.ravel(windows), times[0], times[-1])])
    cuts = np.unique(moments)
    here = watts[np.searchsorted(times, cuts[:-1], "right") - 1]
    above = np.zeros(len(here), np.bool_)
    for cap, (begin, end) in zip(caps, windows, strict=True):
        inside = (cuts[:-1] >= begin) & (cuts[:-1] < end)
        above |= inside & (here > cap.watts * (1 + _ROUNDING))
    return int(np.diff(cuts)[above].sum())
