"""What a page is told of forecasts: when waiting jobs were expected to start, at a moment."""

from __future__ import annotations

import math
from typing import Any

from hpcgym.forecasting.forecasts import forecast
from hpcgym.forecasting.state import snapshot
from hpcgym.schedule.result import Result
from hpcgym.workload.columns import MISSING

#: Ends of the intervals of 95, 80 and 50 %, and the median.
FAN = (0.025, 0.1, 0.25, 0.5, 0.75, 0.9, 0.975)
#: How many futures a page looks at.
FUTURES = 64


def fans_of(result: Result, at: float | str) -> dict[str, Any]:
    """Return forecasts of the starts of all jobs that waited at a time of a simulation.

    Parameters
    ----------
    result : the simulation; its rules are those of the forecasts.
    at : the time, as :func:`hpcgym.snapshot` takes it.

    Returns
    -------
    told : ``now`` [s]; and ``jobs``, of each that waited the number, the levels :data:`FAN` of its
        start [s], and the number of the running job on which that depends most with the share of
        its request that this one usually runs, or None twice. Times are since the first submission;
        None: never.

    Raises
    ------
    HpcgymError, WorkloadError : a time before the first job, or rules that forecasts do not know.
    """
    state = snapshot(result, at)
    forecasts = forecast(state, result.scheduler, futures=FUTURES)
    first = int(result.workload.submit_time[0])
    table, reasons = forecasts.table(FAN), forecasts.reasons()
    fans = table.iloc[:, -len(FAN) :].to_numpy().tolist()
    return {
        "now": state.time - first,
        "jobs": [
            [
                job,
                [round(start) - first if math.isfinite(start) else None for start in levels],
                *([on, share] if on != MISSING else [None, None]),
            ]
            for job, levels, on, share in zip(
                table.job.tolist(), fans, reasons.on.tolist(), reasons.share.tolist(), strict=True
            )
        ],
    }
