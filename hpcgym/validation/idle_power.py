"""What can be proved of processors that are switched off, for :mod:`hpcgym.validation.validate`.

The energy of nodes with a power of their own is looked at in :mod:`hpcgym.validation.books`.
"""

from __future__ import annotations

import math
import operator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from hpcgym.schedule.result import Result

Times = NDArray[np.int64]  # seconds
_RELATIVE_ENERGY_ERROR = 1e-12  # a few roundings of double precision


def delays_s(result: Result) -> tuple[int, int]:
    """Return the least and the longest delay of a job that waits for processors [s].

    Both are 0 where no job can be late.
    """
    if result.idle_seconds is None:
        return 0, 0
    boot = result.cluster.boot_time_s
    return boot, boot + result.cluster.shutdown_time_s


def started_by_event(start: Times, events: Times, delays: tuple[int, int]) -> NDArray[np.bool_]:
    """Return which jobs may have been given their processors at one of the times of events.

    Parameters
    ----------
    start : (n_jobs,) start times.
    events : (n_events,) strictly increasing times of submissions and ends.
    delays : as of :func:`delays_s`.
    """
    least, most = delays
    at_once = np.isin(start, events)
    latest = events[np.maximum(np.searchsorted(events, start - least, "right") - 1, 0)]
    late = start - latest
    return at_once | ((late >= least) & (late <= most))


def check_energy(result: Result, time: Times, used: Times) -> list[str]:
    """Compare the energies with the integral of power.

    Parameters
    ----------
    time : (n_times,) strictly increasing, from the first submission to the last end.
    used : (n_times,) busy processors from each time to the next.
    """
    cluster, metrics = result.cluster, result.metrics
    steps = np.diff(time)
    span = int(time[-1] - time[0]) if time.size else 0
    # processor seconds, as Python's integers: their sum may pass 2**63
    busy = sum(map(operator.mul, used[:-1].tolist(), steps.tolist()))
    without_job = cluster.processors * span - busy
    seconds = {"idle": without_job}
    if result.idle_seconds is not None:
        seconds = dict(result.idle_seconds)
        if min(seconds.values()) < 0 or sum(seconds.values()) != without_job:
            parts = ", ".join(f"{name} {value}" for name, value in seconds.items())
            return [f"processors have no job for {without_job} s in all, not for {parts}"]
    expected: dict[str, float] = {
        "makespan_s": span,
        "energy_idle_j": seconds["idle"] * cluster.idle_power_w,
        "energy_busy_j": busy * cluster.busy_power_w,
    }
    if result.idle_seconds is not None:
        expected["energy_off_j"] = seconds["off"] * cluster.off_power_w
        expected["energy_switching_j"] = (
            seconds["switching_off"] * cluster.shutdown_w + seconds["switching_on"] * cluster.boot_w
        )
    joules = sum(value for name, value in expected.items() if name != "makespan_s")
    expected["energy_j"] = joules
    return [
        f"{name} is {metrics[name]} instead of {value}"
        for name, value in expected.items()
        if not math.isclose(metrics[name], value, rel_tol=_RELATIVE_ENERGY_ERROR)
    ]
