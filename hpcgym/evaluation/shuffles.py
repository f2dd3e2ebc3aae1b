"""Schedulers compared on the same shuffles of a workload, with intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hpcgym.errors import HpcgymError, check_choice
from hpcgym.evaluation.intervals import bootstrap, win_rates

if TYPE_CHECKING:
    import pandas as pd

    from hpcgym.schedule.result import Result

#: Metrics of which the table has the means; of schedules that have them.
_MEANS = ("mean_job_speedup", "slowed_share", "utilization", "throughput_per_h", "mean_bsld")


def compare_shuffles(
    outcomes: Mapping[str, Sequence[Result | Mapping[str, Any]]],
    reference: str = "easy",
    *,
    resamples: int = 2000,
    seed: int = 0,
) -> pd.DataFrame:
    """Compare the makespans of schedulers on the same shuffles with those of a reference.

    Parameters
    ----------
    outcomes : scheduler -> its results, or their metrics, one for each shuffle; of all schedulers
        in the same order.
    reference : the scheduler that all are compared with.
    resamples, seed : of the intervals.

    Returns
    -------
    table : a row a scheduler, in the order of ``outcomes``.

        - ``shuffles``: their number.
        - ``makespan_s``: mean makespan.
        - ``improvement_percent``: mean over the shuffles of 100 (makespan of the reference /
          makespan - 1), the makespan speedup of ELiSE less 1; ``improvement_low`` and
          ``improvement_high``: its 95 % bootstrap interval over the shuffles, nan with fewer than
          five. If it lies above 0, the improvement is more than the choice of shuffles explains.
        - ``wins``: share of the shuffles on which no makespan is less; k schedulers that are
          equally good get 1/k each.
        - ``mean_job_speedup``, ``slowed_share``, ``utilization``, ``throughput_per_h``,
          ``mean_bsld``: means of the metrics over the shuffles; nan where a scheduler has none.

    Raises
    ------
    HpcgymError : no outcomes, a reference that is not among them, or schedulers with different
        numbers of shuffles; a schedule without a makespan; no resamples.
    """
    import pandas as pd

    check_choice("reference", reference, outcomes)
    rows = {name: [_metrics(one) for one in parts] for name, parts in outcomes.items()}
    makespans = _makespans(rows, reference)
    improvement = 100 * (makespans[:, [list(rows).index(reference)]] / makespans - 1)
    low, high = bootstrap(improvement, resamples, seed)
    columns = {
        "shuffles": np.full(len(rows), len(makespans)),
        "makespan_s": makespans.mean(axis=0),
        "improvement_percent": improvement.mean(axis=0),
        "improvement_low": low,
        "improvement_high": high,
        "wins": win_rates(makespans),
    }
    for metric in _MEANS:
        columns[metric] = [
            np.mean([one.get(metric, np.nan) for one in metrics]) for metrics in rows.values()
        ]
    return pd.DataFrame(columns, index=pd.Index(list(rows), name="scheduler"))


def _metrics(outcome: Result | Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the metrics of a result, or what is given in their place."""
    return outcome if isinstance(outcome, Mapping) else outcome.metrics


def _makespans(
    rows: Mapping[str, Sequence[Mapping[str, Any]]], reference: str
) -> NDArray[np.float64]:
    """Return the makespans [s], (shuffles, schedulers), checked."""
    number = len(rows[reference])
    if not number:
        raise HpcgymError("there are no shuffles to compare")
    for name, metrics in rows.items():
        if len(metrics) != number:
            raise HpcgymError(f"{reference} has {number} shuffles, {name} has {len(metrics)}")
        for shuffle, one in enumerate(metrics):
            if not one.get("makespan_s", 0) > 0:
                raise HpcgymError(f"{name}: shuffle {shuffle} has no makespan_s above 0")
    table = [[float(one["makespan_s"]) for one in metrics] for metrics in rows.values()]
    return np.array(table).T
