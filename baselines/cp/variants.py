"""The variants 0 to 3 of CPH and pure CP: what the search and the objective weigh jobs by.

Remediani 2017, sections 4.2.1 and 4.3.1: 0, expected waits in both; 1, slowdown in the search; 2,
slowdown in the objective; 3, slowdown in both. By these names equation 4.4 is read as 4.1, although
the text below it calls ewt_j the expected duration of the job, and its maximum that of the queue.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcgym.baselines.cp.objective import Objective, slowdown
from hpcgym.baselines.dispatchers import prb, sdprb
from hpcgym.errors import HpcgymError
from hpcgym.scheduler.dispatchers.view import PassView


class Variant(NamedTuple):
    """An order of the queue and an objective.

    Attributes
    ----------
    order : by equation 4.4 (as 4.1) or by 4.3; ties by 4.2.
    objective : equation 4.6 (CPH) or 4.14 (pure CP), or 4.12.
    """

    order: Callable[[PassView], NDArray[np.int64]]
    objective: Callable[[PassView], Objective]


def variant(number: int, waits: Callable[[PassView], Objective]) -> Variant:
    """Return a variant by number; ``waits`` is the objective of variants 0 and 1."""
    if number not in (0, 1, 2, 3):
        raise HpcgymError(f"variant must be 0, 1, 2 or 3, not {number!r}")
    return Variant(sdprb if number in (1, 3) else prb, slowdown if number in (2, 3) else waits)
