"""Frequencies that change while jobs run, beside those that are chosen at their starts.

Section 8.2 of Glesser 2016 expects "faster power decrease when a powercap period is approaching
and lower jobs' turnaround time after a powercap period is over".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hpcgym.benchmarks.energy.powercap_tables import Outcomes
from hpcgym.benchmarks.energy.powercap_workload import HOUR_S
from hpcgym.benchmarks.energy.resampled import interval

if TYPE_CHECKING:
    import pandas as pd

#: Hours of intervals -> how they are called together.
_LENGTHS = {5: "5 h", 24: "24 h"}


def of_changing(outcomes: Outcomes) -> pd.DataFrame:
    """Return what changes, means over workloads and intervals of the same length.

    Columns as of figure 4.6, and: energy in the hour before the cap over that of a machine that is
    busy, minutes above the cap, the turnaround of jobs that are submitted within the interval, and
    what of it is gained, in percent, with its interval over workloads and intervals.
    """
    import pandas as pd

    found: dict[tuple[str, ...], list[dict[str, float]]] = {}
    for (trace, requests, _), simulated in outcomes.items():
        for outcome in simulated:
            for key, values in _shares(outcome):
                found.setdefault((trace, requests, *key), []).append(values)
    rows = []
    for key, cells in found.items():
        names = ("trace", "requests", "interval", "cap", "policy", "frequencies")
        row: dict[str, Any] = dict(zip(names, key, strict=True))
        row |= {name: float(np.mean([cell[name] for cell in cells])) for name in cells[0]}
        took, before = _turnarounds(cells), _turnarounds(found[(*key[:-1], "start")])
        row["turnaround (h)"] = float(took.mean()) if len(took) else 0.0
        gains = 100 * (1 - took / before)
        row["less turnaround (%)"] = float(gains.mean()) if len(gains) else 0.0
        row["95 % interval"] = interval(gains)
        rows.append(row)
    return pd.DataFrame(rows)


def _turnarounds(cells: Sequence[Mapping[str, float]]) -> NDArray[np.float64]:
    """Return the turnaround of each cell [h] within which jobs are submitted."""
    took = np.array([cell["turnaround (h)"] for cell in cells])
    return took[took > 0]


def _shares(outcome: Mapping[str, Any]) -> Sequence[tuple[tuple[str, ...], dict[str, float]]]:
    """Return (interval, cap, policy, when) and what there is of each run of an interval."""
    where = outcome["interval"]
    hours = round((where["end"] - where["begin"]) / HOUR_S)
    hour_j = outcome["possible_j"] / hours
    return [
        (
            (_LENGTHS[hours], f"{row['cap']:.0%}", row["policy"], row["when"]),
            {
                "energy / possible": row["energy_j"] / outcome["possible_j"],
                "hour before": row["before_j"] / hour_j,
                "above the cap (min)": row["exceeded_s"] / 60,
                "work / possible": row["work"] / outcome["possible_work"],
                "computed / possible": row["computed"] / outcome["possible_work"],
                "launched jobs": float(row["launched"]),
                "turnaround (h)": row["turnaround_s"] / HOUR_S,
            },
        )
        for row in outcome["changing"]
    ]
