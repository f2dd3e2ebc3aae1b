"""What if the policy were another: the same futures under some rules."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from hpcgym.errors import HpcgymError
from hpcgym.forecasting.forecasts import Forecast
from hpcgym.forecasting.scores import Floats

#: Orders of the queue that are tried, beside the present one.
OTHERS = ("fcfs", "spf", "lpf", "sqf", "lqf", "saf", "laf", "sexp", "wfp3", "unicef")
#: Of each so many futures.
FUTURES = 16


class UnderPolicy(NamedTuple):
    """How long the waiting jobs still wait in the mean under a policy.

    Attributes
    ----------
    policy : the order of the queue; all other rules stay.
    wait : [s] in the mean over futures.
    less_p10, less_p50, less_p90 : how much less that is than under the present rules, in these
        parts of the same futures [s].
    """

    policy: str
    wait: float
    less_p10: float
    less_p50: float
    less_p90: float


def under_policies(
    forecast: Forecast, policies: Sequence[str] = OTHERS, futures: int = FUTURES
) -> list[UnderPolicy]:
    """Return how long jobs would wait under other policies, the best first.

    Run times and jobs to come are the same in each future, whatever the policy; policies that do
    not go with the other rules are left out. The present rules are among them, by their policy.

    Parameters
    ----------
    forecast : of a state.
    policies : names or expressions.
    futures : how many.
    """
    name = str(forecast.scheduler.describe()["policy"])
    present = _means(forecast, name, futures)
    assert present is not None
    rows = [_row(name, present, present)]
    for policy in policies:
        waits = None if policy == name else _means(forecast, policy, futures)
        if waits is not None:
            rows.append(_row(policy, waits, present))
    return sorted(rows, key=lambda row: row.wait)


def _means(forecast: Forecast, policy: str, futures: int) -> Floats | None:
    """Return the mean wait from now in each future, (n,) [s]; None: rules that do not go."""
    given = forecast.scheduler
    try:
        rules = given if policy == str(given.describe()["policy"]) else given.but(policy=policy)
        same = Forecast(
            *(forecast.state, rules, forecast.past, futures, forecast.seed),
            threads=forecast.threads,
            learned=forecast.learned,
        )
        starts = same.starts
    except HpcgymError:
        return None
    if not starts.size:
        return np.zeros(futures)
    means: Floats = (starts - forecast.state.time).mean(axis=1)
    return means


def _row(policy: str, waits: Floats, present: Floats) -> UnderPolicy:
    with np.errstate(invalid="ignore"):
        less = np.nan_to_num(present - waits, nan=0.0)
    return UnderPolicy(policy, float(waits.mean()), *np.quantile(less, (0.1, 0.5, 0.9)).tolist())
