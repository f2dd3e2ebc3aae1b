"""How good forecasts of waits are: scores of quantiles, and their recalibration.

The main score is the CRPS (continuous ranked probability score; Gneiting and Raftery, "Strictly
proper scoring rules, prediction, and estimation", JASA 2007, section 4.2), which for a point is the
absolute error, as twice the integral of the pinball loss over the levels. It is that of log(1 +
wait / 60 s): a minute more matters to who waits for two, not to who waits for a day.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hpcgym.units import HOUR_S, MINUTE_S

Floats = NDArray[np.float64]

#: Levels of the quantiles that are scored.
LEVELS: Floats = np.array([0.025, *np.round(np.arange(0.05, 0.951, 0.05), 2), 0.975])
#: A job that never starts waits for so long [s].
_LONGEST_S = 1e9


def logs_of(wait: Floats) -> Floats:
    """Return log(1 + wait / 60 s) of waits [s], the longest of which count as 30 years."""
    logs: Floats = np.log1p(np.clip(wait, 0, _LONGEST_S) / MINUTE_S)
    return logs


def waits_of(logs: Floats) -> Floats:
    """Return the waits [s] of which :func:`logs_of` makes some numbers.

    They are rounded to a microsecond: whole seconds, which an interval may end at, stay whole.
    """
    waits: Floats = np.round(np.expm1(logs) * MINUTE_S, 6)
    return waits


def crps(quantiles: Floats, wait: Floats) -> Floats:
    """Return the CRPS of log(1 + wait / 60 s), (n,).

    Parameters
    ----------
    quantiles : (n, n_levels) of waits [s], at :data:`LEVELS`.
    wait : (n,) [s] what came of it.
    """
    said, was = logs_of(quantiles), logs_of(wait)
    over = was[:, np.newaxis] - said
    pinball = np.maximum(LEVELS * over, (LEVELS - 1) * over)
    edges = np.concatenate([[0], (LEVELS[1:] + LEVELS[:-1]) / 2, [1]])
    loss: Floats = 2 * (pinball * np.diff(edges)).sum(axis=1)
    return loss


def scores(quantiles: Floats, wait: Floats) -> dict[str, float]:
    """Return the scores of forecasts, means but for the last one.

    crps; coverage_50, coverage_80 and coverage_95, how often the wait was within these intervals;
    within_15_min and within_factor_2, how often the median was, waits below a minute counting as
    one there; median_error_h, the median of the absolute errors of medians [h].

    Parameters
    ----------
    quantiles, wait : as of :func:`crps`.
    """

    def column(level: float) -> Floats:
        seconds: Floats = quantiles[:, int(np.abs(LEVELS - level).argmin())]
        return seconds

    def covered(low: float, high: float) -> float:
        return float(((column(low) <= wait) & (wait <= column(high))).mean())

    median = column(0.5)
    said, was = np.maximum(median, MINUTE_S), np.maximum(wait, MINUTE_S)
    return {
        "crps": float(crps(quantiles, wait).mean()),
        "coverage_50": covered(0.25, 0.75),
        "coverage_80": covered(0.1, 0.9),
        "coverage_95": covered(0.025, 0.975),
        "within_15_min": float((np.abs(median - wait) <= 15 * MINUTE_S).mean()),
        "within_factor_2": float(((said <= 2 * was) & (was <= 2 * said)).mean()),
        "median_error_h": float(np.median(np.abs(median - wait))) / HOUR_S,
    }


def places(samples: Floats, wait: Floats, rng: np.random.Generator) -> Floats:
    """Return the places of waits among samples, (n,) in [0, 1]: the PIT, at random among equals.

    Parameters
    ----------
    samples : (n, n_samples) of waits [s].
    wait : (n,) [s] what came of it.
    """
    below = (samples < wait[:, np.newaxis]).sum(axis=1)
    same = (samples == wait[:, np.newaxis]).sum(axis=1)
    place: Floats = (below + rng.random(len(wait)) * (same + 1)) / (samples.shape[1] + 1)
    return place
