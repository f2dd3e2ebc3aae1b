"""How much features differ between jobs: what weights are divided by, so that all of them count."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hpcgym.scheduler.policies.features import FEATURES, USER_FEATURES, JobColumns
from hpcgym.workload.model import Workload


def spread(slices: Sequence[Workload], features: Sequence[str]) -> NDArray[np.float64]:
    """Return how much each feature differs between waiting jobs, about: (n_features,).

    Weights are divided by it, because areas are a million times as large as expansion factors and
    would be all that counts. How long jobs wait is not known before the simulation: taken to be as
    long as the mean job. Nor is what users will have used; priorities are from 0 to 1: taken as 1.
    """
    jobs = [JobColumns(part) for part in slices]
    wait = float(np.mean(np.concatenate([part.requested for part in jobs])))
    found = []
    for name in features:
        if name in USER_FEATURES:
            found.append(1.0)
            continue
        feature, size = FEATURES[name], 0.0
        if feature.static is not None:
            size += float(np.std(np.concatenate([feature.static(part) for part in jobs])))
        if feature.patience is not None:
            patience = np.concatenate([feature.patience(part) for part in jobs])
            size += wait / float(np.median(patience))
        found.append(size if 0 < size < np.inf else 1.0)
    return np.array(found)
