"""Which rules nobody beats in everything, and which one is chosen on the first halves of logs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hpcgym.benchmarks.frontier.rules import REFERENCE

if TYPE_CHECKING:
    import pandas as pd

#: What is weighed against each other, all of which should be small.
AIMS = ("mean_bsld", "mean_wait_h", "p99_wait_h", "max_wait_h")
#: How many times as much as under EASY a chosen rule may have.
AT_MOST = {"mean_wait_h": 1.0, "p99_wait_h": 1.5, "max_wait_h": 1.5}


def means_of(rows: pd.DataFrame, part: str) -> pd.DataFrame:
    """Return the means over the variants of a log of one part of it, a row for each rule."""
    those = rows[rows["part"] == part].drop(columns=["part", "start_week", "seed"])
    return those.groupby("rule", sort=False).mean()


def front_of(table: pd.DataFrame) -> pd.DataFrame:
    """Return the rules than which no other is at least as good in all aims, and better in one.

    ``table`` : a row for each rule, with the columns AIMS.
    """
    values: NDArray[np.float64] = table[list(AIMS)].to_numpy()
    kept = [not ((values <= row).all(axis=1) & (values < row).any(axis=1)).any() for row in values]
    return table[kept].sort_values("mean_bsld")


def ratios_to_reference(table: pd.DataFrame) -> pd.DataFrame:
    """Return how many times as much as under EASY each rule has of each aim."""
    return table[list(AIMS)] / table.loc[REFERENCE, list(AIMS)]


def chosen(logs: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Return all rules that keep the bounds on the early parts of all logs, the best first.

    The best has the least geometric mean, over the logs, of its mean bounded slowdown divided by
    EASY's. The late parts are not looked at.

    Parameters
    ----------
    logs : name -> rows of all rules, variants and parts.

    Returns
    -------
    A row for each rule, "rule" its index: "slowdown / EASY's", and of each aim with a bound the
    greatest of the logs, divided by EASY's.
    """
    import pandas as pd

    ratios = [ratios_to_reference(means_of(rows, "early")) for rows in logs.values()]
    found = pd.DataFrame(
        {
            "slowdown / EASY's": np.exp(
                np.mean([np.log(each["mean_bsld"].to_numpy()) for each in ratios], axis=0)
            ),
            **{
                f"{aim} / EASY's, greatest": np.max([each[aim].to_numpy() for each in ratios], 0)
                for aim in AT_MOST
            },
        },
        index=ratios[0].index,
    )
    keeps = np.logical_and.reduce(
        [found[f"{aim} / EASY's, greatest"] <= most for aim, most in AT_MOST.items()]
    )
    return found[keeps].sort_values("slowdown / EASY's")


def chosen_alone(logs: Mapping[str, pd.DataFrame]) -> dict[str, str | None]:
    """Return the rule that is chosen on the early part of each log by itself, None if none is."""
    return {log: next(iter(chosen({log: rows}).index), None) for log, rows in logs.items()}
