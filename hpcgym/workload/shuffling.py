"""The same jobs in another order."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from hpcgym.errors import WorkloadError
from hpcgym.workload.generators.arguments import whole
from hpcgym.workload.model import Workload


def shuffled(workload: Workload, seed: int = 0) -> Workload:
    """Return the same jobs in another order: submit times stay, and who comes then is drawn.

    All else of a job goes with it, its number and the wait that it had in the log too.

    Parameters
    ----------
    workload : the jobs.
    seed : of the order, at least 0; all orders are equally likely, and the same seed gives the same
        one.

    Returns
    -------
    Workload
        ``NAME shuffle SEED``.

    Raises
    ------
    WorkloadError : a seed that is none, or an extract, in which some jobs run already.
    """
    if workload.initial is not None:
        raise WorkloadError(
            f"{workload.name} begins with jobs that run: what is shuffled begins with an empty"
            " machine"
        )
    seed = whole("shuffled", "seed", seed, 0, 2**64)
    order = np.random.default_rng(seed).permutation(len(workload))
    mixed = workload.take(order, name=f"{workload.name} shuffle {seed}")
    return replace(mixed, columns={**mixed.columns, "submit_time": workload.submit_time})
