"""Which of the finalists of a search is taken: the simplest of those that weeks do not tell apart.

The best on some weeks is not the best on others, the less so the more numbers it has. So what is
taken is the rule of the fewest parts whose loss is at most a standard error above the least. It is
the rule of Breiman et al. (Classification and Regression Trees, 1984, section 3.4.3), but with the
standard error of the paired differences over weeks: weeks differ much more than rules do.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hpcgym.evaluation.intervals import FEWEST


def simplest(losses: NDArray[np.float64], by_week: NDArray[np.float64], parts: list[int]) -> int:
    """Return the place of the rule that is taken.

    Parameters
    ----------
    losses : (n_rules,) of all weeks together, with what breaking a bound costs.
    by_week : (n_rules, n_weeks) what each week adds to the objective, as a share of it or in
        logarithms: their means over the weeks are the objective. Fewer than five weeks tell
        nothing apart, and the best is taken.
    parts : of how many parts the rules are.
    """
    best = int(losses.argmin())
    apart = by_week - by_week[best]
    n = by_week.shape[1]
    error = apart.std(axis=1, ddof=1) / np.sqrt(n) if n >= FEWEST else np.zeros(len(losses))
    near = np.flatnonzero(losses - losses[best] <= error)
    order = sorted(near.tolist(), key=lambda place: (parts[place], losses[place]))
    return int(order[0])
