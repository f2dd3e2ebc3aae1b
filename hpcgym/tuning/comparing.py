"""A tuned scheduler beside others, on weeks not searched on; and what each part of it does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hpcgym.evaluation.intervals import FEWEST, how_often
from hpcgym.schedule.measures import MEASURES
from hpcgym.tuning.bounds import Bound
from hpcgym.tuning.jitters import mean_over_jitters
from hpcgym.tuning.space import Rules
from hpcgym.tuning.trials import Losses, Tried, by_week

if TYPE_CHECKING:
    import pandas as pd

_RESAMPLES = 4000


def less(
    weeks: NDArray[np.float64], reference: NDArray[np.float64], objective: str
) -> tuple[float, float, float]:
    """Return how much less an objective is than that of a reference, in per cent, with an interval.

    It is that of paired resamples of weeks, 95 %: below 0 at both ends, the difference is more than
    the choice of the weeks explains. Weeks count as independent, which those are not quite that
    follow one another on a machine that does not empty.

    Parameters
    ----------
    weeks, reference : (n_seeds, n_weeks, 3) of :class:`hpcgym.tuning.trials.Tried`.
    objective : a name of :data:`hpcgym.tuning.trials.OBJECTIVES`.

    Returns
    -------
    change, low, high : [%]; the ends are nan of fewer than five weeks with jobs.
    """
    both = by_week(np.stack([weeks, reference]), objective)
    n = both.shape[1]
    every = np.ones((1, n))
    drawn = how_often(n, _RESAMPLES, seed=0)
    logs = objective == "weekly_bsld"
    changes = []
    for times in (every, drawn):
        mine, theirs = (times @ both.T / n).T
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.exp(mine - theirs) if logs else mine / theirs
        changes.append(100 * (ratio - 1))
    low, high = np.percentile(changes[1], [2.5, 97.5]) if n >= FEWEST else (np.nan, np.nan)
    return float(changes[0][0]), float(low), float(high)


def board_of(
    tried: Mapping[str, Tried],
    early: Mapping[str, Tried],
    objective: str,
    limits: Sequence[tuple[Bound, float]],
) -> pd.DataFrame:
    """Return a row for each scheduler, on later weeks; the first is the tuned one.

    Parameters
    ----------
    tried, early : name -> what came of one scheduler on the later and on the early part.
    limits : bounds, and what each means on the later part.

    Returns
    -------
    Columns: each of MEASURES, the mean over jitters; ``tuned_percent``, ``low``, ``high``: how much
    more than this scheduler the tuned one has of the objective; ``kept``, whether all bounds are;
    ``early`` of the objective.
    """
    import pandas as pd

    rows = {}
    tuned = next(iter(tried.values())).weeks[0]
    place = list(MEASURES).index(objective)
    for name, one in tried.items():
        means = mean_over_jitters(one.values)[0]
        row: dict[str, Any] = dict(zip(MEASURES, means.tolist(), strict=True))
        row["tuned_percent"], row["low"], row["high"] = less(tuned, one.weeks[0], objective)
        row["kept"] = all(row[bound.measure] <= limit for bound, limit in limits)
        row["early"] = float(mean_over_jitters(early[name].values)[0, place])
        rows[name] = row
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("scheduler")


def without(rules: Rules, easy: Rules) -> Rules:
    """Return rules with one part as EASY has it."""
    changed = {**rules, **easy}
    return {rule: value for rule, value in changed.items() if value is not None}


def ablated(
    rules: Rules, parts: Mapping[str, Rules], losses: Losses, seeds: Sequence[int]
) -> list[tuple[str, Rules]]:
    """Return the way from rules to EASY: each step gives up what costs least.

    Parameters
    ----------
    parts : part of the rules -> the rules of EASY that stand in its place.

    Returns
    -------
    Pairs of what was given up and the rules that are left; the first gave up nothing, the last are
    those of EASY.
    """
    way: list[tuple[str, Rules]] = [("nothing", rules)]
    while True:
        last = way[-1][1]
        options = {part: without(last, easy) for part, easy in parts.items()}
        left = [part for part, one in options.items() if one != last]
        if not left:
            return way
        tried = losses.trials.of([options[part] for part in left], seeds)
        part = left[int(losses.of(tried.values).argmin())]
        way.append((part, options[part]))
